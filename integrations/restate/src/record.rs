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
/// The number of events after which a part is written.
const PART: usize = 250;

/// The state key of a part. State is read and written by key, so a long record is stored in parts.
fn part(number: u32) -> String {
    format!("record {number}")
}

/// The events that are not stored yet.
#[derive(Default)]
pub(crate) struct Record {
    parts: u32,
    events: Vec<RunEvent>,
}

impl Record {
    pub(crate) fn after(parts: u32) -> Self {
        let events = Vec::new();
        Self { parts, events }
    }

    /// Adds events. Stores them if they are many, or if `now`.
    pub(crate) fn add(&mut self, context: &ObjectContext<'_>, events: Vec<RunEvent>, now: bool) {
        self.events.extend(events);
        if self.events.len() < if now { 1 } else { PART } {
            return;
        }
        let events = std::mem::take(&mut self.events);
        context.set(&part(self.parts), Json(events));
        self.parts += 1;
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
