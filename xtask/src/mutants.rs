//! Mutation testing: makes one small change to the code at a time, and checks that a test detects it.
//!
//! `cargo-mutants` does the work. `.cargo/mutants.toml` lists the equivalent mutants, each with its reason; a test must
//! detect every other one. A mutant that does not build or does not end counts as detected. The listed ones are tried too,
//! and no quick test may detect them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo_tool;
use crate::step::{output, report};
use crate::workspace::{at, read, target};

/// The version of cargo-mutants.
const VERSION: &str = "27.1.0";

/// The settings of cargo-mutants, with the exceptions at the end.
const SETTINGS: &str = ".cargo/mutants.toml";

/// A crate of the parser or the plan, and the rounds of tests that must detect its mutants: first those that detect most of
/// them quickly. A round skips test modules that do not concern the crate or are slow, and has just enough random inputs.
type Subject = (
    &'static str,
    &'static [(&'static str, &'static [(&'static str, &'static str)])],
);

const SUBJECTS: &[Subject] = &[
    (
        "plan",
        &[("contract:: oracle::", &[("PLAN_CASES", "4000")])],
    ),
    (
        "syntax",
        &[
            (
                "bytes:: contract:: dialects:: messages:: parser:: plan::",
                &[("ORACLE_TOKENS", "3"), ("ORACLE_CASES", "2000")],
            ),
            (
                "plan::",
                &[("ORACLE_TOKENS", "4"), ("ORACLE_CASES", "10000")],
            ),
        ],
    ),
];

/// Tries the mutants of the named crate, or of all. Further arguments are passed to `cargo-mutants`.
///
/// # Errors
/// Returns an error if a mutant survives, a listed one does not, or an exception has no reason or matches no mutant.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let named = |subject: &&Subject| words.first() == Some(&subject.0);
    let (subjects, rest) = match SUBJECTS.iter().find(named) {
        Some(subject) => (std::slice::from_ref(subject), &words[1..]),
        None => (SUBJECTS, words),
    };
    let tool = Tool::new(root)?;
    tool.check_exceptions()?;
    let mut wrong = Vec::new();
    for subject in subjects {
        wrong.extend(tool.test(subject, rest)?);
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

/// Returns the result of each mutant: the name of the list in `folder` that contains it.
fn results(folder: &Path) -> BTreeMap<String, &'static str> {
    let mut results = BTreeMap::new();
    for list in ["caught", "timeout", "unviable", "missed"] {
        let path = folder.join("mutants.out").join(list).with_extension("txt");
        let names = fs::read_to_string(path).unwrap_or_default();
        results.extend(names.lines().map(|name| (name.to_owned(), list)));
    }
    results
}

/// Returns a message for each mutant that survived, and for each listed one that a test detected.
fn wrong(results: &BTreeMap<String, &str>, excepted: &[String]) -> Vec<String> {
    let message = |(name, result): (&String, &&str)| match (excepted.contains(name), *result) {
        (true, "caught" | "timeout") => Some(format!(
            "a test detects this mutant, although {SETTINGS} lists it: {name}"
        )),
        (false, "missed") => Some(format!(
            "no test detects this mutant; add a test, remove the code, or list it in {SETTINGS} with a reason: {name}"
        )),
        _ => None,
    };
    results.iter().filter_map(message).collect()
}

struct Tool<'r> {
    program: PathBuf,
    root: &'r Path,
    /// A copy of the settings without the exceptions.
    all: String,
}

