//! A complete text with its calls.

pub(crate) mod bound;

pub use bound::{BoundCall, BoundDocument};

use std::sync::Arc;

use plaincall_syntax::{
    Dialect, DialectError, Event, EventKind, NearMiss, Parser, Span, Syntax, Termination,
    near_misses,
};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeStruct, Serializer};

use crate::arguments::Arguments;
use crate::call::ToolCall;
use crate::collector::{Collected, Collector};
use crate::leading::LeadingReasoning;
use crate::limits::Limits;
use crate::outside::Outside;
use crate::reply_diagnostic::ReplyDiagnostic;

/// A complete text and its calls: the output of `plaincall parse` (`spec/common.md` 11).
///
/// ```
/// use plaincall_call::Document;
/// use plaincall_syntax::Dialect;
///
/// let text = "Look.\n!!!GADGET_START:ReadFile\n!!!ARG:path\na.txt\n!!!GADGET_END\n";
/// let document = Document::parse(text, &Dialect::block())?;
/// let call = document.calls().next().expect("one call");
/// assert_eq!(call.name, "ReadFile");
/// assert_eq!(call.arguments.get("path"), Some("a.txt"));
/// assert!(serde_json::to_string(&document)?.starts_with(r#"{"syntax":"block","segments":[{"type":"text","span":[0,6]"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Document {
    /// The syntax of the dialect; in the automatic dialect that of the first call, or `None` if there is no call.
    pub syntax: Option<Syntax>,
    /// The parts of the text, in order. Their spans cover it without gaps.
    pub segments: Vec<Segment>,
    /// All diagnostics, ordered by the ends of their spans.
    pub diagnostics: Vec<ReplyDiagnostic>,
}

/// A part of a [`Document`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Segment {
    /// Text outside calls. Adjacent pieces are joined.
    Text {
        /// The location.
        span: Span,
        /// The text. The backslash of an escape is in the span but not in the text.
        text: String,
    },
    /// Reasoning. Adjacent pieces are joined.
    Reasoning {
        /// The location, including the markers.
        span: Span,
        /// The text between the markers.
        text: String,
    },
    /// A call.
    Call(Box<ToolCall>),
}

impl Document {
    /// Parses a complete text.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect. Any text can be parsed.
    pub fn parse(text: &str, dialect: &Dialect) -> Result<Self, DialectError> {
        let mut parser = Parser::new(dialect)?;
        let mut builder = DocumentBuilder::new(dialect, Limits::for_reading());
        for event in parser.feed(text) {
            builder.push(&event);
        }
        for event in parser.finish() {
            builder.push(&event);
        }
        Ok(builder.finish())
    }

    /// Returns the calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Call(call) => Some(&**call),
            Segment::Text { .. } | Segment::Reasoning { .. } => None,
        })
    }

    /// Returns the near misses in `text`, which must be the text of this document (`spec/common.md` 9). Reasoning is
    /// skipped, and so are calls in other formats inside a call that has an end marker.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn near_misses(
        &self,
        text: &str,
        dialect: &Dialect,
    ) -> Result<Vec<NearMiss>, DialectError> {
        let dialect = match self.syntax {
            Some(syntax) => dialect.for_syntax(syntax),
            None => dialect.clone(),
        };
        let mut near = near_misses(text, &dialect)?;
        near.retain(|miss| {
            let behind = self
                .segments
                .partition_point(|segment| segment.span().start <= miss.span.start);
            let segment = behind.checked_sub(1).and_then(|at| self.segments.get(at));
            match segment {
                Some(Segment::Reasoning { .. }) => false,
                Some(Segment::Call(call)) => {
                    miss.format.is_none() || call.termination != Termination::Explicit
                }
                Some(Segment::Text { .. }) | None => true,
            }
        });
        Ok(near)
    }
}

impl Segment {
    /// Returns the location.
    pub fn span(&self) -> Span {
        match self {
            Self::Text { span, .. } | Self::Reasoning { span, .. } => *span,
            Self::Call(call) => call.span,
        }
    }
}

/// Assembles a [`Document`] from parser events.
#[derive(Clone, Debug)]
pub struct DocumentBuilder {
    collector: Collector,
    document: Document,
    in_call: bool,
    leading: LeadingReasoning,
    /// The marker that closes reasoning.
    close: Option<Arc<str>>,
}

impl DocumentBuilder {
    /// Creates a builder for one text in `dialect`.
    pub fn new(dialect: &Dialect, limits: Limits) -> Self {
        Self {
            // A parser has refused a dialect that is not valid.
            collector: Collector::new(limits).with_outside(Outside::new(dialect).ok()),
            close: dialect.reasoning_markers().map(|[_, close]| close.into()),
            document: Document {
                syntax: dialect.syntax(),
                segments: Vec::new(),
                diagnostics: Vec::new(),
            },
            in_call: false,
            leading: LeadingReasoning::of(dialect),
        }
    }

