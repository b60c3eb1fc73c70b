//! The tool that a call in another format names.

use serde::Serialize;

/// The texts of a candidate that may name its tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Named {
    /// The values of keys for the name of a tool.
    pub(crate) values: Vec<String>,
    /// The beginning of the text after its tag.
    pub(crate) head: String,
}

impl Named {
    /// Returns whether the candidate names this tool: a value is its name, or the text after the tag contains it as a word.
    pub(crate) fn names(&self, tool: &str) -> bool {
        let is_value = |value: &String| is_name(value.trim(), tool);
        !tool.is_empty() && (self.values.iter().any(is_value) || contains_word(&self.head, tool))
    }

    /// Returns the length of the texts, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.values.iter().map(String::len).sum::<usize>() + self.head.len()
    }
}

/// Returns whether a text is this name, also in other letters, or behind a prefix such as `functions.`.
fn is_name(text: &str, name: &str) -> bool {
    let at = text.len().checked_sub(name.len());
    let parts = at.and_then(|at| text.split_at_checked(at));
    parts.is_some_and(|(prefix, end)| {
        let is_prefix = prefix.ends_with(['.', ':', '/']) && !prefix.contains(char::is_whitespace);
        end.eq_ignore_ascii_case(name) && (prefix.is_empty() || is_prefix)
    })
}

/// Returns whether a text contains this name as a word of its own.
fn contains_word(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        let behind = text.get(at + name.len()..).unwrap_or_default();
        !before.ends_with(is_word) && !behind.starts_with(is_word)
    })
}
