//! Results that a model invents: it writes what only we may write (`spec/history.md` 3) behind its own calls.

use std::borrow::Cow;

use crate::history::results::word_of;

/// The words of a heading before the number, the count and the name of the tool.
const HEADING: [&str; 3] = ["Result ", " of ", ": tool "];

/// The longest heading that is looked for, in bytes. A line that is longer is the model's own.
const LONGEST_HEADING: usize = 1024;

/// Takes invented results out of the text of one reply, which may come in pieces (`spec/history.md` 5).
///
/// An invented result begins with the heading of one, at the beginning of a line behind a call of the reply, for a tool
/// that the reply has called: `Result 1 of 1: tool add`. From there on everything goes, up to the next call or the end:
/// what follows rests on the invented result. A text that mentions a result is left alone.
///
/// ```
/// use plaincall_call::InventedResults;
///
/// let mut invented = InventedResults::default();
/// assert_eq!(invented.text("Result 1 of 1: tool add\n"), "Result 1 of 1: tool add\n");
/// invented.call("add");
/// assert_eq!(invented.text("\nI wait for Result 1 of 1.\nRes"), "\nI wait for Result 1 of 1.\n");
/// assert_eq!(invented.text("ult 1 of 1: tool add\nOutput: 5\nIt is 5."), "");
/// assert_eq!(invented.rest(), "");
/// assert_eq!(invented.count(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct InventedResults {
    /// The tools that the reply has called.
    tools: Vec<String>,
    /// The beginning of a line that may become a heading.
    line: String,
    /// Whether what comes is in the middle of a line that is none.
    is_in_line: bool,
    /// Whether what comes goes.
    is_invented: bool,
    count: u64,
}

/// Whether a beginning of a line is one of a heading.
enum Heading {
    No,
    Perhaps,
    Yes,
}

impl InventedResults {
    /// A call of this tool stands here. What [`rest`](Self::rest) gives stands before it.
    pub fn call(&mut self, tool: &str) {
        self.is_invented = false;
        self.is_in_line = false;
        if !self.tools.iter().any(|known| known == tool) {
            self.tools.push(tool.to_owned());
        }
    }

    /// What is left of the next piece of text. A line that may become a heading waits for more.
    pub fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if self.is_invented {
            return Cow::Borrowed("");
        }
        if self.tools.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut left = String::new();
        for piece in text.split_inclusive('\n') {
            if self.is_in_line {
                left.push_str(piece);
                self.is_in_line = !piece.ends_with('\n');
                continue;
            }
            self.line.push_str(piece);
            match heading(&self.line, &self.tools) {
                Heading::Perhaps => {}
                Heading::No => {
                    self.is_in_line = !piece.ends_with('\n');
                    left.push_str(&std::mem::take(&mut self.line));
                }
                Heading::Yes => {
                    self.is_invented = true;
                    self.count += 1;
                    self.line.clear();
                    break;
                }
            }
        }
        Cow::Owned(left)
    }

    /// What waits, when no more text comes before the next call or the end.
    pub fn rest(&mut self) -> String {
        let line = std::mem::take(&mut self.line);
        match heading(&format!("{line}\n"), &self.tools) {
            Heading::Yes => {
                self.count += 1;
                String::new()
            }
            Heading::No | Heading::Perhaps => line,
        }
    }

    /// What waits for more text.
    pub fn waiting(&self) -> &str {
        &self.line
    }

    /// How often something was taken out.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Whether a line, or the beginning of one, is the heading of a result of one of these tools:
/// `Result 1 of 2: tool add, id a1, status ok`.
fn heading(line: &str, tools: &[String]) -> Heading {
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
    let mut may_become = false;
    for tool in tools {
        let name = word_of(tool);
        match rest.strip_prefix(name.as_str()) {
            Some(behind) if behind.starts_with([',', '\n', '\r']) => return Heading::Yes,
            Some("") => may_become = true,
            None => may_become |= name.starts_with(rest),
            Some(_) => {}
        }
    }
    if may_become && line.len() <= LONGEST_HEADING {
        Heading::Perhaps
    } else {
        Heading::No
    }
}

