//! The record of a conversation, in the state of its virtual object.

use plaincall::RunEvent;
use plaincall::log::LineEncoder;
use restate_sdk::prelude::*;

/// The state key of the number of parts.
const PARTS: &str = "record parts";
/// The state key of the open questions.
pub(crate) const QUESTIONS: &str = "questions";
/// The state key of the definitions of the invocation in progress.
pub(crate) const DEFINITIONS: &str = "definitions";
/// The number of events, and the size of their outputs in bytes, after which a part is written. Restate accepts values of
/// 32 MiB.
const PART: usize = 250;
const PART_BYTES: usize = 4 << 20;

/// The state key of a part. State is read and written by key, so a long record is stored in parts.
fn part(number: u32) -> String {
    format!("record {number}")
}

/// The events that are not stored yet.
#[derive(Default)]
pub(crate) struct Record {
    parts: u32,
    events: Vec<RunEvent>,
    bytes: usize,
}

impl Record {
    pub(crate) fn after(parts: u32) -> Self {
        Self {
            parts,
            ..Self::default()
        }
    }

    /// Adds events. Stores them if they are many, or if `now`.
    pub(crate) fn add(&mut self, context: &ObjectContext<'_>, events: Vec<RunEvent>, now: bool) {
        for event in events {
            self.bytes += match &event {
                RunEvent::Result(result) => result.output.as_ref().map_or(0, |text| text.len()),
                RunEvent::Text(part) => part.source.as_bytes().len(),
                _ => 0,
            };
            self.events.push(event);
            if self.events.len() >= PART || self.bytes >= PART_BYTES {
                self.store(context);
            }
        }
        if now && !self.events.is_empty() {
            self.store(context);
        }
    }

    fn store(&mut self, context: &ObjectContext<'_>) {
        let events = std::mem::take(&mut self.events);
        context.set(&part(self.parts), Json(events));
        self.parts += 1;
        self.bytes = 0;
        context.set(PARTS, self.parts);
    }
}

/// Reads the stored events, and the number of their parts.
macro_rules! stored {
    ($context:expr) => {{
        let parts = $context.get::<u32>(PARTS).await?.unwrap_or_default();
        let keys: Vec<String> = (0..parts).map(part).collect();
        let mut events = Vec::new();
        for key in &keys {
            let part = $context.get::<Json<Vec<RunEvent>>>(key).await?;
            events.extend(part.map(Json::into_inner).unwrap_or_default());
        }
        (parts, events)
    }};
}

pub(crate) async fn read(
    context: &ObjectContext<'_>,
) -> Result<(u32, Vec<RunEvent>), TerminalError> {
    Ok(stored!(context))
}

/// Returns the record as the lines of a log.
pub(crate) async fn lines(context: &SharedObjectContext<'_>) -> Result<String, TerminalError> {
    let (_, events) = stored!(context);
    let mut encoder = LineEncoder::default();
    Ok(events
        .iter()
        .map(|event| encoder.next_line(event))
        .collect())
}
