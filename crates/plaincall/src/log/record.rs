//! Reads a log, and recognizes an unfinished end and damage.

use std::collections::btree_map;

use plaincall_tool::Effect;
use serde::Deserialize;

use super::error::LogError;
use super::line::{self, LOG_VERSION};

use crate::event::{DamagedEnd, RunEvent};

/// The start of the first line of every log, in every version.
const BEGINNING: &[u8] = b"{\"n\":0,\"event\":\"run\",\"version\":";

/// The content of a log.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// The events, in order. The first is [`RunEvent::Run`].
    pub events: Vec<RunEvent>,
    /// The size of their lines, in bytes.
    pub bytes: usize,
    /// The unfinished end after them, if any.
    pub torn: Option<TornTail>,
}

/// An unfinished end of a log, left by a crash (`spec/log.md`, "Torn ends and damage").
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TornTail {
    /// Its first line, from 1.
    pub line: u64,
    /// Its size, in bytes.
    pub bytes: usize,
    /// Whether the line may be the start of a call of a tool that writes. Then such a call counts as started.
    pub may_be_start: bool,
}

/// Reads a log (`spec/log.md`). An unfinished end is not an error: see [`Record::torn`].
///
/// # Errors
/// Returns an error if the log is empty, damaged or not a log, or if this version cannot read it.
pub fn read_log(bytes: &[u8]) -> Result<Record, LogError> {
    match Record::read_as_far_as_possible(bytes) {
        (record, None) => Ok(record),
        (_, Some(error)) => Err(error),
    }
}

impl Record {
    /// Reads a log up to the first line that is damaged or unknown, and returns what precedes it with the error. Use this to
    /// show a damaged log.
    pub fn read_as_far_as_possible(bytes: &[u8]) -> (Self, Option<LogError>) {
        let mut record = Self::default();
        let mut number = 0;
        while let Some(rest) = bytes.get(record.bytes..).filter(|rest| !rest.is_empty()) {
            let line = first_line(rest);
            match read_line(line, number) {
                Ok(event) => record.events.push(event),
                Err(LineError::Content(error)) => return (record, Some(error)),
                Err(LineError::Bytes(what)) => {
                    let error = record.stop(rest, number, what);
                    return (record, error);
                }
            }
            record.bytes += line.len();
            number += 1;
        }
        let error = (number == 0).then_some(LogError::Empty);
        (record, error)
    }

    fn has_tools_that_write(&self) -> bool {
        let mut tools = self.events.iter().flat_map(|event| match event {
            RunEvent::Run(begin) => begin.tools.values(),
            RunEvent::Resumed(resumed) => resumed.tools.values(),
            _ => btree_map::Values::default(),
        });
        tools.any(|tool| tool.effect == Effect::Write)
    }

    /// Returns the event that replaces an unfinished end that may be a start.
    pub(super) fn stand_in(&self) -> Option<RunEvent> {
        let torn = self.torn.as_ref().filter(|torn| torn.may_be_start)?;
        Some(RunEvent::DamagedEnd(DamagedEnd {
            bytes: torn.bytes,
            at: self.events.last().map(RunEvent::at).unwrap_or_default(),
        }))
    }

    /// Decides whether a line that is not intact is the unfinished end of the log, or damage.
    fn stop(&mut self, rest: &[u8], number: u64, what: &'static str) -> Option<LogError> {
        let line = number + 1;
        let damaged = LogError::Damaged {
            line,
            what: what.to_owned(),
        };
        let bad = first_line(rest);
        if has_later_start(rest, number) {
            return Some(damaged);
        }
        let after = rest.get(bad.len()..).unwrap_or_default();
        if number == 0 {
            let common = bad.len().min(BEGINNING.len());
            return Some(if bad.get(..common) != BEGINNING.get(..common) {
                LogError::NotALog {
                    what: "it does not start like one; name a file that `plaincall run --log FILE` wrote".to_owned(),
                }
            } else if after.is_empty() {
                LogError::Empty
            } else {
                damaged
            });
        }
        if lines(after).any(|line| line::check(line).is_ok()) {
            return Some(damaged);
        }
        self.torn = Some(TornTail {
            line,
            bytes: rest.len(),
            may_be_start: self.has_tools_that_write() && may_be_start(rest, number),
        });
        None
    }
}

