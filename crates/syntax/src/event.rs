//! The events of the parser.

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::piece::Piece;
use crate::span::Span;

/// An event of the parser, with its position.
///
/// The spans of all events except diagnostics cover the input without gaps or overlaps (`spec/common.md`, "Events").
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'c> {
    /// The kind of event.
    pub kind: EventKind<'c>,
    /// Its position in the input.
    pub span: Span,
}

/// The kind of an [`Event`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind<'c> {
    /// Text outside calls, as written (in an escaped dialect, without the escaping backslash).
    Text(Piece<'c>),
    /// Text between reasoning markers.
    Reasoning(Piece<'c>),
    /// The start of a call. Its span covers the start marker and the header.
    CallStart(Header<'c>),
    /// The start of a value: an argument of the block syntax, or the body of the emoji syntax.
    ValueStart(Slot<'c>),
    /// A piece of the value, as written.
    ValueDelta(Piece<'c>),
    /// The end of a value. Its span is the line end that belongs to the syntax, if there is one.
    ValueEnd,
    /// The end of a call. Its span is the end marker, if there is one.
    CallEnd(Ending<'c>),
    /// Bytes that are not text, reasoning, a marker or a value.
    Ignored(Piece<'c>),
    /// A diagnostic. It is emitted at the end of its span and covers no input.
    Diagnostic(Diagnostic),
}

impl Event<'_> {
    /// Returns the source text of the event's span (empty for a diagnostic).
    pub fn source(&self) -> &str {
        match &self.kind {
            EventKind::Text(piece)
            | EventKind::Reasoning(piece)
            | EventKind::ValueDelta(piece)
            | EventKind::Ignored(piece) => piece,
            EventKind::CallStart(header) => header.source(),
            EventKind::ValueStart(Slot::Argument(pointer)) => pointer.source(),
            // A line end, identified by its length, or nothing.
            EventKind::ValueStart(Slot::Body) | EventKind::ValueEnd => match self.span.len() {
                0 => "",
                1 => "\n",
                _ => "\r\n",
            },
            EventKind::CallEnd(ending) => &ending.marker,
            EventKind::Diagnostic(_) => "",
        }
    }

    /// Converts the event to one that does not borrow from a chunk.
    pub fn into_owned(self) -> Event<'static> {
        let kind = match self.kind {
            EventKind::Text(piece) => EventKind::Text(piece.into_owned()),
            EventKind::Reasoning(piece) => EventKind::Reasoning(piece.into_owned()),
            EventKind::CallStart(header) => EventKind::CallStart(Header {
                source: header.source.into_owned(),
                ..header
            }),
            EventKind::ValueStart(Slot::Argument(pointer)) => {
                EventKind::ValueStart(Slot::Argument(Pointer {
                    source: pointer.source.into_owned(),
                    ..pointer
                }))
            }
            EventKind::ValueStart(Slot::Body) => EventKind::ValueStart(Slot::Body),
            EventKind::ValueDelta(piece) => EventKind::ValueDelta(piece.into_owned()),
            EventKind::ValueEnd => EventKind::ValueEnd,
            EventKind::CallEnd(ending) => EventKind::CallEnd(Ending {
                marker: ending.marker.into_owned(),
                ..ending
            }),
            EventKind::Ignored(piece) => EventKind::Ignored(piece.into_owned()),
            EventKind::Diagnostic(diagnostic) => EventKind::Diagnostic(diagnostic),
        };
        Event {
            kind,
            span: self.span,
        }
    }
}

/// A call syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// The block syntax: markers on lines of their own, arguments by JSON Pointer (`spec/block.md`).
    Block,
    /// The emoji-bracket syntax: `🛠️[name args]` body `🛠️[/end]` (`spec/emoji.md`).
    Emoji,
}

impl Syntax {
    /// Returns `"block"` or `"emoji"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Emoji => "emoji",
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Termination {
    /// By its end marker.
    Explicit,
    /// By the start of the next call.
    NextCall,
    /// By the end of the stream.
    EndOfStream,
}

impl Termination {
    /// Returns `"explicit"`, `"next_call"` or `"end_of_stream"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::NextCall => "next_call",
            Self::EndOfStream => "end_of_stream",
        }
    }
}

/// The end of a call, and its end marker if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending<'c> {
    pub(crate) termination: Termination,
    pub(crate) marker: Piece<'c>,
}

impl Ending<'_> {
    /// Returns how the call ended.
    pub const fn termination(&self) -> Termination {
        self.termination
    }
}

/// The owner of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot<'c> {
    /// An argument of the block syntax.
    Argument(Pointer<'c>),
    /// The body of an emoji call.
    Body,
}

/// A part of a header or pointer line, in bytes from the beginning of its marker, packed into one number: the end
/// in the upper half, the start in the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Part(u32);

impl Part {
    /// A line with its marker is far shorter than 16 bits can count.
    #[inline]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let short = |at: usize| u32::from(u16::try_from(at).unwrap_or(u16::MAX));
        Self(short(end) << 16 | short(start))
    }

    #[inline]
    fn range(self) -> Range<usize> {
        let [start, end] = [self.0 & 0xFFFF, self.0 >> 16];
        start as usize..end as usize
    }

    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }

    #[inline]
    fn of_piece<'t>(self, source: &'t Piece<'_>) -> &'t str {
        source.part(self.range())
    }
}

/// The header of a call, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'c> {
    pub(crate) source: Piece<'c>,
    pub(crate) syntax: Syntax,
    pub(crate) name: Part,
    pub(crate) id: Part,
    /// Dependencies in the block syntax, arguments in the emoji syntax.
    pub(crate) rest: Part,
}

impl Header<'_> {
    /// Returns the syntax of the call.
    pub const fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// Returns the name of the tool.
    pub fn name(&self) -> &str {
        self.name.of_piece(&self.source)
    }

    /// Returns the call's id, if the model wrote one. The emoji syntax has none.
    pub fn id(&self) -> Option<&str> {
        Some(self.id.of_piece(&self.source)).filter(|id| !id.is_empty())
    }

    /// Returns the ids that this call depends on, as written, including repetitions. The emoji syntax has
    /// none.
    pub fn dependencies(&self) -> impl Iterator<Item = &str> {
        let list = match self.syntax {
            Syntax::Block => self.rest.of_piece(&self.source),
            Syntax::Emoji => "",
        };
        list.split([',', ':'])
            .map(|item| item.trim_matches(crate::is_blank))
            .filter(|item| !item.is_empty())
    }

    /// Returns the argument line of an emoji call, verbatim; `None` in the block syntax.
    pub fn raw_args(&self) -> Option<&str> {
        match self.syntax {
            Syntax::Block => None,
            Syntax::Emoji => Some(self.rest.of_piece(&self.source)),
        }
    }

    /// Returns the source text: marker, header, and the line end or bracket that closes it.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// The pointer line of an argument, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer<'c> {
    pub(crate) source: Piece<'c>,
    pub(crate) pointer: Part,
}

impl Pointer<'_> {
    /// Returns the pointer, trimmed but not unescaped.
    pub fn as_str(&self) -> &str {
        self.pointer.of_piece(&self.source)
    }

    /// Returns the source text: marker, pointer and line end.
    pub fn source(&self) -> &str {
        &self.source
    }
}
