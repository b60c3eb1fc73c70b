//! Dialects: the rules for parsing and rendering, as plain data.

use std::fmt;

use crate::event::Syntax;
use crate::markers::{checked, emoji_end};

/// The maximum length of a marker with its key, in bytes (`spec/common.md` 1.3).
pub const MARKER_LIMIT: usize = 64;
/// The maximum length of a key, in bytes.
const KEY_LIMIT: usize = 32;

/// The rules for parsing and rendering: a syntax, its markers and its options.
///
/// Setters never fail. An invalid dialect is rejected where it is used, for example by
/// [`Parser::new`](crate::Parser::new).
///
/// ```
/// use plaincall_syntax::Dialect;
///
/// let dialect = Dialect::block().start("<<<START:").end("<<<END:").arg("@param:");
/// assert!(dialect.check().is_ok());
/// assert!(Dialect::block().start("!").check().is_err());
/// ```
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent switches, each set by a method of its own name"
)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// `None`: detected from the text.
    pub(crate) syntax: Option<Syntax>,
    pub(crate) start: String,
    pub(crate) end: String,
    pub(crate) arg: String,
    pub(crate) key: Option<String>,
    pub(crate) reasoning: Option<(String, String)>,
    /// Whether the open marker is recognized only as the first text, and directly after a call or reasoning.
    pub(crate) leading: bool,
    /// Whether replies have no reasoning either.
    pub(crate) never_reasoning: bool,
    pub(crate) in_reasoning: bool,
    pub(crate) escaped: bool,
    pub(crate) anywhere: bool,
    pub(crate) strict: bool,
    pub(crate) self_closing: bool,
}

