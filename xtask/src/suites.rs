//! Lints and test programs of the workspace: one build for both, and a job for each program.
//!
//! Clippy's compiler builds the tests, so the workspace and its dependencies are compiled only once. `cargo test` runs one
//! program after another, and many tests wait more than they compute; as jobs they run side by side.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

use serde_json::Value;

use crate::pool::Job;
use crate::step::{report, run, step};
use crate::workspace::{
    all_files, has_extension, linting_cargo, no_problems, root, stem, target, write,
};

/// The job that builds all test programs, and the programs that they start.
pub(crate) const BUILD: &str = "build of tests";
/// The job that builds what [`REST`] selects.
pub(crate) const SECOND_BUILD: &str = "build of the rest";

/// The benchmark of the gateway, which soak and drain use, in the build folder. [`BUILD`] builds it.
pub(crate) const BENCH: &str = "debug/plaincall-bench-gateway";

const GROUP: &str = "tests";

/// About how many seconds the slow programs take on one core.
const LONG: &[(&str, u32)] = &[
    ("testkit", 90),
    ("plaincall", 80),
    ("cli", 70),
    ("gateway", 50),
    ("call", 40),
    ("oracle", 30),
    ("examples in documents", 30),
];

/// Test modules that need sockets, a terminal or a separate build, by the folder of their crate. Only `--all` runs them.
const OUTSIDE: &[(&str, &str)] = &[
    ("agent", "builtin::pages:: mcp:: models::"),
    (
        "cli",
        "command::mcp:: command::terminal:: pictures::live_view:: run::pages:: run::talk::terminals:: run::terminal:: serve::",
    ),
    ("gateway", "serving::"),
    ("http", "names_that_may_not_be_asked"),
    // Clippy's compiler words rustc's errors differently.
    ("messages", "of_the_compiler"),
];

/// Tests that measure their whole process, by the folder of their crate. They are marked as ignored, and run in a separate
/// process.
const ALONE: &[(&str, &str)] = &[("plaincall", "dropped:: passed_on::results_are_shared")];

/// The packages of the test build, and its features, which include spans. Arrow and the SDK of Restate take long to build. Groups of their
/// own test what needs them.
const SELECTION: &str = "--workspace --exclude plaincall-table --exclude plaincall-restate --features plaincall/tracing";

/// The packages of the second build: without the first, so that their features do not compile it again.
const REST: &str = "--package plaincall-table --package plaincall-restate --package plaincall-python --package plaincall-decisions --features plaincall-decisions/tables";

/// The share of random cases that the ordinary run has: about a third of those of `--all`.
const SHARE: [(&str, &str); 3] = [
    ("CASES_DIVISOR", "3"),
    ("PROPTEST_CASES", "64"),
    ("ORACLE_CASES", "200000"),
];

/// The messages of cargo about what both builds built.
static BUILT: OnceLock<Vec<Value>> = OnceLock::new();
static REST_BUILT: OnceLock<Vec<Value>> = OnceLock::new();

/// Returns the jobs that build and lint the workspace and run its tests; with `all`, also those that need sockets or a terminal.
pub(crate) fn jobs(all: bool) -> Vec<Job> {
    let build = Job::with_more(GROUP, BUILD, 330, move || built(all));
    let mut jobs = vec![build.gigabytes(4).compiles()];
    if all {
        let rest = Job::new("builds", SECOND_BUILD, 120, build_rest);
        jobs.push(rest.gigabytes(4).compiles());
    }
    jobs
}

/// Returns the command for the test program of the crate in this folder. [`BUILD`] must have passed.
pub(crate) fn program(folder: &str) -> Result<Command, String> {
    named(BUILT.get(), folder)
}

/// Returns the command for a test program of [`SECOND_BUILD`].
pub(crate) fn program_of_rest(folder: &str) -> Result<Command, String> {
    named(REST_BUILT.get(), folder)
}

fn named(built: Option<&Vec<Value>>, folder: &str) -> Result<Command, String> {
    let programs = built.into_iter().flatten().filter_map(Program::new);
    let mut programs = programs.filter(|one| one.is_main() && stem(one.package) == folder);
    let program = programs.next().map(|program| program.command(&[]));
    program.ok_or_else(|| format!("no test program of {folder} was built"))
}

/// Returns the command that tests start, as an absolute path. [`BUILD`] must have passed.
pub(crate) fn plaincall() -> PathBuf {
    target().join("debug/plaincall")
}

/// Builds with clippy's compiler, and returns cargo's messages and the warnings.
fn compiled(words: &str) -> Result<(Vec<Value>, Vec<String>), String> {
    let mut build = linting_cargo(words);
    let output = run(build.args(["--message-format", "json"]), true)?;
    let messages = output.stdout.split(|byte| *byte == b'\n');
    let messages = messages.map(serde_json::from_slice);
    let messages: Vec<Value> = messages.filter_map(Result::ok).collect();
    let warnings = messages
        .iter()
        .map(|message| &message["message"]["rendered"]);
    let warnings = warnings.filter_map(|text| Some(text.as_str()?.to_owned()));
    let mut warnings: Vec<String> = warnings.collect();
    // A library is compiled twice, so each warning appears twice.
    warnings.sort_unstable();
    warnings.dedup();
    if output.status.success() {
        return Ok((messages, warnings));
    }
    Err(format!("it cannot be built\n{}", warnings.join("\n")))
}

/// Builds Arrow's tables with the test of their decisions, the integration of Restate and the extension module of Python.
fn build_rest() -> Result<(), String> {
    let (messages, warnings) = compiled(&format!("build --lib --tests {REST}"))?;
    REST_BUILT.get_or_init(|| messages);
    no_problems("warnings of the build:", &warnings)
}

