//! The state of a conversation: its record, as the lines of a log, and its open questions. State is read and written by key, so
//! a long record is stored in parts.

use std::mem::take;

use plaincall::RunEvent;
use plaincall::log::{LineEncoder, read_log};
use restate_sdk::prelude::*;

use crate::open_questions;

/// The state key of the definitions of the invocation in progress.
pub(crate) const DEFINITIONS: &str = "definitions";
/// The state key of the problem of the last request to the model, which is repeated.
pub(crate) const PROBLEM: &str = "problem";
/// The state key of the number of questions so far.
pub(crate) const QUESTIONS: &str = "questions";
/// The beginnings of the state keys of the parts of the record, and of the open questions. A number follows.
const PART: &str = "record ";
const QUESTION: &str = "question ";
/// The number of events, and the size of their lines in bytes, after which a part is stored.
const EVENTS: u32 = 250;
const BYTES: usize = 4 << 20;
/// The longest record in one response, in bytes. Restate accepts values of 32 MiB.
const LONGEST_RESPONSE: usize = 24 << 20;

/// Returns the state key of a question.
pub(crate) fn question(number: u32) -> String {
    format!("{QUESTION}{number}")
}

/// The stored parts and questions, each with its number and key, in order.
pub(crate) struct Stored {
    pub(crate) parts: Vec<(u32, String)>,
    pub(crate) questions: Vec<(u32, String)>,
}

impl Stored {
    pub(crate) fn of(keys: &[String]) -> Self {
        let numbered = |beginning| {
            let numbered = keys.iter().filter_map(|key| {
                let number = key.strip_prefix(beginning)?.parse().ok()?;
                Some((number, key.clone()))
            });
            let mut numbered: Vec<_> = numbered.collect();
            numbered.sort_unstable();
            numbered
        };
        let (parts, questions) = (numbered(PART), numbered(QUESTION));
        Self { parts, questions }
    }
}

/// Closes the questions of an invocation that was killed.
pub(crate) fn close_questions(context: &ObjectContext<'_>, stored: &Stored) {
    for (number, key) in &stored.questions {
        open_questions::remove(context, *number);
        context.clear(key);
    }
}

/// Returns the events of the lines.
pub(crate) fn events(lines: &[u8]) -> Result<Vec<RunEvent>, TerminalError> {
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let record = read_log(lines).map_err(|error| {
        TerminalError::new(format!(
            "the record of the conversation is damaged: {error}"
        ))
    })?;
    Ok(record.events)
}

/// Returns the lines of all requested parts, and which parts have none that a later one does not have, or `None` if the lines are
/// longer than a limit.
pub(crate) async fn joined(
    parts: Vec<impl Future<Output = Result<Option<Vec<u8>>, TerminalError>>>,
    limit: usize,
) -> Result<Option<(Vec<u8>, Vec<usize>)>, TerminalError> {
    let (mut lines, mut superseded) = (Vec::new(), Vec::new());
    // The number of the first line of each part, and its place.
    let mut starts: Vec<(u64, usize, usize)> = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        let part = part.await?.unwrap_or_default();
        let Some(first) = first_number(&part) else {
            continue;
        };
        // If parts were just joined, or a kill prevented that they were removed, a later part has their lines too.
        while let Some((_, place, part)) = starts.pop_if(|(number, ..)| *number >= first) {
            lines.truncate(place);
            superseded.push(part);
        }
        starts.push((first, lines.len(), index));
        lines.extend(part);
        if lines.len() > limit {
            return Ok(None);
        }
    }
    Ok(Some((lines, superseded)))
}

/// Returns the number of the first of these lines.
fn first_number(lines: &[u8]) -> Option<u64> {
    let number = lines.strip_prefix(b"{\"n\":")?;
    let number = number.split(|byte| *byte == b',').next()?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// Returns the lines of one part, or of the whole record.
pub(crate) async fn lines(
    context: &SharedObjectContext<'_>,
    only: Option<u32>,
) -> Result<Vec<u8>, TerminalError> {
    let mut stored = Stored::of(&context.get_keys().await?);
    let count = stored.parts.len();
    if let Some(only) = only {
        let parts = stored.parts.into_iter().skip(only as usize);
        stored.parts = parts.take(1).collect();
    }
    if only.is_some() && stored.parts.is_empty() {
        let problem = format!("there is no such part; the record has {count} parts so far");
        return Err(TerminalError::new_with_code(404, problem));
    }
    let parts = stored.parts.iter();
    let parts = parts.map(|(_, key)| context.get(key)).collect();
    let joined = joined(parts, LONGEST_RESPONSE).await?;
    joined.map(|(lines, _)| lines).ok_or_else(|| {
        let problem = format!(
            "the record is too long for one response; request each of its {count} parts: {{\"part\": 0}}"
        );
        TerminalError::new_with_code(413, problem)
    })
}

/// The lines that are not stored yet, and parts that are joined later: each line is written at most twice, because the journal of
/// a reply has all that was written.
pub(crate) struct Record {
    part: u32,
    encoder: LineEncoder,
    lines: Vec<u8>,
    events: u32,
    /// The first of the parts that are joined later, and their lines.
    first: u32,
    stored: Vec<u8>,
}

impl Record {
    /// Continues a stored record of so many events.
    pub(crate) fn after(stored: &Stored, events: usize) -> Self {
        let part = stored.parts.last().map_or(0, |(last, _)| last + 1);
        Self {
            part,
            encoder: LineEncoder::from_number(events as u64),
            lines: Vec::new(),
            events: 0,
            first: part,
            stored: Vec::new(),
        }
    }

    /// Adds events. Stores them if they are many, or if `now`.
    pub(crate) fn add(&mut self, context: &ObjectContext<'_>, events: Vec<RunEvent>, now: bool) {
        for event in events {
            self.lines.extend(self.encoder.next_line(&event).as_bytes());
            self.events += 1;
            if self.events >= EVENTS || self.lines.len() >= BYTES {
                self.store(context);
            }
        }
        if now {
            self.store(context);
        }
    }

    fn store(&mut self, context: &ObjectContext<'_>) {
        if self.events > 0 {
            let lines = take(&mut self.lines);
            // The server and its clients take values up to a length, which one event may nearly have.
            if self.stored.len() + lines.len() > 2 * BYTES {
                self.join(context);
            }
            self.stored.extend(&lines);
            context.set(&key(self.part), lines);
            self.part += 1;
            self.events = 0;
            if self.stored.len() >= BYTES {
                self.join(context);
            }
        }
    }

    /// Joins the last parts, so that the record has few.
    pub(crate) fn join(&mut self, context: &ObjectContext<'_>) {
        let lines = take(&mut self.stored);
        if self.part - self.first > 1 {
            context.set(&key(self.part), lines);
            // From the last one, so that a reader finds no gap.
            for part in (self.first..self.part).rev() {
                context.clear(&key(part));
            }
            self.part += 1;
        }
        self.first = self.part;
    }
}

fn key(part: u32) -> String {
    format!("{PART}{part}")
}
