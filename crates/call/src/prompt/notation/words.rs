//! Words of the notation, and how tightly they hold together.

pub(in crate::prompt) use crate::json_text::on_one_line as json;
use crate::untrusted::Untrusted;

/// How tightly a piece of notation holds together, tightest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bind {
    /// One word, or brackets.
    Atom,
    /// A word with what narrows it behind it: `integer 0..5`.
    Narrowed,
    /// Pieces with `&` between them.
    All,
    /// Pieces with `|` between them.
    Any,
    /// With a default or examples behind it.
    Annotated,
}

/// A piece of notation.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) bind: Bind,
}

impl Words {
    pub(super) fn atom(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            bind: Bind::Atom,
        }
    }

    /// The same, in parentheses if it holds together less tightly than `limit`.
    pub(super) fn within(self, limit: Bind) -> Self {
        if self.bind <= limit {
            return self;
        }
        Self::atom(format!("({})", self.text))
    }

    /// The same with something behind it.
    pub(super) fn then(mut self, suffix: &str, bind: Bind) -> Self {
        self.text.push_str(suffix);
        self.bind = self.bind.max(bind);
        self
    }
}

/// What is longer stands on several lines.
pub(super) const ONE_LINE: usize = 100;

/// Pieces with a sign between them; each on lines of its own where they are long.
pub(super) fn joined(
    pieces: Vec<String>,
    sign: &str,
    opening: &str,
    closing: &str,
    indent: usize,
) -> String {
    let length: usize = pieces.iter().map(|piece| piece.len() + 3).sum();
    if length <= ONE_LINE && !pieces.iter().any(|piece| piece.contains('\n')) {
        return format!("{opening}{}{closing}", pieces.join(&format!(" {sign} ")));
    }
    let mut text = opening.to_owned();
    for (at, piece) in pieces.into_iter().enumerate() {
        if at > 0 {
            text.push_str(&line_end(indent + 1));
            text.push_str(sign);
            text.push(' ');
            // Its further lines go in as deep as it does.
            text.push_str(&piece.replace('\n', "\n  "));
        } else if opening.is_empty() {
            text.push_str(&piece);
        } else {
            text.push_str(&line_end(indent + 1));
            text.push_str(&piece.replace('\n', "\n  "));
        }
    }
    if !closing.is_empty() {
        text.push_str(&line_end(indent));
        text.push_str(closing);
    }
    text
}

/// A line end, and the margin of the next line.
pub(super) fn line_end(indent: usize) -> String {
    format!("\n{}", "  ".repeat(indent))
}

/// A text on one line, to stand behind `//`.
pub(in crate::prompt) fn comment(text: &str) -> String {
    Untrusted::new(text)
        .on_one_line()
        .raw()
        .trim_end()
        .to_owned()
}
