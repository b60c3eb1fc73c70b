//! A complete tool call.

use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::sync::Arc;

use plaincall_syntax::{Span, Syntax, Termination, is_blank};

use crate::outside::Before;
use plaincall_tool::Arguments;
use plaincall_tool::ReplyDiagnostic;
use plaincall_tool::ToolSpec;
use plaincall_tool::arguments::Text;
use plaincall_tool::bind::emoji::{EmojiParts, Line};
use plaincall_tool::limits::DEEPEST;
use plaincall_tool::pointer::PointerError;

/// A tool call as written, with its diagnostics.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolCall {
    /// The header. The call dereferences to it.
    pub header: Arc<CallHeader>,
    /// The arguments of a block call, as far as they could be placed. For an emoji call, use [`bind`](crate::bind).
    pub arguments: Arguments,
    /// How the call ended.
    pub termination: Termination,
    /// The location, from the start marker to the end.
    pub span: Span,
    /// Diagnostics inside the call, ordered by the ends of their spans.
    pub diagnostics: Vec<ReplyDiagnostic>,
    /// The first error of the arguments in text order (`spec/block.md` 7.6). A call with such an error never runs.
    pub parse_error: Option<String>,
    /// Whether a value contains a whole marker. If the call is also truncated, it may contain other calls.
    pub marker_in_value: bool,
    /// The number of warnings over the limit, which were counted and not kept.
    pub omitted_warnings: usize,
    pub(crate) text: CallText,
    /// The text and calls before it in the reply.
    pub(crate) before: Arc<Before>,
}

/// The header of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallHeader {
    /// The index in order of appearance, from 0, over all turns of a conversation.
    pub index: usize,
    /// The syntax.
    pub syntax: Syntax,
    /// The name of the tool, as written.
    #[doc(alias = "gadgetName")]
    pub name: String,
    /// The id, written or assigned.
    #[doc(alias = "invocationId")]
    pub id: String,
    /// Whether the id was assigned, not written.
    pub is_id_automatic: bool,
    /// Whether an earlier call of the same turn has the same id.
    pub is_duplicate: bool,
    /// The ids it depends on, each once, in the order written.
    pub dependencies: Vec<String>,
    /// The text after the name in the header of an emoji call, verbatim; `None` in the block syntax.
    pub raw_args: Option<String>,
    /// The location of the start marker and the header.
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CallText {
    pub(crate) source: Arc<String>,
    pub(crate) is_incomplete: bool,
    pub(crate) inside: Range<usize>,
    pub(crate) raw_args_span: Span,
    pub(crate) body: Option<Body>,
    /// Whether its own end marker is in mid-line.
    pub(crate) ends_in_mid_line: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) text: Text,
    pub(crate) span: Span,
}

impl ToolCall {
    /// Returns `true` if its own end marker or the start of the next call ended it, not the end of the text.
    pub fn is_closed(&self) -> bool {
        self.termination != Termination::EndOfStream
    }

    pub(crate) fn has_lasting_error(&self) -> bool {
        let mut errors = self
            .diagnostics
            .iter()
            .filter(|one| one.is_argument_error());
        errors.any(|error| !PointerError::is_fixable(error.code))
    }

    /// Returns the arguments placed for a tool as far as possible, and the errors in the text of the call.
    pub(crate) fn placed_for(&self, tool: &ToolSpec) -> (Cow<'_, Arguments>, Vec<ReplyDiagnostic>) {
        let lasting =
            |problem: &ReplyDiagnostic| self.arguments.unplaced_at(problem.span).is_none();
        let mut problems: Vec<ReplyDiagnostic> = problems_of_text(self).filter(lasting).collect();
        if problems.is_empty() && self.arguments.unplaced.is_empty() {
            return (Cow::Borrowed(&self.arguments), problems);
        }
        // Pointers over the limit of depth have an error that no schema can fix.
        let (placed, misplaced) = self.arguments.placed_for(tool, DEEPEST);
        problems.extend(misplaced.into_iter().map(|(leaf, error)| {
            let pointer = before_blank(error.code, &leaf.pointer);
            ReplyDiagnostic::of_definition(error.code, pointer, leaf.pointer_span, error.message)
        }));
        problems.sort_by_key(|problem| problem.span.end);
        (Cow::Owned(placed), problems)
    }

    #[doc(hidden)]
    /// Returns the arguments placed by the schema of the tool, if that fixes all errors of the call.
    pub fn fixed(&self, tool: &ToolSpec) -> Option<Arguments> {
        let (placed, problems) = self.placed_for(tool);
        problems.is_empty().then(|| placed.into_owned())
    }

    /// Returns the exact text of the call with its markers; `None` if parts were over a limit and not kept.
    pub fn source(&self) -> Option<&str> {
        Some(self.text.source.as_str()).filter(|_| !self.text.is_incomplete)
    }

    /// Returns the source between the header and the end of the call, without parts over a limit.
    #[doc(alias = "parametersRaw")]
    pub fn raw(&self) -> &str {
        self.text
            .source
            .get(self.text.inside.clone())
            .unwrap_or_default()
    }

    /// Returns the body of an emoji call; `None` in the block syntax.
    pub fn body(&self) -> Option<&str> {
        match (&self.text.body, self.syntax) {
            (Some(body), _) => Some(self.text.get(&body.text)),
            (None, Syntax::Emoji) => Some(""),
            (None, Syntax::Block) => None,
        }
    }

    /// Returns the location of the body.
    pub fn body_span(&self) -> Option<Span> {
        self.text.body.as_ref().map(|body| body.span)
    }

    /// Returns the location of the raw arguments of an emoji call.
    pub fn raw_args_span(&self) -> Option<Span> {
        self.raw_args.as_ref().map(|_| self.text.raw_args_span)
    }

    #[doc(hidden)]
    /// Returns the texts of an emoji call.
    pub fn emoji_parts(&self) -> EmojiParts<'_> {
        let end = Span::new(self.span.end, self.span.end);
        EmojiParts {
            line: Line {
                text: self.raw_args.as_deref().unwrap_or_default(),
                span: self.raw_args_span().unwrap_or_default(),
            },
            body: Line {
                text: self.body().unwrap_or_default(),
                span: self.body_span().unwrap_or(end),
            },
            has_marker: self.marker_in_value,
        }
    }
}

impl Deref for ToolCall {
    type Target = CallHeader;

    fn deref(&self) -> &CallHeader {
        &self.header
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

pub(crate) fn problems_of_text(call: &ToolCall) -> impl Iterator<Item = ReplyDiagnostic> {
    let spoiled = call
        .diagnostics
        .iter()
        .filter(|one| one.is_argument_error());
    spoiled.map(|diagnostic| {
        let pointer = call.arguments.misplaced_at(diagnostic.span);
        let pointer = before_blank(diagnostic.code, pointer.unwrap_or_default());
        let (code, message) = (diagnostic.code, diagnostic.message.clone());
        ReplyDiagnostic::of_definition(code, pointer, diagnostic.span, message)
    })
}

/// Returns the pointer of an error; text after a blank on a pointer line is not part of it.
fn before_blank<'p>(code: &str, pointer: &'p str) -> &'p str {
    let end = pointer
        .find(is_blank)
        .filter(|_| code == "value_on_pointer_line");
    pointer
        .get(..end.unwrap_or(pointer.len()))
        .unwrap_or_default()
}
