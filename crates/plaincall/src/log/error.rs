//! The error of a log.

use std::path::{Path, PathBuf};
use std::{error, fmt, io};

use super::line::LOG_VERSION;

/// The reason why a log cannot be created, read or resumed. Lines count from 1.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// The log is empty or contains only a part of its first line, so nothing was run.
    Empty,
    /// The file is not a log.
    #[non_exhaustive]
    NotALog {
        /// The problem.
        what: String,
    },
    /// The log was written by a newer version of Plaincall.
    #[non_exhaustive]
    Newer {
        /// The version of its format.
        version: u64,
    },
    /// A line before the end of the log is damaged or missing.
    #[non_exhaustive]
    Damaged {
        /// The line.
        line: u64,
        /// The problem.
        what: String,
    },
    /// A line is intact but invalid in this version of the format.
    #[non_exhaustive]
    Unknown {
        /// The line.
        line: u64,
        /// The problem.
        what: String,
    },
    /// The file of a new log already exists.
    #[non_exhaustive]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another run uses the log.
    #[non_exhaustive]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// An operation on the file failed.
    #[non_exhaustive]
    File {
        /// The file.
        path: PathBuf,
        /// The operation, as a past participle: "opened".
        what: &'static str,
        /// The error.
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
                "this log has version {version}, and this Plaincall reads only version {LOG_VERSION}; use the newer \
                 Plaincall that wrote it"
            ),
            Self::Damaged { line, what } => write!(
                formatter,
                "line {line} of the log is damaged: {what}; use an intact copy, because it is not known what happened \
                 after this line"
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
