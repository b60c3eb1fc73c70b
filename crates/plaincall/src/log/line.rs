//! The form of one line (`spec/log.md`, "Lines"): `{"n":NUMBER,"event":…,"crc":"CHECKSUM"}` and LF.

use std::io::Write as _;

use crate::event::RunEvent;

/// The version of the record's form that is written and read here (`spec/log.md`, "Versions").
pub const LOG_VERSION: u32 = 1;

/// How every line begins, up to its number.
const BEFORE_NUMBER: &[u8] = b"{\"n\":";
/// What stands around the eight digits of the checksum.
const BEFORE_CHECKSUM: &[u8] = b",\"crc\":\"";
const AFTER_CHECKSUM: &[u8] = b"\"}";
const CHECKSUM_DIGITS: usize = 8;

/// Writes events as numbered lines of the record, from number 0.
#[derive(Clone, Debug, Default)]
pub struct LineEncoder {
    next: u64,
}

impl LineEncoder {
    /// An encoder whose first line has this number.
    pub(super) fn from_number(next: u64) -> Self {
        Self { next }
    }

    /// The number of the next line.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// The event's line, with its line end. All lines after each other are a log, if the first is an event `run`.
    pub fn next_line(&mut self, event: &RunEvent) -> String {
        let mut line = Vec::new();
        // Every event has a form in JSON, and JSON is text. If that were ever not so, no line is better than a wrong one.
        match self.append(event, &mut line) {
            Ok(()) => String::from_utf8(line).unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// Appends the event's line. The buffer is left as it was if the event cannot be written.
    pub(super) fn append(
        &mut self,
        event: &RunEvent,
        buffer: &mut Vec<u8>,
    ) -> Result<(), serde_json::Error> {
        let start = buffer.len();
        self.write(event, buffer)
            .inspect_err(|_| buffer.truncate(start))?;
        self.next += 1;
        Ok(())
    }

    fn write(&self, event: &RunEvent, buffer: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let start = buffer.len();
        buffer.extend_from_slice(BEFORE_NUMBER);
        write!(buffer, "{}", self.next).map_err(serde_json::Error::io)?;
        let brace = buffer.len();
        serde_json::to_writer(&mut *buffer, event)?;
        // The event's own fields go on in the object that is open already. So a long event is written once and never moved.
        if let Some(byte) = buffer.get_mut(brace) {
            *byte = b',';
        }
        buffer.pop();
        let checksum = crc32fast::hash(buffer.get(start..).unwrap_or_default());
        buffer.extend_from_slice(BEFORE_CHECKSUM);
        write!(buffer, "{checksum:08x}").map_err(serde_json::Error::io)?;
        buffer.extend_from_slice(AFTER_CHECKSUM);
        buffer.push(b'\n');
        Ok(())
    }
}

/// Whether the line, with its line end, is as it was written. If not, what is wrong.
pub(super) fn check(line: &[u8]) -> Result<(), &'static str> {
    let Some(line) = line.strip_suffix(b"\n") else {
        return Err("it has no line end");
    };
    if line.ends_with(b"\r") {
        return Err("it ends in CR LF, so another program rewrote the file");
    }
    let parts = line
        .strip_suffix(AFTER_CHECKSUM)
        .and_then(|line| line.split_last_chunk::<CHECKSUM_DIGITS>())
        .and_then(|(line, digits)| Some((line.strip_suffix(BEFORE_CHECKSUM)?, digits)));
    let Some((checked, digits)) = parts else {
        return Err("it has no checksum at its end");
    };
    if format!("{:08x}", crc32fast::hash(checked)).as_bytes() == digits {
        Ok(())
    } else {
        Err("its checksum does not match")
    }
}

/// The line's number, if it begins with one.
pub(super) fn number(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(BEFORE_NUMBER)?;
    let end = digits.iter().position(|byte| *byte == b',')?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}
