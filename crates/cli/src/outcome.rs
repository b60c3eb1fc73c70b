//! The outcome of a command.

use std::io;
use std::path::Path;

use plaincall_syntax::DialectError;

/// The outcome of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Success: exit status 0.
    Success,
    /// A problem was found and reported: exit status 1.
    Failed,
    /// The time limit was reached: exit status 124.
    TimedOut,
    /// A signal cancelled the command. The value is the exit status.
    Interrupted(u8),
    /// A command that this one ran has ended. The value is its exit status.
    Ended(u8),
}

impl Status {
    /// Combines two outcomes: the first that is not a success.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Success { other } else { self }
    }
}

/// An error that stops a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Invalid usage: exit status 2.
    Usage(String),
    /// Invalid configuration: exit status 2.
    Configuration(String),
    /// Any other error, such as failed I/O: exit status 1.
    Runtime(String),
    /// The reader closed standard output. Not an error.
    ClosedPipe,
}

impl Failure {
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Usage(message) | Self::Configuration(message) | Self::Runtime(message) => message,
            Self::ClosedPipe => "the output was closed",
        }
    }

    /// Returns the failure for a write error of standard output.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Runtime(format!(
                "cannot write to standard output: {}",
                reason(error)
            ))
        }
    }
}

impl From<DialectError> for Failure {
    fn from(error: DialectError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// Returns the reason of a failed operation as a phrase, without the number that the system has for it and the path that may
/// follow.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error ").next().unwrap_or_default();
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => text,
    }
}

/// The failure of a file that cannot be written.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let reason = reason(error);
    Failure::Runtime(format!("cannot write {}: {reason}", path.display()))
}

/// Returns the reason that a program did not start, as a phrase.
pub(crate) fn not_started(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such program".to_owned(),
        _ => reason(error),
    }
}

/// The result of a command.
pub(crate) type Outcome = Result<Status, Failure>;
