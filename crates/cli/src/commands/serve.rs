//! `plaincall serve`: run the gateway.

mod client;
mod configured;
mod discovery;
mod limits;
mod log;
mod open_files;
mod options;
mod reload;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plaincall_config::settings::Serve;
use plaincall_gateway::{Gateway, GatewayConfig, Secret, Upstream};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::commands::serve::client::{ClientKey, ClientVariables};
use crate::commands::serve::configured::Configured;
use crate::commands::serve::discovery::find_upstream;
use crate::commands::serve::log::Log;
pub(crate) use crate::commands::serve::options::ServeOptions;
use crate::commands::serve::reload::Reload;
use crate::environment::Environment;
use crate::keys::Source;
use crate::output::JsonOutput;
use crate::platform::has_terminal;
use crate::status::{Failure, Outcome, Status, print_error, print_note, reason};
use crate::terminal::interrupts::Interrupts;

/// How long shutdown waits for aborted requests.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);
/// The default time to accept requests after SIGTERM.
const DRAIN_DELAY: Duration = Duration::from_secs(5);
const CLIENT_KEYS: &str = "PLAINCALL_KEYS";
const UPSTREAM_KEY: &str = "PLAINCALL_UPSTREAM_KEY";
const SECRET: &str = "PLAINCALL_SECRET";

/// The default address, and how many ports after it are tried if the model server may be on the same port.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const OTHER_PORTS: u16 = 19;
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

pub(crate) fn serve(options: &ServeOptions) -> Outcome {
    let environment = Environment::read();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Runtime(format!("cannot start: {error}")))?;
    let has_command = !options.command.is_empty();
    let mut configured = Configured::read(options, &environment)?;
    let upstream = runtime.block_on(upstream(options, &mut configured, &environment))?;
    let secret = secret(&configured.serve, &environment)?;
    let mut config = configured.reloadable(upstream.as_deref(), secret.clone(), &environment)?;
    let Configured {
        serve,
        skipped,
        variables,
        ..
    } = configured;
    // The client of a command must not get the variables with secrets of the configuration.
    let variables: Vec<String> = variables.into_keys().collect();
    config.allow_public_without_keys = serve.open == Some(true);
    config.origins.clone_from(&serve.cors);
    config.report_contents = options.log_contents;
    limits::apply(&mut config, &serve);
    let servers = servers(upstream.as_deref(), &config);
    let log = if has_command {
        None
    } else {
        let log = Log::start(JsonOutput::new(), print_note)
            .map_err(|error| Failure::Runtime(format!("cannot start: {error}")))?;
        config.observer = Arc::clone(&log) as Arc<dyn plaincall_gateway::Observer>;
        Some(log)
    };
    // A command gets its own gateway, beside one that may be running.
    let listen = if has_command {
        options.listen
    } else {
        serve.listen
    };
    let listen = listen.map(|address| address.0);
    let address = listen.unwrap_or(DEFAULT_ADDRESS);
    config
        .check_address(address)
        .map_err(|error| Failure::Usage(format!("{error}; to allow this, use `--open`")))?;
    let passes_keys = options.upstream.is_some() && environment.get_set(UPSTREAM_KEY).is_none();
    let key = ClientKey::new(&config.keys, passes_keys, &variables, &environment);
    let requests = config.limits.concurrent;
    let gateway = Gateway::new(config).map_err(|error| Failure::Usage(error.to_string()))?;
    let file_warning = open_files::raise(requests);
    let result = runtime.block_on(async {
        let listener = listener(listen, options, &servers).await?;
        let address = listener
            .local_addr()
            .map_err(|error| cannot_listen(address, &error))?;
        let mut interrupts = Interrupts::new()?;
        print_note(&format!(
            "listening on http://{address}/v1 with tool calls for {}",
            servers.join(", ")
        ));
        if let Some(file_warning) = file_warning {
            print_note(&file_warning);
        }
        for name in skipped {
            print_note(&format!(
                "the model `{name}` is not served: its server has the API `anthropic`"
            ));
        }
        if options.log_contents {
            print_note(
                "--log-contents: the access log contains the messages of users, models and tools; restrict access to it",
            );
        }
        let variables = ClientVariables::new(address, key, variables);
        if has_command {
            return serve_command(gateway, listener, options, &variables, &mut interrupts).await;
        }
        if options.upstream.is_none() && upstream.is_some() {
            print_note(&format!(
                "set these variables for your client, or run it with `plaincall serve -- COMMAND`:\n{}",
                variables.exports()
            ));
        }
        let reload = Reload {
            options: options.clone(),
            serve,
            upstream,
            secret,
            environment,
            has_terminal: has_terminal(),
        };
        serve_until_signal(gateway, listener, interrupts, reload).await
    });
    // Aborted requests are logged too.
    runtime.shutdown_timeout(ABORT_TIMEOUT);
    if let Some(log) = log {
        log.close();
    }
    result
}

