//! The parser beside the reader of replies, which also decides about calls and reads the text outside them.

use std::error::Error;
use std::fmt;
use std::hint::black_box;

use plaincall_reply::{ReplyCheck, ReplyItem, ReplyReader, Stop, Unclosed};
use plaincall_syntax::Dialect;
use plaincall_tool::{Limits, Parameter, ParameterKind, ToolSet, ToolSpec};

use crate::payload::{Part, Payload};
use crate::table::size_title;

/// The chunk sizes, in bytes: those of a model, and those of a file.
pub(crate) const SIZES: [Option<usize>; 2] = [Some(65_536), Some(4)];

/// The payloads: text without calls, text with few and with many calls, and a long value.
pub(crate) const PAYLOADS: [&str; 4] = ["words", "prose", "value", "heavy"];

/// Returns a reader that has read nothing.
pub(crate) fn reader(dialect: &Dialect) -> Result<ReplyReader<ToolSet>, Box<dyn Error>> {
    let text = |name| Parameter::new(name, ParameterKind::String);
    let tool = ToolSpec::new("WriteFile")
        .parameter(text("path").optional())
        .parameter(text("content"));
    let check = ReplyCheck::new(dialect, Unclosed::Reject)?;
    let tools = ToolSet::new([tool])?;
    Ok(ReplyReader::new(
        dialect,
        tools,
        check,
        Limits::for_running(),
    )?)
}

/// Reads all chunks with a copy of `reader`, as programs do. Returns the number of calls that may run.
pub(crate) fn read(reader: &ReplyReader<ToolSet>, chunks: &[&str]) -> usize {
    let (mut reader, mut calls) = (reader.clone(), 0);
    let mut take = |item: &ReplyItem<'_>| match item {
        ReplyItem::Text(text) | ReplyItem::ArgumentDelta { text, .. } => {
            black_box(&**text);
        }
        ReplyItem::Call(read) => calls += usize::from(read.decision.is_ok()),
        _ => {}
    };
    for chunk in chunks {
        for item in reader.feed(*chunk) {
            take(&item);
        }
    }
    let end = reader.finish(Stop::Natural);
    end.items.iter().for_each(&mut take);
    calls
}

/// Returns the number of calls in a payload.
pub(crate) fn calls_in(payload: &Payload) -> usize {
    let calls = payload.parts.iter();
    calls.filter(|part| matches!(part, Part::Call(_))).count()
}

/// Returns the line above the rows.
pub(crate) fn head() -> String {
    format!(
        "{:<18} {:>6} {:>12} {:>12} {:>11} {:>11} {:>6} {:>10} {:>13}",
        "payload",
        "chunk",
        "parser ns",
        "reader ns",
        "parser MB/s",
        "reader MB/s",
        "times",
        "allocs/KB",
        "calls run"
    )
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) payload: &'static str,
    pub(crate) size: Option<usize>,
    /// The number of chunks, and their length in bytes.
    pub(crate) chunks: f64,
    pub(crate) bytes: f64,
    /// The time of the parser and of the reader for all chunks, in seconds.
    pub(crate) parser: f64,
    pub(crate) reader: f64,
    /// The reader's time divided by the parser's in the same round.
    pub(crate) times: f64,
    /// Allocations of the reader per thousand bytes.
    pub(crate) allocations: f64,
    pub(crate) calls: usize,
    pub(crate) calls_expected: usize,
}

impl Row {
    /// Returns the reader's time for a chunk, in nanoseconds.
    pub(crate) fn nanoseconds(&self) -> f64 {
        self.reader * 1e9 / self.chunks
    }

    /// Returns the reader's speed, in millions of bytes per second.
    pub(crate) fn speed(&self) -> f64 {
        self.bytes / self.reader / 1e6
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = format!("{}/{}", self.calls, self.calls_expected);
        write!(
            formatter,
            "{:<18} {:>6} {:>12.1} {:>12.1} {:>11.1} {:>11.1} {:>6.1} {:>10.3} {calls:>13}",
            self.payload,
            size_title(self.size),
            self.parser * 1e9 / self.chunks,
            self.nanoseconds(),
            self.bytes / self.parser / 1e6,
            self.speed(),
            self.times,
            self.allocations,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{PAYLOADS, SIZES, calls_in, read, reader};
    use crate::chunks::cut;
    use crate::payload;

    #[test]
    fn every_call_may_run() {
        let wanted = payload::all(true).into_iter();
        for payload in wanted.filter(|payload| PAYLOADS.contains(&payload.name)) {
            let reader = reader(&payload.dialect).expect(payload.name);
            for size in SIZES {
                let calls = read(&reader, &cut(&payload.text, size));
                assert_eq!(calls, calls_in(&payload), "{}, {size:?}", payload.name);
            }
        }
    }
}
