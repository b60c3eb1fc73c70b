//! `plaincall mcp`: serve tools to MCP clients.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::Args;
use plaincall::{private, rules::Rule, run::RemovedFiles};
use plaincall_agent::mcp::McpToolServer;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use crate::environment::Environment;
use crate::runtime::SHUTDOWN_TIMEOUT;
use crate::status::{Failure, Outcome, Status, print_note};
use crate::terminal::interrupts::Interrupts;
use crate::tools_file;

/// Serve the tools of a file to an MCP client, over standard input and output.
///
/// The MCP client starts this command; only protocol messages are written to standard output. The tools, their limits
/// and their rules come from the file. The effect of a tool is sent to the client as an annotation.
///
/// No approval is possible here. Tools with the effect `read` or `idempotent` run; tools that may change something run
/// only if a rule of the file or `--allow` permits it. Other calls are rejected with a reason.
///
/// Tools run in the directory of the tools file, unless they name another. All calls share one scratch directory
/// (`{directory:run}`), which they can use to exchange files.
///
/// Exit status: 0 when the client disconnects; 1 if the tools cannot be read or the client uses another protocol; 130
/// or 143 after a signal. All processes that were started are stopped.
#[derive(Args, Debug)]
pub(crate) struct McpOptions {
    /// The tools file (`tools.toml`).
    #[arg(long, short, value_name = "FILE")]
    tools: PathBuf,

    /// Allow calls of this tool even if it may change something. `*` matches any characters. May be repeated.
    ///
    /// The rules of the file take precedence, so calls that they deny are still denied.
    #[arg(long, value_name = "NAME")]
    allow: Vec<String>,

    /// Allow all calls that would need approval.
    ///
    /// Calls that a rule denies are still denied.
    #[arg(long, short)]
    yes: bool,

    /// Use this directory as the scratch directory (`{directory:run}`), and keep it.
    ///
    /// It is created if it does not exist. Default: a temporary directory, removed at the end.
    #[arg(long, value_name = "DIR")]
    run_directory: Option<PathBuf>,
}

pub(crate) fn mcp(options: &McpOptions) -> Outcome {
    let environment = Environment::read();
    let tools = tools_file::load(&options.tools)?;
    if io::stdin().is_terminal() {
        print_note("an MCP client starts this command; on a terminal, press Ctrl-C to exit");
    }
    let temporary = match options.run_directory {
        Some(_) => None,
        None => Some(temporary(&environment.temporary_directory())?),
    };
    let mut server = McpToolServer::new(tools.toolbox().clone());
    server.rules = tools.rules;
    if !options.allow.is_empty() {
        server
            .rules
            .push(Rule::allow(options.allow.iter().map(String::as_str)));
    }
    server.allow_all = options.yes;
    server.policy = tools.policy;
    let directory = temporary
        .as_ref()
        .map(|directory| directory.path().to_owned());
    server.current_directory = Some(parent_directory(&options.tools)?);
    server.directory = options.run_directory.clone().or(directory);
    server.environment = environment.into_variables();
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Runtime(format!("cannot start: {error}")))?;
    let result = runtime.block_on(async {
        let mut interrupts = Interrupts::new()?;
        let stop = CancellationToken::new();
        let serving = server.serve_stdio(stop.clone());
        tokio::pin!(serving);
        let interrupt = tokio::select! {
            result = &mut serving => {
                return match result {
                    Ok(()) => Ok(Status::Success),
                    Err(error) => Err(Failure::Runtime(error.to_string())),
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
    // A blocking read of standard input cannot be cancelled.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    if let Some(files) = temporary.and_then(|directory| RemovedFiles::of(directory.path())) {
        print_note(&format!(
            "{files}; to keep files, use `--run-directory DIR`"
        ));
    }
    result
}

fn parent_directory(file: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(file);
    let parent_directory =
        absolute.map(|absolute| absolute.parent().unwrap_or(&absolute).to_owned());
    parent_directory.map_err(|error| {
        Failure::Runtime(format!(
            "cannot find the directory of {}: {error}",
            file.display()
        ))
    })
}

/// Creates a temporary directory, which is removed when the value is dropped.
fn temporary(parent: &Path) -> Result<tempfile::TempDir, Failure> {
    let directory = private::temporary_directory("plaincall-", parent);
    directory.map_err(|error| {
        let parent = parent.display();
        Failure::Runtime(format!(
            "cannot create a scratch directory in {parent}: {error}"
        ))
    })
}
