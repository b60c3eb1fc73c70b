//! Texts folded to what an echo is compared by (`spec/foreign.md` 4).

use std::collections::{HashMap, HashSet};
use std::str::Chars;

use plaincall_syntax::{Dialect, DialectError, MarkerUse, Syntax};

/// What stands for a marker in folded text. Control characters never come from a text.
const START: char = '\u{1}';
const ARGUMENT: char = '\u{2}';
const END: char = '\u{3}';

/// The markers to look for.
#[derive(Clone, Debug)]
pub(crate) struct Patterns {
    /// Folded, longest first.
    markers: Vec<(String, MarkerUse)>,
    /// The bytes that they begin with.
    first: Bytes,
    /// The bytes with which something may begin, in a text that is not folded, that becomes a start marker.
    start: Bytes,
    /// Whether a marker holds what counts as a line end here, so that no line holds the marker.
    has_line_end: bool,
}

/// A set of bytes. Most of a text is passed over by it.
#[derive(Clone, Debug, Default)]
struct Bytes([u64; 4]);

impl Bytes {
    fn insert(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    fn insert_first_of(&mut self, c: char) {
        let mut buffer = [0; 4];
        if let Some(first) = c.encode_utf8(&mut buffer).bytes().next() {
            self.insert(first);
        }
    }

    fn contains(&self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte >> 6));
        word.is_some_and(|word| word >> (byte & 63) & 1 == 1)
    }
}

impl Patterns {
    /// The markers of these dialects with and without their keys, and the default ones.
    ///
    /// # Errors
    /// Refuses a dialect that cannot work.
    pub(crate) fn new(dialects: &[Dialect]) -> Result<Self, DialectError> {
        let mut patterns: Vec<(String, MarkerUse)> = Vec::new();
        let mut add = |dialect: &Dialect| {
            for marker in dialect.markers()? {
                let text: String = fold(&marker.text).collect();
                let is_known = patterns.iter().any(|(known, _)| *known == text);
                if !text.is_empty() && !is_known && marker.usage != MarkerUse::Reasoning {
                    patterns.push((text, marker.usage));
                }
            }
            Ok(())
        };
        for dialect in dialects {
            add(dialect)?;
            add(&dialect.without_key())?;
        }
        add(&Dialect::auto())?;
        patterns.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let has_line_end = patterns.iter().any(|(text, _)| text.contains('\n'));
        let (mut first, mut start) = (Bytes::default(), Bytes::default());
        // Any character may stand behind it as `\u` escape.
        start.insert(b'\\');
        for (text, usage) in &patterns {
            let Some(c) = text.chars().next() else {
                continue;
            };
            first.insert_first_of(c);
            if matches!(usage, MarkerUse::Start(_)) {
                for c in unfolded(c) {
                    start.insert_first_of(c);
                }
            }
        }
        Ok(Self {
            markers: patterns,
            first,
            start,
            has_line_end,
        })
    }

    /// Whether some of the markers cannot be found.
    pub(crate) fn are_blind(&self) -> bool {
        self.has_line_end
    }

    /// Whether a start marker may begin on this line, which is not folded.
    fn may_start(&self, line: &str) -> bool {
        line.bytes().any(|byte| self.start.contains(byte))
    }

    fn at_front(&self, text: &str) -> Option<(usize, MarkerUse)> {
        if !text
            .bytes()
            .next()
            .is_some_and(|byte| self.first.contains(byte))
        {
            return None;
        }
        let (pattern, usage) = self
            .markers
            .iter()
            .find(|(pattern, _)| text.starts_with(&**pattern))?;
        Some((pattern.len(), *usage))
    }
}

/// What stands at the place that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Content,
    /// The name on a header line of the block syntax.
    Name,
    /// What follows the name there: an id, dependencies.
    AfterName,
    /// A header of the emoji syntax.
    Header,
    /// The first character of a pointer.
    Pointer,
}

/// A folded text that is being written.
#[derive(Clone, Debug)]
pub(crate) struct Folded {
    text: String,
    place: Place,
    /// Whether a start marker has come. What stands before the first one is not kept.
    has_begun: bool,
}

