//! The built-in tool that reads the rest of a truncated result.

use std::fmt::Write as _;

use plaincall_tool::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::Context;
use crate::cut::{READ_RESULT, beginning, with_last_line};
use crate::tool::Tool;
use crate::tool_error::ToolResult;
use crate::whole_results::WholeResults;

/// The maximum length of the last line, in bytes.
const LAST_LINE: usize = 128;

const NAMED: usize = 20;

/// Returns more of an earlier call's truncated result.
#[derive(Deserialize, JsonSchema)]
struct Piece {
    /// The id of that call.
    id: String,
    /// The first byte to return, counted from 0. Default: 0.
    from: Option<u64>,
    /// The maximum number of bytes. Default: as many as fit in a result.
    bytes: Option<u64>,
}

impl Tool {
    /// Creates the built-in tool `read_result`, which returns a part of a truncated result of an earlier call
    /// (`spec/running.md`, "Long results").
    ///
    /// Its parameters are the `id` of the call, `from` (the first byte; default: 0) and `bytes` (the maximum length; default:
    /// the length limit of results). A part consists of whole characters, and of whole lines where possible. Its last line
    /// has its position and the length of the whole result.
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
                "the result of `{}` has only {total} bytes; use a smaller `from`",
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
            // At least one character, so that reading makes progress.
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

/// Returns the message for an id without a truncated result.
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
