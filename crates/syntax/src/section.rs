//! The sections of the specification that define the parser's behavior.

use std::fmt;

use crate::diagnostic::{Code, Diagnostic};
use crate::dialect::MarkerUse;

macro_rules! sections {
    ($($(#[$doc:meta])* $section:ident = $place:literal;)*) => {
        /// A section of the specification: a document in `spec/`, and the number of the section in it.
        ///
        /// ```
        /// use plaincall_syntax::Section;
        ///
        /// assert_eq!(Section::EndMarker.to_string(), "spec/block.md 3.3");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Section {
            $($(#[$doc])* $section,)*
        }

        impl Section {
            /// All sections.
            pub const ALL: &'static [Section] = &[$(Section::$section,)*];

            const fn place(self) -> &'static str {
                match self {
                    $(Section::$section => $place,)*
                }
            }
        }
    };
}

sections! {
    /// Bytes that are not UTF-8.
    Bytes = "common.md 1.2";
    /// Text outside calls, and stray markers in it.
    Text = "common.md 4";
    /// Reasoning and its markers.
    Reasoning = "common.md 5";
    /// Reasoning at the beginning of a reply.
    LeadingReasoning = "common.md 5.1";
    /// A stray close marker.
    StrayReasoning = "common.md 5.2";
    /// A call inside reasoning.
    CallInReasoning = "common.md 5.3";
    /// Near misses.
    NearMiss = "common.md 9";
    /// The calls that may run.
    Complete = "common.md 10";
    /// Requirements of tool definitions for a call.
    Definitions = "common.md 11.1";
    /// The header of the block syntax.
    Header = "block.md 2.2";
    /// Names and ids.
    Name = "block.md 2.3";
    /// A header line that is too long.
    HeaderTooLong = "block.md 2.4";
    /// A truncated header line.
    TruncatedHeader = "block.md 2.5";
    /// Name, id and dependencies.
    HeaderParts = "block.md 2.6";
    /// A header that ends at a marker.
    HeaderWithoutNewline = "block.md 2.7";
    /// The positions in a call at which a start or argument marker is recognized.
    InnerMarker = "block.md 3.2";
    /// The positions at which an end marker is recognized.
    EndMarker = "block.md 3.3";
    /// Letters directly after an end marker.
    EndMarkerGlued = "block.md 3.5";
    /// A pointer line that ends at a marker.
    PointerWithoutNewline = "block.md 4.2";
    /// A pointer line that is too long.
    PointerTooLong = "block.md 4.3";
    /// A truncated pointer line.
    TruncatedPointer = "block.md 4.4";
    /// Code fences before the first argument.
    Fence = "block.md 5.2";
    /// Other text before the first argument.
    TextBetween = "block.md 5.3";
    /// The parsing of pointers.
    Pointer = "block.md 7.1";
    /// Empty parts of a pointer.
    EmptySegment = "block.md 7.2";
    /// A value on the pointer line.
    ValueOnPointerLine = "block.md 7.3";
    /// Objects and lists.
    Index = "block.md 7.4";
    /// Duplicate positions.
    SamePlace = "block.md 7.5";
    /// Limits of a call.
    Limits = "block.md 7.8";
    /// Written and assigned ids.
    Ids = "block.md 7.10";
    /// Start markers without a valid header.
    NoEmojiHeader = "emoji.md 2.2";
    /// A header that is too long or truncated.
    EmojiHeaderLimit = "emoji.md 2.3";
    /// Other markers in a body.
    MarkerInBody = "emoji.md 3.3";
    /// A body without its end marker.
    MissingEnd = "emoji.md 4";
}

impl Diagnostic {
    /// Returns the most specific section of the specification that defines this diagnostic.
    ///
    /// ```
    /// use plaincall_syntax::{Dialect, EventKind, parse};
    ///
    /// let events = parse("a !!!GADGET_END", &Dialect::block())?;
    /// let diagnostic = events.iter().find_map(|event| match &event.kind {
    ///     EventKind::Diagnostic(diagnostic) => Some(diagnostic),
    ///     _ => None,
    /// });
    /// assert_eq!(diagnostic.expect("a stray marker").section().to_string(), "spec/common.md 4");
    /// # Ok::<(), plaincall_syntax::DialectError>(())
    /// ```
    pub const fn section(&self) -> Section {
        section(self.code, self.usage)
    }
}

/// Each new code needs a section here.
pub(crate) const fn section(code: Code, usage: MarkerUse) -> Section {
    let is_emoji = usage.is_emoji();
    match code {
        Code::NotAHeader if is_emoji => Section::NoEmojiHeader,
        Code::NotAHeader => Section::Header,
        Code::HeaderTooLong | Code::TruncatedHeader if is_emoji => Section::EmojiHeaderLimit,
        Code::HeaderTooLong => Section::HeaderTooLong,
        Code::TruncatedHeader => Section::TruncatedHeader,
        Code::MissingNewline => match usage {
            MarkerUse::Argument => Section::PointerWithoutNewline,
            _ => Section::HeaderWithoutNewline,
        },
        Code::UnusualName => Section::Name,
        Code::ExtraColon => Section::HeaderParts,
        Code::MarkerInValue if is_emoji => Section::MarkerInBody,
        Code::MarkerInValue => match usage {
            MarkerUse::End(_) => Section::EndMarker,
            _ => Section::InnerMarker,
        },
        Code::EndMarkerInMidLine => Section::EndMarker,
        Code::EndMarkerGlued => Section::EndMarkerGlued,
        Code::StrayMarker => Section::Text,
        Code::TextBeforeArgument | Code::TextWithoutArgument => Section::TextBetween,
        Code::FenceBeforeArgument => Section::Fence,
        Code::PointerTooLong => Section::PointerTooLong,
        Code::TruncatedPointer => Section::TruncatedPointer,
        Code::MissingEndMarker => Section::MissingEnd,
        Code::TruncatedReasoning => Section::Reasoning,
        Code::StrayReasoningOpen => Section::LeadingReasoning,
        Code::StrayReasoningClose => Section::StrayReasoning,
    }
}

/// `spec/block.md 3.3`.
impl fmt::Display for Section {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "spec/{}", self.place())
    }
}
