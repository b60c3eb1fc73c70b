//! Job objects. A job ends with this process, even if this process is killed.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitStatus;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, CommandWrapper, JobObject, KillOnDrop};
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::process::{DRAIN, LINGER, Pipes, Program};

/// The environment variables that every command inherits. Many programs do not start without those of the system.
const INHERITED: [&str; 19] = [
    "PATH",
    "PATHEXT",
    "COMSPEC",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "WINDIR",
    "TEMP",
    "TMP",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROCESSOR_ARCHITECTURE",
    "NUMBER_OF_PROCESSORS",
    "LANG",
];

/// The error number of a file that is not a program: `ERROR_BAD_EXE_FORMAT`.
pub(crate) const NOT_A_PROGRAM: i32 = 193;

/// `CREATE_SUSPENDED`: the program runs only once it is in its job.
const SUSPENDED: u32 = 0x4;
/// `CREATE_NO_WINDOW`: the console is not for tools. Neither Ctrl-C nor its keyboard reaches them.
const WITHOUT_CONSOLE: u32 = 0x0800_0000;

/// A program and all processes that it starts. Dropping it kills them.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Box<dyn ChildWrapper>,
}

/// Sets the flags of the program, after those of its job.
#[derive(Debug)]
struct Flags;

impl CommandWrapper for Flags {
    fn pre_spawn(&mut self, command: &mut Command, _: &CommandWrap) -> io::Result<()> {
        command.creation_flags(SUSPENDED | WITHOUT_CONSOLE);
        Ok(())
    }
}

impl Group {
    pub(crate) fn start(program: &Program) -> io::Result<Self> {
        let mut program = program.clone();
        let path = Path::new(&program.program);
        // The system looks for a relative path in the working directory of this process.
        if path.components().count() > 1 && path.is_relative() {
            program.program = program.directory.join(path).into();
        }
        let mut command = CommandWrap::from(program.command());
        command.wrap(KillOnDrop).wrap(JobObject).wrap(Flags);
        let leader = command.spawn()?;
        Ok(Self { leader })
    }

    /// Returns the standard streams of the program, once.
    pub(crate) fn pipes(&mut self) -> Pipes {
        let leader = &mut self.leader;
        Pipes {
            stdin: leader.stdin().take(),
            stdout: leader.stdout().take(),
            stderr: leader.stderr().take(),
        }
    }

    fn kill(&mut self) {
        // It fails only if all of them are already gone.
        let _ = self.leader.start_kill();
    }

    /// Waits until the program has ended and its other processes are gone. Returns whether it was stopped, and otherwise whether
    /// other processes kept its output open and were killed.
    pub(crate) async fn supervise(
        &mut self,
        mut pipes: Pin<&mut impl Future<Output = ()>>,
        stop: &CancellationToken,
        _: Duration,
    ) -> (bool, bool) {
        let mut are_open = true;
        let mut was_stopped = false;
        loop {
            tokio::select! {
                // Not the job, which lasts as long as any of its processes.
                _ = self.leader.inner_mut().wait() => break,
                () = &mut pipes, if are_open => are_open = false,
                () = stop.cancelled(), if !was_stopped => {
                    was_stopped = true;
                    self.kill();
                }
            }
        }
        if are_open && !was_stopped {
            are_open = timeout(LINGER, &mut pipes).await.is_err();
        }
        let had_others = are_open && !was_stopped;
        self.kill();
        if are_open {
            let _ = timeout(DRAIN, pipes).await;
        }
        (was_stopped, had_others)
    }

    /// Returns the exit status of the program.
    pub(crate) async fn reap(&mut self) -> io::Result<ExitStatus> {
        self.leader.inner_mut().wait().await
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns whether the runtime can wait for processes: the system does.
pub(crate) const fn can_start() -> bool {
    true
}

/// Returns the signal that killed a program: none here.
pub(crate) const fn killed_by(_: ExitStatus) -> Option<String> {
    None
}

/// Returns whether commands inherit this environment variable by default.
pub(crate) fn is_inherited(name: &str) -> bool {
    INHERITED
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns whether this is the name of an environment variable, which has no case.
pub(crate) fn is_name(name: &OsStr, variable: &str) -> bool {
    name.eq_ignore_ascii_case(variable)
}
