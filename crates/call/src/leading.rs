//! Calls that a run would treat as reasoning, found by a reader without reasoning (`spec/common.md` 5.3).

use plaincall_syntax::floor_char_boundary;
use plaincall_syntax::{Dialect, Event, EventKind, Section, Severity};

use crate::reply_diagnostic::ReplyDiagnostic;

/// Warns about each call between a leading open marker and the first close marker.
#[derive(Clone, Debug)]
pub(crate) struct LeadingReasoning {
    position: Position,
    /// The text read so far of a marker that may continue in the next event.
    begun: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Only blanks and line ends so far, and perhaps the beginning of the open marker.
    Before,
    Inside,
    /// The search is over.
    After,
}

impl LeadingReasoning {
    pub(crate) fn of(dialect: &Dialect) -> Self {
        let position = match dialect.reasoning_markers() {
            None => Position::Before,
            Some(_) => Position::After,
        };
        Self {
            position,
            begun: String::new(),
        }
    }

    /// Processes the next event. Returns the warning about the call that it starts.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<ReplyDiagnostic> {
        let [open, close] = Dialect::THINK;
        if self.position == Position::After || matches!(event.kind, EventKind::Diagnostic(_)) {
            return None;
        }
        let mut found = None;
        if self.position == Position::Inside && matches!(event.kind, EventKind::CallStart(_)) {
            let (code, section) = (ReplyDiagnostic::CALL_IN_REASONING, Section::CallInReasoning);
            let message =
                format!("this call is inside reasoning that `{open}` opens, so `run` ignores it");
            found = Some(ReplyDiagnostic {
                severity: Severity::Warning,
                ..ReplyDiagnostic::error(code, section, event.span, message)
            });
        }
        self.begun.push_str(event.source());
        if self.position == Position::Before {
            let text = self.begun.trim_start_matches([' ', '\t', '\r', '\n']);
            if text.starts_with(open) {
                self.position = Position::Inside;
                self.begun = text.get(open.len()..).unwrap_or_default().to_owned();
            } else if open.starts_with(text) {
                self.begun = text.to_owned();
            } else {
                self.position = Position::After;
            }
        }
        if self.position == Position::Inside && self.begun.contains(close) {
            self.position = Position::After;
        }
        // An incomplete close marker has at most this length.
        let kept = self.begun.len().saturating_sub(close.len());
        self.begun.drain(..floor_char_boundary(&self.begun, kept));
        found
    }
}
