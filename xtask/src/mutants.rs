//! Mutation testing: makes one small change to the code at a time, and checks that a test detects it.
//!
//! `cargo-mutants` does the work. `.cargo/mutants.toml` lists the equivalent mutants, each with its reason; a test must
//! detect every other one. A mutant that does not build or does not end counts as detected.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::step::report;
use crate::tools;
use crate::workspace::{at, no_problems, read, target};

const VERSION: &str = "27.1.0";

/// The crates, and the rounds of tests that must detect their mutants: first those that detect most of them quickly. A round skips
/// test modules that do not concern the crate or are slow, and has just enough random inputs.
const ROUNDS: [(&str, &str, &str); 3] = [
    ("plan", "contract:: oracle::", "PLAN_CASES=4000"),
    (
        "syntax",
        "bytes:: contract:: dialects:: messages:: parser:: plan::",
        "ORACLE_TOKENS=3 ORACLE_CASES=2000",
    ),
    ("syntax", "plan::", "ORACLE_TOKENS=4 ORACLE_CASES=10000"),
];
const ITERATE: &str = "--iterate";

/// Tries the mutants of the named crate, or of all. Further arguments are passed to `cargo-mutants`.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let (crates, rest) = match words {
        [name @ ("plan" | "syntax"), rest @ ..] => (vec![*name], rest),
        _ => (vec!["plan", "syntax"], words),
    };
    let mut survivors = Vec::new();
    for name in crates {
        survivors.extend(test(root, name, rest)?);
    }
    let title = "add a test, remove the code, or list it in .cargo/mutants.toml with a reason:";
    no_problems(title, &survivors)
}

/// Returns the mutants of a crate that survive all rounds. A round after the first tries those that are left.
fn test(root: &Path, name: &str, words: &[&str]) -> Result<Vec<String>, String> {
    let tool = tools::installed("cargo-mutants", VERSION, "")?;
    let folder = target().join("mutants").join(name);
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let mut iterates = words.contains(&ITERATE);
    let words = words.iter().filter(|word| **word != ITERATE);
    let (mut caught, mut unviable, mut endless, mut missed) = (0, 0, 0, Vec::new());
    for (_, skipped, environment) in ROUNDS.iter().filter(|(of, ..)| *of == name) {
        let mut mutants = Command::new(&tool);
        // It builds in a copy of the tree, or in several copies with `--jobs`.
        mutants.current_dir(root).env_remove("CARGO_TARGET_DIR");
        mutants.args(["mutants", "--colors=never"]);
        mutants.arg(format!("--package=plaincall-{name}"));
        mutants.arg("--output").arg(&folder).args(words.clone());
        mutants.args(iterates.then_some(ITERATE));
        mutants.arg("--cargo-test-arg=--");
        let skipped = skipped.split(' ').flat_map(|module| ["--skip", module]);
        mutants.args(skipped.map(|word| format!("--cargo-test-arg={word}")));
        mutants.envs(environment.split(' ').filter_map(|it| it.split_once('=')));
        report!("== mutants of {name}");
        let status = mutants.status().map_err(|error| error.to_string())?;
        // These exit statuses mean that a mutant survived, or did not end.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            return Err(format!("not all mutants were tried: {status}"));
        }
        let listed = |list: &str| -> Result<Vec<String>, String> {
            let lines = read(&folder.join("mutants.out").join(list))?;
            Ok(lines.lines().map(str::to_owned).collect())
        };
        caught += listed("caught.txt")?.len();
        unviable += listed("unviable.txt")?.len();
        endless = listed("timeout.txt")?.len();
        missed = listed("missed.txt")?;
        if missed.is_empty() && endless == 0 {
            break;
        }
        iterates = true;
    }
    let survived = missed.len();
    report!(
        "mutants of {name}: {caught} detected, {endless} never ended, {unviable} do not build, {survived} survived"
    );
    if words.count() == 0 && caught == 0 {
        return Err(format!("no mutant of {name} was tried"));
    }
    Ok(missed)
}
