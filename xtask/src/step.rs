//! Runs commands and prints messages: to the terminal, or into the log of the job that runs on this thread.

use std::cell::RefCell;
use std::fmt::Arguments;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::workspace::{at, command};

/// The log of a job, and the processor seconds of its commands so far.
struct Log {
    path: PathBuf,
    file: File,
    processor: f64,
}

thread_local! {
    static LOG: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Runs the last argument in a shell that prints its processor time at the end of standard error.
const TIMED: [&str; 3] = ["-c", "\"$@\"; status=$?; times >&2; exit $status", "sh"];
/// The time limit for the start of a server.
const PATIENCE: Duration = Duration::from_secs(30);

/// Prints a line like `println!`, into the log of this thread if it has one.
macro_rules! report {
    ($($argument:tt)*) => { $crate::step::print(format_args!($($argument)*)) };
}
pub(crate) use report;

/// Prints a line; [`report!`] calls it.
pub(crate) fn print(line: Arguments<'_>) {
    let is_logged = LOG.with_borrow_mut(|log| match log {
        // A log that cannot be written to loses a message only.
        Some(log) => writeln!(log.file, "{line}").is_ok(),
        None => false,
    });
    if !is_logged {
        println!("{line}");
    }
}

/// In the line of [`skipped`].
pub(crate) const SKIPPED: &str = ": SKIPPED, ";

/// Reports that something is not checked here, and why. It fails a nightly job.
#[allow(clippy::unnecessary_wraps, reason = "it is the result of a job")]
pub(crate) fn skipped(what: &str, why: &str) -> Result<(), String> {
    report!("== {what}{SKIPPED}{why}");
    Ok(())
}

/// Does some work whose commands and messages print into a file. Returns its result and the processor seconds of its commands.
pub(crate) fn logged<T>(path: &Path, work: impl FnOnce() -> T) -> (T, f64) {
    // Without a file, it prints to the terminal.
    LOG.set(File::create(path).ok().map(|file| Log {
        path: path.to_owned(),
        file,
        processor: 0.0,
    }));
    let result = work();
    let log = LOG.take();
    (result, log.map_or(0.0, |log| log.processor))
}

/// Runs one step, and prints its name and time.
pub(crate) fn step(name: &str, command: &mut Command) -> Result<(), String> {
    report!("== {name}");
    let begun = Instant::now();
    let output = run(command, false).map_err(|error| format!("{name}: {error}"))?;
    report!("== {name}: {:.0} s", begun.elapsed().as_secs_f64());
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{name} failed"))
    }
}

/// Runs a command. Its messages are printed, and its output too if it is not captured. Within a job they go to the log, with its
/// processor time.
pub(crate) fn run(command: &mut Command, captures: bool) -> Result<Output, String> {
    let ran = LOG.with_borrow_mut(|log| {
        let Some(log) = log else {
            let printed = if captures {
                Stdio::piped
            } else {
                Stdio::inherit
            };
            return command.stdout(printed()).stderr(Stdio::inherit()).output();
        };
        let mut shell = timed(command);
        shell.stderr(log.file.try_clone()?);
        if !captures {
            shell.stdout(log.file.try_clone()?);
        }
        let output = shell.output()?;
        let written = fs::read(&log.path)?;
        let end = &written[written.len().saturating_sub(200)..];
        log.processor += processor_seconds(&String::from_utf8_lossy(end)).unwrap_or_default();
        Ok(output)
    });
    ran.map_err(|error: io::Error| format!("{}: {error}", command.get_program().display()))
}

fn timed(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(TIMED).arg(command.get_program());
    shell.args(command.get_args()).stdin(Stdio::null());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// Returns the sum of the last line of `times`, for the children of a shell, as in `0m1.50s 1m0.25s`.
fn processor_seconds(text: &str) -> Option<f64> {
    let line = text.lines().last()?;
    let seconds = line.split_whitespace().map(|time| {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    });
    seconds.sum()
}

/// Returns the standard output of a command that succeeds. It is not logged, unless it is in an error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} failed: {text}{messages}"))
}

/// Returns whether a command succeeds. Its output is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let output = command.output();
    output.is_ok_and(|output| output.status.success())
}

/// Copies a file or folder into a folder, which may not exist yet.
pub(crate) fn copy(from: &Path, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(at(folder))?;
    output(command("cp --recursive").arg(from).arg(folder)).map(drop)
}

/// Finds the address of a server in a line of its output.
type Find = fn(&str) -> Option<&str>;

/// A server. Dropping it ends it.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts a server, and waits until `address` finds its address in a line of its output.
    pub(crate) fn start(mut command: Command, address: Find) -> Result<Self, String> {
        let shown = format!("{command:?}");
        let mut spawn = || {
            let (lines, output) = io::pipe()?;
            command.stdout(output.try_clone()?).stderr(output);
            Ok((lines, command.stdin(Stdio::null()).spawn()?))
        };
        let (lines, process) = spawn().map_err(|error: io::Error| format!("{shown}: {error}"))?;
        drop(command);
        let mut server = Self {
            process,
            address: String::new(),
        };
        let (sender, printed) = mpsc::channel();
        std::thread::spawn(move || {
            // Read to the end, so that the server can always write.
            for line in BufReader::new(lines).split(b'\n').map_while(Result::ok) {
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        let mut messages = String::new();
        while let Ok(line) = printed.recv_timeout(PATIENCE) {
            if let Some(address) = address(&line) {
                address.clone_into(&mut server.address);
                return Ok(server);
            }
            messages.extend([&line, "\n"]);
        }
        Err(format!("{shown} did not start:\n{messages}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_of_children_is_in_the_last_line() {
        let table = [
            ("text\n0m0.10s 0m0.20s\n1m1.50s 0m0.25s\n", Some(61.75)),
            ("0m1s 0m2s", Some(3.0)),
            ("no times", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(processor_seconds(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_address_of_a_server_is_in_its_output() {
        let start = |script: &str| {
            let mut shell = command("sh -c");
            shell.arg(script);
            let server = Server::start(shell, |line| line.strip_prefix("at "));
            server.map(|server| server.address.clone())
        };
        assert_eq!(start("echo no; echo at 7 >&2; exec sleep 60").unwrap(), "7");
        assert!(start("echo no").unwrap_err().ends_with("not start:\nno\n"));
    }
}
