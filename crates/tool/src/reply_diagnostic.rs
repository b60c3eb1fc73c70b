//! The common form of diagnostics.

use std::fmt;

use plaincall_syntax::{Diagnostic, Section, Severity, Span};
use serde::{Serialize, Serializer};

/// A diagnostic of a text or a call, from the parser, the assembly of calls, or the definition of a tool.
///
/// It serializes to `{"code", "severity", "span", "pointer", "message"}`, without an empty `pointer` (`spec/common.md`
/// 11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReplyDiagnostic {
    /// The stable code (`spec/common.md` 3, `spec/block.md` 7.9).
    pub code: &'static str,
    /// The severity: an error makes the call invalid.
    #[serde(serialize_with = "severity_name")]
    pub severity: Severity,
    /// The location in the input, in bytes.
    #[serde(serialize_with = "span_pair")]
    pub span: Span,
    /// The pointer to the invalid argument; empty for the whole call, and if no pointer could be read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// One sentence, or the text that the specification defines.
    pub message: String,
    /// The section of the specification.
    #[serde(skip)]
    pub section: Section,
}

impl ReplyDiagnostic {
    /// The error code of a call with the id of an earlier call of the same turn.
    pub const DUPLICATE_ID: &'static str = "duplicate_id";

    /// The warning code of a call that a run treats as reasoning.
    pub const CALL_IN_REASONING: &'static str = "call_in_reasoning";

    /// The error code of a call of an unknown tool.
    pub const UNKNOWN_TOOL: &'static str = "unknown_tool";

    /// Creates a diagnostic without a pointer.
    pub fn new(
        code: &'static str,
        severity: Severity,
        section: Section,
        span: Span,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity,
            span,
            pointer: String::new(),
            message: message.into(),
            section,
        }
    }

    #[doc(hidden)]
    pub fn error(code: &'static str, section: Section, span: Span, message: String) -> Self {
        Self::new(code, Severity::Error, section, span, message)
    }

    #[doc(hidden)]
    /// Creates an error from the definition of a tool (`spec/common.md` 11.1).
    pub fn of_definition(code: &'static str, pointer: &str, span: Span, message: String) -> Self {
        Self {
            pointer: pointer.to_owned(),
            ..Self::error(code, Section::Definitions, span, message)
        }
    }

    /// Returns `true` for an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    #[doc(hidden)]
    /// Returns `true` for an error of the arguments, after which there are no `parameters`.
    pub fn is_argument_error(&self) -> bool {
        self.is_error() && self.code != Self::DUPLICATE_ID
    }

    #[doc(hidden)]
    /// Inserts the diagnostic by the end of its span, after those with the same end.
    pub fn insert(self, diagnostics: &mut Vec<Self>) {
        let at = diagnostics.partition_point(|other| other.span.end <= self.span.end);
        diagnostics.insert(at, self);
    }
}

impl From<&Diagnostic> for ReplyDiagnostic {
    fn from(diagnostic: &Diagnostic) -> Self {
        Self {
            code: diagnostic.code.name(),
            severity: diagnostic.severity(),
            span: diagnostic.span,
            pointer: String::new(),
            message: diagnostic.message(),
            section: diagnostic.section(),
        }
    }
}

impl fmt::Display for ReplyDiagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

fn span_pair<S: Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
    (span.start, span.end).serialize(serializer)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
fn severity_name<S: Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity.name())
}
