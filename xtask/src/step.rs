//! Runs commands and prints messages: to the terminal, or into the log of the job that runs on this thread.

use std::cell::RefCell;
use std::fmt::Arguments;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use crate::workspace::at;

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

/// Does some work whose commands and messages print into a file. Returns its result and the processor seconds of its commands.
///
/// # Errors
/// Returns an error if the file cannot be created.
pub(crate) fn logged<T>(path: &Path, work: impl FnOnce() -> T) -> Result<(T, f64), String> {
    let file = File::create(path).map_err(at(path))?;
    let log = Log {
        path: path.to_owned(),
        file,
        processor: 0.0,
    };
    LOG.set(Some(log));
    let result = work();
    let log = LOG.take();
    Ok((result, log.map_or(0.0, |log| log.processor)))
}

/// Runs one step, and prints its name and time.
///
/// # Errors
/// Returns an error if the command cannot be started or fails.
pub(crate) fn step(name: &str, command: &mut Command) -> Result<(), String> {
    report!("== {name}");
    let begun = Instant::now();
    let status = status(command).map_err(|error| {
        let program = command.get_program().to_string_lossy();
        format!("{name}: {program}: {error}")
    })?;
    report!("== {name}: {:.0} s", begun.elapsed().as_secs_f64());
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name} failed"))
    }
}

/// Runs a command. Within a job its output goes to the log, with its processor time.
fn status(command: &mut Command) -> std::io::Result<ExitStatus> {
    let Some((path, file)) = current_log()? else {
        return command.status();
    };
    let mut timed = timed(command);
    let status = timed.stdout(file.try_clone()?).stderr(file).status()?;
    add_processor_seconds(&path)?;
    Ok(status)
}

/// Runs a command, and returns whether it succeeded and what it printed to standard output. Its messages are printed.
///
/// # Errors
/// Returns an error if it cannot be started.
pub(crate) fn captured(command: &mut Command) -> Result<(bool, String), String> {
    let mut run = || {
        let Some((path, file)) = current_log()? else {
            return command.stderr(Stdio::inherit()).output();
        };
        let output = timed(command).stderr(file).output()?;
        add_processor_seconds(&path)?;
        Ok(output)
    };
    let output = run().map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((output.status.success(), text))
}

/// Returns the path and the file of this thread's log.
fn current_log() -> std::io::Result<Option<(PathBuf, File)>> {
    LOG.with_borrow(|log| match log {
        Some(log) => Ok(Some((log.path.clone(), log.file.try_clone()?))),
        None => Ok(None),
    })
}

/// Adds the processor time at the end of the log to that of the job.
fn add_processor_seconds(path: &Path) -> std::io::Result<()> {
    let written = fs::read(path)?;
    let tail = &written[written.len().saturating_sub(200)..];
    let seconds = processor_seconds(&String::from_utf8_lossy(tail)).unwrap_or_default();
    LOG.with_borrow_mut(|log| {
        if let Some(log) = log {
            log.processor += seconds;
        }
    });
    Ok(())
}

/// Returns the command in a shell that prints its processor time at the end of standard error.
fn timed(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(TIMED)
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
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

/// Returns the standard output of a command that succeeds.
///
/// # Errors
/// Returns an error with the output if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(format!("{shown} failed: {text}{messages}"))
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
}
