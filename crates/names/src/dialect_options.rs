//! The options of a dialect as plain data.

use plaincall_syntax::{Dialect, DialectError};
use serde::Deserialize;

/// The options of a dialect, as the users of a library or a file set them (`spec/common.md` 12). In JSON, their names are in
/// camel case.
///
/// ```
/// use plaincall_names::{DialectOptions, SyntaxOption};
/// use plaincall_syntax::Dialect;
///
/// let mut options = DialectOptions::default();
/// assert_eq!(options.dialect()?, Dialect::auto());
/// options.syntax = SyntaxOption::Block;
/// options.end = Some("END".to_owned());
/// assert_eq!(options.dialect()?, Dialect::block().end("END"));
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object with the options of a dialect"
)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent options of users"
)]
pub struct DialectOptions {
    /// The syntax.
    pub syntax: SyntaxOption,
    /// The start marker of the block syntax.
    pub start: Option<String>,
    /// The end marker of the block syntax.
    pub end: Option<String>,
    /// The argument marker of the block syntax.
    pub arg: Option<String>,
    /// Whether markers of the block syntax are recognized anywhere inside a call.
    pub markers_anywhere: bool,
    /// Whether only the canonical form of the emoji marker is accepted.
    pub strict: bool,
    /// Whether ` /]` ends an emoji call without a body.
    pub self_closing: bool,
    /// Whether a backslash before the last character of a marker makes it content.
    pub escaped: bool,
    /// The key in every marker.
    pub key: Option<String>,
    /// The markers around reasoning.
    pub reasoning: Option<(String, String)>,
    /// The markers around reasoning at the beginning. Callers reject both, with their own names; here, these win.
    pub leading_reasoning: Option<(String, String)>,
    /// Whether a text begins inside reasoning.
    pub in_reasoning: bool,
    /// Whether there is no reasoning, not even in replies. Callers reject it together with other options of reasoning, with their
    /// own names; here, it wins.
    pub no_reasoning: bool,
}

/// The syntax of a dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SyntaxOption {
    /// The syntax of the first call.
    #[default]
    Auto,
    /// The block syntax.
    Block,
    /// The emoji-bracket syntax.
    Emoji,
}

impl DialectOptions {
    /// Returns the dialect.
    ///
    /// # Errors
    /// Returns an error for options that cannot be used together.
    pub fn dialect(&self) -> Result<Dialect, DialectError> {
        let mut dialect = match self.syntax {
            SyntaxOption::Auto => Dialect::auto(),
            SyntaxOption::Block => Dialect::block(),
            SyntaxOption::Emoji => Dialect::emoji(),
        };
        if let Some(marker) = &self.start {
            dialect = dialect.start(marker);
        }
        if let Some(marker) = &self.end {
            dialect = dialect.end(marker);
        }
        if let Some(marker) = &self.arg {
            dialect = dialect.arg(marker);
        }
        if self.markers_anywhere {
            dialect = dialect.markers_anywhere();
        }
        if self.strict {
            dialect = dialect.strict();
        }
        if self.self_closing {
            dialect = dialect.self_closing();
        }
        if self.escaped {
            dialect = dialect.escaped();
        }
        if let Some(key) = &self.key {
            dialect = dialect.keyed(key);
        }
        if let Some((open, close)) = &self.leading_reasoning {
            dialect = dialect.leading_reasoning(open, close);
        } else if let Some((open, close)) = &self.reasoning {
            dialect = dialect.reasoning(open, close);
        }
        if self.in_reasoning {
            dialect = dialect.in_reasoning();
        }
        if self.no_reasoning {
            dialect = dialect.without_reasoning();
        }
        dialect.check()?;
        Ok(dialect)
    }
}
