//! Normalized texts for the detection of echoes (`spec/untrusted.md` 4).

use std::ops::Range;

use memchr::memmem::Finder;
use plaincall_syntax::{Dialect, DialectError, MarkerUse, NearMisses, is_invisible};

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

    /// Returns the text from the first start on; `None` if it has none.
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
    ///
    /// # Errors
    /// Returns an error if this takes more steps than are left.
    pub(crate) fn appears_in(&self, text: &Searchable, steps: &mut Steps) -> Result<bool, NoSteps> {
        // Whether there was a near miss since the last marker.
        let mut was_near = false;
        for (index, mark) in text.marks.iter().enumerate() {
            steps.take(STEPS_OF_SEARCH)?;
            let is_near = mark.kind == NEAR_START;
            let is_start = mark.kind == START;
            let may_stand = if is_start {
                text.has_name_at(mark.behind, &self.name, steps)?
            } else {
                is_near && !was_near
            };
            was_near = is_near || (was_near && self.has_marker);
            if !may_stand {
                continue;
            }
            let mut later = text.marks.iter().skip(index + 1);
            let end = later.find(|mark| mark.kind != NEAR_START && !self.has_marker);
            let end = end.map_or(text.bytes.len(), |mark| mark.behind - 1);
            let region = mark.behind..end;
            let has_name = is_start || text.find(&self.name, region.clone(), steps)?.is_some();
            if has_name && self.values_appear_in(text, &region, steps)? {
                return Ok(true);
            }
            // If no marker ends the region, later headers cannot add a match.
            if self.has_marker && is_start {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Returns `true` if the text contains the name anywhere.
    ///
    /// # Errors
    /// Returns an error if this takes more steps than are left.
    pub(crate) fn appears_anywhere_in(
        &self,
        text: &Searchable,
        steps: &mut Steps,
    ) -> Result<bool, NoSteps> {
        let found = text.find(&self.name, 0..text.bytes.len(), steps)?;
        Ok(found.is_some())
    }

    fn values_appear_in(
        &self,
        text: &Searchable,
        region: &Range<usize>,
        steps: &mut Steps,
    ) -> Result<bool, NoSteps> {
        let mut at = region.start;
        let mut restarts = 0;
        for value in &self.values {
            let mut found = text.find_lines(value, at..region.end, steps)?;
            if found.is_none() && at > region.start {
                restarts += 1;
                found = text.find_lines(value, region.clone(), steps)?;
            }
            match found {
                Some(end) => at = end,
                None => return Ok(false),
            }
            // Further search would take too long.
            if restarts > RESTARTS {
                return Ok(true);
            }
        }
        Ok(true)
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

/// The steps that searches may still take: about one for each byte.
#[derive(Clone, Debug)]
pub(crate) struct Steps(pub(crate) usize);

/// A search takes more steps than are left.
pub(crate) struct NoSteps;

/// The steps of a search in a short text.
const STEPS_OF_SEARCH: usize = 32;

impl Steps {
    fn take(&mut self, steps: usize) -> Result<(), NoSteps> {
        let left = self.0.checked_sub(steps);
        self.0 = left.unwrap_or_default();
        left.map(drop).ok_or(NoSteps)
    }
}

/// A normalized text without what only separates words.
#[derive(Clone, Debug)]
pub(crate) struct Searchable {
    bytes: Vec<u8>,
    /// Whether no word continues before a byte.
    edges: Vec<bool>,
    marks: Vec<Mark>,
}

/// A marker, or a near miss of a start marker.
#[derive(Clone, Copy, Debug)]
struct Mark {
    kind: char,
    /// The index of the byte behind it.
    behind: usize,
}

impl Searchable {
    pub(crate) fn new(text: &str) -> Self {
        let mut searchable = Self {
            bytes: Vec::with_capacity(text.len()),
            edges: Vec::with_capacity(text.len()),
            marks: Vec::new(),
        };
        let is_word = |byte: u8| is_word(char::from(byte));
        let mut before = b' ';
        for byte in text.bytes() {
            if !is_ignored(byte) {
                searchable.bytes.push(byte);
                searchable.edges.push(!(is_word(before) && is_word(byte)));
            }
            let kind = char::from(byte);
            if [START, END, NEAR_START].contains(&kind) {
                let behind = searchable.bytes.len();
                searchable.marks.push(Mark { kind, behind });
            }
            before = byte;
        }
        searchable
    }

    fn is_edge(&self, at: usize) -> bool {
        self.edges.get(at).is_none_or(|edge| *edge)
    }

    /// Returns `true` if the name is at this place, perhaps in quotes.
    fn has_name_at(&self, at: usize, name: &[u8], steps: &mut Steps) -> Result<bool, NoSteps> {
        let Some(first) = name.first() else {
            return Ok(true);
        };
        let rest = self.bytes.get(at..).unwrap_or_default();
        let is_before = |byte: &&u8| *byte != first && b"\"'`*_<([{".contains(byte);
        let before = rest.iter().take_while(is_before).count();
        steps.take(before + name.len())?;
        let begins = rest
            .get(before..)
            .is_some_and(|rest| rest.starts_with(name));
        Ok(begins && self.is_edge(at + before + name.len()))
    }

    /// Returns the end of the last line, if all lines appear in order.
    fn find_lines(
        &self,
        lines: &[Vec<u8>],
        region: Range<usize>,
        steps: &mut Steps,
    ) -> Result<Option<usize>, NoSteps> {
        let mut at = region.start;
        for line in lines {
            match self.find(line, at..region.end, steps)? {
                Some(end) => at = end,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Returns the end of the first match at word boundaries.
    fn find(
        &self,
        sought: &[u8],
        region: Range<usize>,
        steps: &mut Steps,
    ) -> Result<Option<usize>, NoSteps> {
        if sought.is_empty() {
            return Ok(Some(region.start));
        }
        let finder = Finder::new(sought);
        let mut from = region.start;
        while let Some(rest) = self.bytes.get(from..region.end) {
            let found = finder.find(rest);
            let scanned = found.map_or(rest.len(), |at| at + sought.len());
            steps.take(scanned + STEPS_OF_SEARCH)?;
            let Some(at) = found.map(|at| from + at) else {
                break;
            };
            if self.is_edge(at) && self.is_edge(at + sought.len()) {
                return Ok(Some(at + sought.len()));
            }
            // A match begins at an edge.
            let behind = self.edges.get(at + 1..).unwrap_or_default();
            let inside = behind.iter().take_while(|edge| !**edge).count();
            steps.take(inside)?;
            from = at + 1 + inside;
        }
        Ok(None)
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
