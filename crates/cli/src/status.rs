//! The exit status of a command, and what is said about how it ended.

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plaincall::{
    command::Directories,
    run::{CloseError, RemovedFiles},
};

pub(crate) use crate::outcome::{Failure, Outcome, Status};
use crate::output::say;
use crate::visible::harmless;

/// The exit status when the time is over, as `timeout` has it.
const TIMED_OUT: u8 = 124;
/// The exit status of wrong usage.
pub(crate) const WRONG_USAGE: u8 = 2;

/// The exit status of a command that ended so; says what is to be said. Wrong usage is left to who knows the usage.
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
            "tools run in {}, where the run began",
            current.display()
        ));
    }
}

/// How to keep the files of a conversation.
pub(crate) const KEEP_FILES: &str = "to keep files, set `directory` for the tool in the tools file";

/// Says on standard error what is worth knowing.
pub(crate) fn remark(message: &(impl fmt::Display + ?Sized)) {
    let note = anstyle::AnsiColor::Cyan.on_default().bold();
    let message = harmless(&message.to_string());
    say(format_args!("{note}note:{note:#} {message}\n"));
}

/// Makes signals end the process, with 128 and their number as its status.
pub(crate) fn end_at_signals() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM] {
        let always = Arc::new(AtomicBool::new(true));
        // Without the handler the signal itself ends the process, or the command ends when its output is written.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, always);
    }
}
