//! A document whose calls are validated against tools (`spec/common.md` 11.1).

use std::collections::HashSet;

use plaincall_syntax::Syntax;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::arguments::Arguments;
use crate::call::ToolCall;
use crate::document::{Document, Segment, SegmentLine};
use crate::reply_diagnostic::ReplyDiagnostic;
use crate::tool::set::ToolSet;

/// A document whose calls are validated against their tools: the output of `plaincall parse --schema` (`spec/common.md`
/// 11.1).
#[derive(Debug)]
pub struct BoundDocument<'d> {
    document: &'d Document,
    calls: Vec<BoundCall<'d>>,
    /// The diagnostics of the text that no definition resolves, in order.
    diagnostics: Vec<&'d ReplyDiagnostic>,
}

/// A call, validated against its tool.
#[derive(Debug)]
#[non_exhaustive]
pub struct BoundCall<'d> {
    /// The call.
    pub call: &'d ToolCall,
    /// The arguments for the tool, or all errors.
    pub arguments: Result<Arguments, Vec<ReplyDiagnostic>>,
}

impl Document {
    /// Validates each call against the definition of its tool.
    pub fn bind(&self, tools: &ToolSet) -> BoundDocument<'_> {
        let calls: Vec<BoundCall<'_>> = self
            .calls()
            .map(|call| BoundCall::new(call, tools))
            .collect();
        let mut diagnostics: Vec<&ReplyDiagnostic> = Vec::with_capacity(self.diagnostics.len());
        // Both are in text order, and a call's span contains those of its diagnostics.
        for diagnostic in &self.diagnostics {
            let at = calls.partition_point(|one| one.call.span.end < diagnostic.span.end);
            let is_fixed = calls.get(at).is_some_and(|one| one.resolves(diagnostic));
            if !is_fixed {
                diagnostics.push(diagnostic);
            }
        }
        BoundDocument {
            document: self,
            calls,
            diagnostics,
        }
    }
}

impl<'d> BoundDocument<'d> {
    /// Returns the calls, in order.
    pub fn calls(&self) -> &[BoundCall<'d>] {
        &self.calls
    }

    /// Returns the diagnostics of the text that no definition resolves, ordered by the ends of their spans.
    pub fn text_diagnostics(&self) -> impl Iterator<Item = &'d ReplyDiagnostic> {
        self.diagnostics.iter().copied()
    }

    /// Returns all diagnostics, ordered by the ends of their spans: those of the text that no definition resolves, and
    /// those of the definitions.
    pub fn diagnostics(&self) -> impl Iterator<Item = &ReplyDiagnostic> {
        let definitions = self.calls.iter().flat_map(BoundCall::problems);
        let mut all: Vec<&ReplyDiagnostic> = self.text_diagnostics().chain(definitions).collect();
        all.sort_by_key(|diagnostic| diagnostic.span.end);
        all.into_iter()
    }
}

impl<'d> BoundCall<'d> {
    /// Validates a call against the definition of its tool.
    pub fn new(call: &'d ToolCall, tools: &ToolSet) -> Self {
        Self {
            call,
            arguments: tools.bind(call),
        }
    }

    /// Returns `true` if the definition resolves this diagnostic, so that it is not an error (`spec/block.md` 7.7.1).
    pub fn resolves(&self, diagnostic: &ReplyDiagnostic) -> bool {
        self.arguments.is_ok()
            && diagnostic.is_argument_error()
            && self.call.span.start <= diagnostic.span.start
            && diagnostic.span.end <= self.call.span.end
    }

    /// Returns all diagnostics of the call, ordered by the ends of their spans: those of its text that the definition does not
    /// resolve, and those of the definition.
    pub fn diagnostics(&self) -> impl Iterator<Item = &ReplyDiagnostic> {
        let of_text = self.call.diagnostics.iter();
        let of_text = of_text.filter(|one| !self.resolves(one));
        let mut all: Vec<&ReplyDiagnostic> = of_text.chain(self.problems()).collect();
        all.sort_by_key(|diagnostic| diagnostic.span.end);
        all.into_iter()
    }

    /// Returns the errors from the definition that the text does not report already.
    pub fn problems(&self) -> impl Iterator<Item = &ReplyDiagnostic> {
        let problems = self.arguments.as_ref().err().into_iter().flatten();
        let diagnostics = self.call.diagnostics.iter();
        let reported: HashSet<_> = diagnostics.map(|one| (one.code, one.span)).collect();
        problems.filter(move |problem| !reported.contains(&(problem.code, problem.span)))
    }
}

impl Serialize for BoundDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut calls = self.calls.iter();
        let segments: Vec<SegmentLine<'_>> = self
            .document
            .segments
            .iter()
            .map(|segment| match segment {
                Segment::Call(_) => SegmentLine(segment, calls.next()),
                Segment::Text { .. } | Segment::Reasoning { .. } => SegmentLine(segment, None),
            })
            .collect();
        let diagnostics: Vec<&ReplyDiagnostic> = self.diagnostics().collect();
        let mut fields = serializer.serialize_struct("Document", 3)?;
        fields.serialize_field("syntax", &self.document.syntax.map(Syntax::name))?;
        fields.serialize_field("segments", &segments)?;
        fields.serialize_field("diagnostics", &diagnostics)?;
        fields.end()
    }
}

/// Serializes the keys of the call, with the bound arguments.
impl Serialize for BoundCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let arguments = self.arguments.as_ref();
        let problems = arguments.err().map(Vec::as_slice).unwrap_or_default();
        let error = match self.call.syntax {
            Syntax::Block => problems.first().map(|first| first.message.clone()),
            Syntax::Emoji => {
                let messages: Vec<&str> = problems.iter().map(|one| &*one.message).collect();
                Some(messages.join("; ")).filter(|_| !problems.is_empty())
            }
        };
        let fields = self.call.fields(arguments.ok(), error.as_deref());
        serializer.collect_map(fields)
    }
}
