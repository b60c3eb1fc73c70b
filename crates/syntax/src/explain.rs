//! What each byte of a text is taken for, and why: the parser's events, told as ranges.
//!
//! It reads nothing itself. What an event does not say, such as what ignored bytes are, follows from the events around it.

use std::fmt;
use std::sync::Arc;

use crate::bytes::ByteParser;
use crate::diagnostic::{Code, Diagnostic};
use crate::dialect::{Dialect, DialectError, MarkerUse};
use crate::event::{Event, EventKind, Slot, Syntax, Termination};
use crate::section::{Section, section};
use crate::span::Span;

/// The most characters of a name or pointer that a sentence shows.
const SHOWN: usize = 40;

/// A range of a text, and what it was taken for. It shows itself as a phrase, such as ``the value of `path` ``.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedRange {
    /// Where it is, in bytes. Of no bytes is what only ends there, and a value that is empty.
    pub span: Span,
    /// What it was taken for.
    pub meaning: Meaning,
    /// The section of the specification that says so.
    pub section: Section,
    /// The tool of the call that it belongs to.
    pub call: Option<Arc<str>>,
    /// The pointer of the argument that it belongs to, as written.
    pub argument: Option<Arc<str>>,
}

/// What a range of a text was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// Text outside calls.
    Text,
    /// The marker that opens reasoning.
    ReasoningOpen,
    /// Text inside reasoning.
    Reasoning,
    /// The marker that closes reasoning.
    ReasoningClose,
    /// The input ends inside reasoning.
    ReasoningCutOff,
    /// The backslash of an escape: the marker that it stands in is content.
    Escape,
    /// A whole marker that does not count, by this finding.
    MarkerAsContent(Code, MarkerUse),
    /// A start marker with its header: a call begins.
    CallStart(Syntax),
    /// The same, of a call that its header closes.
    SelfClosingCall,
    /// Blank lines and line ends between a header and the first argument.
    BlankBeforeArgument,
    /// A line with a code fence there.
    FenceBeforeArgument,
    /// Other text there.
    TextBeforeArgument,
    /// An argument marker with its pointer.
    ArgumentStart,
    /// What is left of a pointer line that is too long.
    RestOfPointerLine,
    /// The line end between a header of the emoji syntax and the body.
    LineEndBeforeBody,
    /// The text of an argument.
    Value,
    /// The text of a body.
    Body,
    /// An argument whose text is empty.
    EmptyValue,
    /// An empty body.
    EmptyBody,
    /// The line end directly before the marker that ends a value, or before the end of the input.
    LineEndAfterValue(Option<MarkerUse>),
    /// The marker that ends a call.
    EndMarker(Syntax),
    /// The same of the block syntax, not at the beginning of its line.
    EndMarkerInMidLine,
    /// The next call ends the call before it.
    EndByNextCall,
    /// The input ends inside a call.
    EndOfInput(Syntax),
}

impl Meaning {
    /// Its stable name, as programs read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::ReasoningOpen => "reasoning_open",
            Self::Reasoning => "reasoning",
            Self::ReasoningClose => "reasoning_close",
            Self::ReasoningCutOff => "reasoning_cut_off",
            Self::Escape => "escape",
            Self::MarkerAsContent(..) => "marker_as_content",
            Self::CallStart(_) => "call_start",
            Self::SelfClosingCall => "self_closing_call",
            Self::BlankBeforeArgument => "blank_before_argument",
            Self::FenceBeforeArgument => "fence_before_argument",
            Self::TextBeforeArgument => "text_before_argument",
            Self::ArgumentStart => "argument_start",
            Self::RestOfPointerLine => "rest_of_pointer_line",
            Self::LineEndBeforeBody => "line_end_before_body",
            Self::Value => "value",
            Self::Body => "body",
            Self::EmptyValue => "empty_value",
            Self::EmptyBody => "empty_body",
            Self::LineEndAfterValue(_) => "line_end_after_value",
            Self::EndMarker(_) => "end_marker",
            Self::EndMarkerInMidLine => "end_marker_in_mid_line",
            Self::EndByNextCall => "end_by_next_call",
            Self::EndOfInput(_) => "end_of_input",
        }
    }

    /// The section that says so, where nothing more special does.
    const fn section(self) -> Section {
        match self {
            Self::Text => Section::Text,
            Self::ReasoningOpen
            | Self::Reasoning
            | Self::ReasoningClose
            | Self::ReasoningCutOff => Section::Reasoning,
            Self::Escape => Section::Escape,
            Self::MarkerAsContent(code, usage) => section(code, usage),
            Self::CallStart(Syntax::Block) => Section::Header,
            Self::CallStart(Syntax::Emoji) => Section::EmojiHeader,
            Self::SelfClosingCall => Section::SelfClosing,
            Self::BlankBeforeArgument => Section::Between,
            Self::FenceBeforeArgument => Section::Fence,
            Self::TextBeforeArgument => Section::TextBetween,
            Self::ArgumentStart | Self::Value | Self::EmptyValue | Self::LineEndAfterValue(_) => {
                Section::Value
            }
            Self::RestOfPointerLine => Section::PointerTooLong,
            Self::LineEndBeforeBody | Self::EmptyBody => Section::Body,
            Self::Body | Self::EndMarker(Syntax::Emoji) => Section::BodyEnd,
            Self::EndMarker(Syntax::Block) | Self::EndMarkerInMidLine => Section::EndMarker,
            Self::EndByNextCall => Section::InnerMarker,
            Self::EndOfInput(Syntax::Block) => Section::End,
            Self::EndOfInput(Syntax::Emoji) => Section::MissingEnd,
        }
    }
}

