//! `plaincall run`: run the calls of a reply while it arrives.
//!
//! Separate threads read the reply, write the display and read keys. Everything else (parser, run, timeouts, signals)
//! never blocks and shares the main thread; tools are processes. Dropping the single-threaded runtime drops all tasks,
//! which kills the process groups of the tools.

mod beginning;
pub(crate) mod note;
mod play;
mod recovery;
mod reply;

use std::io::{ErrorKind, IsTerminal as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use plaincall::{Run, RunError};

use crate::commands::run::beginning::{Beginning, ResumedLog, new_log};
use crate::commands::run::play::Ended;
use crate::commands::run::reply::Reply;
use crate::environment::Environment;
use crate::history::History;
use crate::options::Color;
use crate::options::ReplyDialectOption;
use crate::options::UnclosedChoice;
use crate::runtime::block_on;
use crate::status::{Failure, Outcome, Status, print_note, report_directory};
use crate::terminal::approval::Approval;
use crate::terminal::interrupts::Interrupts;

/// The file name of standard input.
const STANDARD_INPUT: &str = "-";

/// Run the calls of a reply.
///
/// Each call starts as soon as it is complete and its dependencies have ended, while the rest of the reply is still
/// being read. A terminal shows the text, a line for each call that has ended, and a live list of the calls that have
/// not. The results follow in the order of the calls, and then a timeline. If standard output is not a terminal, it has
/// only these, and standard error has one line for each start and each end.
///
/// A block call that ends at the end of the input, without an end marker, may be truncated. With `--complete` it
/// runs if its tool only reads or its last value has one line; without this option, it runs only if the input is a file
/// and its tool only reads.
///
/// The rules of the tools file apply first. If no rule matches, calls of tools that may change something (`effect =
/// "write"`, the default) need approval on the terminal; standard input is not used for this. Without a terminal they
/// are rejected unless you pass `--yes`. A call that also appears in a file named with `--untrusted` always needs
/// approval.
///
/// After a crash or a power failure, `--resume` continues a run that has a log (`--log`). A cancelled run cannot be
/// resumed.
///
/// Ctrl-C cancels the run: the tools and all processes that they have started are stopped, and the results are shown. A
/// second Ctrl-C exits immediately. SIGTERM and closing the terminal also cancel; under `nohup`, closing the terminal
/// has no effect.
///
/// Exit status: 0 if every call ended with `ok`, or if there were none; 1 otherwise, or if a file could not be read or
/// the log could not be written; 2 for wrong usage; 130 after Ctrl-C, 143 after SIGTERM, 129 after the terminal was
/// closed.
#[derive(Args, Debug)]
pub(crate) struct RunOptions {
    /// The reply. Default: standard input (`-`).
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The tools file (`tools.toml`).
    ///
    /// Only this file is read; a file next to the reply is not. With `--resume`, the default is the file that the run
    /// began with, which must not have changed.
    #[arg(long, short, value_name = "FILE", required_unless_present = "resume")]
    pub(crate) tools: Option<PathBuf>,

    /// Read this many bytes per second, to simulate a model.
    #[arg(long, value_name = "BYTES", value_parser = pace)]
    pub(crate) pace: Option<NonZeroU64>,

    /// Treat the input as complete: a block call at its end runs without an end marker.
    #[arg(long)]
    pub(crate) complete: bool,

    /// Approve all calls that need approval.
    ///
    /// Calls that a rule denies are still denied, and calls that also appear in untrusted text still need approval.
    /// With `--resume`, also applies if the run began with it.
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// A file that the model has read, such as a document. May be repeated.
    ///
    /// The model may have copied a call from it instead of writing the call itself. Such a call needs approval, even if
    /// its tool only reads, a rule allows it, or you pass `--yes`. Without a terminal it is rejected. The log keeps the
    /// part of the file that can be copied, so `--resume` does not need the option again; with it you can name further
    /// files.
    #[arg(long, value_name = "FILE")]
    pub(crate) untrusted: Vec<PathBuf>,

    /// Run at most this many calls at the same time. 0 means no limit. Default: the value in the tools file, else 32.
    #[arg(long, value_name = "N", value_parser = concurrency)]
    pub(crate) concurrency: Option<u32>,

    /// Print the events of the run as JSON, one object per line, in the format of a log.
    #[arg(long, short)]
    pub(crate) json: bool,

    /// Write a log of the run to this new file, so that the run can be resumed after a crash.
    ///
    /// For calls of tools that may change something, the start is flushed to disk before the tool runs, and the result
    /// before it is used. If the log cannot be written, no further calls start.
    #[arg(long, value_name = "FILE", help_heading = "Log")]
    pub(crate) log: Option<PathBuf>,

    /// Resume the run of this log after a crash or a power failure.
    ///
    /// Calls that have ended do not run again. Interrupted calls run again if their tools only read or are idempotent.
    /// For other interrupted calls, Plaincall asks on the terminal, or use `--again`, `--done` and `--not-done`.
    /// Without an answer they stay `unknown`, and the run can be resumed again.
    ///
    /// The log names the reply, the tools file and the options of the run. The reply must begin with the part that was
    /// already read. If it came from a pipe, pass `-` and give the rest on standard input.
    #[arg(
        long,
        value_name = "LOG",
        help_heading = "Log",
        conflicts_with_all = [
            "log", "concurrency", "unclosed", "stop_on_error", "parallel", "dialect",
        ],
    )]
    pub(crate) resume: Option<PathBuf>,

    /// Run this interrupted call again. May be repeated.
    #[arg(long, value_name = "ID", help_heading = "Log", requires = "resume")]
    pub(crate) again: Vec<String>,

    /// Treat this interrupted call as completed. May be repeated.
    #[arg(long, value_name = "ID", help_heading = "Log", requires = "resume")]
    pub(crate) done: Vec<String>,

    /// Treat this interrupted call as not run, and do not run it again. May be repeated.
    #[arg(long, value_name = "ID", help_heading = "Log", requires = "resume")]
    pub(crate) not_done: Vec<String>,

    /// Show outputs in full. Default: long outputs are truncated.
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,

    /// Use this directory as the scratch directory of the run (`{directory:run}`), and keep it.
    ///
    /// It is created if it does not exist. Default: a temporary directory, removed at the end. With `--resume`,
    /// replaces the directory of the run.
    #[arg(long, value_name = "DIR")]
    pub(crate) run_directory: Option<PathBuf>,

    /// Whether calls without an end marker run. Default: `reject`.
    ///
    /// With `reject`, a call that ends where the next call begins runs only if its tool has the effect `read`. A block
    /// call that ends with the input runs only with `--complete` or, if the input is a file, if its tool has the effect
    /// `read`. `run` is for models that forget end markers: it also accepts a call of any tool that ends at the next
    /// call, at the end of a file, or at the end of complete input.
    #[arg(long, value_name = "CHOICE")]
    pub(crate) unclosed: Option<UnclosedChoice>,

    /// Do not start emoji calls written after a call that failed.
    #[arg(long, help_heading = "Emoji")]
    pub(crate) stop_on_error: bool,

    /// Run emoji calls in parallel instead of in the order of the text.
    #[arg(long, help_heading = "Emoji", conflicts_with = "stop_on_error")]
    pub(crate) parallel: bool,

    #[command(flatten)]
    pub(crate) dialect: ReplyDialectOption,
}

