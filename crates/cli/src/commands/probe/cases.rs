//! `plaincall probe --cases`: the settings that solve most of a user's own questions.

use std::fmt::Write as _;
use std::path::Path;

use plaincall::names::did_you_mean;
use plaincall::tool::{ToolLookup, ToolSpec};
use plaincall_config::settings::{Constrain, Model, Syntax};
use plaincall_probe::{Case, CaseProbe, CaseReport, ExpectedCall, MissedCase, Setup, SetupResult};
use serde_json::json;

use crate::commands::conversation::failure;
use crate::commands::probe::recommendation::{configuration, write};
use crate::commands::probe::subject::Subject;
use crate::commands::probe::table::percent;
use crate::commands::probe::{NO_RESULTS, ProbeOptions};
use crate::output::{Output, is_quiet, write_stderr};
use crate::runtime::block_on;
use crate::sanitize::{sanitize, sanitize_styled};
use crate::status::{Failure, Outcome, Status, print_error, print_note};
use crate::terminal::interrupts::Interrupts;
use crate::tools_file::read_small;

/// The fewest cases: each half needs one.
const FEWEST: usize = 2;
/// The most of an answer that is shown, in characters.
const SHOWN: usize = 60;

pub(super) fn compare(
    file: &Path,
    options: &ProbeOptions,
    mut subject: Subject,
    output: &mut Output,
) -> Outcome {
    let (tools, _) = options.tools.load(None)?;
    let tools: Vec<ToolSpec> = tools.iter().flat_map(ToolLookup::specs).cloned().collect();
    let cases = read_cases(file, &tools)?;
    block_on(async {
        let mut interrupts = Interrupts::new()?;
        let examples = subject.entry.examples.clone();
        let compared = async {
            if let Some(reason) = subject.accept_grammars().await? {
                print_note(&format!("without a grammar: {reason}"));
            }
            let probe = CaseProbe::new(subject.model.clone(), tools, examples, cases);
            let probe = probe.time(options.timeout.0);
            let setups = probe.setups().len();
            print_note(&format!(
                "comparing {setups} settings of {}; no tool is run",
                subject.id
            ));
            let mut asked = 0;
            let report = probe.run(|setup, case, is_right| {
                asked += 1;
                if !is_quiet() {
                    let outcome = if is_right { "right" } else { "wrong" };
                    let question = sanitize(&shortened(&case.question));
                    write_stderr(format_args!("{asked} {setup}: {outcome}: {question}\n"));
                }
            });
            report.await.map_err(|error| failure(&error))
        };
        let report = tokio::select! {
            report = compared => report?,
            interrupt = interrupts.next() => {
                print_note(NO_RESULTS);
                return Ok(Status::Interrupted(interrupt.status()));
            }
        };
        let settings = settings(report.best.setup, &subject);
        let table = configuration(settings.clone(), &subject);
        if options.json {
            output.text(format_args!("{}\n", to_json(&report, &table)))?;
        } else {
            output.text(format_args!("{}", sanitize_styled(&text(&report))))?;
            if report.best.right > 0 {
                output.text(format_args!("\nConfiguration:\n\n{table}"))?;
            }
        }
        output.flush()?;
        if report.best.right == 0 {
            print_error("the model solved none of the cases, with any settings");
            return Ok(Status::Failed);
        }
        if let Some(file) = &options.write {
            write(file, &settings, &subject)?;
        }
        Ok(Status::Success)
    })
}

/// Reads the cases, one on each line.
fn read_cases(file: &Path, tools: &[ToolSpec]) -> Result<Vec<Case>, Failure> {
    let (name, text) = read_small(file)?;
    let mut cases = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let at =
            |message: String| Failure::Runtime(format!("{name}, line {}: {message}", number + 1));
        let case: Case = serde_json::from_str(line).map_err(|error| at(error.to_string()))?;
        if case.question.trim().is_empty() {
            return Err(at("`question` is empty".to_owned()));
        }
        let names = || tools.iter().map(|tool| tool.name.as_str());
        let unknown = case
            .calls
            .iter()
            .find(|call| !names().any(|name| name == call.tool));
        if let Some(call) = unknown {
            let near = did_you_mean(&call.tool, names());
            return Err(at(format!("unknown tool `{}`{near}", call.tool)));
        }
        cases.push(case);
    }
    if cases.len() < FEWEST {
        return Err(Failure::Runtime(format!(
            "{name} has too few cases: half of them choose the settings, the others show the result; write at least {FEWEST}, better 30"
        )));
    }
    Ok(cases)
}