/// Says what each byte of a text was taken for, and which section of the specification says so.
///
/// The ranges that hold bytes tile the input, in order. Bytes that are not UTF-8 are read as [`ByteParser`] reads them.
///
/// ```
/// use plaincall_syntax::{Dialect, explain};
///
/// let ranges = explain(b"!!!GADGET_START:Look\n!!!GADGET_END\n", &Dialect::block())?;
/// let told: Vec<_> = ranges.iter().map(|range| format!("{range} ({})", range.section)).collect();
/// assert_eq!(
///     told,
///     [
///         "start marker and header of the call `Look` (spec/block.md 2.2)",
///         "end marker of the call `Look` (spec/block.md 3.3)",
///         "text outside calls (spec/common.md 4)",
///     ]
/// );
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
///
/// # Errors
/// Refuses a dialect that cannot work. No text is ever refused.
pub fn explain(input: &[u8], dialect: &Dialect) -> Result<Vec<ExplainedRange>, DialectError> {
    let mut explainer = Explainer {
        input,
        dialect,
        ranges: Vec::new(),
        place: if dialect.in_reasoning {
            Place::Reasoning
        } else {
            Place::Text
        },
        marker_left: 0,
        is_empty: false,
        in_fence: false,
        syntax: Syntax::Block,
        call: None,
        argument: None,
    };
    let mut parser = ByteParser::new(dialect)?;
    for event in parser.feed(input) {
        explainer.push(&event);
    }
    for event in parser.finish() {
        explainer.push(&event);
    }
    Ok(explainer.ranges)
}

/// Where the events are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Text,
    Reasoning,
    Between,
    /// Behind the beginning of a pointer line that is too long.
    PointerRest,
    Value,
}

struct Explainer<'i> {
    input: &'i [u8],
    dialect: &'i Dialect,
    ranges: Vec<ExplainedRange>,
    place: Place,
    /// How much is still to come of a reasoning marker.
    marker_left: usize,
    /// Whether nothing has come of the value yet.
    is_empty: bool,
    /// Whether the line is a fence line.
    in_fence: bool,
    /// The syntax of the call that is open.
    syntax: Syntax,
    call: Option<Arc<str>>,
    argument: Option<Arc<str>>,
}

