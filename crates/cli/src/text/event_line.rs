//! Parser events as JSON lines.

use plaincall_reply::DecidedCall;
use plaincall_syntax::Span;
use plaincall_syntax::{Event, EventKind, Slot, Syntax};
use plaincall_tool::ReplyDiagnostic;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A line of `parse --events`: an event, a diagnostic or a validated call.
#[derive(Serialize)]
pub(crate) struct EventLine<T> {
    #[serde(rename = "type")]
    kind: &'static str,
    span: (usize, usize),
    #[serde(flatten)]
    rest: T,
}

/// A call in the format of `--format json`.
#[derive(Serialize)]
pub(crate) struct Bound<'a> {
    call: &'a DecidedCall,
}

impl<T> EventLine<T> {
    fn new(kind: &'static str, span: Span, rest: T) -> Self {
        let span = (span.start, span.end);
        Self { kind, span, rest }
    }
}

impl<'a> EventLine<Bound<'a>> {
    /// Returns the line after the end of a call.
    pub(crate) fn of_call(call: &'a DecidedCall) -> Self {
        Self::new("call", call.call.span, Bound { call })
    }
}

impl EventLine<Value> {
    /// Returns the line of a diagnostic.
    pub(crate) fn of_diagnostic(diagnostic: &ReplyDiagnostic) -> Self {
        let mut rest = Map::new();
        if !diagnostic.pointer.is_empty() {
            rest.insert("pointer".to_owned(), diagnostic.pointer.as_str().into());
        }
        rest.insert("code".to_owned(), diagnostic.code.into());
        rest.insert("severity".to_owned(), diagnostic.severity.name().into());
        rest.insert("message".to_owned(), diagnostic.message.as_str().into());
        Self::new("diagnostic", diagnostic.span, rest.into())
    }

    pub(crate) fn of_event(event: &Event<'_>) -> Self {
        let source = event.source();
        let (kind, rest) = match &event.kind {
            EventKind::Text(text) => ("text", json!({"text": text.as_str()})),
            EventKind::Reasoning(text) => ("reasoning", json!({"text": text.as_str()})),
            EventKind::ValueDelta(text) => ("value_delta", json!({"text": text.as_str()})),
            EventKind::Ignored(text) => ("ignored", json!({"text": text.as_str()})),
            EventKind::CallStart(header) => {
                let (syntax, name) = (header.syntax().name(), header.name());
                let rest = match header.syntax() {
                    Syntax::Block => json!({
                        "syntax": syntax,
                        "name": name,
                        "id": header.id(),
                        "dependencies": header.dependencies().collect::<Vec<_>>(),
                        "source": source,
                    }),
                    Syntax::Emoji => json!({
                        "syntax": syntax,
                        "name": name,
                        "raw_args": header.raw_args(),
                        "source": source,
                    }),
                };
                ("call_start", rest)
            }
            EventKind::ValueStart(Slot::Argument(pointer)) => (
                "value_start",
                json!({"pointer": pointer.as_str(), "source": source}),
            ),
            EventKind::ValueStart(_) => ("value_start", json!({"source": source})),
            EventKind::ValueEnd => ("value_end", json!({"source": source})),
            EventKind::CallEnd(ending) => (
                "call_end",
                json!({"termination": ending.termination().name(), "source": source}),
            ),
            EventKind::Diagnostic(diagnostic) => return Self::of_diagnostic(&diagnostic.into()),
            // Unknown kinds of events are ignored text.
            _ => ("ignored", json!({})),
        };
        Self::new(kind, event.span, rest)
    }
}
