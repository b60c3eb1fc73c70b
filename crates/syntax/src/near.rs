//! Near misses: text that resembles a marker but is not one (`spec/common.md` 9).
//!
//! The parser never looks for them. Messages to users and models use them.

use crate::floor_char_boundary;
use std::iter;

use crate::dialect::{Dialect, DialectError, MarkerUse};
use crate::is_blank;
use crate::markers::{EMOJI_END_TAIL, Family, Marker, Role, all, checked, text_of};
use crate::near_forms::{CallFormat, SIGN_BYTES, other_formats, other_sign, other_tags};
use crate::span::Span;

/// Text that resembles a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NearMiss {
    /// Its position.
    pub span: Span,
    /// The use of the marker that was probably meant.
    pub usage: MarkerUse,
    /// The marker that was probably meant, in its canonical form.
    pub suggestion: String,
    /// The format, if this begins a call in another one; `None` for a misspelled marker.
    pub format: Option<CallFormat>,
}

/// Finds near misses in a complete text, inside and outside calls (`spec/common.md` 9).
///
/// ```
/// use plaincall_syntax::{Dialect, near_misses};
///
/// let found = near_misses("!!!gadget_start:ReadFile", &Dialect::block())?;
/// assert_eq!(found[0].span.range(), 0..16);
/// assert_eq!(found[0].suggestion, "!!!GADGET_START:");
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
///
/// # Errors
/// Returns an error if the dialect is invalid.
pub fn near_misses(text: &str, dialect: &Dialect) -> Result<Vec<NearMiss>, DialectError> {
    Ok(NearMisses::new(dialect)?.find(text))
}

/// Finds the near misses of one dialect in any number of texts.
#[derive(Clone, Debug)]
pub struct NearMisses {
    /// Every marker of the dialect.
    markers: Vec<Marker>,
    accepted: Vec<Marker>,
    has_escape: bool,
    has_emoji: bool,
    words: Vec<Word>,
    /// The emoji forms that a strict dialect does not accept.
    refused: Vec<Marker>,
    /// The bytes with which a marker begins. Its first letter may have either case.
    firsts: Vec<u8>,
    /// For each byte, whether a near miss in the first column may begin with it.
    begins_line: [bool; 256],
}

/// The longest word that may be a misspelled marker, in bytes.
const LONGEST_WORD: usize = 256;

/// The maximum number of adjacent wrong characters in a word.
const LONGEST_SLIP: usize = 2;

/// The minimum length of an incomplete word.
const SHORTEST_BEGINNING: usize = 4;

/// A marker in three parts: before its first letter or digit, after its last, and between.
#[derive(Clone, Debug)]
struct Word {
    sigil: String,
    core: String,
    tail: String,
    role: Role,
}

impl NearMisses {
    /// Creates a finder for `dialect`.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid.
    pub fn new(dialect: &Dialect) -> Result<Self, DialectError> {
        let markers = checked(dialect)?;
        let mut accepted = markers.clone();
        accepted.retain(|marker| marker.role.is_block() || marker.role.is_emoji());
        let mut lenient = dialect.clone();
        lenient.strict = false;
        let is_refused = |marker: &Marker| {
            marker.role.is_emoji() && !accepted.iter().any(|known| known.text == marker.text)
        };
        let refused: Vec<Marker> = all(&lenient).into_iter().filter(is_refused).collect();
        let words: Vec<Word> = accepted
            .iter()
            .filter(|marker| marker.role.is_block())
            .filter_map(Word::of)
            .collect();
        let has_emoji = accepted.iter().any(|marker| marker.role.is_emoji());
        let firsts: Vec<u8> = accepted
            .iter()
            .chain(&refused)
            .filter_map(|marker: &Marker| marker.text.bytes().next())
            .flat_map(|byte| [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()])
            .chain(FULL_WIDTH_BYTE)
            .chain(has_emoji.then_some(SIGN_BYTES).into_iter().flatten())
            .collect();
        let begins_line = begins_line(&firsts, &words, has_emoji);
        Ok(Self {
            markers,
            accepted,
            has_escape: dialect.is_escaped(),
            has_emoji,
            words,
            refused,
            firsts,
            begins_line,
        })
    }