impl Explainer<'_> {
    fn push(&mut self, event: &Event<'_>) {
        let span = event.span;
        match &event.kind {
            EventKind::Text(_) => self.content(Meaning::Text, span),
            EventKind::Reasoning(_) => self.content(Meaning::Reasoning, span),
            EventKind::Ignored(piece) => self.ignored(piece, span),
            EventKind::CallStart(header) => {
                self.call = Some(header.name().into());
                self.place = Place::Between;
                self.in_fence = false;
                self.syntax = header.syntax();
                self.add(Meaning::CallStart(header.syntax()), span);
            }
            EventKind::ValueStart(slot) => {
                self.value_ended_by(MarkerUse::Argument);
                self.place = Place::Value;
                self.is_empty = true;
                match slot {
                    Slot::Argument(pointer) => {
                        self.argument = Some(pointer.as_str().into());
                        self.add(Meaning::ArgumentStart, span);
                    }
                    Slot::Body if span.is_empty() => {}
                    Slot::Body => self.add(Meaning::LineEndBeforeBody, span),
                }
            }
            EventKind::ValueDelta(_) => {
                self.is_empty = false;
                self.place = Place::Value;
                let meaning = match self.argument {
                    Some(_) => Meaning::Value,
                    None => Meaning::Body,
                };
                self.content(meaning, span);
            }
            EventKind::ValueEnd => {
                if self.is_empty {
                    let meaning = match self.argument {
                        Some(_) => Meaning::EmptyValue,
                        None => Meaning::EmptyBody,
                    };
                    self.add(meaning, Span::new(span.start, span.start));
                }
                if !span.is_empty() {
                    self.add(Meaning::LineEndAfterValue(None), span);
                }
                self.argument = None;
            }
            EventKind::CallEnd(ending) => self.call_end(ending.termination(), span),
            EventKind::Diagnostic(diagnostic) => self.diagnostic(diagnostic),
        }
    }

    fn ignored(&mut self, piece: &str, span: Span) {
        match self.place {
            Place::Between => self.between(span),
            Place::PointerRest => self.content(Meaning::RestOfPointerLine, span),
            Place::Value => self.add(Meaning::Escape, span),
            Place::Text | Place::Reasoning if self.marker_left > 0 => {
                self.marker_left = self.marker_left.saturating_sub(piece.len());
                if let Some(last) = self.ranges.last_mut() {
                    last.span.end = span.end;
                }
            }
            Place::Text if piece == "\\" => self.add(Meaning::Escape, span),
            Place::Text | Place::Reasoning => {
                let markers = self.dialect.reasoning.as_ref();
                let (meaning, marker) = if self.place == Place::Text {
                    self.place = Place::Reasoning;
                    (Meaning::ReasoningOpen, markers.map(|(open, _)| open))
                } else {
                    self.place = Place::Text;
                    (Meaning::ReasoningClose, markers.map(|(_, close)| close))
                };
                self.marker_left = marker.map_or(0, |it| it.len().saturating_sub(piece.len()));
                self.add(meaning, span);
            }
        }
    }

    /// Bytes between header and first argument. A fence line goes up to its line end.
    fn between(&mut self, span: Span) {
        let mut start = span.start;
        if self.in_fence {
            let line = self.input.get(span.range()).unwrap_or_default();
            let end = memchr::memchr(b'\n', line).map_or(span.end, |at| start + at + 1);
            self.in_fence = end == span.end && !line.ends_with(b"\n");
            self.content(Meaning::FenceBeforeArgument, Span::new(start, end));
            start = end;
        }
        if start < span.end {
            self.content(Meaning::BlankBeforeArgument, Span::new(start, span.end));
        }
    }

    fn call_end(&mut self, termination: Termination, span: Span) {
        match termination {
            Termination::Explicit if span.is_empty() => {
                if let Some(last) = self.ranges.last_mut() {
                    last.meaning = Meaning::SelfClosingCall;
                    last.section = Meaning::SelfClosingCall.section();
                }
            }
            Termination::Explicit => {
                self.value_ended_by(MarkerUse::End(self.syntax));
                self.add(Meaning::EndMarker(self.syntax), span);
            }
            Termination::NextCall => {
                self.value_ended_by(MarkerUse::Start(self.syntax));
                self.add(Meaning::EndByNextCall, span);
            }
            Termination::EndOfStream => self.add(Meaning::EndOfInput(self.syntax), span),
        }
        self.call = None;
        self.argument = None;
        self.place = Place::Text;
    }

    /// The marker that comes next is what ended the value before it, if there was one.
    fn value_ended_by(&mut self, marker: MarkerUse) {
        if let Some(ExplainedRange {
            meaning: Meaning::LineEndAfterValue(by @ None),
            ..
        }) = self.ranges.last_mut()
        {
            *by = Some(marker);
        }
    }

    /// A diagnostic tells what its span is, which is the end of what has come.
    fn diagnostic(&mut self, diagnostic: &Diagnostic) {
        let span = diagnostic.span;
        match diagnostic.code {
            Code::NotAHeader
            | Code::HeaderTooLong
            | Code::HeaderCutOff
            | Code::MarkerInValue
            | Code::StrayMarker
            | Code::StrayReasoningOpen
            | Code::StrayReasoningClose => {
                let meaning = Meaning::MarkerAsContent(diagnostic.code, diagnostic.usage);
                self.take_for(meaning, span, |_| true);
            }
            Code::FenceBeforeArgument => {
                self.in_fence = true;
                self.take_for(Meaning::FenceBeforeArgument, span, |_| true);
            }
            Code::TextBeforeArgument | Code::TextWithoutArgument => {
                let is_blank = |meaning| meaning == Meaning::BlankBeforeArgument;
                self.take_for(Meaning::TextBeforeArgument, span, is_blank);
            }
            Code::PointerTooLong => self.place = Place::PointerRest,
            Code::ReasoningCutOff => {
                self.add(Meaning::ReasoningCutOff, Span::new(span.end, span.end));
                self.place = Place::Text;
            }
            Code::EndMarkerInMidLine => {
                if let Some(last) = self.ranges.last_mut() {
                    last.meaning = Meaning::EndMarkerInMidLine;
                }
            }
            // They say more of a range that is what it is without them.
            Code::MissingNewline
            | Code::UnusualName
            | Code::ExtraColon
            | Code::EndMarkerGlued
            | Code::PointerCutOff
            | Code::MissingEndMarker => {}
        }
    }

    /// Content, which may come in pieces.
    fn content(&mut self, meaning: Meaning, span: Span) {
        match self.ranges.last_mut() {
            Some(last) if last.meaning == meaning && last.span.end == span.start => {
                last.span.end = span.end;
            }
            _ => self.add(meaning, span),
        }
    }

    fn add(&mut self, meaning: Meaning, span: Span) {
        let is_placed = matches!(
            meaning,
            Meaning::ArgumentStart | Meaning::EndMarker(Syntax::Block) | Meaning::EndByNextCall
        );
        let section = if is_placed && self.dialect.anywhere {
            Section::MarkersAnywhere
        } else {
            meaning.section()
        };
        self.ranges.push(ExplainedRange {
            span,
            meaning,
            section,
            call: self.call.clone(),
            argument: self.argument.clone(),
        });
    }

    /// Takes what stands in the span, and is what is asked for, for something else.
    fn take_for(&mut self, meaning: Meaning, span: Span, is_meant: impl Fn(Meaning) -> bool) {
        let first = self
            .ranges
            .partition_point(|range| range.span.end <= span.start);
        let inside = self.ranges.split_off(first);
        for range in inside {
            if !is_meant(range.meaning) || range.span.is_empty() {
                self.ranges.push(range);
                continue;
            }
            let start = range.span.start.max(span.start);
            let end = range.span.end.min(span.end);
            let section = meaning.section();
            for (from, to, is_taken) in [
                (range.span.start, start, false),
                (start, end, true),
                (end, range.span.end, false),
            ] {
                if from < to {
                    let mut part = range.clone();
                    part.span = Span::new(from, to);
                    if is_taken {
                        (part.meaning, part.section) = (meaning, section);
                    }
                    self.ranges.push(part);
                }
            }
        }
    }
}

