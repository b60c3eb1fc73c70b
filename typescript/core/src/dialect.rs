//! The options of a dialect (`spec/common.md` 12).

use plaincall_syntax::Dialect;
use serde::Deserialize;

use crate::error::Error;

/// The options as the host gives them.
#[derive(Deserialize, Default, Clone)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "options of the host")]
pub(crate) struct DialectOptions {
    syntax: SyntaxOption,
    start: Option<String>,
    end: Option<String>,
    arg: Option<String>,
    markers_anywhere: bool,
    strict: bool,
    self_closing: bool,
    escaped: bool,
    key: Option<String>,
    reasoning: Option<(String, String)>,
    leading_reasoning: Option<(String, String)>,
    in_reasoning: bool,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "camelCase")]
enum SyntaxOption {
    #[default]
    Auto,
    Block,
    Emoji,
}

impl DialectOptions {
    pub(crate) fn dialect(&self) -> Result<Dialect, Error> {
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
        match (&self.reasoning, &self.leading_reasoning) {
            (Some(_), Some(_)) => {
                let message = "use `reasoning` or `leadingReasoning`, not both";
                return Err(Error::dialect(message));
            }
            (Some((open, close)), None) => dialect = dialect.reasoning(open, close),
            (None, Some((open, close))) => dialect = dialect.leading_reasoning(open, close),
            (None, None) => {}
        }
        if self.in_reasoning {
            dialect = dialect.in_reasoning();
        }
        dialect.check().map_err(Error::dialect)?;
        Ok(dialect)
    }
}
