//! `plaincall tools call`: call one tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use plaincall::tool::json::parse;
use plaincall::{CallResult, Run, events::SubmittedArguments};
use serde_json::Value;

use crate::commands::tools::SourceOptions;
use crate::environment::Environment;
use crate::history::History;
use crate::options::Color;
use crate::output::Output;
use crate::runtime::block_on;
use crate::settings::{ToolSetup, close_servers};
use crate::status::{Failure, KEEP_FILES, Outcome, Status, print_error, report_removed_files};
use crate::terminal::approval::Approval;
use crate::terminal::interrupts::{Interrupt, Interrupts};
use crate::terminal::prompter::Prompter;

/// Call one tool, as a model would.
///
/// The arguments are `NAME=VALUE`, with values as a model writes them: they are converted to the types of the tool
/// definition, and errors are the ones that a model gets. A name may be a JSON Pointer (`items/0=first`). For values of
/// several lines, use `--json`.
///
/// The call runs as in `plaincall run`: rules apply first; a tool that may change something needs approval on the
/// terminal, and is rejected without one, unless you pass `--yes`. The output of the tool goes to standard output,
/// with a line end behind it; errors go to standard error.
///
/// Exit status: 0 if the call ended with `ok`; 1 otherwise, or if a file cannot be read; 2 for wrong usage or
/// configuration; 130 after Ctrl-C, 143 after SIGTERM.
#[derive(Args, Debug)]
pub(crate) struct CallOptions {
    /// The name of the tool.
    #[arg(value_name = "TOOL")]
    name: String,

    /// The arguments of the call.
    #[arg(value_name = "NAME=VALUE", conflicts_with = "json")]
    arguments: Vec<String>,

    /// The arguments as a JSON object.
    #[arg(long, value_name = "OBJECT")]
    json: Option<String>,

    /// Run the tool without asking for approval, even if it may change something. Calls that a rule denies are still
    /// denied.
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    sources: SourceOptions,
}

pub(super) fn call(options: &CallOptions, color: Color) -> Outcome {
    let (result, interrupt) = block_on(run_call(options, Environment::read()))?;
    let status = match &result {
        Some(result) => print_result(result, color)?,
        None => Status::Failed,
    };
    Ok(interrupt.map_or(status, |interrupt| Status::Interrupted(interrupt.status())))
}

/// Runs the call. Returns its result and the signal that cancelled it; after a second signal there is no result.
async fn run_call(
    options: &CallOptions,
    environment: Environment,
) -> Result<(Option<CallResult>, Option<Interrupt>), Failure> {
    let mut interrupts = Interrupts::new()?;
    let arguments = arguments(options)?;
    let ToolSetup {
        toolbox,
        rules,
        policy,
        servers,
        ..
    } = tokio::select! {
        tool_setup = options.sources.tool_setup(&environment) => tool_setup?,
        interrupt = interrupts.next() => return Ok((None, Some(interrupt))),
    };
    // Only questions are shown.
    let prompter = Arc::new(Prompter::new(None, false));
    prompter.open();
    let gate = Approval::new(
        options.yes,
        rules.clone(),
        toolbox.clone(),
        &History::default(),
        BTreeMap::new(),
        Arc::clone(&prompter),
    );
    let mut run = Run::builder(toolbox)
        .rules(rules)
        .gate(gate.clone())
        .policy(policy)
        .directory_in(environment.temporary_directory())
        .environment(environment.into_variables())
        .build()
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    gate.set_directories(run.directories());
    let canceller = run.canceller();
    let quit = canceller.clone();
    prompter.set_quit(move || quit.cancel());
    let mut turn = run.turn();
    let mut submitted = turn.submit(&options.name, arguments);
    let mut first: Option<Interrupt> = None;
    let result = loop {
        tokio::select! {
            result = &mut submitted => break Some(result),
            interrupt = interrupts.next() => {
                if first.is_some() || interrupt.is_urgent() {
                    first = Some(interrupt);
                    break None;
                }
                first = Some(interrupt);
                canceller.cancel();
            }
        }
    };
    drop(turn);
    prompter.close();
    if result.is_some() {
        report_removed_files(run.close().await, KEEP_FILES);
        close_servers(servers).await;
    }
    Ok((result, first))
}

/// Parses the arguments.
fn arguments(options: &CallOptions) -> Result<SubmittedArguments, Failure> {
    if let Some(json) = &options.json {
        let invalid = |what: &str| Failure::Usage(format!("`--json`: {what}"));
        return match parse(json).map_err(|error| invalid(&error))? {
            Value::Object(object) => Ok(object.into()),
            _ => Err(invalid("expected an object, such as {\"path\": \"a.txt\"}")),
        };
    }
    let pairs = options.arguments.iter().map(|argument| {
        let (name, value) = argument.split_once('=').ok_or_else(|| {
            Failure::Usage(format!(
                "invalid argument `{argument}`: expected NAME=VALUE, such as `path=src/main.rs`"
            ))
        })?;
        Ok((name.to_owned(), value.to_owned()))
    });
    pairs.collect::<Result<Vec<_>, _>>().map(Into::into)
}

fn print_result(result: &CallResult, color: Color) -> Outcome {
    let mut output = Output::new(color);
    if let Some(text) = &result.output {
        output.bytes(text.as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            output.bytes(b"\n")?;
        }
        output.flush()?;
    }
    if let Some(error) = &result.error {
        print_error(&match result.status {
            plaincall::Status::Rejected => format!("the call was rejected: {error}"),
            plaincall::Status::Cancelled => format!("the call was cancelled: {error}"),
            plaincall::Status::Unknown => format!("the outcome of the call is unknown: {error}"),
            _ => error.to_string(),
        });
    }
    Ok(if result.status == plaincall::Status::Ok {
        Status::Success
    } else {
        Status::Failed
    })
}
