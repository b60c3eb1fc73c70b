//! Follows a JSON text character by character.

use plaincall_syntax::{CALL_ARGUMENT_KEYS, CALL_NAME_KEYS};

/// The maximum nesting of objects and lists.
const DEPTH: usize = 64;
/// Other members of a call.
pub(crate) const OTHER_KEYS: [&str; 2] = ["id", "type"];

pub(super) fn is_name_key(key: &str) -> bool {
    CALL_NAME_KEYS.contains(&key)
}

/// The keys of arguments. `input` is too common a word: it would make most texts with JSON look like calls.
pub(crate) fn argument_keys() -> impl Iterator<Item = &'static str> {
    let keys = CALL_ARGUMENT_KEYS.iter().copied();
    keys.filter(|key| *key != "input")
}

/// Follows the JSON text of calls, or of the arguments of a call, to its end. It does not notice every error: the text is parsed
/// when it is complete.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonScan {
    /// The open brackets, outermost first.
    open: Vec<char>,
    expects: Expects,
    /// Whether an object names a tool. Otherwise it has the arguments of one.
    has_calls: bool,
    /// Whether the value of the current member names a tool.
    names_tool: bool,
    /// Where the current string begins.
    string: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Expects {
    /// A value, or the end of a list.
    #[default]
    Value,
    /// A key, or the end of an object.
    Key,
    Colon,
    CommaOrEnd,
    /// The rest of a string.
    String {
        is_key: bool,
        is_escaped: bool,
    },
    /// The rest of a number or word.
    Word,
}

/// The meaning of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    More,
    /// The text is complete.
    Complete,
    /// The text may be JSON, but is not a call of an offered tool.
    NoCall,
    /// The text is not JSON.
    Invalid,
}

impl JsonScan {
    pub(super) fn new(has_calls: bool) -> Self {
        Self {
            has_calls,
            ..Self::default()
        }
    }

    /// Takes the character at this position. `slice` returns the text from a position to here.
    pub(super) fn take<'t>(
        &mut self,
        c: char,
        at: usize,
        slice: impl Fn(usize) -> &'t str,
        offers: impl Fn(&str) -> bool,
    ) -> Scanned {
        use Expects::{Colon, CommaOrEnd, Key, String, Value, Word};
        // A list of calls has nothing else.
        let is_item = self.has_calls && self.open.as_slice() == ['['];
        let is_value = is_item && matches!(self.expects, Value);
        match (self.expects, c) {
            (String { is_key, is_escaped }, '"') if !is_escaped => {
                return self.end_string(is_key, slice(self.string), offers);
            }
            (String { .. }, '\0'..='\u{1F}') => return Scanned::Invalid,
            (String { is_key, is_escaped }, _) => {
                let is_escaped = c == '\\' && !is_escaped;
                self.expects = String { is_key, is_escaped };
            }
            (Word, ' ' | '\t' | '\n' | '\r') => self.expects = CommaOrEnd,
            (_, ' ' | '\t' | '\n' | '\r') => return Scanned::More,
            (Key | Value, '"') => {
                self.string = at + 1;
                self.expects = String {
                    is_key: matches!(self.expects, Key),
                    is_escaped: false,
                };
            }
            (Colon, ':') => self.expects = Value,
            (Value, '{' | '[') => {
                self.open.push(c);
                self.expects = if c == '{' { Key } else { Value };
                if self.open.len() > DEPTH {
                    return Scanned::Invalid;
                }
            }
            (Value | Word, '+' | '-' | '.' | '0'..='9' | 'A'..='Z' | 'a'..='z') => {
                self.expects = Word;
            }
            (CommaOrEnd | Word, ',') => {
                let is_object = self.open.last() == Some(&'{');
                self.expects = if is_object { Key } else { Value };
            }
            (CommaOrEnd | Word | Key | Value, '}' | ']') => {
                let begin = if c == '}' { '{' } else { '[' };
                if self.open.pop() != Some(begin) {
                    return Scanned::Invalid;
                }
                self.expects = CommaOrEnd;
                if self.open.is_empty() {
                    return Scanned::Complete;
                }
            }
            _ => return Scanned::Invalid,
        }
        if is_value && !matches!(c, '{' | ']') {
            return Scanned::NoCall;
        }
        Scanned::More
    }

    fn end_string(&mut self, is_key: bool, string: &str, offers: impl Fn(&str) -> bool) -> Scanned {
        self.expects = if is_key {
            Expects::Colon
        } else {
            Expects::CommaOrEnd
        };
        let is_call = self.has_calls && matches!(self.open.as_slice(), ['{'] | ['[', '{']);
        let is_wrong = is_call
            && if is_key {
                self.names_tool = is_name_key(string);
                !self.names_tool
                    && argument_keys().all(|key| key != string)
                    && !OTHER_KEYS.contains(&string)
            } else {
                self.names_tool && !offers(string)
            };
        if is_wrong {
            Scanned::NoCall
        } else {
            Scanned::More
        }
    }
}
