//! The built-in tool that reads on where a result was cut.

use std::fmt::Write as _;

use plaincall_call::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::Context;
use crate::cut::{READ_RESULT, beginning, with_last_line};
use crate::tool::Tool;
use crate::tool_error::ToolResult;
use crate::whole_results::WholeResults;

/// What the last line of a piece needs at most, in bytes.
const LAST_LINE: usize = 128;

const NAMED: usize = 20;

/// Reads on in the result of an earlier call, where it was cut because of its length.
#[derive(Deserialize, JsonSchema)]
struct Piece {
    /// The id of that call.
    id: String,
    /// The byte of the result to begin at, counted from 0; 0 if it is left out.
    from: Option<u64>,
    /// How many bytes to read at most; as many as a result may have if it is left out.
    bytes: Option<u64>,
}

impl Tool {
    /// The built-in tool `read_result`: it returns a piece of the whole output of an earlier call of the run, of which
    /// the model was told only the beginning (`spec/running.md`, "Long results").
    ///
    /// It takes the call's `id`, optionally `from` (the first byte, 0 if nothing is said) and `bytes` (how many at most; if
    /// nothing is said as many as a result may have). The piece begins and ends with whole characters, where possible with
    /// lines; its last line says where it ends and how long the whole is.
    pub fn read_result() -> Self {
        Self::new(READ_RESULT, |piece: Piece, context: Context| async move {
            piece.read(&context.shared.whole_results)
        })
        .effect(Effect::Read)
    }
}

impl Piece {
    fn read(&self, results: &WholeResults) -> ToolResult {
        let Some(whole) = results.get(&self.id) else {
            return Err(unknown(&self.id, results).into());
        };
        let total = whole.len();
        let from = usize::try_from(self.from.unwrap_or(0)).unwrap_or(usize::MAX);
        if from > total {
            return Err(format!(
                "the result of `{}` has {total} bytes, so it has no byte {from} on",
                self.id
            )
            .into());
        }
        let start = whole.floor_char_boundary(from);
        let wanted = self.bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let room = results.limit().saturating_sub(LAST_LINE);
        let bytes = wanted.map_or(room, |wanted| wanted.min(room));
        let rest = whole.get(start..).unwrap_or_default();
        let mut end = start + beginning(rest, bytes);
        if end == start {
            // At least one character, or reading on would never come to an end.
            end += rest.chars().next().map_or(0, char::len_utf8);
        }
        let text = whole.get(start..end).unwrap_or_default();
        let line = if end == total {
            format!("bytes {start} to {end} of {total}: the end")
        } else {
            format!("bytes {start} to {end} of {total}; read on with `from` = {end}")
        };
        Ok(with_last_line(text, &line))
    }
}

/// What a model hears that names a call of which there is no result.
fn unknown(id: &str, results: &WholeResults) -> String {
    let (ids, total) = results.latest_ids(NAMED);
    if ids.is_empty() {
        return format!("no truncated result of a call `{id}`; no result was truncated");
    }
    let mut sentence = format!("no truncated result of a call `{id}`; truncated results: ");
    if total > ids.len() {
        let _ = write!(sentence, "{total} calls, the latest ");
    }
    for (place, id) in ids.iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        let _ = write!(sentence, "{comma}`{id}`");
    }
    sentence
}
