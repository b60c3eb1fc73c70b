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

/// The characters that end the label of an item or of a speaker: `a.`, `iv)`, `User:`.
const LABEL_ENDS: &[char] = &['.', ')', ':', '\u{FF1A}'];
/// It ends a sentence without blanks between words.
const IDEOGRAPHIC_FULL_STOP: char = '\u{3002}';

/// The first two characters of a line, and the last two, without blanks around, and its first words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Edges {
    begin: [Option<char>; 2],
    end: [Option<char>; 2],
    /// Whether the line is code in Markdown.
    is_indented: bool,
    /// The number of words, up to two.
    words: u8,
    is_in_word: bool,
    /// The last character of the first word.
    first_end: Option<char>,
}

impl Edges {
    /// Returns the edges of a line before its first word.
    pub(super) fn new(is_indented: bool) -> Self {
        Self {
            is_indented,
            ..Self::default()
        }
    }

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
        for c in text.chars() {
            if self.words > 1 {
                break;
            }
            let is_in_word = !c.is_whitespace();
            self.words += u8::from(is_in_word && !self.is_in_word);
            if is_in_word && self.words == 1 {
                self.first_end = Some(c);
            }
            self.is_in_word = is_in_word;
        }
    }

    /// Returns whether this tag may begin a call behind the line: a token of the model that follows a sentence or another token, in
    /// ordinary text.
    pub(super) fn may_precede(&self, tag: &str) -> bool {
        let is_token = TOKENS.iter().any(|token| tag.eq_ignore_ascii_case(token))
            || TOKEN_EDGES
                .iter()
                .any(|[begin, _]| tag.chars().take(2).eq(*begin));
        let begins_token = TOKEN_EDGES
            .iter()
            .any(|[begin, _]| self.begin == begin.map(Some));
        let has_label = self.first_end.is_some_and(|end| LABEL_ENDS.contains(&end));
        let begins_word = self.begin[0].is_some_and(char::is_alphabetic) && !has_label;
        let is_sentence = self.words > 1 || self.end[1] == Some(IDEOGRAPHIC_FULL_STOP);
        let ends_sentence = self.end[1].is_some_and(|end| SENTENCE_ENDS.contains(&end));
        let ends = (is_sentence && ends_sentence)
            || TOKEN_EDGES.iter().any(|[_, end]| self.end == end.map(Some));
        is_token && !self.is_indented && (begins_token || begins_word) && ends
    }
}
