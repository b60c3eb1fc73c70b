//! The end of the last value of a call without its own end marker.

use plaincall_syntax::{CALL_TAGS, closes_nothing};

use crate::ToolCall;

/// Texts that end a turn of a model's chat template, besides `<|…|>`.
pub(crate) const SPECIAL_TOKENS: &[&str] = &[
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<turn|>",
    "[/INST]",
    "<EOT>",
    "</parameter>",
    "</arg_value>",
    "</function_calls>",
    "</action>",
];

/// The last value of a call, without the blank lines at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastValue<'c>(&'c str);

impl<'c> LastValue<'c> {
    pub(super) fn of(call: &'c ToolCall) -> Self {
        let last = call.arguments.in_order().last();
        let last = last.map(|leaf| call.arguments.text(leaf));
        let text = last.or(call.body()).unwrap_or_default();
        Self(text.trim_end_matches([' ', '\t', '\r', '\n']))
    }

    /// Returns whether it is at most one line.
    pub(super) fn is_one_line(self) -> bool {
        !self.0.contains('\n')
    }

    /// Returns whether it ends with text that belongs to a chat template, to another format, or to a code block around the
    /// call.
    pub(super) fn has_other_end(self) -> bool {
        let ends = CALL_TAGS.iter().map(|(_, end)| *end);
        let ends = ends.filter(|end| !end.is_empty() && *end != "```");
        let mut ends = ends.chain(SPECIAL_TOKENS.iter().copied());
        ends.any(|end| ends_with(self.0, end)) || is_special(self.0) || closes_nothing(self.0)
    }
}

fn ends_with(text: &str, end: &str) -> bool {
    let begin = text.len().checked_sub(end.len());
    let last = begin.and_then(|begin| text.get(begin..));
    last.is_some_and(|last| last.eq_ignore_ascii_case(end))
}

/// Returns whether a text ends with a token such as `<|im_end|>`.
fn is_special(text: &str) -> bool {
    let inner = text
        .strip_suffix("|>")
        .or_else(|| text.strip_suffix("\u{FF5C}>"));
    let Some(inner) = inner else {
        return false;
    };
    let begin = inner.rfind('<').and_then(|at| inner.get(at + 1..));
    begin.is_some_and(|name| {
        name.starts_with(['|', '\u{FF5C}']) && !name.contains(char::is_whitespace)
    })
}