impl<'r> Tool<'r> {
    fn new(root: &'r Path) -> Result<Self, String> {
        let program = cargo_tool::installed("cargo-mutants", VERSION, &[])?;
        let folder = target().join("mutants");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let all = folder.join("all.toml");
        let settings = read(&root.join(SETTINGS))?;
        let (settings, _) = settings.split_once("exclude_re").unwrap_or((&settings, ""));
        fs::write(&all, settings).map_err(at(&all))?;
        let all = all.display().to_string();
        Ok(Self { program, root, all })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["mutants", "--colors=never"]).args(arguments);
        // It builds in a copy of the tree, or in several copies with `--jobs`.
        command
            .current_dir(self.root)
            .env_remove("CARGO_TARGET_DIR");
        command
    }

    /// Returns the names of the mutants that these arguments select.
    fn listed(&self, arguments: &[&str]) -> Result<Vec<String>, String> {
        let names = output(self.command(arguments).arg("--list"))?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Returns a message for each mutant of a crate that is wrong.
    fn test(&self, (name, rounds): &Subject, rest: &[&str]) -> Result<Vec<String>, String> {
        let folder = target().join("mutants").join(name);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let place = folder.display().to_string();
        let package = format!("plaincall-{name}");
        let selected = [&["--package", &package, "--output", &place], rest].concat();
        let all = [&selected[..], &["--config", &self.all]].concat();
        let tried = self.listed(&selected)?;
        let mut left = self.listed(&all)?;
        let excepted: Vec<String> = left
            .iter()
            .filter(|name| !tried.contains(name))
            .cloned()
            .collect();
        let mut found = BTreeMap::new();
        for (index, (skipped, environment)) in rounds.iter().enumerate() {
            // Listed mutants are tried in the first round only.
            let mut arguments = if index == 0 {
                all.clone()
            } else {
                selected.clone()
            };
            if index > 0 && !rest.contains(&"--iterate") {
                arguments.push("--iterate");
            }
            let skipped = skipped.split(' ').flat_map(|module| ["--skip", module]);
            let run = std::iter::once("--").chain(skipped);
            let mut command = self.command(&arguments);
            command.args(run.map(|one| format!("--cargo-test-arg={one}")));
            command.envs(environment.iter().copied());
            report!("== mutants of {name}");
            let status = command
                .status()
                .map_err(|error| format!("cargo mutants: {error}"))?;
            let round = results(&folder);
            let untried = left.iter().find(|name| !round.contains_key(*name));
            // These exit statuses mean that a mutant survived, or did not end.
            if !matches!(status.code(), Some(0 | 2 | 3)) || untried.is_some() {
                return Err(format!("not all mutants were tried, {untried:?}: {status}"));
            }
            found.extend(round);
            let is_left = |(name, result): &(&String, &&str)| {
                ["missed", "timeout"].contains(*result) && !excepted.contains(name)
            };
            left = found
                .iter()
                .filter(is_left)
                .map(|(name, _)| name.clone())
                .collect();
            if left.is_empty() {
                break;
            }
        }
        let count = |wanted: &str| {
            let own = found.iter().filter(|(name, _)| !excepted.contains(name));
            own.filter(|(_, result)| **result == wanted).count()
        };
        report!(
            "mutants of {name}: {} tried, {} detected, {} never ended, {} do not build, {} survived; {} are equivalent",
            tried.len(),
            count("caught"),
            count("timeout"),
            count("unviable"),
            count("missed"),
            excepted.len(),
        );
        Ok(wrong(&found, &excepted))
    }

    /// Checks that each exception has its reason above it and matches a mutant.
    fn check_exceptions(&self) -> Result<(), String> {
        let text = read(&self.root.join(SETTINGS))?;
        let packages = SUBJECTS
            .iter()
            .map(|(name, _)| format!("--package=plaincall-{name}"));
        let packages: Vec<String> = packages.collect();
        for (number, pattern) in patterns(&text)? {
            let mut chosen: Vec<&str> = packages.iter().map(String::as_str).collect();
            chosen.extend(["--config", &self.all, "--re", pattern]);
            // Deleted fields are listed for every pattern, and tried despite exceptions.
            if self
                .listed(&chosen)?
                .iter()
                .all(|name| name.contains(": delete field "))
            {
                return Err(format!("{SETTINGS}:{number}: no mutant matches: {pattern}"));
            }
        }
        Ok(())
    }
}

/// Returns the exceptions with their line numbers.
///
/// # Errors
/// Returns an error if there is no reason above an exception.
fn patterns(text: &str) -> Result<Vec<(usize, &str)>, String> {
    let mut found = Vec::new();
    let mut has_reason = false;
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        let pattern = line
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix("',"));
        match pattern {
            Some(pattern) if has_reason => found.push((number, pattern)),
            Some(_) => {
                return Err(format!(
                    "{SETTINGS}:{number}: write the reason of this exception above it"
                ));
            }
            None => has_reason = line.starts_with('#'),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_have_a_reason() {
        let text = "exclude_re = [\n  # Slower.\n  'a',\n  'b',\n]\n";
        assert_eq!(patterns(text).unwrap(), [(3, "a"), (4, "b")]);
        assert!(patterns("exclude_re = [\n  'a',\n]\n").is_err());
        let text = read(&crate::workspace::root().join(SETTINGS)).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("    '"));
        assert_eq!(patterns(&text).unwrap().len(), lines.count());
    }

    #[test]
    fn survivors_are_listed_and_listed_ones_survive() {
        let folder = target().join("tmp/mutants");
        fs::create_dir_all(folder.join("mutants.out")).unwrap();
        for (list, names) in [
            ("caught", "a\nb\n"),
            ("timeout", "c\nd\n"),
            ("unviable", "e\nf\n"),
            ("missed", "g\nh\n"),
        ] {
            let path = folder.join("mutants.out").join(format!("{list}.txt"));
            fs::write(path, names).unwrap();
        }
        let excepted = ["b", "d", "f", "h"].map(str::to_owned);
        let ends: Vec<_> = wrong(&results(&folder), &excepted)
            .iter()
            .map(|message| (message.starts_with("no test"), message.ends_with(": g")))
            .collect();
        assert_eq!(ends, [(false, false), (false, false), (true, true)]);
    }
}
