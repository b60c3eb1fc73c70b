//! Diagnostics of a text: a stable code, a severity and a message.

use std::fmt;
use std::sync::Arc;

use crate::dialect::MarkerUse;
use crate::span::Span;

/// The severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The call that contains it is still valid.
    Warning,
    /// The call that contains it is invalid.
    Error,
}

impl Severity {
    /// `"warning"` or `"error"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A warning or error about a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The code.
    pub code: Code,
    /// The position in the input, in bytes.
    pub span: Span,
    /// The use of the marker that the message names or concerns.
    pub usage: MarkerUse,
    /// The marker that the message names.
    pub(crate) marker: Arc<str>,
}

impl Diagnostic {
    /// Returns the severity.
    pub const fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// Returns the message, with the markers of the dialect.
    pub fn message(&self) -> String {
        self.to_string()
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal, $severity:ident, $message:literal;)*) => {
        /// The stable code of a [`Diagnostic`]; `spec/common.md` lists them all.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $code,)*
        }

        impl Code {
            /// Every code, in the order of the specification.
            pub const ALL: &'static [Code] = &[$(Code::$code,)*];

            /// Returns the stable name, as in JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Code::$code => $name,)*
                }
            }

            /// Returns the severity of this code.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Code::$code => Severity::$severity,)*
                }
            }

            /// The message, in which `{marker}` is a placeholder.
            const fn template(self) -> &'static str {
                match self {
                    $(Code::$code => $message,)*
                }
            }
        }
    };
}

codes! {
    /// A start marker without a header after it: plain text.
    NotAHeader = "not_a_header", Warning,
        "`{marker}` without a header is plain text";
    /// A start marker whose line is longer than the limit: plain text.
    HeaderTooLong = "header_too_long", Warning,
        "`{marker}` is plain text, because its header is longer than 4096 bytes";
    /// A start marker whose line is truncated: plain text.
    TruncatedHeader = "truncated_header", Warning,
        "`{marker}` is plain text, because the text ends before its header does";
    /// A header or pointer line that ends at a marker instead of a line end.
    MissingNewline = "missing_newline", Warning,
        "a line end is missing here before the next marker";
    /// A name or id with characters that few tools accept.
    UnusualName = "unusual_name", Warning,
        "this name or id has characters other than letters, digits, `_`, `-` and `.`";
    /// More than two colons in a header; later ones are treated as commas.
    ExtraColon = "extra_colon", Warning,
        "a header has at most two colons; further ones count as commas between dependencies";
    /// A marker inside a value or body, which is content.
    MarkerInValue = "marker_in_value", Warning,
        "`{marker}` is content of the value here, not a marker";
    /// An end marker that is recognized although it does not begin its line.
    EndMarkerInMidLine = "end_marker_in_mid_line", Warning,
        "`{marker}` ends the call here although it does not begin its line";
    /// A letter, digit or `_` directly after an end marker.
    EndMarkerGlued = "end_marker_glued", Warning,
        "`{marker}` ends the call; the text directly after it is plain text";
    /// An end or argument marker outside any call: plain text.
    StrayMarker = "stray_marker", Warning,
        "`{marker}` outside a call is plain text";
    /// Text between a header and the first argument, which is ignored.
    TextBeforeArgument = "text_before_argument", Warning,
        "text before the first argument marker is ignored";
    /// Text in a call without any argument marker.
    TextWithoutArgument = "text_without_argument", Error,
        "Text without an argument marker";
    /// A code fence between a header and the first argument, which is ignored.
    FenceBeforeArgument = "fence_before_argument", Warning,
        "a code fence before the first argument is ignored, and so is the fence that closes it after the last value";
    /// A pointer line longer than the limit.
    PointerTooLong = "pointer_too_long", Error,
        "Pointer too long";
    /// A truncated pointer line.
    TruncatedPointer = "truncated_pointer", Error,
        "the text ends in the middle of a `{marker}` line";
    /// An emoji call without its end marker.
    MissingEndMarker = "missing_end_marker", Warning,
        "the text ends before `{marker}` closes the call";
    /// Truncated reasoning.
    TruncatedReasoning = "truncated_reasoning", Warning,
        "the text ends before `{marker}` closes the reasoning";
    /// A reasoning open marker after other text, where it is not recognized: plain text.
    StrayReasoningOpen = "stray_reasoning_open", Warning,
        "`{marker}` opens reasoning only at the beginning of a reply; here it is plain text";
    /// A reasoning close marker outside reasoning: plain text. Calls before it may belong to the reasoning.
    StrayReasoningClose = "stray_reasoning_close", Error,
        "`{marker}` closes reasoning that nothing opened; calls before it may be part of the reasoning";
}

impl Code {
    /// Returns whether the diagnostic is about a marker inside a value.
    ///
    /// A truncated call with such a diagnostic may contain the calls after it.
    pub const fn is_marker_as_content(self) -> bool {
        matches!(
            self,
            Self::MarkerInValue | Self::NotAHeader | Self::HeaderTooLong | Self::TruncatedHeader
        )
    }
}

/// Formats the message.
impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.code.template().replace("{marker}", &self.marker))
    }
}
