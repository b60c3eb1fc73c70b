//! `plaincall run`: runs the calls of a reply while it is being read.
//!
//! The reply is read on one thread, the display is written on another, keys are read on a third. What is left (the
//! parser, the run, its timeouts and signals) never blocks and shares the main thread; tools are processes. A runtime with
//! one thread also ends in order: when it is dropped, all tasks are, and with them the process groups of the tools.

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

use crate::commands::run::beginning::{Again, Beginning, new_log};
use crate::commands::run::play::Ended;
use crate::commands::run::reply::Reply;
use crate::environment::Environment;
use crate::history::History;
use crate::options::Color;
use crate::options::DialectOptions;
use crate::options::UnclosedChoice;
use crate::runtime::block_on;
use crate::status::{Failure, Outcome, Status, remark, tell_directory};
use crate::terminal::approval::Approval;
use crate::terminal::interrupts::Interrupts;

/// What the standard input is called instead of a file.
const STANDARD_INPUT: &str = "-";

/// Run the calls of a reply.
///
/// Each call starts as soon as it is complete and what it depends on has ended, while the rest of the reply is still
/// being read. On a terminal the text scrolls, with a line for each call that has ended, and below it stand the calls that
/// have not; in a pipe there is a line for each start and each end. Then come the results in the order of the calls, and a
/// timeline.
///
/// A call that the end of the text closed is run only if the text is known to be whole: a file is, what comes through
/// a pipe is only with `--complete`.
///
/// The rules of the tools file decide first which calls may run. Where they say nothing, tools that may change something
/// (`effect = "write"`, or none given) ask on the terminal itself, never on the standard input. Without a terminal they
/// are rejected, unless `--yes` allows them. A call that also stands in a file named with `--heard` is held for a
/// person in any case.
///
/// With `--log` a run that is cut off, by a crash, a kill or a power cut, can be taken up again by `--resume`. One that
/// was called off and came to its end is over.
///
/// Ctrl-C calls the run off: tools are stopped with all that they have started, and the results are shown. A second
/// Ctrl-C ends them at once. `SIGTERM` and a closed terminal do as Ctrl-C does; under `nohup` a closed terminal does
/// nothing.
///
/// Exit status: 0 if every call ended `ok`, also if there was none; 1 otherwise, or if a file could not be read or the log
/// not be written; 2 for wrong usage; 130 after Ctrl-C, 143 after `SIGTERM`, 129 after a closed terminal.
#[derive(Args, Debug)]
pub(crate) struct RunOptions {
    /// The reply; `-` or none is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The file with the tools (`tools.toml`).
    ///
    /// Only the file that is named here is read; one that lies beside the reply is not. With `--resume` it is the one
    /// that the run began with, which must not have changed, or the one that is named.
    #[arg(long, value_name = "FILE", required_unless_present = "resume")]
    pub(crate) tools: Option<PathBuf>,

    /// Read so many bytes a second, as a model writes them.
    #[arg(long, value_name = "BYTES", value_parser = pace)]
    pub(crate) pace: Option<NonZeroU64>,

    /// Take the text for whole, where it comes from a pipe too.
    #[arg(long)]
    pub(crate) complete: bool,

    /// Let tools run that may change something, and calls about which a rule wants somebody to be asked, without asking.
    ///
    /// A rule that denies a call still does, and a call that stands in a text from outside is still asked about. With `--resume` it holds too if the run began with it.
    #[arg(long)]
    pub(crate) yes: bool,

    /// A file that the model was given, such as a document; may be repeated.
    ///
    /// A call that also stands in it may only have been copied from it, so a person is asked about it, whatever
    /// its tool does and whatever rules and `--yes` say. Without a terminal it is rejected. The log keeps what of the
    /// file could be copied, so that `--resume` need not be told again; there it names further files.
    #[arg(long, value_name = "FILE")]
    pub(crate) heard: Vec<PathBuf>,

    /// Run so many calls at the same time at most; 0 is any number.
    ///
    /// Without it: what the tools file says, or else 32.
    #[arg(long, value_name = "N", value_parser = concurrency)]
    pub(crate) concurrency: Option<u32>,

    /// Print the record, the lines of a log: one JSON object for everything that happens.
    #[arg(long)]
    pub(crate) json: bool,

    /// Write the record into this new file while the run goes on, so that it can be taken up again after a crash.
    ///
    /// What may have changed something is on the disk before anything else is told of it. If the log cannot be written
    /// any more, nothing more is started.
    #[arg(long, value_name = "FILE", help_heading = "Log")]
    pub(crate) log: Option<PathBuf>,

