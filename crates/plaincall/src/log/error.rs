//! The error of a log.

use std::io;
use std::path::{Path, PathBuf};

use super::line::LOG_VERSION;

/// The reason why a log cannot be created, read or resumed. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The log is empty or contains only a part of its first line, so nothing was run.
    #[error(
        "the log is empty: its run stopped before it wrote anything; remove the file and start again"
    )]
    Empty,
    /// The file is not a log.
    #[error("this is not the log of a run: {what}")]
    #[non_exhaustive]
    NotALog {
        /// The problem.
        what: String,
    },
    /// The log was written by a newer version of Plaincall.
    #[error(
        "this log has version {version}, and this Plaincall reads only version {LOG_VERSION}; use the newer Plaincall that wrote it"
    )]
    #[non_exhaustive]
    Newer {
        /// The version of its format.
        version: u64,
    },
    /// A line before the end of the log is damaged or missing.
    #[error(
        "line {line} of the log is damaged: {what}; use an intact copy, because it is not known what happened after this line"
    )]
    #[non_exhaustive]
    Damaged {
        /// The line.
        line: u64,
        /// The problem.
        what: String,
    },
    /// A line is intact but invalid in this version of the format.
    #[error(
        "line {line} of the log cannot be read: {what}; use the version of Plaincall that wrote it"
    )]
    #[non_exhaustive]
    Unknown {
        /// The line.
        line: u64,
        /// The problem.
        what: String,
    },
    /// The file of a new log already exists.
    #[error("the file `{path}` already exists: name a new file, or resume its run")]
    #[non_exhaustive]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another run uses the log.
    #[error("another run is using the log `{path}`: wait until it ends, or stop it")]
    #[non_exhaustive]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// An operation on the file failed.
    #[error("the log `{path}` could not be {what}: {error}")]
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
