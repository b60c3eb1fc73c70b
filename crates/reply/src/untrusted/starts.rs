//! The possible starts of calls in an untrusted text (`spec/untrusted.md` 4).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use memchr::{memchr2_iter, memrchr};
use plaincall_syntax::{
    CALL_ARGUMENT_KEYS, CALL_NAME_KEYS, Dialect, DialectError, MarkerUse, NearMisses,
};

use crate::untrusted::normalized::{Lines, Normalized};

/// The length of the text after a near miss or a tag in which its name is looked for, in bytes.
const NAME_BYTES: usize = 256;
/// The length of the text before and after the name of a call without an end marker, in bytes.
const CALL_BYTES: usize = 64 << 10;
/// The maximum number of quotes, brackets and similar signs before a name, in bytes.
const SIGNS: usize = 32;
/// The length of the groups of bytes that a text is known to contain.
const GROUP: usize = 5;
/// The maximum number of parts of a name that blanks separate.
const PARTS: usize = 4;

/// The keys of a call's name and arguments in JSON, in addition to [`CALL_NAME_KEYS`] and [`CALL_ARGUMENT_KEYS`].
const OTHER_NAME_KEYS: &[&str] = &["recipient", "recipient_name", "function_name"];
const OTHER_ARGUMENT_KEYS: &[&str] = &["params", "parameter", "parameter_name", "kwargs"];
/// A key that also names many other things: only with arguments is it that of a call.
const COMMON_KEY: &str = "name";

#[derive(Clone, Debug)]
pub(crate) struct Patterns {
    /// Normalized, longest first.
    markers: Vec<(Vec<u8>, MarkerUse)>,
    /// Whether a marker begins with this byte.
    first: Vec<bool>,
    near: Vec<NearMisses>,
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
        let mut markers: Vec<(Vec<u8>, MarkerUse)> = Vec::new();
        for marker in all.concat() {
            let text = Reading::of_call(&marker.text).bytes;
            let is_known = markers.iter().any(|(known, _)| *known == text);
            if !text.is_empty() && !is_known && marker.usage != MarkerUse::Reasoning {
                markers.push((text, marker.usage));
            }
        }
        markers.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let begins = |byte: u8| markers.iter().any(|(text, _)| text.first() == Some(&byte));
        let first = (0..=u8::MAX).map(begins).collect();
        Ok(Self {
            markers,
            first,
            near,
        })
    }

    /// Returns the markers in a text, in order, also those that are wrapped over two lines.
    fn marks(&self, bytes: &[u8]) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let begins = |byte: &u8| self.first.get(usize::from(*byte)) == Some(&true);
            let Some(skipped) = rest.iter().position(begins) else {
                break;
            };
            at += skipped;
            let rest = rest.get(skipped..).unwrap_or_default();
            let mut markers = self.markers.iter();
            let found = markers.find_map(|(marker, usage)| Some((len_of(marker, rest)?, *usage)));
            if let Some((len, usage)) = found {
                let span = at..at + len;
                marks.push(Mark { span, usage });
            }
            at += found.map_or(1, |(len, _)| len);
        }
        marks
    }
}

/// Returns the length of a marker at the front, also with other signs between its words.
fn len_of(marker: &[u8], text: &[u8]) -> Option<usize> {
    let is_joint = |byte: u8| matches!(byte, b'_' | b'-');
    let mut at = 0;
    let mut letters = marker.iter().filter(|byte| !is_joint(**byte)).peekable();
    if letters.peek().is_none() {
        return text.starts_with(marker).then_some(marker.len());
    }
    for letter in letters {
        // A line of dashes contains no marker.
        let joints = text
            .iter()
            .skip(at)
            .take(2)
            .take_while(|byte| is_joint(**byte) && *byte != letter);
        at += if at == 0 { 0 } else { joints.count() };
        if text.get(at) != Some(letter) {
            return None;
        }
        at += 1;
    }
    Some(at)
}

