//! Long-running programs with a protocol on standard input and output.

use std::pin::pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::process::call::ending;
use crate::process::capture::{Tail, drain};
use crate::process::{DRAIN, Group, Pipes, Program};

/// A running program in its own process group. Its standard error is read all the time. Dropping it kills the group.
#[derive(Debug)]
pub struct BackgroundProcess {
    group: Group,
    stderr: Arc<Mutex<Tail>>,
    /// Reads the standard error; it ends when the pipe is closed.
    reader: JoinSet<()>,
}

/// How a [`BackgroundProcess`] ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessExit {
    /// The exit status.
    pub status: ExitStatus,
    /// Whether the process had to be stopped.
    pub was_stopped: bool,
    /// The end of its standard error.
    pub stderr: String,
}

impl fmt::Display for ProcessExit {
    /// Writes a predicate that follows the program's name, such as `exited with status 1`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&ending(self.status))
    }
}

impl BackgroundProcess {
    /// Starts a program, and keeps this many bytes of its standard error.
    ///
    /// # Errors
    /// Returns an error if it cannot be started ([`Program::why_not_started`]).
    pub fn start(
        program: &Program,
        stderr_limit: usize,
    ) -> io::Result<(Self, Option<ChildStdin>, Option<ChildStdout>)> {
        let mut group = Group::start(program)?;
        let Pipes {
            stdin,
            stdout,
            stderr: pipe,
        } = group.pipes();
        let stderr = Arc::new(Mutex::new(Tail::new(stderr_limit)));
        let kept = Arc::clone(&stderr);
        let mut reader = JoinSet::new();
        reader.spawn(drain(pipe, move |bytes| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.take(bytes);
        }));
        let process = Self {
            group,
            stderr,
            reader,
        };
        Ok((process, stdin, stdout))
    }

    /// Returns the end of its standard error so far.
    pub fn stderr(&self) -> String {
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        stderr.clone().into_text()
    }

    /// Waits until it exits. After `timeout` its group gets `SIGTERM`, and `SIGKILL` after `grace`; on Windows it is killed at
    /// once. The whole group is gone then.
    ///
    /// # Errors
    /// Returns an error if its exit status cannot be read.
    pub async fn wait(mut self, timeout: Duration, grace: Duration) -> io::Result<ProcessExit> {
        let stop = CancellationToken::new();
        let closed = pin!(async {});
        let ended = self.group.supervise(closed, &stop, grace);
        let stopping = async {
            sleep(timeout).await;
            stop.cancel();
            std::future::pending::<(bool, bool)>().await
        };
        let (was_stopped, _) = tokio::select! {
            ended = ended => ended,
            ended = stopping => ended,
        };
        let status = self.group.reap().await?;
        // Only output of a process that left the group can be lost here.
        let _ = tokio::time::timeout(DRAIN, self.reader.join_next_with_id()).await;
        Ok(ProcessExit {
            status,
            was_stopped,
            stderr: self.stderr(),
        })
    }
}
