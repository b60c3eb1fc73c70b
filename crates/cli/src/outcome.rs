//! How a command ends.

use std::io;

/// How a command that did its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// All is well: exit status 0.
    Good,
    /// Something is wrong, and it has been named: exit status 1.
    Wrong,
    /// The time was over: exit status 124.
    TimedOut,
    /// A signal cancelled it. The value is the exit status.
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
    /// The reader closed the output, which is not an error.
    ClosedPipe,
}

impl Failure {
    /// The message, for a command that continues.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Usage(message) | Self::Configuration(message) | Self::Broken(message) => message,
            Self::ClosedPipe => "the output was closed",
        }
    }

    /// Standard output could not be written to.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Broken(format!("cannot write to standard output: {error}"))
        }
    }
}

/// What a command comes to.
pub(crate) type Outcome = Result<Status, Failure>;