    /// Returns whether a near miss in the first column, or a marker, may begin with this byte.
    pub fn may_begin_line(&self, byte: u8) -> bool {
        let may_begin = self.begins_line.get(usize::from(byte));
        may_begin.is_some_and(|may_begin| *may_begin)
    }

    /// Returns every near miss of a text, in order, and the calls in other formats.
    pub fn find(&self, text: &str) -> Vec<NearMiss> {
        let is_first_column = |at: usize| at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n');
        let found = self.find_where(text, is_first_column, |rest| self.dull_len(rest));
        self.with_others(text, found, other_formats(text))
    }

    /// Returns every near miss of a text whose lines may have a prefix such as a number, a quote sign or a bar.
    /// Patterns for the first column also match at the beginning of words and of runs of other characters. Tags of
    /// other formats match anywhere; JSON does not, since it may define a tool.
    pub fn find_behind_prefixes(&self, text: &str) -> Vec<NearMiss> {
        let bytes = text.as_bytes();
        let is_start = |at: usize| {
            let (Some(here), Some(before)) =
                (bytes.get(at), at.checked_sub(1).map(|at| bytes.get(at)))
            else {
                return true;
            };
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            before.is_none_or(|before| before != here && !(is_word(before) && is_word(here)))
                && (!here.is_ascii_alphanumeric() || self.may_begin(*here))
        };
        let dull_len = |rest: &str| {
            let cannot_start_near_miss =
                |byte: &u8| byte.is_ascii_alphanumeric() && !self.firsts.contains(byte);
            rest.bytes().take_while(cannot_start_near_miss).count()
        };
        let found = self.find_where(text, is_start, dull_len);
        self.with_others(text, found, other_tags(text))
    }

    /// Returns whether a near miss in the first column may begin with this letter or digit.
    fn may_begin(&self, byte: u8) -> bool {
        let mut cores = self
            .words
            .iter()
            .filter_map(|word| word.core.bytes().next());
        self.firsts.contains(&byte) || cores.any(|first| first.eq_ignore_ascii_case(&byte))
    }

