//! Markers: the one place that knows their strings, and the search for them.
//!
//! A [`Set`] holds the markers that are looked for in one state of the parser. Its search takes the leftmost place
//! and the longest marker there (`spec/common.md`, "Matching"). In the escaped dialect it also finds *stems*: a
//! marker less its last character, followed by a backslash.

use std::sync::Arc;

use crate::dialect::{Dialect, DialectError, check_marker};
use crate::event::Syntax;
use crate::piece::{INLINE, Piece};

/// U+1F6E0 with the variation selector: the canonical emoji.
pub(crate) const EMOJI: &str = "\u{1F6E0}\u{FE0F}";
/// The same without the selector, which models and pipes lose.
const EMOJI_BARE: &str = "\u{1F6E0}";
/// The canonical emoji, its UTF-8 read as Windows-1254 and written again.
const EMOJI_MISDECODED: &str = "\u{11F}\u{178}\u{203A}\u{A0}\u{EF}\u{B8}";
/// The same with a plain blank for the no-break space.
const EMOJI_MISDECODED_BLANK: &str = "\u{11F}\u{178}\u{203A} \u{EF}\u{B8}";
const EMOJI_START_TAIL: &str = "[";
pub(crate) const EMOJI_END_TAIL: &str = "[/end]";

/// Emoji forms that may close each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Real,
    Misdecoded,
}

/// What a marker is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    BlockStart,
    BlockEnd,
    BlockArgument,
    EmojiStart(Family),
    EmojiEnd(Family),
    ReasoningOpen,
    ReasoningClose,
}

/// A marker: its text, key included, and what it is for.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    pub(crate) text: Arc<str>,
    pub(crate) role: Role,
}

impl Marker {
    fn new(text: impl Into<Arc<str>>, role: Role) -> Self {
        Self {
            text: text.into(),
            role,
        }
    }
}

/// All markers of a dialect, and the sets that the parser's states look for.
#[derive(Debug)]
pub(crate) struct Markers {
    pub(crate) start: Arc<str>,
    pub(crate) end: Arc<str>,
    pub(crate) arg: Arc<str>,
    pub(crate) emoji_start: Arc<str>,
    pub(crate) emoji_end: Arc<str>,
    pub(crate) reasoning_open: Arc<str>,
    pub(crate) reasoning_close: Arc<str>,
    /// Text before the first call of the automatic dialect.
    pub(crate) text: Set,
    /// Text outside calls once the syntax is known.
    pub(crate) block_text: Set,
    pub(crate) emoji_text: Set,
    /// Header and pointer lines of the block syntax, and what stands between header and first argument.
    pub(crate) line: Set,
    pub(crate) value: Set,
    pub(crate) body: Set,
    pub(crate) reasoning: Set,
}

impl Markers {
    /// The markers of `dialect`; refuses what `spec/common.md`, "Markers" refuses.
    pub(crate) fn new(dialect: &Dialect) -> Result<Self, DialectError> {
        dialect.check_options()?;
        let all = all(dialect);
        for (index, marker) in all.iter().enumerate() {
            check_marker(&marker.text)?;
            if all
                .iter()
                .skip(index + 1)
                .any(|other| other.text == marker.text)
            {
                return Err(DialectError::MarkersEqual {
                    marker: marker.text.to_string(),
                });
            }
        }
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
        let named = |role: Role| {
            all.iter()
                .find(|marker| marker.role == role)
                .map_or_else(|| "".into(), |marker| Arc::clone(&marker.text))
        };
        let real = Family::Real;
        Ok(Self {
            start: named(Role::BlockStart),
            end: named(Role::BlockEnd),
            arg: named(Role::BlockArgument),
            emoji_start: named(Role::EmojiStart(real)),
            emoji_end: named(Role::EmojiEnd(real)),
            reasoning_open: named(Role::ReasoningOpen),
            reasoning_close: named(Role::ReasoningClose),
            text: Set::new(of(|_| true), &escapes(|_| true)),
            block_text: Set::new(
                of(|role| !role.is_emoji()),
                &escapes(|role| !role.is_emoji()),
            ),
            emoji_text: Set::new(
                of(|role| !role.is_block()),
                &escapes(|role| !role.is_block()),
            ),
            line: Set::new(of(Role::is_block), &[]),
            value: Set::new(of(Role::is_block), &escapes(|role| !role.is_emoji())),
            body: Set::new(of(Role::is_emoji), &escapes(|role| !role.is_block())),
            reasoning: Set::new(of(|role| role == Role::ReasoningClose), &[]),
        })
    }