/// A marker in a text.
#[derive(Debug)]
struct Mark {
    span: Range<usize>,
    usage: MarkerUse,
}

impl Mark {
    fn is_start(&self) -> bool {
        matches!(self.usage, MarkerUse::Start(_))
    }

    fn ends_call(&self) -> bool {
        self.is_start() || matches!(self.usage, MarkerUse::End(_))
    }
}

/// A normalized text without what only separates words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) bytes: Vec<u8>,
    /// Whether no word continues before a byte.
    edges: Vec<bool>,
    /// The bits of all groups of [`GROUP`] bytes, so that most values that are not in the text need no search.
    groups: Vec<u64>,
}

/// The place of a name after the possible start of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The beginning of the call, and its end at the latest.
    pub(crate) from: usize,
    pub(crate) until: usize,
    /// The beginning of the name, perhaps with quotes and brackets before it.
    pub(crate) name: usize,
    /// True for the first two words after the start.
    pub(crate) is_first: bool,
}

/// The possible calls in a text.
#[derive(Debug)]
pub(crate) struct Starts {
    /// The text from the first start on.
    pub(crate) reading: Reading,
    pub(crate) places: Vec<Place>,
    /// The offset of the line with the first start in the original text.
    pub(crate) offset: usize,
}

impl Reading {
    pub(crate) fn of_call(text: &str) -> Self {
        Self::new(&Normalized::of_call(text).text)
    }

    /// Reads a normalized text.
    pub(crate) fn new(text: &str) -> Self {
        let mut reading = Self {
            bytes: Vec::with_capacity(text.len()),
            edges: Vec::with_capacity(text.len()),
            groups: Vec::new(),
        };
        let bytes = text.as_bytes();
        let mut was_word = false;
        for (at, byte) in bytes.iter().enumerate() {
            if is_separator(*byte) {
                was_word = false;
                continue;
            }
            // A sign at the edge of a word is markup.
            let is_word = byte.is_ascii_alphanumeric() || (*byte == b'_' && is_joint(bytes, at));
            reading.bytes.push(*byte);
            reading.edges.push(!(was_word && is_word));
            was_word = is_word;
        }
        reading
    }

    pub(crate) fn is_edge(&self, at: usize) -> bool {
        self.edges.get(at).is_none_or(|edge| *edge)
    }

    /// Returns `false` if the text does not contain these bytes, and in most other cases `true`.
    pub(crate) fn may_contain(&self, sought: &[u8]) -> bool {
        let has = |group: &[u8]| {
            let (word, bit) = bit_of(group, self.groups.len());
            self.groups.get(word).is_none_or(|bits| bits & bit != 0)
        };
        sought.windows(GROUP).all(has)
    }

    /// Returns the first edge from this place on.
    pub(crate) fn next_edge(&self, at: usize) -> usize {
        let inside = self.edges.get(at..).unwrap_or_default();
        at + inside.iter().take_while(|edge| !**edge).count()
    }

    /// Returns whether a value contains a marker that starts or ends a call.
    pub(crate) fn has_marker(&self, patterns: &Patterns) -> bool {
        patterns.marks(&self.bytes).iter().any(Mark::ends_call)
    }

    /// Returns the end of the name at this place, if it is there: other signs may be before and in it.
    pub(crate) fn end_of_name(&self, name: &[u8], at: usize) -> Option<usize> {
        let mut at = at;
        let mut signs = SIGNS;
        for letter in name {
            while self.bytes.get(at) != Some(letter) {
                let is_sign = self.bytes.get(at)?.is_ascii_punctuation();
                signs = signs.checked_sub(1).filter(|_| is_sign)?;
                at += 1;
            }
            at += 1;
        }
        self.is_edge(at).then_some(at)
    }

