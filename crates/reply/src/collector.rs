//! Assembles tool calls from parser events.

pub use crate::ids::{Assigned, Ids};

use std::collections::HashSet;
use std::sync::Arc;

use plaincall_syntax::{
    Code, Diagnostic, Event, EventKind, Header, Section, Severity, Slot, Span, Termination,
};

use crate::call::{Body, CallText};
use crate::outside::Outside;
use crate::{CallHeader, ToolCall};
use plaincall_tool::{
    Arguments, ConversionRule, Limits, ReplyDiagnostic,
    arguments::{Leaf, Text},
    invisible::in_name,
    pointer::{PointerError, shown},
    text_type::TextType,
};

/// The space that is reserved for the text of a call, in bytes: most calls need no more.
const USUAL_CALL: usize = 256;

/// Assembles tool calls from parser events.
///
/// It assigns ids, places the arguments and keeps diagnostics. It holds one call at a time.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    limits: Limits,
    ids: Ids,
    calls: usize,
    open: Option<Open>,
    /// Boxed, because futures that read replies hold several collectors.
    outside: Option<Box<Outside>>,
    /// The first call that a stray close marker of reasoning makes doubtful (`spec/common.md` 5.2).
    doubtful_from: usize,
}

/// A new or finished call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Collected {
    /// A call begins: its header is known.
    Started(Arc<CallHeader>),
    /// A call is complete.
    Finished(Box<ToolCall>),
    /// A close marker of reasoning without an open marker: the calls from this index on may be part of the reasoning.
    MaybeReasoning(usize),
}

#[derive(Clone, Debug)]
struct Open {
    limits: Limits,
    /// The call so far, without its source.
    call: Box<ToolCall>,
    source: String,
    begun: usize,
    value: Option<OpenValue>,
    warnings: usize,
    /// Bytes of the source outside values and outside lines with limits of their own.
    loose: usize,
}

#[derive(Clone, Debug)]
struct OpenValue {
    pointer: Option<Arc<str>>,
    line: Span,
    text: OpenText,
    span: Span,
    len: usize,
    is_wrong: bool,
}

#[derive(Clone, Debug)]
enum OpenText {
    Source { start: usize, end: usize },
    Own(String),
}

impl Collector {
    /// Creates a collector for one conversation.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Also reads the text outside calls, on which the decision about the calls depends.
    pub(crate) fn with_outside(mut self, outside: Outside) -> Self {
        self.outside = Some(Box::new(outside));
        self
    }

    /// Ends the reply. Returns the same as [`push`](Self::push).
    pub(crate) fn finish(&mut self) -> Option<Collected> {
        let is_stray = self.outside.as_deref_mut().is_some_and(Outside::finish);
        is_stray.then(|| self.stray_close()).flatten()
    }

    pub(crate) fn is_after_broken_start(&self) -> bool {
        self.outside.as_deref().is_some_and(Outside::is_broken)
    }

    fn stray_close(&mut self) -> Option<Collected> {
        let from = std::mem::replace(&mut self.doubtful_from, self.calls);
        (from < self.calls).then_some(Collected::MaybeReasoning(from))
    }

    fn outside(&mut self, event: &Event<'_>) -> Option<Collected> {
        match &event.kind {
            EventKind::Diagnostic(found) if found.code == Code::StrayReasoningOpen => {
                self.doubtful_from = self.calls;
            }
            _ => {}
        }
        let is_stray = self.outside.as_mut()?.push(event);
        is_stray.then(|| self.stray_close()).flatten()
    }

    /// Begins the next turn of the conversation: ids may be used again, numbering continues.
    ///
    /// Drops a call that the previous turn left open.
    pub fn begin_turn(&mut self) {
        self.ids.begin_turn();
        self.open = None;
        self.doubtful_from = self.calls;
        if let Some(outside) = &mut self.outside {
            outside.begin_reply();
        }
    }

    /// Returns the number of calls that have begun, over all turns.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Processes the parser's next event.
    pub fn push(&mut self, event: &Event<'_>) -> Option<Collected> {
        if let EventKind::CallStart(header) = &event.kind {
            return Some(Collected::Started(self.start(header, event.span)));
        }
        let Some(open) = &mut self.open else {
            return self.outside(event);
        };
        match &event.kind {
            EventKind::ValueStart(slot) => open.begin_value(slot, event),
            EventKind::ValueDelta(piece) => open.add(piece, event.span),
            EventKind::ValueEnd => open.end_value(event),
            EventKind::Ignored(piece) => open.ignore(piece, event.span),
            EventKind::Diagnostic(diagnostic) => open.note(diagnostic),
            EventKind::CallEnd(ending) => {
                let call = self.open.take()?.finish(ending.termination(), event);
                return Some(Collected::Finished(call));
            }
            _ => {}
        }
        None
    }

