//! A reply and its tools in a directory of their own.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The command under test.
pub(crate) const PLAINCALL: &str = env!("CARGO_BIN_EXE_plaincall");

/// The tools of most scenes.
pub(crate) const TOOLS: &str = include_str!("tools.toml");

/// The time limit for each wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Scene {
    directory: TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scene {
    /// A scene with this reply and the usual tools.
    pub(crate) fn new(reply: impl AsRef<[u8]>) -> Self {
        Self::with_tools(reply, TOOLS)
    }

    pub(crate) fn with_tools(reply: impl AsRef<[u8]>, tools: impl AsRef<[u8]>) -> Self {
        let scene = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::write(scene.path("reply.txt"), reply).unwrap();
        fs::write(scene.path("tools.toml"), tools).unwrap();
        scene
    }

    /// Returns the path of a file of the scene.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The environment of a command, without the environment of the tests: variables like `CI`, `NO_COLOR` and
    /// `LC_ALL` change its output.
    #[allow(
        clippy::disallowed_methods,
        reason = "a tool's program is looked for where the tests' programs are"
    )]
    pub(crate) fn environment(&self) -> [(&'static str, OsString); 2] {
        [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("TMPDIR", self.directory.path().into()),
        ]
    }

    /// `plaincall run` with these options, without a terminal and without input. It runs in the background of the
    /// terminal of the tests, so it cannot ask there.
    pub(crate) fn command(&self, options: &[&str]) -> Command {
        self.plaincall(&[&["run"], options].concat())
    }

    /// Any command, in the same environment.
    pub(crate) fn plaincall(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PLAINCALL);
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env_clear()
            .envs(self.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }

    /// Runs the reply with the tools and these options.
    pub(crate) fn run(&self, options: &[&str]) -> Ended {
        let all = [&["reply.txt", "--tools", "tools.toml"], options].concat();
        self.command(&all).output().unwrap().into()
    }

    /// Runs a text from a pipe.
    pub(crate) fn pipe(&self, text: &[u8], options: &[&str]) -> Ended {
        let all = [&["--tools", "tools.toml"], options].concat();
        let mut child = self.command(&all).stdin(Stdio::piped()).spawn().unwrap();
        // A command that ends early does not read all of it.
        let _ = child.stdin.take().unwrap().write_all(text);
        child.wait_with_output().unwrap().into()
    }

    /// Returns whether no run has left a directory behind.
    pub(crate) fn is_clean(&self) -> bool {
        let names = fs::read_dir(self.directory.path()).unwrap();
        !names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .any(|name| name.starts_with("plaincall-"))
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A call of the block syntax. The header is `name:id:dependencies`.
pub(crate) fn call(header: &str, arguments: &[(&str, &str)]) -> String {
    let mut text = format!("!!!GADGET_START:{header}\n");
    for (name, value) in arguments {
        write!(text, "!!!ARG:{name}\n{value}\n").unwrap();
    }
    text + "!!!GADGET_END\n"
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        pause(Duration::from_millis(10));
    }
}

#[allow(clippy::disallowed_methods, reason = "a test thread may sleep")]
pub(crate) fn pause(time: Duration) {
    thread::sleep(time);
}