    /// Returns the texts at this place that may be the first word of a name: blanks may be in it.
    pub(crate) fn first_words(&self, at: usize) -> impl Iterator<Item = &[u8]> {
        let begin = at + self.signs_at(at, u8::is_ascii_punctuation);
        let (mut end, mut parts) = (begin, 0);
        std::iter::from_fn(move || {
            let first = self.bytes.get(end)?;
            // The letters may be apart.
            if first.is_ascii_punctuation() || parts >= PARTS && end - begin > parts {
                return None;
            }
            parts += 1;
            let rest = self.bytes.get(end + 1..)?.iter();
            let rest = rest.zip(self.edges.get(end + 1..)?);
            let is_inside = |byte: u8, edge: bool| is_rest(byte) || (!edge && byte != b'_');
            end += 1 + rest
                .take_while(|(byte, edge)| is_inside(**byte, **edge))
                .count();
            self.bytes.get(begin..end)
        })
        .take(SIGNS)
    }

    /// Returns the number of signs at this place.
    fn signs_at(&self, at: usize, is_sign: impl Fn(&u8) -> bool) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        rest.iter()
            .take(SIGNS)
            .take_while(|byte| is_sign(byte))
            .count()
    }

    /// Returns whether a sign is at this place.
    pub(crate) fn has_sign_at(&self, at: usize) -> bool {
        self.bytes.get(at).is_some_and(u8::is_ascii_punctuation)
    }

    /// Returns the name at this place, up to a sign that ends names or a blank.
    pub(crate) fn written_name(&self, at: usize) -> &[u8] {
        let ends = |byte: &u8| b":,;=\"'`|()[]{}<>".contains(byte);
        let begin = at + self.signs_at(at, ends);
        let rest = self.bytes.get(begin..).unwrap_or_default();
        let mut was_letter = false;
        let len = rest.iter().zip(begin..).take_while(|(byte, at)| {
            let is_letter = byte.is_ascii_alphanumeric();
            let is_blank = was_letter && is_letter && self.is_edge(*at);
            was_letter = is_letter;
            !ends(byte) && !is_blank
        });
        let len = len.count();
        rest.get(..len).unwrap_or_default()
    }

    /// Finds the possible calls of a normalized text.
    fn starts(normalized: &Normalized, patterns: &Patterns) -> Option<Starts> {
        let text = &normalized.text;
        let mut reading = Self::new(text);
        let marks = patterns.marks(&reading.bytes);
        for edge in marks
            .iter()
            .flat_map(|mark| [mark.span.start, mark.span.end])
        {
            if let Some(is_edge) = reading.edges.get_mut(edge) {
                *is_edge = true;
            }
        }
        let mut places = reading.after_markers(&marks);
        let near = patterns
            .near
            .iter()
            .flat_map(|near| near.find_behind_prefixes(text));
        let near = near.filter(|near| matches!(near.usage, MarkerUse::Start(_)));
        let mut near: Vec<_> = near.map(|near| near.span.range()).collect();
        near.sort_unstable_by_key(|span| span.start);
        let len_of = |span: Range<usize>| {
            let bytes = text.as_bytes().get(span).unwrap_or_default();
            bytes.iter().filter(|byte| !is_separator(**byte)).count()
        };
        let (mut at, mut len) = (0, 0);
        let near = near.into_iter().map(|span| {
            len += len_of(at..span.start);
            at = span.start;
            len..len + len_of(span)
        });
        let near: Vec<_> = near.collect();
        places.extend(reading.after_near(&near, &marks));
        places.extend(reading.in_objects());
        let first = places.iter().map(|place| place.from).min()?;
        // Text that was moved behind the last line comes from an earlier one.
        let offsets = places.iter().filter_map(|place| {
            let lines = normalized
                .lines
                .partition_point(|(len, _)| *len <= place.from);
            normalized.lines.get(lines.checked_sub(1)?)
        });
        let offset = offsets.map(|(_, offset)| *offset).min()?;
        for place in &mut places {
            place.from -= first;
            place.until -= first;
            place.name -= first;
        }
        reading.bytes.drain(..first);
        reading.edges.drain(..first);
        // Eight bits for each byte.
        let mut groups = vec![0; (reading.bytes.len() / 8).next_power_of_two()];
        for group in reading.bytes.windows(GROUP) {
            let (word, bit) = bit_of(group, groups.len());
            if let Some(bits) = groups.get_mut(word) {
                *bits |= bit;
            }
        }
        reading.groups = groups;
        Some(Starts {
            reading,
            places,
            offset,
        })
    }

    /// Finds the possible calls of an untrusted text, as it is and without the prefixes of its lines.
    pub(crate) fn of_text(text: &str, patterns: &Patterns) -> Vec<Starts> {
        let whole = Normalized::of_text(text, Lines::Whole);
        let wrapped = Normalized::of_text(text, Lines::WithoutPrefixes);
        let wrapped = Some(wrapped).filter(|wrapped| wrapped.text != whole.text);
        let readings = [Some(whole), wrapped].into_iter().flatten();
        readings
            .filter_map(|it| Self::starts(&it, patterns))
            .collect()
    }

    /// Returns the places of names after start markers: the name directly follows, and another marker ends the call.
    fn after_markers(&self, marks: &[Mark]) -> Vec<Place> {
        let mut until = self.bytes.len();
        let mut places = Vec::new();
        for mark in marks.iter().rev().filter(|mark| mark.ends_call()) {
            if mark.is_start() {
                places.push(Place {
                    from: mark.span.start,
                    until,
                    name: mark.span.end,
                    is_first: true,
                });
            }
            until = mark.span.start;
        }
        places
    }

    /// Returns the words after near misses and tags. Each may be the name.
    fn after_near(&self, near: &[Range<usize>], marks: &[Mark]) -> Vec<Place> {
        let mut places = Vec::new();
        let (mut from, mut read, mut last_mark) = (0, 0, 0);
        for start in near {
            let later = marks.get(last_mark..).unwrap_or_default().iter();
            last_mark += later
                .take_while(|mark| mark.span.end <= start.start)
                .count();
            let mark = marks.get(last_mark);
            // Near misses of markers in lower case are markers here.
            if mark.is_some_and(|mark| mark.span.start < start.end) {
                continue;
            }
            if start.start >= read {
                from = start.start;
            }
            let end = mark.map_or(self.bytes.len(), |mark| mark.span.start);
            let until = end.min(start.end + NAME_BYTES);
            let first = self.words(start.end..until).take(2);
            places.extend(first.map(|name| self.place(from, name, true)));
            let others = self.words(start.end.max(read)..until);
            places.extend(others.map(|name| self.place(from, name, false)));
            read = read.max(until);
        }
        places
    }

    /// Returns where words and their parts begin.
    fn words(&self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let byte = |at: usize| self.bytes.get(at);
        let begins = |byte: &u8| !byte.is_ascii_punctuation() && !is_rest(*byte);
        range.filter(move |at| {
            let is_behind_sign = || at.checked_sub(1).and_then(byte) == Some(&b'_');
            byte(*at).is_some_and(begins) && (self.is_edge(*at) || is_behind_sign())
        })
    }

    fn place(&self, from: usize, name: usize, is_first: bool) -> Place {
        Place {
            from: from.max(name.saturating_sub(CALL_BYTES)),
            until: self.bytes.len().min(name + CALL_BYTES),
            name,
            is_first,
        }
    }

    /// Returns the names in JSON and similar texts: the value of a key for names, with arguments in its neighborhood. The
    /// nesting is unknown, because the text may be in a string, or incomplete.
    fn in_objects(&self) -> Vec<Place> {
        let (mut names, mut arguments) = (Vec::new(), Vec::new());
        for sign in memchr2_iter(b':', b'=', &self.bytes) {
            let before = self.bytes.get(..sign).unwrap_or_default();
            let behind = self.bytes.get(sign + 1..).unwrap_or_default();
            let quotes = |byte: &&u8| b"\"'`*_".contains(byte);
            let closing = before.iter().rev().take(SIGNS).take_while(quotes).count();
            let opening = behind.iter().take(SIGNS).take_while(quotes).count();
            let key = before.get(..sign - closing).unwrap_or_default();
            let begin_of = |known: &[&str], others: &[&str]| {
                let mut keys = known.iter().chain(others);
                keys.find_map(|known| self.begin_of_key(key, known))
            };
            let is_marked = closing + opening > 0;
            if let Some(begin) = begin_of(CALL_ARGUMENT_KEYS, OTHER_ARGUMENT_KEYS) {
                if is_marked || behind.starts_with(b"{") {
                    arguments.push(begin);
                }
            } else if let Some(begin) = begin_of(CALL_NAME_KEYS, OTHER_NAME_KEYS) {
                let name = sign + 1 + opening;
                let is_word = self
                    .bytes
                    .get(name)
                    .is_some_and(|byte| !byte.is_ascii_punctuation());
                if is_marked && is_word {
                    names.push((begin, name, self.begin_of_key(key, COMMON_KEY).is_some()));
                }
            }
        }
        let places = names.into_iter().filter_map(|(begin, name, is_common)| {
            let earliest = begin.saturating_sub(CALL_BYTES);
            let next = arguments.partition_point(|at| *at < earliest);
            let near = arguments.get(next).filter(|at| **at <= name + CALL_BYTES);
            let brace = || {
                let earliest = begin.saturating_sub(NAME_BYTES);
                let before = self.bytes.get(earliest..begin)?;
                Some(earliest + memrchr(b'{', before).filter(|_| !is_common)?)
            };
            let from = near.copied().or_else(brace)?.min(begin);
            // A prefix such as `functions.` may precede the name.
            let value = self.bytes.get(name..)?.iter().take(NAME_BYTES);
            let value = value.take_while(|byte| !b"\"'`,{}".contains(byte));
            let words = self.words(name..name + value.count()).take(PARTS);
            Some(words.map(move |name| self.place(from, name, true)))
        });
        places.flatten().collect()
    }

    /// Returns where a key begins that ends a text, also with other signs between its words.
    fn begin_of_key(&self, text: &[u8], key: &str) -> Option<usize> {
        let mut at = text.len();
        for letter in key.bytes().rev().filter(|byte| *byte != b'_') {
            while at < text.len() && matches!(text.get(at.checked_sub(1)?), Some(b'_' | b'-')) {
                at -= 1;
            }
            at = at.checked_sub(1)?;
            if text.get(at) != Some(&letter) {
                return None;
            }
        }
        self.is_edge(at).then_some(at)
    }
}

