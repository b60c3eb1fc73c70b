//! One form for what the parser and the assembly find.

use std::fmt;

use plaincall_syntax::{Diagnostic, Section, Severity, Span};
use serde::{Serialize, Serializer};

/// Something found in a text or a call: a diagnostic of the parser, an error of the assembly, or what the definition of a
/// tool finds wrong.
///
/// It is written in JSON as `{"code", "severity", "span", "pointer", "message"}`, without an empty `pointer`
/// (`spec/common.md` 11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplyDiagnostic {
    /// Its stable code (`spec/common.md` 3, `spec/block.md` 7.9).
    pub code: &'static str,
    /// Whether it makes its call wrong.
    #[serde(serialize_with = "severity_name")]
    pub severity: Severity,
    /// Where it stands, in bytes of the input.
    #[serde(serialize_with = "span_pair")]
    pub span: Span,
    /// The pointer to the argument that a definition finds wrong; empty for the call as a whole, or where no pointer could be
    /// read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pointer: String,
    /// One sentence, or the text that the specification fixes.
    pub message: String,
    /// The section of the specification that it comes of.
    #[serde(skip)]
    pub section: Section,
}

impl ReplyDiagnostic {
    /// The error that two calls of one turn have the same id.
    pub const DUPLICATE_ID: &'static str = "duplicate_id";

    /// The warning that a run takes a call for reasoning.
    pub const CALL_IN_REASONING: &'static str = "call_in_reasoning";

    /// The code of a call of a tool that is not there.
    pub const UNKNOWN_TOOL: &'static str = "unknown_tool";

    pub(crate) fn error(code: &'static str, section: Section, span: Span, message: String) -> Self {
        Self {
            code,
            severity: Severity::Error,
            span,
            pointer: String::new(),
            message,
            section,
        }
    }

    /// What is wrong with a call by the definition of its tool (`spec/common.md` 11.1).
    pub(crate) fn new(code: &'static str, pointer: &str, span: Span, message: String) -> Self {
        Self {
            pointer: pointer.to_owned(),
            ..Self::error(code, Section::Definitions, span, message)
        }
    }

    /// Whether it makes its call wrong.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Whether it is an error of the arguments, so that there are no `parameters`.
    pub(crate) fn spoils_arguments(&self) -> bool {
        self.is_error() && self.code != Self::DUPLICATE_ID
    }

    /// Puts a diagnostic where its span ends, behind those that end at the same place.
    pub(crate) fn insert(self, diagnostics: &mut Vec<Self>) {
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
