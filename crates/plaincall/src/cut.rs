//! Truncation of outputs that are too long for the model.

use std::fmt::Write as _;

pub(crate) const READ_RESULT: &str = "read_result";

/// Returns the beginning of an output of `total` bytes, at most `limit` bytes of it, and a note with both lengths.
///
/// `can_read_on` is whether the model has the tool that reads the rest (`spec/running.md`, "Long results").
pub(crate) fn cut(output: &str, limit: usize, total: u64, id: &str, can_read_on: bool) -> String {
    let kept = beginning(output, limit);
    let mut note = first_of(kept, total);
    if can_read_on {
        let _ = write!(
            note,
            "; to continue, call `{READ_RESULT}` with `id` = {id} and `from` = {kept}"
        );
    }
    let text = output.get(..kept).unwrap_or_default();
    with_last_line(text, &note)
}

/// Returns the length of the text's beginning, at most `limit` bytes. It ends with a whole line if a line ends in the last
/// quarter of the limit, otherwise with a whole character.
pub(crate) fn beginning(text: &str, limit: usize) -> usize {
    let whole_characters = text.floor_char_boundary(limit);
    if whole_characters == text.len() {
        return whole_characters;
    }
    let within = text.get(..whole_characters).unwrap_or_default();
    match within.rfind('\n').map(|at| at + 1) {
        Some(line_end) if line_end >= limit - limit / 4 => line_end,
        _ => whole_characters,
    }
}

pub(crate) fn first_of(kept: usize, total: u64) -> String {
    format!("output truncated: first {kept} of {total} bytes")
}

/// Appends a line in square brackets.
pub(crate) fn with_last_line(text: &str, line: &str) -> String {
    let line_end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{text}{line_end}[{line}]\n")
}
