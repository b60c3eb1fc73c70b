//! `plaincall serve`: run the gateway.

mod client;
mod discovery;
mod limits;
mod log;
mod open_files;
mod options;
mod reload;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plaincall_config::settings::{Api, Model, Reasoning, measured_models, read_models};
use plaincall_gateway::{
    Gateway, GatewayConfig, ModelSettings, Replay, Secret, Upstream, for_name,
};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::commands::serve::client::{ClientKey, ClientVariables};
use crate::commands::serve::discovery::find_upstream;
use crate::commands::serve::log::Log;
pub(crate) use crate::commands::serve::options::ServeOptions;
use crate::commands::serve::reload::{Reload, has_terminal};
use crate::environment::Environment;
use crate::keys::Source;
use crate::output::JsonOutput;
use crate::status::{Failure, Outcome, Status, print_error, print_note, reason};
use crate::terminal::interrupts::Interrupts;
use crate::terminal::problems;
use crate::tools_file;

/// How long shutdown waits for aborted requests.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);
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
    let file = ModelsFile::read(options, &environment)?;
    let skipped = file.skipped.clone();
    let has_server = |(_, model): &(String, Model)| model.url.is_some() || model.replay.is_some();
    let has_servers = file.models.iter().any(has_server);
    let upstream = match &options.upstream {
        Some(upstream) => Some(upstream.clone()),
        None if has_servers => None,
        None => Some(runtime.block_on(find_upstream(&environment))?),
    };
    let secret = secret(options, &environment)?;
    // The client of a command must not get the variables with secrets of the file.
    let variables: Vec<String> = file.variables.keys().cloned().collect();
    let mut config = reloadable(
        options,
        upstream.as_deref(),
        file,
        secret.clone(),
        &environment,
    )?;
    set_fixed(&mut config, options);
    let servers = servers(upstream.as_deref(), &config);
    let has_command = !options.command.is_empty();
    let log = if has_command {
        None
    } else {
        let log = Log::start(JsonOutput::new(), print_note)
            .map_err(|error| Failure::Runtime(format!("cannot start: {error}")))?;
        config.observer = Arc::clone(&log) as Arc<dyn plaincall_gateway::Observer>;
        Some(log)
    };
    let listen = options.listen.unwrap_or(DEFAULT_ADDRESS);
    config
        .check_address(listen)
        .map_err(|error| Failure::Usage(format!("{error}; to allow this, use `--open`")))?;
    let passes_keys = options.upstream.is_some() && !has_upstream_key(options, &environment);
    let key = ClientKey::new(&config.keys, passes_keys, &variables, &environment);
    let gateway = Gateway::new(config).map_err(|error| Failure::Usage(error.to_string()))?;
    let file_warning = open_files::raise(options.limits.max_requests);
    let result = runtime.block_on(async {
        let listener = listener(options, &servers).await?;
        let address = listener
            .local_addr()
            .map_err(|error| cannot_listen(listen, &error))?;
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

/// Returns whether the gateway has a key for the model server.
fn has_upstream_key(options: &ServeOptions, environment: &Environment) -> bool {
    options.upstream_key.is_some() || environment.get_set(UPSTREAM_KEY).is_some()
}

/// Listens on the address of the options, or on the default.
async fn listener(options: &ServeOptions, servers: &[String]) -> Result<TcpListener, Failure> {
    let ip = options.listen.unwrap_or(DEFAULT_ADDRESS).ip();
    let default = DEFAULT_ADDRESS.port();
    // A local model server may use the same port, as llama.cpp does.
    let is_of_upstream = |port: u16| {
        let mut addresses = LOCAL_HOSTS
            .map(|host| format!("http://{host}:{port}/"))
            .into_iter();
        addresses.any(|address| servers.iter().any(|server| server.starts_with(&address)))
    };
    let ports = match options.listen {
        Some(address) => address.port()..=address.port(),
        None if !options.command.is_empty() => 0..=0,
        None if options.upstream.is_none() || is_of_upstream(default) => {
            default..=default + OTHER_PORTS
        }
        None => default..=default,
    };
    let last = *ports.end();
    for port in ports {
        if options.listen.is_none() && is_of_upstream(port) {
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
    let drain_delay = reload.options.times.drain_delay.0;
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

/// The file of `--models`.
#[derive(Default)]
struct ModelsFile {
    models: Vec<(String, Model)>,
    /// The names of models that cannot be served.
    skipped: Vec<String>,
    /// The environment variables that the file names, and their values.
    variables: BTreeMap<String, String>,
}

impl ModelsFile {
    fn read(options: &ServeOptions, environment: &Environment) -> Result<Self, Failure> {
        let Some(file) = &options.models else {
            return Ok(Self::default());
        };
        let (name, text) = tools_file::read_small(file)?;
        let variables = RefCell::new(BTreeMap::new());
        let variable = |name: &str| {
            let value = environment.get_set(name)?.to_str()?.to_owned();
            variables
                .borrow_mut()
                .insert(name.to_owned(), value.clone());
            Some(value)
        };
        let models = read_models(&name, &text, &all_models(options)?, &variable);
        let mut models = models.map_err(|error| {
            let count = problems::show(&name, &text, &error);
            Failure::Runtime(format!("{name} has {count}"))
        })?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let home = environment.get("HOME").map(Path::new);
        for (_, model) in &mut models {
            for path in [&mut model.key_file, &mut model.replay]
                .into_iter()
                .flatten()
            {
                path.0 = path.resolve(folder, home);
            }
        }
        let is_skipped = |(_, model): &mut (String, Model)| model.kind == Some(Api::Anthropic);
        let skipped = models.extract_if(.., is_skipped).map(|(name, _)| name);
        Ok(Self {
            skipped: skipped.collect(),
            models,
            variables: variables.into_inner(),
        })
    }
}

/// Returns the model server of a table, if it has one. The values of these variables are redacted in answers.
fn upstream_of(
    model: &Model,
    variables: &BTreeMap<String, String>,
    environment: &Environment,
) -> Result<Option<Upstream>, Failure> {
    let url = match (&model.url, &model.replay) {
        (None, Some(file)) => return replay(&file.0).map(Some),
        (None, None) => return Ok(None),
        (Some(url), _) => url,
    };
    let file = model.key_file.as_ref().map(|file| file.0.as_path());
    let key = match (&model.key_env, file) {
        (None, None) => None,
        (variable, file) => {
            let variable = variable.as_deref().unwrap_or_default();
            let source = Source::of(file, variable, environment)?;
            source.map(|source| source.value("key")).transpose()?
        }
    };
    let is_used = |secret: &&String| {
        let mut headers = model.headers.values();
        headers.any(|value| value.contains(secret.as_str()))
    };
    let secrets = variables.values().filter(is_used).cloned();
    let upstream = Upstream::http(url.0.clone(), key).with_headers(model.headers.clone());
    Ok(Some(upstream.with_secrets(secrets)))
}

/// Returns the recorded replies of a file as a model server.
fn replay(file: &Path) -> Result<Upstream, Failure> {
    let (file, text) = tools_file::read(file)?;
    let replay = Replay::read(&text);
    let replay = replay.map_err(|error| Failure::Runtime(format!("{file}: {error}")))?;
    Ok(Upstream::local(replay))
}

/// Returns the secret from which markers are derived.
fn secret(options: &ServeOptions, environment: &Environment) -> Result<Secret, Failure> {
    match Source::of(options.secret.as_deref(), SECRET, environment)? {
        Some(source) => source.secret(),
        None => Secret::random()
            .map_err(|error| Failure::Runtime(format!("cannot get random numbers: {error}"))),
    }
}

/// Returns the settings that SIGHUP replaces: model servers, models, and keys with their limits.
fn reloadable(
    options: &ServeOptions,
    upstream: Option<&str>,
    file: ModelsFile,
    secret: Secret,
    environment: &Environment,
) -> Result<GatewayConfig, Failure> {
    let ModelsFile {
        models, variables, ..
    } = file;
    let source = |file: &Option<_>, name| Source::of(file.as_deref(), name, environment);
    let upstream = match upstream.map(|upstream| (upstream, upstream.strip_prefix("replay:"))) {
        Some((_, Some(file))) => replay(Path::new(file))?,
        Some((upstream, None)) => {
            let key = source(&options.upstream_key, UPSTREAM_KEY)?;
            let key = key.map(|source| source.value("key")).transpose()?;
            Upstream::http(upstream, key)
        }
        None => Upstream::None,
    };
    let keys = source(&options.keys, CLIENT_KEYS)?;
    let key_limits = options.limits.key_limits();
    let keys = keys.map(|source| source.keys(key_limits)).transpose()?;
    let keys = keys.unwrap_or_default();
    let all = all_models(options)?;
    let mut config = GatewayConfig::new(upstream, secret);
    for (name, model) in &models {
        let upstream = upstream_of(model, &variables, environment)?;
        let upstream = upstream.map(|upstream| (name.clone(), upstream));
        config.upstreams.extend(upstream);
    }
    // A measured model has the settings of the table for its name, unless that table is for another model.
    let mut measured = Vec::new();
    for (name, _) in measured_models() {
        let model = for_name(&models, name).unwrap_or(&all);
        if model.model.is_none() && !models.iter().any(|(known, _)| known == name) {
            measured.push((name.to_owned(), model.clone()));
        }
    }
    let models = models.into_iter().chain(measured).map(|(name, model)| {
        let id = model.model.clone().unwrap_or_else(|| name.clone());
        (name, ModelSettings::from(&model.or_measured(&id)))
    });
    config.models = models.collect();
    config.keys = keys.iter().map(|(key, _)| key.clone()).collect();
    config.key_limits = key_limits;
    config.limits_by_key = keys;
    config.other_models = ModelSettings::from(&all);
    Ok(config)
}

/// Sets everything that stays until a restart.
fn set_fixed(config: &mut GatewayConfig, options: &ServeOptions) {
    config.allow_public_without_keys = options.open;
    config.origins.clone_from(&options.cors);
    config.report_contents = options.log_contents;
    config.limits = options.limits.limits();
    config.retries.max_retries = options.limits.retries;
    config.retries.max_wait = options.times.retry_wait.0;
    config.timeouts = options.times.timeouts();
}

/// Returns the settings that apply to all models.
fn all_models(options: &ServeOptions) -> Result<Model, Failure> {
    let markers = options.reasoning.clone();
    let markers = markers.and_then(|markers| Some(Reasoning::Between(markers.try_into().ok()?)));
    let reasoning = options.no_reasoning.then_some(Reasoning::Is(false));
    options.teaching.apply_to(&Model {
        reasoning: reasoning.or(markers),
        in_reasoning: Some(options.in_reasoning),
        unclosed: Some(options.unclosed.unclosed()),
        mode: Some(options.mode),
        arguments: Some(options.arguments),
        repair_rounds: Some(options.repair_rounds),
        developer_role: Some(options.developer_role),
        ..Model::default()
    })
}
