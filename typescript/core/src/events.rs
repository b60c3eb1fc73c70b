//! Events as the host reads them (`spec/common.md`, "Events").
//!
//! Each is a header of five numbers, then the source text, then what its kind adds, then zeros up to a multiple of four bytes.
//! The numbers have 32 bits, little-endian: the kind, the start and the end of the span, and the lengths of both texts. Most
//! kinds add nothing, a call its name, an argument its pointer, the end of a call how it ended, and others a JSON object.

use plaincall_syntax::{Event, EventKind, Header, Slot, Span, Syntax};
use serde::Serialize;

use crate::document::{self, DiagnosticView};
use crate::error::Error;

/// The kinds, in the order of their numbers. The host has the same list.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Reasoning,
    ValueDelta,
    ValueEnd,
    Ignored,
    Body,
    Argument,
    CallEnd,
    /// The start of a block call with nothing but a name.
    NamedCall,
    CallStart,
    Diagnostic,
    /// A complete call, which readers of replies add: its JSON, a line end, and the JSON of its arguments.
    #[cfg(feature = "gateway")]
    Call,
    /// A complete block call without problems, dependencies and diagnostics. Instead of JSON it has lines: its index, its name,
    /// its id, whether that was assigned, and the JSON of its arguments.
    #[cfg(feature = "gateway")]
    UsualCall,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallStart<'e> {
    syntax: &'static str,
    name: &'e str,
    id: Option<&'e str>,
    dependencies: Vec<&'e str>,
    raw_args: Option<&'e str>,
}

/// Writes an event.
pub(crate) fn write(output: &mut Vec<u8>, event: &Event<'_>) -> Result<(), Error> {
    let source = event.source();
    let kind = match &event.kind {
        EventKind::Text(_) => Kind::Text,
        EventKind::Reasoning(_) => Kind::Reasoning,
        EventKind::ValueDelta(_) => Kind::ValueDelta,
        EventKind::ValueEnd => Kind::ValueEnd,
        EventKind::CallStart(header) if is_only_named(header) => {
            let name = header.name().as_bytes();
            return write_one(output, Kind::NamedCall, event.span, source, name);
        }
        EventKind::CallStart(header) => {
            let start = CallStart {
                syntax: header.syntax().name(),
                name: header.name(),
                id: header.id(),
                dependencies: header.dependencies().collect(),
                raw_args: header.raw_args(),
            };
            return write_json(output, Kind::CallStart, event.span, source, &start);
        }
        EventKind::ValueStart(Slot::Body) => Kind::Body,
        EventKind::ValueStart(Slot::Argument(pointer)) => {
            let pointer = pointer.as_str().as_bytes();
            return write_one(output, Kind::Argument, event.span, source, pointer);
        }
        EventKind::CallEnd(ending) => {
            let termination = ending.termination().name().as_bytes();
            return write_one(output, Kind::CallEnd, event.span, source, termination);
        }
        EventKind::Diagnostic(found) => {
            let found = found.into();
            let view = DiagnosticView::new(&found);
            return write_json(output, Kind::Diagnostic, event.span, "", &view);
        }
        // Kinds that this version does not know are bytes without a meaning.
        _ => Kind::Ignored,
    };
    write_one(output, kind, event.span, source, b"")
}

fn is_only_named(header: &Header<'_>) -> bool {
    header.syntax() == Syntax::Block
        && header.id().is_none()
        && header.dependencies().next().is_none()
}

/// Writes a complete call.
#[cfg(feature = "gateway")]
pub(crate) fn write_call(
    output: &mut Vec<u8>,
    mut call: document::CallView<'_>,
    span: Span,
) -> Result<(), Error> {
    let usual = call.usual_lines();
    // In the JSON of the call, both would be escaped, which takes longer than all else.
    let source = call.source.take().unwrap_or_default();
    let arguments = call.arguments_json.take().unwrap_or_default();
    // Even without them, writing and reading the JSON takes longer than reading the reply.
    if let Some(mut lines) = usual {
        lines.push_str(&arguments);
        return write_one(output, Kind::UsualCall, span, source, lines.as_bytes());
    }
    let mut json = Vec::new();
    document::write(&mut json, &call)?;
    json.push(b'\n');
    json.extend_from_slice(arguments.as_bytes());
    write_one(output, Kind::Call, span, source, &json)
}

fn write_json(
    output: &mut Vec<u8>,
    kind: Kind,
    span: Span,
    source: &str,
    more: &impl Serialize,
) -> Result<(), Error> {
    let mut json = Vec::new();
    document::write(&mut json, more)?;
    write_one(output, kind, span, source, &json)
}

fn write_one(
    output: &mut Vec<u8>,
    kind: Kind,
    span: Span,
    source: &str,
    more: &[u8],
) -> Result<(), Error> {
    let numbers = [
        kind as usize,
        span.start,
        span.end,
        source.len(),
        more.len(),
    ];
    let mut header = [0; 20];
    for (place, number) in header.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number_bytes(number)?);
    }
    output.extend_from_slice(&header);
    output.extend_from_slice(source.as_bytes());
    output.extend_from_slice(more);
    output.resize(output.len().next_multiple_of(4), 0);
    Ok(())
}

fn number_bytes(number: usize) -> Result<[u8; 4], Error> {
    let number = u32::try_from(number).map_err(|_| Error::argument("the text is too long"))?;
    Ok(number.to_le_bytes())
}
