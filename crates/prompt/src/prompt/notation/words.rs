//! Text in the notation, and its precedence.

use plaincall_reply::Untrusted;
pub(crate) use plaincall_tool::json_text::on_one_line as json;

/// The precedence of a piece of notation, tightest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    /// One word, or text in brackets.
    Atom,
    /// A word followed by constraints: `integer 0..5`.
    Narrowed,
    /// Pieces joined by `&`.
    All,
    /// Pieces joined by `|`.
    Any,
    /// Followed by a default or examples.
    Annotated,
}

/// A piece of notation.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) precedence: Precedence,
}

impl Words {
    pub(super) fn atom(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            precedence: Precedence::Atom,
        }
    }

    /// Returns the piece, in parentheses if it binds less tightly than `limit`.
    pub(super) fn within(self, limit: Precedence) -> Self {
        if self.precedence <= limit {
            return self;
        }
        Self::atom(format!("({})", self.text))
    }

    pub(super) fn then(mut self, suffix: &str, precedence: Precedence) -> Self {
        self.text.push_str(suffix);
        self.precedence = self.precedence.max(precedence);
        self
    }
}

/// Longer text is written on several lines.
pub(super) const ONE_LINE: usize = 100;

/// Joins pieces with a sign; long ones are written on separate lines.
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

pub(super) fn line_end(indent: usize) -> String {
    format!("\n{}", "  ".repeat(indent))
}

/// Returns a text on one line, for a `//` comment.
pub(crate) fn comment(text: &str) -> String {
    Untrusted::new(text)
        .on_one_line()
        .raw()
        .trim_end()
        .to_owned()
}
