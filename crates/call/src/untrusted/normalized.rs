//! Normalized texts for the detection of echoes (`spec/untrusted.md` 4).

use plaincall_syntax::{Dialect, DialectError, MarkerUse, NearMisses};

use crate::invisible::is_invisible;
use crate::rescue::calls::{Member, call_members};

/// The characters for markers in normalized text. Control characters of the text itself are removed.
const START: char = '\u{1}';
const ARGUMENT: char = '\u{2}';
const END: char = '\u{3}';
/// Precedes a near miss of a start marker.
const NEAR_START: char = '\u{4}';

#[derive(Clone, Debug)]
pub(crate) struct Patterns {
    /// Normalized, longest first.
    markers: Vec<(String, MarkerUse)>,
    /// Whether a marker begins with this byte.
    first: Vec<bool>,
    near: Vec<NearMisses>,
    /// Whether JSON may start a call.
    pub(crate) has_json: bool,
}

impl Patterns {
    /// Creates the markers of these dialects with and without their keys, and the default ones.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub(crate) fn new(dialects: &[Dialect]) -> Result<Self, DialectError> {
        let unkeyed: Vec<Dialect> = dialects.iter().map(Dialect::without_key).collect();
        let defaults = Dialect::auto();
        let known = defaults.markers()?;
        // No near miss in an outside text can contain the key.
        let mut near = vec![NearMisses::new(&defaults)?];
        for dialect in &unkeyed {
            let is_known = |text: &str| known.iter().any(|marker| marker.text == text);
            if !dialect
                .markers()?
                .iter()
                .all(|marker| is_known(&marker.text))
            {
                near.push(NearMisses::new(dialect)?);
            }
        }
        let all = dialects.iter().chain(&unkeyed).chain([&defaults]);
        let all = all.map(Dialect::markers).collect::<Result<Vec<_>, _>>()?;
        let mut markers: Vec<(String, MarkerUse)> = Vec::new();
        for marker in all.concat() {
            let text: String = normalize(&marker.text).filter(|c| *c != ' ').collect();
            let is_known = markers.iter().any(|(known, _)| *known == text);
            if !text.is_empty() && !is_known && marker.usage != MarkerUse::Reasoning {
                markers.push((text, marker.usage));
            }
        }
        markers.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let begins = |byte: u8| {
            markers
                .iter()
                .any(|(text, _)| text.as_bytes().first() == Some(&byte))
        };
        let first = (0..=u8::MAX).map(begins).collect();
        Ok(Self {
            markers,
            first,
            near,
            has_json: false,
        })
    }

    /// Returns `true` if some markers cannot be found, because they contain a line end of this normalization.
    pub(crate) fn has_unsearchable_markers(&self) -> bool {
        self.markers.iter().any(|(text, _)| text.contains('\n'))
    }

    fn at_front(&self, text: &str) -> Option<(usize, MarkerUse)> {
        let byte = text.bytes().next()?;
        self.first
            .get(usize::from(byte))
            .filter(|begins| **begins)?;
        let mut markers = self.markers.iter();
        let (marker, usage) = markers.find(|(marker, _)| text.starts_with(&**marker))?;
        Some((marker.len(), *usage))
    }
}

/// A normalized text. A blank in it separates two word characters, where other characters were removed.
pub(crate) struct Normalized {
    text: String,
    lines: Vec<(usize, usize)>,
}

impl Normalized {
    pub(crate) fn new(text: &str, patterns: &Patterns) -> Self {
        let mut normalized = Self::of_call(text, patterns);
        let near = patterns
            .near
            .iter()
            .flat_map(|near| near.find_behind_prefixes(&normalized.text));
        let starts = near.filter(|near| matches!(near.usage, MarkerUse::Start(_)));
        let mut starts: Vec<usize> = starts.map(|near| near.span.start).collect();
        if patterns.has_json {
            starts.extend(json_starts(&normalized.text));
        }
        starts.sort_unstable();
        starts.dedup();
        if !starts.is_empty() {
            normalized.mark(&starts);
        }
        normalized
    }

    fn of_call(text: &str, patterns: &Patterns) -> Self {
        let mut normalized = Self {
            text: String::new(),
            lines: Vec::new(),
        };
        let mut line = Line::default();
        let mut begin = 0;
        for raw in text.split_inclusive('\n') {
            normalized.lines.push((normalized.text.len(), begin));
            begin += raw.len();
            for c in normalize(raw) {
                if c == '\n' {
                    line.end(patterns, &mut normalized.text);
                } else {
                    line.push(c);
                }
            }
            line.end(patterns, &mut normalized.text);
        }
        normalized
    }