    fn find_where(
        &self,
        text: &str,
        is_first_column: impl Fn(usize) -> bool,
        dull_len: impl Fn(&str) -> usize,
    ) -> Vec<NearMiss> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let is_first_column = is_first_column(at);
            let cannot_begin = |byte: u8| self.begins_line.get(usize::from(byte)) == Some(&false);
            let skipped = match rest.bytes().take_while(|byte| cannot_begin(*byte)).count() {
                0 if is_first_column => 0,
                0 => dull_len(rest),
                skipped => skipped,
            };
            if skipped > 0 {
                at += skipped;
                continue;
            }
            let whole = self.whole(rest);
            let step = match self.near(rest, is_first_column) {
                Some((len, role)) if len > whole => {
                    found.push(self.near_miss(at, len, role));
                    len
                }
                _ if whole > 0 => whole,
                // If the first of several equal blanks begins no match, only the last one may.
                _ => rest.chars().next().map_or(1, |first| {
                    let is_same = |c: &char| *c == first && is_blank(first);
                    let run = rest.chars().take_while(is_same).count();
                    run.saturating_sub(1).max(first.len_utf8())
                }),
            };
            at += step;
        }
        found
    }

    /// Returns the near misses of a text that are in the first column, in order. `text` is the source of one or more values;
    /// escaped text in it is not a near miss.
    pub fn find_in_first_column<'t>(
        &'t self,
        text: &'t str,
    ) -> impl Iterator<Item = NearMiss> + 't {
        let behind_line_ends = text.match_indices('\n').map(|(at, _)| at + 1);
        iter::once(0).chain(behind_line_ends).filter_map(|at| {
            let rest = text.get(at..)?;
            let first = rest.bytes().next()?;
            self.may_begin_line(first).then_some(())?;
            let (len, role) = self.near(rest, true)?;
            (len > self.whole(rest)).then(|| self.near_miss(at, len, role))
        })
    }

    fn near_miss(&self, at: usize, len: usize, role: Role) -> NearMiss {
        NearMiss {
            span: Span::new(at, at + len),
            usage: role.usage(),
            suggestion: self.suggestion(role),
            format: None,
        }
    }

    /// Adds the calls in other formats that are neither markers of the dialect nor part of a near miss.
    fn with_others(
        &self,
        text: &str,
        found: Vec<NearMiss>,
        others: Vec<(Span, CallFormat)>,
    ) -> Vec<NearMiss> {
        if others.is_empty() {
            return found;
        }
        let is_start = |marker: &&Marker| matches!(marker.role.usage(), MarkerUse::Start(_));
        let start = self.markers.iter().find(is_start);
        let Some(start) = start else {
            return found;
        };
        let mut all = Vec::with_capacity(found.len() + others.len());
        let mut found = found.into_iter().peekable();
        for (span, format) in others {
            while let Some(near) = found.next_if(|near| near.span.start < span.end) {
                all.push(near);
            }
            let is_disjoint = all.last().is_none_or(|last| last.span.end <= span.start);
            let rest = text.get(span.start..).unwrap_or_default();
            let is_marker = self
                .markers
                .iter()
                .any(|marker| rest.starts_with(&*marker.text));
            if is_disjoint && !is_marker {
                all.push(NearMiss {
                    span,
                    usage: start.role.usage(),
                    suggestion: start.text.to_string(),
                    format: Some(format),
                });
            }
        }
        all.extend(found);
        all
    }

    /// Returns how much of the front can be skipped: in mid-line, a near miss begins like a marker, so most text is skipped.
    fn dull_len(&self, rest: &str) -> usize {
        let cannot_start_near_miss = |byte: &u8| *byte != b'\n' && !self.firsts.contains(byte);
        rest.bytes().take_while(cannot_start_near_miss).count()
    }

    /// Returns the canonical marker with this role.
    fn suggestion(&self, role: Role) -> String {
        text_of(&self.markers, role.canonical()).map_or_else(String::new, ToString::to_string)
    }

    /// Returns the length of the longest marker at the front, escaped or not, or 0.
    fn whole(&self, rest: &str) -> usize {
        let len = |marker: &Marker| {
            if rest.starts_with(&*marker.text) {
                return Some(marker.text.len());
            }
            let (at, last) = marker.text.char_indices().next_back()?;
            let behind = rest.strip_prefix(marker.text.get(..at)?)?;
            let escaped = behind.trim_start_matches('\\');
            let len = rest.len() - escaped.len() + last.len_utf8();
            (self.has_escape && escaped.starts_with(last)).then_some(len)
        };
        self.accepted
            .iter()
            .filter_map(len)
            .max()
            .unwrap_or_default()
    }

    /// Returns the length and the role of the near miss at the front. Applies the rules in order.
    fn near(&self, rest: &str, is_first_column: bool) -> Option<(usize, Role)> {
        let spelled = self
            .accepted
            .iter()
            .filter_map(|marker| Some((loose_len(rest, &marker.text)?, marker)))
            .filter(|(len, marker)| rest.get(..*len) != Some(&*marker.text))
            .map(|(len, marker)| (len, marker.role));
        // These scan the rest of a line or word, so they run once per line.
        let by_line = || {
            let halves = self
                .words
                .iter()
                .filter_map(|word| Some((word.half_len(rest)?, word.role)));
            longest(halves.chain(self.bare_end(rest))).or_else(|| self.renamed(rest))
        };
        longest(spelled)
            .or_else(|| is_first_column.then(by_line).flatten())
            .or_else(|| {
                let refused = self
                    .refused
                    .iter()
                    .filter(|marker| rest.starts_with(&*marker.text));
                longest(refused.map(|marker| (marker.text.len(), marker.role)))
            })
            .or_else(|| self.has_emoji.then(|| other_sign(rest)).flatten())
    }

    /// `[/end]` without its emoji.
    fn bare_end(&self, rest: &str) -> Option<(usize, Role)> {
        let len = folded_len(rest, EMOJI_END_TAIL).filter(|_| self.has_emoji)?;
        Some((len, Role::EmojiEnd(Family::Real)))
    }

    fn renamed(&self, rest: &str) -> Option<(usize, Role)> {
        let of_word = |known: &Word| {
            let behind = rest.strip_prefix(&*known.sigil)?;
            let near = behind.get(..floor_char_boundary(behind, LONGEST_WORD))?;
            let len = near.find(|c| !is_word(c)).unwrap_or(near.len());
            let (word, behind) = behind.split_at_checked(len)?;
            if word.is_empty() || !behind.starts_with(&*known.tail) {
                return None;
            }
            let parts: Vec<String> = known
                .core
                .to_lowercase()
                .split('_')
                .map(str::to_owned)
                .collect();
            let lowered = word.to_lowercase();
            let shared = lowered
                .split('_')
                .filter(|part| parts.iter().any(|known| known == part));
            let shared = shared.count();
            let begins = lowered.starts_with(&known.core.to_lowercase());
            let total = known.sigil.len() + len + known.tail.len();
            let is_near = shared > 0 || begins || known.is_misspelled_as(&lowered);
            is_near.then_some((shared, total, known.role))
        };
        let mut best: Option<(usize, usize, Role)> = None;
        for found in self.words.iter().filter_map(of_word) {
            if best.is_none_or(|(shared, ..)| found.0 > shared) {
                best = Some(found);
            }
        }
        best.map(|(_, len, role)| (len, role))
    }
}

