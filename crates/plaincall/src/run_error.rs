//! Why a run cannot be made, or has left something behind.

use std::fmt;
use std::path::PathBuf;

use plaincall_syntax::DialectError;

/// Why a run cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// There is no tokio runtime to run on.
    NoRuntime,
    /// The tokio runtime has no timers, and so no call could have a timeout.
    NoTimers,
    /// A tool is a command, and the tokio runtime cannot wait for processes.
    NoProcesses {
        /// The name of the tool.
        tool: String,
    },
    /// The dialect cannot work.
    Dialect(DialectError),
    /// The run's directory cannot be made.
    Directory {
        /// Where it was to be made, or which.
        parent: PathBuf,
        /// Why it cannot.
        error: std::io::Error,
    },
    /// The directory in which commands work does not exist.
    CurrentDirectory {
        /// Which.
        path: PathBuf,
        /// Why it cannot be used.
        error: std::io::Error,
    },
    /// A tool needs the run's directory, and the run has none.
    NoDirectory {
        /// The name of the tool.
        tool: String,
    },
    /// The thread of an observer cannot be started.
    Observer(std::io::Error),
    /// The note for the log is nested too deep.
    Note,
    /// The log cannot be gone on with.
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
                "the tool `{tool}` is a command, and the tokio runtime has no I/O driver; build it with `enable_all`"
            ),
            Self::Dialect(error) => error.fmt(formatter),
            Self::CurrentDirectory { path, error } => write!(
                formatter,
                "the working directory of the tools cannot be used: {}: {error}; it must be an absolute path to an existing directory",
                path.display()
            ),
            Self::Directory { parent, error } if error.kind() == std::io::ErrorKind::NotFound => {
                write!(
                    formatter,
                    "the run's scratch directory {} does not exist",
                    parent.display()
                )
            }
            Self::Directory { parent, error } => write!(
                formatter,
                "the run's scratch directory {} cannot be used: {error}",
                parent.display()
            ),
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

/// Why a run that has ended has left something behind.
#[derive(Debug)]
pub struct CloseError {
    /// The run's directory, which is still there, with some or all of its files.
    pub directory: PathBuf,
    /// Why it cannot be removed.
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

/// Why a log cannot be gone on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeError {
    /// The line of the log, from 1.
    pub line: u64,
    /// What does not fit.
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
