//! The test programs of the workspace, several at a time.
//!
//! `cargo test` runs one after another, and many of them wait more than they compute. So cargo builds them and says
//! where they are; they run side by side, and the examples in the documents beside them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use crate::cargo;

/// A program with tests, or the examples in the documents of all crates.
struct Suite {
    name: String,
    command: Command,
}

/// Builds and runs all tests of the workspace.
///
/// # Errors
/// Names the suites that failed; what they print is printed as soon as each has ended.
pub(crate) fn run() -> Result<(), String> {
    let begun = Instant::now();
    println!("== build of tests");
    let suites = built()?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("== build of tests: {seconds:.0} s");

    let begun = Instant::now();
    println!("== {} test programs", suites.len());
    let waiting = Mutex::new(suites.into_iter());
    let failed = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        // One more than can compute, for those that wait.
        for _ in 0..=cores {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().ok().and_then(|mut suites| suites.next());
                    let Some(suite) = next else { return };
                    if !passes(suite.name.as_str(), suite.command)
                        && let Ok(mut failed) = failed.lock()
                    {
                        failed.push(suite.name);
                    }
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    println!("== test programs: {seconds:.0} s");
    let failed = failed.into_inner().map_err(|error| error.to_string())?;
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

/// Runs a suite; whether it passed.
fn passes(name: &str, mut command: Command) -> bool {
    let begun = Instant::now();
    let ran = command.stdin(Stdio::null()).output();
    let seconds = begun.elapsed().as_secs_f64();
    match ran {
        Ok(Output { status, .. }) if status.success() => {
            println!("{seconds:6.1} s  {name}");
            true
        }
        Ok(Output { stdout, stderr, .. }) => {
            let [stdout, stderr] =
                [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            println!("{seconds:6.1} s  {name} FAILED\n{stdout}\n{stderr}");
            false
        }
        Err(error) => {
            println!("{name} could not be started: {error}");
            false
        }
    }
}

/// Builds everything, and gives what is to be run.
fn built() -> Result<Vec<Suite>, String> {
    let arguments = [
        "test",
        "--workspace",
        "--no-run",
        "--message-format",
        "json-render-diagnostics",
    ];
    let build = cargo(&arguments)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !build.status.success() {
        return Err("the tests cannot be built".to_owned());
    }
    let examples = Suite {
        name: "examples in documents".to_owned(),
        // `--doc` does not heed that `interleave` has switched its own off; they are those of `plaincall` once more.
        command: cargo(&[
            "test",
            "--workspace",
            "--doc",
            "--",
            "--skip",
            "crates/interleave/",
        ]),
    };
    let messages = String::from_utf8_lossy(&build.stdout);
    let mut suites = vec![examples];
    suites.extend(messages.lines().filter_map(suite));
    Ok(suites)
}

/// The program that a message of cargo tells of, if it is one with tests.
fn suite(message: &str) -> Option<Suite> {
    let message: Value = serde_json::from_str(message).ok()?;
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    let is_test = message.pointer("/profile/test").and_then(Value::as_bool);
    let program = text("/executable").filter(|_| is_test == Some(true))?;
    let package = PathBuf::from(text("/manifest_path")?);
    let package = package.parent()?;
    let source = Path::new(text("/target/src_path")?);
    let source = source.strip_prefix(package).unwrap_or(source);
    let folder = package.file_name()?;
    let mut command = Command::new(program);
    command
        .current_dir(package)
        .env("CARGO_MANIFEST_DIR", package);
    Some(Suite {
        name: format!("{}/{}", folder.display(), source.display()),
        command,
    })
}
