//! The text of an event: borrowed from the chunk where possible; short held text is stored inline.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};

use crate::scan::word;

/// The longest text that is stored inline, in bytes: a common header line with its marker.
pub(crate) const INLINE: usize = 31;

/// A piece of the input.
///
/// Dereferences to `str`. Borrows from the chunk given to [`feed`](crate::Parser::feed), except for text that was
/// held from an earlier chunk.
#[derive(Clone)]
pub struct Piece<'c>(Repr<'c>);

#[derive(Clone)]
enum Repr<'c> {
    Borrowed(&'c str),
    Inline(Short),
    Owned(Box<str>),
}

/// A short text, zeros and its length, written as words so that it is moved as words.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Short([u8; INLINE + 1]);

impl Short {
    /// Returns `None` if the text is too long.
    #[inline]
    fn new(text: &[u8]) -> Option<Self> {
        let len = u8::try_from(text.len()).ok()?;
        if text.len() > INLINE {
            return None;
        }
        let mut bytes = [0; INLINE + 1];
        for (room, at) in bytes.chunks_exact_mut(8).zip((0..).step_by(8)) {
            room.copy_from_slice(&word(text.get(at..).unwrap_or_default()).to_le_bytes());
        }
        let [.., last] = &mut bytes;
        *last = len;
        Some(Self(bytes))
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        let [text @ .., len] = &self.0;
        text.get(..usize::from(*len)).unwrap_or_default()
    }
}

impl<'c> Piece<'c> {
    pub(crate) const EMPTY: Piece<'static> = Piece(Repr::Borrowed(""));

    pub(crate) const fn borrowed(text: &'c str) -> Self {
        Self(Repr::Borrowed(text))
    }

    /// Copies `text`, inline if it is short, otherwise in one allocation.
    pub(crate) fn copied(text: &str) -> Piece<'static> {
        // Line ends are most frequent and need no copy.
        match text {
            "\n" => return Piece::borrowed("\n"),
            "" => return Piece::EMPTY,
            _ => {}
        }
        match Short::new(text.as_bytes()) {
            Some(short) => Piece(Repr::Inline(short)),
            None => Piece(Repr::Owned(text.into())),
        }
    }

    /// Returns the text.
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Borrowed(text) => text,
            // Only complete characters are stored, so the fallback is never used.
            Repr::Inline(short) => std::str::from_utf8(short.bytes()).unwrap_or_default(),
            Repr::Owned(text) => text,
        }
    }

    /// Returns a part of the text at character boundaries, or an empty text if there is none.
    #[inline]
    pub(crate) fn part(&self, range: Range<usize>) -> &str {
        match &self.0 {
            Repr::Borrowed(text) => text.get(range).unwrap_or_default(),
            // Only the part is checked, not the entire text.
            Repr::Inline(short) => short
                .bytes()
                .get(range)
                .and_then(|bytes| std::str::from_utf8(bytes).ok())
                .unwrap_or_default(),
            Repr::Owned(text) => text.get(range).unwrap_or_default(),
        }
    }

    /// Returns the text, still borrowed from the chunk if it was.
    #[inline]
    pub fn to_cow(&self) -> Cow<'c, str> {
        match &self.0 {
            Repr::Borrowed(text) => Cow::Borrowed(text),
            Repr::Inline(_) | Repr::Owned(_) => Cow::Owned(self.as_str().to_owned()),
        }
    }

    /// Converts the text to one that does not borrow from a chunk.
    pub fn into_owned(self) -> Piece<'static> {
        match self.0 {
            Repr::Borrowed(text) => Piece::copied(text),
            Repr::Inline(short) => Piece(Repr::Inline(short)),
            Repr::Owned(text) => Piece(Repr::Owned(text)),
        }
    }
}

impl Deref for Piece<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Piece<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Piece<'_> {}

impl PartialEq<str> for Piece<'_> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Piece<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Piece<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl fmt::Debug for Piece<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}
