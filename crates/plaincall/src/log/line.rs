//! The format of a line (`spec/log.md`, "Lines"): `{"n":NUMBER,"event":…,"crc":"CHECKSUM"}` and LF. A CRC is enough: the log
//! protects against crashes and disk errors, and anyone who can write to the file could also sign it.

use std::io::Write as _;

use crate::event::RunEvent;

/// The version of the log format (`spec/log.md`, "Versions").
pub const LOG_VERSION: u32 = 1;

/// The start of every line, before its number.
const BEFORE_NUMBER: &[u8] = b"{\"n\":";
/// The text before the digits of the checksum.
const BEFORE_CHECKSUM: &[u8] = b",\"crc\":\"";
const AFTER_CHECKSUM: &[u8] = b"\"}";
const CHECKSUM_DIGITS: usize = 8;

/// Encodes events as numbered lines of a log, from number 0.
#[derive(Clone, Debug, Default)]
pub struct LineEncoder {
    next: u64,
}

impl LineEncoder {
    /// Creates an encoder whose first line has this number, to continue a log.
    pub fn from_number(next: u64) -> Self {
        Self { next }
    }

    /// Returns the number of the next line.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Returns the next line, for this event, with its line end. The lines form a log if the first event is `run`.
    pub fn next_line(&mut self, event: &RunEvent) -> String {
        let mut line = Vec::new();
        // Every event can be encoded as JSON text. If one ever could not, an empty line is better than an invalid one.
        match self.append(event, &mut line) {
            Ok(()) => String::from_utf8(line).unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// Appends the line of an event. On error, the buffer is unchanged.
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
        // The fields of the event continue the open object, so a long event is written only once and never moved.
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

/// Checks whether a line, with its line end, is intact.
///
/// # Errors
/// Returns the problem.
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

/// Returns the number of a line, if it starts with one.
pub(super) fn number(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(BEFORE_NUMBER)?;
    let end = digits.iter().position(|byte| *byte == b',')?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}
