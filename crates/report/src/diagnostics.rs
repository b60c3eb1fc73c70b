//! The diagnostics of a text, with help.

use std::collections::HashSet;

use plaincall_reply::{Document, ReplyCheck};
use plaincall_syntax::{CallFormat, Code, Dialect, DialectError, NearMiss, Section};
use plaincall_syntax::{Severity, Span};
use plaincall_tool::{ReplyDiagnostic, ToolSet};

pub use crate::rejections::RunSettings;

use crate::advice::{AFTER_UNCLOSED, NEAR_MISS, NOT_CLOSED, NOT_UTF8, advice};
use crate::rejections::{Rejections, diagnostic};
use crate::source::{Counter, Source};

/// The maximum number of near misses that `run` reports.
const MAX_REPORTED: usize = 3;

/// The maximum length of a near miss in a message, in characters.
const MAX_TEXT: usize = 60;

/// The diagnostics of a text.
pub struct Diagnostics {
    /// The number of calls.
    pub calls: usize,
    /// In order of their position.
    pub diagnostics: Vec<Entry>,
}

/// A diagnostic with help.
pub struct Entry {
    /// The diagnostic.
    pub diagnostic: ReplyDiagnostic,
    /// The fix, in one sentence.
    pub help: Option<String>,
    /// The marker or name that was probably meant.
    pub suggestion: Option<String>,
}

impl Diagnostics {
    /// Returns the diagnostics of a text. Those about calls are those of `run`.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn of(
        source: &Source,
        dialect: &Dialect,
        run: RunSettings<'_>,
    ) -> Result<Self, DialectError> {
        let read = |dialect| {
            let check = ReplyCheck::new(dialect, run.unclosed)?;
            Document::read(&source.text, dialect, run.tools, check, run.stop)
        };
        let as_given = read(dialect)?;
        // `run` ignores calls in reasoning; everything else is validated as `run` parses it.
        let is_in_reasoning =
            |diagnostic: &ReplyDiagnostic| diagnostic.code == ReplyDiagnostic::CALL_IN_REASONING;
        let in_reasoning: Vec<ReplyDiagnostic> = as_given
            .diagnostics
            .iter()
            .filter(|diagnostic| is_in_reasoning(diagnostic))
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
        let mut diagnostics = Vec::new();
        // A marker glued to more text is reported by the parser, not as a near miss.
        let glued: Vec<usize> = document
            .diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.code == Code::EndMarkerGlued.name())
            .map(|diagnostic| diagnostic.span.start)
            .collect();
        let near_misses = document.near_misses(&source.text, run.dialect);
        for near_miss in near_misses? {
            let after = source.text.get(near_miss.span.end..).unwrap_or_default();
            let is_escaped = dialect.is_escaped() && after.starts_with('\\');
            if is_escaped || glued.binary_search(&near_miss.span.start).is_ok() {
                continue;
            }
            let (message, help) = near_miss_message(&source.text, &near_miss);
            let (severity, section) = (Severity::Warning, Section::NearMiss);
            diagnostics.push(Entry {
                diagnostic: diagnostic(NEAR_MISS, severity, near_miss.span, section, message),
                help,
                suggestion: Some(near_miss.suggestion),
            });
        }
        let rejections = Rejections::of(&document, run)?;
        let near: Vec<Span> = diagnostics
            .iter()
            .map(|found| found.diagnostic.span)
            .collect();
        // A near miss includes its own help.
        let is_reported = |span: Span| {
            let before = near.partition_point(|other| other.start <= span.start);
            let other = before.checked_sub(1).and_then(|last| near.get(last));
            other.is_some_and(|other| span.end <= other.end)
        };
        let (from_text, problems) = match run.tools {
            None => (document.diagnostics, Vec::new()),
            Some(tools) => validate(document, tools),
        };
        let unclosed = rejections.unclosed;
        let is_open_marker = |code| code == Code::StrayReasoningOpen.name();
        let from_text = from_text
            .into_iter()
            // The diagnostic of `run` about a missing end marker is more specific.
            .filter(|diagnostic| {
                diagnostic.code != Code::MissingEndMarker.name()
                    || unclosed.binary_search(&diagnostic.span.start).is_err()
            })
            // A mention of the default reasoning marker needs no warning.
            .filter(|it| !is_open_marker(it.code) || dialect.reasoning_markers().is_some())
            .filter(|diagnostic| !is_in_reasoning(diagnostic))
            .chain(in_reasoning)
            .chain(rejections.diagnostics)
            .chain(not_utf8(source));
        diagnostics.extend(from_text.map(|diagnostic| Entry {
            // If a call is rejected because of its end, the message includes the fix.
            help: advice(diagnostic.code, syntax, &end_marker).filter(|_| {
                let is_about_end = matches!(diagnostic.code, NOT_CLOSED | AFTER_UNCLOSED);
                !(diagnostic.is_error() && is_about_end || is_reported(diagnostic.span))
            }),
            diagnostic,
            suggestion: None,
        }));
        diagnostics.extend(problems);
        diagnostics.sort_by_key(|found| found.diagnostic.span.start);
        Ok(Self { calls, diagnostics })
    }
}

