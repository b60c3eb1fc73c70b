//! A program in its own process group, from its start until the whole group is gone.
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

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

pub use background::{BackgroundProcess, ProcessExit};
pub use call::{CALL_VARIABLES, is_inherited_variable};
use capture::{Output, Tail, drain};
use input::Input;

/// How long the rest of the group may continue to write after the leader exited. A shell does not wait for every process
/// that it started.
const LINGER: Duration = Duration::from_millis(200);

/// How long the pipes are read after the group was killed. Only a process that left the group can still hold them open.
const DRAIN: Duration = Duration::from_millis(500);

/// The longest grace period, about a century, so that deadlines do not overflow.
const LONGEST_GRACE: Duration = Duration::from_hours(24 * 36_525);

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
    /// The time between `SIGTERM` and `SIGKILL`.
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
    // Before the start, so that no exit is missed. The signal does not identify the process, so every job checks its own;
    // `Policy::concurrent` limits their number.
    let changes = signal(SignalKind::child())?;
    let mut group = Group::start(&job.program)?;
    let leader = &mut group.leader;
    let (stdin, stdout) = (leader.stdin.take(), leader.stdout.take());
    let stderr = leader.stderr.take();
    let (was_stopped, had_others) = {
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
        had_others,
        output: output.into_text(),
        errors: errors.into_text(),
    })
}

/// A process group whose leader is a child of this process. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct Group {
    id: Option<Pid>,
    /// Dropped after the group was killed; then the runtime reaps it.
    pub(crate) leader: Child,
}

impl Group {
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        let leader = Command::new(&program.program)
            .args(&program.arguments)
            .current_dir(&program.directory)
            .env_clear()
            .envs(program.environment.iter().cloned())
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

    fn send(&self, signal: Signal) {
        if let Some(id) = self.id {
            // It fails only if the group is already gone.
            let _ = kill_process_group(id, signal);
        }
    }

    /// Returns whether the leader has exited, and leaves it a zombie.
    fn leader_has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that the child no longer exists.
        self.id
            .is_none_or(|id| !matches!(waitid(WaitId::Pid(id), options), Ok(None)))
    }

    /// Waits until the leader has exited and the rest of the group is gone. Returns whether it was stopped, and otherwise whether
    /// other processes of the group were killed.
    pub(crate) async fn supervise(
        &mut self,
        mut pipes: std::pin::Pin<&mut impl Future<Output = ()>>,
        mut changes: tokio::signal::unix::Signal,
        stop: &CancellationToken,
        grace: Duration,
    ) -> (bool, bool) {
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
                // The runtime is shutting down and reports no more changes.
                else => break,
            }
        }
        // Other processes of the group may still be cleaning up. Closed pipes show that they are gone too.
        let deadline = if was_stopped {
            kill_at
        } else {
            Some(Instant::now() + LINGER)
        };
        if are_open && let Some(deadline) = deadline {
            are_open = timeout_at(deadline, &mut pipes).await.is_err();
        }
        let had_others = !was_stopped && self.has_others().await;
        self.send(Signal::KILL);
        if are_open {
            // Only output of a process that left the group can be lost here.
            let _ = timeout(DRAIN, pipes).await;
        }
        (was_stopped, had_others)
    }

    /// Returns whether other processes of the group run. Only known on Linux.
    async fn has_others(&self) -> bool {
        match self.id.filter(|_| cfg!(target_os = "linux")) {
            Some(group) => spawn_blocking(move || runs(group)).await.unwrap_or(false),
            None => false,
        }
    }

    /// Returns the leader's exit status. After this, its process id may be reused.
    pub(crate) async fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.leader.wait().await;
        self.id = None;
        status
    }
}

/// Returns whether a process of this group runs, by the files of Linux. A process that has ended and waits for its parent does not run.
fn runs(group: Pid) -> bool {
    let group = group.as_raw_nonzero().to_string();
    let is_number = |name: &[u8]| name.first().is_some_and(u8::is_ascii_digit);
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = all.filter(|entry| is_number(entry.file_name().as_encoded_bytes()));
    let mut stats =
        processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.any(|stat| {
        // The name in parentheses may contain anything.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let mut fields = fields.split_whitespace();
        fields.next() != Some("Z") && fields.nth(1) == Some(&*group)
    })
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Signal::KILL);
    }
}
