//! The promises of the repository: each with its command and the figure of the last run.
//!
//! `cargo xtask promises` runs every command of `xtask/promises.txt`, which takes long, and rewrites `PROMISES.md`. If a
//! command fails, its promise is broken and nothing is written. `cargo xtask promises WORD` runs the promises whose sentence
//! contains the word, and writes nothing.

use std::env::consts::{ARCH, OS};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::step::output;
use crate::workspace::{command, write};

const PROMISES: &str = include_str!("../promises.txt");

/// A sentence, the command that checks it with its environment, and prefixes of the output lines that contain the figure.
type Promise<'t> = (&'t str, &'t str, Vec<&'t str>);

/// Reads promises that are separated by blank lines. Lines with `#` are comments.
fn promises(text: &str) -> Result<Vec<Promise<'_>>, String> {
    let paragraphs = text.split("\n\n").filter(|text| !text.starts_with('#'));
    let promise = |text| {
        let mut lines = str::lines(text);
        let (sentence, command) = (lines.next()?, lines.next()?.strip_prefix("$ ")?);
        let figure: Option<Vec<_>> = lines.map(|line| line.strip_prefix("> ")).collect();
        Some((sentence, command, figure.filter(|it| !it.is_empty())?))
    };
    let promises = paragraphs.map(|text| {
        promise(text).ok_or_else(|| format!("xtask/promises.txt: not a promise: {text}"))
    });
    promises.collect()
}

/// Runs the promises whose sentence contains `word`, or runs all and writes the table.
pub(crate) fn keep(root: &Path, word: Option<&str>) -> Result<(), String> {
    let commit = output_of("git rev-parse --short HEAD", root)?;
    let date = output_of("date -u +%Y-%m-%d", root)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut table, mut commands) = (String::new(), String::new());
    for (number, (sentence, command, prefixes)) in (1..).zip(promises(PROMISES)?) {
        if word.is_some_and(|word| !sentence.contains(word)) {
            continue;
        }
        println!("== {sentence}");
        let figure = figure(&prefixes, &output_of(command, root)?);
        let figure = figure.ok_or_else(|| format!("`{command}` printed no figure"))?;
        println!("   {figure}");
        let _ = writeln!(
            table,
            "| {number} | {sentence} | {figure} | {date} | {commit} |"
        );
        let _ = writeln!(commands, "| {number} | `{command}` |");
    }
    if word.is_some() {
        return Ok(());
    }
    let page = format!(
        "# Promises\n\n\
         Plaincall's promises beyond its ordinary tests, each with the figure of the last run. `cargo xtask promises` writes this \
         page, and fails if a promise does not hold. The figures are from runs on {cores} cores ({ARCH}, {OS}), which also ran \
         other work.\n\n\
         | | promise | figure | date | commit |\n\
         | --- | --- | --- | --- | --- |\n{table}\n\
         ## Commands\n\n\
         | | command |\n\
         | --- | --- |\n{commands}"
    );
    write(&root.join("PROMISES.md"), page)
}

/// Returns the figure in the output of a promise's command.
fn figure(prefixes: &[&str], output: &str) -> Option<String> {
    let is_figure = |line: &&str| prefixes.iter().any(|prefix| line.starts_with(prefix));
    let lines = output.lines().map(str::trim).filter(is_figure);
    let figures: Vec<String> = lines.map(in_short).collect();
    Some(figures.join("; ")).filter(|figure| !figure.is_empty())
}

/// Shortens the line of a test result to the number of tests and their time.
fn in_short(line: &str) -> String {
    let Some(result) = line.strip_prefix("test result: ok. ") else {
        return line.to_owned();
    };
    let parts = result.split("; ");
    let relevant = parts.filter(|part| part.contains("passed") || part.contains("finished"));
    relevant.collect::<Vec<_>>().join(", ")
}

fn output_of(line: &str, root: &Path) -> Result<String, String> {
    let mut shell = command("sh -c");
    shell.arg(line).current_dir(root).stderr(Stdio::inherit());
    Ok(output(&mut shell)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{read, root};

    #[test]
    fn each_promise_has_a_command_and_a_figure() {
        let text = "# Why.\n\nIt works.\n$ A=1 run it\n> cuts:\n> short\n";
        let promise = ("It works.", "A=1 run it", vec!["cuts:", "short"]);
        assert_eq!(promises(text), Ok(vec![promise]));
        for text in ["It works.", "It works.\n> cuts:", "It works.\n$ run it\n"] {
            assert!(promises(text).is_err(), "{text}");
        }
        let all = promises(PROMISES).unwrap();
        for (sentence, ..) in &all {
            assert!(sentence.split_whitespace().count() <= 15, "{sentence}");
        }
        assert!(
            read(&root().join("PROMISES.md"))
                .unwrap()
                .contains(all[0].1)
        );
        assert_eq!(output_of("A=1 printenv A", &root()).unwrap(), "1");
        assert!(output_of("echo 7; exit 3", &root()).is_err());
    }

    #[test]
    fn the_figure_is_in_the_lines_that_begin_like_it() {
        let output = "more\n  cuts: 7\ntest result: ok. 3 passed; 0 failed; finished in 1.00s\n";
        let expected = "cuts: 7; 3 passed, finished in 1.00s";
        let prefixes = ["test result", "cuts:"];
        assert_eq!(figure(&prefixes, output).unwrap(), expected);
        assert_eq!(figure(&prefixes, "nothing"), None);
    }
}
