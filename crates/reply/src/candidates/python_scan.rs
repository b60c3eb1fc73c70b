//! Follows a list in Python character by character.

/// Follows a list to its end. It does not notice errors: the text is parsed when it is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PythonScan {
    /// The number of open brackets.
    depth: usize,
    /// The quote of the current string.
    quote: Option<char>,
    /// Whether the next character of the string is escaped.
    is_escaped: bool,
    /// The last character that is not white space.
    last: Option<char>,
}

/// The characters before a string. Behind any other one, a quote is text: `[main() isn't a call]`.
const BEFORE_STRINGS: &str = "([{,=:";

impl PythonScan {
    /// Takes the next character. Returns whether the list ends with it.
    pub(crate) fn ends_with(&mut self, c: char) -> bool {
        let is_escaped = std::mem::take(&mut self.is_escaped);
        match (self.quote, c) {
            (Some(_), '\\') => self.is_escaped = !is_escaped,
            (Some(quote), c) if c == quote && !is_escaped => self.quote = None,
            (None, '"' | '\'') if self.last.is_some_and(|last| BEFORE_STRINGS.contains(last)) => {
                self.quote = Some(c);
            }
            (None, '(' | '[' | '{') => self.depth += 1,
            (None, ')' | ']' | '}') => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if !c.is_whitespace() {
            self.last = Some(c);
        }
        self.depth == 0
    }
}