/// Returns a warning if the source is not UTF-8.
fn not_utf8(source: &Source) -> Option<ReplyDiagnostic> {
    let (count, first) = source.replaced()?;
    let places = counted(count, "place");
    let message = format!(
        "the text is not UTF-8 in {places}, starting here; the bytes are replaced with U+FFFD"
    );
    let (severity, span) = (Severity::Warning, Span::new(first.start, first.end));
    Some(diagnostic(
        NOT_UTF8,
        severity,
        span,
        Section::Bytes,
        message,
    ))
}

/// Returns message and help for a near miss.
fn near_miss_message(text: &str, near_miss: &NearMiss) -> (String, Option<String>) {
    let suggestion = &near_miss.suggestion;
    let written = text.get(near_miss.span.range()).unwrap_or_default();
    let written: String = written.chars().take(MAX_TEXT).collect();
    let message = match near_miss.format {
        None => {
            return (
                format!("unknown marker `{written}`; did you mean `{suggestion}`?"),
                None,
            );
        }
        Some(CallFormat::Json) => {
            "a JSON object with a tool name and arguments is a call in an unsupported format"
                .to_owned()
        }
        Some(_) => format!("`{written}` starts a call in an unsupported format"),
    };
    (message, Some(format!("start a call with `{suggestion}`")))
}

/// Describes the first near misses outside calls, and the number of further ones.
pub fn near_misses_outside_calls(text: &str, dialect: &Dialect) -> Vec<String> {
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
        .take(MAX_REPORTED)
        .map(|miss| {
            let (line, _) = counter.position(miss.span.start);
            format!("line {line}: {}", near_miss_message(text, miss).0)
        })
        .collect();
    if let more @ 1.. = near.len().saturating_sub(MAX_REPORTED) {
        sentences.push(format!(
            "and {more} more near misses; `plaincall check` lists them"
        ));
    }
    sentences
}

/// Returns the diagnostics of the text that no definition resolves, and those of the definitions.
fn validate(document: Document, tools: &ToolSet) -> (Vec<ReplyDiagnostic>, Vec<Entry>) {
    let mut problems = Vec::new();
    let mut places = HashSet::new();
    for read in document.decided() {
        let call = &read.call;
        for problem in read.problems() {
            places.insert((problem.code, problem.span));
            let name = (problem.code == ReplyDiagnostic::UNKNOWN_TOOL).then_some(&call.name);
            let nearest = name.and_then(|name| tools.nearest(name));
            problems.push(Entry {
                help: advice(problem.code, Some(call.syntax), ""),
                suggestion: nearest.map(|tool| tool.name.clone()),
                diagnostic: problem.clone(),
            });
        }
    }
    let mut from_text = document.diagnostics;
    from_text.retain(|one| !places.contains(&(one.code, one.span)));
    (from_text, problems)
}

/// Formats a count: `no errors`, `1 error`, `2 errors`.
pub fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