/// The start of a call, and the event that replaces a damaged one.
const STARTS: [&str; 2] = ["Start", "DamagedEnd"];

/// Returns the start of a line, before its kind.
fn before_kind(number: u64) -> String {
    format!("{{\"n\":{number},\"event\":\"")
}

/// Returns whether a damaged line may have been the start of a call: unless its readable part shows another kind.
fn may_be_start(bytes: &[u8], number: u64) -> bool {
    let Some(kind) = bytes.strip_prefix(before_kind(number).as_bytes()) else {
        return true;
    };
    let begins = |name: &&str| {
        let kind = kind.iter().filter(|byte| **byte != b'_');
        let mut quoted = name.bytes().chain([b'"']).zip(kind);
        quoted.all(|(expected, found)| expected.eq_ignore_ascii_case(found))
    };
    STARTS.iter().any(&begins) || !RunEvent::NAMES.iter().any(begins)
}

/// Returns whether there is the start of a call after the first line. Text within a line cannot match, because its quotes are
/// escaped.
fn has_later_start(bytes: &[u8], number: u64) -> bool {
    let start = b"\"event\":\"start\"";
    let of_first_line = before_kind(number).len() - b"\"event\":\"".len();
    let places = bytes.windows(start.len()).zip(0_usize..);
    let mut found = places.filter(|(window, _)| window == start);
    found.any(|(_, place)| place != of_first_line)
}

enum LineError {
    /// The line is not intact.
    Bytes(&'static str),
    /// The line is intact, but its content is invalid.
    Content(LogError),
}

/// The part of the first line that is the same in all versions.
#[derive(Deserialize)]
struct Beginning {
    event: String,
    version: u64,
}

fn read_line(line: &[u8], number: u64) -> Result<RunEvent, LineError> {
    line::check(line).map_err(LineError::Bytes)?;
    if number == 0 {
        read_beginning(line).map_err(LineError::Content)?;
    }
    let unknown = |what| {
        LineError::Content(LogError::Unknown {
            line: number + 1,
            what,
        })
    };
    let damaged = |what| {
        LineError::Content(LogError::Damaged {
            line: number + 1,
            what,
        })
    };
    match line::number(line) {
        Some(found) if found == number => {}
        Some(found) => {
            return Err(damaged(format!(
                "it has the number {found} and should have {number}, so lines are missing or duplicated"
            )));
        }
        None => return Err(unknown("it does not begin with its number `n`".to_owned())),
    }
    let event = serde_json::from_slice(line).map_err(|error| unknown(in_words(&error)))?;
    if number > 0 && matches!(event, RunEvent::Run(_)) {
        return Err(damaged("a second run starts here".to_owned()));
    }
    Ok(event)
}

fn read_beginning(line: &[u8]) -> Result<(), LogError> {
    let beginning: Option<Beginning> = serde_json::from_slice(line).ok();
    let version = beginning
        .filter(|beginning| beginning.event == "run")
        .map(|beginning| beginning.version);
    match version {
        Some(version) if version == u64::from(LOG_VERSION) => Ok(()),
        Some(version) if version > u64::from(LOG_VERSION) => Err(LogError::Newer { version }),
        Some(version) => Err(LogError::Unknown {
            line: 1,
            what: format!("version {version} does not exist"),
        }),
        None => Err(LogError::NotALog {
            what: "its first line is not an event `run` with a version".to_owned(),
        }),
    }
}

/// Returns the message of an error without its position and the list of expected values, which do not help users.
fn in_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = [" at line ", ", expected "].map(|word| text.find(word).unwrap_or(text.len()));
    let text = text.get(..end[0].min(end[1])).unwrap_or(&text);
    match text.strip_prefix("unknown variant ") {
        Some(word) => format!("unknown value {word}"),
        None => text.to_owned(),
    }
}

/// Returns the lines with their ends. The last may have none.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

fn first_line(bytes: &[u8]) -> &[u8] {
    lines(bytes).next().unwrap_or_default()
}
