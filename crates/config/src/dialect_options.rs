//! The options of a dialect: of the command line, of the note in a log, and of the inspector.

#![allow(
    clippy::doc_markdown,
    clippy::struct_excessive_bools,
    reason = "the comments are the help of independent options"
)]

use std::str::FromStr;

use plaincall_names::{SyntaxOption, did_you_mean};
use plaincall_syntax::{Dialect, DialectError};
use serde::{Deserialize, Serialize};

/// The dialect of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Syntax"))]
pub struct DialectOptions {
    /// The syntax. `auto` uses the syntax of the first call. Default: `block` if a marker is set, else `auto`.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SYNTAX"))]
    pub syntax: Option<SyntaxChoice>,

    /// The start marker of the block syntax.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "MARKER", allow_hyphen_values = true)
    )]
    pub start_prefix: Option<String>,

    /// The end marker of the block syntax.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "MARKER", allow_hyphen_values = true)
    )]
    pub end_prefix: Option<String>,

    /// The argument marker of the block syntax.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "MARKER", allow_hyphen_values = true)
    )]
    pub arg_prefix: Option<String>,

    /// Where markers of the block syntax are recognized inside a call.
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "WHERE", default_value = "line-start")
    )]
    pub markers: MarkerPlaces,

    /// Accept only the canonical form of the emoji marker.
    #[cfg_attr(feature = "clap", arg(long))]
    pub strict: bool,

    /// Accept ` /]` as the end of an emoji call without a body.
    #[cfg_attr(feature = "clap", arg(long))]
    pub self_closing: bool,

    /// Enable escapes: a backslash before the last character of a marker makes it content.
    #[cfg_attr(feature = "clap", arg(long))]
    pub escaped: bool,

    /// A key of letters and digits that is part of every marker.
    #[cfg_attr(feature = "clap", arg(long, value_name = "KEY"))]
    pub key: Option<String>,

    /// The markers around reasoning. Calls inside reasoning are ignored.
    ///
    /// With `--format openai`, the open marker is recognized only as the first text of the reply or of the text after a call or
    /// reasoning.
    #[cfg_attr(feature = "clap", arg(long, num_args = 2, value_names = ["OPEN", "CLOSE"], allow_hyphen_values = true))]
    pub reasoning: Option<Vec<String>>,

    /// Start inside reasoning.
    #[cfg_attr(feature = "clap", arg(long))]
    pub in_reasoning: bool,
}

/// The syntax of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum SyntaxChoice {
    /// The block syntax.
    Block,
    /// The emoji-bracket syntax.
    Emoji,
    /// The syntax of the first call.
    Auto,
}

/// Where markers of the block syntax are recognized inside a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum MarkerPlaces {
    /// At the start of a line.
    #[default]
    LineStart,
    /// Anywhere.
    Anywhere,
}

impl DialectOptions {
    /// Returns the dialect of the options.
    ///
    /// # Errors
    /// Returns an error for an invalid combination.
    pub fn dialect(&self) -> Result<Dialect, DialectError> {
        Ok(self.with_start(self.outside_reasoning()?))
    }

    /// Returns the dialect for a text that starts outside reasoning.
    ///
    /// # Errors
    /// Returns an error for an invalid combination.
    pub fn outside_reasoning(&self) -> Result<Dialect, DialectError> {
        self.plain(self.default_syntax()).dialect()
    }

    /// Returns the dialect for a reply whose calls are run or counted ([`Dialect::for_reply`]). The open marker of other markers
    /// is recognized only at the beginning too.
    ///
    /// # Errors
    /// Returns an error for an invalid combination.
    pub fn of_reply(&self, no_reasoning: bool) -> Result<Dialect, DialectError> {
        let mut options = self.plain(self.default_syntax());
        options.leading_reasoning = options.reasoning.take();
        if no_reasoning && options.leading_reasoning.is_none() {
            options.no_reasoning = true;
            return options.dialect();
        }
        let dialect = self.with_start(options.dialect()?.for_reply());
        dialect.check()?;
        Ok(dialect)
    }

    fn default_syntax(&self) -> SyntaxChoice {
        let default = match (&self.start_prefix, &self.end_prefix, &self.arg_prefix) {
            (None, None, None) => SyntaxChoice::Auto,
            _ => SyntaxChoice::Block,
        };
        self.syntax.unwrap_or(default)
    }

    /// Returns the options without `--in-reasoning`.
    fn plain(&self, syntax: SyntaxChoice) -> plaincall_names::DialectOptions {
        let mut options = plaincall_names::DialectOptions::default();
        options.syntax = match syntax {
            SyntaxChoice::Block => SyntaxOption::Block,
            SyntaxChoice::Emoji => SyntaxOption::Emoji,
            SyntaxChoice::Auto => SyntaxOption::Auto,
        };
        options.start.clone_from(&self.start_prefix);
        options.end.clone_from(&self.end_prefix);
        options.arg.clone_from(&self.arg_prefix);
        options.markers_anywhere = self.markers == MarkerPlaces::Anywhere;
        options.strict = self.strict;
        options.self_closing = self.self_closing;
        options.escaped = self.escaped;
        options.key.clone_from(&self.key);
        if let Some([open, close]) = self.reasoning.as_deref() {
            options.reasoning = Some((open.clone(), close.clone()));
        }
        options
    }

