//! The exit status of a command, and its messages.

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

/// Returns the exit status of a command and prints its error. Wrong usage is returned, for the caller to print.
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

pub(crate) fn complain(message: &(impl fmt::Display + ?Sized)) {
    let error = anstyle::AnsiColor::Red.on_default().bold();
    let message = harmless(&message.to_string());
    say(format_args!("{error}error:{error:#} {message}\n"));
}

/// Lists the files that were removed with the scratch directory; `advice` explains how to keep them.
pub(crate) fn report_removed_files(closed: Result<Option<RemovedFiles>, CloseError>, advice: &str) {
    match closed {
        Ok(None) => {}
        Ok(Some(files)) => remark(&format!("{files}; {advice}")),
        Err(error) => complain(&error),
    }
}

/// Notes where the tools of a resumed run work, if that is not the current directory.
pub(crate) fn report_directory(directories: &Directories) {
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
