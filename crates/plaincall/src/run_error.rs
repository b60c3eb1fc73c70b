//! Errors of runs.

use std::fmt;
use std::path::PathBuf;

use plaincall_syntax::DialectError;

/// An error when a run is built or resumed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// There is no tokio runtime.
    NoRuntime,
    /// The tokio runtime has no timers.
    NoTimers,
    /// A tool is a command, but the tokio runtime has no I/O driver.
    NoProcesses {
        /// The name of the tool.
        tool: String,
    },
    /// The dialect is invalid.
    Dialect(DialectError),
    /// The run's scratch directory cannot be created or used.
    Directory {
        /// The scratch directory or its parent.
        parent: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// The working directory of commands cannot be used.
    CurrentDirectory {
        /// The path.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// A tool needs a scratch directory, but the run has none.
    NoDirectory {
        /// The name of the tool.
        tool: String,
    },
    /// The thread of an observer cannot be started.
    Observer(std::io::Error),
    /// The note for the log is nested too deeply.
    Note,
    /// The log does not match the run.
    Resume(ResumeError),
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRuntime => {
                formatter.write_str("a run needs a tokio runtime; build it inside one")
            }
            Self::NoTimers => {
                formatter.write_str("the tokio runtime has no timers; build it with `enable_all`")
            }
            Self::NoProcesses { tool } => write!(
                formatter,
                "the tool `{tool}` is a command, which needs a tokio runtime with an I/O driver; build it with `enable_all`"
            ),
            Self::Dialect(error) => error.fmt(formatter),
            Self::CurrentDirectory { path, error } => write!(
                formatter,
                "the working directory of the tools cannot be used: {}: {error}; it must be an absolute path to an existing directory",
                path.display()
            ),
            Self::Directory { parent, error } => {
                let what = match error.kind() {
                    std::io::ErrorKind::NotFound => "does not exist".to_owned(),
                    _ => format!("cannot be used: {error}"),
                };
                let path = parent.display();
                write!(formatter, "the run's scratch directory {path} {what}")
            }
            Self::Observer(error) => write!(
                formatter,
                "the thread of an observer could not be started: {error}"
            ),
            Self::Note => {
                formatter.write_str("the note for the log is nested more than 64 levels deep")
            }
            Self::Resume(error) => error.fmt(formatter),
            Self::NoDirectory { tool } => write!(
                formatter,
                "the tool `{tool}` uses `{{directory:run}}`, but the run has no scratch directory; set one with `directory_in` or `directory`"
            ),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Dialect(error) => Some(error),
            Self::Directory { error, .. }
            | Self::CurrentDirectory { error, .. }
            | Self::Observer(error) => Some(error),
            Self::Resume(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ResumeError> for RunError {
    fn from(error: ResumeError) -> Self {
        Self::Resume(error)
    }
}

impl From<DialectError> for RunError {
    fn from(error: DialectError) -> Self {
        Self::Dialect(error)
    }
}

/// The error when the scratch directory of a run cannot be removed at its end.
#[derive(Debug)]
#[non_exhaustive]
pub struct CloseError {
    /// The scratch directory, with some or all of its files.
    pub directory: PathBuf,
    /// The cause.
    pub error: std::io::Error,
}

impl fmt::Display for CloseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the run's scratch directory {} could not be removed: {}; remove it manually",
            self.directory.display(),
            self.error
        )
    }
}

impl std::error::Error for CloseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The error when a log does not match the run that resumes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResumeError {
    /// The line of the log, from 1.
    pub line: u64,
    /// The mismatch.
    pub what: String,
}

impl fmt::Display for ResumeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the log does not match this run: line {}: {}; resume it with the tools and settings it started with",
            self.line, self.what
        )
    }
}

impl std::error::Error for ResumeError {}