    /// A copy of an end marker, without an allocation.
    pub(crate) fn piece(&self, text: &str) -> Piece<'static> {
        if text.len() <= INLINE {
            return Piece::copied(text);
        }
        let whole = self.value.whole.iter().chain(&self.body.whole);
        whole
            .map(|marker| &marker.text)
            .find(|marker| &***marker == text)
            .map_or_else(|| Piece::copied(text), Piece::shared)
    }

    /// The text of the marker that plays `role`, as it is named in messages.
    pub(crate) fn named(&self, role: Role) -> &Arc<str> {
        match role {
            Role::BlockStart => &self.start,
            Role::BlockEnd => &self.end,
            Role::BlockArgument => &self.arg,
            Role::EmojiStart(_) => &self.emoji_start,
            Role::EmojiEnd(_) => &self.emoji_end,
            Role::ReasoningOpen => &self.reasoning_open,
            Role::ReasoningClose => &self.reasoning_close,
        }
    }
}

impl Role {
    pub(crate) const fn is_block(self) -> bool {
        matches!(
            self,
            Self::BlockStart | Self::BlockEnd | Self::BlockArgument
        )
    }

    pub(crate) const fn is_emoji_end(self) -> bool {
        matches!(self, Self::EmojiEnd(_))
    }

    pub(crate) const fn is_emoji(self) -> bool {
        matches!(self, Self::EmojiStart(_) | Self::EmojiEnd(_))
    }
}

/// Every marker of the dialect. Canonical forms come before repaired ones.
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

/// A marker less its last character; with a backslash behind it, it is (or may be) an escape.
#[derive(Clone, Debug)]
struct Stem {
    text: Box<str>,
    /// The characters that would complete a marker after this stem.
    completing: Vec<char>,
}

/// The markers that one state looks for.
#[derive(Debug)]
pub(crate) struct Set {
    /// Longest first.
    whole: Vec<Marker>,
    /// Longest first; empty unless the dialect is escaped.
    stems: Vec<Stem>,
    first: First,
}

/// The first bytes of everything in a set.
#[derive(Debug)]
pub(crate) enum First {
    None,
    One(u8),
    Two(u8, u8),
    Three(u8, u8, u8),
    Many(Box<[bool; 256]>),
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing, and nothing that may become something.
    Nothing,
    /// From here on the text may become a marker or an escape.
    Partial { at: usize },
    /// A whole marker.
    Whole { at: usize, len: usize, role: Role },
    /// A stem that ends at `end` with a backslash behind it; `stem` is its index.
    Stem { end: usize, stem: usize },
}

/// What stands at one place.
enum Look {
    No,
    Partial,
    Whole { len: usize, role: Role },
    Stem { len: usize, stem: usize },
}

impl Set {
    pub(crate) fn new(mut whole: Vec<Marker>, escapable: &[Marker]) -> Self {
        // A stable sort: of markers of one length no two are equal, so the order among them is free.
        whole.sort_by_key(|marker| std::cmp::Reverse(marker.text.len()));
        let mut stems: Vec<Stem> = Vec::new();
        for marker in escapable {
            let Some((stem, _)) = split_last(&marker.text) else {
                continue;
            };
            // A stem with a whole marker inside never stands in a run of content: the marker begins the run anew.
            if whole.iter().any(|inner| stem.contains(&*inner.text)) {
                continue;
            }
            if stems.iter().any(|known| &*known.text == stem) {
                continue;
            }
            let completing = escapable
                .iter()
                .filter_map(|other| split_last(&other.text))
                .filter(|(other, _)| stem.ends_with(other))
                .map(|(_, last)| last)
                .collect();
            stems.push(Stem {
                text: stem.into(),
                completing,
            });
        }
        stems.sort_by_key(|stem| std::cmp::Reverse(stem.text.len()));
        let first = First::of(
            whole
                .iter()
                .map(|marker| &*marker.text)
                .chain(stems.iter().map(|stem| &*stem.text)),
        );
        Self {
            whole,
            stems,
            first,
        }
    }

