//! How a command ends: its exit status and what is said about it.

use std::fmt;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plaincall::{CloseError, Directories, RemovedFiles};

use crate::output::say;
use crate::visible::harmless;

/// The exit status of a command that was interrupted: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;
/// The exit status when the time is over, as `timeout` has it.
const TIMED_OUT: u8 = 124;
/// The exit status of wrong usage.
pub(crate) const WRONG_USAGE: u8 = 2;

/// How a command that did its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// All is well: exit status 0.
    Good,
    /// Something is wrong, and it has been named: exit status 1.
    Wrong,
    /// The time was over: exit status 124.
    TimedOut,
    /// A signal called it off; this is the exit status that says so.
    Interrupted(u8),
}

impl Status {
    /// Wrong if this or `other` is.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Good { other } else { self }
    }
}

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something that does not go together: exit status 2.
    Usage(String),
    /// The configuration asks for something that cannot be: exit status 2.
    Configuration(String),
    /// Something outside did not work, in one sentence: exit status 1.
    Broken(String),
    /// Whoever read the output has stopped reading; that is no failure of ours.
    ClosedPipe,
}

impl Failure {
    /// What is to be said about it, where a command goes on.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Usage(message) | Self::Configuration(message) | Self::Broken(message) => message,
            Self::ClosedPipe => "nobody reads the output any more",
        }
    }

    /// Standard output could not be written to.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Broken(format!("cannot write the output: {error}"))
        }
    }
}

/// What a command comes to.
pub(crate) type Outcome = Result<Status, Failure>;

/// The exit status of a command that ended so; says what is to be said. Wrong usage is left to who knows the usage.
///
/// # Errors
/// What is wrong with the usage.
pub(crate) fn exit_status(outcome: Outcome) -> Result<ExitCode, String> {
    Ok(match outcome {
        Ok(Status::Good) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(Status::Wrong) => ExitCode::FAILURE,
        Ok(Status::TimedOut) => ExitCode::from(TIMED_OUT),
        Ok(Status::Interrupted(status)) => ExitCode::from(status),
        Err(Failure::Broken(message)) => {
            complain(&message);
            ExitCode::FAILURE
        }
        Err(Failure::Configuration(message)) => {
            complain(&message);
            ExitCode::from(WRONG_USAGE)
        }
        Err(Failure::Usage(message)) => return Err(message),
    })
}

/// Says on standard error what is wrong.
pub(crate) fn complain(message: &(impl fmt::Display + ?Sized)) {
    let error = anstyle::AnsiColor::Red.on_default().bold();
    let message = harmless(&message.to_string());
    say(format_args!("{error}error:{error:#} {message}\n"));
}

/// Says which files were removed with the scratch directory of a run that was closed; `advice` says how to keep them.
pub(crate) fn tell_removed(closed: Result<Option<RemovedFiles>, CloseError>, advice: &str) {
    match closed {
        Ok(None) => {}
        Ok(Some(files)) => remark(&format!("{files}; {advice}")),
        Err(error) => complain(&error),
    }
}

/// Says where the tools of a resumed run work, if that is not where the command was started.
pub(crate) fn tell_directory(directories: &Directories) {
    let current = &directories.current;
    let is_here = std::env::current_dir().is_ok_and(|here| here == *current);
    if !current.as_os_str().is_empty() && !is_here {
        remark(&format!(
            "the tools work in {}, where the run began",
            current.display()
        ));
    }
}

/// How to keep the files of a conversation.
pub(crate) const KEEP_FILES: &str =
    "to keep files, let the tool write to another directory (`directory` in the tools file)";

/// Says on standard error what is worth knowing.
pub(crate) fn remark(message: &(impl fmt::Display + ?Sized)) {
    let note = anstyle::AnsiColor::Cyan.on_default().bold();
    let message = harmless(&message.to_string());
    say(format_args!("{note}note:{note:#} {message}\n"));
}

/// Makes signals end the process where they were heeded before and nothing has to be ended any more.
pub(crate) fn end_at_signals() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM] {
        let always = Arc::new(AtomicBool::new(true));
        // Where it cannot be, the command ends when its output is written.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, always);
    }
}

/// Makes Ctrl-C end the process with status 130.
pub(crate) fn end_when_interrupted() {
    let always = Arc::new(AtomicBool::new(true));
    // Without the handler the signal itself ends the process, which shells report as the same status.
    let _ = signal_hook::flag::register_conditional_shutdown(
        signal_hook::consts::SIGINT,
        INTERRUPTED,
        always,
    );
}