impl Word {
    fn of(marker: &Marker) -> Option<Self> {
        let text = &*marker.text;
        let start = text.find(char::is_alphanumeric)?;
        let (sigil, rest) = text.split_at_checked(start)?;
        let last = rest.rfind(char::is_alphanumeric)?;
        let end = last + rest.get(last..)?.chars().next()?.len_utf8();
        let (word, tail) = rest.split_at_checked(end)?;
        Some(Self {
            sigil: sigil.to_owned(),
            core: word.to_owned(),
            tail: tail.to_owned(),
            role: marker.role,
        })
    }

    /// Returns whether the word in lower case is this one with a misspelling or a missing end, ignoring `_`.
    fn is_misspelled_as(&self, lowered: &str) -> bool {
        let written = lowered.replace('_', "");
        let known = self.core.to_lowercase().replace('_', "");
        let alike = |(one, other): &(char, char)| one == other;
        let begin = written.chars().zip(known.chars());
        let begin = begin.take_while(alike).count();
        let (written, known): (Vec<char>, Vec<char>) = (
            written.chars().skip(begin).collect(),
            known.chars().skip(begin).collect(),
        );
        let end = written.iter().rev().zip(known.iter().rev());
        let end = end.take_while(|(one, other)| one == other).count();
        let slip = written.len().max(known.len()) - end;
        let is_truncated = written.is_empty() && begin >= SHORTEST_BEGINNING;
        let has_slip = slip <= LONGEST_SLIP.min((begin + known.len()) / 4);
        !self.sigil.is_empty() && (is_truncated || has_slip)
    }

