//! The record of a run: the lines of a log.

use plaincall::{RunEvent, log::LineEncoder};

use crate::terminal::event::{Display, UiEvent};
use crate::visible::json;

/// Writes every event of the run as it happens, in the form of a log. If there is a log and it fails, the line that
/// reports this is the last: later events are not in the log.
#[derive(Debug)]
pub(crate) struct Record {
    lines: LineEncoder,
    has_failed: bool,
    /// Whether they are written on a terminal, which must not do what is in them.
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
    fn take(&mut self, event: UiEvent, out: &mut String) {
        if let UiEvent::Run(event) = event
            && !self.has_failed
        {
            self.has_failed = matches!(*event, RunEvent::LogFailed(_));
            let line = self.lines.next_line(&event);
            if self.is_terminal {
                out.push_str(&json(&line));
            } else {
                out.push_str(&line);
            }
        }
    }
}
