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

/// Follows the JSON text of calls, or of the arguments of a call.
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
    #[default]
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    /// The rest of a string, and of an escape in it.
    String {
        is_key: bool,
        escape: Escape,
    },
    /// The rest of this word.
    Word(&'static str),
    Number,
}

#[derive(Clone, Copy, Debug)]
enum Escape {
    None,
    Begun,
    /// So many hexadecimal digits.
    Digits(u8),
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
        use Expects::{Colon, CommaOrEnd, Key, KeyOrEnd, Number, String, Value, ValueOrEnd, Word};
        // A list of calls has nothing else.
        let is_item = self.has_calls && self.open.as_slice() == ['['];
        let is_value = matches!(self.expects, Value | ValueOrEnd);
        let may_be_call = matches!(c, '{' | ']' | ' ' | '\t' | '\n' | '\r');
        match (self.expects, c) {
            (String { is_key, escape }, _) => return self.string(c, is_key, escape, slice, offers),
            (Word(rest), _) => {
                let Some(rest) = rest.strip_prefix(c) else {
                    return Scanned::Invalid;
                };
                self.expects = if rest.is_empty() {
                    CommaOrEnd
                } else {
                    Word(rest)
                };
            }
            (Number, '0'..='9' | '+' | '-' | '.' | 'e' | 'E') => {}
            (_, ' ' | '\t' | '\n' | '\r') => {
                if matches!(self.expects, Number) {
                    self.expects = CommaOrEnd;
                }
            }
            (Key | KeyOrEnd, '"') => self.begin_string(true, at),
            (Colon, ':') => self.expects = Value,
            (Value | ValueOrEnd, '{' | '[') => {
                self.open.push(c);
                self.expects = if c == '{' { KeyOrEnd } else { ValueOrEnd };
                if self.open.len() > DEPTH {
                    return Scanned::Invalid;
                }
            }
            (Value | ValueOrEnd, '"') => self.begin_string(false, at),
            (Value | ValueOrEnd, 't') => self.expects = Word("rue"),
            (Value | ValueOrEnd, 'f') => self.expects = Word("alse"),
            (Value | ValueOrEnd, 'n') => self.expects = Word("ull"),
            (Value | ValueOrEnd, '-' | '0'..='9') => self.expects = Number,
            (CommaOrEnd | Number, ',') => {
                let is_object = self.open.last() == Some(&'{');
                self.expects = if is_object { Key } else { Value };
            }
            (CommaOrEnd | Number | KeyOrEnd | ValueOrEnd, '}' | ']') => {
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
        if is_item && is_value && !may_be_call {
            return Scanned::NoCall;
        }
        Scanned::More
    }

    fn begin_string(&mut self, is_key: bool, at: usize) {
        self.string = at + 1;
        let escape = Escape::None;
        self.expects = Expects::String { is_key, escape };
    }

    fn string<'t>(
        &mut self,
        c: char,
        is_key: bool,
        escape: Escape,
        slice: impl Fn(usize) -> &'t str,
        offers: impl Fn(&str) -> bool,
    ) -> Scanned {
        let escape = match (escape, c) {
            (Escape::None, '"') => return self.end_string(is_key, slice, offers),
            (Escape::None, '\\') => Escape::Begun,
            (Escape::None, '\0'..='\u{1F}') => return Scanned::Invalid,
            (Escape::Begun, 'u') => Escape::Digits(4),
            (Escape::None, _) | (Escape::Begun, '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                Escape::None
            }
            (Escape::Digits(1), c) if c.is_ascii_hexdigit() => Escape::None,
            (Escape::Digits(left), c) if c.is_ascii_hexdigit() => Escape::Digits(left - 1),
            _ => return Scanned::Invalid,
        };
        self.expects = Expects::String { is_key, escape };
        Scanned::More
    }

    fn end_string<'t>(
        &mut self,
        is_key: bool,
        slice: impl Fn(usize) -> &'t str,
        offers: impl Fn(&str) -> bool,
    ) -> Scanned {
        self.expects = if is_key {
            Expects::Colon
        } else {
            Expects::CommaOrEnd
        };
        let is_call = self.has_calls && matches!(self.open.as_slice(), ['{'] | ['[', '{']);
        let string = slice(self.string);
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
