//! Calls that a run would treat as reasoning, found by a reader without reasoning (`spec/common.md` 5.3).

use plaincall_syntax::{Dialect, Event, EventKind, Parser, Section, Severity};

use plaincall_tool::ReplyDiagnostic;

/// Parses the text a second time, with reasoning, and warns about each call that begins inside it.
#[derive(Clone, Debug)]
pub(crate) struct LeadingReasoning {
    /// `None` if the dialect reads reasoning, or if one of its markers excludes that.
    parser: Option<Parser>,
}

impl LeadingReasoning {
    pub(crate) fn of(dialect: &Dialect) -> Self {
        let [open, close] = Dialect::THINK;
        let with_reasoning = match dialect.reasoning_markers() {
            None => Some(dialect.clone().leading_reasoning(open, close)),
            Some(_) => None,
        };
        Self {
            parser: with_reasoning.and_then(|dialect| Parser::new(&dialect).ok()),
        }
    }

    /// Processes the next event. Returns the warning about the call that it starts.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<ReplyDiagnostic> {
        // The text of a diagnostic is part of other events.
        if matches!(event.kind, EventKind::Diagnostic(_)) {
            return None;
        }
        let parser = self.parser.as_mut()?;
        let is_found = matches!(event.kind, EventKind::CallStart(_)) && parser.is_in_reasoning();
        parser.feed(event.source()).for_each(drop);
        is_found.then(|| {
            let [open, _] = Dialect::THINK;
            let (code, section) = (ReplyDiagnostic::CALL_IN_REASONING, Section::CallInReasoning);
            let message =
                format!("this call is inside reasoning that `{open}` opens, so `run` ignores it");
            ReplyDiagnostic::new(code, Severity::Warning, section, event.span, message)
        })
    }
}
