//! The answer alone.

use plaincall_agent::AgentEvent;

use crate::run::news::{Display, News};
use crate::visible::harmless;

/// Writes the answer, and nothing else.
#[derive(Debug, Default)]
pub(crate) struct Verbatim {
    /// Whether all text is the answer, so that it can be written while it comes.
    is_streamed: bool,
    /// Whether it is written on a terminal, which must not do what is in it.
    is_terminal: bool,
    /// Whether something stands on the last line.
    is_in_line: bool,
}

impl Verbatim {
    pub(crate) fn new(is_streamed: bool, is_terminal: bool) -> Self {
        Self {
            is_streamed,
            is_terminal,
            ..Self::default()
        }
    }

    fn write(&mut self, text: &str, out: &mut String) {
        if text.is_empty() {
            return;
        }
        self.is_in_line = !text.ends_with('\n');
        if self.is_terminal {
            out.push_str(&harmless(text));
        } else {
            out.push_str(text);
        }
    }
}

impl Verbatim {
    fn end_line(&mut self, out: &mut String) {
        if std::mem::take(&mut self.is_in_line) {
            out.push('\n');
        }
    }
}

impl Display for Verbatim {
    fn take(&mut self, news: News, out: &mut String) {
        match news {
            News::Agent(event) if self.is_streamed => {
                if let AgentEvent::Text(text) = &*event {
                    self.write(text, out);
                }
            }
            News::Answer(text) => {
                if !self.is_streamed {
                    self.write(&text, out);
                }
                self.end_line(out);
            }
            News::Over | News::Left => self.end_line(out),
            _ => {}
        }
    }

    fn abandon(&mut self, out: &mut String) {
        self.end_line(out);
    }
}
