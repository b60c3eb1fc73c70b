//! `plaincall check`: what is wrong in a text, and what to do about it.

mod every_split;
mod progress;
mod sameness;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plaincall_call::{Severity, Span};
use plaincall_syntax::Dialect;
use serde::Serialize;

use crate::commands::check::every_split::{Disagreement, Effort, Group, Proof};
use crate::commands::check::progress::Progress;
use crate::commands::check::sameness::Difference;
use crate::environment::Environment;
use crate::options::Color;
use crate::options::number::seed;
use crate::options::{DialectOptions, SchemaOption};
use crate::output::Output;
use crate::status::{Failure, Interruption, Outcome, Status, complain};
use crate::terminal::excerpt::{Excerpts, Remark};
use crate::text::advice::{CHUNKS_MATTER, advice};
use crate::text::findings::{Findings, Found, counted};
use crate::text::input::{Input, or_standard};
use crate::text::rejections::AsRun;
use crate::text::source::{Counter, Source};
use crate::visible::harmless;

/// Show what is wrong in a text, underlined in the source.
///
/// It names every diagnostic with its line and column, near misses of markers, calls in other formats, and what `run`
/// rejects: calls without an end marker, calls that depend on themselves or on each other. With `--schema` also unknown
/// tools, missing arguments and arguments that are not what the definition of the tool asks for. Without it, what
/// depends on the tool is a warning.
///
/// The text is judged as `run` judges a file: `<think>` at its beginning opens reasoning.
///
/// With `--every-split` it also proves for this text that it does not matter in which chunks it arrives.
///
/// Exit status: 0 without errors, warnings or not; 1 with errors, if chunks matter, or if a file could not be read; 130
/// after Ctrl-C.
#[derive(Args, Debug)]
pub(crate) struct CheckOptions {
    /// The texts to check; `-` or none is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// What to print: `text` for people, or `json`, one object a text.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: CheckFormat,

    /// Exit with status 1 on warnings too.
    #[arg(long)]
    pub(crate) deny_warnings: bool,

    /// Read the text again in many ways of chunks, and hold the events and calls of each against those of the whole.
    ///
    /// One byte at a time, and split in two at every byte, inside of characters too. Up to 512 bytes also at every pair of
    /// bytes; above that at random places as well. Where every split would take too long (above 16 KiB), splits are spread
    /// evenly, and chunks of 64 bytes begin once at every byte. What was tried is printed.
    #[arg(long)]
    pub(crate) every_split: bool,

    /// Where the random places of `--every-split` begin: another number gives others.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        value_parser = seed,
        requires = "every_split"
    )]
    pub(crate) seed: u64,

    /// Read `<think>` as text, as `run --no-reasoning` does.
    #[arg(long, conflicts_with_all = ["reasoning", "in_reasoning"])]
    pub(crate) no_reasoning: bool,

    #[command(flatten)]
    pub(crate) schema: SchemaOption,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

/// What `check` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// The source with what was found underlined.
    Text,
    /// One JSON object a text: `file`, `calls`, `errors`, `warnings`, and `diagnostics` with `code`, `severity`, `span`,
    /// `line`, `column`, `message`, and where there is one `pointer`, `help` and `meant`. `every_split`, if it was asked for,
    /// has `agrees`, `interrupted`, `ways`, `cuts` (each with `cut`, `ways` and `all`), and `disagreement` with `way`,
    /// `place`, `whole` and `cut`.
    Json,
}