    /// Take up the run of this log, which was cut off: by a crash, a kill, a power cut.
    ///
    /// Calls that have ended are not run again. Those that were cut off are, if their tools only read or can be repeated.
    /// About the others somebody is asked on the terminal, or `--again`, `--done` and `--not-done` say it; without a
    /// word they are left open (`unknown`), and the run can be taken up once more.
    ///
    /// The log says where the reply and the tools file are, and with which options the run began. The reply must begin
    /// with what was read of it. If it came through a pipe, `-` takes its rest from the standard input.
    #[arg(
        long,
        value_name = "LOG",
        help_heading = "Log",
        conflicts_with_all = [
            "log", "concurrency", "unclosed", "stop_on_error", "parallel", "no_reasoning",
            "DialectOptions",
        ],
    )]
    pub(crate) resume: Option<PathBuf>,

    /// Start this call, which was cut off, once more.
    #[arg(long, value_name = "ID", help_heading = "Log", requires = "resume")]
    pub(crate) again: Vec<String>,

    /// Take this call, which was cut off, for done.
    #[arg(long, value_name = "ID", help_heading = "Log", requires = "resume")]
    pub(crate) done: Vec<String>,

    /// Take this call, which was cut off, for not done; it is not started again.
    #[arg(long, value_name = "ID", help_heading = "Log", requires = "resume")]
    pub(crate) not_done: Vec<String>,

    /// Show outputs whole; otherwise long ones are cut.
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,

    /// Use this directory as the run's scratch directory (`{directory:run}`), and keep it.
    ///
    /// It is made if it does not exist. Default: a temporary one, which is removed at the end. With `--resume` it takes the
    /// place of the one that the run had.
    #[arg(long, value_name = "DIR")]
    pub(crate) run_directory: Option<PathBuf>,

    /// What to do with calls without an end marker.
    ///
    /// `reject` is the default: such a call runs only if its tool has the effect `read`, or, in the block syntax, if
    /// `--complete` says that the text is complete. `run` is for models that forget end markers: the next call, the end
    /// of a file, or the end of a text that is complete then ends a call of any tool.
    #[arg(long, value_name = "CHOICE")]
    pub(crate) unclosed: Option<UnclosedChoice>,

    /// Start no emoji call written behind one that did not end `ok`.
    #[arg(long, help_heading = "Emoji")]
    pub(crate) stop_on_error: bool,

    /// Run emoji calls side by side, not in the order in which they are written.
    #[arg(long, help_heading = "Emoji", conflicts_with = "stop_on_error")]
    pub(crate) parallel: bool,

    /// Read `<think>` as text.
    ///
    /// Without this option it begins reasoning where it is the first non-blank text of the reply.
    #[arg(long, conflicts_with_all = ["reasoning", "in_reasoning"])]
    pub(crate) no_reasoning: bool,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

fn concurrency(text: &str) -> Result<u32, &'static str> {
    text.parse()
        .map_err(|_| "write a whole number; 0 is any number")
}

fn pace(text: &str) -> Result<NonZeroU64, &'static str> {
    text.parse().map_err(|_| "write a whole number from 1 on")
}

/// Runs the command.
pub(crate) fn run(options: &RunOptions, color: Color) -> Outcome {
    let beginning = match (&options.resume, &options.tools) {
        (Some(log), _) => match Beginning::again(options, log)? {
            Again::On(beginning) => *beginning,
            Again::Over(history) => return over(options, color, history),
        },
        (None, Some(tools)) => Beginning::anew(options, tools)?,
        (None, None) => {
            return Err(Failure::Usage(
                "name the tools with `--tools FILE`".to_owned(),
            ));
        }
    };
    let environment = Environment::read();
    let ended = block_on(begin(options, color, beginning, environment))?;
    Ok(match ended {
        Ended::Settled(status) => status,
        Ended::AtOnce(status, displays) => {
            displays.leave();
            if let Some(log) = options.log.as_ref().or(options.resume.as_ref()) {
                remark(&format!(
                    "the run was ended at once; `plaincall run --resume {}` brings it to its end",
                    log.display()
                ));
            }
            status
        }
    })
}

/// Opens the reply and the log, and plays the run.
async fn begin(
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
        // A file holds all of the reply, a pipe only the rest.
        let read = beginning.history.text();
        if reply.is_file {
            reply.pass_over(&read, &path).await?;
        } else {
            reply.refuse_repetition(&read).await?;
        }
        Ok(reply)
    };
    // A named pipe may be waited for until somebody opens its other end.
    let reply: Reply = tokio::select! {
        reply = opened => reply?,
        interrupt = interrupts.next() => return Ok(Ended::Settled(Status::Interrupted(interrupt.status()))),
    };
    let log = match (&options.log, beginning.log.take()) {
        (_, Some(log)) => Some(log),
        (Some(path), None) => {
            let path = path.clone();
            let made = tokio::task::spawn_blocking(move || new_log(&path)).await;
            Some(made.map_err(|_| Failure::Broken("the log could not be made".to_owned()))??)
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
            let is_gone = matches!(&error, RunError::Directory { error, .. } if error.kind() == ErrorKind::NotFound);
            if options.resume.is_some() && is_gone {
                return Failure::Broken(format!(
                    "{error}, and what the calls have left in it is lost; `--run-directory DIR` names another"
                ));
            }
            Failure::Broken(error.to_string())
        })?;
    if options.resume.is_some() {
        tell_directory(&run.directories());
    }
    gate.set_directories(run.directories());
    drop(gate);
    play::play(displays, run, reply, options, beginning, &mut interrupts).await
}

/// A run that could not begin leaves no log behind that would stand in the way of the next.
fn remove_empty(log: Option<&Path>) {
    if let Some(log) = log
        && log.metadata().is_ok_and(|about| about.len() == 0)
    {
        let _ = std::fs::remove_file(log);
    }
}

/// Shows what came of a run that was over.
fn over(options: &RunOptions, color: Color, history: History) -> Outcome {
    let environment = Environment::read();
    remark("the run of this log was over, so nothing was run; these are its results");
    block_on(play::show(options, color, &environment, history))
}
