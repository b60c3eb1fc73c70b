//! Instruction counts of the parser: another commit compared with the working tree.
//!
//! Instruction counts do not depend on other load, so a change of a few percent is visible. The cases are those of
//! `bench/instructions`, a separate workspace; both versions of `syntax` run the same cases. The tools are installed below
//! the build folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::cargo_tool;
use crate::step::output;
use crate::workspace::{at, cargo, new_folder, read, target};

/// The highest allowed increase of a case, in percent.
const MOST: f64 = 5.0;

/// The folder of the cases.
const CASES: &str = "bench/instructions";

/// Counts for `base`, or for the merge base, and for the working tree.
///
/// # Errors
/// Lists the cases with too high an increase.
pub(crate) fn compare(root: &Path, base: Option<&str>) -> Result<(), String> {
    let valgrind = Command::new("valgrind").arg("--version").output();
    if !valgrind.is_ok_and(|output| output.status.success()) {
        println!("== instructions: SKIPPED, valgrind is not installed");
        return Ok(());
    }
    let base = match base {
        Some(base) => git(
            root,
            &["rev-parse", "--verify", &format!("{base}^{{commit}}")],
        )
        .map_err(|_| format!("there is no commit `{base}`"))?,
        None => default_base(root)?,
    };
    let folder = target().join("instructions");
    let runner = runner(root)?;
    let before = checked_out(root, &base, &folder)?;
    let before = counts(&before, &folder, &runner)?;
    let after = counts(root, &folder, &runner)?;
    let short = base.get(..10).unwrap_or(&base);
    println!(
        "{:<20} {short:>12} {:>12} {:>9}",
        "instructions", "now", "change"
    );
    let mut worse = Vec::new();
    for (name, now) in &after {
        let Some((_, then)) = before.iter().find(|(other, _)| other == name) else {
            return Err(format!("the case {name} was not counted for {short}"));
        };
        let change = change(*then, *now);
        println!("{name:<20} {then:>12} {now:>12} {change:>+7.2} %");
        if change > MOST {
            worse.push(format!("{name} takes {change:.2} % more"));
        }
    }
    if worse.is_empty() {
        Ok(())
    } else {
        let worse = worse.join(", ");
        Err(format!("{worse}; {MOST} % more is allowed"))
    }
}

/// Returns the increase from `then` to `now` in percent.
#[allow(
    clippy::cast_precision_loss,
    reason = "a percentage needs three digits, not sixteen"
)]
fn change(then: u64, now: u64) -> f64 {
    (now as f64 / then as f64 - 1.0) * 100.0
}

/// Returns the merge base with `main`; on `main` itself the commit if files differ from it, otherwise its parent.
fn default_base(root: &Path) -> Result<String, String> {
    let head = git(root, &["rev-parse", "HEAD"])?;
    let main = ["main", "origin/main"];
    let fork = main
        .iter()
        .find_map(|main| git(root, &["merge-base", "HEAD", main]).ok());
    if let Some(fork) = fork.filter(|fork| *fork != head) {
        return Ok(fork);
    }
    let changed = git(root, &["status", "--porcelain", "--", "crates/syntax"])?;
    if changed.is_empty() {
        git(root, &["rev-parse", "HEAD~1"])
    } else {
        Ok(head)
    }
}

/// Returns the program that runs valgrind, in the version of the cases.
fn runner(root: &Path) -> Result<PathBuf, String> {
    let lock = read(&root.join(CASES).join("Cargo.lock"))?;
    let version =
        locked_version(&lock, "gungraun-runner").ok_or("gungraun-runner is not locked")?;
    cargo_tool::installed("gungraun-runner", version, &[])
}

/// Returns the version of a package in the text of a `Cargo.lock`.
fn locked_version<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    rest.split('"').next()
}

/// Extracts the parser of `commit`, with the current cases.
fn checked_out(root: &Path, commit: &str, folder: &Path) -> Result<PathBuf, String> {
    let place = new_folder(&folder.join("base"))?;
    fs::create_dir_all(place.join(CASES).join("benches")).map_err(at(&place))?;
    let archive = place.with_extension("tar");
    let parts = ["Cargo.toml", "crates/syntax"];
    let mut pack = Command::new("git");
    pack.args(["archive", "--output"]).arg(&archive);
    output(pack.arg(commit).args(parts).current_dir(root))?;
    let mut unpack = Command::new("tar");
    output(unpack.arg("-xf").arg(&archive).arg("-C").arg(&place))?;
    for file in ["Cargo.toml", "Cargo.lock", "benches/parser.rs"] {
        let cases = Path::new(CASES).join(file);
        fs::copy(root.join(&cases), place.join(&cases)).map_err(at(&place))?;
    }
    Ok(place)
}

/// Counts the instructions of each case with the parser below `root`.
fn counts(root: &Path, folder: &Path, runner: &Path) -> Result<Vec<(String, u64)>, String> {
    let folder = std::path::absolute(folder).map_err(at(folder))?;
    let mut bench = cargo(&["bench", "--quiet", "--bench", "parser"]);
    bench
        .args(["--", "--output-format", "json"])
        .current_dir(root.join(CASES))
        .env("CARGO_TARGET_DIR", folder.join("build"))
        .env("GUNGRAUN_RUNNER", runner)
        .env("GUNGRAUN_HOME", folder.join("results"));
    let output = output(&mut bench)?;
    let cases: Option<Vec<(String, u64)>> = output.lines().map(count).collect();
    cases
        .filter(|cases| !cases.is_empty())
        .ok_or_else(|| format!("cannot parse the output of gungraun:\n{output}"))
}

/// Returns the name and the instruction count of a case from a line of gungraun's JSON.
fn count(line: &str) -> Option<(String, u64)> {
    let case: Value = serde_json::from_str(line).ok()?;
    let name = case.get("id")?.as_str()?;
    let count = case.pointer("/profiles/0/data/total/metrics/Ir/values/new")?;
    Some((name.to_owned(), count.as_u64()?))
}

fn git(root: &Path, words: &[&str]) -> Result<String, String> {
    let printed = output(Command::new("git").args(words).current_dir(root))?;
    Ok(printed.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_in_the_line() {
        let line = |metrics: &str| {
            format!(
                r#"{{"id":"a_case","profiles":[{{"data":{{"parts":[],"total":{{"metrics":{metrics}}}}}}}]}}"#
            )
        };
        let table = [
            (line(r#"{"Ir":{"values":{"new":51254}}}"#), Some(51_254)),
            (line(r#"{"Ir":{"values":{"new":7,"old":8}}}"#), Some(7)),
            (line(r#"{"Dr":{"values":{"new":7}}}"#), None),
            ("no JSON".to_owned(), None),
        ];
        for (line, expected) in table {
            let found = count(&line);
            assert_eq!(found, expected.map(|count| ("a_case".to_owned(), count)));
        }
    }

    #[test]
    fn the_version_is_that_of_the_package() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\n";
        assert_eq!(locked_version(lock, "b"), Some("2.0.0"));
        assert_eq!(locked_version(lock, "c"), None);
    }
}