/// Listens on the address, or on the default.
async fn listener(
    listen: Option<SocketAddr>,
    options: &ServeOptions,
    servers: &[String],
) -> Result<TcpListener, Failure> {
    let ip = listen.unwrap_or(DEFAULT_ADDRESS).ip();
    let default = DEFAULT_ADDRESS.port();
    // A local model server may use the same port, as llama.cpp does.
    let is_of_upstream = |port: u16| {
        let mut addresses = LOCAL_HOSTS
            .map(|host| format!("http://{host}:{port}/"))
            .into_iter();
        addresses.any(|address| servers.iter().any(|server| server.starts_with(&address)))
    };
    let ports = match listen {
        Some(address) => address.port()..=address.port(),
        None if !options.command.is_empty() => 0..=0,
        None if options.upstream.is_none() || is_of_upstream(default) => {
            default..=default + OTHER_PORTS
        }
        None => default..=default,
    };
    let last = *ports.end();
    for port in ports {
        if listen.is_none() && is_of_upstream(port) {
            continue;
        }
        let address = SocketAddr::new(ip, port);
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == ErrorKind::AddrInUse && port < last => {}
            Err(error) => return Err(cannot_listen(address, &error)),
        }
    }
    Err(Failure::Runtime(
        "no port is free; choose one with `--listen`".to_owned(),
    ))
}

/// Returns the server of models without a table: that of the options, or one on this machine if no table has a server. A command may
/// then ask for any model.
async fn upstream(
    options: &ServeOptions,
    configured: &mut Configured,
    environment: &Environment,
) -> Result<Option<String>, Failure> {
    if options.upstream.is_some() || configured.has_servers()? {
        return Ok(options.upstream.clone());
    }
    let server = find_upstream(environment).await?;
    let has_command = !options.command.is_empty();
    if let Some(first) = server.models.first().filter(|_| has_command) {
        configured.replace_unknown_models(first, &server.models);
        print_note(&format!("requests for any other model get `{first}`"));
    }
    Ok(Some(server.url))
}

/// Serves until the command ends.
async fn serve_command(
    gateway: Gateway,
    listener: TcpListener,
    options: &ServeOptions,
    variables: &ClientVariables,
    interrupts: &mut Interrupts,
) -> Outcome {
    let (stop, stopped) = oneshot::channel();
    let served = tokio::spawn(gateway.clone().serve(listener, async {
        let _ = stopped.await;
    }));
    let outcome = client::run(&options.command, variables, interrupts).await;
    gateway.drain();
    let _ = stop.send(());
    // Its clients are gone.
    if let Ok(Ok(Err(error))) = tokio::time::timeout(ABORT_TIMEOUT, served).await {
        print_error(&format!("cannot serve: {error}"));
    }
    outcome
}

/// Serves until a signal, then completes the requests in progress unless a second signal arrives. SIGHUP reloads the settings.
async fn serve_until_signal(
    gateway: Gateway,
    listener: TcpListener,
    mut interrupts: Interrupts,
    reload: Reload,
) -> Outcome {
    let drain_delay = reload.serve.drain_delay.map(|delay| delay.0);
    let drain_delay = drain_delay.unwrap_or(DRAIN_DELAY);
    let (stop, stopped) = oneshot::channel();
    let mut served = tokio::spawn(gateway.clone().serve(listener, async {
        let _ = stopped.await;
    }));
    let preflight = tokio::spawn(preflight(gateway.clone()));
    let first = reload.until_shutdown(&gateway, &mut interrupts).await;
    preflight.abort();
    gateway.drain();
    // Ctrl-C does not come from a load balancer, so it needs no delay.
    let delay = if first.is_from_keyboard() {
        Duration::ZERO
    } else {
        drain_delay
    };
    let active = gateway.active();
    if active > 0 || !delay.is_zero() {
        let requests = match active {
            1 => "1 request is".to_owned(),
            _ => format!("{active} requests are"),
        };
        print_note(&format!(
            "shutting down: {requests} in progress; a second signal exits immediately"
        ));
    }
    let drained = async {
        tokio::time::sleep(delay).await;
        let _ = stop.send(());
        (&mut served).await
    };
    tokio::select! {
        drained = drained => match drained {
            Ok(Ok(0)) => Ok(Status::Success),
            Ok(Ok(incomplete)) => Err(Failure::Runtime(format!(
                "requests not completed before shutdown: {incomplete}"
            ))),
            Ok(Err(error)) => Err(Failure::Runtime(format!("cannot serve: {error}"))),
            Err(error) => Err(Failure::Runtime(format!("the server failed: {error}"))),
        },
        second = interrupts.next() => Ok(Status::Interrupted(second.status())),
    }
}

/// Prints a note for each model server with a problem.
async fn preflight(gateway: Gateway) {
    for problem in gateway.preflight().await {
        print_note(&problem);
    }
}

/// Returns the error for an address that cannot be bound, with advice.
fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> Failure {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => {
            "; another server is using this port: stop it, or choose another port with `--listen`"
        }
        ErrorKind::AddrNotAvailable => "; this machine has no such address",
        ErrorKind::PermissionDenied => {
            "; ports below 1024 need privileges; choose another port with `--listen`"
        }
        _ => "",
    };
    Failure::Runtime(format!(
        "cannot listen on {address}: {}{advice}",
        reason(error)
    ))
}

/// Returns the base URLs of the model servers.
fn servers(upstream: Option<&str>, config: &GatewayConfig) -> Vec<String> {
    let mut servers: Vec<String> = upstream.map(str::to_owned).into_iter().collect();
    for (_, upstream) in &config.upstreams {
        if let Upstream::Http { url, .. } = upstream
            && !servers.contains(url)
        {
            servers.push(url.clone());
        }
    }
    servers
}

/// Returns the secret from which markers are derived.
fn secret(serve: &Serve, environment: &Environment) -> Result<Secret, Failure> {
    let file = serve.secret_file.as_ref().map(|file| file.0.as_path());
    match Source::of(file, SECRET, environment)? {
        Some(source) => source.secret(),
        None => Secret::random()
            .map_err(|error| Failure::Runtime(format!("cannot get random numbers: {error}"))),
    }
}