impl Folded {
    pub(crate) const fn new() -> Self {
        Self {
            text: String::new(),
            place: Place::Content,
            has_begun: false,
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Adds one line, without its line end.
    pub(crate) fn line(&mut self, line: &str, patterns: &Patterns) {
        if !self.has_begun && !patterns.may_start(line) {
            return;
        }
        let folded: String = fold(line).collect();
        for line in folded.split('\n') {
            self.folded_line(line, patterns);
            self.end_line();
        }
    }

    /// Adds a start marker and a name.
    pub(crate) fn start(&mut self, syntax: Syntax) {
        self.marker(MarkerUse::Start(syntax));
    }

    pub(crate) fn argument(&mut self, pointer: &str, patterns: &Patterns) {
        self.marker(MarkerUse::Argument);
        self.line(pointer, patterns);
    }

    fn folded_line(&mut self, line: &str, patterns: &Patterns) {
        // A text that is quoted as mail and Markdown quote it.
        let is_quoted = self.place == Place::Content;
        let mut rest = if is_quoted {
            line.trim_start_matches('>')
        } else {
            line
        };
        while let Some(c) = rest.chars().next() {
            let mut len = c.len_utf8();
            if let Some((marker, usage)) = patterns.at_front(rest) {
                self.marker(usage);
                len = marker;
            } else if self.has_begun {
                self.content(c);
            }
            rest = rest.get(len..).unwrap_or_default();
        }
    }

    fn marker(&mut self, usage: MarkerUse) {
        let (token, place) = match usage {
            MarkerUse::Start(Syntax::Block) => (START, Place::Name),
            MarkerUse::Start(Syntax::Emoji) => (START, Place::Header),
            MarkerUse::Argument => (ARGUMENT, Place::Pointer),
            MarkerUse::End(_) => (END, Place::Content),
            MarkerUse::Reasoning => return,
        };
        self.has_begun |= token == START;
        if self.has_begun {
            self.end_line();
            self.text.push(token);
            self.place = place;
        }
    }

    fn content(&mut self, c: char) {
        match (self.place, c) {
            (Place::AfterName, _) => return,
            (Place::Name, ':') => {
                self.place = Place::AfterName;
                return;
            }
            (Place::Pointer, '/') => {
                self.place = Place::Content;
                return;
            }
            (Place::Pointer, _) => self.place = Place::Content,
            // The slash that closes a call by its header.
            (Place::Header, ']') if self.text.ends_with('/') => {
                self.text.pop();
            }
            _ => {}
        }
        self.text.push(c);
        if self.place == Place::Header && c == ']' {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        self.place = Place::Content;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}

/// A folded call that is looked for in folded texts.
pub(crate) struct Sought<'c> {
    call: &'c str,
    header: &'c str,
    /// The arguments by their pointers; `None` if there are none, or if two pointers are folded to the same and cannot
    /// be told apart.
    arguments: Option<HashMap<&'c str, &'c str>>,
}

impl<'c> Sought<'c> {
    pub(crate) fn new(call: &'c str) -> Self {
        let (header, arguments) = match call.split_once(ARGUMENT) {
            Some((header, arguments)) => (header, Some(arguments)),
            None => (call, None),
        };
        let by_pointer = |arguments: &'c str| {
            let mut found = HashMap::new();
            let mut arguments = arguments.split(ARGUMENT).filter_map(split_argument);
            let are_distinct =
                arguments.all(|(pointer, value)| found.insert(pointer, value).is_none());
            are_distinct.then_some(found)
        };
        Self {
            call,
            header,
            arguments: arguments.and_then(by_pointer),
        }
    }

    /// Whether a text holds the call: all its lines one behind the other, or each of its arguments somewhere behind its
    /// header, before the next call.
    pub(crate) fn stands_in(&self, text: &str) -> bool {
        // Looking for a long call costs as much as it is long, even in a short text.
        if text.len() >= self.call.len() && text.contains(self.call) {
            return true;
        }
        let Some(wanted) = &self.arguments else {
            return false;
        };
        text.match_indices(self.header).any(|(at, _)| {
            let behind = text.get(at + self.header.len()..).unwrap_or_default();
            let end = behind.find([START, END]).unwrap_or(behind.len());
            let arguments = behind.get(..end).unwrap_or_default().split(ARGUMENT);
            let found: HashSet<&str> = arguments
                .filter_map(split_argument)
                .filter(|(pointer, value)| {
                    let wanted = wanted.get(pointer);
                    wanted.is_some_and(|wanted| value.starts_with(wanted))
                })
                .map(|(pointer, _)| pointer)
                .collect();
            found.len() == wanted.len()
        })
    }
}

/// The pointer of a folded argument, and the lines of its value.
fn split_argument(argument: &str) -> Option<(&str, &str)> {
    argument.split_once('\n')
}

/// The characters that count, in one spelling each. Escapes as JSON writes them are what they stand for.
fn fold(text: &str) -> impl Iterator<Item = char> {
    let mut chars = text.chars();
    std::iter::from_fn(move || {
        loop {
            let c = match chars.next()? {
                '\\' => unescaped(&mut chars),
                c => Some(c),
            };
            if let Some(c) = c.and_then(folded_char) {
                return Some(c);
            }
        }
    })
}

/// What a backslash stands for with what is behind it; `None` for what is left out.
fn unescaped(chars: &mut Chars<'_>) -> Option<char> {
    let mut ahead = chars.clone();
    let c = match ahead.next()? {
        'n' | 'r' => Some('\n'),
        't' => None,
        'u' => Some(code_unit(&mut ahead).and_then(|unit| code_point(unit, &mut ahead))?),
        _ => return None,
    };
    *chars = ahead;
    c
}

/// Four hexadecimal digits.
fn code_unit(chars: &mut Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |unit, _| Some(unit << 4 | chars.next()?.to_digit(16)?))
}

/// The character of a code unit, and of the second one that it may need.
fn code_point(unit: u32, chars: &mut Chars<'_>) -> Option<char> {
    if !(0xD800..0xDC00).contains(&unit) {
        return char::from_u32(unit);
    }
    // What was escaped twice has more backslashes.
    let second = chars.find(|c| *c != '\\').filter(|c| *c == 'u');
    let low = second.and_then(|_| code_unit(chars))?;
    let low = low.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    char::from_u32(0x1_0000 + (unit - 0xD800) * 0x400 + low)
}

/// The characters that fold to this one.
fn unfolded(c: char) -> impl Iterator<Item = char> {
    let code = u32::from(c);
    let others = [c.to_ascii_uppercase(), c]
        .into_iter()
        .filter(char::is_ascii_graphic)
        .flat_map(|c| {
            let code = u32::from(c);
            [code, code + 0xE_0000, code + 0xFEE0]
        });
    std::iter::once(code)
        .chain(others)
        .filter_map(char::from_u32)
}

/// `None` for what is not seen.
fn folded_char(c: char) -> Option<char> {
    if c.is_ascii_graphic() {
        return Some(c.to_ascii_lowercase());
    }
    let from = |c: char, first: char, to: char| {
        let code = u32::from(c).checked_sub(u32::from(first))?;
        char::from_u32(u32::from(to) + code)
    };
    let c = match c {
        // Tag characters and full-width forms are ASCII in other clothes.
        '\u{E0020}'..='\u{E007E}' => from(c, '\u{E0020}', ' ')?,
        '\u{FF01}'..='\u{FF5E}' => from(c, '\u{FF01}', '!')?,
        // What readers, models among them, take for a line end.
        '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => return Some('\n'),
        c => c,
    };
    let is_unseen = c.is_whitespace()
        || c.is_control()
        || matches!(c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
            | '\u{E0000}'..='\u{E0FFF}');
    (!is_unseen).then(|| c.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{folded_char, unfolded};

    #[test]
    fn every_character_that_folds_to_another_is_known() {
        for c in char::MIN..=char::MAX {
            if let Some(folded) = folded_char(c).filter(|folded| *folded != '\n') {
                assert!(unfolded(folded).any(|other| other == c), "{c:?}");
            }
        }
    }
}