    /// Processes the parser's next event.
    pub fn push(&mut self, event: &Event<'_>) {
        let in_reasoning = self.leading.push(event);
        self.document.diagnostics.extend(in_reasoning);
        match self.collector.push(event) {
            Some(Collected::Started(header)) => {
                self.in_call = true;
                self.document.syntax.get_or_insert(header.syntax);
                return;
            }
            Some(Collected::Finished(call)) => {
                self.in_call = false;
                self.document
                    .diagnostics
                    .extend(call.diagnostics.iter().cloned());
                self.document.segments.push(Segment::Call(call));
                return;
            }
            Some(Collected::MaybeReasoning(from)) => self.reject_from(from),
            None if self.in_call => return,
            None => {}
        }
        match &event.kind {
            EventKind::Text(piece) => self.text(event.span, piece),
            EventKind::Reasoning(piece) => self.reasoning(event.span, piece),
            // Outside calls only an escape ignores a backslash, and markers contain none.
            EventKind::Ignored(piece) if piece.contains('\\') => self.text(event.span, ""),
            EventKind::Ignored(_) => self.reasoning(event.span, ""),
            EventKind::Diagnostic(diagnostic) => {
                self.document
                    .diagnostics
                    .push(ReplyDiagnostic::from(diagnostic));
            }
            _ => {}
        }
    }

    /// Finishes the document.
    pub fn finish(mut self) -> Document {
        if let Some(Collected::MaybeReasoning(from)) = self.collector.finish() {
            self.reject_from(from);
        }
        let mut document = self.document;
        document
            .diagnostics
            .sort_by_key(|diagnostic| diagnostic.span.end);
        document
    }

    /// Marks the calls from this index on as calls that may be part of reasoning.
    fn reject_from(&mut self, from: usize) {
        for segment in self.document.segments.iter_mut().rev() {
            match segment {
                Segment::Call(call) if call.index < from => break,
                Segment::Call(call) => call.maybe_reasoning.clone_from(&self.close),
                _ => {}
            }
        }
    }

    fn text(&mut self, more: Span, piece: &str) {
        if let Some(Segment::Text { span, text }) = self.document.segments.last_mut() {
            span.end = more.end;
            text.push_str(piece);
        } else {
            let (span, text) = (more, piece.to_owned());
            self.document.segments.push(Segment::Text { span, text });
        }
    }

    fn reasoning(&mut self, more: Span, piece: &str) {
        if let Some(Segment::Reasoning { span, text }) = self.document.segments.last_mut() {
            span.end = more.end;
            text.push_str(piece);
        } else {
            let (span, text) = (more, piece.to_owned());
            self.document
                .segments
                .push(Segment::Reasoning { span, text });
        }
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Document", 3)?;
        fields.serialize_field("syntax", &self.syntax.map(Syntax::name))?;
        fields.serialize_field("segments", &self.segments)?;
        fields.serialize_field("diagnostics", &self.diagnostics)?;
        fields.end()
    }
}

impl Serialize for Segment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SegmentLine(self, None).serialize(serializer)
    }
}

/// A segment in JSON; for a call, optionally with its bound arguments.
pub(crate) struct SegmentLine<'s>(pub(crate) &'s Segment, pub(crate) Option<&'s BoundCall<'s>>);

impl Serialize for SegmentLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(segment, bound) = self;
        let mut fields = serializer.serialize_map(None)?;
        let span = segment.span();
        let kind = match segment {
            Segment::Text { .. } => "text",
            Segment::Reasoning { .. } => "reasoning",
            Segment::Call(_) => "call",
        };
        fields.serialize_entry("type", kind)?;
        fields.serialize_entry("span", &(span.start, span.end))?;
        match segment {
            Segment::Text { text, .. } | Segment::Reasoning { text, .. } => {
                fields.serialize_entry("text", text)?;
            }
            Segment::Call(call) => {
                fields.serialize_entry("termination", call.termination.name())?;
                match bound {
                    Some(bound) => fields.serialize_entry("call", bound)?,
                    None => fields.serialize_entry("call", call)?,
                }
            }
        }
        fields.end()
    }
}

/// Writes the keys of `spec/block.md` 8 or `spec/emoji.md`, wire form.
impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let error = self.parse_error.as_deref();
        let arguments =
            Some(&self.arguments).filter(|_| self.syntax == Syntax::Block && error.is_none());
        let error = error.filter(|_| self.syntax == Syntax::Block);
        serializer.collect_map(self.fields(arguments, error))
    }
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Field<'c> {
    Text(&'c str),
    Ids(&'c [String]),
    Arguments(&'c Arguments),
}

impl ToolCall {
    /// Writes the keys of the wire form, with the known arguments and their errors.
    pub(crate) fn fields<'c>(
        &'c self,
        arguments: Option<&'c Arguments>,
        error: Option<&'c str>,
    ) -> impl Iterator<Item = (&'static str, Field<'c>)> {
        let text = |text: &'c str| Some(Field::Text(text));
        let arguments = arguments.map(Field::Arguments);
        let error = error.map(Field::Text);
        let fields = match self.syntax {
            Syntax::Block => [
                ("gadgetName", text(&self.name)),
                ("invocationId", text(&self.id)),
                ("dependencies", Some(Field::Ids(&self.dependencies))),
                ("parameters", arguments),
                ("parametersRaw", text(self.raw())),
                ("parseError", error),
            ],
            Syntax::Emoji => [
                ("tool_name", text(&self.name)),
                ("raw_args", text(self.raw_args().unwrap_or_default())),
                ("body", text(self.body().unwrap_or_default())),
                ("arguments", arguments),
                ("argumentsError", error),
                ("", None),
            ],
        };
        let fields = fields.into_iter();
        fields.filter_map(|(name, field)| Some((name, field?)))
    }
}