impl Dialect {
    /// The default start marker of the block syntax.
    pub const BLOCK_START: &'static str = "!!!GADGET_START:";
    /// The default end marker of the block syntax.
    pub const BLOCK_END: &'static str = "!!!GADGET_END";
    /// The default argument marker of the block syntax.
    pub const BLOCK_ARG: &'static str = "!!!ARG:";
    /// The most common reasoning markers, open and close: the default of [`for_reply`](Self::for_reply).
    pub const THINK: [&'static str; 2] = ["<think>", "</think>"];

    fn new(syntax: Option<Syntax>) -> Self {
        Self {
            syntax,
            start: Self::BLOCK_START.to_owned(),
            end: Self::BLOCK_END.to_owned(),
            arg: Self::BLOCK_ARG.to_owned(),
            key: None,
            reasoning: None,
            leading: false,
            never_reasoning: false,
            in_reasoning: false,
            escaped: false,
            anywhere: false,
            strict: false,
            self_closing: false,
        }
    }

    /// Creates a dialect with the block syntax and its default markers (`spec/block.md`).
    pub fn block() -> Self {
        Self::new(Some(Syntax::Block))
    }

    /// Creates a dialect with the emoji-bracket syntax (`spec/emoji.md`).
    pub fn emoji() -> Self {
        Self::new(Some(Syntax::Emoji))
    }

    /// Creates a dialect that detects the syntax from the first call of the text (`spec/common.md` 8).
    ///
    /// This is the default.
    pub fn auto() -> Self {
        Self::new(None)
    }

    /// Sets the start marker of the block syntax.
    #[doc(alias = "withGadgetStartPrefix")]
    #[doc(alias = "startPrefix")]
    pub fn start(mut self, marker: impl Into<String>) -> Self {
        self.start = marker.into();
        self
    }

    /// Sets the end marker of the block syntax.
    #[doc(alias = "withGadgetEndPrefix")]
    #[doc(alias = "endPrefix")]
    pub fn end(mut self, marker: impl Into<String>) -> Self {
        self.end = marker.into();
        self
    }

    /// Sets the argument marker of the block syntax.
    #[doc(alias = "withGadgetArgPrefix")]
    #[doc(alias = "argPrefix")]
    pub fn arg(mut self, marker: impl Into<String>) -> Self {
        self.arg = marker.into();
        self
    }

    /// Parses a marker with a backslash before its last character as content, and renders it that way.
    ///
    /// See [`Escaper`](crate::Escaper) and `spec/common.md` 6.
    pub fn escaped(mut self) -> Self {
        self.escaped = true;
        self
    }

    /// Adds a key to every marker, so that an author who does not know the key cannot write one (`spec/common.md` 7).
    ///
    /// The key consists of 1 to 32 ASCII letters and digits. It goes before a marker's last `:` or `[`, otherwise at its end.
    pub fn keyed(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Parses the text between these markers as reasoning, which contains no calls (`spec/common.md` 5).
    ///
    /// The open marker is recognized anywhere in text outside calls.
    pub fn reasoning(mut self, open: impl Into<String>, close: impl Into<String>) -> Self {
        self.reasoning = Some((open.into(), close.into()));
        self.leading = false;
        self.never_reasoning = false;
        self
    }

    /// Parses the text between these markers as reasoning if the open marker is the first text, or the first after a call or reasoning
    /// (`spec/common.md` 5.1).
    ///
    /// ```
    /// use plaincall_syntax::{Dialect, EventKind, parse};
    ///
    /// let [open, close] = Dialect::THINK;
    /// let dialect = Dialect::block().leading_reasoning(open, close);
    /// let calls = |text| {
    ///     let events = parse(text, &dialect)?;
    ///     let starts = events.iter().filter(|event| matches!(event.kind, EventKind::CallStart(_)));
    ///     Ok::<_, plaincall_syntax::DialectError>(starts.count())
    /// };
    /// assert_eq!(calls("\n<think>!!!GADGET_START:A\n!!!GADGET_END\n</think>Done.")?, 0);
    /// assert_eq!(calls("`<think>` opens it.\n!!!GADGET_START:A\n!!!GADGET_END\n")?, 1);
    /// # Ok::<(), plaincall_syntax::DialectError>(())
    /// ```
    pub fn leading_reasoning(self, open: impl Into<String>, close: impl Into<String>) -> Self {
        Self {
            leading: true,
            ..self.reasoning(open, close)
        }
    }

    /// Returns this dialect for replies of models: with leading reasoning between the markers [`THINK`](Self::THINK), unless it
    /// has reasoning markers or is [without reasoning](Self::without_reasoning) (`spec/common.md` 5).
    ///
    /// Everything that runs, sends or counts calls parses replies this way.
    ///
    /// ```
    /// use plaincall_syntax::Dialect;
    ///
    /// assert_eq!(Dialect::block().for_reply().reasoning_markers(), Some(Dialect::THINK));
    /// let other = Dialect::block().leading_reasoning("[THINK]", "[/THINK]");
    /// assert_eq!(other.clone().for_reply(), other);
    /// assert_eq!(Dialect::block().without_reasoning().for_reply().reasoning_markers(), None);
    /// ```
    pub fn for_reply(self) -> Self {
        if self.reasoning.is_some() || self.never_reasoning {
            return self;
        }
        let [open, close] = Self::THINK;
        self.leading_reasoning(open, close)
    }

    /// Begins inside reasoning, for models whose prompt ends with the open marker (`spec/common.md` 5).
    pub fn in_reasoning(mut self) -> Self {
        self.in_reasoning = true;
        self
    }

    /// Begins outside reasoning, which is the default.
    pub fn outside_reasoning(mut self) -> Self {
        self.in_reasoning = false;
        self
    }

    /// Recognizes the markers of the block syntax anywhere in a call, not only at the beginning of a line
    /// (`spec/block.md` 3.6).
    pub fn markers_anywhere(mut self) -> Self {
        self.anywhere = true;
        self
    }

    /// Accepts only the canonical emoji marker, not its repaired forms (`spec/emoji.md` 1.2).
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Accepts ` /]` as the end of an emoji call without a body (`spec/emoji.md` 5).
    pub fn self_closing(mut self) -> Self {
        self.self_closing = true;
        self
    }

    /// Returns the syntax, or `None` if it is detected from the text.
    pub const fn syntax(&self) -> Option<Syntax> {
        self.syntax
    }

    /// Returns the end marker of `syntax` in this dialect, including its key, for use in messages to a model.
    ///
    /// ```
    /// use plaincall_syntax::{Dialect, Syntax};
    ///
    /// assert_eq!(Dialect::block().keyed("k3v9").end_marker(Syntax::Block), "!!!GADGET_ENDk3v9");
    /// ```
    pub fn end_marker(&self, syntax: Syntax) -> String {
        match syntax {
            Syntax::Block => self.with_key(&self.end),
            Syntax::Emoji => self.with_key(&emoji_end()),
        }
    }

    /// Returns the open and close markers of reasoning, if the dialect has any.
    pub fn reasoning_markers(&self) -> Option<[&str; 2]> {
        let (open, close) = self.reasoning.as_ref()?;
        Some([open, close])
    }

    /// Returns whether the dialect uses escaping.
    pub const fn is_escaped(&self) -> bool {
        self.escaped
    }

    /// Returns whether every marker contains a key.
    pub const fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// Returns whether ` /]` ends an emoji call without a body.
    pub const fn is_self_closing(&self) -> bool {
        self.self_closing
    }

    /// Returns whether a text begins inside reasoning.
    pub const fn is_in_reasoning(&self) -> bool {
        self.in_reasoning
    }

    /// Returns this dialect for one syntax, as detected from a text.
    pub fn for_syntax(&self, syntax: Syntax) -> Self {
        let mut dialect = self.clone();
        dialect.syntax = Some(syntax);
        match syntax {
            Syntax::Block => {
                dialect.strict = false;
                dialect.self_closing = false;
            }
            Syntax::Emoji => {
                let default = Self::emoji();
                dialect.start = default.start;
                dialect.end = default.end;
                dialect.arg = default.arg;
                dialect.anywhere = false;
            }
        }
        dialect
    }

    /// Returns this dialect without a key.
    pub fn without_key(&self) -> Self {
        Self {
            key: None,
            ..self.clone()
        }
    }

    /// Returns this dialect without reasoning markers, also [for replies](Self::for_reply).
    pub fn without_reasoning(&self) -> Self {
        Self {
            reasoning: None,
            never_reasoning: true,
            in_reasoning: false,
            ..self.clone()
        }
    }

    /// Returns every accepted form of every marker, including its key. Canonical forms come before repaired
    /// ones.
    ///
    /// ```
    /// use plaincall_syntax::{Dialect, MarkerUse};
    ///
    /// let markers = Dialect::block().keyed("k1").markers()?;
    /// assert_eq!(markers[2].text, "!!!ARGk1:");
    /// assert_eq!(markers[2].usage, MarkerUse::Argument);
    /// # Ok::<(), plaincall_syntax::DialectError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid.
    pub fn markers(&self) -> Result<Vec<MarkerForm>, DialectError> {
        let form = |marker: crate::markers::Marker| MarkerForm {
            usage: marker.role.usage(),
            text: marker.text.to_string(),
        };
        Ok(checked(self)?.into_iter().map(form).collect())
    }

    /// Checks the dialect.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid.
    pub fn check(&self) -> Result<(), DialectError> {
        checked(self).map(drop)
    }

    /// Returns a marker with the key inserted.
    pub(crate) fn with_key(&self, marker: &str) -> String {
        let key = self.key.as_deref().unwrap_or_default();
        let at = marker.rfind([':', '[']).unwrap_or(marker.len());
        let (before, after) = marker.split_at(at);
        format!("{before}{key}{after}")
    }

    /// Returns the markers of the block syntax without a key.
    pub(crate) fn block_markers(&self) -> [&str; 3] {
        [&self.start, &self.end, &self.arg]
    }

    pub(crate) fn has_custom_markers(&self) -> bool {
        self.block_markers() != [Self::BLOCK_START, Self::BLOCK_END, Self::BLOCK_ARG]
    }

    pub(crate) fn check_options(&self) -> Result<(), DialectError> {
        let is_wrong = |key: &String| {
            key.is_empty()
                || key.len() > KEY_LIMIT
                || !key.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if self.key.as_ref().is_some_and(is_wrong) {
            return Err(DialectError::Key);
        }
        for (is_set, option, syntax) in [
            (self.has_custom_markers(), "custom markers", Syntax::Block),
            (self.anywhere, "markers anywhere", Syntax::Block),
            (self.strict, "strict", Syntax::Emoji),
            (self.self_closing, "self-closing", Syntax::Emoji),
        ] {
            if is_set && self.syntax.is_some_and(|own| own != syntax) {
                return Err(DialectError::OptionOfOther { option, syntax });
            }
        }
        if self.in_reasoning && self.reasoning.is_none() {
            return Err(DialectError::NoReasoningMarkers);
        }
        Ok(())
    }
}

/// One accepted form of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MarkerForm {
    /// The exact text, including its key.
    pub text: String,
    /// Its use.
    pub usage: MarkerUse,
}

/// The use of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerUse {
    /// Opens a call of this syntax.
    Start(Syntax),
    /// Ends a call of this syntax.
    End(Syntax),
    /// Opens an argument of the block syntax.
    Argument,
    /// Opens or closes reasoning.
    Reasoning,
}

impl MarkerUse {
    pub(crate) const fn is_emoji(self) -> bool {
        matches!(self, Self::Start(Syntax::Emoji) | Self::End(Syntax::Emoji))
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::auto()
    }
}

fn refused(marker: &str, reason: &'static str) -> DialectError {
    let marker = marker.to_owned();
    DialectError::Marker { marker, reason }
}

/// Rejects an invalid marker, which gets a key of this length.
pub(crate) fn check_marker(marker: &str, key: usize) -> Result<(), DialectError> {
    if marker.chars().nth(1).is_none() {
        return Err(refused(
            marker,
            "is too short: a marker has at least two characters",
        ));
    }
    if marker.len() + key > MARKER_LIMIT {
        return Err(refused(
            marker,
            "is too long: a marker has at most 64 bytes, its key included",
        ));
    }
    if marker.contains(['\r', '\n', '\\']) {
        return Err(refused(
            marker,
            "has a line end or a backslash: a marker is part of one line, and the backslash is the escape",
        ));
    }
    Ok(())
}

/// An error in a [`Dialect`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DialectError {
    /// A marker is invalid.
    Marker {
        /// The marker.
        marker: String,
        /// The problem: the end of a sentence that begins with the marker.
        reason: &'static str,
    },
    /// Two markers are equal.
    MarkersEqual {
        /// The marker.
        marker: String,
    },
    /// The key is not 1 to 32 ASCII letters and digits.
    Key,
    /// The selected syntax does not have this option.
    OptionOfOther {
        /// The option.
        option: &'static str,
        /// The syntax that has it.
        syntax: Syntax,
    },
    /// `in_reasoning` without reasoning markers.
    NoReasoningMarkers,
    /// Rendering needs a syntax, which the automatic dialect does not have.
    NoSyntax,
}

impl fmt::Display for DialectError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Marker { marker, reason } => write!(formatter, "the marker {marker:?} {reason}"),
            Self::MarkersEqual { marker } => write!(
                formatter,
                "two markers are both {marker:?}: each marker must be different"
            ),
            Self::Key => write!(
                formatter,
                "the key of the markers must be 1 to {KEY_LIMIT} ASCII letters and digits"
            ),
            Self::OptionOfOther { option, syntax } => write!(
                formatter,
                "the option \"{option}\" is only for the {} syntax",
                syntax.name()
            ),
            Self::NoReasoningMarkers => {
                formatter.write_str("`in_reasoning` requires reasoning markers")
            }
            Self::NoSyntax => {
                formatter.write_str("writing calls requires a syntax: choose block or emoji")
            }
        }
    }
}

impl std::error::Error for DialectError {}
