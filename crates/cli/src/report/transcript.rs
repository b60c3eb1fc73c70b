//! A reply, read once more: its text, with its calls where they were written.

use std::collections::VecDeque;

use plaincall::{
    Dialect,
    events::{Appeared, Source},
};
use plaincall_syntax::{ByteParser, Event, EventKind, Header};
use serde::Serialize;

/// What arrived of a reply, in order.
#[derive(Debug)]
pub(crate) enum Delta {
    Source(Source),
    Call(Box<Appeared>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Segment {
    Text { text: String },
    Reasoning { text: String },
    Call { call: u32 },
}

/// A reply that has been read.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) segments: Vec<Segment>,
    /// Each call as it was written, if the calls were found where they were written.
    pub(crate) sources: Vec<String>,
    pub(crate) is_exact: bool,
}

/// Reads a reply whose first call has this number. If it does not hold the calls that the record names, the run has read
/// it in another way; then the whole text is shown as it arrived.
pub(crate) fn read(deltas: &[Delta], first_call: u32, dialect: &Dialect) -> Transcript {
    as_written(deltas, first_call, dialect).unwrap_or_else(|| as_arrived(deltas, first_call))
}

fn as_written(deltas: &[Delta], first_call: u32, dialect: &Dialect) -> Option<Transcript> {
    let mut parser = ByteParser::new(dialect).ok()?;
    let recorded = deltas.iter().filter_map(|delta| match delta {
        Delta::Call(call) => Some(&**call),
        Delta::Source(_) => None,
    });
    let mut reader = Reader {
        recorded: (first_call..).zip(recorded).collect(),
        inside: Inside::Text,
        transcript: Transcript::default(),
    };
    for delta in deltas {
        if let Delta::Source(source) = delta {
            let mut events = parser.feed(source.as_bytes());
            events.try_for_each(|event| reader.take(&event))?;
        }
    }
    parser.finish().try_for_each(|event| reader.take(&event))?;
    reader.recorded.is_empty().then_some(Transcript {
        is_exact: true,
        ..reader.transcript
    })
}

/// Text and calls in the order in which the record has them.
fn as_arrived(deltas: &[Delta], first_call: u32) -> Transcript {
    let mut transcript = Transcript::default();
    let mut bytes = Vec::new();
    let mut next = first_call;
    for delta in deltas {
        match delta {
            Delta::Source(source) => bytes.extend_from_slice(source.as_bytes()),
            Delta::Call(_) => {
                transcript.text(&String::from_utf8_lossy(&std::mem::take(&mut bytes)));
                transcript.segments.push(Segment::Call { call: next });
                next = next.saturating_add(1);
            }
        }
    }
    transcript.text(&String::from_utf8_lossy(&bytes));
    transcript
}

impl Transcript {
    fn text(&mut self, more: &str) {
        match self.segments.last_mut() {
            Some(Segment::Text { text }) => text.push_str(more),
            _ if more.is_empty() => {}
            _ => self.segments.push(Segment::Text { text: more.into() }),
        }
    }

    fn reasoning(&mut self, more: &str) {
        match self.segments.last_mut() {
            Some(Segment::Reasoning { text }) => text.push_str(more),
            _ => self.segments.push(Segment::Reasoning { text: more.into() }),
        }
    }
}

/// The reading of a reply that may be the right one.
struct Reader<'r> {
    /// The calls that the record has and that have not been found yet, with their numbers.
    recorded: VecDeque<(u32, &'r Appeared)>,
    inside: Inside,
    transcript: Transcript,
}

/// Where in the reply the reading is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Text,
    /// A call that the record knows.
    Call,
    /// A call that is not in the log, which ends before it.
    Unknown,
}

impl Reader<'_> {
    /// Takes the next event; nothing if it cannot be the right reading.
    fn take(&mut self, event: &Event<'_>) -> Option<()> {
        match &event.kind {
            EventKind::Text(text) => self.transcript.text(text),
            EventKind::Reasoning(text) => self.transcript.reasoning(text),
            EventKind::CallStart(header) => self.begin_call(header)?,
            _ => {}
        }
        match self.inside {
            Inside::Call => {
                if let Some(source) = self.transcript.sources.last_mut() {
                    source.push_str(event.source());
                }
            }
            Inside::Unknown => self.transcript.text(event.source()),
            Inside::Text => {}
        }
        if matches!(event.kind, EventKind::CallEnd(_)) {
            self.inside = Inside::Text;
        }
        Some(())
    }

    fn begin_call(&mut self, header: &Header<'_>) -> Option<()> {
        let Some((number, call)) = self.recorded.pop_front() else {
            self.inside = Inside::Unknown;
            return Some(());
        };
        let has_its_id = header.id().is_none_or(|id| id == &*call.id);
        if header.name() != &*call.name || !has_its_id {
            return None;
        }
        let segment = Segment::Call { call: number };
        self.transcript.segments.push(segment);
        self.transcript.sources.push(String::new());
        self.inside = Inside::Call;
        Some(())
    }
}
