//! Results that a model invents after its own calls (`spec/history.md` 3).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Bound;

use memchr::memchr;

use serde_json::Value;

use plaincall_tool::json_text::on_one_line;

/// The words of a heading before the number, the count and the name of the tool.
const HEADING: [&str; 3] = ["Result ", " of ", ": tool "];
const FIRST_LETTER: char = 'R';

/// The maximum length of a heading, in bytes. A longer line is the model's own text.
const LONGEST_HEADING: usize = 1024;

/// Removes invented results from the text of one reply, which may arrive in pieces (`spec/history.md` 5).
///
/// An invented result begins with a result heading at the beginning of a line, after a call of the reply, for a tool
/// that the reply called: `Result 1 of 1: tool add`. Everything up to the next call or the end is removed, since it
/// depends on the invented result. Text that mentions a result elsewhere is kept.
#[derive(Clone, Debug, Default)]
pub struct InventedResults {
    /// Names as headings have them.
    tools: BTreeSet<String>,
    line: String,
    /// Whether the next text continues a line that is not a heading.
    is_in_line: bool,
    is_invented: bool,
    count: u64,
}

enum Heading {
    No,
    Perhaps,
    Yes,
}

impl InventedResults {
    /// Records a call of this tool. The text of [`rest`](Self::rest) comes before it.
    pub fn call(&mut self, tool: &str) {
        self.is_invented = false;
        self.is_in_line = false;
        self.tools.insert(word_of(tool));
    }

    /// Returns whether the reply has a call, so that text may be removed.
    pub(crate) fn is_after_call(&self) -> bool {
        !self.tools.is_empty()
    }

    /// Returns the text to keep of the next piece. A line that may become a heading is held back.
    pub fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if self.is_invented {
            return Cow::Borrowed("");
        }
        let is_in_line = self.is_in_line && memchr(b'\n', text.as_bytes()).is_none();
        if is_in_line || !self.is_after_call() {
            return Cow::Borrowed(text);
        }
        let held = self.line.len();
        let (mut before, mut kept, mut at) = (String::new(), 0, 0);
        for piece in text.split_inclusive('\n') {
            at += piece.len();
            let is_other =
                self.is_in_line || (self.line.is_empty() && !piece.starts_with(FIRST_LETTER));
            if !is_other {
                self.line.push_str(piece);
                match heading(&self.line, &self.tools) {
                    Heading::Perhaps => continue,
                    Heading::No => {
                        let line = std::mem::take(&mut self.line);
                        if kept == 0 {
                            before = line;
                            before.truncate(held);
                        }
                    }
                    Heading::Yes => {
                        self.is_invented = true;
                        self.count += 1;
                        self.line.clear();
                        break;
                    }
                }
            }
            kept = at;
            self.is_in_line = !piece.ends_with('\n');
        }
        let kept = text.get(..kept).unwrap_or_default();
        if before.is_empty() {
            Cow::Borrowed(kept)
        } else {
            Cow::Owned(before + kept)
        }
    }

    /// Returns the text held back, when no more text comes before the next call or the end.
    pub fn rest(&mut self) -> String {
        if self.line.is_empty() {
            return String::new();
        }
        let line = std::mem::take(&mut self.line);
        match heading(&format!("{line}\n"), &self.tools) {
            Heading::Yes => {
                self.count += 1;
                String::new()
            }
            Heading::No | Heading::Perhaps => line,
        }
    }

    /// Returns the text that is held back.
    pub fn waiting(&self) -> &str {
        &self.line
    }

    /// Returns the number of removals.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Checks whether a line, or its beginning, is the heading of a result of one of these tools: `Result 1 of 2: tool add,
/// id a1, status ok`.
fn heading(line: &str, tools: &BTreeSet<String>) -> Heading {
    let mut rest = line;
    for (place, words) in HEADING.iter().enumerate() {
        if place > 0 {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 || digits > 9 || rest.starts_with('0') {
                return if rest.is_empty() {
                    Heading::Perhaps
                } else {
                    Heading::No
                };
            }
            rest = rest.get(digits..).unwrap_or_default();
            if rest.is_empty() {
                return Heading::Perhaps;
            }
        }
        match rest.strip_prefix(words) {
            Some(behind) => rest = behind,
            None if words.starts_with(rest) => return Heading::Perhaps,
            None => return Heading::No,
        }
    }
    let mut ends = rest.match_indices([',', '\n', '\r']);
    if ends.any(|(end, _)| rest.get(..end).is_some_and(|name| tools.contains(name))) {
        return Heading::Yes;
    }
    let mut from = tools.range::<str, _>((Bound::Included(rest), Bound::Unbounded));
    let may_become = from.next().is_some_and(|name| name.starts_with(rest));
    if may_become && line.len() <= LONGEST_HEADING {
        Heading::Perhaps
    } else {
        Heading::No
    }
}

/// Writes a name or id in a heading: as is, or as a JSON string if part of it could be read as the rest of the heading.
pub fn word_of(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        on_one_line(&Value::from(word))
    }
}