/// Runs the doc tests of the packages of [`SECOND_BUILD`].
pub(crate) fn examples_of_rest() -> Result<(), String> {
    let mut examples = linting_cargo(&format!("test --doc {REST}"));
    step("examples of tables and Restate", &mut examples)
}

/// Builds everything and returns the jobs of the programs.
fn built(all: bool) -> Result<Vec<Job>, String> {
    let (messages, warnings) = compiled(&format!("test --no-run {SELECTION}"))?;
    // The programs that jobs start.
    let bench = if all {
        "load --bin plaincall-bench-gateway"
    } else {
        "load"
    };
    let programs = format!("build --bin {bench} {SELECTION}");
    step("other programs", &mut linting_cargo(&programs))?;
    // Tests read examples, documents and tables, but no sources of other crates.
    let data = all_files(&root()).into_iter();
    let data = data.filter(|path| !has_extension(path, "rs"));
    let data: String = data.map(|path| state_of(&path)).collect();
    let programs = messages.iter().filter_map(Program::new);
    let mut jobs: Vec<Job> = (programs.flat_map(|program| program.jobs(all, &data))).collect();
    // `--doc` ignores that `interleave` disables its doc tests, which are those of `plaincall` again.
    let examples = format!("test --doc {SELECTION} -- --skip testing/interleave/");
    let examples = linting_cargo(&examples);
    let mut libraries: Vec<&Value> = messages.iter().collect();
    libraries.retain(|message| message["target"]["doctest"] == true);
    let libraries = libraries
        .into_iter()
        .filter_map(|message| message["filenames"][0].as_str());
    let libraries: String = libraries.map(|path| state_of(Path::new(path))).collect();
    let load = target().join("debug/load");
    let load_state = state_of(&load);
    // The tests run nevertheless.
    let warned = move || no_problems("warnings:", &warnings);
    jobs.extend([
        Job::new(GROUP, "warnings of the build", 900, warned),
        job(all, "examples in documents", examples, libraries + &data),
        job(all, "load", Command::new(load), load_state),
    ]);
    BUILT.get_or_init(|| messages);
    Ok(jobs)
}

/// Returns the job that runs a command. An ordinary run does not repeat what passed with the same state: the times and lengths of the
/// program and of the files that it may read.
fn job(all: bool, name: &str, mut command: Command, state: String) -> Job {
    let long = LONG.iter().find(|(long, _)| *long == name);
    let seconds = long.map_or(5, |(_, seconds)| *seconds);
    let title = name.to_owned();
    let record = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let record = target().join("tests-passed").join(record);
    Job::new(GROUP, name, seconds, move || {
        if !all && fs::read_to_string(&record).is_ok_and(|found| found == state) {
            report!("passed before");
            return Ok(());
        }
        command.envs(SHARE.into_iter().filter(|_| !all));
        step(&title, &mut command)?;
        // If that fails, the program runs again next time.
        let _ = write(&record, &state);
        Ok(())
    })
}

/// A test program in a message of cargo.
struct Program<'a> {
    executable: &'a str,
    package: &'a Path,
    source: &'a Path,
}

impl<'a> Program<'a> {
    fn new(message: &'a Value) -> Option<Self> {
        let text = |pointer: &str| message.pointer(pointer)?.as_str();
        if message["profile"]["test"] != true {
            return None;
        }
        let package = Path::new(text("/manifest_path")?).parent()?;
        let source = Path::new(text("/target/src_path")?);
        Some(Self {
            executable: text("/executable")?,
            package,
            source: source.strip_prefix(package).unwrap_or(source),
        })
    }

    fn is_main(&self) -> bool {
        self.source == Path::new("tests/main.rs")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.executable);
        command.args(arguments).current_dir(self.package);
        command.env("CARGO_MANIFEST_DIR", self.package);
        command
    }

    fn jobs(&self, all: bool, data: &str) -> Vec<Job> {
        let folder = stem(self.package);
        let state = state_of(Path::new(self.executable));
        let own = all_files(self.package).into_iter();
        let own: String = own.map(|path| state_of(&path)).collect();
        let state = state + &own + data;
        let suite =
            |name: &str, arguments: &[&str]| job(all, name, self.command(arguments), state.clone());
        if !self.source.starts_with("tests") {
            return vec![suite(&format!("{folder}/{}", self.source.display()), &[])];
        }
        let named = |table: &'static [(&str, &'static str)]| {
            let found = table.iter().find(|(krate, _)| *krate == folder);
            let modules = found.into_iter().map(|(_, modules)| modules);
            modules.flat_map(|modules| modules.split(' '))
        };
        let outside = named(OUTSIDE).filter(|_| !all);
        let skipped: Vec<&str> = outside.flat_map(|module| ["--skip", module]).collect();
        let name = match self.source.file_stem() {
            Some(stem) if !self.is_main() => format!("{folder}/{}", stem.display()),
            _ => folder.clone(),
        };
        let mut jobs = vec![suite(&name, &skipped)];
        let alone = named(ALONE).filter(|_| self.is_main());
        jobs.extend(alone.map(|module| {
            let arguments = [module, "--include-ignored", "--test-threads=1"];
            // "passed before" has no tests.
            suite(&format!("{folder} {module}"), &arguments).least_tests(u64::from(all))
        }));
        jobs
    }
}

/// Returns the name, length and time of one file.
fn state_of(path: &Path) -> String {
    let shown = path.display();
    let Ok(known) = fs::metadata(path) else {
        return format!("{shown} is missing\n");
    };
    let time = known.modified().ok();
    let time = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = time.unwrap_or_default().as_nanos();
    format!("{shown} {} {nanoseconds}\n", known.len())
}
