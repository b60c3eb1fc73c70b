//! Mutation testing: changes the code in one small place after another, and looks whether a test notices.
//!
//! The work is done by `cargo-mutants`. `.cargo/mutants.toml` names the changes that make no difference, each with its
//! reason; every other change must be noticed. A change that builds no program, or one that never ends, is noticed too.
//! What is named there is tried as well, and must not be noticed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// A crate; its tests decide about a change to it, and some of the oracle's.
struct Subject {
    name: &'static str,
    package: &'static str,
    /// Which tests notice most changes in little time; they are asked first.
    quick: Option<Tests>,
    all: Tests,
}

/// Tests of the crate and of the oracle.
struct Tests {
    /// The modules of tests that have nothing to say of the crate, or take long.
    skipped: &'static [&'static str],
    /// How much those with random inputs draw: as much as finds a change, and no more.
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
    /// The tests that are asked first.
    fn first(&self) -> &Tests {
        self.quick.as_ref().unwrap_or(&self.all)
    }
}

impl Tests {
    /// What is built and run for each change, as arguments of `cargo-mutants`.
    fn arguments(&self) -> Vec<String> {
        // With `--test-package` for the oracle, the unchanged code would be tried without it.
        let built = ["--package=plaincall-oracle", "--lib", "--test=tests"];
        let built = built.map(|one| format!("--cargo-arg={one}"));
        let skipped = self.skipped.iter().flat_map(|module| ["--skip", module]);
        let run = std::iter::once("--").chain(skipped);
        let run = run.map(|one| format!("--cargo-test-arg={one}"));
        built.into_iter().chain(run).collect()
    }
}

/// What starts each test program. A change can make it run for ever, or take all memory there is: it gets some seconds of
/// the processor, which a busy machine does not shorten, and 4 GiB.
const RUNNER: &str = "target.'cfg(all())'.runner=['sh', '-c', \
                      'ulimit -t 10; ulimit -v 4194304 2>/dev/null; exec \"$@\"', 'sh']";

const EXCEPTIONS: &str = ".cargo/mutants.toml";

/// Tries the changes to the crate that is named, or to all. What else is said is passed on to `cargo-mutants`.
///
/// # Errors
/// If a change was not noticed, or an exception stands for no change any more.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let named = |subject: &&Subject| words.first() == Some(&subject.name);
    let (subjects, rest) = match SUBJECTS.iter().find(named) {
        Some(subject) => (std::slice::from_ref(subject), &words[1..]),
        None => (SUBJECTS, words),
    };
    let version = crate::cargo(&["mutants", "--version"]).output();
    if !version.is_ok_and(|output| output.status.success()) {
        return Err(
            "there is no cargo-mutants: cargo install --locked cargo-mutants@27.1.0".to_owned(),
        );
    }
    check_exceptions(root)?;
    for subject in subjects {
        let noticed = try_exceptions(subject, rest)?;
        if !noticed.is_empty() {
            return Err(format!(
                "a test notices these changes, although {EXCEPTIONS} says that they make no difference:\n{}",
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
            "no test notices these changes; add a test, remove the code, or say in {EXCEPTIONS} why they make no \
             difference:\n{}",
            unnoticed.join("\n")
        ))
    }
}

/// What became of the changes of a run.
struct Found {
    noticed: Vec<String>,
    endless: Vec<String>,
    unbuilt: Vec<String>,
    missed: Vec<String>,
}

impl Found {
    /// What `cargo-mutants` has written into `output`.
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

/// Which changes are tried, and where what became of them is written.
struct Scope {
    output: PathBuf,
    /// As arguments of `cargo-mutants`.
    arguments: Vec<String>,
}

impl Scope {
    fn new(name: &str, subject: &Subject, more: &[&str]) -> Result<Self, String> {
        let output = crate::target().join("mutants").join(name);
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

    /// Tries `expected` changes with these tests.
    fn run(
        &self,
        subject: &Subject,
        tests: &Tests,
        expected: usize,
        more: &[&str],
    ) -> Result<Found, String> {
        let mut command = crate::cargo(&["mutants", "--colors=never"]);
        command
            .args(&self.arguments)
            .args(tests.arguments())
            .arg(format!("--cargo-arg=--config={RUNNER}"))
            .args(more)
            .envs(tests.environment.iter().copied())
            // It builds in a copy of the tree, in several at the same time if it is told to.
            .env_remove("CARGO_TARGET_DIR");
        println!("== mutants of {}", subject.name);
        let status = command
            .status()
            .map_err(|error| format!("cargo mutants: {error}"))?;
        // With these numbers it says that a change was not noticed, or did not end.
        let found = Found::read(&self.output);
        if !matches!(status.code(), Some(0 | 2 | 3)) || found.total() < expected {
            return Err(format!(
                "of {expected} changes not all were tried: {status}"
            ));
        }
        Ok(found)
    }
}

/// The changes to one crate that nothing noticed.
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
        "mutants of {}: {tried} tried, {} noticed, {} never ended, {} do not build, {} survived; {excepted} make no \
         difference",
        subject.name,
        found.noticed.len(),
        found.endless.len(),
        found.unbuilt.len(),
        found.missed.len(),
    );
    Ok(found.missed)
}

/// The changes that are said to make no difference, and that a quick test notices all the same. Not where changes are
/// chosen by their names: the exceptions are chosen so here.
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
    // The profile and the times of the file that is left out here with its exceptions.
    let own = ["--no-config", "--profile=mutants", "--timeout=20"];
    let more: Vec<&str> = own
        .into_iter()
        .chain(chosen.iter().map(String::as_str))
        .collect();
    let scope = Scope::new(&name, subject, &[rest, &more].concat())?;
    let found = scope.run(subject, subject.first(), excepted.len(), &[])?;
    let mut noticed = [found.noticed, found.endless].concat();
    // A field that is left out is tried whatever was chosen.
    noticed.retain(|name| excepted.contains(name));
    Ok(noticed)
}

/// The names of the changes that `EXCEPTIONS` takes out of these.
fn excepted(subject: &Subject, rest: &[&str]) -> Result<Vec<String>, String> {
    let scope = ["--package", subject.package];
    let tried: HashSet<String> = listed(&[&scope, rest].concat())?.into_iter().collect();
    let mut all = listed(&[&scope, rest, &["--no-config"]].concat())?;
    all.retain(|name| !tried.contains(name));
    Ok(all)
}

/// As a regular expression that stands for this text alone.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        // With a backslash, these two stand for the edges of words.
        if character.is_ascii_punctuation() && !matches!(character, '<' | '>') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// The names of the changes that these arguments choose.
fn listed(arguments: &[impl AsRef<OsStr>]) -> Result<Vec<String>, String> {
    let output = crate::cargo(&["mutants", "--list", "--colors=never"])
        .args(arguments)
        .output()
        .map_err(|error| format!("cargo mutants: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}

/// Each exception must have its reason above it and stand for some change.
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
                "{EXCEPTIONS}:{number}: an exception without its reason above it"
            ));
        }
        // A field that is left out is listed whatever the pattern, and tried whatever the exception.
        let chosen = listed(&[&packages[..], &["--no-config", "--re", pattern]].concat())?;
        if chosen.iter().all(|name| name.contains(": delete field ")) {
            return Err(format!(
                "{EXCEPTIONS}:{number}: there is no such change any more: {pattern}"
            ));
        }
    }
    Ok(())
}