    /// Applies `--in-reasoning`.
    pub fn with_start(&self, dialect: Dialect) -> Dialect {
        if self.in_reasoning {
            dialect.in_reasoning()
        } else {
            dialect
        }
    }
}

impl FromStr for DialectOptions {
    type Err = String;

    /// Reads the notation of `spec/README.md`: a syntax, and options after it, separated by blanks. A value with blanks is in
    /// quotes: `start="<< CALL:"`.
    ///
    /// # Errors
    /// Returns a sentence about the first word that is wrong.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (options, _) = Self::of_words(text, &Self::WORDS)?;
        Ok(options)
    }
}

impl DialectOptions {
    /// The names of the options in the notation of a dialect. Those with `=` have a value.
    pub const WORDS: [&str; 13] = [
        "block",
        "emoji",
        "auto",
        "start=",
        "end=",
        "arg=",
        "anywhere",
        "strict",
        "self-closing",
        "escaped",
        "key=",
        "reasoning=",
        "in-reasoning",
    ];

    /// Reads the notation with only these words; those with a value end with `=`. Also returns the words that
    /// a dialect of a text does not have.
    ///
    /// # Errors
    /// Returns a sentence about the first word that is wrong, given twice, or for the other syntax.
    pub fn of_words(text: &str, words: &[&str]) -> Result<(Self, Vec<String>), String> {
        let mut options = Self::default();
        let (mut further, mut seen) = (Vec::new(), Vec::new());
        for word in split(text) {
            if is_open(&word) {
                return Err(format!("`{word}` has no closing quote"));
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (format!("{name}="), Some(unquoted(value).to_owned())),
                None => (word.clone(), None),
            };
            if !words.contains(&name.as_str()) {
                return Err(unknown(&word, &name, words));
            }
            if seen.contains(&name) {
                return Err(format!("`{name}` is given twice; remove one"));
            }
            let syntax = match name.as_str() {
                "block" => Some(SyntaxChoice::Block),
                "emoji" => Some(SyntaxChoice::Emoji),
                "auto" => Some(SyntaxChoice::Auto),
                _ => None,
            };
            match (name.as_str(), value) {
                _ if syntax.is_some() => {
                    if options.syntax.is_some() {
                        return Err(format!("`{word}` is a second syntax; remove one"));
                    }
                    options.syntax = syntax;
                }
                ("start=", value) => options.start_prefix = value,
                ("end=", value) => options.end_prefix = value,
                ("arg=", value) => options.arg_prefix = value,
                ("key=", value) => options.key = value,
                ("reasoning=", value) => {
                    let markers = value.as_deref().and_then(|value| value.split_once(','));
                    let markers = markers.ok_or_else(|| {
                        format!("`{word}` has no comma: use `reasoning=OPEN,CLOSE`")
                    })?;
                    options.reasoning = Some(vec![markers.0.to_owned(), markers.1.to_owned()]);
                }
                ("anywhere", _) => options.markers = MarkerPlaces::Anywhere,
                ("strict", _) => options.strict = true,
                ("self-closing", _) => options.self_closing = true,
                ("escaped", _) => options.escaped = true,
                ("in-reasoning", _) => options.in_reasoning = true,
                _ => further.push(name.clone()),
            }
            seen.push(name);
        }
        let (syntax, others) = match options.syntax {
            Some(SyntaxChoice::Block) => ("emoji", &["strict", "self-closing"][..]),
            Some(SyntaxChoice::Emoji) => ("block", &["start=", "end=", "arg=", "anywhere"][..]),
            _ => return Ok((options, further)),
        };
        match seen.iter().find(|name| others.contains(&name.as_str())) {
            Some(name) => Err(format!("`{name}` is for the {syntax} syntax; remove it")),
            None => Ok((options, further)),
        }
    }
}

/// Splits a text at blanks, except in a value in quotes.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in text.split(' ') {
        match words.last_mut() {
            Some(last) if is_open(last) => {
                last.push(' ');
                last.push_str(part);
            }
            _ if part.trim().is_empty() => {}
            _ => words.push(part.trim().to_owned()),
        }
    }
    words
}

/// Returns whether a word is the beginning of a value in quotes.
fn is_open(word: &str) -> bool {
    let value = word
        .split_once('=')
        .and_then(|(_, value)| value.strip_prefix('"'));
    value.is_some_and(|value| !value.ends_with('"'))
}

fn unquoted(value: &str) -> &str {
    let inner = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    inner.unwrap_or(value)
}

/// Returns the error for an unknown word.
fn unknown(word: &str, name: &str, words: &[&str]) -> String {
    let bare = name.trim_end_matches('=');
    if words.contains(&format!("{name}=").as_str()) {
        return format!("`{word}` needs a value: use `{name}=VALUE`");
    }
    if words.contains(&bare) {
        return format!("`{bare}` takes no value: use `{bare}` instead of `{word}`");
    }
    let near = did_you_mean(name, words.iter().copied());
    let words = words.join(" ");
    format!("unknown option `{word}`{near}; the options of this dialect are {words}")
}
