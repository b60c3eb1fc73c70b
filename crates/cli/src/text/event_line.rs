//! A parser's event as one line of JSON.

use plaincall_call::{BoundCall, Finding};
use plaincall_syntax::{Event, EventKind, Slot, Syntax};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// What `parse --events` prints for an event.
pub(crate) struct EventLine<'a>(pub(crate) &'a Event<'a>);

impl Serialize for EventLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(event) = self;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("type", kind(event))?;
        fields.serialize_entry("span", &(event.span.start, event.span.end))?;
        match &event.kind {
            EventKind::Text(text)
            | EventKind::Reasoning(text)
            | EventKind::ValueDelta(text)
            | EventKind::Ignored(text) => fields.serialize_entry("text", text.as_str())?,
            EventKind::CallStart(header) => {
                fields.serialize_entry("syntax", header.syntax().name())?;
                fields.serialize_entry("name", header.name())?;
                match header.syntax() {
                    Syntax::Block => {
                        let dependencies: Vec<&str> = header.dependencies().collect();
                        fields.serialize_entry("id", &header.id())?;
                        fields.serialize_entry("dependencies", &dependencies)?;
                    }
                    Syntax::Emoji => fields.serialize_entry("raw_args", &header.raw_args())?,
                }
            }
            EventKind::ValueStart(Slot::Argument(pointer)) => {
                fields.serialize_entry("pointer", pointer.as_str())?;
            }
            EventKind::CallEnd(ending) => {
                fields.serialize_entry("termination", ending.termination().name())?;
            }
            EventKind::Diagnostic(diagnostic) => {
                let finding = Finding::from(diagnostic);
                fields.serialize_entry("code", finding.code)?;
                fields.serialize_entry("severity", finding.severity.name())?;
                fields.serialize_entry("message", &finding.message)?;
            }
            _ => {}
        }
        if has_source(event) {
            fields.serialize_entry("source", event.source())?;
        }
        fields.end()
    }
}

/// What a definition finds wrong with a call, as `parse --events` prints it.
pub(crate) struct ProblemLine<'a>(pub(crate) &'a Finding);

impl Serialize for ProblemLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(problem) = self;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("type", "diagnostic")?;
        fields.serialize_entry("span", &(problem.span.start, problem.span.end))?;
        if !problem.pointer.is_empty() {
            fields.serialize_entry("pointer", &problem.pointer)?;
        }
        fields.serialize_entry("code", problem.code)?;
        fields.serialize_entry("severity", problem.severity.name())?;
        fields.serialize_entry("message", &problem.message)?;
        fields.end()
    }
}

/// A call that is held against its definition, as `parse --events` prints it behind its end.
pub(crate) struct BoundLine<'a>(pub(crate) &'a BoundCall<'a>);

impl Serialize for BoundLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(bound) = self;
        let span = bound.call.span;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("type", "call")?;
        fields.serialize_entry("span", &(span.start, span.end))?;
        fields.serialize_entry("call", bound)?;
        fields.end()
    }
}

fn kind(event: &Event<'_>) -> &'static str {
    match event.kind {
        EventKind::Text(_) => "text",
        EventKind::Reasoning(_) => "reasoning",
        EventKind::CallStart(_) => "call_start",
        EventKind::ValueStart(_) => "value_start",
        EventKind::ValueDelta(_) => "value_delta",
        EventKind::ValueEnd => "value_end",
        EventKind::CallEnd(_) => "call_end",
        EventKind::Diagnostic(_) => "diagnostic",
        // `ignored` also stands for what this command does not know yet: bytes without a meaning.
        _ => "ignored",
    }
}

/// Whether the source text of the event's span stands nowhere else in it.
fn has_source(event: &Event<'_>) -> bool {
    matches!(
        event.kind,
        EventKind::CallStart(_)
            | EventKind::ValueStart(_)
            | EventKind::ValueEnd
            | EventKind::CallEnd(_)
    )
}
