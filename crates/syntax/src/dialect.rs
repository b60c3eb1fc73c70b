//! Dialects: one set of rules for reading and writing, as plain data.

use std::fmt;

use crate::event::Syntax;
use crate::markers::{checked, emoji_end};

/// The longest marker that is accepted, in bytes, its key included (`spec/common.md` 1.3).
pub const MARKER_LIMIT: usize = 64;
/// The longest key that is accepted, in bytes.
const KEY_LIMIT: usize = 32;

/// One set of rules: a syntax, its markers and its options.
///
/// Setters never fail; a dialect that cannot work is refused where it is used, for instance by
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// `None` finds out from the text.
    pub(crate) syntax: Option<Syntax>,
    pub(crate) start: String,
    pub(crate) end: String,
    pub(crate) arg: String,
    pub(crate) key: Option<String>,
    pub(crate) reasoning: Option<(String, String)>,
    /// The open marker counts only as the first non-blank text.
    pub(crate) leading: bool,
    pub(crate) in_reasoning: bool,
    pub(crate) escaped: bool,
    pub(crate) anywhere: bool,
    pub(crate) strict: bool,
    pub(crate) self_closing: bool,
}

impl Dialect {
    /// The start marker of the block syntax, unless it is set otherwise.
    pub const BLOCK_START: &'static str = "!!!GADGET_START:";
    /// The end marker of the block syntax, unless it is set otherwise.
    pub const BLOCK_END: &'static str = "!!!GADGET_END";
    /// The argument marker of the block syntax, unless it is set otherwise.
    pub const BLOCK_ARG: &'static str = "!!!ARG:";
    /// The open and the close marker of reasoning that most models write.
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
            in_reasoning: false,
            escaped: false,
            anywhere: false,
            strict: false,
            self_closing: false,
        }
    }

    /// The block syntax with its default markers (`spec/block.md`).
    pub fn block() -> Self {
        Self::new(Some(Syntax::Block))
    }

    /// The emoji-bracket syntax (`spec/emoji.md`).
    pub fn emoji() -> Self {
        Self::new(Some(Syntax::Emoji))
    }

    /// Whichever of the two syntaxes the first call of the text is written in (`spec/common.md` 8).
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

    /// Reads a marker with a backslash before its last character as content; writing puts that backslash there.
    ///
    /// See [`Escaper`](crate::Escaper) and `spec/common.md` 6.
    pub fn escaped(mut self) -> Self {
        self.escaped = true;
        self
    }

    /// Puts a key into every marker, so that text which does not know it cannot hold a marker (`spec/common.md` 7).
    ///
    /// The key is 1 to 32 ASCII letters and digits. It stands before a marker's last `:` or `[`, else at its end.
    pub fn keyed(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Reads the text between these two markers as reasoning, in which no call is looked for (`spec/common.md` 5).
    ///
    /// The open marker counts anywhere in text outside calls.
    pub fn reasoning(mut self, open: impl Into<String>, close: impl Into<String>) -> Self {
        self.reasoning = Some((open.into(), close.into()));
        self.leading = false;
        self
    }

    /// Reads the text between these two markers as reasoning if the open marker is the first non-blank text
    /// (`spec/common.md` 5.1). Replies of models are read so; [`THINK`](Self::THINK) are the usual markers.
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

    /// Begins inside reasoning, for models whose prompt already holds the open marker (`spec/common.md` 5).
    pub fn in_reasoning(mut self) -> Self {
        self.in_reasoning = true;
        self
    }

    /// Lets the markers of the block syntax count anywhere in a call, not only at the beginning of a line
    /// (`spec/block.md` 3.6).
    pub fn markers_anywhere(mut self) -> Self {
        self.anywhere = true;
        self
    }

    /// Accepts the canonical emoji marker alone, not its repaired forms (`spec/emoji.md` 1.2).
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Lets ` /]` close an emoji call that has no body (`spec/emoji.md` 5).
    pub fn self_closing(mut self) -> Self {
        self.self_closing = true;
        self
    }

    /// The syntax, or `None` if the text decides.
    pub const fn syntax(&self) -> Option<Syntax> {
        self.syntax
    }

    /// The end marker of `syntax` as it is written in this dialect, its key included: what a message tells a model to
    /// close a call with.
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

    /// The open and the close marker of reasoning, if the dialect has any.
    pub fn reasoning_markers(&self) -> Option<[&str; 2]> {
        let (open, close) = self.reasoning.as_ref()?;
        Some([open, close])
    }

    /// Whether the escape is part of this dialect.
    pub const fn is_escaped(&self) -> bool {
        self.escaped
    }

    /// This dialect for one of the two syntaxes alone: what a decided automatic dialect becomes.
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

    /// This dialect without a key.
    pub fn without_key(&self) -> Self {
        Self {
            key: None,
            ..self.clone()
        }
    }

    /// This dialect without reasoning markers.
    pub fn without_reasoning(&self) -> Self {
        Self {
            reasoning: None,
            in_reasoning: false,
            ..self.clone()
        }
    }

    /// Every marker of the dialect in every form that it accepts, its key included; canonical forms before repaired
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
    /// Refuses a dialect that cannot work.
    pub fn markers(&self) -> Result<Vec<MarkerForm>, DialectError> {
        let form = |marker: crate::markers::Marker| MarkerForm {
            usage: marker.role.usage(),
            text: marker.text.to_string(),
        };
        Ok(checked(self)?.into_iter().map(form).collect())
    }

    /// Whether the dialect can work.
    ///
    /// # Errors
    /// Says what is wrong with it, in one sentence.
    pub fn check(&self) -> Result<(), DialectError> {
        checked(self).map(drop)
    }

    /// A marker with the key in it, as it is read and written.
    pub(crate) fn with_key(&self, marker: &str) -> String {
        let key = self.key.as_deref().unwrap_or_default();
        let at = marker.rfind([':', '[']).unwrap_or(marker.len());
        let (before, after) = marker.split_at(at);
        format!("{before}{key}{after}")
    }

    /// The markers of the block syntax as they were set, without a key.
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
pub struct MarkerForm {
    /// The exact text, its key included.
    pub text: String,
    /// What it is for.
    pub usage: MarkerUse,
}

/// What a marker is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerUse {
    /// It opens a call of this syntax.
    Start(Syntax),
    /// It ends a call of this syntax.
    End(Syntax),
    /// It opens an argument of the block syntax.
    Argument,
    /// It opens or closes reasoning.
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

/// Refuses a marker that is too short; its key does not make it longer.
pub(crate) fn check_length(marker: &str) -> Result<(), DialectError> {
    if marker.chars().nth(1).is_none() {
        return Err(refused(
            marker,
            "is too short: a marker has at least two characters",
        ));
    }
    Ok(())
}

/// Refuses a marker that cannot work on its own.
pub(crate) fn check_marker(marker: &str) -> Result<(), DialectError> {
    check_length(marker)?;
    if marker.len() > MARKER_LIMIT {
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

/// Why a [`Dialect`] cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DialectError {
    /// A marker that cannot work.
    Marker {
        /// The marker.
        marker: String,
        /// What is wrong with it: the end of a sentence that begins with the marker.
        reason: &'static str,
    },
    /// Two markers that are the same.
    MarkersEqual {
        /// The marker.
        marker: String,
    },
    /// A key that is not 1 to 32 ASCII letters and digits.
    Key,
    /// An option that the chosen syntax does not have.
    OptionOfOther {
        /// The option.
        option: &'static str,
        /// The syntax that has it.
        syntax: Syntax,
    },
    /// `in_reasoning` without reasoning markers.
    NoReasoningMarkers,
    /// Writing needs a syntax; the automatic dialect has none.
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
