//! `plaincall mcp`: our tools for MCP clients, and the tools of MCP servers.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plaincall::{RemovedFiles, Rule, Tool, Toolbox};
use plaincall_agent::mcp::{McpConfig, McpOffer, McpOptions, McpServers};
use plaincall_config::Time;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::commands::tools::effect_word;
use crate::environment::Environment;
use crate::options::Color;
use crate::output::Output;
use crate::runtime::{LAST_TASKS, block_on};
use crate::status::{Failure, Outcome, Status, complain, end_at_signals, remark};
use crate::terminal::interrupts::{Interrupts, until_interrupted};
use crate::terminal::problems;
use crate::tools_file;
use crate::visible::harmless;

/// Offer tools to MCP clients, and look at the tools of MCP servers.
#[derive(Args, Debug)]
pub(crate) struct McpCommand {
    #[command(subcommand)]
    pub(crate) command: McpAction,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum McpAction {
    Serve(McpServeOptions),
    List(McpListOptions),
}

/// Offer the tools of a file to an MCP client, over standard input and output.
///
/// The client starts this command and speaks the protocol with it; nothing else is printed on standard output. The
/// tools, their limits and the rules about them are those of the file. What a tool may do is told to the client as a
/// hint.
///
/// Nobody can be asked about a call. Tools with the effect `read` or `idempotent` run; one that writes runs only if a rule
/// of the file or `--allow` lets it. What does not run is refused with a reason.
///
/// The tools work in the directory of the tools file, unless they name another. All calls share one scratch directory
/// (`{directory:run}`), in which they can pass files to each other.
///
/// Exit status: 0 when the client has closed its end; 1 if the tools cannot be read or the client speaks another
/// protocol; 130 or 143 after a signal. Nothing that was started is left running.
#[derive(Args, Debug)]
pub(crate) struct McpServeOptions {
    /// The file with the tools (`tools.toml`).
    #[arg(long, value_name = "FILE")]
    tools: PathBuf,

    /// Let this tool run although it may change something; `*` stands for any part of a name. May be repeated.
    ///
    /// It is a rule behind those of the file, so what they deny stays denied.
    #[arg(long, value_name = "NAME")]
    allow: Vec<String>,

    /// Let all tools run that may change something, and calls about which a rule wants somebody to be asked.
    ///
    /// What a rule denies stays denied.
    #[arg(long)]
    yes: bool,

    /// Use this directory as the scratch directory (`{directory:run}`), and keep it.
    ///
    /// It is made if it does not exist. Default: a temporary one, which is removed at the end.
    #[arg(long, value_name = "DIR")]
    run_directory: Option<PathBuf>,
}

/// List the tools of MCP servers.
///
/// It starts or reaches every server of the file that is not switched off, asks it for its tools, and ends it again. With
/// each tool stands what it counts as, and what its server says of it if that is something else.
///
/// Exit status: 0 if all servers answered; 1 if one did not, or the file could not be read; 130 or 143 after a signal.
/// Nothing that was started is left running.
#[derive(Args, Debug)]
pub(crate) struct McpListOptions {
    /// The file with the servers: `mcpServers` as JSON or TOML; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print one JSON object a tool, with its schema.
    #[arg(long)]
    json: bool,

    /// How long a server may take to be there.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: Time,
}

/// Runs the command.
///
/// # Errors
/// What keeps it from doing so.
pub(crate) fn mcp(command: &McpCommand, color: Color) -> Outcome {
    match &command.command {
        McpAction::Serve(options) => serve(options),
        McpAction::List(options) => list(options, &mut Output::new(color)),
    }
}

fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::Broken(format!("cannot begin: {error}")))
}

fn serve(options: &McpServeOptions) -> Outcome {
    let environment = Environment::read();
    let tools = tools_file::load(&options.tools)?;
    let temporary = match options.run_directory {
        Some(_) => None,
        None => Some(temporary(&environment.temporary_directory())?),
    };
    let mut offer = McpOffer::new(tools.toolbox().clone());
    offer.rules = tools.rules;
    if !options.allow.is_empty() {
        offer
            .rules
            .push(Rule::allow(options.allow.iter().map(String::as_str)));
    }
    offer.yes = options.yes;
    offer.policy = tools.policy;
    let made = temporary.as_ref().map(|made| made.path().to_owned());
    offer.current_directory = Some(folder(&options.tools)?);
    offer.directory = options.run_directory.clone().or(made);
    offer.environment = environment.into_variables();
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let mut interrupts = Interrupts::new()
            .map_err(|error| Failure::Broken(format!("cannot heed signals: {error}")))?;
        let stop = CancellationToken::new();
        let serving = offer.serve_stdio(stop.clone());
        tokio::pin!(serving);
        let interrupt = tokio::select! {
            ended = &mut serving => {
                return match ended {
                    Ok(()) => Ok(Status::Good),
                    Err(error) => Err(Failure::Broken(error.to_string())),
                };
            }
            interrupt = interrupts.next() => interrupt,
        };
        stop.cancel();
        tokio::select! {
            _ = serving => {}
            _ = interrupts.next() => {}
        }
        Ok(Status::Interrupted(interrupt.status()))
    });
    // Whoever reads the standard input cannot be called off.
    runtime.shutdown_timeout(LAST_TASKS);
    if let Some(files) = temporary.and_then(|made| RemovedFiles::of(made.path())) {
        remark(&format!("{files}; `--run-directory DIR` keeps it"));
    }
    ended
}

