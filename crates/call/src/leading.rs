//! Calls that a run would treat as reasoning, found by a reader without reasoning (`spec/common.md` 5.3).

use std::mem;

use plaincall_syntax::{
    Dialect, Event, EventKind, Section, Severity, floor_char_boundary, is_invisible,
};

use crate::reply_diagnostic::ReplyDiagnostic;

/// Warns about each call between an open marker that would count and the next close marker.
#[derive(Clone, Debug)]
pub(crate) struct LeadingReasoning {
    position: Position,
    /// The text read so far of a marker that may continue in the next event.
    begun: String,
    /// Whether the current call began inside reasoning, so its end does not count.
    is_call_inside: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// The dialect reads reasoning.
    Off,
    /// Only text so far that may come before the open marker, and perhaps the beginning of the marker.
    Before {
        is_first: bool,
    },
    Inside,
    /// Other text.
    After,
}

impl LeadingReasoning {
    pub(crate) fn of(dialect: &Dialect) -> Self {
        let position = match dialect.reasoning_markers() {
            None => Position::Before { is_first: true },
            Some(_) => Position::Off,
        };
        Self {
            position,
            begun: String::new(),
            is_call_inside: false,
        }
    }

    /// Processes the next event. Returns the warning about the call that it starts.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<ReplyDiagnostic> {
        if self.position == Position::Off {
            return None;
        }
        match event.kind {
            EventKind::Diagnostic(_) => return None,
            EventKind::CallEnd(_) if !self.is_call_inside => {
                self.position = Position::Before { is_first: false };
                self.begun.clear();
                return None;
            }
            EventKind::CallStart(_) => self.is_call_inside = self.position == Position::Inside,
            _ => {}
        }
        if self.position != Position::After {
            let mut text = mem::take(&mut self.begun);
            text.push_str(event.source());
            self.read(&text);
        }
        let is_found = self.is_call_inside && matches!(event.kind, EventKind::CallStart(_));
        is_found.then(|| {
            let [open, _] = Dialect::THINK;
            let (code, section) = (ReplyDiagnostic::CALL_IN_REASONING, Section::CallInReasoning);
            let message =
                format!("this call is inside reasoning that `{open}` opens, so `run` ignores it");
            ReplyDiagnostic {
                severity: Severity::Warning,
                ..ReplyDiagnostic::error(code, section, event.span, message)
            }
        })
    }

    fn read(&mut self, mut text: &str) {
        let [open, close] = Dialect::THINK;
        loop {
            text = match self.position {
                Position::Off | Position::After => return,
                Position::Before { is_first } => {
                    let is_skipped =
                        |c: char| " \t\r\n".contains(c) || (is_first && is_invisible(c));
                    let text = text.trim_start_matches(is_skipped);
                    match text.strip_prefix(open) {
                        Some(inside) => {
                            self.position = Position::Inside;
                            inside
                        }
                        None if open.starts_with(text) => {
                            text.clone_into(&mut self.begun);
                            return;
                        }
                        None => {
                            self.position = Position::After;
                            return;
                        }
                    }
                }
                Position::Inside => {
                    let Some((_, behind)) = text.split_once(close) else {
                        // An incomplete close marker has at most this length.
                        let kept =
                            floor_char_boundary(text, text.len().saturating_sub(close.len()));
                        text.get(kept..)
                            .unwrap_or_default()
                            .clone_into(&mut self.begun);
                        return;
                    };
                    self.position = Position::Before { is_first: false };
                    behind
                }
            };
        }
    }
}
