//! `plaincall check`: what is wrong in a text, and what to do about it.

mod every_split;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plaincall_syntax::Dialect;
use plaincall_syntax::Span;
use serde_json::{Value, json};

use crate::commands::check::every_split::try_splits;
use crate::options::{DialectOptions, SchemaOption};
use crate::output::Output;
use crate::status::{Failure, Outcome, Status, complain};
use crate::terminal::excerpt::{Excerpts, Remark};
use crate::terminal::listing::{Detail, Listing};
use crate::text::findings::{Findings, Found, counted};
use crate::text::input::{or_standard, read_whole};
use crate::text::rejections::AsRun;
use crate::text::source::{Counter, Source};
use crate::visible::harmless;

/// Report the errors of a text, with source excerpts.
///
/// Report every diagnostic with its line and column, near misses (text that looks like a marker but is not one), calls
/// in other formats, and calls that `run` rejects: calls without an end marker and calls with circular dependencies.
/// With `--schema`, also report unknown tools and missing or invalid arguments. Without it, problems that depend on the
/// tool are warnings.
///
/// The text is parsed as `run` parses a file: `<think>` at the beginning starts reasoning.
///
/// Exit status: 0 without errors, even with warnings; 1 with errors, or if a file could not be read; 130 after Ctrl-C.
#[derive(Args, Debug)]
pub(crate) struct CheckOptions {
    /// The files to check. Default: standard input (`-`).
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The output format: `text` for people, or `json`, one object per text.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: CheckFormat,

    /// Exit with status 1 on warnings too.
    #[arg(long)]
    pub(crate) deny_warnings: bool,

    /// Also list how the text was parsed: each part with its line number and type, and the values of arguments.
    /// Diagnostics name the section of `spec/` that they come from.
    #[arg(long)]
    pub(crate) explain: bool,

    /// Also check that the result does not depend on how the text is split into chunks.
    ///
    /// Parse the text in chunks of every size up to 64 bytes and split it at every byte. Texts of up to 512 bytes are
    /// also split at every pair of bytes. For texts longer than 16 KiB, evenly spaced samples of the splits are tested.
    #[arg(long)]
    pub(crate) every_split: bool,

    /// Treat `<think>` as text, as `run --no-reasoning` does.
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
    /// Source excerpts with the errors underlined.
    Text,
    /// One JSON object per text: `file`, `calls`, `errors`, `warnings`, and `diagnostics`, each with `code`,
    /// `severity`, `span`, `line`, `column`, `message` and, if known, `pointer`, `help` and `suggestion`.
    Json,
}

pub(crate) fn check(options: &CheckOptions, output: &mut Output) -> Outcome {
    if (options.explain || options.every_split) && options.format == CheckFormat::Json {
        let message = "'--explain' and '--every-split' cannot be used with '--format json'; use `plaincall parse --events` instead";
        return Err(Failure::Usage(message.to_owned()));
    }
    let dialect = options.dialect.dialect()?;
    let reply = options.dialect.of_reply(options.no_reasoning)?;
    let (tools, unclosed) = options.schema.load(Some(&options.files))?;
    let run = AsRun {
        dialect: &reply,
        tools: tools.as_ref(),
        unclosed,
    };
    let mut status = Status::Good;
    for file in or_standard(&options.files) {
        let report = read_whole(&file)
            .and_then(|(name, bytes)| Report::new(Source::new(name, bytes), &dialect, run));
        let report = match report {
            Ok(report) => report,
            Err(Failure::Broken(message)) => {
                complain(&message);
                status = Status::Wrong;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        if report.errors > 0 || (options.deny_warnings && report.warnings > 0) {
            status = Status::Wrong;
        }
        let written = match options.format {
            CheckFormat::Text => report.write(options.explain.then_some(run), output),
            CheckFormat::Json => output.json_line(&report.json()),
        };
        let split = written.and_then(|()| {
            if options.every_split {
                report.write_splits(&dialect, output)
            } else {
                Ok(Status::Good)
            }
        });
        match split.and_then(|split| output.flush().map(|()| split)) {
            // The output is closed, but the diagnostics still decide the exit status.
            Err(Failure::ClosedPipe) => return Ok(status),
            other => status = status.and(other?),
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
}

impl Report {
    fn new(source: Source, dialect: &Dialect, run: AsRun<'_>) -> Result<Self, Failure> {
        let Findings { calls, remarks } = Findings::of(&source, dialect, run)?;
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
        })
    }

    /// For people. With `explained`, also how the text was read.
    fn write(&self, explained: Option<AsRun<'_>>, output: &mut Output) -> Result<(), Failure> {
        let Source { name, text, .. } = &self.source;
        let excerpts = Excerpts::new(output.has_color);
        let mut counter = Counter::new(text.as_bytes());
        for Found { finding, help, .. } in &self.remarks {
            let rule = explained.map(|_| format!("see {}", finding.section));
            let remark = Remark {
                severity: finding.severity,
                code: Some(finding.code),
                message: &finding.message,
                help: help.as_deref(),
                note: rule.as_deref(),
                span: finding.span.range(),
                position: counter.position(finding.span.start),
            };
            let excerpt = excerpts.render(name, text, &remark);
            output.text(format_args!("{excerpt}\n\n"))?;
        }
        if let Some(run) = explained {
            let mut listing =
                Listing::new(run.dialect, run.tools, Detail::Values, output.has_color)?;
            listing.feed(text.as_bytes(), output)?;
            listing.finish(output)?;
            output.text(format_args!("\n"))?;
        }
        output.text(format_args!(
            "{}: {}, {}, {}\n",
            harmless(name),
            counted(self.calls, "call"),
            counted(self.errors, "error"),
            counted(self.warnings, "warning"),
        ))
    }

    /// Whether the result depends on the chunks.
    fn write_splits(&self, dialect: &Dialect, output: &mut Output) -> Result<Status, Failure> {
        let name = harmless(&self.source.name);
        let (status, message) = match try_splits(self.source.text.as_bytes(), dialect)? {
            Ok(tried) => (
                Status::Good,
                format!(
                    "the result is the same for all chunk boundaries: {} tested",
                    counted(tried, "split")
                ),
            ),
            Err(difference) => (
                Status::Wrong,
                format!("{difference}; please report this as a bug"),
            ),
        };
        output.text(format_args!("{name}: {}\n", harmless(&message)))?;
        Ok(status)
    }

    /// For programs.
    fn json(&self) -> Value {
        let mut counter = Counter::new(self.source.text.as_bytes());
        let diagnostics = self.remarks.iter().map(
            |Found {
                 finding,
                 help,
                 meant,
             }| {
                let Span { start, end } = finding.span;
                let (line, column) = counter.position(start);
                let mut remark = json!({
                    "code": finding.code,
                    "severity": finding.severity.name(),
                    "span": [self.source.in_bytes(start), self.source.in_bytes(end)],
                    "line": line,
                    "column": column,
                    "pointer": Some(&finding.pointer).filter(|pointer| !pointer.is_empty()),
                    "message": finding.message,
                    "help": help,
                    "suggestion": meant,
                });
                if let Some(remark) = remark.as_object_mut() {
                    remark.retain(|_, value| !value.is_null());
                }
                remark
            },
        );
        json!({
            "file": self.source.name,
            "calls": self.calls,
            "errors": self.errors,
            "warnings": self.warnings,
            "diagnostics": diagnostics.collect::<Vec<Value>>(),
        })
    }
}
