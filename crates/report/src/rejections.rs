//! The calls that `run` would reject, according to the text and the tool definitions.

use plaincall::plan::{DeclaredCall, RejectReason, dependency_errors};
use plaincall_reply::{
    CallError, Document, MissingEnd, ReplyCheck, Stop, SuspectMarker, ToolCall, Unclosed,
};
use plaincall_syntax::{Dialect, DialectError, Section};
use plaincall_syntax::{Severity, Span, Termination};
use plaincall_tool::{Effect, ReplyDiagnostic, ToolSet, ToolSpec};

use crate::advice::{
    AFTER_UNCLOSED, DEPENDENCY_CYCLE, END_MARKER_IN_VALUE, MAYBE_REASONING, NOT_CLOSED,
    SELF_DEPENDENCY, UNKNOWN_ID,
};

/// The settings with which `run` would read a text.
#[derive(Clone, Copy, Debug)]
pub struct RunSettings<'r> {
    /// The dialect, with leading reasoning.
    pub dialect: &'r Dialect,
    /// The tools. Without them, problems that depend on a tool are warnings.
    pub tools: Option<&'r ToolSet>,
    /// How calls without an end marker are handled.
    pub unclosed: Unclosed,
    /// How the text ended.
    pub stop: Stop,
}

/// The diagnostics of `run` for a text.
pub(crate) struct Rejections {
    pub(crate) diagnostics: Vec<ReplyDiagnostic>,
    /// The start of each call without an end marker.
    pub(crate) unclosed: Vec<usize>,
}

impl Rejections {
    /// Validates the calls as `run` does, except for approval.
    pub(crate) fn of(document: &Document, run: RunSettings<'_>) -> Result<Self, DialectError> {
        let mut rejections = Self {
            diagnostics: Vec::new(),
            unclosed: Vec::new(),
        };
        // The decision for a tool that only reads.
        let mut lenient = ReplyCheck::new(run.dialect, run.unclosed)?;
        let reads = ToolSpec::new("").effect(Effect::Read);
        let mut declared = Vec::new();
        for read in document.decided() {
            let (call, decision) = (&read.call, &read.decision);
            let lenient_decision = lenient.may_run(call, Some(&reads), run.stop);
            let is_unusable = match run.tools {
                Some(_) => decision.is_err(),
                None => read.may_be_reasoning || lenient_decision.is_err(),
            };
            // What quotes another call is shown beside invalid arguments.
            let decision = match decision {
                Err(error) if is_reported(error) => lenient_decision.as_ref(),
                decided => decided.as_ref(),
            };
            declared.push(DeclaredCall::new(&call.id, &call.dependencies).invalid(is_unusable));
            let severity = match (&decision, run.tools) {
                (Err(error), _) if is_certain(error) => Severity::Error,
                (Err(_), Some(_)) => Severity::Error,
                _ => Severity::Warning,
            };
            rejections.push_decision(call, decision, severity);
        }
        let calls: Vec<&ToolCall> = document.calls().collect();
        for (index, reason) in dependency_errors(declared) {
            let Some(call) = calls.get(index) else {
                continue;
            };
            let (code, severity) = match reason {
                RejectReason::SelfDependency { .. } => (SELF_DEPENDENCY, Severity::Error),
                RejectReason::Cycle { .. } => (DEPENDENCY_CYCLE, Severity::Error),
                // The id may be in an earlier reply.
                RejectReason::UnknownIds { .. } => (UNKNOWN_ID, Severity::Warning),
                // The document reports all other reasons.
                _ => continue,
            };
            rejections.push(code, severity, call, Section::Ids, reason.to_string());
        }
        Ok(rejections)
    }

    /// Adds the decision about the end of a call.
    fn push_decision(
        &mut self,
        call: &ToolCall,
        decision: Result<&Option<SuspectMarker>, &CallError>,
        severity: Severity,
    ) {
        let is_closed = call.termination == Termination::Explicit;
        if !is_closed {
            self.unclosed.push(call.span.start);
        }
        let (code, severity, message) = match decision {
            Err(error @ (CallError::MaybeReasoning(_) | CallError::InReasoning(_))) => {
                let message = error.to_string();
                let (severity, section) = (Severity::Error, Section::StrayReasoning);
                return self.push(MAYBE_REASONING, severity, call, section, message);
            }
            Err(
                error @ (CallError::AfterBrokenStart { .. }
                | CallError::NotClosed {
                    why: MissingEnd::AfterUnclosed,
                    ..
                }),
            ) => (AFTER_UNCLOSED, severity, error.to_string()),
            Ok(Some(suspect)) => {
                let message = format!("{suspect}: in a run, this call needs approval");
                (END_MARKER_IN_VALUE, Severity::Warning, message)
            }
            Err(error) if !is_reported(error) => (NOT_CLOSED, severity, error.to_string()),
            Ok(None) | Err(_) if is_closed => return,
            Ok(None) | Err(_) => {
                let message = match call.termination {
                    Termination::NextCall => "the next call starts before this call is closed",
                    _ => "the text ends before this call is closed",
                };
                (NOT_CLOSED, Severity::Warning, message.to_owned())
            }
        };
        self.push(code, severity, call, Section::Complete, message);
    }

    fn push(
        &mut self,
        code: &'static str,
        severity: Severity,
        call: &ToolCall,
        section: Section,
        message: String,
    ) {
        let span = call.header.span;
        self.diagnostics
            .push(diagnostic(code, severity, span, section, message));
    }
}

/// Creates a diagnostic that does not concern an argument.
pub(crate) fn diagnostic(
    code: &'static str,
    severity: Severity,
    span: Span,
    section: Section,
    message: String,
) -> ReplyDiagnostic {
    ReplyDiagnostic::new(code, severity, section, span, message)
}

/// Returns whether the diagnostics of the text or of the definition report an error.
fn is_reported(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Malformed(_)
            | CallError::DuplicateId(_)
            | CallError::Arguments(_)
            | CallError::UnknownTool(_)
    )
}

/// Returns whether a call of any tool is rejected.
fn is_certain(error: &CallError) -> bool {
    matches!(
        error,
        CallError::NotClosed {
            why: MissingEnd::MarkerInside | MissingEnd::OtherEnd,
            ..
        } | CallError::EndsInQuotation(_)
            | CallError::SlashInHeader(_)
    )
}
