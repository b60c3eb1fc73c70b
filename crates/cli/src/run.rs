//! `plaincall run`: runs the calls of a reply while it is being read.
//!
//! All that waits has a place of its own, so that nothing waits for anything else: the reply is read on one thread,
//! the display is written on another, keys are read on a third. What is left (the parser, the run, its timeouts and
//! signals) never blocks and shares the main thread; tools are processes and need no threads of ours. A runtime with
//! one thread also ends in order: when it is dropped, all tasks are, and with them the process groups of the tools.

mod approval;
mod board;
mod call_line;
mod critical;
mod fragments;
mod glyphs;
mod interrupts;
mod line;
mod live;
mod news;
mod palette;
mod plain;
mod printer;
mod prose;
mod question;
mod record;
mod reply;
mod stage;
mod summary;
mod terminal;
mod timeline;
mod words;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use clap::Args;
use plaincall::{DEFAULT_CONCURRENT, Order, Run, Unclosed};

use crate::arguments::{Color, DialectOptions};
use crate::environment::Environment;
use crate::run::interrupts::Interrupts;
use crate::run::reply::Reply;
use crate::run::stage::{Ended, Stage};
use crate::status::{Failure, Outcome, Status};
use crate::tools;

/// What the standard input is called instead of a file.
const STANDARD_INPUT: &str = "-";

/// Run the calls of a reply.
///
/// Each call starts as soon as it is complete and what it depends on has ended, while the rest of the reply is still
/// being read. On a terminal the text scrolls and below it stands one line a call; in a pipe there is one line for
/// everything that happens to a call. Then come the results in the order of the calls, and a timeline.
///
/// A call that the end of the text closed is run only if the text is known to be whole: a file is, what comes through
/// a pipe is only with `--complete`.
///
/// Tools that may change something (`effect = "write"`, or none given) ask on the terminal itself, never on the
/// standard input. Without a terminal they are rejected, unless `--yes` allows them.
///
/// Ctrl-C calls the run off: tools are stopped with all that they have started, and the results are shown. A second
/// Ctrl-C ends them at once. `SIGTERM` and a closed terminal do as Ctrl-C does; under `nohup` a closed terminal does
/// nothing.
///
/// Exit status: 0 if every call ended `ok`, also if there was none; 1 otherwise, or if a file could not be read; 2 for
/// wrong usage; 130 after Ctrl-C, 143 after `SIGTERM`, 129 after a closed terminal.
#[derive(Args, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct RunOptions {
    /// The reply; `-` or none is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The file with the tools (`tools.toml`).
    ///
    /// Only the file that is named here is read; one that lies beside the reply is not.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: PathBuf,

    /// Read so many bytes a second, as a model writes them.
    #[arg(long, value_name = "BYTES", value_parser = pace)]
    pub(crate) pace: Option<NonZeroU64>,

    /// Take the text for whole, where it comes from a pipe too.
    #[arg(long)]
    pub(crate) complete: bool,

    /// Let tools run that may change something, without asking.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Run so many calls at the same time at most; 0 is any number.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CONCURRENT)]
    pub(crate) concurrency: u32,

    /// Print the record: one JSON object a line for everything that happens.
    #[arg(long)]
    pub(crate) json: bool,

    /// Show outputs whole; otherwise long ones are cut.
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,

    /// Let the tools work in this directory, and keep it.
    ///
    /// It is made if it is not there. Without it they work in a temporary one, which is removed.
    #[arg(long, value_name = "DIR")]
    pub(crate) run_directory: Option<PathBuf>,

    /// Run emoji calls whose end marker is missing, if the text is whole.
    #[arg(long, help_heading = "Emoji")]
    pub(crate) run_unclosed: bool,

    /// Start no emoji call written behind one that did not end `ok`.
    #[arg(long, help_heading = "Emoji")]
    pub(crate) stop_on_error: bool,

    /// Run emoji calls side by side, not in the order in which they are written.
    #[arg(long, help_heading = "Emoji", conflicts_with = "stop_on_error")]
    pub(crate) parallel: bool,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

fn pace(text: &str) -> Result<NonZeroU64, &'static str> {
    text.parse().map_err(|_| "write a whole number from 1 on")
}

impl RunOptions {
    fn is_from_standard_input(&self) -> bool {
        self.file
            .as_deref()
            .is_none_or(|file| file == Path::new(STANDARD_INPUT))
    }
}

/// Runs the command.
///
/// # Errors
/// What keeps it from running, or from telling what came of it.
pub(crate) fn run(options: &RunOptions, color: Color) -> Outcome {
    let dialect = options.dialect.dialect()?;
    if options.is_from_standard_input() && options.tools == Path::new(STANDARD_INPUT) {
        let message = "the reply and the tools cannot both come from the standard input; name a file for one of them";
        return Err(Failure::Usage(message.to_owned()));
    }
    let toolbox = tools::load(&options.tools)?.into_toolbox();
    if let Some(directory) = options
        .run_directory
        .as_deref()
        .filter(|path| path.is_file())
    {
        return Err(Failure::Broken(format!(
            "the tools cannot work in {}: it is a file; name a directory",
            directory.display()
        )));
    }
    let environment = Environment::read();
    let cannot =
        |what: &str, error: std::io::Error| Failure::Broken(format!("cannot {what}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| cannot("start", error))?;
    let ended = runtime.block_on(async {
        let mut interrupts = Interrupts::new().map_err(|error| cannot("listen for signals", error))?;
        let file = options.file.clone();
        let file = file.unwrap_or_else(|| PathBuf::from(STANDARD_INPUT));
        // A named pipe may be waited for until somebody opens its other end.
        let reply = tokio::select! {
            reply = Reply::open(file) => reply?,
            interrupt = interrupts.next() => return Ok(Ended::Settled(Status::Interrupted(interrupt.status()))),
        };
        let stage = Stage::new(options, color, &environment, toolbox.clone())?;
        let builder = Run::builder(toolbox)
            .dialect(dialect)
            .gate(stage.gate.clone())
            .concurrent(options.concurrency)
            .unclosed(if options.run_unclosed { Unclosed::Run } else { Unclosed::Reject })
            .emoji_order(if options.parallel {
                Order::Graph
            } else {
                Order::Sequential {
                    stop_on_error: options.stop_on_error,
                }
            });
        let builder = match &options.run_directory {
            Some(directory) => builder.directory(directory),
            None => builder.directory_in(environment.temporary_directory()),
        };
        let run = builder
            .environment(environment.into_variables())
            .build()
            .map_err(|error| Failure::Broken(error.to_string()))?;
        stage.play(run, reply, options, &mut interrupts).await
    })?;
    // With the runtime all that still runs is dropped, and what it has started is killed.
    drop(runtime);
    Ok(match ended {
        Ended::Settled(status) => status,
        Ended::AtOnce(leftover) => leftover.clear(),
    })
}
