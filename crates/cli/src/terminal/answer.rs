//! A display of the answer only.

use crate::sanitize::sanitize;
use crate::terminal::event::{Display, UiEvent};

/// Writes the answer and nothing else.
#[derive(Debug)]
pub(crate) struct AnswerText {
    /// Whether all text is the answer, so that it is written while it arrives.
    is_streamed: bool,
    /// Whether the output is a terminal, so text must be sanitized.
    is_terminal: bool,
    /// Whether the last line has no line end yet.
    is_line_open: bool,
}

impl AnswerText {
    pub(crate) fn new(is_streamed: bool, is_terminal: bool) -> Self {
        Self {
            is_streamed,
            is_terminal,
            is_line_open: false,
        }
    }

    fn write(&mut self, text: &str, out: &mut String) {
        if text.is_empty() {
            return;
        }
        self.is_line_open = !text.ends_with('\n');
        if self.is_terminal {
            out.push_str(&sanitize(text));
        } else {
            out.push_str(text);
        }
    }
}

impl Display for AnswerText {
    fn handle(&mut self, event: UiEvent, out: &mut String) {
        match event {
            UiEvent::Text(text) if self.is_streamed => self.write(&text, out),
            UiEvent::Answer(text) => {
                if !self.is_streamed {
                    self.write(&text, out);
                }
                self.abandon(out);
            }
            UiEvent::End | UiEvent::Abandoned => self.abandon(out),
            _ => {}
        }
    }

    fn abandon(&mut self, out: &mut String) {
        if std::mem::take(&mut self.is_line_open) {
            out.push('\n');
        }
    }
}