/// A name or a pointer, short enough for a sentence.
struct Short<'n>(Option<&'n Arc<str>>);

impl fmt::Display for Short<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.map_or("", |name| name);
        match name.char_indices().nth(SHOWN) {
            None => write!(formatter, "`{name}`"),
            Some((at, _)) => write!(formatter, "`{}…`", name.get(..at).unwrap_or_default()),
        }
    }
}

impl fmt::Display for ExplainedRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = Short(self.call.as_ref());
        let argument = Short(self.argument.as_ref());
        match self.meaning {
            Meaning::Text => formatter.write_str("text outside calls"),
            Meaning::ReasoningOpen => formatter.write_str("the marker that opens reasoning"),
            Meaning::Reasoning => formatter.write_str("reasoning, in which no call is looked for"),
            Meaning::ReasoningClose => formatter.write_str("the marker that closes reasoning"),
            Meaning::ReasoningCutOff => formatter.write_str("the input ends inside reasoning"),
            Meaning::Escape => formatter.write_str(
                "the backslash of an escape: it is left out, and the marker it stands in is content",
            ),
            Meaning::MarkerAsContent(code, usage) => {
                formatter.write_str(why_not(code, usage))?;
                match (&self.call, &self.argument) {
                    (None, _) => formatter.write_str("; it is text"),
                    (Some(_), Some(_)) => write!(formatter, "; it is part of the value of {argument}"),
                    (Some(_), None) if usage.is_emoji() => {
                        write!(formatter, "; it is part of the body of {call}")
                    }
                    (Some(_), None) => formatter.write_str("; it is ignored as what stands around it"),
                }
            }
            Meaning::CallStart(_) => write!(formatter, "start marker and header of the call {call}"),
            Meaning::SelfClosingCall => {
                write!(formatter, "start marker and header of the call {call}, which closes itself")
            }
            Meaning::BlankBeforeArgument => {
                write!(formatter, "ignored: blank between the header of {call} and its first argument")
            }
            Meaning::FenceBeforeArgument => {
                write!(formatter, "ignored: a code fence between the header of {call} and its first argument")
            }
            Meaning::TextBeforeArgument => {
                write!(formatter, "ignored: text between the header of {call} and its first argument")
            }
            Meaning::ArgumentStart => write!(formatter, "pointer line of the argument {argument}"),
            Meaning::RestOfPointerLine => {
                write!(formatter, "ignored: what is left of the pointer line of {argument}, which is too long")
            }
            Meaning::LineEndBeforeBody => {
                formatter.write_str("the line end behind the header: it belongs to the syntax, not to the body")
            }
            Meaning::Value => write!(formatter, "value of {argument}"),
            Meaning::Body => write!(formatter, "body of the call {call}"),
            Meaning::EmptyValue => write!(formatter, "the value of {argument} is empty"),
            Meaning::EmptyBody => write!(formatter, "the body of the call {call} is empty"),
            Meaning::LineEndAfterValue(before) => {
                let before = match before {
                    Some(MarkerUse::Argument) => "the next argument",
                    Some(MarkerUse::Start(_)) => "the next call",
                    Some(_) => "the end marker",
                    None => "the end of the input",
                };
                write!(
                    formatter,
                    "the line end before {before}: it belongs to the syntax, not to the value of {argument}"
                )
            }
            Meaning::EndMarker(_) => write!(formatter, "end marker of the call {call}"),
            Meaning::EndMarkerInMidLine => write!(
                formatter,
                "end marker of the call {call}: it is not in the first column, and counts because the line or the input ends behind it or a call begins there"
            ),
            Meaning::EndByNextCall => write!(formatter, "the call {call} ends here: the next one begins"),
            Meaning::EndOfInput(Syntax::Block) => {
                write!(formatter, "the call {call} ends here: the input does")
            }
            Meaning::EndOfInput(Syntax::Emoji) => {
                write!(formatter, "the call {call} ends here, without its end marker: the input does")
            }
        }
    }
}

