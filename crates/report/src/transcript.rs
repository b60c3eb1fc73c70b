//! Replies of a log, parsed again to find the positions of their calls.

use std::collections::VecDeque;

use plaincall::{
    Dialect,
    events::{Appeared, Source},
};
use plaincall_syntax::{ByteParser, Event, EventKind, Header};
use serde::Serialize;

/// A logged piece of a reply.
#[derive(Debug)]
pub(crate) enum Delta {
    Source(Source),
    Call(Box<Appeared>),
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Segment {
    /// Text outside calls.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning.
    Reasoning {
        /// The text.
        text: String,
    },
    /// A call.
    Call {
        /// The number of the call.
        call: u32,
    },
}

/// A parsed reply.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) segments: Vec<Segment>,
    /// The sources of the calls, by number, if the calls were found in the text.
    pub(crate) sources: Vec<(u32, String)>,
    pub(crate) is_exact: bool,
}

/// Parses a reply. If the calls differ from those in the log, the dialect was a different one; the text is then returned as
/// it arrived.
pub(crate) fn read(deltas: &[Delta], dialect: &Dialect) -> Transcript {
    exact(deltas, dialect).unwrap_or_else(|| as_arrived(deltas))
}

fn exact(deltas: &[Delta], dialect: &Dialect) -> Option<Transcript> {
    let mut parser = ByteParser::new(dialect).ok()?;
    let logged = deltas.iter().filter_map(|delta| match delta {
        Delta::Call(call) => Some(&**call),
        Delta::Source(_) => None,
    });
    let mut reader = Reader {
        logged: logged.collect(),
        position: Position::Text,
        transcript: Transcript::default(),
    };
    for delta in deltas {
        if let Delta::Source(source) = delta {
            let mut events = parser.feed(source.as_bytes());
            events.try_for_each(|event| reader.handle(&event))?;
        }
    }
    parser
        .finish()
        .try_for_each(|event| reader.handle(&event))?;
    reader.logged.is_empty().then_some(Transcript {
        is_exact: true,
        ..reader.transcript
    })
}

/// Returns text and calls in the order of the log.
fn as_arrived(deltas: &[Delta]) -> Transcript {
    let mut transcript = Transcript::default();
    let mut bytes = Vec::new();
    for delta in deltas {
        match delta {
            Delta::Source(source) => bytes.extend_from_slice(source.as_bytes()),
            Delta::Call(call) => {
                transcript.text(&String::from_utf8_lossy(&std::mem::take(&mut bytes)));
                transcript.segments.push(Segment::Call { call: call.call });
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

/// Parses a reply and compares its calls with the log.
struct Reader<'r> {
    /// Logged calls that were not found yet.
    logged: VecDeque<&'r Appeared>,
    position: Position,
    transcript: Transcript,
}

/// The current position in the reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Text,
    /// A logged call.
    Call,
    /// A call that is not in the log, because the log ends before it.
    Unknown,
}

impl Reader<'_> {
    /// Handles an event. Returns none if the calls differ from the log.
    fn handle(&mut self, event: &Event<'_>) -> Option<()> {
        match &event.kind {
            EventKind::Text(text) => self.transcript.text(text),
            EventKind::Reasoning(text) => self.transcript.reasoning(text),
            EventKind::CallStart(header) => self.begin_call(header)?,
            _ => {}
        }
        match self.position {
            Position::Call => {
                if let Some((_, source)) = self.transcript.sources.last_mut() {
                    source.push_str(event.source());
                }
            }
            Position::Unknown => self.transcript.text(event.source()),
            Position::Text => {}
        }
        if matches!(event.kind, EventKind::CallEnd(_)) {
            self.position = Position::Text;
        }
        Some(())
    }

    fn begin_call(&mut self, header: &Header<'_>) -> Option<()> {
        let Some(call) = self.logged.pop_front() else {
            self.position = Position::Unknown;
            return Some(());
        };
        let is_same_id = header.id().is_none_or(|id| id == &*call.id);
        if header.name() != &*call.name || !is_same_id {
            return None;
        }
        let segment = Segment::Call { call: call.call };
        self.transcript.segments.push(segment);
        self.transcript.sources.push((call.call, String::new()));
        self.position = Position::Call;
        Some(())
    }
}
