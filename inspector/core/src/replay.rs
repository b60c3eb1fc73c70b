//! A reply that arrives in chunks.

use plaincall_report::splits::{SplitCheck, Splits};
use plaincall_syntax::{ByteParser, Event, EventKind, Slot};
use serde::Serialize;

use crate::parts::{Part, Parts};
use crate::settings::Inspected;

/// How much of a value is returned, in characters.
const SHOWN: usize = 400;

/// A moment of a reply that arrives in chunks.
#[derive(Serialize)]
pub(crate) struct Moment {
    parts: Vec<Part>,
    calls: Vec<KnownCall>,
    /// The end of what is known. The bytes from here to `fed` are held back.
    known: usize,
    /// The end of what has arrived.
    fed: usize,
    /// Whether the text is complete.
    is_over: bool,
}

#[derive(Serialize)]
struct KnownCall {
    name: String,
    id: Option<String>,
    /// Pointer and text of each value; the last one may still be arriving.
    values: Vec<(Option<String>, String)>,
    is_complete: bool,
}

/// The result of some splits.
#[derive(Serialize)]
pub(crate) struct SplitResult {
    /// The number of all splits.
    total: usize,
    /// How many were tried now.
    tried: usize,
    /// What all splits are, for people.
    splits: String,
    difference: Option<String>,
}

/// Feeds chunks of this many bytes. After the last one, the text is complete.
pub(crate) fn replay(inspected: &Inspected, size: usize, chunks: usize) -> Result<Moment, String> {
    let text = inspected.source.text.as_bytes();
    let mut parser = ByteParser::new(&inspected.dialect).map_err(|error| error.to_string())?;
    let mut parts = Parts::default();
    let mut calls = Vec::new();
    let all = text.chunks(size.max(1));
    let count = all.len();
    let mut fed = 0;
    for chunk in all.take(chunks) {
        fed += chunk.len();
        for event in parser.feed(chunk) {
            parts.push(&event);
            note(&mut calls, &event);
        }
    }
    let is_over = chunks > count;
    if is_over {
        for event in parser.finish() {
            parts.push(&event);
            note(&mut calls, &event);
        }
    }
    let parts = parts.list;
    Ok(Moment {
        known: parts.last().map_or(0, |part| part.end),
        parts,
        calls,
        fed,
        is_over,
    })
}

fn note(calls: &mut Vec<KnownCall>, event: &Event<'_>) {
    if let EventKind::CallStart(header) = &event.kind {
        calls.push(KnownCall {
            name: header.name().to_owned(),
            id: header.id().map(str::to_owned),
            values: Vec::new(),
            is_complete: false,
        });
    }
    let Some(call) = calls.last_mut() else { return };
    match &event.kind {
        EventKind::ValueStart(slot) => {
            let pointer = match slot {
                Slot::Argument(pointer) => Some(pointer.as_str().to_owned()),
                Slot::Body => None,
            };
            call.values.push((pointer, String::new()));
        }
        EventKind::ValueDelta(text) => {
            if let Some((_, value)) = call.values.last_mut() {
                let room = SHOWN.saturating_sub(value.chars().count());
                value.extend(text.as_str().chars().take(room));
            }
        }
        EventKind::CallEnd(_) => call.is_complete = true,
        _ => {}
    }
}

/// Tries some splits.
pub(crate) fn every_split(
    inspected: &Inspected,
    from: usize,
    count: usize,
) -> Result<SplitResult, String> {
    let text = inspected.source.text.as_bytes();
    let check = SplitCheck::new(text, &inspected.dialect).map_err(|error| error.to_string())?;
    let splits = Splits::new(text.len());
    let mut result = SplitResult {
        total: splits.count(),
        tried: 0,
        splits: splits.to_string(),
        difference: None,
    };
    let some = from..from.saturating_add(count).min(splits.count());
    for split in some.filter_map(|index| splits.get(index)) {
        result.difference = check
            .difference(&split)
            .map_err(|error| error.to_string())?;
        result.tried += 1;
        if result.difference.is_some() {
            break;
        }
    }
    Ok(result)
}
