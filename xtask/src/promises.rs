//! The promises of the repository: each with its command and the figure of the last run.
//!
//! `cargo xtask promises` runs every command of `xtask/promises.txt`, which takes long, and rewrites `PROMISES.md`. If a
//! command fails, its promise is broken and nothing is written. `cargo xtask promises WORD` runs the promises whose sentence
//! contains the word, and writes nothing.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::step::output;
use crate::workspace::at;

const PROMISES: &str = include_str!("../promises.txt");

/// One promise.
#[derive(Debug, PartialEq)]
struct Promise<'t> {
    /// The promise.
    sentence: &'t str,
    /// The command that checks it, with its environment.
    command: &'t str,
    /// Prefixes of the output lines that contain the figure.
    figure: Vec<&'t str>,
}

/// Reads promises that are separated by blank lines. Lines with `#` are comments.
///
/// # Errors
/// Returns an error with a paragraph that is not a sentence, a command and figures.
fn promises(text: &str) -> Result<Vec<Promise<'_>>, String> {
    let paragraphs = text.split("\n\n").filter(|text| !text.starts_with('#'));
    let promise = |text| {
        let mut lines = str::lines(text);
        let sentence = lines.next()?;
        let command = lines.next()?.strip_prefix("$ ")?;
        let figure: Option<Vec<_>> = lines.map(|line| line.strip_prefix("> ")).collect();
        let figure = figure.filter(|figure| !figure.is_empty())?;
        Some(Promise {
            sentence,
            command,
            figure,
        })
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
    let machine = machine();
    let mut table = String::new();
    for promise in promises(PROMISES)? {
        if word.is_some_and(|word| !promise.sentence.contains(word)) {
            continue;
        }
        println!("== {}", promise.sentence);
        let output = output_of(promise.command, root)?;
        let figure = figure(&promise, &output)?;
        println!("   {figure}");
        let _ = writeln!(
            table,
            "| {} | {figure} | `{}` | {date} | {commit} |",
            promise.sentence, promise.command
        );
    }
    if word.is_some() {
        return Ok(());
    }
    let page = format!(
        "# Promises\n\n\
         Plaincall's promises beyond its ordinary tests, with the figure of the last run and the command to repeat it. \
         `cargo xtask promises` writes this page, and fails if a promise does not hold. The figures are from one run on \
         {machine}, which also ran other work.\n\n\
         | promise | figure | command | date | commit |\n\
         | --- | --- | --- | --- | --- |\n{table}"
    );
    let path = root.join("PROMISES.md");
    fs::write(&path, page).map_err(at(&path))
}

/// Returns the figure in the output of a promise's command.
fn figure(promise: &Promise<'_>, output: &str) -> Result<String, String> {
    let figures: Vec<String> = output
        .lines()
        .map(str::trim)
        .filter(|line| {
            promise
                .figure
                .iter()
                .any(|figure| line.starts_with(*figure))
        })
        .map(in_short)
        .collect();
    if figures.is_empty() {
        return Err(format!("`{}` printed no figure", promise.command));
    }
    Ok(figures.join("; "))
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

/// Returns the standard output of a command line that succeeds.
fn output_of(line: &str, root: &Path) -> Result<String, String> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(root);
    Ok(output(command.stderr(Stdio::inherit()))?.trim().to_owned())
}

fn machine() -> String {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let architecture = std::env::consts::ARCH;
    let system = std::env::consts::OS;
    format!("{count} cores ({architecture}, {system})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_promise_has_a_command_and_a_figure() {
        let text = "# Why.\n\nIt works.\n$ A=1 run it\n> cuts:\n> short\n";
        let promise = Promise {
            sentence: "It works.",
            command: "A=1 run it",
            figure: vec!["cuts:", "short"],
        };
        assert_eq!(promises(text), Ok(vec![promise]));
        for text in ["It works.", "It works.\n> cuts:", "It works.\n$ run it\n"] {
            assert!(promises(text).is_err(), "{text}");
        }
        let all = promises(PROMISES).unwrap();
        let page = fs::read_to_string(crate::workspace::root().join("PROMISES.md")).unwrap();
        assert!(page.contains(all[0].command));
    }

    #[test]
    fn the_figure_is_in_the_lines_that_begin_like_it() {
        let text = "It works.\n$ run it\n> test result\n> cuts:\n";
        let promise = &promises(text).unwrap()[0];
        let output = "more\n  cuts: 7\ntest result: ok. 3 passed; 0 failed; finished in 1.00s\n";
        let expected = "cuts: 7; 3 passed, finished in 1.00s";
        assert_eq!(figure(promise, output).unwrap(), expected);
        assert!(figure(promise, "nothing").is_err());
    }

    #[test]
    fn a_broken_promise_is_an_error() {
        let root = crate::workspace::root();
        assert_eq!(output_of("A=1 printenv A", &root).unwrap(), "1");
        assert!(output_of("echo 7; exit 3", &root).is_err());
    }
}