#[cfg(test)]
mod tests {
    use super::InventedResults;
    use crate::{CallStatus, Foreign, ToldResult, results};
    use plaincall_syntax::Dialect;
    use plaincall_syntax::ceil_char_boundary;

    /// What is left of a text behind a call of `add`, however it is cut.
    fn check(text: &str, expected: &str, count: u64) {
        for size in 1..=text.len().max(1) {
            let mut invented = InventedResults::default();
            invented.call("add");
            let mut left = String::new();
            let mut rest = text;
            while !rest.is_empty() {
                let (piece, tail) = rest.split_at(ceil_char_boundary(rest, size.min(rest.len())));
                left.push_str(&invented.text(piece));
                rest = tail;
            }
            left.push_str(&invented.rest());
            assert_eq!(
                (left.as_str(), invented.count()),
                (expected, count),
                "{text:?} {size}"
            );
        }
    }

    #[test]
    fn what_is_invented_goes_and_what_mentions_it_stays() {
        for (text, expected, count) in [
            ("", "", 0),
            ("Done.\n", "Done.\n", 0),
            ("\nResult 1 of 1: tool add\nOutput: 5\n\nIt is 5.", "\n", 1),
            (
                "Result 1 of 2: tool add, status ok\nOutput: 5\nResult 2 of 2: tool add",
                "",
                1,
            ),
            ("I add.\nResult 12 of 12: tool add", "I add.\n", 1),
            ("Result 1 of 1: tool add\r\n", "", 1),
            (
                "See Result 1 of 1: tool add\n",
                "See Result 1 of 1: tool add\n",
                0,
            ),
            (
                "Result 1 of 1: tool adder\n",
                "Result 1 of 1: tool adder\n",
                0,
            ),
            (
                "Result 1 of 1: tool write\n",
                "Result 1 of 1: tool write\n",
                0,
            ),
            ("Result 1 of 1: add\n", "Result 1 of 1: add\n", 0),
            (
                "Result 1 of 1 will tell.\n",
                "Result 1 of 1 will tell.\n",
                0,
            ),
            ("Result 0 of 1: tool add\n", "Result 0 of 1: tool add\n", 0),
            ("Result 1 of", "Result 1 of", 0),
            ("Result 1 of 1: tool ad", "Result 1 of 1: tool ad", 0),
            ("result 1 of 1: tool add\n", "result 1 of 1: tool add\n", 0),
            (
                "`Result 1 of 1: tool add`\n",
                "`Result 1 of 1: tool add`\n",
                0,
            ),
        ] {
            check(text, expected, count);
        }
    }

    /// The headings are those that results have.
    #[test]
    fn every_told_result_is_known() {
        let dialect = Dialect::block().escaped();
        for status in CallStatus::ALL.map(Some).into_iter().chain([None]) {
            for id in ["", "a1", "a b"] {
                let mut told = ToldResult::new(Foreign::new("add"), Foreign::new(id));
                told.status = status;
                let told = [told.clone(), told.output(Foreign::new("5"))];
                let text = results(&told, &dialect).expect("a dialect that works");
                check(text.text(), "", 1);
            }
        }
    }

    #[test]
    fn before_the_first_call_and_behind_the_next() {
        let mut invented = InventedResults::default();
        let heading = "Result 1 of 1: tool a b\n";
        assert_eq!(invented.text(heading), heading);
        invented.call("a b");
        assert_eq!(invented.text(heading), heading);
        let quoted = "Result 1 of 1: tool \"a b\"\nx";
        assert_eq!(invented.text(quoted), "");
        assert_eq!(invented.rest(), "");
        invented.call("c");
        assert_eq!(invented.text("Well.\nRes"), "Well.\n");
        assert_eq!(invented.rest(), "Res");
        assert_eq!(invented.text("\nResult 1 of 1: tool c\n"), "\n");
        assert_eq!(invented.count(), 2);
    }
}
