//! Process groups.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::panic::catch_unwind;
use std::pin::Pin;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::Child;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::process::{DRAIN, LINGER, Pipes, Program};

/// The longest grace period, about a century, so that deadlines do not overflow.
const LONGEST_GRACE: Duration = Duration::from_hours(24 * 36_525);

/// The environment variables that every command inherits, in addition to those that begin with `LC_`.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// The error number of a file that cannot be executed.
pub(crate) const NOT_A_PROGRAM: i32 = 8;

/// A process group whose leader is a child of this process. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct Group {
    id: Option<Pid>,
    /// Dropped after the group was killed; then the runtime reaps it.
    leader: Child,
    changes: unix::Signal,
}

impl Group {
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        // Before the start, so that no exit is missed. The signal does not identify the process, so every group checks its own;
        // `Policy::concurrent` limits their number.
        let changes = signal(SignalKind::child())?;
        let leader = program.command().process_group(0).spawn()?;
        let id = leader
            .id()
            .and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Ok(Self {
            id,
            leader,
            changes,
        })
    }

    /// Returns the standard streams of the leader, once.
    pub(crate) fn pipes(&mut self) -> Pipes {
        let leader = &mut self.leader;
        Pipes {
            stdin: leader.stdin.take(),
            stdout: leader.stdout.take(),
            stderr: leader.stderr.take(),
        }
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
        mut pipes: Pin<&mut impl Future<Output = ()>>,
        stop: &CancellationToken,
        grace: Duration,
    ) -> (bool, bool) {
        let mut are_open = true;
        let mut was_stopped = false;
        let mut kill_at = None;
        while !self.leader_has_exited() {
            tokio::select! {
                Some(()) = self.changes.recv() => {}
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

/// Returns whether the runtime can wait for processes. It has no query for this, but a signal listener panics without the driver.
pub(crate) fn can_start() -> bool {
    catch_unwind(|| drop(signal(SignalKind::child()))).is_ok()
}

/// Returns the signal that killed a program, if one did, with its name.
pub(crate) fn killed_by(status: ExitStatus) -> Option<String> {
    let signal = status.signal()?;
    let name = Signal::from_named_raw(signal).map(|signal| format!("{signal:?}"));
    // The `Debug` form is `"Signal::KILL"`.
    let name = name
        .as_deref()
        .map(|name| name.trim_matches('"').trim_start_matches("Signal::"));
    Some(match name {
        Some(name) => format!("signal {signal} (SIG{name})"),
        None => format!("signal {signal}"),
    })
}

/// Returns whether commands inherit this environment variable by default.
pub(crate) fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name) || name.starts_with("LC_")
}

/// Returns whether this is the name of an environment variable.
pub(crate) fn is_name(name: &OsStr, variable: &str) -> bool {
    name == variable
}