/// The directory in which a file is.
fn folder(file: &Path) -> Result<PathBuf, Failure> {
    let whole = std::path::absolute(file);
    let folder = whole.map(|whole| whole.parent().unwrap_or(&whole).to_owned());
    folder.map_err(|error| {
        Failure::Broken(format!(
            "cannot find the directory of {}: {error}",
            file.display()
        ))
    })
}

/// A directory that goes away with the command.
fn temporary(parent: &Path) -> Result<tempfile::TempDir, Failure> {
    let made = tempfile::Builder::new()
        .prefix("plaincall-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent);
    made.map_err(|error| {
        let parent = parent.display();
        Failure::Broken(format!(
            "cannot make a directory for the tools in {parent}: {error}"
        ))
    })
}

fn list(options: &McpListOptions, output: &mut Output) -> Outcome {
    let environment = Environment::read();
    let config = read(&options.file, &environment)?;
    let mut settings = McpOptions::default();
    settings.connect_timeout = options.timeout.0;
    settings.environment = environment.into_variables();
    let connected = block_on(until_interrupted(async {
        let connected = McpServers::connect(config, settings).await;
        let servers = connected.map_err(|error| Failure::Broken(error.to_string()))?;
        let tools = servers.named_tools_for(&Toolbox::default());
        servers.close().await;
        Ok((servers, tools))
    }))?;
    let (servers, listed) = match connected {
        Ok(listed) => listed,
        Err(interrupt) => return Ok(Status::Interrupted(interrupt.status())),
    };
    end_at_signals();
    for name in servers.names() {
        let tools = listed.iter().filter(|(server, _)| server == name);
        let tools: Vec<&Tool> = tools.map(|(_, tool)| tool).collect();
        if options.json {
            for tool in tools {
                output.json_line(&as_json(name, tool))?;
            }
        } else {
            let count = tools.len();
            let noun = if count == 1 { "tool" } else { "tools" };
            output.text(format_args!("{}: {count} {noun}\n", harmless(name)))?;
            for tool in tools {
                output.text(format_args!("  {}\n", as_line(tool)))?;
            }
        }
    }
    output.flush()?;
    for skipped in servers.skipped() {
        remark(&format!(
            "the tool `{}` of the MCP server `{}` is not taken: {}",
            skipped.tool, skipped.server, skipped.reason
        ));
    }
    let mut status = Status::Good;
    for failure in servers.failures() {
        status = Status::Wrong;
        complain(failure);
    }
    Ok(status)
}

/// Reads a file with MCP servers. Shows its mistakes, each in the line where it stands.
pub(crate) fn read(file: &Path, environment: &Environment) -> Result<McpConfig, Failure> {
    let (name, text) = tools_file::read(file)?;
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let variable = |name: &str| {
        let value = environment.get_set(name)?;
        value.to_str().map(str::to_owned)
    };
    let config = McpConfig::read(&text, whole, variable).map_err(|error| {
        let mistakes = problems::show(&name, &text, &error);
        Failure::Broken(format!(
            "{name} has {mistakes}, so its MCP servers are not known"
        ))
    })?;
    for passed_over in &config.passed_over {
        remark(&format!("{name}, {passed_over}"));
    }
    Ok(config)
}

fn as_line(tool: &Tool) -> String {
    let spec = tool.spec();
    let mut line = format!("{} ({}", tool.name(), effect_word(spec.effect));
    match spec.hinted_effect {
        Some(hint) if hint != spec.effect => {
            let _ = write!(line, "; its server says {}", effect_word(hint));
        }
        _ => {}
    }
    line.push(')');
    let description = spec.description.trim().lines().next().unwrap_or_default();
    if !description.is_empty() {
        let _ = write!(line, ": {description}");
    }
    harmless(&line)
}

fn as_json(server: &str, tool: &Tool) -> serde_json::Value {
    let spec = tool.spec();
    json!({
        "server": server,
        "name": tool.name(),
        "description": spec.description,
        "effect": effect_word(spec.effect),
        "hinted_effect": spec.hinted_effect.map(effect_word),
        "parameters": spec.schema().document(),
    })
}