    fn mark(&mut self, places: &[usize]) {
        let mut marked = String::with_capacity(self.text.len() + places.len());
        let mut from = 0;
        let mut lines = self.lines.iter_mut().peekable();
        for (marks, place) in places.iter().enumerate() {
            while let Some((at, _)) = lines.next_if(|(at, _)| at <= place) {
                *at += marks;
            }
            marked.push_str(self.text.get(from..*place).unwrap_or_default());
            marked.push(NEAR_START);
            from = *place;
        }
        lines.for_each(|(at, _)| *at += places.len());
        marked.push_str(self.text.get(from..).unwrap_or_default());
        self.text = marked;
    }

    fn first_start(&self) -> Option<usize> {
        self.text.find([START, NEAR_START])
    }

    /// Returns the offset of the first relevant line in the original text.
    pub(crate) fn begin(&self) -> Option<usize> {
        let first = self.first_start()?;
        let lines = self.lines.partition_point(|(at, _)| *at <= first);
        self.lines
            .get(lines.checked_sub(1)?)
            .map(|(_, begin)| *begin)
    }

    pub(crate) fn into_text(self) -> Option<String> {
        let first = self.first_start()?;
        self.text.get(first..).map(str::to_owned)
    }
}

/// Returns the positions of JSON that may be a call: a brace and a key of calls, if the key of arguments is there or follows.
/// The quotes may be those of JSON in a string of JSON, so that the nesting is unknown.
fn json_starts(text: &str) -> impl Iterator<Item = usize> {
    let arguments = call_members().filter(|(member, _)| *member == Member::Arguments);
    let last = arguments
        .filter_map(|(_, key)| text.rfind(&format!("\"{key}\":")))
        .max();
    let before = last.map_or("", |last| text.get(..last).unwrap_or_default());
    before.match_indices('{').map(|(at, _)| at).filter(|at| {
        let mut members = call_members();
        let key = text.get(at + 1..).and_then(|rest| rest.strip_prefix('"'));
        key.is_some_and(|key| {
            members.any(|(_, known)| {
                key.strip_prefix(known)
                    .is_some_and(|rest| rest.starts_with("\":"))
            })
        })
    })
}

#[derive(Default)]
struct Line {
    text: String,
    blanks: Vec<usize>,
}

impl Line {
    fn push(&mut self, c: char) {
        if c != ' ' {
            self.text.push(c);
        } else if self.blanks.last() != Some(&self.text.len()) {
            self.blanks.push(self.text.len());
        }
    }

    /// Adds the current line to the normalized text, each marker as one character.
    fn end(&mut self, patterns: &Patterns, normalized: &mut String) {
        let mut blanks = self.blanks.iter().peekable();
        let mut at = 0;
        while let Some(rest) = self.text.get(at..).filter(|rest| !rest.is_empty()) {
            let mut was_blank = false;
            while blanks.next_if(|blank| **blank <= at).is_some() {
                was_blank = true;
            }
            if let Some((len, usage)) = patterns.at_front(rest) {
                normalized.push(match usage {
                    MarkerUse::Start(_) => START,
                    MarkerUse::Argument => ARGUMENT,
                    MarkerUse::End(_) | MarkerUse::Reasoning => END,
                });
                at += len;
                continue;
            }
            let Some(c) = rest.chars().next() else {
                break;
            };
            if was_blank && is_word(c) && normalized.ends_with(is_word) {
                normalized.push(' ');
            }
            normalized.push(c);
            at += c.len_utf8();
        }
        if !normalized.is_empty() && !normalized.ends_with('\n') {
            normalized.push('\n');
        }
        self.text.clear();
        self.blanks.clear();
    }
}

/// Scripts without blanks between words have no word boundaries either.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

pub(crate) struct Sought {
    name: Vec<u8>,
    values: Vec<Vec<Vec<u8>>>,
    /// Whether a value contains a marker, so that a marker does not end the call.
    has_marker: bool,
}

/// The maximum number of restarts from the beginning of a text, for values in another order.
const RESTARTS: usize = 64;

impl Sought {
    pub(crate) fn new(name: &str, patterns: &Patterns) -> Self {
        let name = Normalized::of_call(name, patterns).text;
        Self {
            name: name.bytes().filter(|byte| !is_ignored(*byte)).collect(),
            values: Vec::new(),
            has_marker: false,
        }
    }

    pub(crate) fn value(&mut self, text: &str, patterns: &Patterns) {
        let text = Normalized::of_call(text, patterns).text;
        self.has_marker |= text.contains([START, END]);
        let lines = text
            .split('\n')
            .map(|line| line.bytes().filter(|byte| !is_ignored(*byte)).collect());
        self.values
            .push(lines.filter(|line: &Vec<u8>| !line.is_empty()).collect());
    }

