//! Running the command.

use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// The result of a process.
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Ran {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// The command, in pipes and without the environment of the tests: variables like `CI`, `NO_COLOR` and `LC_ALL`
/// change what it shows.
pub(crate) fn plaincall() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plaincall"));
    command.env_clear();
    command
}

/// Runs the command in `directory` with these arguments and this standard input.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(
    directory: &Path,
    arguments: &[S],
    stdin: &[u8],
) -> Ran {
    run_command(plaincall().current_dir(directory).args(arguments), stdin)
}

/// Runs a command with this standard input.
pub(crate) fn run_command(command: &mut Command, stdin: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            // The status and the output show whether a command stopped reading.
            if let Err(error) = pipe.write_all(stdin) {
                assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            }
        });
        let output = child.wait_with_output().unwrap();
        Ran {
            status: output.status.code(),
            stdout: output.stdout,
            stderr: output.stderr,
        }
    })
}
