//! `plaincall conform`: test a parser against the examples of the specification.

mod answer;
mod compare;
mod process;

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::commands::conform::process::ParserProcess;
use crate::output::Output;
use crate::runtime::block_on;
use crate::sanitize::sanitize;
use crate::status::{Failure, Outcome, Status};
use crate::terminal::human::count;
use crate::terminal::interrupts::until_interrupted;

/// Test a parser against the examples of the specification.
///
/// Start COMMAND, a parser of one or both syntaxes, and send it each example as one line of JSON on its standard input.
/// The parser answers each with one line of JSON on its standard output. `conformance/README.md` describes both
/// formats.
///
/// Examples of the class `free`, whose result the defining documents leave open, are skipped without `--free`.
///
/// Exit status: 0 if no check failed; 1 if one failed, or the parser exited or timed out; 2 for wrong usage.
#[derive(Args, Debug)]
pub(crate) struct ConformOptions {
    /// The parser and its arguments. Default: print the selected examples, one JSON object per line, and run nothing.
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,

    /// Include the examples whose result the defining documents leave open.
    #[arg(long)]
    free: bool,

    /// Use only the examples whose id starts with this text, such as `emoji` or `block/2.2`. May be repeated.
    #[arg(long, value_name = "PREFIX")]
    id: Vec<String>,

    /// Print all failures. Default: at most ten.
    #[arg(long)]
    full: bool,

    /// The time limit per answer, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,

    /// Act as the parser: answer the lines of standard input with Plaincall's own parser.
    #[arg(long, conflicts_with_all = ["command", "free", "id"])]
    answer: bool,
}

/// The files of examples. The ids of each begin with its name.
const FILES: [&str; 4] = [
    include_str!("../../conformance/common.json"),
    include_str!("../../conformance/block.json"),
    include_str!("../../conformance/emoji.json"),
    include_str!("../../conformance/limits.json"),
];
/// The maximum number of failures that are printed by default.
const FAILURES: usize = 10;

#[derive(Deserialize)]
struct File {
    cases: Vec<Value>,
}

/// The number of checks with each result.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    unsupported: usize,
}

pub(crate) fn conform(options: &ConformOptions, output: &mut Output) -> Outcome {
    if options.answer {
        return answer::answer_lines(output);
    }
    let cases = selected(options)?;
    if cases.is_empty() {
        return Err(Failure::Usage("no example matches the options".to_owned()));
    }
    if options.command.is_empty() {
        for case in &cases {
            output.json_line(case)?;
        }
        output.flush()?;
        return Ok(Status::Success);
    }
    let counts = match block_on(until_interrupted(run(options, &cases, output)))? {
        Ok(counts) => counts,
        Err(interrupt) => return Ok(Status::Interrupted(interrupt.status())),
    };
    let Counts {
        passed,
        failed,
        unsupported,
    } = counts;
    if failed > FAILURES && !options.full {
        let hidden = failed - FAILURES;
        output.text(format_args!(
            "{hidden} more failed; use `--full` to print them\n"
        ))?;
    }
    let examples = count(cases.len(), "example");
    output.text(format_args!(
        "{examples}: {passed} checks passed, {failed} failed, {unsupported} not supported\n"
    ))?;
    output.flush()?;
    Ok(if failed == 0 {
        Status::Success
    } else {
        Status::Failed
    })
}

/// Sends each example to the parser and prints failed checks.
async fn run(
    options: &ConformOptions,
    cases: &[Value],
    output: &mut Output,
) -> Result<Counts, Failure> {
    let mut parser = ParserProcess::start(&options.command, Duration::from_secs(options.timeout))?;
    let mut counts = Counts::default();
    for case in cases {
        let answer = parser.request(&request(case)).await?;
        for check in compare::checks(case, &answer) {
            match check.result {
                compare::Outcome::Passed => counts.passed += 1,
                compare::Outcome::Unsupported => counts.unsupported += 1,
                compare::Outcome::Failed { expected, found } => {
                    counts.failed += 1;
                    if options.full || counts.failed <= FAILURES {
                        let id = case["id"].as_str().unwrap_or_default();
                        output.text(format_args!("{id} {}\n", check.name))?;
                        print_lines(output, "input", &case["input"])?;
                        print_lines(output, "expected", &expected)?;
                        print_lines(output, "found", &found)?;
                        output.text(format_args!("\n"))?;
                    }
                }
            }
        }
    }
    Ok(counts)
}

/// Returns the examples that the options select.
fn selected(options: &ConformOptions) -> Result<Vec<Value>, Failure> {
    let mut cases = Vec::new();
    for file in FILES {
        let file: File = serde_json::from_str(file)
            .map_err(|error| Failure::Runtime(format!("the examples cannot be read: {error}")))?;
        cases.extend(file.cases.into_iter().filter(|case| {
            let id = case["id"].as_str().unwrap_or_default();
            let mut prefixes = options.id.iter();
            let is_chosen = prefixes.any(|prefix| id.starts_with(prefix)) || options.id.is_empty();
            is_chosen && (options.free || case["class"] != "free")
        }));
    }
    Ok(cases)
}

/// Returns the request for the parser: the example without its results.
fn request(case: &Value) -> Value {
    let mut request = json!({"want": compare::result_names(case).collect::<Vec<_>>()});
    for key in ["id", "operation", "dialect", "input", "schema"] {
        if let Some(value) = case.get(key) {
            request[key] = value.clone();
        }
    }
    request
}

/// Prints a value below a heading: the items of a list on separate lines, any other value as JSON.
fn print_lines(output: &mut Output, heading: &str, value: &Value) -> Result<(), Failure> {
    output.text(format_args!("  {heading}\n"))?;
    let items = match value {
        Value::Array(items) if !items.is_empty() => items.as_slice(),
        value => std::slice::from_ref(value),
    };
    for item in items {
        let line = item.to_string();
        output.text(format_args!("    {}\n", sanitize(&line)))?;
    }
    Ok(())
}