    /// Returns `true` if the text contains the header of the call and, before the next marker that starts or ends a
    /// call, each of its values. After a near miss of a start marker the name may be anywhere.
    pub(crate) fn appears_in(&self, text: &str) -> bool {
        let mut from = 0;
        // Whether there was a near miss since the last marker.
        let mut was_near = false;
        while let Some(at) = text
            .get(from..)
            .and_then(|rest| rest.find([START, END, NEAR_START]))
        {
            let behind = text.get(from + at + 1..).unwrap_or_default();
            let is_near = text
                .get(from + at..)
                .is_some_and(|rest| rest.starts_with(NEAR_START));
            let is_start = text
                .get(from + at..)
                .is_some_and(|rest| rest.starts_with(START));
            from += at + 1;
            let may_stand = if is_start {
                self.begins(behind)
            } else {
                is_near && !was_near
            };
            was_near = is_near || (was_near && self.has_marker);
            if !may_stand {
                continue;
            }
            let end = behind.find([START, END]).filter(|_| !self.has_marker);
            let region = Region::new(
                behind
                    .get(..end.unwrap_or(behind.len()))
                    .unwrap_or_default(),
            );
            if (is_start || region.find(&self.name, 0).is_some()) && self.values_appear_in(&region)
            {
                return true;
            }
            // If no marker ends the region, later headers cannot add a match.
            if self.has_marker && is_start {
                return false;
            }
        }
        false
    }

    pub(crate) fn appears_anywhere_in(&self, text: &str) -> bool {
        Region::new(text).find(&self.name, 0).is_some()
    }

    /// Returns `true` if the text begins with the name, perhaps in quotes.
    fn begins(&self, text: &str) -> bool {
        let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| is_word(char::from(*byte)));
        let mut matched = 0;
        let mut is_edge = true;
        for byte in text.bytes() {
            if is_ignored(byte) {
                is_edge = true;
                continue;
            }
            match self.name.get(matched) {
                None => return is_edge || !(is_word(Some(&byte)) && is_word(self.name.last())),
                Some(expected) if *expected == byte => {
                    matched += 1;
                    is_edge = false;
                }
                Some(_) if matched == 0 && b"\"'`*_<([{".contains(&byte) => {}
                Some(_) => return false,
            }
        }
        matched == self.name.len()
    }

    fn values_appear_in(&self, region: &Region) -> bool {
        let mut at = 0;
        let mut restarts = 0;
        for value in &self.values {
            let from_here = region.find_lines(value, at);
            let found = from_here.or_else(|| {
                restarts += 1;
                region.find_lines(value, 0)
            });
            match found {
                Some(end) => at = end,
                None => return false,
            }
            // Further search would take too long.
            if restarts > RESTARTS {
                return true;
            }
        }
        true
    }
}

/// The maximum number of near misses examined in a text.
const NEAR_STARTS: usize = 64;

/// Returns the first words after each text that looks like the start of a call: one of them is its name, if it has one.
/// In other formats a key may precede it.
pub(crate) fn possible_names(text: &str) -> Vec<&str> {
    let is_in_name =
        |c: char| !c.is_whitespace() && !c.is_control() && !":,;=\"'`|()[]{}<>".contains(c);
    let starts = text.match_indices([START, NEAR_START]).take(NEAR_STARTS);
    let names = starts.flat_map(|(at, mark)| {
        let behind = text.get(at + mark.len()..).unwrap_or_default();
        let behind = behind.trim_start_matches(|c| !is_in_name(c));
        let own = behind
            .find(|c| !is_in_name(c))
            .filter(|_| mark.starts_with(NEAR_START));
        let behind = behind.get(own.unwrap_or_default()..).unwrap_or_default();
        let behind = behind.trim_start_matches(|c| !is_in_name(c));
        let line = behind
            .split(|c: char| c.is_control())
            .next()
            .unwrap_or_default();
        let words = line.split(move |c| !is_in_name(c));
        words
            .filter(|word| !word.is_empty())
            .take(1 + usize::from(own.is_some()))
    });
    names.collect()
}

/// Returns `true` for bytes that only separate words.
fn is_ignored(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | 4)
}

struct Region {
    bytes: Vec<u8>,
    /// The bytes before which no word continues.
    edges: Vec<bool>,
}

