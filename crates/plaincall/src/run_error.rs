//! Errors of runs.

use std::path::PathBuf;

use plaincall_syntax::DialectError;

/// An error when a run is built or resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is no tokio runtime.
    #[error("a run needs a tokio runtime; build it inside one")]
    NoRuntime,
    /// The tokio runtime has no timers.
    #[error("the tokio runtime has no timers; build it with `enable_all`")]
    NoTimers,
    /// A tool is a command, but the tokio runtime has no I/O driver.
    #[error(
        "the tool `{tool}` is a command, which needs a tokio runtime with an I/O driver; build it with `enable_all`"
    )]
    NoProcesses {
        /// The name of the tool.
        tool: String,
    },
    /// The dialect is invalid.
    #[error("{0}")]
    Dialect(#[from] DialectError),
    /// The run's scratch directory cannot be created or used.
    #[error("the run's scratch directory {parent} {}", unusable(error))]
    Directory {
        /// The scratch directory or its parent.
        parent: PathBuf,
        /// The cause.
        #[source]
        error: std::io::Error,
    },
    /// The working directory of commands cannot be used.
    #[error(
        "the working directory of the tools cannot be used: {path}: {error}; it must be an absolute path to an existing directory"
    )]
    CurrentDirectory {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        error: std::io::Error,
    },
    /// A tool needs a scratch directory, but the run has none.
    #[error(
        "the tool `{tool}` uses `{{directory:run}}`, but the run has no scratch directory; set one with `directory_in` or `directory`"
    )]
    NoDirectory {
        /// The name of the tool.
        tool: String,
    },
    /// The thread of an observer cannot be started.
    #[error("the thread of an observer could not be started: {0}")]
    Observer(#[source] std::io::Error),
    /// The note for the log is nested too deeply.
    #[error("the note for the log is nested more than 64 levels deep")]
    Note,
    /// The log does not match the run.
    #[error("{0}")]
    Resume(#[from] ResumeError),
}

/// The error when the scratch directory of a run cannot be removed at its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error(
    "the run's scratch directory {directory} could not be removed: {error}; remove it manually"
)]
pub struct CloseError {
    /// The scratch directory, with some or all of its files.
    pub directory: PathBuf,
    /// The cause.
    #[source]
    pub error: std::io::Error,
}

/// The error when a log does not match the run that resumes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error(
    "the log does not match this run: line {line}: {what}; resume it with the tools and settings it started with"
)]
pub struct ResumeError {
    /// The line of the log, from 1.
    pub line: u64,
    /// The mismatch.
    pub what: String,
}

fn unusable(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be used: {error}"),
    }
}
