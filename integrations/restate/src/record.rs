//! The record of a conversation: the lines of a log, in the state of its virtual object.

use plaincall::RunEvent;
use plaincall::log::{LineEncoder, read_log};
use restate_sdk::prelude::*;

/// The state key of the number of parts.
const PARTS: &str = "record parts";
/// The state key of the open questions.
pub(crate) const QUESTIONS: &str = "questions";
/// The state key of the definitions of the invocation in progress.
pub(crate) const DEFINITIONS: &str = "definitions";
/// The number of events, and the size of their lines in bytes, after which a part is written.
const PART: u32 = 250;
const PART_BYTES: usize = 4 << 20;
/// The longest record in one response, in bytes. Restate accepts values of 32 MiB.
const LARGEST: usize = 24 << 20;

/// The state key of a part. State is read and written by key, so a long record is stored in parts.
fn part(number: u32) -> String {
    format!("record {number}")
}

/// The lines that are not stored yet.
pub(crate) struct Record {
    parts: u32,
    encoder: LineEncoder,
    lines: Vec<u8>,
    events: u32,
}

impl Record {
    /// Continues a record of so many parts and events.
    pub(crate) fn after(parts: u32, events: usize) -> Self {
        Self {
            parts,
            encoder: LineEncoder::from_number(events as u64),
            lines: Vec::new(),
            events: 0,
        }
    }

    /// Adds events. Stores them if they are many, or if `now`.
    pub(crate) fn add(&mut self, context: &ObjectContext<'_>, events: Vec<RunEvent>, now: bool) {
        for event in events {
            self.lines.extend(self.encoder.next_line(&event).as_bytes());
            self.events += 1;
            if self.events >= PART || self.lines.len() >= PART_BYTES {
                self.store(context);
            }
        }
        if now && self.events > 0 {
            self.store(context);
        }
    }

    fn store(&mut self, context: &ObjectContext<'_>) {
        context.set(&part(self.parts), std::mem::take(&mut self.lines));
        self.parts += 1;
        self.events = 0;
        context.set(PARTS, self.parts);
    }
}

/// Returns the stored events, and the number of their parts.
pub(crate) async fn read(
    context: &ObjectContext<'_>,
) -> Result<(u32, Vec<RunEvent>), TerminalError> {
    let parts = context.get::<u32>(PARTS).await?.unwrap_or_default();
    let keys: Vec<String> = (0..parts).map(part).collect();
    let mut lines = Vec::new();
    for key in &keys {
        lines.extend(context.get::<Vec<u8>>(key).await?.unwrap_or_default());
    }
    if lines.is_empty() {
        return Ok((parts, Vec::new()));
    }
    let record = read_log(&lines).map_err(TerminalError::from_error)?;
    Ok((parts, record.events))
}

/// Returns the lines of one part, or of the whole record.
pub(crate) async fn lines(
    context: &SharedObjectContext<'_>,
    only: Option<u32>,
) -> Result<Vec<u8>, TerminalError> {
    let parts = context.get::<u32>(PARTS).await?.unwrap_or_default();
    let keys: Vec<String> = match only {
        Some(number) if number < parts => vec![part(number)],
        Some(number) => {
            let problem = format!("there is no part {number}; the record has {parts} so far");
            return Err(TerminalError::new_with_code(404, problem));
        }
        None => (0..parts).map(part).collect(),
    };
    let mut lines = Vec::new();
    for key in &keys {
        lines.extend(context.get::<Vec<u8>>(key).await?.unwrap_or_default());
        if lines.len() > LARGEST {
            let problem = format!(
                "the record is too long for one response; request each of its {parts} parts: {{\"part\": 0}}"
            );
            return Err(TerminalError::new_with_code(413, problem));
        }
    }
    Ok(lines)
}