    /// Returns the length of the marker at the front if part of its sigil or its tail is missing.
    fn half_len(&self, rest: &str) -> Option<usize> {
        let is_line_over = |behind: &str| {
            let behind = behind.trim_start_matches(is_blank);
            let behind = behind.strip_prefix('\r').unwrap_or(behind);
            behind.is_empty() || behind.starts_with('\n')
        };
        let without_tail = || {
            let behind = rest.strip_prefix(&*self.sigil)?;
            let len = folded_len(behind, &self.core)?;
            let may_stand = !self.sigil.is_empty() || is_line_over(behind.get(len..)?);
            (!self.tail.is_empty() && may_stand).then_some(self.sigil.len() + len)
        };
        let ends = self.sigil.char_indices().skip(1).map(|(at, _)| at);
        let with_less = |at: usize| {
            let begun = self.sigil.get(at..)?;
            let behind = rest.strip_prefix(begun)?;
            let len = folded_len(behind, &self.core)?;
            let behind = behind.get(len..)?.strip_prefix(&*self.tail)?;
            let is_bare = begun.is_empty() && self.tail.is_empty();
            (!is_bare || is_line_over(behind)).then_some(begun.len() + len + self.tail.len())
        };
        let edge = (!self.sigil.is_empty()).then_some(self.sigil.len());
        let found = ends.chain(edge).find_map(with_less);
        let len = found.max(without_tail())?;
        let ends_in_word = rest.get(..len)?.ends_with(is_word);
        let continues = rest.get(len..)?.starts_with(is_word);
        (!(ends_in_word && continues)).then_some(len)
    }
}

/// Returns, for each byte, whether a near miss in the first column may begin with it.
fn begins_line(firsts: &[u8], words: &[Word], has_emoji: bool) -> [bool; 256] {
    // Without a sigil, every word may be a misspelled one.
    let is_any_word = words.iter().any(|word| word.sigil.is_empty());
    let of_words = words.iter().flat_map(|word| {
        let core = word.core.bytes().take(1);
        // The first bytes of a sigil may be missing.
        let core = core.flat_map(|byte| [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]);
        word.sigil.bytes().chain(core)
    });
    let bare_end = has_emoji.then(|| EMOJI_END_TAIL.bytes().next()).flatten();
    let known: Vec<u8> = firsts
        .iter()
        .copied()
        .chain(of_words)
        .chain(bare_end)
        .collect();
    let mut begins = [false; 256];
    for (byte, begins) in (0_u8..=u8::MAX).zip(&mut begins) {
        let is_word = byte.is_ascii_alphanumeric() || byte == b'_';
        *begins = !byte.is_ascii() || known.contains(&byte) || (is_any_word && is_word);
    }
    begins
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the longest match; of several, the first.
fn longest(found: impl Iterator<Item = (usize, Role)>) -> Option<(usize, Role)> {
    found.fold(None, |best, next| match best {
        Some((len, _)) if len >= next.0 => best,
        _ => Some(next),
    })
}

/// Returns the length of `wanted` at the front, in either case.
fn folded_len(rest: &str, wanted: &str) -> Option<usize> {
    rest.get(..wanted.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(wanted))
        .then_some(wanted.len())
}

/// The first byte of every full-width character.
const FULL_WIDTH_BYTE: [u8; 1] = [0xEF];

/// Converts a full-width character to ASCII.
fn narrow(c: char) -> char {
    match c {
        '\u{3000}' => ' ',
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        _ => c,
    }
}

/// Returns the length of `wanted` at the front, in either case, full-width or not, and with blanks between its characters.
fn loose_len(rest: &str, wanted: &str) -> Option<usize> {
    let mut behind = rest;
    for (index, expected) in wanted.chars().enumerate() {
        if index > 0 && !is_blank(expected) {
            behind = behind.trim_start_matches(|c| is_blank(narrow(c)));
        }
        let found = behind.chars().next()?;
        if !narrow(found).eq_ignore_ascii_case(&expected) {
            return None;
        }
        behind = behind.get(found.len_utf8()..)?;
    }
    Some(rest.len() - behind.len())
}