pub(crate) fn check(options: &CheckOptions, color: Color) -> Outcome {
    let interruption = Interruption::new();
    let output = &mut Output::new(color);
    let mut progress = Progress::new(color, &Environment::read());
    let dialect = options.dialect.dialect()?;
    let reply = options.dialect.of_reply(options.no_reasoning)?;
    let (tools, unclosed) = options.schema.load_with_unclosed(&options.files)?;
    let run = AsRun {
        dialect: &reply,
        tools: tools.as_ref(),
        unclosed,
    };
    let mut status = Status::Good;
    for file in or_standard(&options.files) {
        let report = Input::open(&file).and_then(|input| {
            let name = input.name.clone();
            let bytes = input.into_bytes()?;
            let proof = options.every_split.then(|| {
                Proof::attempt(
                    &bytes,
                    &dialect,
                    Effort::USUAL,
                    options.seed,
                    &mut progress,
                    &interruption,
                )
            });
            let proof = proof.transpose()?;
            let source = Source::new(name, bytes);
            Report::new(source, &dialect, run, proof)
        });
        let report = match report {
            Ok(report) => report,
            Err(Failure::Broken(message)) => {
                complain(&message);
                status = Status::Wrong;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        if report.errors > 0
            || (options.deny_warnings && report.warnings > 0)
            || report.is_disproved()
        {
            status = Status::Wrong;
        }
        let written = match options.format {
            CheckFormat::Text => report.write(output),
            CheckFormat::Json => output.json_line(&report.json()),
        };
        match written.and_then(|()| output.flush()) {
            // Nobody reads on, but what was found still decides the exit status.
            Err(Failure::ClosedPipe) => return Ok(status),
            other => other?,
        }
        if interruption.has_come() {
            return Ok(Interruption::status());
        }
    }
    Ok(status)
}

/// What was found in a text.
struct Report {
    source: Source,
    calls: usize,
    /// In the order in which they begin in the text.
    remarks: Vec<Found>,
    errors: usize,
    warnings: usize,
    /// What came of reading it in many ways, if that was asked for.
    proof: Option<Proof>,
}

impl Report {
    fn new(
        source: Source,
        dialect: &Dialect,
        run: AsRun<'_>,
        proof: Option<Proof>,
    ) -> Result<Self, Failure> {
        let Findings { calls, remarks, .. } = Findings::of(&source, dialect, run)?;
        let errors = remarks
            .iter()
            .filter(|found| found.finding.is_error())
            .count();
        Ok(Self {
            calls,
            errors,
            warnings: remarks.len() - errors,
            remarks,
            source,
            proof,
        })
    }

    /// Whether the text says something else where it comes in other chunks.
    fn is_disproved(&self) -> bool {
        let proof = self.proof.as_ref();
        proof.is_some_and(|proof| proof.disagreement.is_some())
    }

    /// For people.
    fn write(&self, output: &mut Output) -> Result<(), Failure> {
        let excerpts = Excerpts::new(output.has_color);
        let mut counter = Counter::new(self.source.text.as_bytes());
        for Found { finding, help, .. } in &self.remarks {
            let remark = Remark {
                severity: finding.severity,
                code: Some(finding.code),
                message: &finding.message,
                help: help.as_deref(),
                span: finding.span.range(),
                position: counter.position(finding.span.start),
            };
            let text = excerpts.render(&self.source.name, &self.source.text, &remark);
            output.text(format_args!("{text}\n\n"))?;
        }
        let Self {
            calls,
            errors,
            warnings,
            ..
        } = *self;
        output.text(format_args!(
            "{}: {}, {}, {}\n",
            harmless(&self.source.name),
            counted(calls, "call"),
            counted(errors, "error"),
            counted(warnings, "warning"),
        ))?;
        match &self.proof {
            Some(proof) => self.write_proof(proof, output),
            None => Ok(()),
        }
    }

    /// What was proven, for people.
    fn write_proof(&self, proof: &Proof, output: &mut Output) -> Result<(), Failure> {
        let name = &self.source.name;
        let ways = proof.ways();
        if let Some(Disagreement { difference, way }) = &proof.disagreement {
            let place = self.source.in_text(difference.place);
            let help = advice(CHUNKS_MATTER, None, "");
            let message = "this is read differently where the text comes in other chunks";
            let remark = Remark {
                severity: Severity::Error,
                code: Some(CHUNKS_MATTER),
                message,
                help: help.as_deref(),
                span: place..place,
                position: Counter::new(self.source.text.as_bytes()).position(place),
            };
            let text = Excerpts::new(output.has_color).render(name, &self.source.text, &remark);
            let Difference { whole, cut, .. } = difference;
            return output.text(format_args!(
                "\n{text}\n\nas a whole: {whole}\n{way}: {cut}\n{ways} ways before this one were read the same\n"
            ));
        }
        let took = proof.took.as_secs_f64();
        let what = match ways {
            _ if proof.is_interrupted => {
                "interrupted; so far all ways to cut it into chunks were read the same"
            }
            0 => "there is no way to cut it into chunks",
            _ => "how it is cut into chunks does not matter",
        };
        let name = harmless(name);
        output.text(format_args!("{name}: {what} ({took:.1} s)\n"))?;
        for group in &proof.groups {
            let ways = grouped(group.ways);
            output.text(format_args!("{ways:>12}  {}\n", group.words))?;
        }
        Ok(())
    }

    /// For programs.
    fn json(&self) -> JsonReport<'_> {
        let mut counter = Counter::new(self.source.text.as_bytes());
        let diagnostics = self.remarks.iter().map(|found| {
            let Span { start, end } = found.finding.span;
            let (line, column) = counter.position(start);
            JsonRemark {
                code: found.finding.code,
                severity: found.finding.severity.name(),
                span: (self.source.in_bytes(start), self.source.in_bytes(end)),
                line,
                column,
                pointer: found.pointer.as_deref(),
                message: &found.finding.message,
                help: found.help.as_deref(),
                meant: found.meant.as_deref(),
            }
        });
        JsonReport {
            file: &self.source.name,
            calls: self.calls,
            errors: self.errors,
            warnings: self.warnings,
            diagnostics: diagnostics.collect(),
            every_split: self.proof.as_ref().map(JsonProof::new),
        }
    }
}

#[derive(Serialize)]
struct JsonReport<'a> {
    file: &'a str,
    calls: usize,
    errors: usize,
    warnings: usize,
    diagnostics: Vec<JsonRemark<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every_split: Option<JsonProof<'a>>,
}

