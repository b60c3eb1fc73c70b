//! The measured ways of reading, and one whose result is compared with the payload.

use std::hint::black_box;

use plaincall_syntax::{Event, EventKind, Events, Parser, Slot, Termination};

use crate::payload::{Call, Part};

/// The use of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each event is inspected and dropped.
    Events,
    /// The same with a `for` loop; the other modes use `for_each`.
    EventsInLoop,
    /// The pieces of each value are collected in a string of its own.
    Values,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Events, Self::EventsInLoop, Self::Values];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Events => "events consumed, nothing assembled",
            Self::EventsInLoop => "the same by a `for` loop",
            Self::Values => "values assembled as text",
        }
    }
}

/// Reads all chunks with a copy of `parser`.
pub(crate) fn read(parser: &Parser, chunks: &[&str], mode: Mode) {
    match mode {
        Mode::Events => run(parser, chunks, &mut Look::default(), at_once),
        Mode::EventsInLoop => run(parser, chunks, &mut Look::default(), one_by_one),
        Mode::Values => run(parser, chunks, &mut Assemble::default(), at_once),
    }
}

/// Reads all chunks with a copy of `parser` and returns their contents.
pub(crate) fn parts(parser: &Parser, chunks: &[&str]) -> Vec<Part> {
    let mut collect = Collect::default();
    run(parser, chunks, &mut collect, at_once);
    collect.parts
}

trait Reader {
    fn event(&mut self, event: &Event<'_>);
    fn finish(&mut self) {}
}

fn run<R: Reader>(
    parser: &Parser,
    chunks: &[&str],
    reader: &mut R,
    take: impl Fn(Events<'_, '_>, &mut R),
) {
    let mut parser = parser.clone();
    for chunk in chunks {
        take(parser.feed(chunk), reader);
    }
    for event in parser.finish() {
        reader.event(&event);
    }
    reader.finish();
}

#[inline]
fn at_once<R: Reader>(events: Events<'_, '_>, reader: &mut R) {
    events.for_each(|event| reader.event(&event));
}

#[inline]
fn one_by_one<R: Reader>(events: Events<'_, '_>, reader: &mut R) {
    for event in events {
        reader.event(&event);
    }
}

/// Counts the events, so that the compiler cannot remove any of them.
#[derive(Default)]
struct Look {
    bytes: usize,
    events: usize,
}

impl Reader for Look {
    #[allow(
        clippy::inline_always,
        reason = "measured: what an event is, is then known where it is made"
    )]
    #[inline(always)]
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.bytes += match &event.kind {
            EventKind::Text(text) | EventKind::Reasoning(text) | EventKind::ValueDelta(text) => {
                black_box(&**text).len()
            }
            EventKind::CallStart(header) => black_box(header.name()).len(),
            EventKind::ValueStart(Slot::Argument(pointer)) => black_box(pointer.as_str()).len(),
            _ => 0,
        };
    }

    fn finish(&mut self) {
        black_box((self.bytes, self.events));
    }
}

#[derive(Default)]
struct Assemble {
    value: String,
    values: usize,
}

impl Reader for Assemble {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        match &event.kind {
            EventKind::Text(text) | EventKind::Reasoning(text) => {
                black_box(&**text);
            }
            EventKind::ValueDelta(text) => self.value.push_str(text),
            EventKind::ValueEnd => {
                self.values += 1;
                // Users keep each value, so the next one does not reuse its memory.
                drop(black_box(std::mem::take(&mut self.value)));
            }
            EventKind::CallStart(header) => {
                black_box(header.name());
            }
            EventKind::ValueStart(Slot::Argument(pointer)) => {
                black_box(pointer.as_str());
            }
            _ => {}
        }
    }

    fn finish(&mut self) {
        black_box(self.values);
    }
}

#[derive(Default)]
struct Collect {
    parts: Vec<Part>,
    call: Call,
}

impl Reader for Collect {
    fn event(&mut self, event: &Event<'_>) {
        match &event.kind {
            EventKind::Text(text) => match self.parts.last_mut() {
                Some(Part::Text(before)) => before.push_str(text),
                _ => self.parts.push(Part::Text(text.to_string())),
            },
            EventKind::CallStart(header) => {
                self.call = Call {
                    name: header.name().to_owned(),
                    line: header.raw_args().unwrap_or_default().to_owned(),
                    ..Call::default()
                };
            }
            EventKind::ValueStart(slot) => {
                let pointer = match slot {
                    Slot::Argument(pointer) => pointer.as_str().to_owned(),
                    Slot::Body => String::new(),
                };
                self.call.values.push((pointer, String::new()));
            }
            EventKind::ValueDelta(text) => {
                if let Some((_, value)) = self.call.values.last_mut() {
                    value.push_str(text);
                }
            }
            EventKind::CallEnd(ending) => {
                let mut call = std::mem::take(&mut self.call);
                call.closed = ending.termination() == Termination::Explicit;
                self.parts.push(Part::Call(call));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use plaincall_syntax::Parser;

    use super::parts;
    use crate::chunks::{SIZES, cut};
    use crate::payload::{self, Payload};

    fn check(payload: &Payload) {
        let parser = Parser::new(&payload.dialect).expect("the dialect is a default one");
        for size in SIZES {
            let found = parts(&parser, &cut(&payload.text, size));
            assert!(
                found == payload.parts,
                "{} in chunks of {size:?}",
                payload.name
            );
        }
    }

    #[test]
    fn payloads_contain_their_calls() {
        check(&payload::words(40_000));
        check(&payload::prose(40_000));
        check(&payload::value(40_000));
        check(&payload::tiny(500));
        check(&payload::heavy(50));
        check(&payload::emoji(40_000));
    }

    #[test]
    fn five_percent_of_the_prose_are_calls() {
        let payload = payload::prose(500_000);
        let outside: usize = payload
            .parts
            .iter()
            .map(|part| match part {
                payload::Part::Text(text) => text.len(),
                payload::Part::Call(_) => 0,
            })
            .sum();
        let inside = payload.text.len() - outside;
        let share = inside * 1000 / payload.text.len();
        assert!((45..=55).contains(&share), "{share} per mille");
    }
}
