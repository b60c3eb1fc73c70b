//! The calls that a run would reject or hold, from the text and the tool definitions.

use plaincall::plan::{DeclaredCall, RejectReason, dependency_errors};
use plaincall_call::{
    CallError, Document, Effect, MissingEnd, ReplyCheck, ReplyDiagnostic, Stop, SuspectMarker,
    ToolCall, ToolSet, ToolSpec, Unclosed,
};
use plaincall_syntax::{Code, Dialect, DialectError, Section};
use plaincall_syntax::{Severity, Span, Termination};

use crate::text::advice::{
    AFTER_UNCLOSED, DEPENDENCY_CYCLE, HELD, MAYBE_REASONING, NOT_CLOSED, SELF_DEPENDENCY,
    UNKNOWN_ID,
};

/// How a run reads a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsRun<'r> {
    /// Its dialect, in which reasoning counts.
    pub(crate) dialect: &'r Dialect,
    /// The tools. Without any, what depends on the tool is a warning.
    pub(crate) tools: Option<&'r ToolSet>,
    pub(crate) unclosed: Unclosed,
}

/// What a run finds in a text.
pub(crate) struct Rejections {
    pub(crate) findings: Vec<ReplyDiagnostic>,
    /// Where calls begin that have no end marker.
    pub(crate) unclosed: Vec<usize>,
}

impl Rejections {
    /// Judges the calls of a file as a run does, up to the gate.
    pub(crate) fn of(document: &Document, run: AsRun<'_>) -> Result<Self, DialectError> {
        let mut found = Self {
            findings: Vec::new(),
            unclosed: Vec::new(),
        };
        let mut check = ReplyCheck::new(run.dialect, run.unclosed)?;
        // What would be decided if every tool only read.
        let mut lenient = check.clone();
        let reads = ToolSpec::new("").effect(Effect::Read);
        let uncertain = uncertain_calls(document);
        let mut declared = Vec::new();
        for call in document.calls() {
            let tool = run.tools.and_then(|tools| tools.get(&call.name));
            let decision = check.may_run(call, tool, Stop::EndOfFile);
            let at_best = lenient.may_run(call, Some(&reads), Stop::EndOfFile);
            let is_wrong = run.tools.is_some_and(|tools| match tool {
                Some(_) => tools.bind(call).is_err(),
                None => true,
            });
            let is_sure = match run.tools {
                Some(_) => decision.is_err(),
                None => at_best.is_err(),
            };
            let next = uncertain.partition_point(|span| span.end <= call.span.start);
            let is_uncertain = uncertain
                .get(next)
                .is_some_and(|span| span.start <= call.span.start);
            let is_invalid = is_sure || is_wrong || is_uncertain;
            declared.push(DeclaredCall::new(&call.id, &call.dependencies).invalid(is_invalid));
            if is_uncertain && let Some([_, close]) = run.dialect.reasoning_markers() {
                let reason = CallError::MaybeReasoning(close.to_owned());
                let (severity, section) = (Severity::Error, Section::StrayReasoning);
                found.push(MAYBE_REASONING, severity, call, section, reason.to_string());
            }
            let severity = match (&decision, run.tools) {
                (Err(error), _) if is_why(error, MissingEnd::MarkerInside) => Severity::Error,
                (Err(_), Some(_)) => Severity::Error,
                _ => Severity::Warning,
            };
            found.decided(call, decision, severity);
        }
        let calls: Vec<&ToolCall> = document.calls().collect();
        for (place, reason) in dependency_errors(declared) {
            let Some(call) = calls.get(place) else {
                continue;
            };
            let (code, severity) = match reason {
                RejectReason::SelfDependency { .. } => (SELF_DEPENDENCY, Severity::Error),
                RejectReason::Cycle { .. } => (DEPENDENCY_CYCLE, Severity::Error),
                // An earlier reply may have it.
                RejectReason::UnknownIds { .. } => (UNKNOWN_ID, Severity::Warning),
                // The document reports the others.
                _ => continue,
            };
            found.push(code, severity, call, Section::Ids, reason.to_string());
        }
        Ok(found)
    }

    /// The decision about a call by its end.
    fn decided(
        &mut self,
        call: &ToolCall,
        decision: Result<Option<SuspectMarker>, CallError>,
        severity: Severity,
    ) {
        let is_closed = call.termination == Termination::Explicit;
        if !is_closed {
            self.unclosed.push(call.span.start);
        }
        let (code, severity, message) = match decision {
            Err(error) if is_why(&error, MissingEnd::AfterUnclosed) => {
                (AFTER_UNCLOSED, severity, error.to_string())
            }
            Ok(Some(suspect)) => {
                let message = format!("{suspect}: in a run, this call needs approval");
                (HELD, Severity::Warning, message)
            }
            // The document and the definitions report what is wrong besides the end.
            Ok(None) | Err(CallError::Malformed(_) | CallError::DuplicateId(_)) if is_closed => {
                return;
            }
            Ok(None) | Err(CallError::Malformed(_) | CallError::DuplicateId(_)) => {
                let message = match call.termination {
                    Termination::NextCall => "the next call starts before this call is closed",
                    _ => "the text ends before this call is closed",
                };
                (NOT_CLOSED, Severity::Warning, message.to_owned())
            }
            Err(error) => (NOT_CLOSED, severity, error.to_string()),
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
        let span = call.header_span;
        self.findings
            .push(finding(code, severity, span, section, message));
    }
}

/// A finding that is about no argument.
pub(super) fn finding(
    code: &'static str,
    severity: Severity,
    span: Span,
    section: Section,
    message: String,
) -> ReplyDiagnostic {
    ReplyDiagnostic {
        code,
        severity,
        span,
        pointer: String::new(),
        message,
        section,
    }
}

/// Whether this is why a call is not run without its end marker.
fn is_why(error: &CallError, which: MissingEnd) -> bool {
    matches!(error, CallError::NotClosed { why, .. } if *why == which)
}

/// Where calls begin that a stray close marker makes uncertain (`spec/common.md` 5.2).
fn uncertain_calls(document: &Document) -> Vec<Span> {
    let mut uncertain = Vec::new();
    let mut from = 0;
    for finding in &document.diagnostics {
        let is = |code: Code| finding.code == code.name();
        if is(Code::StrayReasoningClose) {
            uncertain.push(Span::new(from, finding.span.end));
        }
        if is(Code::StrayReasoningOpen) || is(Code::StrayReasoningClose) {
            from = finding.span.end;
        }
    }
    uncertain
}
