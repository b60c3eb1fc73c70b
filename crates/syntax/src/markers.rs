//! Markers: their strings and the search for them.
//!
//! A [`Set`] contains the markers that one state of the parser recognizes. Its search returns the leftmost position
//! and the longest marker there (`spec/common.md`, "Matching"). In an escaped dialect it also finds *escape prefixes*: a
//! marker without its last character, followed by a backslash.

use std::sync::Arc;

use crate::dialect::{Dialect, DialectError, MarkerUse, check_marker};
use crate::event::Syntax;
use crate::scan::{Begin, Scan, bits, is_in};
use crate::simple_line::{InLine, in_line};

/// U+1F6E0 with the variation selector: the canonical emoji.
const EMOJI: &str = "\u{1F6E0}\u{FE0F}";
/// The same without the selector, which models and transports drop.
const EMOJI_BARE: &str = "\u{1F6E0}";
/// The canonical emoji, with its UTF-8 decoded as Windows-1254 and encoded again.
const EMOJI_MISDECODED: &str = "\u{11F}\u{178}\u{203A}\u{A0}\u{EF}\u{B8}";
/// The same with a space instead of the no-break space.
const EMOJI_MISDECODED_BLANK: &str = "\u{11F}\u{178}\u{203A} \u{EF}\u{B8}";
const EMOJI_START_TAIL: &str = "[";
pub(crate) const EMOJI_END_TAIL: &str = "[/end]";

/// Emoji forms that may close each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Real,
    Misdecoded,
}

/// The role of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    BlockStart,
    BlockEnd,
    BlockArgument,
    EmojiStart(Family),
    EmojiEnd(Family),
    ReasoningOpen,
    ReasoningClose,
    /// Not a marker: LF, which ends a header or pointer line.
    LineEnd,
}

/// A marker: its text with the key, and its role.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    pub(crate) text: Arc<str>,
    pub(crate) role: Role,
    /// In a set: a prefix of the marker up to this length contains no other marker of the set.
    clear: u8,
    /// In a set: its first bytes.
    begin: Begin,
}

impl Marker {
    fn new(text: impl Into<Arc<str>>, role: Role) -> Self {
        Self {
            text: text.into(),
            role,
            clear: 0,
            begin: Begin::default(),
        }
    }
}

/// All markers of a dialect, and the sets for the parser's states.
#[derive(Debug)]
pub(crate) struct Markers {
    pub(crate) start: Arc<str>,
    pub(crate) arg: Arc<str>,
    all: Vec<Marker>,
    /// The bytes of all markers, of escapes and of line ends; any other byte ends every partial match.
    used: [u64; 4],
    /// Whether no marker begins with a byte that is common in header and pointer lines.
    pub(crate) has_usual_lines: bool,
    /// Text before the first call of the automatic dialect.
    pub(crate) text: Set,
    /// Text outside calls once the syntax is known.
    pub(crate) block_text: Set,
    pub(crate) emoji_text: Set,
    /// Header and pointer lines of the block syntax.
    pub(crate) line: Set,
    pub(crate) between: Set,
    pub(crate) value: Set,
    pub(crate) body: Set,
    pub(crate) reasoning: Set,
}

