//! `plaincall-restate`: a worker for durable runs.
#![allow(
    clippy::disallowed_methods,
    reason = "a program may read its environment and directory"
)]

mod configured;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use plaincall::durable::DurableSettings;
use plaincall::{BoxError, Toolbox, read_tools};
use plaincall_agent::AgentLimits;
use plaincall_restate::Worker;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tracing_subscriber::filter::LevelFilter;

/// Serve conversations and calls to a Restate server.
///
/// All workers at one address must be the same build, with the same tools file and options.
#[derive(Parser, Debug)]
#[command(version)]
struct Options {
    /// The tools file.
    #[arg(long, value_name = "FILE")]
    tools: PathBuf,

    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    listen: SocketAddr,

    /// Share the address with other workers on this machine. The system distributes connections.
    #[arg(long)]
    share_port: bool,

    /// The configuration file: its `[models.NAME]` tables and `model`, as for `plaincall ask`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The model: a name from the configuration, `ollama:ID`, `openai:ID`, `anthropic:ID`, or `replay:FILE`. Default: `model` in
    /// the configuration. Without a model, `ask` is not available.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// Start although the configuration has keys that durable conversations do not support, such as `mcp`. They have no effect.
    #[arg(long)]
    ignore_unsupported: bool,

    /// A file with a text for the system prompt. Default: `system` or `system_file` of the configuration.
    #[arg(long, value_name = "FILE")]
    system: Option<PathBuf>,

    /// Approve calls of tools that write without asking a person. Calls that may have been copied from untrusted text
    /// are still asked about.
    #[arg(long)]
    yes: bool,

    /// The name of this release of the tools. A reply in progress continues only on workers of its release.
    #[arg(long, value_name = "NAME")]
    release: Option<String>,

    /// Accept only requests that a server with this public key has signed (`publickeyv1_…`). Can be repeated.
    #[arg(long = "identity-key", value_name = "KEY")]
    identity_keys: Vec<String>,

    /// How many seconds invocations in progress get after SIGTERM or SIGINT; a second signal ends them. Default: as long as the
    /// longest tool may take.
    #[arg(long, value_name = "SECONDS")]
    shutdown_timeout: Option<u64>,

    /// What to print to standard error.
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log: LevelFilter,
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plaincall-restate: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> Result<(), BoxError> {
    tracing_subscriber::fmt()
        .with_max_level(options.log)
        .with_writer(std::io::stderr)
        .init();
    let worker = worker(&options)?;
    if options.share_port {
        worker.check_address(options.listen).await?;
    }
    let listener = listen(&options)?;
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    eprintln!("listening on {}", listener.local_addr()?);
    let mut next = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let (ended, is_ending) = oneshot::channel();
    let shutdown = async { drop(is_ending.await) };
    let twice = async {
        next().await;
        let _ = ended.send(());
        next().await;
    };
    tokio::select! {
        () = worker.serve(listener, shutdown) => {}
        () = twice => {}
    }
    Ok(())
}

fn worker(options: &Options) -> Result<Worker, BoxError> {
    let (path, text) = read(&options.tools)?;
    let file = read_tools(&text, &path)?;
    let mut policy = file.policy;
    let mut settings = DurableSettings::new(Toolbox::new(file.tools)?)?.rules(file.rules);
    let (config, name) = (options.config.as_deref(), options.model.as_deref());
    let model = configured::model(config, name, options.ignore_unsupported)?;
    if let Some(model) = &model {
        policy.unclosed = model.table.unclosed.unwrap_or(policy.unclosed);
        policy.concurrent = model.limits.concurrent.unwrap_or(policy.concurrent);
        settings = settings.dialect(model.table.conversation());
    }
    let settings = settings.policy(policy);
    let environment = std::env::vars_os().collect();
    let mut worker = Worker::new(settings)?.commands(std::env::current_dir()?, environment);
    let mut system = None;
    if let Some(model) = model {
        system = model.system;
        let table = &model.table;
        worker = worker.limits(AgentLimits::configured(&model.limits, table));
        worker = worker.few_shot(&table.examples, table.few_shot())?;
        if let Some(client) = model.client {
            worker = worker.model(client)?;
        }
    }
    if let Some(path) = &options.system {
        system = Some(read(path)?.1);
    }
    if let Some(text) = &system {
        worker = worker.system_text(text);
    }
    for key in &options.identity_keys {
        worker = worker.identity_key(key)?;
    }
    if let Some(seconds) = options.shutdown_timeout {
        worker = worker.shutdown_timeout(Duration::from_secs(seconds));
    }
    if let Some(name) = &options.release {
        worker = worker.release(name);
    }
    Ok(if options.yes {
        worker.approve_all()
    } else {
        worker
    })
}

/// Reads a text file. Returns its absolute path too.
fn read(path: &Path) -> Result<(PathBuf, String), BoxError> {
    let path = std::path::absolute(path)?;
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((path, text))
}

fn listen(options: &Options) -> Result<TcpListener, BoxError> {
    let socket = match options.listen {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(options.share_port)?;
    let bound = socket
        .bind(options.listen)
        .and_then(|()| socket.listen(1024));
    bound.map_err(|error| format!("{}: {error}", options.listen).into())
}
