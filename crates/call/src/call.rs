//! A tool call that has been read whole.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use plaincall_syntax::{Span, Syntax, Termination, is_blank};

use crate::arguments::{Arguments, Text};
use crate::limits::DEEPEST;
use crate::pointer::PointerError;
use crate::reply_diagnostic::ReplyDiagnostic;
use crate::tool::ToolSpec;

/// A tool call as it was written, with everything found about it.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Its place in the order of appearance, from 0, over all turns that one [`Collector`](crate::collector::Collector) reads.
    pub index: usize,
    /// The syntax it is written in.
    pub syntax: Syntax,
    /// The name of the tool, as written.
    #[doc(alias = "gadgetName")]
    pub name: String,
    /// Its id, written or given.
    #[doc(alias = "invocationId")]
    pub id: String,
    /// Whether the id was given, not written.
    pub is_id_automatic: bool,
    /// Whether an earlier call of the same turn has the same id.
    pub is_duplicate: bool,
    /// The ids it depends on, each once, in the order written.
    pub dependencies: Vec<String>,
    /// The arguments of a block call, as far as they could be placed. Those of an emoji call come from
    /// [`bind`](crate::bind).
    pub arguments: Arguments,
    /// How it ended.
    pub termination: Termination,
    /// From its start marker to its end.
    pub span: Span,
    /// The start marker and the header.
    pub header_span: Span,
    /// Everything found inside it, in the order in which the diagnostics' spans end.
    pub diagnostics: Vec<ReplyDiagnostic>,
    /// The first error of its arguments in text order (`spec/block.md` 7.6). A call that has one is never run.
    pub parse_error: Option<String>,
    /// Whether a whole marker stands in it as content. If the call was cut off too, it may have swallowed others.
    pub marker_in_value: bool,
    /// Warnings that were counted and not kept, because there were more than the limit.
    pub warnings_left_out: usize,
    pub(crate) text: CallText,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CallText {
    pub(crate) source: Arc<String>,
    /// Whether the source lacks parts that were over a limit.
    pub(crate) is_cut: bool,
    /// What stands between header and end marker.
    pub(crate) inside: Range<usize>,
    pub(crate) raw_args: Option<String>,
    /// Where the raw arguments stand in the input.
    pub(crate) raw_args_span: Span,
    pub(crate) body: Option<Body>,
}

#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) text: Text,
    pub(crate) span: Span,
}

impl ToolCall {
    /// Whether the call ended by its own end marker or by the start of the next call, not by the end of the text.
    pub fn is_closed(&self) -> bool {
        self.termination != Termination::EndOfStream
    }

    /// Whether it has an error that no schema can mend.
    pub(crate) fn has_lasting_error(&self) -> bool {
        let mut errors = self.diagnostics.iter().filter(|one| one.spoils_arguments());
        errors.any(|error| !PointerError::is_fixable(error.code))
    }

    /// The arguments as far as they can be placed for a tool, and what is wrong with the text of the call.
    pub(crate) fn placed_for(&self, tool: &ToolSpec) -> (Cow<'_, Arguments>, Vec<ReplyDiagnostic>) {
        let lasting =
            |problem: &ReplyDiagnostic| self.arguments.unplaced_at(problem.span).is_none();
        let mut problems: Vec<ReplyDiagnostic> = problems_of_text(self).filter(lasting).collect();
        if problems.is_empty() && self.arguments.unplaced.is_empty() {
            return (Cow::Borrowed(&self.arguments), problems);
        }
        // Deeper pointers than the limit have an error that no schema mends.
        let (placed, misplaced) = self.arguments.placed_for(tool, DEEPEST);
        problems.extend(misplaced.into_iter().map(|(leaf, error)| {
            let pointer = before_blank(error.code, &leaf.pointer);
            ReplyDiagnostic::new(error.code, pointer, leaf.pointer_span, error.message)
        }));
        problems.sort_by_key(|problem| problem.span.end);
        (Cow::Owned(placed), problems)
    }

    /// The arguments as the schema of the tool places them, if that mends all errors that the call has.
    pub(crate) fn fixed(&self, tool: &ToolSpec) -> Option<Arguments> {
        let (placed, problems) = self.placed_for(tool);
        problems.is_empty().then(|| placed.into_owned())
    }

    /// The exact text of the call, markers included; `None` if parts of it were over a limit and not kept.
    pub fn source(&self) -> Option<&str> {
        Some(self.text.source.as_str()).filter(|_| !self.text.is_cut)
    }

    /// The source between the header and the end of the call, less what was over a limit.
    #[doc(alias = "parametersRaw")]
    pub fn raw(&self) -> &str {
        self.text
            .source
            .get(self.text.inside.clone())
            .unwrap_or_default()
    }

    /// What stands behind the name in the header of an emoji call, verbatim; `None` in the block syntax.
    pub fn raw_args(&self) -> Option<&str> {
        self.text.raw_args.as_deref()
    }

    /// The body of an emoji call; `None` in the block syntax.
    pub fn body(&self) -> Option<&str> {
        match (&self.text.body, self.syntax) {
            (Some(body), _) => Some(self.text.get(&body.text)),
            (None, Syntax::Emoji) => Some(""),
            (None, Syntax::Block) => None,
        }
    }

    /// Where the body stands in the input.
    pub fn body_span(&self) -> Option<Span> {
        self.text.body.as_ref().map(|body| body.span)
    }

    /// Where the raw arguments of an emoji call stand in the input.
    pub fn raw_args_span(&self) -> Option<Span> {
        self.text.raw_args.as_ref().map(|_| self.text.raw_args_span)
    }
}

impl CallText {
    pub(crate) fn get<'t>(&'t self, text: &'t Text) -> &'t str {
        match text {
            Text::Source(range) => self.source.get(range.clone()).unwrap_or_default(),
            Text::Own(text) => text,
        }
    }
}

/// What is wrong with a call before any definition is looked at.
pub(crate) fn problems_of_text(call: &ToolCall) -> impl Iterator<Item = ReplyDiagnostic> {
    let spoiled = call.diagnostics.iter().filter(|one| one.spoils_arguments());
    spoiled.map(|diagnostic| {
        let pointer = call.arguments.misplaced_at(diagnostic.span);
        let pointer = before_blank(diagnostic.code, pointer.unwrap_or_default());
        let (code, message) = (diagnostic.code, diagnostic.message.clone());
        ReplyDiagnostic::new(code, pointer, diagnostic.span, message)
    })
}

/// The pointer of a problem; what stands behind a blank on a pointer line is none.
fn before_blank<'p>(code: &str, pointer: &'p str) -> &'p str {
    let end = pointer
        .find(is_blank)
        .filter(|_| code == "value_on_pointer_line");
    pointer
        .get(..end.unwrap_or(pointer.len()))
        .unwrap_or_default()
}
