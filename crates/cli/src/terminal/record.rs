//! A display of the run's events as JSON lines.

use plaincall::{RunEvent, log::LineEncoder};

use crate::sanitize::sanitize_json;
use crate::terminal::event::{Display, UiEvent};

/// Writes every event in the format of a log. If writing the log fails, the event that reports this is the last one,
/// because later events are not in the log.
#[derive(Debug)]
pub(crate) struct Record {
    lines: LineEncoder,
    has_failed: bool,
    /// Whether the output is a terminal, so text must be sanitized.
    is_terminal: bool,
}

impl Record {
    pub(crate) fn new(is_terminal: bool) -> Self {
        Self {
            lines: LineEncoder::default(),
            has_failed: false,
            is_terminal,
        }
    }
}

impl Display for Record {
    fn handle(&mut self, event: UiEvent, out: &mut String) {
        if let UiEvent::Run(event) = event
            && !self.has_failed
        {
            self.has_failed = matches!(*event, RunEvent::LogFailed(_));
            let line = self.lines.next_line(&event);
            if self.is_terminal {
                out.push_str(&sanitize_json(&line));
            } else {
                out.push_str(&line);
            }
        }
    }
}