impl Markers {
    /// Creates the sets for the markers of `dialect`, as returned by [`checked`].
    pub(crate) fn new(dialect: &Dialect) -> Result<Self, DialectError> {
        let all = checked(dialect)?;
        let of = |wanted: fn(Role) -> bool| -> Vec<Marker> {
            all.iter()
                .filter(|marker| wanted(marker.role))
                .cloned()
                .collect()
        };
        let escapes = |wanted: fn(Role) -> bool| {
            if dialect.escaped {
                of(wanted)
            } else {
                Vec::new()
            }
        };
        let named = |role| text_of(&all, role).map_or_else(|| "".into(), Arc::clone);
        let mut block_line = of(Role::is_block);
        block_line.push(Marker::new("\n", Role::LineEnd));
        let used = bits(
            all.iter()
                .flat_map(|marker| marker.text.bytes())
                .chain(*b"\\\r\n"),
        );
        let is_usual = |marker: &Marker| {
            marker
                .text
                .bytes()
                .next()
                .is_some_and(|byte| in_line(byte) != InLine::Unusual)
        };
        Ok(Self {
            used,
            has_usual_lines: !block_line.iter().any(is_usual),
            start: named(Role::BlockStart),
            arg: named(Role::BlockArgument),
            text: Set::new(of(|_| true), &escapes(|_| true)),
            block_text: Set::new(
                of(|role| !role.is_emoji()),
                &escapes(|role| !role.is_emoji()),
            ),
            emoji_text: Set::new(
                of(|role| !role.is_block()),
                &escapes(|role| !role.is_block()),
            ),
            line: Set::new(block_line, &[]),
            between: Set::new(of(Role::is_block), &[]),
            value: Set::new(of(Role::is_block), &escapes(|role| !role.is_emoji())),
            body: Set::new(of(Role::is_emoji), &escapes(|role| !role.is_block())),
            reasoning: Set::new(of(|role| role == Role::ReasoningClose), &[]),
            all,
        })
    }

    /// Returns whether the byte occurs in no marker, escape or line end.
    #[inline]
    pub(crate) fn is_unused(&self, byte: u8) -> bool {
        !is_in(&self.used, byte)
    }

    /// Returns the canonical text of the marker with this role, for messages.
    pub(crate) fn named(&self, role: Role) -> &Arc<str> {
        text_of(&self.all, role).unwrap_or(&self.start)
    }
}

impl Role {
    /// Returns the public form.
    pub(crate) const fn usage(self) -> MarkerUse {
        match self {
            Self::BlockStart => MarkerUse::Start(Syntax::Block),
            Self::EmojiStart(_) => MarkerUse::Start(Syntax::Emoji),
            Self::BlockEnd => MarkerUse::End(Syntax::Block),
            Self::EmojiEnd(_) => MarkerUse::End(Syntax::Emoji),
            Self::BlockArgument | Self::LineEnd => MarkerUse::Argument,
            Self::ReasoningOpen | Self::ReasoningClose => MarkerUse::Reasoning,
        }
    }

    pub(crate) const fn is_block(self) -> bool {
        matches!(
            self,
            Self::BlockStart | Self::BlockEnd | Self::BlockArgument
        )
    }

    /// Returns the marker as it is rendered.
    pub(crate) const fn canonical(self) -> Self {
        match self {
            Self::EmojiStart(_) => Self::EmojiStart(Family::Real),
            Self::EmojiEnd(_) => Self::EmojiEnd(Family::Real),
            role => role,
        }
    }

    pub(crate) const fn is_emoji(self) -> bool {
        matches!(self, Self::EmojiStart(_) | Self::EmojiEnd(_))
    }
}

/// Returns the canonical end marker of the emoji syntax.
pub(crate) fn emoji_end() -> String {
    format!("{EMOJI}{EMOJI_END_TAIL}")
}

/// Returns the text of the first marker with this role, which is its canonical form.
pub(crate) fn text_of(markers: &[Marker], role: Role) -> Option<&Arc<str>> {
    let marker = markers.iter().find(|marker| marker.role == role);
    marker.map(|marker| &marker.text)
}

/// Returns every marker of the dialect, or an error (`spec/common.md` 1.3 and 12).
pub(crate) fn checked(dialect: &Dialect) -> Result<Vec<Marker>, DialectError> {
    dialect.check_options()?;
    let key = dialect.key.as_ref().map_or(0, String::len);
    for marker in dialect.block_markers() {
        check_marker(marker, key)?;
    }
    if let Some((open, close)) = &dialect.reasoning {
        check_marker(open, 0)?;
        check_marker(close, 0)?;
    }
    let all = all(dialect);
    for (index, marker) in all.iter().enumerate() {
        let mut others = all.iter().skip(index + 1);
        if others.any(|other| other.text == marker.text) {
            return Err(DialectError::MarkersEqual {
                marker: marker.text.to_string(),
            });
        }
    }
    Ok(all)
}

