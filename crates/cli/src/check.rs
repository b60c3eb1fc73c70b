//! `plaincall check`: what is wrong in a text, and what to do about it.

use plaincall_call::{Document, Finding, Problem, Severity, Span, Syntax, Termination, ToolSet};
use plaincall_syntax::{Code, Dialect, near_misses};
use serde::Serialize;

use crate::advice::{NEAR_MISS, NOT_CLOSED, NOT_UTF8, advice};
use crate::arguments::{CheckFormat, CheckOptions};
use crate::excerpt::{Excerpts, Remark};
use crate::input::{Input, or_standard};
use crate::output::Output;
use crate::reading::refused;
use crate::source::{Counter, Source};
use crate::status::{Failure, Outcome, Status, complain};

pub(crate) fn check(options: &CheckOptions, output: &mut Output) -> Outcome {
    let dialect = options.dialect.dialect()?;
    let tools = options.schema.load(&options.files)?;
    let mut status = Status::Good;
    for file in or_standard(&options.files) {
        let report = Input::open(&file).and_then(|input| {
            let name = input.name.clone();
            let source = Source::new(name, input.into_bytes()?);
            Report::new(source, &dialect, tools.as_ref())
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
        if report.errors > 0 || (options.deny_warnings && report.warnings > 0) {
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

struct Found {
    finding: Finding,
    help: Option<String>,
    /// The marker or the name that was probably meant.
    meant: Option<String>,
    /// The pointer to the argument that it is about, where a definition says it.
    pointer: Option<String>,
}

impl Report {
    fn new(source: Source, dialect: &Dialect, tools: Option<&ToolSet>) -> Result<Self, Failure> {
        let document = Document::parse(&source.text, dialect).map_err(|error| refused(&error))?;
        let chosen = match document.syntax {
            Some(syntax) => dialect.for_syntax(syntax),
            None => dialect.clone(),
        };
        let end_marker = document
            .syntax
            .map(|syntax| chosen.end_marker(syntax))
            .unwrap_or_default();
        let mut remarks = Vec::new();
        // A longer word that begins with a marker is one to the search; to the parser the marker in it counted.
        let glued: Vec<usize> = document
            .diagnostics
            .iter()
            .filter(|finding| finding.code == Code::EndMarkerGlued.name())
            .map(|finding| finding.span.start)
            .collect();
        for near_miss in near_misses(&source.text, &chosen).map_err(|error| refused(&error))? {
            let behind = source.text.get(near_miss.span.end..).unwrap_or_default();
            let is_escaped = dialect.is_escaped() && behind.starts_with('\\');
            if is_escaped || glued.binary_search(&near_miss.span.start).is_ok() {
                continue;
            }
            let meant = near_miss.meant;
            remarks.push(Found {
                finding: Finding {
                    code: NEAR_MISS,
                    severity: Severity::Warning,
                    span: near_miss.span,
                    message: format!("this looks like `{meant}`, but it is no marker"),
                },
                help: Some(format!("if a marker was meant, write `{meant}`")),
                meant: Some(meant),
                pointer: None,
            });
        }
        let calls = document.calls().count();
        let not_closed = document
            .calls()
            .filter(|call| {
                call.termination == Termination::EndOfStream && call.syntax == Syntax::Block
            })
            .map(|call| Finding {
                code: NOT_CLOSED,
                severity: Severity::Warning,
                span: call.header_span,
                message: "the text ends before this call is closed".to_owned(),
            });
        let not_closed: Vec<Finding> = not_closed.collect();
        let near: Vec<Span> = remarks.iter().map(|found| found.finding.span).collect();
        // What to do about a near miss is said there.
        let is_told = |span: Span| {
            let before = near.partition_point(|other| other.start <= span.start);
            let other = before.checked_sub(1).and_then(|last| near.get(last));
            other.is_some_and(|other| span.end <= other.end)
        };
        let not_utf8 = source.replaced().map(|(count, first)| {
            let places = counted(count, "place");
            Finding {
                code: NOT_UTF8,
                severity: Severity::Warning,
                span: Span {
                    start: first.start,
                    end: first.end,
                },
                message: format!(
                    "the text is not UTF-8 in {places}, the first of them here: U+FFFD is read instead"
                ),
            }
        });
        let (findings, problems) = match tools {
            None => (document.diagnostics, Vec::new()),
            Some(tools) => held(&document, tools),
        };
        let findings = findings.into_iter().chain(not_closed).chain(not_utf8);
        remarks.extend(findings.map(|finding| {
            Found {
                help: advice(finding.code, document.syntax, &end_marker)
                    .filter(|_| !is_told(finding.span)),
                finding,
                meant: None,
                pointer: None,
            }
        }));
        remarks.extend(problems);
        remarks.sort_by_key(|found| found.finding.span.start);
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
            self.source.name,
            counted(calls, "call"),
            counted(errors, "error"),
            counted(warnings, "warning"),
        ))
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
        }
    }
}

/// What stands in the text and still holds, and what the definitions of the tools find.
fn held(document: &Document, tools: &ToolSet) -> (Vec<Finding>, Vec<Found>) {
    let bound = document.bind(tools);
    let findings = bound.findings().cloned().collect();
    let mut problems = Vec::new();
    for call in bound.calls() {
        for remark in call.remarks() {
            let name = (remark.code() == Problem::UNKNOWN_TOOL).then_some(&call.call.name);
            let nearest = name.and_then(|name| tools.nearest(name));
            problems.push(Found {
                help: advice(remark.code(), Some(call.call.syntax), ""),
                meant: nearest.map(|tool| tool.name.clone()),
                pointer: remark.pointer().map(str::to_owned),
                finding: Finding {
                    code: remark.code(),
                    severity: remark.severity(),
                    span: remark.span(),
                    message: remark.message().to_owned(),
                },
            });
        }
    }
    (findings, problems)
}

#[derive(Serialize)]
struct JsonReport<'a> {
    file: &'a str,
    calls: usize,
    errors: usize,
    warnings: usize,
    diagnostics: Vec<JsonRemark<'a>>,
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

fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