fn settings(setup: Setup, subject: &Subject) -> Model {
    let syntax = if setup.is_emoji {
        Syntax::Emoji
    } else {
        Syntax::Block
    };
    let constrain = subject.entry.constrain.unwrap_or_default();
    let constrain = match (setup.has_grammar, constrain) {
        (false, Constrain::Never) => None,
        (false, _) => Some(Constrain::Never),
        (true, Constrain::Never) => Some(Constrain::Auto),
        (true, constrain) => Some(constrain),
    };
    let has_examples = setup.few_shot > 0 || subject.entry.few_shot() > 0;
    Model {
        syntax: Some(syntax),
        constrain,
        few_shot: has_examples.then(|| u32::try_from(setup.few_shot).unwrap_or(u32::MAX)),
        ..Model::default()
    }
}

/// The result in words.
fn text(report: &CaseReport) -> String {
    let mut text = "The cases that chose the settings:\n".to_owned();
    for result in &report.chosen_from {
        let _ = writeln!(text, "  {}", figures(result));
    }
    let _ = writeln!(text, "\nThe other cases:\n  {}", figures(&report.best));
    if report.default.setup != report.best.setup {
        let _ = writeln!(text, "  {}, the default", figures(&report.default));
        let (best, default) = (report.best.interval(), report.default.interval());
        if best.low <= default.high {
            text.push_str("The intervals overlap: more cases would show whether it is better.\n");
        }
    }
    if !report.missed.is_empty() {
        text.push_str("\nNot solved:\n");
    }
    for missed in &report.missed {
        let _ = writeln!(
            text,
            "  {}\n    expected {}\n    found    {}",
            shortened(&missed.case.question),
            calls(&missed.case.calls),
            found(missed)
        );
    }
    text
}

/// `emoji, 4 examples: 12 of 15 solved (55 to 93 %)`
fn figures(result: &SetupResult) -> String {
    let interval = result.interval();
    format!(
        "{}: {} of {} solved ({} to {} %)",
        result.setup,
        result.right,
        result.cases,
        percent(interval.low),
        percent(interval.high)
    )
}

fn calls(calls: &[ExpectedCall]) -> String {
    if calls.is_empty() {
        return "no call".to_owned();
    }
    let calls: Vec<String> = calls
        .iter()
        .map(|call| format!("{} {}", call.tool, json!(call.arguments)))
        .collect();
    calls.join("; ")
}

fn found(missed: &MissedCase) -> String {
    match &missed.answer {
        Some(answer) if missed.calls.is_empty() => format!("no call: {}", shortened(answer)),
        _ => calls(&missed.calls),
    }
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SHOWN {
        return line;
    }
    line.chars().take(SHOWN - 1).chain(['…']).collect()
}

fn to_json(report: &CaseReport, table: &str) -> serde_json::Value {
    let result = |result: &SetupResult| {
        let Setup {
            is_emoji,
            few_shot,
            has_grammar,
            ..
        } = result.setup;
        let interval = result.interval();
        json!({
            "syntax": if is_emoji { "emoji" } else { "block" },
            "few_shot": few_shot,
            "grammar": has_grammar,
            "cases": result.cases,
            "right": result.right,
            "low": interval.low,
            "high": interval.high,
        })
    };
    let missed = |missed: &MissedCase| {
        json!({
            "question": missed.case.question,
            "expected": missed.case.calls,
            "found": missed.calls,
            "answer": missed.answer,
        })
    };
    json!({
        "chosen_from": report.chosen_from.iter().map(result).collect::<Vec<_>>(),
        "best": result(&report.best),
        "default": result(&report.default),
        "missed": report.missed.iter().map(missed).collect::<Vec<_>>(),
        "configuration": table,
    })
}