/// Why a whole marker does not count.
const fn why_not(code: Code, usage: MarkerUse) -> &'static str {
    match (code, usage) {
        (Code::NotAHeader, MarkerUse::Start(Syntax::Emoji)) => {
            "a start marker that does not count: no name and `]` follow on its line"
        }
        (Code::NotAHeader, _) => {
            "a start marker that does not count: no name follows that begins with a letter, a digit or `_` and holds no blank or quote"
        }
        (Code::HeaderTooLong, _) => "a start marker that does not count: its header is too long",
        (Code::HeaderCutOff, _) => {
            "a start marker that does not count: the input ends before its header does"
        }
        (Code::StrayReasoningOpen, _) => {
            "a marker that opens reasoning, and does not count: other text is before it"
        }
        (Code::StrayReasoningClose, _) => {
            "a marker that closes reasoning, and does not count: no reasoning is open"
        }
        (Code::StrayMarker, MarkerUse::Argument) => {
            "an argument marker that does not count: no call is open"
        }
        (Code::StrayMarker, _) => "an end marker that does not count: no call is open",
        (_, MarkerUse::Start(Syntax::Emoji)) => {
            "a start marker that does not count: calls do not nest"
        }
        (_, MarkerUse::End(Syntax::Emoji)) => {
            "an end marker that does not count: it is of the other form than the start marker"
        }
        (_, MarkerUse::Argument) => {
            "an argument marker that does not count: it is not in the first column"
        }
        (_, MarkerUse::End(Syntax::Block)) => {
            "an end marker that does not count: it is not in the first column, and neither the line nor the input ends behind it, nor does a call begin there"
        }
        (_, _) => "a start marker that does not count: it is not in the first column",
    }
}
