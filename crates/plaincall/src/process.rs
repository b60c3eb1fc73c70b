//! A program in its own process group, from its start until the whole group is gone. On Windows the group is a job object, which
//! can only be killed: a stop has no grace period.
//!
//! ```text
//!            leader exits               pipes closed, or timeout
//! running ------------------> lingering ----------------------------> SIGKILL to the group, leader reaped
//!    |                            ^                                      ^
//!    | stop: SIGTERM to the group | leader exits                         |
//!    +-----> stopping ------------+                                      |
//!                +-------------------------------------------------------+
//!                       grace period over
//! ```
//!
//! The group is killed before its leader is reaped: while the leader is a zombie, its process id cannot be reused, so the
//! signal cannot reach an unrelated process.

mod background;
mod call;
mod capture;
mod input;
#[cfg_attr(unix, path = "process/unix.rs")]
#[cfg_attr(windows, path = "process/windows.rs")]
mod platform;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

pub use background::{BackgroundProcess, ProcessExit};
pub use call::{CALL_VARIABLES, is_inherited_variable};
use capture::{Output, Tail, drain};
use input::Input;
use platform::Group;
pub(crate) use platform::can_start;

/// How long the rest of the group may continue to write after the leader exited. A shell does not wait for every process
/// that it started.
const LINGER: Duration = Duration::from_millis(200);

/// How long the pipes are read after the group was killed. Only a process that left the group can still hold them open.
const DRAIN: Duration = Duration::from_millis(500);

/// A program, with its arguments, working directory and environment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Program {
    /// The program.
    pub program: OsString,
    /// Its arguments. Default: none.
    pub arguments: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Its whole environment; no variable is inherited. Default: empty.
    pub environment: Vec<(OsString, OsString)>,
}

impl Program {
    /// Creates a program without arguments and with an empty environment.
    pub fn new(program: impl Into<OsString>, directory: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            directory: directory.into(),
            environment: Vec::new(),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.directory)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// The standard streams of a program.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) program: Program,
    pub(crate) input: Input,
    /// The limit of the standard output, in bytes.
    pub(crate) output_limit: usize,
    /// Keeps the beginning and the end of the output, not only the beginning.
    pub(crate) keeps_both_ends: bool,
    /// The limit of the standard error, in bytes.
    pub(crate) error_limit: usize,
    /// The time between `SIGTERM` and `SIGKILL`, on Unix.
    pub(crate) grace: Duration,
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    /// It ended because `stop` was set.
    pub(crate) was_stopped: bool,
    /// It was not stopped, and processes that it had left behind were ended.
    pub(crate) had_others: bool,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// Runs the job to its end. Setting `stop` ends it early; dropping the future kills the group immediately.
///
/// # Errors
/// Returns an error if the program cannot be started or its exit status cannot be read.
pub(crate) async fn run(job: Job, stop: &CancellationToken) -> io::Result<Finished> {
    let mut output = Output::new(job.output_limit, job.keeps_both_ends);
    let mut errors = Tail::new(job.error_limit);
    let mut group = Group::start(&job.program)?;
    let Pipes {
        stdin,
        stdout,
        stderr,
    } = group.pipes();
    let (was_stopped, had_others) = {
        let pipes = pin!(async {
            tokio::join!(
                job.input.write_to(stdin),
                drain(stdout, |bytes| output.take(bytes)),
                drain(stderr, |bytes| errors.take(bytes)),
            );
        });
        group.supervise(pipes, stop, job.grace).await
    };
    Ok(Finished {
        status: group.reap().await?,
        was_stopped,
        had_others,
        output: output.into_text(),
        errors: errors.into_text(),
    })
}