/// What reading the text in many ways came to.
#[derive(Serialize)]
struct JsonProof<'a> {
    agrees: bool,
    interrupted: bool,
    ways: usize,
    cuts: &'a [Group],
    #[serde(skip_serializing_if = "Option::is_none")]
    disagreement: Option<JsonDisagreement<'a>>,
}

#[derive(Serialize)]
struct JsonDisagreement<'a> {
    way: &'a str,
    place: usize,
    whole: &'a str,
    cut: &'a str,
}

impl<'a> JsonProof<'a> {
    fn new(proof: &'a Proof) -> Self {
        let disagreement = proof.disagreement.as_ref();
        Self {
            agrees: disagreement.is_none(),
            interrupted: proof.is_interrupted,
            ways: proof.ways(),
            cuts: &proof.groups,
            disagreement: disagreement.map(|Disagreement { difference, way }| JsonDisagreement {
                way,
                place: difference.place,
                whole: &difference.whole,
                cut: &difference.cut,
            }),
        }
    }
}

#[derive(Serialize)]
struct JsonRemark<'a> {
    code: &'a str,
    severity: &'a str,
    span: (usize, usize),
    line: usize,
    column: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meant: Option<&'a str>,
}

/// A number with its digits in groups of three.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plaincall_call::Unclosed;
    use plaincall_syntax::Dialect;
    use serde_json::{Value, json};

    use super::{AsRun, Difference, Disagreement, Proof, Report};
    use crate::text::source::Source;

    /// Whether the exit status tells of it, and what programs are told.
    fn check(proof: Proof, is_disproved: bool, expected: &Value) {
        let source = Source::new("reply.txt".to_owned(), b"ab".to_vec());
        let dialect = &Dialect::auto();
        let run = AsRun {
            dialect,
            tools: None,
            unclosed: Unclosed::Reject,
        };
        let report = Report::new(source, dialect, run, Some(proof)).unwrap();
        assert_eq!(report.is_disproved(), is_disproved, "{expected}");
        let told = serde_json::to_value(report.json()).unwrap();
        assert_eq!(told["every_split"], *expected);
    }

    fn proof(is_interrupted: bool) -> Proof {
        Proof {
            groups: Vec::new(),
            took: Duration::ZERO,
            disagreement: None,
            is_interrupted,
        }
    }

    #[test]
    fn only_a_disagreement_disproves() {
        let agrees = json!({"agrees": true, "interrupted": false, "ways": 0, "cuts": []});
        check(proof(false), false, &agrees);
        let interrupted = json!({"agrees": true, "interrupted": true, "ways": 0, "cuts": []});
        check(proof(true), false, &interrupted);
        let difference = Difference {
            place: 1,
            whole: "one".to_owned(),
            cut: "another".to_owned(),
        };
        let way = "one byte at a time".to_owned();
        let disproved = Proof {
            disagreement: Some(Disagreement { difference, way }),
            ..proof(false)
        };
        let expected = json!({"agrees": false, "interrupted": false, "ways": 0, "cuts": [], "disagreement": {
            "way": "one byte at a time", "place": 1, "whole": "one", "cut": "another"
        }});
        check(disproved, true, &expected);
    }
}
