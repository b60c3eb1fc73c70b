//! The diagnostics of a text, with their help.

use plaincall_call::{Document, ReplyDiagnostic, ToolSet};
use plaincall_syntax::{CallFormat, Code, Dialect, NearMiss, Section};
use plaincall_syntax::{Severity, Span};

use crate::status::Failure;
use crate::text::advice::{AFTER_UNCLOSED, NEAR_MISS, NOT_CLOSED, NOT_UTF8, advice};
use crate::text::reading::refused;
use crate::text::rejections::{AsRun, Rejections, finding};
use crate::text::source::{Counter, Source};

/// How many near misses a run names.
const NOTED: usize = 3;

/// How many characters of a near miss a message shows.
const SHOWN: usize = 60;

/// What was found in a text.
pub(crate) struct Findings {
    pub(crate) calls: usize,
    /// In the order in which they begin in the text.
    pub(crate) remarks: Vec<Found>,
}

/// Something that was found, and what to do about it.
pub(crate) struct Found {
    pub(crate) finding: ReplyDiagnostic,
    pub(crate) help: Option<String>,
    /// The marker or the name that was probably meant.
    pub(crate) meant: Option<String>,
}

impl Findings {
    pub(crate) fn of(source: &Source, dialect: &Dialect, run: AsRun<'_>) -> Result<Self, Failure> {
        let read =
            |dialect| Document::parse(&source.text, dialect).map_err(|error| refused(&error));
        let as_given = read(dialect)?;
        // The calls in reasoning are no calls of a run; all else is judged as a run reads it.
        let is_in_reasoning =
            |finding: &ReplyDiagnostic| finding.code == ReplyDiagnostic::CALL_IN_REASONING;
        let in_reasoning: Vec<ReplyDiagnostic> = as_given
            .diagnostics
            .iter()
            .filter(|finding| is_in_reasoning(finding))
            .cloned()
            .collect();
        let calls = as_given.calls().count();
        let document = if run.dialect == dialect {
            as_given
        } else {
            read(run.dialect)?
        };
        let syntax = document.syntax;
        let end_marker = syntax.map(|syntax| dialect.for_syntax(syntax).end_marker(syntax));
        let end_marker = end_marker.unwrap_or_default();
        let mut remarks = Vec::new();
        // A longer word that begins with a marker is one to the search; to the parser the marker in it counted.
        let glued: Vec<usize> = document
            .diagnostics
            .iter()
            .filter(|finding| finding.code == Code::EndMarkerGlued.name())
            .map(|finding| finding.span.start)
            .collect();
        let near_misses = document.near_misses(&source.text, run.dialect);
        for near_miss in near_misses.map_err(|error| refused(&error))? {
            let behind = source.text.get(near_miss.span.end..).unwrap_or_default();
            let is_escaped = dialect.is_escaped() && behind.starts_with('\\');
            if is_escaped || glued.binary_search(&near_miss.span.start).is_ok() {
                continue;
            }
            let (message, help) = near_miss_message(&source.text, &near_miss);
            let (severity, section) = (Severity::Warning, Section::NearMiss);
            remarks.push(Found {
                finding: finding(NEAR_MISS, severity, near_miss.span, section, message),
                help,
                meant: Some(near_miss.meant),
            });
        }
        let rejections = Rejections::of(&document, run).map_err(|error| refused(&error))?;
        let near: Vec<Span> = remarks.iter().map(|found| found.finding.span).collect();
        // The near miss has its own help.
        let is_reported = |span: Span| {
            let before = near.partition_point(|other| other.start <= span.start);
            let other = before.checked_sub(1).and_then(|last| near.get(last));
            other.is_some_and(|other| span.end <= other.end)
        };
        let (findings, problems) = match run.tools {
            None => (document.diagnostics, Vec::new()),
            Some(tools) => held(&document, tools),
        };
        let unclosed = rejections.unclosed;
        let is_open_marker = |code| code == Code::StrayReasoningOpen.name();
        let findings = findings
            .into_iter()
            // The message of a run about the end of a call is better.
            .filter(|finding| {
                finding.code != Code::MissingEndMarker.name()
                    || unclosed.binary_search(&finding.span.start).is_err()
            })
            // A mention of the default marker is nothing to warn about.
            .filter(|it| !is_open_marker(it.code) || dialect.reasoning_markers().is_some())
            .filter(|finding| !is_in_reasoning(finding))
            .chain(in_reasoning)
            .chain(rejections.findings)
            .chain(not_utf8(source));
        remarks.extend(findings.map(|finding| Found {
            // If a call is rejected for its end, the message includes the fix.
            help: advice(finding.code, syntax, &end_marker).filter(|_| {
                let is_about_end = matches!(finding.code, NOT_CLOSED | AFTER_UNCLOSED);
                !(finding.is_error() && is_about_end || is_reported(finding.span))
            }),
            finding,
            meant: None,
        }));
        remarks.extend(problems);
        remarks.sort_by_key(|found| found.finding.span.start);
        Ok(Self { calls, remarks })
    }
}