/// Returns every marker of the dialect. Canonical forms come before repaired ones.
pub(crate) fn all(dialect: &Dialect) -> Vec<Marker> {
    let mut markers = Vec::new();
    if dialect.syntax != Some(Syntax::Emoji) {
        for (text, role) in [
            (&dialect.start, Role::BlockStart),
            (&dialect.end, Role::BlockEnd),
            (&dialect.arg, Role::BlockArgument),
        ] {
            markers.push(Marker::new(dialect.with_key(text), role));
        }
    }
    if dialect.syntax != Some(Syntax::Block) {
        let repaired = [
            (EMOJI_BARE, Family::Real),
            (EMOJI_MISDECODED, Family::Misdecoded),
            (EMOJI_MISDECODED_BLANK, Family::Misdecoded),
        ];
        let repaired = if dialect.strict {
            &[][..]
        } else {
            &repaired[..]
        };
        for &(emoji, family) in [(EMOJI, Family::Real)].iter().chain(repaired) {
            for (tail, role) in [
                (EMOJI_START_TAIL, Role::EmojiStart(family)),
                (EMOJI_END_TAIL, Role::EmojiEnd(family)),
            ] {
                markers.push(Marker::new(
                    dialect.with_key(&format!("{emoji}{tail}")),
                    role,
                ));
            }
        }
    }
    if let Some((open, close)) = &dialect.reasoning {
        markers.push(Marker::new(open.as_str(), Role::ReasoningOpen));
        markers.push(Marker::new(close.as_str(), Role::ReasoningClose));
    }
    markers
}

/// A marker without its last character. With a backslash after it, it is (or may be) an escape.
#[derive(Clone, Debug)]
struct EscapePrefix {
    marker: Arc<str>,
    len: usize,
    /// The characters that would complete a marker after this escape prefix.
    completing: Box<[char]>,
}

impl EscapePrefix {
    fn text(&self) -> &str {
        self.marker.get(..self.len).unwrap_or_default()
    }
}

/// The markers that one state recognizes.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// Longest first.
    whole: Vec<Marker>,
    /// Longest first; empty unless the dialect is escaped.
    prefixes: Vec<EscapePrefix>,
    scan: Scan,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No match and no partial match.
    Nothing,
    /// From this position, the text may become a marker or an escape.
    Partial { at: usize, until: Until },
    /// A marker.
    Whole { at: usize, len: usize, role: Role },
    /// An escape prefix that ends at `end` and is followed by a backslash; `prefix` is its index.
    EscapePrefix { end: usize, prefix: usize },
}

/// The input that a partial match waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Any text.
    More,
    /// The rest of the marker with this index.
    Marker(usize),
}

/// The result at one position.
pub(crate) enum Look {
    No,
    Partial(Until),
    Whole { len: usize, role: Role },
    EscapePrefix { len: usize, prefix: usize },
}

