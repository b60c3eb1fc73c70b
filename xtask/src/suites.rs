//! The test programs of the workspace, several at a time.
//!
//! `cargo test` runs one after another, and many of them wait more than they compute. So cargo builds them and says
//! where they are; they run side by side, those that take longest first, and the examples in the documents beside them.
//! At the end stands what computed most: the machine's other work makes every time longer, but hardly the processor's.

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

/// Programs that take long, and so begin first: the last to end would else run alone.
const LONG: &[&str] = &[
    "oracle/tests/oracle/main.rs",
    "cli/tests/run/main.rs",
    "plaincall/tests/resume/main.rs",
    "examples in documents",
];

/// How many of the dearest programs are named at the end.
const DEAREST: usize = 10;

/// What a suite took of the processor, in seconds, and its name.
type Cost = (f64, String);

/// Builds and runs all tests of the workspace.
///
/// # Errors
/// Names the suites that failed; what they print is printed as soon as each has ended.
pub(crate) fn run() -> Result<(), String> {
    let begun = Instant::now();
    println!("== build of tests");
    let mut suites = built()?;
    suites.sort_by_key(|suite| {
        LONG.iter()
            .position(|name| *name == suite.name)
            .unwrap_or(LONG.len())
    });
    let seconds = begun.elapsed().as_secs_f64();
    println!("== build of tests: {seconds:.0} s");

    let begun = Instant::now();
    println!("== {} test programs", suites.len());
    let waiting = Mutex::new(suites.into_iter());
    let failed = Mutex::new(Vec::new());
    let costs = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        // One more than can compute, for those that wait.
        for _ in 0..=cores {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().ok().and_then(|mut suites| suites.next());
                    let Some(suite) = next else { return };
                    let (has_passed, cost) = passes(&suite);
                    if let Ok(mut costs) = costs.lock() {
                        costs.extend(cost.map(|cost| (cost, suite.name.clone())));
                    }
                    if !has_passed && let Ok(mut failed) = failed.lock() {
                        failed.push(suite.name);
                    }
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    println!("== test programs: {seconds:.0} s");
    tell_dearest(costs.into_inner().map_err(|error| error.to_string())?);
    let failed = failed.into_inner().map_err(|error| error.to_string())?;
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

/// Says which programs computed most.
fn tell_dearest(mut costs: Vec<Cost>) {
    costs.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let all: f64 = costs.iter().map(|(cost, _)| cost).sum();
    println!("== seconds of the processor: {all:.0}, most of them in");
    for (cost, name) in costs.iter().take(DEAREST) {
        println!("{cost:6.1} s  {name}");
    }
}

/// Runs a suite; whether it passed, and its seconds of the processor if they are known.
fn passes(Suite { name, command }: &Suite) -> (bool, Option<f64>) {
    let begun = Instant::now();
    let ran = timed(command).output();
    let seconds = begun.elapsed().as_secs_f64();
    match ran {
        Ok(Output { status, stderr, .. }) if status.success() => {
            println!("{seconds:6.1} s  {name}");
            (true, processor_seconds(&String::from_utf8_lossy(&stderr)))
        }
        Ok(Output { stdout, stderr, .. }) => {
            let [stdout, stderr] =
                [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            println!("{seconds:6.1} s  {name} FAILED\n{stdout}\n{stderr}");
            (false, None)
        }
        Err(error) => {
            println!("{name} could not be started: {error}");
            (false, None)
        }
    }
}

/// The same command in a shell that says at last, on standard error, what it took of the processor.
fn timed(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    let script = "\"$@\"; status=$?; times >&2; exit $status";
    shell.args(["-c", script, "sh"]).arg(command.get_program());
    shell.args(command.get_args()).stdin(Stdio::null());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    let set = command.get_envs();
    shell.envs(set.filter_map(|(name, value)| Some((name, value?))));
    shell
}

/// The sum of the last line of `times`, which is of a shell's children, as in `0m1.50s 1m0.25s`.
fn processor_seconds(stderr: &str) -> Option<f64> {
    let line = stderr.lines().last()?;
    let seconds = line.split_whitespace().map(|time| {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    });
    seconds.sum()
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
            "testing/interleave/",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_of_children_is_in_the_last_line() {
        let table = [
            ("told\n0m0.10s 0m0.20s\n1m1.50s 0m0.25s\n", Some(61.75)),
            ("0m1s 0m2s", Some(3.0)),
            ("no times", None),
            ("", None),
        ];
        for (stderr, expected) in table {
            assert_eq!(processor_seconds(stderr), expected, "{stderr:?}");
        }
    }
}