    /// Whether the backslash directly before `at`, which stands behind `stem`, is the escape's; `None` if more text
    /// must tell.
    pub(crate) fn is_escape(&self, stem: usize, text: &str, at: usize, end: bool) -> Option<bool> {
        let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) else {
            return end.then_some(false);
        };
        let stem = self.stems.get(stem);
        if !stem.is_some_and(|stem| stem.completing.contains(&next)) {
            return Some(false);
        }
        // A marker that begins here counts whatever stands before it.
        self.begins_marker(text.as_bytes(), at, end)
            .map(|begins| !begins)
    }

    /// The leftmost marker, stem or beginning of one at or after `from`. At the `end` of the stream nothing is a
    /// beginning any more.
    pub(crate) fn find(&self, text: &[u8], mut from: usize, end: bool) -> Found {
        while let Some(at) = self.first.next(text, from) {
            match self.look(text, at, end) {
                Look::No => from = at + 1,
                Look::Partial => return Found::Partial { at },
                Look::Whole { len, role } => return Found::Whole { at, len, role },
                Look::Stem { len, stem } => {
                    return Found::Stem {
                        end: at + len,
                        stem,
                    };
                }
            }
        }
        Found::Nothing
    }

    /// Whether the longest marker at `at` plays `role`; `None` if more text must tell.
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
            Look::Partial => None,
            Look::No | Look::Stem { .. } => Some(false),
        }
    }

    /// Whether a whole marker stands at `at`; `None` if more text must tell.
    fn begins_marker(&self, text: &[u8], at: usize, end: bool) -> Option<bool> {
        match self.look(text, at, end) {
            Look::Whole { .. } => Some(true),
            Look::No | Look::Stem { .. } => Some(false),
            Look::Partial => {
                let rest = text.get(at..).unwrap_or_default();
                let is_begun = |marker: &Marker| may_begin(rest, &marker.text, end);
                (!self.whole.iter().any(is_begun)).then_some(false)
            }
        }
    }

    fn look(&self, text: &[u8], at: usize, end: bool) -> Look {
        let rest = text.get(at..).unwrap_or_default();
        for marker in &self.whole {
            let bytes = marker.text.as_bytes();
            if rest.starts_with(bytes) {
                return Look::Whole {
                    len: bytes.len(),
                    role: marker.role,
                };
            }
            if !end && bytes.starts_with(rest) {
                return Look::Partial;
            }
        }
        for (index, stem) in self.stems.iter().enumerate() {
            let bytes = stem.text.as_bytes();
            if rest.starts_with(bytes) && rest.get(bytes.len()) == Some(&b'\\') {
                return Look::Stem {
                    len: bytes.len(),
                    stem: index,
                };
            }
            if !end && bytes.starts_with(rest) {
                return Look::Partial;
            }
        }
        Look::No
    }
}

fn may_begin(rest: &[u8], marker: &str, end: bool) -> bool {
    rest.starts_with(marker.as_bytes()) || (!end && marker.as_bytes().starts_with(rest))
}

/// A text less its last character, and that character.
pub(crate) fn split_last(text: &str) -> Option<(&str, char)> {
    let last = text.chars().next_back()?;
    Some((text.get(..text.len() - last.len_utf8())?, last))
}

impl First {
    pub(crate) fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut bytes: Vec<u8> = texts.filter_map(|text| text.bytes().next()).collect();
        bytes.sort_unstable();
        bytes.dedup();
        match *bytes.as_slice() {
            [] => Self::None,
            [one] => Self::One(one),
            [one, two] => Self::Two(one, two),
            [one, two, three] => Self::Three(one, two, three),
            _ => {
                let mut table = Box::new([false; 256]);
                for byte in bytes {
                    if let Some(entry) = table.get_mut(usize::from(byte)) {
                        *entry = true;
                    }
                }
                Self::Many(table)
            }
        }
    }

    pub(crate) fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let found = match self {
            Self::None => None,
            Self::One(one) => memchr::memchr(*one, rest),
            Self::Two(one, two) => memchr::memchr2(*one, *two, rest),
            Self::Three(one, two, three) => memchr::memchr3(*one, *two, *three, rest),
            Self::Many(table) => rest
                .iter()
                .position(|byte| table.get(usize::from(*byte)).copied().unwrap_or_default()),
        };
        found.map(|at| from + at)
    }
}
