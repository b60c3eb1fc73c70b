//! The edges of a line, which decide whether a call may begin in it.

/// The first and the last characters of special tokens, and the characters that end a sentence.
const TOKEN_EDGES: [[[char; 2]; 2]; 2] = [
    [['<', '|'], ['|', '>']],
    [['<', '\u{FF5C}'], ['\u{FF5C}', '>']],
];
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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Edges {
    begin: [Option<char>; 2],
    end: [Option<char>; 2],
}

impl Edges {
    /// Adds text to the line.
    pub(super) fn add(&mut self, text: &str) {
        let mut first = text.trim_start().chars();
        for missing in self.begin.iter_mut().filter(|one| one.is_none()) {
            *missing = first.next();
        }
        let mut last = text.trim_end().chars().rev();
        if let Some(end) = last.next() {
            self.end = [last.next().or(self.end[1]), Some(end)];
        }
    }

    /// Returns whether this tag may begin a call behind the line: a token of the model that follows a sentence or another token, in
    /// ordinary text.
    pub(super) fn may_precede(&self, tag: &str) -> bool {
        let is_token = TOKENS.iter().any(|token| tag.eq_ignore_ascii_case(token))
            || TOKEN_EDGES
                .iter()
                .any(|[begin, _]| tag.chars().take(2).eq(*begin));
        let begins = self.begin[0].is_some_and(char::is_alphabetic)
            || TOKEN_EDGES
                .iter()
                .any(|[begin, _]| self.begin == begin.map(Some));
        let ends = self.end[1].is_some_and(|end| SENTENCE_ENDS.contains(&end))
            || TOKEN_EDGES.iter().any(|[_, end]| self.end == end.map(Some));
        is_token && begins && ends
    }
}
