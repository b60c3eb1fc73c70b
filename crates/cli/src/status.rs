//! Exit statuses and messages on standard error.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plaincall::{
    command::Directories,
    run::{CloseError, RemovedFiles},
};

pub(crate) use crate::outcome::{Failure, Outcome, Status, cannot_write, not_started, reason};
use crate::output::{is_quiet, write_stderr};
use crate::sanitize::sanitize;
use crate::terminal::human;
use crate::terminal::tty::Size;

/// The exit status after a timeout, as in `timeout`.
const TIMED_OUT: u8 = 124;
/// The exit status for invalid usage.
pub(crate) const WRONG_USAGE: u8 = 2;

/// Returns the exit status of a command and prints its error. Usage errors are returned for the caller to print.
pub(crate) fn exit_status(outcome: Outcome) -> Result<ExitCode, String> {
    Ok(match outcome {
        Ok(Status::Success) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Ok(Status::Failed) => ExitCode::FAILURE,
        Ok(Status::TimedOut) => ExitCode::from(TIMED_OUT),
        Ok(Status::Interrupted(status) | Status::Ended(status)) => ExitCode::from(status),
        Err(Failure::Runtime(message)) => {
            print_error(&message);
            ExitCode::FAILURE
        }
        Err(Failure::Configuration(message)) => {
            print_error(&message);
            ExitCode::from(WRONG_USAGE)
        }
        Err(Failure::Usage(message)) => return Err(message),
    })
}

pub(crate) fn print_error(message: &(impl fmt::Display + ?Sized)) {
    let error = anstyle::AnsiColor::Red.on_default().bold();
    let message = wrapped(&message.to_string());
    write_stderr(format_args!("{error}error:{error:#} {message}\n"));
}

/// Returns the message of an error without invisible characters. On a terminal, it is wrapped between words; source excerpts keep
/// their lines.
pub(crate) fn wrapped(message: &str) -> String {
    let message = sanitize(message);
    match columns() {
        Some(width) if !message.contains('\n') => human::wrap(&message, "error: ".len(), width),
        _ => message,
    }
}

/// Returns the width of the terminal on standard error. The last column stays free, because terminals treat it differently.
pub(crate) fn columns() -> Option<usize> {
    let is_terminal = io::stderr().is_terminal();
    is_terminal.then(|| Size::of_standard_error().columns.saturating_sub(1))
}

/// Reports the files that were removed with the scratch directory. `advice` explains how to keep them.
pub(crate) fn report_removed_files(closed: Result<Option<RemovedFiles>, CloseError>, advice: &str) {
    match closed {
        Ok(None) => {}
        Ok(Some(files)) => print_note(&format!("{files}; {advice}")),
        Err(error) => print_error(&error),
    }
}

/// Notes the working directory of the tools of a resumed run, if it is not the current directory.
pub(crate) fn report_directory(directories: &Directories) {
    let current = &directories.current;
    let is_here = std::env::current_dir().is_ok_and(|here| here == *current);
    if !current.as_os_str().is_empty() && !is_here {
        print_note(&format!(
            "tools run in {}, where the run began",
            current.display()
        ));
    }
}

/// Explains how to keep the files of a conversation.
pub(crate) const KEEP_FILES: &str = "to keep files, set `directory` for the tool in the tools file";

/// Prints a note, unless `--quiet` is set.
pub(crate) fn print_note(message: &(impl fmt::Display + ?Sized)) {
    if is_quiet() {
        return;
    }
    let note = anstyle::AnsiColor::Cyan.on_default().bold();
    let mut message = sanitize(&message.to_string());
    if let Some(width) = columns() {
        message = human::wrap(&message, "note: ".len(), width);
    }
    write_stderr(format_args!("{note}note:{note:#} {message}\n"));
}

/// Makes SIGINT and SIGTERM exit with status 128 plus the signal number.
pub(crate) fn end_at_signals() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM] {
        let always = Arc::new(AtomicBool::new(true));
        // If the handler cannot be registered, the default action of the signal ends the process.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, always);
    }
}
