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
    has_written: bool,
    ends_line: bool,
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
        self.has_written = true;
        self.ends_line = text.ends_with('\n');
        if self.is_terminal {
            out.push_str(&harmless(text));
        } else {
            out.push_str(text);
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
            News::Answer(text) if !self.is_streamed => self.write(&text, out),
            News::Over if self.has_written && !self.ends_line => out.push('\n'),
            _ => {}
        }
    }

    fn abandon(&mut self, out: &mut String) {
        if self.has_written && !self.ends_line {
            out.push('\n');
        }
    }
}
