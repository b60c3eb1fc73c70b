//! Events as the host reads them (`spec/common.md`, "Events").
//!
//! Each is a header of five numbers, then the source text, then a JSON object, then zeros up to a multiple of four bytes. The
//! numbers have 32 bits, little-endian: the kind, the start and the end of the span, and the lengths of text and JSON.

use plaincall_syntax::{Event, EventKind, Slot, Span};
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
    CallStart,
    ValueStart,
    CallEnd,
    Diagnostic,
    /// A complete call, which readers of replies add.
    #[cfg(feature = "gateway")]
    Call,
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

#[derive(Serialize)]
struct ValueStart<'e> {
    pointer: Option<&'e str>,
}

#[derive(Serialize)]
struct CallEnd {
    termination: &'static str,
}

/// Writes an event.
pub(crate) fn write(output: &mut Vec<u8>, event: &Event<'_>) -> Result<(), Error> {
    let source = event.source();
    let kind = match &event.kind {
        EventKind::Text(_) => Kind::Text,
        EventKind::Reasoning(_) => Kind::Reasoning,
        EventKind::ValueDelta(_) => Kind::ValueDelta,
        EventKind::ValueEnd => Kind::ValueEnd,
        EventKind::CallStart(header) => {
            let start = CallStart {
                syntax: header.syntax().name(),
                name: header.name(),
                id: header.id(),
                dependencies: header.dependencies().collect(),
                raw_args: header.raw_args(),
            };
            return write_one(output, Kind::CallStart, event.span, source, Some(&start));
        }
        EventKind::ValueStart(slot) => {
            let pointer = match slot {
                Slot::Argument(pointer) => Some(pointer.as_str()),
                Slot::Body => None,
            };
            let start = ValueStart { pointer };
            return write_one(output, Kind::ValueStart, event.span, source, Some(&start));
        }
        EventKind::CallEnd(ending) => {
            let end = CallEnd {
                termination: ending.termination().name(),
            };
            return write_one(output, Kind::CallEnd, event.span, source, Some(&end));
        }
        EventKind::Diagnostic(found) => {
            let found = found.into();
            let view = DiagnosticView::new(&found);
            return write_one(output, Kind::Diagnostic, event.span, "", Some(&view));
        }
        // Kinds that this version does not know are bytes without a meaning.
        _ => Kind::Ignored,
    };
    write_one(output, kind, event.span, source, None::<&()>)
}

/// Writes a complete call.
#[cfg(feature = "gateway")]
pub(crate) fn write_call(
    output: &mut Vec<u8>,
    call: &document::CallView<'_>,
    span: Span,
) -> Result<(), Error> {
    write_one(output, Kind::Call, span, "", Some(call))
}

fn write_one(
    output: &mut Vec<u8>,
    kind: Kind,
    span: Span,
    source: &str,
    more: Option<&impl Serialize>,
) -> Result<(), Error> {
    let begin = output.len();
    let mut header = [0; HEADER];
    let numbers = [kind as usize, span.start, span.end, source.len()];
    for (place, number) in header.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number_bytes(number)?);
    }
    output.extend_from_slice(&header);
    output.extend_from_slice(source.as_bytes());
    if let Some(more) = more {
        document::write(output, more)?;
        let json = number_bytes(output.len() - begin - HEADER - source.len())?;
        let place = begin + HEADER - json.len();
        if let Some(place) = output.get_mut(place..begin + HEADER) {
            place.copy_from_slice(&json);
        }
    }
    output.resize(output.len().next_multiple_of(4), 0);
    Ok(())
}

fn number_bytes(number: usize) -> Result<[u8; 4], Error> {
    let number = u32::try_from(number).map_err(|_| Error::argument("the text is too long"))?;
    Ok(number.to_le_bytes())
}

/// The length of the five numbers, in bytes.
const HEADER: usize = 20;
