//! The answer alone.

use crate::terminal::event::{Display, UiEvent};
use crate::visible::harmless;

/// Writes the answer, and nothing else.
#[derive(Debug)]
pub(crate) struct AnswerText {
    /// Whether all text is the answer, so that it can be written while it arrives.
    is_streamed: bool,
    /// Whether it is written on a terminal, which must not do what is in it.
    is_terminal: bool,
    /// Whether the last line has text.
    is_in_line: bool,
}

impl AnswerText {
    pub(crate) fn new(is_streamed: bool, is_terminal: bool) -> Self {
        Self {
            is_streamed,
            is_terminal,
            is_in_line: false,
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

impl Display for AnswerText {
    fn take(&mut self, event: UiEvent, out: &mut String) {
        match event {
            UiEvent::Text(text) if self.is_streamed => self.write(&text, out),
            UiEvent::Answer(text) => {
                if !self.is_streamed {
                    self.write(&text, out);
                }
                self.abandon(out);
            }
            UiEvent::Over | UiEvent::Abandoned => self.abandon(out),
            _ => {}
        }
    }

    fn abandon(&mut self, out: &mut String) {
        if std::mem::take(&mut self.is_in_line) {
            out.push('\n');
        }
    }
}
