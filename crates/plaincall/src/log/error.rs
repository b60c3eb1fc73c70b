//! Why a log cannot be used.

use std::path::{Path, PathBuf};
use std::{error, fmt, io};

use super::line::LOG_VERSION;

/// Why a log cannot be read, made or taken up again. Lines are counted from 1, as editors count them.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// There is nothing in it, or only the beginning of its first line: nothing was run.
    Empty,
    /// It is something else.
    NotALog {
        /// What was found.
        what: String,
    },
    /// A newer Plaincall wrote it.
    Newer {
        /// The version of its form.
        version: u64,
    },
    /// A line is not as it was written, or lines are missing, and it is not the end of the log.
    Damaged {
        /// The line.
        line: u64,
        /// What was found.
        what: String,
    },
    /// A line is as it was written, but means nothing in this version of the form.
    Unknown {
        /// The line.
        line: u64,
        /// What was found.
        what: String,
    },
    /// A new log was to be made and there is such a file.
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another run writes it.
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The system did not do what was asked of it.
    File {
        /// The file.
        path: PathBuf,
        /// What could not be done to it, as in "it could not be opened".
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

impl LogError {
    pub(super) fn file(path: &Path, what: &'static str, error: io::Error) -> Self {
        Self::File {
            path: path.into(),
            what,
            error,
        }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(
                formatter,
                "the log is empty: its run stopped before it wrote anything; remove the file and start again"
            ),
            Self::NotALog { what } => write!(formatter, "this is not the log of a run: {what}"),
            Self::Newer { version } => write!(
                formatter,
                "this log has version {version} and only version {LOG_VERSION} is understood here: a newer Plaincall \
                 wrote it, use that one"
            ),
            Self::Damaged { line, what } => write!(
                formatter,
                "line {line} of the log is damaged: {what}; use a copy that is whole, since what was done after this \
                 line is not known"
            ),
            Self::Unknown { line, what } => write!(
                formatter,
                "line {line} of the log cannot be read: {what}; use the version of Plaincall that wrote it"
            ),
            Self::Exists { path } => write!(
                formatter,
                "the file `{}` already exists: name a new file, or resume its run",
                path.display()
            ),
            Self::InUse { path } => write!(
                formatter,
                "another run is using the log `{}`: wait until it ends, or stop it",
                path.display()
            ),
            Self::File { path, what, error } => {
                write!(
                    formatter,
                    "the log `{}` could not be {what}: {error}",
                    path.display()
                )
            }
        }
    }
}

impl error::Error for LogError {}
