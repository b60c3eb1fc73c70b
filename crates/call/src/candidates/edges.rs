//! The edges of a line, which decide whether a call may begin in it.

/// The edges of special tokens, and the characters that end a sentence.
const TOKEN_EDGES: [[&str; 2]; 2] = [["<|", "|>"], ["<\u{FF5C}", "\u{FF5C}>"]];
const SENTENCE_ENDS: &[char] = &[
    '.', '!', '?', ':', '\u{2026}', '\u{3002}', '\u{FF01}', '\u{FF1A}', '\u{FF1F}',
];
/// The other tags that are single tokens of models, in lower case.
const TOKENS: [&str; 8] = [
    "[tool_calls]",
    "<tool_call>",
    "<tool_calls>",
    "<toolcall>",
    "<function_calls>",
    "<minimax:tool_call>",
    "<seed:tool_call>",
    "<start_function_call>",
];

/// The first two characters of a line, and the last two, without blanks around.
#[derive(Clone, Debug, Default)]
pub(super) struct Edges {
    begin: String,
    end: String,
}

impl Edges {
    /// Adds text to the line.
    pub(super) fn add(&mut self, text: &str) {
        let missing = 2 - self.begin.chars().count().min(2);
        self.begin.extend(text.trim_start().chars().take(missing));
        let mut last = text.trim_end().chars().rev();
        if let Some(end) = last.next() {
            let before = last.next().or(self.end.chars().next_back());
            self.end = before.into_iter().chain([end]).collect();
        }
    }

    /// Returns whether this tag may begin a call behind the line: a token of the model that follows a sentence or another token, in
    /// ordinary text.
    pub(super) fn may_precede(&self, tag: &str) -> bool {
        let is_token = TOKENS.iter().any(|token| tag.eq_ignore_ascii_case(token))
            || TOKEN_EDGES.iter().any(|[begin, _]| tag.starts_with(begin));
        let begins = self.begin.starts_with(char::is_alphabetic)
            || TOKEN_EDGES.iter().any(|[begin, _]| self.begin == *begin);
        let ends = self.end.ends_with(SENTENCE_ENDS)
            || TOKEN_EDGES.iter().any(|[_, end]| self.end == *end);
        is_token && begins && ends
    }
}
