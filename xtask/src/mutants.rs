//! Mutation testing: changes the code in one small place after another, and looks whether a test notices.
//!
//! The work is done by `cargo-mutants`. `.cargo/mutants.toml` names the changes that make no difference, each with its
//! reason; every other change must be noticed. A change that builds no program, or one that never ends, is noticed too.

use std::fs;
use std::path::Path;

/// A crate; its own tests decide about a change to it, and some of the oracle's.
struct Subject {
    name: &'static str,
    package: &'static str,
    /// Which tests notice most changes in little time; they are asked first.
    quick: Option<Tests>,
    all: Tests,
}

/// Tests beside those within the crate's sources.
struct Tests {
    /// Which of the oracle.
    oracle: &'static [&'static str],
    /// Whether those in the crate's folder of tests belong to them.
    with_own: bool,
    /// How much those with random inputs draw: as much as finds a change, and no more.
    environment: &'static [(&'static str, &'static str)],
}

const SUBJECTS: &[Subject] = &[
    Subject {
        name: "plan",
        package: "plaincall-plan",
        quick: None,
        all: Tests {
            oracle: &["plan"],
            with_own: true,
            environment: &[("PLAN_CASES", "4000")],
        },
    },
    Subject {
        name: "syntax",
        package: "plaincall-syntax",
        quick: Some(Tests {
            oracle: &["oracle"],
            with_own: false,
            environment: &[("ORACLE_TOKENS", "3"), ("ORACLE_CASES", "2000")],
        }),
        all: Tests {
            oracle: &["contract", "oracle"],
            with_own: true,
            environment: &[("ORACLE_TOKENS", "4"), ("ORACLE_CASES", "10000")],
        },
    },
];

impl Subject {
    /// What is built and run for each change, as cargo's arguments. What does not run need not be built either.
    fn arguments(&self, root: &Path, tests: &Tests) -> Result<Vec<String>, String> {
        let folder = root.join("crates").join(self.name).join("tests");
        let failed = |error| format!("{}: {error}", folder.display());
        let mut names: Vec<String> = tests.oracle.iter().map(|&name| name.to_owned()).collect();
        if tests.with_own {
            for entry in fs::read_dir(&folder).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                if path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file()
                {
                    let stem = path.file_stem().unwrap_or_default();
                    names.push(stem.to_string_lossy().into_owned());
                }
            }
        }
        let tests = names.iter().map(|name| format!("--test={name}"));
        let packages = ["--package=plaincall-oracle", "--lib"].map(str::to_owned);
        Ok(packages.into_iter().chain(tests).collect())
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
    let mut unnoticed = Vec::new();
    for subject in subjects {
        unnoticed.extend(try_changes(root, subject, rest)?);
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
    noticed: usize,
    endless: usize,
    unbuilt: usize,
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
            noticed: of("caught.txt").len(),
            endless: of("timeout.txt").len(),
            unbuilt: of("unviable.txt").len(),
            missed: of("missed.txt"),
        }
    }

    fn total(&self) -> usize {
        self.noticed + self.endless + self.unbuilt + self.missed.len()
    }
}

/// The changes to one crate that nothing noticed.
fn try_changes(root: &Path, subject: &Subject, rest: &[&str]) -> Result<Vec<String>, String> {
    let output = crate::target().join("mutants").join(subject.name);
    fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let folder = output.display().to_string();
    let scope = ["--package", subject.package, "--output", &folder];
    let tried = listed(&[&scope[..], rest].concat())?.len();
    let all = listed(&[&scope[..], rest, &["--no-config"]].concat())?.len();

    let run = |tests: &Tests, expected: usize, more: &[&str]| -> Result<Found, String> {
        let mut command = crate::cargo(&["mutants", "--colors=never"]);
        command
            .args(scope)
            // With `--test-package` for the oracle, the unchanged code would be tried without it.
            .args(
                subject
                    .arguments(root, tests)?
                    .iter()
                    .map(|one| format!("--cargo-arg={one}")),
            )
            .arg(format!("--cargo-arg=--config={RUNNER}"))
            .args(rest)
            .args(more)
            .envs(tests.environment.iter().copied())
            // It builds in a copy of the tree, in several at the same time if it is told to.
            .env_remove("CARGO_TARGET_DIR");
        let ended = crate::step(&format!("mutants of {}", subject.name), &mut command);
        let found = Found::read(&output);
        // It also fails where a change was not noticed or did not end; then all have been tried.
        if found.total() < expected {
            ended?;
            return Err(format!("of {expected} changes not all were tried"));
        }
        Ok(found)
    };
    let mut found = run(subject.quick.as_ref().unwrap_or(&subject.all), tried, &[])?;
    let left = found.endless + found.missed.len();
    if subject.quick.is_some() && left > 0 {
        let again = run(&subject.all, left, &["--iterate"])?;
        found = Found {
            noticed: found.noticed + again.noticed,
            unbuilt: found.unbuilt + again.unbuilt,
            ..again
        };
    }
    println!(
        "mutants of {}: {tried} tried, {} noticed, {} never ended, {} do not build, {} survived; {} make no difference",
        subject.name,
        found.noticed,
        found.endless,
        found.unbuilt,
        found.missed.len(),
        all - tried,
    );
    Ok(found.missed)
}

/// The names of the changes that these arguments choose.
fn listed(arguments: &[&str]) -> Result<Vec<String>, String> {
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