fn concurrency(text: &str) -> Result<u32, &'static str> {
    text.parse()
        .map_err(|_| "expected an integer; 0 means no limit")
}

fn pace(text: &str) -> Result<NonZeroU64, &'static str> {
    text.parse()
        .map_err(|_| "expected an integer of at least 1")
}

pub(crate) fn run(options: &RunOptions, color: Color) -> Outcome {
    let beginning = match (&options.resume, &options.tools) {
        (Some(log), _) => match Beginning::resume(options, log)? {
            ResumedLog::Unfinished(beginning) => *beginning,
            ResumedLog::Ended(history) => return show_ended(options, color, history),
        },
        (None, Some(tools)) => Beginning::new(options, tools)?,
        (None, None) => {
            return Err(Failure::Usage("missing `--tools FILE`".to_owned()));
        }
    };
    let environment = Environment::read();
    let ended = block_on(start(options, color, beginning, environment))?;
    Ok(match ended {
        Ended::Finished(status) => status,
        Ended::Aborted(status, displays) => {
            displays.close_now();
            if let Some(log) = options.log.as_ref().or(options.resume.as_ref()) {
                print_note(&format!(
                    "the run was aborted; resume it with `plaincall run --resume {}`",
                    log.display()
                ));
            }
            status
        }
    })
}

