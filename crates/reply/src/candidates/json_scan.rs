//! Follows a JSON text character by character.

/// The maximum nesting of objects and lists.
const DEPTH: usize = 64;

/// Follows a JSON object or list to its end. It does not notice every error: the text is parsed when it is complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonScan {
    /// The open brackets, outermost first.
    open: Vec<char>,
    expects: Expects,
    /// Whether the next character of the string is escaped.
    is_escaped: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expects {
    /// A value, or the end of a list.
    #[default]
    Value,
    /// A key, or the end of an object.
    Key,
    Colon,
    CommaOrEnd,
    RestOfKey,
    RestOfString,
    /// The rest of a number or word.
    RestOfWord,
}

/// The meaning of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scanned {
    More,
    /// The end of a key.
    Key,
    /// The end of a string that is a value.
    String,
    /// The end of the text.
    Complete,
    /// The text is not JSON.
    Invalid,
}

impl JsonScan {
    /// Returns whether the next character is in a string or a key, or ends it.
    pub(crate) fn is_in_string(&self) -> bool {
        matches!(self.expects, Expects::RestOfKey | Expects::RestOfString)
    }

    /// Returns whether the text is in an object that may be a call: the outermost one, or one in the outermost list.
    pub(crate) fn is_in_call(&self) -> bool {
        matches!(self.open.as_slice(), ['{'] | ['[', '{'])
    }

    /// Returns the number of open brackets.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Takes the next character.
    pub(crate) fn take(&mut self, c: char) -> Scanned {
        use Expects::{Colon, CommaOrEnd, Key, RestOfKey, RestOfString, RestOfWord, Value};
        let mut scanned = Scanned::More;
        self.expects = match (self.expects, c) {
            (RestOfKey | RestOfString, '\0'..='\u{1F}') => return Scanned::Invalid,
            (same @ (RestOfKey | RestOfString), _) if self.is_escaped || c == '\\' => {
                self.is_escaped = !self.is_escaped;
                same
            }
            (RestOfKey, '"') => {
                scanned = Scanned::Key;
                Colon
            }
            (RestOfString, '"') => {
                scanned = Scanned::String;
                CommaOrEnd
            }
            (RestOfWord, ' ' | '\t' | '\n' | '\r') => CommaOrEnd,
            (same @ (RestOfKey | RestOfString), _) | (same, ' ' | '\t' | '\n' | '\r') => same,
            (Key | Value, '"') => {
                if self.expects == Key {
                    RestOfKey
                } else {
                    RestOfString
                }
            }
            (Value, '{' | '[') if self.open.len() < DEPTH => {
                self.open.push(c);
                if c == '{' { Key } else { Value }
            }
            (Value | RestOfWord, '+' | '-' | '.' | '0'..='9' | 'A'..='Z' | 'a'..='z') => RestOfWord,
            (CommaOrEnd | RestOfWord, ',') if self.open.last() == Some(&'{') => Key,
            (Colon, ':') | (CommaOrEnd | RestOfWord, ',') => Value,
            (CommaOrEnd | RestOfWord | Key | Value, '}' | ']') => {
                if self.open.pop() != Some(if c == '}' { '{' } else { '[' }) {
                    return Scanned::Invalid;
                }
                if self.open.is_empty() {
                    scanned = Scanned::Complete;
                }
                CommaOrEnd
            }
            _ => return Scanned::Invalid,
        };
        scanned
    }
}