/// The warning about bytes of the source that are not UTF-8.
fn not_utf8(source: &Source) -> Option<ReplyDiagnostic> {
    let (count, first) = source.replaced()?;
    let places = counted(count, "place");
    let message = format!(
        "the text is not UTF-8 in {places}, starting here; the bytes are replaced with U+FFFD"
    );
    let (severity, span) = (Severity::Warning, Span::new(first.start, first.end));
    Some(finding(NOT_UTF8, severity, span, Section::Bytes, message))
}

/// What a near miss is, and what to do about it.
fn near_miss_message(text: &str, near_miss: &NearMiss) -> (String, Option<String>) {
    let meant = &near_miss.meant;
    let written = text.get(near_miss.span.range()).unwrap_or_default();
    let written: String = written.chars().take(SHOWN).collect();
    let message = match near_miss.format {
        None => {
            return (
                format!("unknown marker `{written}`; did you mean `{meant}`?"),
                None,
            );
        }
        Some(CallFormat::Json) => {
            "a JSON object with a tool name and arguments is a call in an unsupported format"
                .to_owned()
        }
        Some(_) => format!("`{written}` starts a call in an unsupported format"),
    };
    (message, Some(format!("start a call with `{meant}`")))
}

/// A sentence about each of the first near misses in the text outside calls, and how many more there are.
pub(crate) fn near_misses_outside_calls(text: &str, dialect: &Dialect) -> Vec<String> {
    let Ok(document) = Document::parse(text, dialect) else {
        return Vec::new();
    };
    let mut near = document.near_misses(text, dialect).unwrap_or_default();
    let calls: Vec<Span> = document.calls().map(|call| call.span).collect();
    near.retain(|miss| {
        let next = calls.partition_point(|call| call.end <= miss.span.start);
        calls
            .get(next)
            .is_none_or(|call| miss.span.start < call.start)
    });
    let mut counter = Counter::new(text.as_bytes());
    let mut sentences: Vec<String> = near
        .iter()
        .take(NOTED)
        .map(|miss| {
            let (line, _) = counter.position(miss.span.start);
            format!("line {line}: {}", near_miss_message(text, miss).0)
        })
        .collect();
    if let more @ 1.. = near.len().saturating_sub(NOTED) {
        sentences.push(format!(
            "and {more} more near misses; `plaincall check` lists them"
        ));
    }
    sentences
}

/// Returns the remaining diagnostics of the text, and those of the tool definitions.
fn held(document: &Document, tools: &ToolSet) -> (Vec<ReplyDiagnostic>, Vec<Found>) {
    let bound = document.bind(tools);
    let findings = bound.text_diagnostics().cloned().collect();
    let mut problems = Vec::new();
    for call in bound.calls() {
        for problem in call.problems() {
            let name = (problem.code == ReplyDiagnostic::UNKNOWN_TOOL).then_some(&call.call.name);
            let nearest = name.and_then(|name| tools.nearest(name));
            problems.push(Found {
                help: advice(problem.code, Some(call.call.syntax), ""),
                meant: nearest.map(|tool| tool.name.clone()),
                finding: problem.clone(),
            });
        }
    }
    (findings, problems)
}

/// `no errors`, `1 error`, `2 errors`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
