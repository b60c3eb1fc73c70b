//! One run of a program in a process group of its own, until nothing of it is left.
//!
//! ```text
//!            leader exits               pipes closed, or time is up
//! running ------------------> lingering ----------------------------> SIGKILL to the group, leader reaped
//!    |                            ^                                      ^
//!    | stop: SIGTERM to the group | leader exits                         |
//!    +-----> stopping ------------+                                      |
//!                +-------------------------------------------------------+
//!                          the grace is over
//! ```
//!
//! The group is killed before its leader is reaped: as long as the leader is a zombie its number cannot be given
//! to anybody else, so the signal never hits a stranger.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, ChildStdin, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::capture::{Output, Tail, drain};
pub use crate::invocation::is_inherited_variable;
use crate::process_input::Input;
pub use crate::resident::{BackgroundProcess, ProcessExit};

/// How long what the leader leaves behind may go on writing before it is killed. A shell does not wait for every
/// process that it has started.
const LINGER: Duration = Duration::from_millis(200);

/// How long the pipes are read after the group was killed. Only a process that has left the group can hold them.
const DRAIN: Duration = Duration::from_millis(500);

/// The longest grace, about a century: no clock counts without end.
const LONGEST_GRACE: Duration = Duration::from_hours(24 * 36_525);

/// A program and what it is started with.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Its whole environment; no variable is inherited.
    pub environment: Vec<(OsString, OsString)>,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) program: Program,
    pub(crate) input: Input,
    /// How many bytes of the standard output are kept.
    pub(crate) output_limit: usize,
    /// Whether these are its beginning and its end, or only its beginning.
    pub(crate) keeps_both_ends: bool,
    /// How many bytes of the standard error are kept.
    pub(crate) error_limit: usize,
    /// How long the group has to end by itself after it was asked to.
    pub(crate) grace: Duration,
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    /// It was ended because `stop` was set.
    pub(crate) was_stopped: bool,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// Runs the job to its end. Setting `stop` ends it early; dropping the future kills the group at once.
///
/// # Errors
/// If the program cannot be started, or the system refuses to tell how it ended.
pub(crate) async fn run(job: Job, stop: &CancellationToken) -> io::Result<Finished> {
    let mut output = Output::new(job.output_limit, job.keeps_both_ends);
    let mut errors = Tail::new(job.error_limit);
    // Before the start, so that no exit goes unnoticed. The signal does not say whose exit it is, so everybody looks;
    // how many that are is limited by `RunBuilder::concurrent`.
    let changes = signal(SignalKind::child())?;
    let mut group = Group::start(&job.program)?;
    let (stdin, stdout, stderr) = group.pipes();
    let was_stopped = {
        let pipes = pin!(async {
            tokio::join!(
                job.input.write_to(stdin),
                drain(stdout, |bytes| output.take(bytes)),
                drain(stderr, |bytes| errors.take(bytes)),
            );
        });
        group.supervise(pipes, changes, stop, job.grace).await
    };
    Ok(Finished {
        status: group.reap().await?,
        was_stopped,
        output: output.into_text(),
        errors: errors.into_text(),
    })
}

/// A process group whose leader is our child. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct Group {
    id: Option<Pid>,
    /// Dropped after the group was killed; the runtime then reaps it.
    leader: Child,
}

impl Group {
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        let leader = Command::new(&program.program)
            .args(&program.arguments)
            .current_dir(&program.directory)
            .env_clear()
            .envs(
                program
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let id = leader
            .id()
            .and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Ok(Self { id, leader })
    }

    pub(crate) fn pipes(
        &mut self,
    ) -> (
        Option<ChildStdin>,
        Option<tokio::process::ChildStdout>,
        Option<tokio::process::ChildStderr>,
    ) {
        (
            self.leader.stdin.take(),
            self.leader.stdout.take(),
            self.leader.stderr.take(),
        )
    }

    fn send(&self, signal: Signal) {
        if let Some(id) = self.id {
            // A group that is gone is what is wanted.
            let _ = kill_process_group(id, signal);
        }
    }

    /// Whether the leader has exited; it stays a zombie.
    fn leader_has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error says that there is no such child any more.
        self.id
            .is_none_or(|id| !matches!(waitid(WaitId::Pid(id), options), Ok(None)))
    }

    /// Waits until the leader has exited and nothing else of the group is left. Returns whether it was stopped.
    pub(crate) async fn supervise(
        &mut self,
        mut pipes: std::pin::Pin<&mut impl Future<Output = ()>>,
        mut changes: tokio::signal::unix::Signal,
        stop: &CancellationToken,
        grace: Duration,
    ) -> bool {
        let mut are_open = true;
        let mut was_stopped = false;
        let mut kill_at = None;
        while !self.leader_has_exited() {
            tokio::select! {
                Some(()) = changes.recv() => {}
                () = &mut pipes, if are_open => are_open = false,
                () = stop.cancelled(), if !was_stopped => {
                    was_stopped = true;
                    self.send(Signal::TERM);
                    kill_at = Some(Instant::now() + grace.min(LONGEST_GRACE));
                }
                () = sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => {
                    kill_at = None;
                    self.send(Signal::KILL);
                }
                // The runtime is going down, and no change will be heard of any more.
                else => break,
            }
        }
        // The leader may be gone while others still tidy up; closed pipes say that they are gone too.
        let patience = if was_stopped {
            kill_at
        } else {
            Some(Instant::now() + LINGER)
        };
        if are_open && let Some(until) = patience {
            are_open = timeout_at(until, &mut pipes).await.is_err();
        }
        self.send(Signal::KILL);
        if are_open {
            // What is lost then was written by a process that nobody can wait for.
            let _ = timeout(DRAIN, pipes).await;
        }
        was_stopped
    }

    /// Takes the leader's exit status; from here on its number means nothing.
    pub(crate) async fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.leader.wait().await;
        self.id = None;
        status
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Signal::KILL);
    }
}