/// Opens the reply and the log, and runs the calls.
async fn start(
    options: &RunOptions,
    color: Color,
    mut beginning: Beginning,
    environment: Environment,
) -> Result<Ended, Failure> {
    let mut interrupts = Interrupts::new()?;
    let opened = async {
        let Some(path) = beginning.reply.clone() else {
            return Ok(Reply::none());
        };
        let mut reply = Reply::open(path.clone(), &beginning.dialect, options.pace).await?;
        // A file has the complete reply, a pipe only the rest.
        let read = beginning.history.text();
        if reply.is_file {
            reply.skip(&read, &path).await?;
        } else {
            reply.check_not_repeated(&read).await?;
        }
        Ok::<_, Failure>(reply)
    };
    // Opening a named pipe blocks until its other end is open.
    let reply: Reply = tokio::select! {
        reply = opened => reply?,
        interrupt = interrupts.next() => return Ok(Ended::Finished(Status::Interrupted(interrupt.status()))),
    };
    let log = match (&options.log, beginning.log.take()) {
        (_, Some(log)) => Some(log),
        (Some(path), None) => {
            let path = path.clone();
            let log = tokio::task::spawn_blocking(move || new_log(&path)).await;
            Some(log.map_err(|_| Failure::Runtime("the log could not be created".to_owned()))??)
        }
        (None, None) => None,
    };
    let note = beginning.note(options, reply.is_file);
    let toolbox = beginning.tools.toolbox_for_running();
    let is_typed = beginning.reads_standard_input() && std::io::stdin().is_terminal();
    let displays = play::displays(options, color, &environment, &beginning.history, is_typed)?;
    let gate = Approval::new(
        beginning.yes,
        beginning.tools.rules.clone(),
        toolbox.clone(),
        &beginning.history,
        beginning.answers.clone(),
        Arc::clone(&displays.prompter),
    );
    let builder = Run::builder(toolbox)
        .dialect(beginning.dialect.clone())
        .rules(beginning.tools.rules.clone())
        .gate(gate.clone())
        .policy(beginning.policy)
        .note(note.to_json());
    let builder = match log {
        Some(log) => builder.log(log),
        None => builder,
    };
    let builder = match &options.run_directory {
        Some(directory) => builder.directory(directory),
        None => builder.directory_in(environment.temporary_directory()),
    };
    let run = builder
        .environment(environment.into_variables())
        .build()
        .map_err(|error| {
            remove_empty(options.log.as_deref());
            let is_missing = matches!(&error, RunError::Directory { error, .. } if error.kind() == ErrorKind::NotFound);
            if options.resume.is_some() && is_missing {
                return Failure::Runtime(format!(
                    "{error}; the files in it are lost. Name another directory with `--run-directory DIR`"
                ));
            }
            Failure::Runtime(error.to_string())
        })?;
    if options.resume.is_some() {
        report_directory(&run.directories());
    }
    gate.set_directories(run.directories());
    drop(gate);
    Box::pin(play::play(
        displays,
        run,
        reply,
        options,
        beginning,
        &mut interrupts,
    ))
    .await
}

/// Removes the empty log of a run that could not start, so that the next run can create it.
fn remove_empty(log: Option<&Path>) {
    if let Some(log) = log
        && log.metadata().is_ok_and(|metadata| metadata.len() == 0)
    {
        let _ = std::fs::remove_file(log);
    }
}

/// Shows the results of a run that has ended.
fn show_ended(options: &RunOptions, color: Color, history: History) -> Outcome {
    let environment = Environment::read();
    print_note("the run of this log has ended, so no calls were run; these are its results");
    block_on(play::show(options, color, &environment, history))
}