    fn start(&mut self, header: &Header<'_>, span: Span) -> Arc<CallHeader> {
        let Assigned {
            id,
            is_automatic,
            is_duplicate,
        } = self.ids.assign(header.syntax(), header.id());
        let mut diagnostics = Vec::new();
        if is_duplicate {
            let message = format!("an earlier call has the id `{id}`; the id refers to that call");
            let (code, section) = (ReplyDiagnostic::DUPLICATE_ID, Section::Ids);
            diagnostics.push(ReplyDiagnostic::error(code, section, span, message));
        }
        let names = [header.name(), &id].into_iter();
        if let Some(message) = names.chain(header.dependencies()).find_map(in_name) {
            let (code, section) = ("invisible_character", Section::Name);
            diagnostics.push(ReplyDiagnostic::error(code, section, span, message));
        }
        let mut seen = HashSet::new();
        let mut dependencies = Vec::new();
        for dependency in header.dependencies().filter(|id| seen.insert(*id)) {
            if dependencies.len() == self.limits.dependencies {
                let message = "Too many dependencies".to_owned();
                let (code, section) = ("too_many_dependencies", Section::Limits);
                diagnostics.push(ReplyDiagnostic::error(code, section, span, message));
                break;
            }
            dependencies.push(dependency.to_owned());
        }
        let started = Arc::new(CallHeader {
            index: self.calls,
            syntax: header.syntax(),
            name: header.name().to_owned(),
            id,
            is_id_automatic: is_automatic,
            is_duplicate,
            dependencies,
            raw_args: header.raw_args().map(str::to_owned),
            span,
        });
        self.calls += 1;
        let before = self.outside.as_deref_mut().map(Outside::call);
        let inside = header.source().len()..header.source().len();
        let call = ToolCall {
            header: Arc::clone(&started),
            arguments: Arguments::default(),
            termination: Termination::EndOfStream,
            span,
            diagnostics,
            parse_error: None,
            marker_in_value: false,
            omitted_warnings: 0,
            text: CallText {
                inside,
                raw_args_span: raw_args_span(header, span),
                ..CallText::default()
            },
            before: before.unwrap_or_default(),
        };
        self.open = Some(Open::new(call, header, self.limits));
        started
    }
}

/// Returns the location of the raw arguments of an emoji call, whose header has this location.
fn raw_args_span(header: &Header<'_>, span: Span) -> Span {
    let Some(raw) = header.raw_args() else {
        return Span::default();
    };
    let source = header.source();
    // If bytes that are not UTF-8 were replaced, locations inside the header are not known.
    if source.len() != span.len() {
        return span;
    }
    let at = span.start + (raw.as_ptr() as usize - source.as_ptr() as usize);
    Span::new(at, at + raw.len())
}

impl Open {
    fn new(call: ToolCall, header: &Header<'_>, limits: Limits) -> Self {
        let mut source = String::with_capacity(header.source().len() + USUAL_CALL);
        source.push_str(header.source());
        Self {
            call: Box::new(call),
            source,
            begun: 0,
            value: None,
            warnings: 0,
            loose: 0,
            limits,
        }
    }

    fn begin_value(&mut self, slot: &Slot<'_>, event: &Event<'_>) {
        let line = event.span;
        let mut is_wrong = false;
        let pointer = match slot {
            Slot::Body => None,
            Slot::Argument(pointer) => {
                self.begun += 1;
                let is_over = self.begun > self.limits.arguments;
                if is_over && self.begun == self.limits.arguments.saturating_add(1) {
                    let message = "Too many arguments".to_owned();
                    ReplyDiagnostic::error("too_many_arguments", Section::Limits, line, message)
                        .insert(&mut self.call.diagnostics);
                }
                is_wrong = is_over;
                let (shown, had_slash) = shown(pointer.as_str());
                if had_slash && !is_over {
                    let message = "the leading `/` of the pointer is ignored".to_owned();
                    let (code, severity) = ("leading_slash", Severity::Warning);
                    self.warn(ReplyDiagnostic::new(
                        code,
                        severity,
                        Section::Pointer,
                        line,
                        message,
                    ));
                }
                Some(if is_over { "".into() } else { shown.into() })
            }
        };
        if is_wrong {
            self.call.text.is_incomplete = true;
        } else {
            self.source.push_str(event.source());
        }
        self.value = Some(OpenValue {
            pointer,
            line,
            text: OpenText::Source {
                start: self.source.len(),
                end: self.source.len(),
            },
            span: Span::new(line.end, line.end),
            len: 0,
            is_wrong,
        });
    }