/// Returns the place of the bit of a group of bytes in so many words, a power of two.
fn bit_of(group: &[u8], words: usize) -> (usize, u64) {
    let number = group
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    let number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let word = usize::try_from(number >> 38).unwrap_or_default() & words.saturating_sub(1);
    (word, 1 << (number >> 32 & 63))
}

/// Returns the letters of a name without signs.
pub(crate) fn letters(name: &[u8]) -> Vec<u8> {
    let letters = name.iter().copied();
    let letters: Vec<u8> = letters
        .filter(|byte| !byte.is_ascii_punctuation())
        .collect();
    if letters.is_empty() {
        name.to_vec()
    } else {
        letters
    }
}

/// Returns the number under which the first word of a name is found. Equal numbers do not prove equal words.
pub(crate) fn number_of(word: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n')
}

/// Returns whether signs join two parts of a word.
fn is_joint(text: &[u8], at: usize) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let before = text.get(..at).unwrap_or_default();
    let behind = text.get(at..).unwrap_or_default();
    let is_sign = |byte: &&u8| **byte == b'_';
    is_letter(before.iter().rev().take(SIGNS).find(|byte| !is_sign(byte)))
        && is_letter(behind.iter().take(SIGNS).find(|byte| !is_sign(byte)))
}

/// Returns whether a byte is not the first of its character.
fn is_rest(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}
