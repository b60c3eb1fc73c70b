//! Lints and test programs of the workspace: one build for both, several programs in parallel.
//!
//! Clippy's compiler builds the tests, so the workspace and its dependencies are compiled only once. `cargo test` runs one
//! program after another, and many tests wait more than they compute. So the programs run in parallel, the longest first,
//! together with the doc tests. The summary lists the highest processor times, which hardly depend on other load.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

use crate::passed;
use crate::step::report;
use crate::workspace::{linting_cargo, root, target};

/// A test program, or the doc tests of all crates.
struct Suite {
    name: String,
    command: Command,
    /// Its fingerprint. A program that passed with the same fingerprint does not run again.
    state: String,
}

/// Slow programs, which start first so that none runs alone at the end.
const LONG: &[&str] = &[
    "oracle",
    "cli",
    "gateway",
    "plaincall",
    "examples in documents",
];

/// Test modules that need sockets, a terminal or a separate build, by the folder of their crate. Only `--all` runs them.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("agent", &["builtin::pages::", "mcp::", "models::"]),
    (
        "cli",
        &[
            "command::mcp::",
            "command::terminal::",
            "pictures::live_view::",
            "run::pages::",
            "run::talk::terminals::",
            "run::terminal::",
            "serve::",
        ],
    ),
    ("gateway", &["serving::"]),
    ("http", &["names_that_may_not_be_asked"]),
    // Clippy's compiler words rustc's errors differently.
    ("messages", &["of_the_compiler"]),
];

/// Tests that measure their whole process, by the folder of their crate. They are marked as ignored, and run in a separate
/// process.
const ALONE: &[(&str, &[&str])] = &[("plaincall", &["dropped::", "passed_on::results_are_shared"])];

/// The features of the test build, which include spans.
const FEATURES: [&str; 2] = ["--features", "plaincall/tracing"];
/// Arrow and the SDK of Restate take long to build. Groups of their own test what needs them.
const WITHOUT: [&str; 4] = [
    "--exclude",
    "plaincall-table",
    "--exclude",
    "plaincall-restate",
];

/// The number of programs in the summary.
const DEAREST: usize = 10;

/// The processor time of a suite in seconds, and its name.
type Cost = (f64, String);