impl Set {
    pub(crate) fn new(mut whole: Vec<Marker>, escapable: &[Marker]) -> Self {
        // Stable sort. Markers of one length are never equal, so their order does not matter.
        whole.sort_by_key(|marker| std::cmp::Reverse(marker.text.len()));
        let mut prefixes: Vec<EscapePrefix> = Vec::new();
        for marker in escapable {
            let Some((prefix, _)) = split_last(&marker.text) else {
                continue;
            };
            // An escape prefix that contains a marker never occurs in content: the marker restarts the content.
            if whole.iter().any(|inner| prefix.contains(&*inner.text)) {
                continue;
            }
            if prefixes.iter().any(|known| known.text() == prefix) {
                continue;
            }
            let completing = escapable
                .iter()
                .filter_map(|other| split_last(&other.text))
                .filter(|(other, _)| prefix.ends_with(other))
                .map(|(_, last)| last)
                .collect();
            prefixes.push(EscapePrefix {
                marker: Arc::clone(&marker.text),
                len: prefix.len(),
                completing,
            });
        }
        prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.len));
        let texts: Vec<Arc<str>> = whole
            .iter()
            .map(|marker| Arc::clone(&marker.text))
            .collect();
        for marker in &mut whole {
            let others = texts.iter().filter(|other| **other != marker.text);
            let inner =
                others.filter_map(|other| Some(marker.text.find(&**other)? + other.len() - 1));
            marker.begin = Begin::of(marker.text.as_bytes());
            let clear = inner.min().unwrap_or(marker.text.len());
            marker.clear = u8::try_from(clear).unwrap_or_default();
        }
        let scan = Scan::of(
            whole
                .iter()
                .map(|marker| &*marker.text)
                .chain(prefixes.iter().map(EscapePrefix::text)),
        );
        prefixes.shrink_to_fit();
        whole.shrink_to_fit();
        Self {
            whole,
            prefixes,
            scan,
        }
    }

    /// Returns the length of the prefix of this marker that contains no other marker.
    pub(crate) fn clear_len(&self, index: usize) -> usize {
        self.whole
            .get(index)
            .map_or(0, |marker| usize::from(marker.clear))
    }

    /// Returns whether `begun` bytes of this marker followed by `more` are still a prefix of that marker only.
    pub(crate) fn continues(&self, index: usize, begun: usize, more: &[u8]) -> bool {
        let left = self.left_of(index, begun);
        left.is_some_and(|(_, rest)| more.len() < rest.len() && rest.starts_with(more))
    }

    /// Returns the role and length of this marker if `more` completes it after `begun` bytes.
    pub(crate) fn completes(
        &self,
        index: usize,
        begun: usize,
        more: &[u8],
    ) -> Option<(Role, usize)> {
        let (marker, rest) = self.left_of(index, begun)?;
        more.starts_with(rest)
            .then_some((marker.role, marker.text.len()))
    }

    /// Returns this marker and its rest after `begun` bytes.
    #[inline]
    fn left_of(&self, index: usize, begun: usize) -> Option<(&Marker, &[u8])> {
        let marker = self.whole.get(index)?;
        Some((marker, marker.text.as_bytes().get(begun..)?))
    }

    /// Returns the bytes with which a marker or an escape begins, as bits.
    pub(crate) fn first_bytes(&self) -> [u64; 4] {
        self.scan.first_bytes()
    }

    /// Returns how many bytes at the front begin neither a marker nor an escape.
    #[inline]
    pub(crate) fn plain_len(&self, text: &[u8]) -> usize {
        self.scan.plain_len(text)
    }

    /// Returns whether the backslash directly before `at`, which follows `prefix`, belongs to an escape; `None` if this needs
    /// more text.
    pub(crate) fn is_escape(
        &self,
        prefix: usize,
        text: &str,
        at: usize,
        end: bool,
    ) -> Option<bool> {
        let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) else {
            return end.then_some(false);
        };
        let prefix = self.prefixes.get(prefix);
        if !prefix.is_some_and(|prefix| prefix.completing.contains(&next)) {
            return Some(false);
        }
        // A marker that begins here is recognized regardless of the text before it.
        self.begins_marker(text.as_bytes(), at, end)
            .map(|begins| !begins)
    }

    /// Returns the leftmost marker, escape prefix or, before the `end` of the stream, partial match at or after `from`.
    pub(crate) fn find(&self, text: &[u8], mut from: usize, end: bool) -> Found {
        while let Some(at) = self.scan.next(text, from) {
            match self.look(text, at, end) {
                Look::No => from = at + 1,
                Look::Partial(until) => return Found::Partial { at, until },
                Look::Whole { len, role } => return Found::Whole { at, len, role },
                Look::EscapePrefix { len, prefix } => {
                    return Found::EscapePrefix {
                        end: at + len,
                        prefix,
                    };
                }
            }
        }
        Found::Nothing
    }

    /// Returns whether the longest marker at `at` has this role; `None` if this needs more text.
    pub(crate) fn is_at(&self, text: &[u8], at: usize, role: Role, end: bool) -> Option<bool> {
        let rest = text.get(at..).unwrap_or_default();
        let candidate = self
            .whole
            .iter()
            .any(|marker| marker.role == role && may_begin(rest, &marker.text, end));
        if !candidate {
            return Some(false);
        }
        match self.look(text, at, end) {
            Look::Whole { role: found, .. } => Some(found == role),
            Look::Partial(_) => None,
            Look::No | Look::EscapePrefix { .. } => Some(false),
        }
    }

    /// Returns whether a marker is at `at`; `None` if this needs more text.
    fn begins_marker(&self, text: &[u8], at: usize, end: bool) -> Option<bool> {
        match self.look(text, at, end) {
            Look::Whole { .. } => Some(true),
            Look::No | Look::EscapePrefix { .. } => Some(false),
            Look::Partial(_) => {
                let rest = text.get(at..).unwrap_or_default();
                let is_begun = |marker: &Marker| may_begin(rest, &marker.text, end);
                (!self.whole.iter().any(is_begun)).then_some(false)
            }
        }
    }

    /// Returns the match at `at`: the longest marker, an escape prefix, or a partial match.
    pub(crate) fn look(&self, text: &[u8], at: usize, end: bool) -> Look {
        let rest = text.get(at..).unwrap_or_default();
        let begun = Begin::of(rest);
        for (index, marker) in self.whole.iter().enumerate() {
            if !marker.begin.agrees(begun) {
                continue;
            }
            match compare(rest, marker.text.as_bytes()) {
                Compared::Different => {}
                Compared::Begins if end => {}
                Compared::Begins => return Look::Partial(Until::Marker(index)),
                Compared::Whole => {
                    return Look::Whole {
                        len: marker.text.len(),
                        role: marker.role,
                    };
                }
            }
        }
        for (index, prefix) in self.prefixes.iter().enumerate() {
            let len = prefix.len;
            match compare(rest, prefix.text().as_bytes()) {
                Compared::Whole if rest.get(len) == Some(&b'\\') => {
                    return Look::EscapePrefix { len, prefix: index };
                }
                Compared::Whole if rest.len() == len && !end => {
                    return Look::Partial(Until::More);
                }
                Compared::Begins if !end => return Look::Partial(Until::More),
                _ => {}
            }
        }
        Look::No
    }
}

/// The result of comparing the text at the front with a pattern.
enum Compared {
    Different,
    /// The entire text is a prefix of the pattern.
    Begins,
    Whole,
}

fn compare(rest: &[u8], wanted: &[u8]) -> Compared {
    let len = rest.len().min(wanted.len());
    // Markers often have common prefixes; their last bytes differ earlier.
    if len > 0 && rest.get(len - 1) != wanted.get(len - 1) {
        return Compared::Different;
    }
    match (rest.get(..len), wanted.get(..len)) {
        (Some(rest), Some(begun)) if rest == begun && len == wanted.len() => Compared::Whole,
        (Some(rest), Some(begun)) if rest == begun => Compared::Begins,
        _ => Compared::Different,
    }
}

fn may_begin(rest: &[u8], marker: &str, end: bool) -> bool {
    rest.starts_with(marker.as_bytes()) || (!end && marker.as_bytes().starts_with(rest))
}

/// Splits off the last character of a text.
pub(crate) fn split_last(text: &str) -> Option<(&str, char)> {
    let last = text.chars().next_back()?;
    Some((text.get(..text.len() - last.len_utf8())?, last))
}
