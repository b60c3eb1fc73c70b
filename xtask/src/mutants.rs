//! Mutation testing: makes one small change to the code at a time, and checks that a test detects it.
//!
//! `cargo-mutants` does the work. `.cargo/mutants.toml` lists the equivalent mutants, each with its reason; a test must
//! detect every other one. A mutant that does not build or does not end counts as detected. The listed ones are tried too,
//! and no test may detect them.

use crate::workspace::{cargo, target};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// A crate that is mutated. Its own tests and some of the oracle's must detect the mutants.
struct Subject {
    name: &'static str,
    package: &'static str,
    /// The tests that detect most mutants quickly; they run first.
    quick: Option<Tests>,
    all: Tests,
}

/// Tests of the crate and of the oracle.
struct Tests {
    /// Test modules that do not concern the crate, or are slow.
    skipped: &'static [&'static str],
    /// The number of random inputs: just enough to detect mutants.
    environment: &'static [(&'static str, &'static str)],
}

const SUBJECTS: &[Subject] = &[
    Subject {
        name: "plan",
        package: "plaincall-plan",
        quick: None,
        all: Tests {
            skipped: &["contract::", "oracle::"],
            environment: &[("PLAN_CASES", "4000")],
        },
    },
    Subject {
        name: "syntax",
        package: "plaincall-syntax",
        quick: Some(Tests {
            skipped: &[
                "bytes::",
                "contract::",
                "dialects::",
                "messages::",
                "parser::",
                "plan::",
            ],
            environment: &[("ORACLE_TOKENS", "3"), ("ORACLE_CASES", "2000")],
        }),
        all: Tests {
            skipped: &["plan::"],
            environment: &[("ORACLE_TOKENS", "4"), ("ORACLE_CASES", "10000")],
        },
    },
];

impl Subject {
    /// The tests that run first.
    fn first(&self) -> &Tests {
        self.quick.as_ref().unwrap_or(&self.all)
    }
}

impl Tests {
    /// Returns the arguments of `cargo-mutants` that select what is built and run for each mutant.
    fn arguments(&self) -> Vec<String> {
        // With `--test-package` for the oracle, the baseline would run without it.
        let built = ["--package=plaincall-oracle", "--lib", "--test=tests"];
        let built = built.map(|one| format!("--cargo-arg={one}"));
        let skipped = self.skipped.iter().flat_map(|module| ["--skip", module]);
        let run = std::iter::once("--").chain(skipped);
        let run = run.map(|one| format!("--cargo-test-arg={one}"));
        built.into_iter().chain(run).collect()
    }
}

/// The runner of each test program. A mutant can run forever or exhaust the memory, so it is limited to some seconds of
/// processor time, which does not depend on other load, and to 4 GiB.
const RUNNER: &str = "target.'cfg(all())'.runner=['sh', '-c', \
                      'ulimit -t 10; ulimit -v 4194304 2>/dev/null; exec \"$@\"', 'sh']";

const EXCEPTIONS: &str = ".cargo/mutants.toml";

/// Tries the mutants of the named crate, or of all. Further arguments are passed to `cargo-mutants`.
///
/// # Errors
/// Returns an error if a mutant survives, or if an exception matches no mutant.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let named = |subject: &&Subject| words.first() == Some(&subject.name);
    let (subjects, rest) = match SUBJECTS.iter().find(named) {
        Some(subject) => (std::slice::from_ref(subject), &words[1..]),
        None => (SUBJECTS, words),
    };
    let version = cargo(&["mutants", "--version"]).output();
    if !version.is_ok_and(|output| output.status.success()) {
        return Err(
            "cargo-mutants is not installed: cargo install --locked cargo-mutants@27.1.0"
                .to_owned(),
        );
    }
    check_exceptions(root)?;
    for subject in subjects {
        let noticed = try_exceptions(subject, rest)?;
        if !noticed.is_empty() {
            return Err(format!(
                "tests detect these mutants, although {EXCEPTIONS} lists them as equivalent:\n{}",
                noticed.join("\n")
            ));
        }
    }
    let mut unnoticed = Vec::new();
    for subject in subjects {
        unnoticed.extend(try_changes(subject, rest)?);
    }
    if unnoticed.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "no test detects these mutants; add a test, remove the code, or list them in {EXCEPTIONS} with a \
             reason:\n{}",
            unnoticed.join("\n")
        ))
    }
}

/// The results of a run.
struct Found {
    noticed: Vec<String>,
    endless: Vec<String>,
    unbuilt: Vec<String>,
    missed: Vec<String>,
}

impl Found {
    /// Reads the results that `cargo-mutants` wrote to `output`.
    fn read(output: &Path) -> Self {
        let of = |name: &str| -> Vec<String> {
            let path = output.join("mutants.out").join(name);
            let text = fs::read_to_string(path).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        };
        Self {
            noticed: of("caught.txt"),
            endless: of("timeout.txt"),
            unbuilt: of("unviable.txt"),
            missed: of("missed.txt"),
        }
    }

    fn total(&self) -> usize {
        let rest = self.unbuilt.len() + self.missed.len();
        self.noticed.len() + self.endless.len() + rest
    }
}

/// The selection of mutants, and the folder of their results.
struct Scope {
    output: PathBuf,
    /// The arguments of `cargo-mutants`.
    arguments: Vec<String>,
}

impl Scope {
    fn new(name: &str, subject: &Subject, more: &[&str]) -> Result<Self, String> {
        let output = target().join("mutants").join(name);
        fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
        let folder = output.display().to_string();
        let own = ["--package", subject.package, "--output", &folder];
        let arguments = own
            .iter()
            .chain(more)
            .map(|&word| word.to_owned())
            .collect();
        Ok(Self { output, arguments })
    }

