//! Events with adjacent pieces put together: they must be the same for every way to split a text into chunks.

use std::ops::Range;

use plaincall_syntax::{Dialect, DialectError, Event, EventKind, Parser, Slot};

/// One merged event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The kind.
    pub kind: Kind,
    /// The span in bytes.
    pub span: Range<usize>,
}

/// The kind of a merged event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text outside calls.
    Text(String),
    /// Text between reasoning markers.
    Reasoning(String),
    /// A call of the block syntax.
    BlockCall {
        /// The tool's name.
        name: String,
        /// The id, if one was written.
        id: Option<String>,
        /// The dependencies as written, without empty ones.
        dependencies: Vec<String>,
    },
    /// A call of the emoji syntax.
    EmojiCall {
        /// The tool's name.
        name: String,
        /// The argument line.
        raw_args: String,
    },
    /// An argument begins; its trimmed pointer.
    Argument(String),
    /// The body begins.
    Body,
    /// The text of a value.
    Value(String),
    /// The value ends.
    ValueEnd,
    /// The call ends: `explicit`, `next_call` or `end_of_stream`.
    CallEnd(&'static str),
    /// Bytes that are neither text, reasoning, marker nor value.
    Ignored(String),
    /// The stable code of a diagnostic.
    Diagnostic(&'static str),
}

impl Kind {
    /// Returns whether both are of the same kind, ignoring their content.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Merged {
    /// The text of content, which comes in pieces.
    pub(crate) fn content(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) | Kind::Reasoning(text) | Kind::Value(text) | Kind::Ignored(text) => {
                Some(text)
            }
            _ => None,
        }
    }
}

/// Puts adjacent pieces of one kind together.
///
/// # Panics
/// When the spans do not tile: a gap, an overlap, a span whose source text has another length.
pub fn merge<'e>(events: impl IntoIterator<Item = Event<'e>>) -> Vec<Merged> {
    merge_lossy(events.into_iter().inspect(|event| {
        if !matches!(event.kind, EventKind::Diagnostic(_)) {
            assert_eq!(
                event.span.len(),
                event.source().len(),
                "source of {event:?}"
            );
        }
    }))
}

/// As [`merge`], for events of invalid bytes: there U+FFFD can replace fewer or more bytes than its own length.
///
/// # Panics
/// When the spans do not tile: a gap or an overlap.
pub fn merge_lossy<'e>(events: impl IntoIterator<Item = Event<'e>>) -> Vec<Merged> {
    let mut merged: Vec<Merged> = Vec::new();
    let mut place = 0;
    for event in events {
        let kind = kind(&event);
        if let Kind::Diagnostic(code) = kind {
            assert_eq!(
                event.span.end, place,
                "{code} does not stand at the end of its span"
            );
        } else {
            assert_eq!(
                event.span.start, place,
                "a gap or an overlap before {kind:?}"
            );
            place = event.span.end;
        }
        if let Some(last) = merged.last_mut()
            && append(&mut last.kind, &kind)
        {
            last.span.end = event.span.end;
            continue;
        }
        merged.push(Merged {
            kind,
            span: event.span.range(),
        });
    }
    merged
}

fn kind(event: &Event<'_>) -> Kind {
    match &event.kind {
        EventKind::Text(text) => Kind::Text(text.to_string()),
        EventKind::Reasoning(text) => Kind::Reasoning(text.to_string()),
        EventKind::CallStart(header) => match header.raw_args() {
            None => Kind::BlockCall {
                name: header.name().to_owned(),
                id: header.id().map(str::to_owned),
                dependencies: header.dependencies().map(str::to_owned).collect(),
            },
            Some(raw_args) => Kind::EmojiCall {
                name: header.name().to_owned(),
                raw_args: raw_args.to_owned(),
            },
        },
        EventKind::ValueStart(Slot::Argument(pointer)) => {
            Kind::Argument(pointer.as_str().to_owned())
        }
        EventKind::ValueStart(Slot::Body) => Kind::Body,
        EventKind::ValueDelta(text) => Kind::Value(text.to_string()),
        EventKind::ValueEnd => Kind::ValueEnd,
        EventKind::CallEnd(ending) => Kind::CallEnd(ending.termination().name()),
        EventKind::Ignored(text) => Kind::Ignored(text.to_string()),
        EventKind::Diagnostic(diagnostic) => Kind::Diagnostic(diagnostic.code.name()),
        other => unreachable!("an event kind that is not merged yet: {other:?}"),
    }
}

fn append(last: &mut Kind, next: &Kind) -> bool {
    match (last, next) {
        (Kind::Text(last), Kind::Text(next))
        | (Kind::Reasoning(last), Kind::Reasoning(next))
        | (Kind::Value(last), Kind::Value(next))
        | (Kind::Ignored(last), Kind::Ignored(next)) => {
            last.push_str(next);
            true
        }
        _ => false,
    }
}

/// The merged events of a text that arrives in these chunks at a parser that has read nothing yet.
///
/// # Panics
/// As [`merge`].
pub fn merged_by<'t>(mut parser: Parser, chunks: impl IntoIterator<Item = &'t str>) -> Vec<Merged> {
    let mut events = Vec::new();
    for chunk in chunks {
        events.extend(parser.feed(chunk));
    }
    events.extend(parser.finish());
    merge(events)
}

/// The merged events of a text that arrives in these chunks.
///
/// # Errors
/// Refuses a dialect that cannot work.
///
/// # Panics
/// As [`merge`].
pub fn merged_of_chunks<'t>(
    chunks: impl IntoIterator<Item = &'t str>,
    dialect: &Dialect,
) -> Result<Vec<Merged>, DialectError> {
    Ok(merged_by(Parser::new(dialect)?, chunks))
}

/// The merged events of a text that arrives in one chunk.
///
/// # Errors
/// Refuses a dialect that cannot work.
///
/// # Panics
/// As [`merge`].
pub fn merged(text: &str, dialect: &Dialect) -> Result<Vec<Merged>, DialectError> {
    merged_of_chunks([text], dialect)
}