/// Builds and lints the workspace and runs its tests; with `all`, also those that need sockets or a terminal.
///
/// # Errors
/// Lists the failed suites. Their output is printed as soon as each ends.
pub(crate) fn run(all: bool) -> Result<(), String> {
    let begun = Instant::now();
    report!("== lints, build of tests");
    let mut suites = built(all)?;
    suites.sort_by_key(|suite| {
        LONG.iter()
            .position(|name| *name == suite.name)
            .unwrap_or(LONG.len())
    });
    let seconds = begun.elapsed().as_secs_f64();
    report!("== lints, build of tests: {seconds:.0} s");

    let begun = Instant::now();
    report!("== {} test programs", suites.len());
    let waiting = Mutex::new(suites.into_iter());
    let failed = Mutex::new(Vec::new());
    let costs = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        // One more than there are cores, because some wait.
        for _ in 0..=cores {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().ok().and_then(|mut suites| suites.next());
                    let Some(suite) = next else { return };
                    if !all && passed::has(&suite.name, &suite.state) {
                        report!("passed before  {}", suite.name);
                        continue;
                    }
                    let (has_passed, cost) = passes(&suite);
                    if has_passed {
                        passed::note(&suite.name, &suite.state);
                    }
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
    report!("== test programs: {seconds:.0} s");
    print_dearest(costs.into_inner().map_err(|error| error.to_string())?);
    let failed = failed.into_inner().map_err(|error| error.to_string())?;
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

/// Prints the programs with the highest processor times.
fn print_dearest(mut costs: Vec<Cost>) {
    costs.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let all: f64 = costs.iter().map(|(cost, _)| cost).sum();
    report!("== processor seconds: {all:.0}, most of them in");
    for (cost, name) in costs.iter().take(DEAREST) {
        report!("{cost:6.1} s  {name}");
    }
}

/// Runs a suite. Returns whether it passed, and its processor seconds if known.
fn passes(Suite { name, command, .. }: &Suite) -> (bool, Option<f64>) {
    let begun = Instant::now();
    let ran = timed(command).output();
    let seconds = begun.elapsed().as_secs_f64();
    match ran {
        Ok(Output { status, stderr, .. }) if status.success() => {
            report!("{seconds:6.1} s  {name}");
            (true, processor_seconds(&String::from_utf8_lossy(&stderr)))
        }
        Ok(Output { stdout, stderr, .. }) => {
            let [stdout, stderr] =
                [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            report!("{seconds:6.1} s  {name} FAILED\n{stdout}\n{stderr}");
            (false, None)
        }
        Err(error) => {
            report!("{name} could not be started: {error}");
            (false, None)
        }
    }
}

/// Wraps the command in a shell that prints its processor time to standard error at the end.
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

/// Returns the sum of the last line of `times`, for the children of a shell, as in `0m1.50s 1m0.25s`.
fn processor_seconds(stderr: &str) -> Option<f64> {
    let line = stderr.lines().last()?;
    let seconds = line.split_whitespace().map(|time| {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    });
    seconds.sum()
}

/// Builds everything and returns the suites.
fn built(all: bool) -> Result<Vec<Suite>, String> {
    let arguments = [
        "test",
        "--workspace",
        "--no-run",
        "--message-format",
        "json",
    ];
    let build = linting_cargo(&arguments)
        .args(WITHOUT)
        .args(FEATURES)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let messages = String::from_utf8_lossy(&build.stdout);
    let messages: Vec<Value> = messages
        .lines()
        .filter_map(|message| serde_json::from_str(message).ok())
        .collect();
    let mut warnings: Vec<&str> = messages
        .iter()
        .filter_map(|message| message.pointer("/message/rendered")?.as_str())
        .collect();
    // A library is compiled twice, so each warning appears twice.
    warnings.sort_unstable();
    warnings.dedup();
    for warning in &warnings {
        report!("{warning}");
    }
    if !build.status.success() || !warnings.is_empty() {
        return Err("the workspace has warnings or cannot be built".to_owned());
    }
    // `--doc` ignores that `interleave` disables its doc tests, which are those of `plaincall` again.
    let mut examples = linting_cargo(&["test", "--workspace", "--doc"]);
    examples.args(WITHOUT).args(FEATURES);
    examples.args(["--", "--skip", "testing/interleave/"]);
    let libraries = messages.iter().filter(|message| {
        message.pointer("/target/doctest").and_then(Value::as_bool) == Some(true)
    });
    let libraries = libraries.filter_map(|message| message.pointer("/filenames/0")?.as_str());
    let libraries: String = libraries
        .map(|path| passed::of_file(Path::new(path)))
        .collect();
    let mut load = linting_cargo(&["build", "--workspace", "--bin", "load"]);
    if !load
        .args(FEATURES)
        .status()
        .is_ok_and(|status| status.success())
    {
        return Err("`load` cannot be built".to_owned());
    }
    let load = target().join("debug/load");
    let data = passed::of_data(&root());
    let mut suites = vec![
        Suite {
            name: "examples in documents".to_owned(),
            state: libraries + &data,
            command: examples,
        },
        Suite {
            name: "load".to_owned(),
            state: passed::of_file(&load),
            command: Command::new(load),
        },
    ];
    let programs = messages
        .iter()
        .flat_map(|message| suites_of(message, all, &data));
    suites.extend(programs);
    Ok(suites)
}

/// Returns the command for the program in a message of cargo, if it is a test program.
fn suites_of(message: &Value, all: bool, data: &str) -> Vec<Suite> {
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    let is_test = message.pointer("/profile/test").and_then(Value::as_bool);
    let (Some(program), Some(manifest), Some(source)) = (
        text("/executable").filter(|_| is_test == Some(true)),
        text("/manifest_path"),
        text("/target/src_path"),
    ) else {
        return Vec::new();
    };
    let package = Path::new(manifest).parent().unwrap_or(Path::new(""));
    let folder = package.file_name().unwrap_or_default().to_string_lossy();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(package)
            .env("CARGO_MANIFEST_DIR", package);
        command
    };
    let state = [
        passed::of_file(Path::new(program)),
        passed::of_folder(package),
        data.to_owned(),
    ]
    .concat();
    let source = Path::new(source);
    let source = source.strip_prefix(package).unwrap_or(source);
    if !source.starts_with("tests") {
        let name = format!("{folder}/{}", source.display());
        let command = command(&[]);
        return vec![Suite {
            name,
            command,
            state,
        }];
    }
    let named = |table: &'static [(&str, &[&str])]| {
        let found = table.iter().find(|(krate, _)| *krate == folder);
        found.map_or(&[][..], |(_, modules)| modules)
    };
    let outside = named(OUTSIDE).iter().filter(|_| !all);
    let skipped: Vec<&str> = outside.flat_map(|module| ["--skip", module]).collect();
    let is_main = source == Path::new("tests/main.rs");
    let name = match source.file_stem() {
        Some(stem) if !is_main => format!("{folder}/{}", stem.display()),
        _ => folder.clone().into_owned(),
    };
    let mut suites = vec![Suite {
        name,
        command: command(&skipped),
        state: state.clone(),
    }];
    let alone = named(ALONE).iter().filter(|_| is_main);
    suites.extend(alone.map(|module| Suite {
        name: format!("{folder} {module}"),
        command: command(&[module, "--include-ignored", "--test-threads=1"]),
        state: state.clone(),
    }));
    suites
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
        for (stderr, expected) in table {
            assert_eq!(processor_seconds(stderr), expected, "{stderr:?}");
        }
    }
}
