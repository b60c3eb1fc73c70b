//! A complete text with its calls.

use plaincall_syntax::{
    Dialect, DialectError, Event, EventKind, NearMiss, Span, Syntax, Termination, near_misses,
};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeStruct, Serializer};

use crate::CallError;
use crate::DecidedCall;
use crate::ReplyCheck;
use crate::Stop;
use crate::ToolCall;
use crate::leading::LeadingReasoning;
use crate::{ReplyItem, ReplyReader};
use plaincall_names::Unclosed;
use plaincall_tool::{Arguments, Limits, NoTools, ReplyDiagnostic, ToolLookup};

/// A complete text and its calls: the output of `plaincall parse` (`spec/common.md` 11).
///
/// ```
/// use plaincall_reply::Document;
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
    /// All diagnostics, ordered by the ends of their spans: those of the text that no definition resolves, and those of the
    /// definitions.
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
    Call(Box<DecidedCall>),
}

impl Document {
    /// Parses a complete text without definitions of tools, as one whose end is not known ([`Stop::Broken`]).
    ///
    /// # Errors
    /// Returns an error for an invalid dialect. Any text can be parsed.
    pub fn parse(text: &str, dialect: &Dialect) -> Result<Self, DialectError> {
        let check = ReplyCheck::new(dialect, Unclosed::Reject)?;
        Self::read(text, dialect, NoTools, check, Stop::Broken)
    }

    /// Reads a complete text, and decides about its calls: with definitions of tools, each is validated against its own. `stop` is how
    /// the text ended. Bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn read(
        text: impl AsRef<[u8]>,
        dialect: &Dialect,
        tools: impl ToolLookup,
        check: ReplyCheck,
        stop: Stop,
    ) -> Result<Self, DialectError> {
        let mut reader = DocumentReader::new(dialect, tools, check, Limits::for_reading())?;
        reader.feed(text);
        Ok(reader.finish(stop))
    }

    /// Returns the calls as written, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.decided().map(|read| &*read.call)
    }

    /// Returns the calls with the decisions about them, in order.
    pub fn decided(&self) -> impl Iterator<Item = &DecidedCall> {
        self.segments.iter().filter_map(Segment::call)
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
                Some(Segment::Call(read)) => {
                    miss.format.is_none() || read.call.termination != Termination::Explicit
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
            Self::Call(read) => read.call.span,
        }
    }

    fn call(&self) -> Option<&DecidedCall> {
        match self {
            Self::Call(read) => Some(read),
            Self::Text { .. } | Self::Reasoning { .. } => None,
        }
    }

    fn call_mut(&mut self) -> Option<&mut DecidedCall> {
        match self {
            Self::Call(read) => Some(read),
            Self::Text { .. } | Self::Reasoning { .. } => None,
        }
    }
}

/// Reads a complete text that arrives in chunks, and returns it as a [`Document`].
///
/// ```
/// use plaincall_reply::document::DocumentReader;
/// use plaincall_tool::{Limits, NoTools};
/// use plaincall_reply::{ReplyCheck, Stop, Unclosed};
/// use plaincall_syntax::Dialect;
///
/// let dialect = Dialect::block();
/// let check = ReplyCheck::new(&dialect, Unclosed::Reject)?;
/// let mut reader = DocumentReader::new(&dialect, NoTools, check, Limits::for_reading())?;
/// reader.feed("!!!GADGET_START:read\n!!!ARG:pa");
/// reader.feed("th\na.txt");
/// // The end of the text may be missing.
/// let document = reader.finish(Stop::Length);
/// assert!(!document.decided().next().expect("a call").may_run());
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DocumentReader<T> {
    reader: ReplyReader<T>,
    building: Building,
}

#[derive(Clone, Debug)]
struct Building {
    document: Document,
    in_call: bool,
    leading: LeadingReasoning,
}

impl<T: ToolLookup> DocumentReader<T> {
    /// Creates a reader for one text in `dialect`. If there are definitions of tools, each call is validated against them.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn new(
        dialect: &Dialect,
        tools: T,
        check: ReplyCheck,
        limits: Limits,
    ) -> Result<Self, DialectError> {
        Ok(Self {
            reader: ReplyReader::new(dialect, tools, check, limits)?.with_events(),
            building: Building {
                document: Document {
                    syntax: dialect.syntax(),
                    segments: Vec::new(),
                    diagnostics: Vec::new(),
                },
                in_call: false,
                leading: LeadingReasoning::of(dialect),
            },
        })
    }

    /// Reads the next chunk: text, or bytes that may split a character. Bytes that are not UTF-8 are replaced.
    pub fn feed(&mut self, chunk: impl AsRef<[u8]>) {
        for item in self.reader.feed(chunk.as_ref()) {
            self.building.push(item);
        }
    }

    /// Ends the text. `stop` is how it ended.
    pub fn finish(mut self, stop: Stop) -> Document {
        for item in self.reader.finish(stop).items {
            self.building.push(item);
        }
        let mut document = self.building.document;
        let calls = document.segments.iter().filter_map(Segment::call);
        let problems = calls.flat_map(DecidedCall::problems).cloned();
        document.diagnostics.extend(problems.collect::<Vec<_>>());
        document
            .diagnostics
            .sort_by_key(|diagnostic| diagnostic.span.end);
        document
    }
}

impl<T: ToolLookup + Clone> DocumentReader<T> {
    /// Reads a complete text with a copy of this reader.
    pub fn read(&self, text: impl AsRef<[u8]>, stop: Stop) -> Document {
        let mut reader = self.clone();
        reader.feed(text);
        reader.finish(stop)
    }
}

impl Building {
    fn push(&mut self, item: ReplyItem<'_>) {
        match item {
            ReplyItem::CallStart(header) => {
                self.in_call = true;
                self.document.syntax.get_or_insert(header.syntax);
            }
            ReplyItem::Event(event) => self.event(&event),
            ReplyItem::Call(read) => {
                self.in_call = false;
                let diagnostics = read.call.diagnostics.iter();
                let diagnostics = diagnostics.filter(|one| !read.resolves(one)).cloned();
                self.document.diagnostics.extend(diagnostics);
                self.document.segments.push(Segment::Call(read));
            }
            ReplyItem::MaybeReasoning { from, error } => self.reject_from(from, &error),
            _ => {}
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        let in_reasoning = self.leading.push(event);
        self.document.diagnostics.extend(in_reasoning);
        if self.in_call {
            return;
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

    /// Rejects the calls from this index on, which may be part of reasoning. No call of a whole text has started.
    fn reject_from(&mut self, from: usize, error: &CallError) {
        let calls = self.document.segments.iter_mut().rev();
        let calls = calls.filter_map(Segment::call_mut);
        for call in calls.take_while(|read| read.call.index >= from) {
            call.reject(error);
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
        let mut fields = serializer.serialize_map(None)?;
        let span = self.span();
        let kind = match self {
            Self::Text { .. } => "text",
            Self::Reasoning { .. } => "reasoning",
            Self::Call(_) => "call",
        };
        fields.serialize_entry("type", kind)?;
        fields.serialize_entry("span", &(span.start, span.end))?;
        match self {
            Self::Text { text, .. } | Self::Reasoning { text, .. } => {
                fields.serialize_entry("text", text)?;
            }
            Self::Call(read) => {
                fields.serialize_entry("termination", read.call.termination.name())?;
                fields.serialize_entry("call", read)?;
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
                (
                    "raw_args",
                    text(self.raw_args.as_deref().unwrap_or_default()),
                ),
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