    /// Tries `expected` mutants with these tests.
    fn run(
        &self,
        subject: &Subject,
        tests: &Tests,
        expected: usize,
        more: &[&str],
    ) -> Result<Found, String> {
        let mut command = cargo(&["mutants", "--colors=never"]);
        command
            .args(&self.arguments)
            .args(tests.arguments())
            .arg(format!("--cargo-arg=--config={RUNNER}"))
            .args(more)
            .envs(tests.environment.iter().copied())
            // It builds in a copy of the tree, or in several copies with `--jobs`.
            .env_remove("CARGO_TARGET_DIR");
        println!("== mutants of {}", subject.name);
        let status = command
            .status()
            .map_err(|error| format!("cargo mutants: {error}"))?;
        // These exit statuses mean that a mutant survived, or did not end.
        let found = Found::read(&self.output);
        if !matches!(status.code(), Some(0 | 2 | 3)) || found.total() < expected {
            return Err(format!(
                "not all of {expected} mutants were tried: {status}"
            ));
        }
        Ok(found)
    }
}

/// Returns the mutants of a crate that survived.
fn try_changes(subject: &Subject, rest: &[&str]) -> Result<Vec<String>, String> {
    let scope = Scope::new(subject.name, subject, rest)?;
    let tried = listed(&scope.arguments)?.len();
    let excepted = excepted(subject, rest)?.len();
    let mut found = scope.run(subject, subject.first(), tried, &[])?;
    let left = found.endless.len() + found.missed.len();
    if subject.quick.is_some() && left > 0 {
        let iterate = ["--iterate"];
        let more = if rest.contains(&"--iterate") {
            &[]
        } else {
            &iterate[..]
        };
        let again = scope.run(subject, &subject.all, left, more)?;
        found = Found {
            noticed: [found.noticed, again.noticed].concat(),
            unbuilt: [found.unbuilt, again.unbuilt].concat(),
            ..again
        };
    }
    println!(
        "mutants of {}: {tried} tried, {} detected, {} never ended, {} do not build, {} survived; {excepted} are \
         equivalent",
        subject.name,
        found.noticed.len(),
        found.endless.len(),
        found.unbuilt.len(),
        found.missed.len(),
    );
    Ok(found.missed)
}

/// Returns the listed mutants that a quick test detects. Returns none if mutants are selected by name, because the
/// exceptions are selected in the same way here.
fn try_exceptions(subject: &Subject, rest: &[&str]) -> Result<Vec<String>, String> {
    let excepted = excepted(subject, rest)?;
    let by_name = ["--iterate", "--re", "--examine-re", "-F"];
    let is_by_name = |word: &&str| by_name.iter().any(|flag| word.starts_with(flag));
    if excepted.is_empty() || rest.iter().any(is_by_name) {
        return Ok(Vec::new());
    }
    let name = format!("{}-exceptions", subject.name);
    let chosen = excepted
        .iter()
        .map(|name| format!("--re=^{}$", escaped(name)));
    let chosen: Vec<String> = chosen.collect();
    // The profile and timeout of the configuration, which `--no-config` skips together with its exceptions.
    let own = ["--no-config", "--profile=mutants", "--timeout=20"];
    let more: Vec<&str> = own
        .into_iter()
        .chain(chosen.iter().map(String::as_str))
        .collect();
    let scope = Scope::new(&name, subject, &[rest, &more].concat())?;
    let found = scope.run(subject, subject.first(), excepted.len(), &[])?;
    let mut noticed = [found.noticed, found.endless].concat();
    // Deleted fields are tried for every selection.
    noticed.retain(|name| excepted.contains(name));
    Ok(noticed)
}

/// Returns the names of the mutants that `EXCEPTIONS` excludes.
fn excepted(subject: &Subject, rest: &[&str]) -> Result<Vec<String>, String> {
    let scope = ["--package", subject.package];
    let tried: HashSet<String> = listed(&[&scope, rest].concat())?.into_iter().collect();
    let mut all = listed(&[&scope, rest, &["--no-config"]].concat())?;
    all.retain(|name| !tried.contains(name));
    Ok(all)
}

/// Escapes the text for a regular expression.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        // With a backslash, these two would match word boundaries.
        if character.is_ascii_punctuation() && !matches!(character, '<' | '>') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// Returns the names of the mutants that these arguments select.
fn listed(arguments: &[impl AsRef<OsStr>]) -> Result<Vec<String>, String> {
    let output = cargo(&["mutants", "--list", "--colors=never"])
        .args(arguments)
        .output()
        .map_err(|error| format!("cargo mutants: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}

/// Checks that each exception has its reason above it and matches a mutant.
fn check_exceptions(root: &Path) -> Result<(), String> {
    let path = root.join(EXCEPTIONS);
    let text = fs::read_to_string(&path).map_err(|error| format!("{EXCEPTIONS}: {error}"))?;
    let packages = SUBJECTS
        .iter()
        .flat_map(|subject| ["--package", subject.package]);
    let packages: Vec<&str> = packages.collect();
    let mut has_reason = false;
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        let pattern = line
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix("',"));
        let Some(pattern) = pattern else {
            has_reason = line.starts_with('#');
            continue;
        };
        if !has_reason {
            return Err(format!(
                "{EXCEPTIONS}:{number}: write the reason of this exception above it"
            ));
        }
        // Deleted fields are listed for every pattern, and tried despite exceptions.
        let chosen = listed(&[&packages[..], &["--no-config", "--re", pattern]].concat())?;
        if chosen.iter().all(|name| name.contains(": delete field ")) {
            return Err(format!(
                "{EXCEPTIONS}:{number}: no mutant matches: {pattern}"
            ));
        }
    }
    Ok(())
}
