//! `plaincall check`: report errors in text.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plaincall_reply::Stop;
use plaincall_report::diagnostics::{Diagnostics, Entry, RunSettings, counted};
use plaincall_report::source::{Counter, Source};
use plaincall_syntax::Dialect;
use plaincall_syntax::Span;
use serde_json::{Value, json};

use crate::options::{ReplyDialectOption, ToolsOption};
use crate::output::Output;
use crate::sanitize::sanitize;
use crate::status::{Failure, Outcome, Status, print_error};
use crate::terminal::excerpt::{Excerpt, Excerpts};
use crate::terminal::listing::{Detail, Listing};
use crate::text::input::{Input, or_stdin, stop_at_end};

/// Report errors in text, with source excerpts.
///
/// Report every diagnostic with its line and column, near misses (text that looks like a marker but is not one), calls
/// in other formats, and calls that `run` rejects: calls without an end marker and calls with circular dependencies.
/// With `--tools`, also report unknown tools and missing or invalid arguments. Without it, problems that depend on the
/// tool are warnings.
///
/// The text is parsed as `run` parses it: `<think>` at the beginning starts reasoning, and a call without an end marker
/// at the end of a pipe is rejected, because the pipe may have been truncated.
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

    #[command(flatten)]
    pub(crate) tools: ToolsOption,

    #[command(flatten)]
    pub(crate) dialect: ReplyDialectOption,
}

/// The output format of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Source excerpts with the errors underlined.
    Text,
    /// One JSON object per text: `file`, `calls`, `errors`, `warnings`, and `diagnostics`, each with `code`,
    /// `severity`, `span`, `line`, `column`, `message` and, if known, `pointer`, `help` and `suggestion`.
    Json,
}

pub(crate) fn check(options: &CheckOptions, output: &mut Output) -> Outcome {
    if options.explain && options.format == CheckFormat::Json {
        let message = "'--explain' cannot be used with '--format json'; use `plaincall parse --events` instead";
        return Err(Failure::Usage(message.to_owned()));
    }
    let dialect = options.dialect.dialect.options.dialect()?;
    let reply = options.dialect.dialect.of_reply()?;
    let (tools, unclosed) = options.tools.load(Some(&options.files))?;
    let run = RunSettings {
        dialect: &reply,
        tools: tools.as_ref(),
        unclosed,
        stop: Stop::EndOfFile,
    };
    let mut status = Status::Success;
    for file in or_stdin(&options.files) {
        let report = Input::open(&file).and_then(|input| {
            let stop = stop_at_end(false, input.is_file);
            let source = Source::new(input.name.clone(), input.into_bytes()?);
            Report::new(source, &dialect, RunSettings { stop, ..run })
        });
        let report = match report {
            Ok(report) => report,
            Err(Failure::Runtime(message)) => {
                print_error(&message);
                status = Status::Failed;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        if report.errors > 0 || (options.deny_warnings && report.warnings > 0) {
            status = Status::Failed;
        }
        let written = match options.format {
            CheckFormat::Text => report.write(options.explain.then_some(run), output),
            CheckFormat::Json => output.json_line(&report.json()),
        };
        match written.and_then(|()| output.flush()) {
            // The output is closed, but the diagnostics still decide the exit status.
            Err(Failure::ClosedPipe) => return Ok(status),
            other => other?,
        }
    }
    Ok(status)
}

/// The diagnostics of a text.
struct Report {
    source: Source,
    calls: usize,
    /// In order of their position in the text.
    diagnostics: Vec<Entry>,
    errors: usize,
    warnings: usize,
}

impl Report {
    fn new(source: Source, dialect: &Dialect, run: RunSettings<'_>) -> Result<Self, Failure> {
        let Diagnostics { calls, diagnostics } = Diagnostics::of(&source, dialect, run)?;
        let errors = diagnostics
            .iter()
            .filter(|found| found.diagnostic.is_error())
            .count();
        Ok(Self {
            calls,
            errors,
            warnings: diagnostics.len() - errors,
            diagnostics,
            source,
        })
    }

    /// Writes the report as text; with `explain`, also how the text was parsed.
    fn write(&self, explain: Option<RunSettings<'_>>, output: &mut Output) -> Result<(), Failure> {
        let Source { name, text, .. } = &self.source;
        let excerpts = Excerpts::new(output.has_color);
        let mut counter = Counter::new(text.as_bytes());
        for Entry {
            diagnostic, help, ..
        } in &self.diagnostics
        {
            let rule = explain.map(|_| format!("see {}", diagnostic.section));
            let entry = Excerpt {
                severity: diagnostic.severity,
                code: Some(diagnostic.code),
                message: &diagnostic.message,
                help: help.as_deref(),
                note: rule.as_deref(),
                span: diagnostic.span.range(),
                position: counter.position(diagnostic.span.start),
            };
            let excerpt = excerpts.render(name, text, &entry);
            output.text(format_args!("{excerpt}\n\n"))?;
        }
        if let Some(run) = explain {
            let mut listing =
                Listing::new(run.dialect, run.tools, Detail::Values, output.has_color)?;
            listing.feed(text.as_bytes(), output)?;
            listing.finish(output)?;
            output.text(format_args!("\n"))?;
        }
        output.text(format_args!(
            "{}: {}, {}, {}\n",
            sanitize(name),
            counted(self.calls, "call"),
            counted(self.errors, "error"),
            counted(self.warnings, "warning"),
        ))
    }

    /// Returns the report as JSON.
    fn json(&self) -> Value {
        let mut counter = Counter::new(self.source.text.as_bytes());
        let diagnostics = self.diagnostics.iter().map(
            |Entry {
                 diagnostic,
                 help,
                 suggestion,
             }| {
                let Span { start, end } = diagnostic.span;
                let (line, column) = counter.position(start);
                let mut entry = json!({
                    "code": diagnostic.code,
                    "severity": diagnostic.severity.name(),
                    "span": [self.source.in_bytes(start), self.source.in_bytes(end)],
                    "line": line,
                    "column": column,
                    "pointer": Some(&diagnostic.pointer).filter(|pointer| !pointer.is_empty()),
                    "message": diagnostic.message,
                    "help": help,
                    "suggestion": suggestion,
                });
                if let Some(entry) = entry.as_object_mut() {
                    entry.retain(|_, value| !value.is_null());
                }
                entry
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
