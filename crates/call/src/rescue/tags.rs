//! The tags around a text: what is inside one may be an example.

/// The longest line that may be a tag, in bytes.
const LONGEST: usize = 128;
/// The maximum number of open tags that are remembered.
const MOST: usize = 64;

/// The tags that begin lines of a text and are not closed: `<example>`, `<details>`, a comment.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenTags {
    open: Vec<String>,
    line: String,
}

impl OpenTags {
    /// Takes the next text outside calls.
    pub(super) fn feed(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            if self.line.len() + piece.len() <= LONGEST {
                self.line.push_str(piece);
            } else {
                let cut = plaincall_syntax::ceil_char_boundary(
                    piece,
                    piece.len().saturating_sub(LONGEST),
                );
                self.line.clear();
                self.line.push_str(piece.get(cut..).unwrap_or_default());
            }
            let line = &self.line;
            self.open.retain(|close| !line.contains(close.as_str()));
            if piece.ends_with('\n') {
                self.end_line();
            }
        }
    }

    /// Returns whether no tag is open.
    pub(super) fn are_closed(&self) -> bool {
        self.open.is_empty() && close_of(self.line.trim()).is_none()
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.open.len() < MOST {
            self.open.extend(close_of(line.trim()));
        }
    }
}

/// Returns the text that closes a line that is an open tag.
fn close_of(line: &str) -> Option<String> {
    if line.starts_with("<!--") {
        return (!line.contains("-->")).then(|| "-->".to_owned());
    }
    let inner = line.strip_prefix('<')?.strip_suffix('>')?;
    let name: String = inner
        .chars()
        .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        .collect();
    let is_open = !name.is_empty() && !inner.ends_with('/') && !inner.contains(['<', '>']);
    is_open.then(|| format!("</{name}>"))
}