impl Region {
    fn new(text: &str) -> Self {
        let mut region = Self {
            bytes: Vec::with_capacity(text.len()),
            edges: Vec::with_capacity(text.len()),
        };
        let is_word = |byte: u8| is_word(char::from(byte));
        let mut before = b' ';
        for byte in text.bytes() {
            if !is_ignored(byte) {
                region.bytes.push(byte);
                region.edges.push(!(is_word(before) && is_word(byte)));
            }
            before = byte;
        }
        region
    }

    /// Returns the end of the last line, if all lines appear in order.
    fn find_lines(&self, lines: &[Vec<u8>], from: usize) -> Option<usize> {
        lines.iter().try_fold(from, |at, line| self.find(line, at))
    }

    /// Returns the end of the first match at word boundaries. The time is linear in the searched text (Knuth, Morris
    /// and Pratt).
    fn find(&self, sought: &[u8], from: usize) -> Option<usize> {
        if sought.is_empty() {
            return Some(from);
        }
        // For each prefix length: the length of the next shorter prefix that is also a suffix.
        let mut shorter = vec![0; sought.len() + 1];
        let mut length = 0;
        for at in 1..sought.len() {
            length = longer(sought, &shorter, length, sought.get(at));
            if let Some(entry) = shorter.get_mut(at + 1) {
                *entry = length;
            }
        }
        let is_edge = |at: usize| self.edges.get(at).is_none_or(|edge| *edge);
        length = 0;
        for at in from..self.bytes.len() {
            length = longer(sought, &shorter, length, self.bytes.get(at));
            if length == sought.len() {
                if is_edge(at + 1 - length) && is_edge(at + 1) {
                    return Some(at + 1);
                }
                length = shorter.get(length).copied().unwrap_or_default();
            }
        }
        None
    }
}

fn longer(sought: &[u8], shorter: &[usize], mut length: usize, byte: Option<&u8>) -> usize {
    loop {
        if sought.get(length) == byte {
            return length + 1;
        }
        if length == 0 {
            return 0;
        }
        length = shorter.get(length).copied().unwrap_or_default();
    }
}

/// Returns the relevant characters in one spelling: line ends become LF, blanks a space. JSON escapes are decoded.
fn normalize(text: &str) -> impl Iterator<Item = char> {
    let mut chars = text.chars().filter_map(visible);
    std::iter::from_fn(move || {
        loop {
            let c = match chars.next()? {
                '\\' => unescaped(&mut chars),
                c => Some(c),
            };
            if let Some(c) = c.and_then(normalized_char) {
                return Some(c);
            }
        }
    })
}

/// Decodes a backslash and the text after it; `None` if it is removed.
fn unescaped(chars: &mut (impl Iterator<Item = char> + Clone)) -> Option<char> {
    let mut ahead = chars.clone();
    let c = match ahead.next()? {
        'n' | 'r' => '\n',
        't' => ' ',
        'u' => code_unit(&mut ahead).and_then(|unit| code_point(unit, &mut ahead))?,
        _ => return None,
    };
    *chars = ahead;
    Some(c)
}

fn code_unit(chars: &mut impl Iterator<Item = char>) -> Option<u32> {
    (0..4).try_fold(0, |unit, _| Some(unit << 4 | chars.next()?.to_digit(16)?))
}

/// Decodes a code unit, and the second one of a surrogate pair.
fn code_point(unit: u32, chars: &mut impl Iterator<Item = char>) -> Option<char> {
    if !(0xD800..0xDC00).contains(&unit) {
        return char::from_u32(unit);
    }
    // A doubly escaped text has more backslashes.
    let second = chars.find(|c| *c != '\\').filter(|c| *c == 'u');
    let low = second.and_then(|_| code_unit(chars))?;
    let low = low.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    char::from_u32(0x1_0000 + (unit - 0xD800) * 0x400 + low)
}

/// Maps a look-alike to its ASCII character; `None` for invisible characters.
fn visible(c: char) -> Option<char> {
    let from = |first: char, to: char| {
        let code = u32::from(c).checked_sub(u32::from(first))?;
        char::from_u32(u32::from(to) + code)
    };
    match c {
        // Tag characters.
        '\u{E0020}'..='\u{E007E}' => from('\u{E0020}', ' '),
        // Full-width forms.
        '\u{FF01}'..='\u{FF5E}' => from('\u{FF01}', '!'),
        c => (!is_invisible(c)).then_some(c),
    }
}

/// Returns the normalized character; `None` if it is removed.
fn normalized_char(c: char) -> Option<char> {
    let c = visible(c)?;
    match c {
        // Characters that readers, including models, take for a line end.
        '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        c if c.is_whitespace() => Some(' '),
        c => (!c.is_control()).then(|| c.to_ascii_lowercase()),
    }
}