    fn add(&mut self, piece: &str, span: Span) {
        let Some(value) = &mut self.value else {
            return;
        };
        if value.len == 0 {
            value.span = span;
        }
        value.span.end = span.end;
        value.len = value.len.saturating_add(piece.len());
        let is_too_long = self.limits.value_bytes.is_some_and(|most| value.len > most);
        let is_not_kept = value.pointer.is_some() && self.begun > self.limits.arguments;
        if is_too_long || is_not_kept {
            self.call.text.is_incomplete = true;
            return;
        }
        let at = self.source.len();
        match &mut value.text {
            OpenText::Source { start, end } => {
                if start == end {
                    *start = at;
                    *end = at;
                }
                if *end == at {
                    *end += piece.len();
                } else {
                    // Ignored text is in between, so the value needs a separate text.
                    let mut own = self.source.get(*start..*end).unwrap_or_default().to_owned();
                    own.push_str(piece);
                    value.text = OpenText::Own(own);
                }
            }
            OpenText::Own(own) => own.push_str(piece),
        }
        self.source.push_str(piece);
    }

    fn end_value(&mut self, event: &Event<'_>) {
        let Some(value) = self.value.take() else {
            return;
        };
        let kept = value.pointer.is_none() || self.begun <= self.limits.arguments;
        if kept {
            self.source.push_str(event.source());
        }
        let is_too_long = self.limits.value_bytes.is_some_and(|most| value.len > most);
        let text = match value.text {
            OpenText::Source { start, end } => Text::Source(start..end),
            OpenText::Own(own) => Text::Own(own.into()),
        };
        let Some(pointer) = value.pointer else {
            if is_too_long {
                let error = PointerError::value_too_long("body");
                ReplyDiagnostic::error(error.code, error.section, value.line, error.message)
                    .insert(&mut self.call.diagnostics);
            }
            self.call.text.body = Some(Body {
                text,
                span: value.span,
            });
            return;
        };
        if value.is_wrong {
            return;
        }
        let leaf = Leaf {
            pointer,
            pointer_span: value.line,
            text,
            span: value.span,
            text_type: TextType::Coerced,
            rule: ConversionRule::Undeclared,
        };
        let placed = if is_too_long {
            Err(self
                .call
                .arguments
                .refuse_too_long(&leaf, self.limits.depth()))
        } else {
            self.call.arguments.place(leaf, self.limits.depth())
        };
        if let Err(error) = placed {
            ReplyDiagnostic::error(error.code, error.section, value.line, error.message)
                .insert(&mut self.call.diagnostics);
        }
    }

    fn ignore(&mut self, piece: &str, span: Span) {
        self.loose = self.loose.saturating_add(piece.len());
        if self
            .limits
            .value_bytes
            .is_some_and(|most| self.loose > most)
        {
            self.call.text.is_incomplete = true;
        } else {
            self.source.push_str(piece);
        }
        if let Some(value) = self.value.as_mut().filter(|value| value.len == 0) {
            value.span = Span::new(span.end, span.end);
        }
    }

    fn note(&mut self, found: &Diagnostic) {
        self.call.marker_in_value |= found.code.is_marker_as_content();
        let mut diagnostic = ReplyDiagnostic::from(found);
        if let Some(value) = &mut self.value {
            match found.code {
                Code::PointerTooLong => value.is_wrong = true,
                Code::TruncatedPointer => {
                    value.is_wrong = true;
                    let pointer = value.pointer.as_deref().unwrap_or_default();
                    diagnostic.message = format!("Truncated pointer line: {pointer}");
                }
                _ => {}
            }
        }
        if diagnostic.is_error() {
            diagnostic.insert(&mut self.call.diagnostics);
        } else {
            self.warn(diagnostic);
        }
    }

    fn warn(&mut self, diagnostic: ReplyDiagnostic) {
        if self
            .limits
            .warnings
            .is_some_and(|most| self.warnings >= most)
        {
            self.call.omitted_warnings += 1;
        } else {
            self.warnings += 1;
            diagnostic.insert(&mut self.call.diagnostics);
        }
    }

    fn finish(mut self, termination: Termination, event: &Event<'_>) -> Box<ToolCall> {
        let mut call = self.call;
        call.text.inside.end = self.source.len();
        call.text.ends_in_mid_line =
            termination == Termination::Explicit && !self.source.ends_with('\n');
        self.source.push_str(event.source());
        call.text.source = Arc::new(self.source);
        let mut errors = call.diagnostics.iter();
        let error = errors.find(|diagnostic| diagnostic.is_argument_error());
        call.parse_error = error.map(|diagnostic| diagnostic.message.clone());
        call.arguments = call.arguments.with_source(Arc::clone(&call.text.source));
        call.termination = termination;
        call.span.end = event.span.end;
        call
    }
}
