//! What the parser says: events.

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::piece::Piece;
use crate::span::Span;

/// One finding of the parser, with its place.
///
/// The spans of all events but diagnostics tile the input: no gap, no overlap (`spec/common.md`, "Events").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'c> {
    /// What was found.
    pub kind: EventKind<'c>,
    /// Where it stands in the input.
    pub span: Span,
}

/// What an [`Event`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind<'c> {
    /// Text outside calls, as written (in the escaped dialect less the escape's backslash).
    Text(Piece<'c>),
    /// Text between reasoning markers.
    Reasoning(Piece<'c>),
    /// A call begins; its span holds the start marker and the whole header.
    CallStart(Header<'c>),
    /// A value begins: an argument of the block syntax, or the body of the emoji syntax.
    ValueStart(Slot<'c>),
    /// A piece of the value, as written.
    ValueDelta(Piece<'c>),
    /// The value ends; its span is the line end that belongs to the syntax, if there is one.
    ValueEnd,
    /// The call ends; its span is the end marker, if there is one.
    CallEnd(Ending<'c>),
    /// Bytes that are neither text, reasoning, marker nor value.
    Ignored(Piece<'c>),
    /// Something worth a remark. It has no width in the tiling and stands at the end of its own span.
    Diagnostic(Diagnostic),
}

impl Event<'_> {
    /// The exact source text of the event's span (empty for a diagnostic).
    pub fn source(&self) -> &str {
        match &self.kind {
            EventKind::Text(piece)
            | EventKind::Reasoning(piece)
            | EventKind::ValueDelta(piece)
            | EventKind::Ignored(piece) => piece,
            EventKind::CallStart(header) => header.source(),
            EventKind::ValueStart(Slot::Argument(pointer)) => pointer.source(),
            // A line end, which its length tells, or nothing.
            EventKind::ValueStart(Slot::Body) | EventKind::ValueEnd => match self.span.len() {
                0 => "",
                1 => "\n",
                _ => "\r\n",
            },
            EventKind::CallEnd(ending) => &ending.marker,
            EventKind::Diagnostic(_) => "",
        }
    }

    /// The same event, no longer tied to a chunk.
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

/// One of the two syntaxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// The block format: markers on lines of their own, arguments by JSON Pointer (`spec/block.md`).
    Block,
    /// The emoji-bracket syntax: `🛠️[name args]` body `🛠️[/end]` (`spec/emoji.md`).
    Emoji,
}

impl Syntax {
    /// `"block"` or `"emoji"`.
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
    /// `"explicit"`, `"next_call"` or `"end_of_stream"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::NextCall => "next_call",
            Self::EndOfStream => "end_of_stream",
        }
    }
}

/// The end of a call: how it ended, and the end marker if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending<'c> {
    pub(crate) termination: Termination,
    pub(crate) marker: Piece<'c>,
}

impl Ending<'_> {
    /// How the call ended.
    pub const fn termination(&self) -> Termination {
        self.termination
    }
}

/// What a value belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot<'c> {
    /// An argument of the block syntax.
    Argument(Pointer<'c>),
    /// The body of an emoji call.
    Body,
}

/// A stretch of a header or pointer line, in bytes from the beginning of its marker. It is moved as one number: its end
/// in the higher half, its start in the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Part(u32);

impl Part {
    /// A line and its marker are far shorter than what 16 bits count.
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
    /// The syntax the call is written in.
    pub const fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// The name of the tool.
    pub fn name(&self) -> &str {
        self.name.of_piece(&self.source)
    }

    /// The call's id, if the model wrote one. The emoji syntax has none.
    pub fn id(&self) -> Option<&str> {
        Some(self.id.of_piece(&self.source)).filter(|id| !id.is_empty())
    }

    /// The ids this call depends on, in the order written, repeated where they are repeated. The emoji syntax has
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

    /// The argument line of an emoji call, verbatim; `None` in the block syntax.
    pub fn raw_args(&self) -> Option<&str> {
        match self.syntax {
            Syntax::Block => None,
            Syntax::Emoji => Some(self.rest.of_piece(&self.source)),
        }
    }

    /// The source text: marker, header and the line end or bracket that closes it.
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
    /// The pointer, trimmed, not unescaped.
    pub fn as_str(&self) -> &str {
        self.pointer.of_piece(&self.source)
    }

    /// The source text: marker, pointer and line end.
    pub fn source(&self) -> &str {
        &self.source
    }
}
