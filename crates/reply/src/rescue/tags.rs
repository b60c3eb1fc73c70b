//! The tags around a text: what is inside one may be an example.

/// The longest line that may be a tag, in bytes.
const LONGEST: usize = 128;
/// The maximum number of open tags that are remembered.
const MOST: usize = 64;

/// The beginning of a comment.
const COMMENT: &str = "<!--";

/// The tags that begin lines of a text and are not closed: `<example>`, `<details>`, a comment.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenTags {
    /// The texts that close them. Each ends with `>`.
    open: Vec<String>,
    /// The beginning of the current line.
    line: String,
    /// The end of the current line.
    end: String,
}

impl OpenTags {
    /// Takes the next text outside calls.
    pub(super) fn feed(&mut self, text: &str) {
        for c in text.chars() {
            if c == '\n' {
                self.open_tag(close_of(&self.line));
                self.line.clear();
                self.end.clear();
                continue;
            }
            if self.line.len() <= LONGEST {
                self.line.push(c);
                if c == '-' && self.line.trim_start() == COMMENT {
                    self.open_tag(Some("-->".to_owned()));
                }
            }
            self.end.push(c);
            if c == '>' {
                self.open.retain(|close| !self.end.ends_with(close));
            }
            if self.end.len() > 4 * LONGEST {
                let cut = self.end.len() - 2 * LONGEST;
                let cut = plaincall_syntax::ceil_char_boundary(&self.end, cut);
                self.end.drain(..cut);
            }
        }
    }

    /// Returns whether no tag is open.
    pub(super) fn are_closed(&self) -> bool {
        self.open.is_empty() && close_of(&self.line).is_none()
    }

    fn open_tag(&mut self, close: Option<String>) {
        if self.open.len() < MOST {
            self.open.extend(close);
        }
    }
}

/// Returns the text that closes a line that is an open tag.
fn close_of(line: &str) -> Option<String> {
    let short = Some(line).filter(|line| line.len() <= LONGEST)?;
    let inner = short.trim().strip_prefix('<')?.strip_suffix('>')?;
    let name: String = inner
        .chars()
        .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        .collect();
    let is_open = !name.is_empty() && !inner.ends_with('/') && !inner.contains(['<', '>']);
    is_open.then(|| format!("</{name}>"))
}
