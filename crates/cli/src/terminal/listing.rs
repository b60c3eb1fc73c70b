//! A text in its parts, one below the other: what each was taken for, and what came of each call.

use std::collections::HashSet;

use anstyle::{AnsiColor, Style};
use plaincall_call::{
    Arguments, Limits, ReplyDiagnostic, ToolCall, ToolSet,
    collector::{Collected, Collector},
    document::BoundCall,
};
use plaincall_syntax::Span;
use plaincall_syntax::{
    ByteParser, Dialect, Event, EventKind, Severity, Slot, Syntax, Termination,
};

use crate::output::Output;
use crate::status::Failure;
use crate::terminal::palette::{ASKING, CALL, CALL_NAME, DIM, PLAIN, REASONING};
use crate::text::reading::parser;
use crate::visible::harmless;

const ARGUMENT: Style = AnsiColor::Yellow.on_default();
const VALUE: Style = AnsiColor::Green.on_default();
const WRONG: Style = AnsiColor::Red.on_default().bold();

/// The columns in front of the text: for line and column, and for what it was taken for.
const PLACE: usize = 7;
const PART: usize = 9;
/// How many characters of a value are shown.
const SHOWN: usize = 80;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What was found, below the line where it was.
    Findings,
    /// The values of the arguments, below each call.
    Values,
}

/// A text that is being listed, while it arrives.
pub(crate) struct Listing<'t> {
    parser: ByteParser,
    parts: Parts<'t>,
}

struct Parts<'t> {
    collector: Collector,
    tools: Option<&'t ToolSet>,
    detail: Detail,
    rows: Rows,
    /// The diagnostics already shown for the open call.
    shown: HashSet<(&'static str, Span)>,
}

impl<'t> Listing<'t> {
    pub(crate) fn new(
        dialect: &Dialect,
        tools: Option<&'t ToolSet>,
        detail: Detail,
        has_color: bool,
    ) -> Result<Self, Failure> {
        Ok(Self {
            parser: parser(dialect)?,
            parts: Parts {
                collector: Collector::new(Limits::for_reading()),
                tools,
                detail,
                rows: Rows {
                    has_color,
                    line: 1,
                    column: 1,
                    ..Rows::default()
                },
                shown: HashSet::new(),
            },
        })
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], output: &mut Output) -> Result<(), Failure> {
        let Self { parser, parts } = self;
        let mut events = parser.feed(bytes);
        events.try_for_each(|event| parts.event(&event, output))
    }

    /// Lists the last of it.
    pub(crate) fn finish(self, output: &mut Output) -> Result<(), Failure> {
        let Self { parser, mut parts } = self;
        let mut events = parser.finish();
        events.try_for_each(|event| parts.event(&event, output))?;
        parts.rows.end(output)
    }
}

impl Parts<'_> {
    fn event(&mut self, event: &Event<'_>, output: &mut Output) -> Result<(), Failure> {
        let collected = self.collector.push(event);
        let (part, style) = match &event.kind {
            EventKind::Text(_) => ("text", PLAIN),
            EventKind::Reasoning(_) => ("reasoning", REASONING),
            EventKind::Ignored(_) => ("ignored", DIM),
            EventKind::CallStart(_) => ("call", CALL_NAME),
            EventKind::ValueStart(Slot::Argument(_)) => ("argument", ARGUMENT),
            EventKind::ValueStart(Slot::Body) => ("call", DIM),
            EventKind::ValueDelta(_) | EventKind::ValueEnd => ("value", VALUE),
            EventKind::CallEnd(_) => ("end", CALL),
            EventKind::Diagnostic(diagnostic) => {
                let finding = ReplyDiagnostic::from(diagnostic);
                self.shown.insert((finding.code, finding.span));
                self.note(&finding);
                return Ok(());
            }
            _ => ("", PLAIN),
        };
        self.rows.write(part, style, event.source(), output)?;
        if let EventKind::CallEnd(ending) = &event.kind {
            let why = match ending.termination() {
                Termination::Explicit => "",
                Termination::NextCall => "(next call starts)",
                Termination::EndOfStream => "(end of text)",
            };
            let column = self.rows.column;
            self.rows.write(part, DIM, why, output)?;
            self.rows.column = column;
        }
        match collected {
            Some(Collected::Finished(call)) => self.end_call(&call),
            Some(Collected::Started(_)) => self.shown.clear(),
            _ => {}
        }
        Ok(())
    }

    fn note(&mut self, finding: &ReplyDiagnostic) {
        if self.detail == Detail::Findings {
            let style = match finding.severity {
                Severity::Error => WRONG,
                Severity::Warning => ASKING,
            };
            let (code, message) = (finding.code, &finding.message);
            let severity = finding.severity.name();
            self.rows
                .note(style, &format!("{severity}[{code}]: {message}"));
        }
    }

    /// Adds the diagnostics of a call that were not shown yet.
    fn end_call(&mut self, call: &ToolCall) {
        let bound = self.tools.map(|tools| BoundCall::new(call, tools));
        for finding in &call.diagnostics {
            let is_resolved = bound.as_ref().is_some_and(|bound| bound.mends(finding));
            if !is_resolved && !self.shown.contains(&(finding.code, finding.span)) {
                self.note(finding);
            }
        }
        for problem in bound.iter().flat_map(BoundCall::problems) {
            self.note(problem);
        }
        if call.is_id_automatic {
            self.rows.note(DIM, &format!("id {}", call.id));
        }
        if self.detail == Detail::Values {
            let is_good = call.syntax == Syntax::Block
                && !call.diagnostics.iter().any(ReplyDiagnostic::is_error);
            let arguments = match &bound {
                Some(bound) => bound.arguments.as_ref().ok(),
                None => Some(&call.arguments).filter(|_| is_good),
            };
            match arguments {
                Some(arguments) => self.values(&call.name, arguments),
                None => self.rows.note(DIM, "no values: invalid arguments"),
            }
        }
    }

    /// Notes each argument with its value, and what the definition of the tool asks for.
    fn values(&mut self, tool: &str, arguments: &Arguments) {
        let tool = self.tools.and_then(|tools| tools.get(tool));
        let values = arguments.to_value();
        for argument in arguments.iter() {
            let pointer = argument.pointer;
            let value = values.pointer(&format!("/{pointer}"));
            let value = value.map_or(String::new(), ToString::to_string);
            let mut shown: String = value.chars().take(SHOWN).collect();
            if shown.len() < value.len() {
                shown.push('…');
            }
            let expected = tool.and_then(|tool| tool.schema().expected(pointer));
            let expected = expected.map_or(String::new(), |it| format!(" (declared: {it})"));
            let text = format!("{pointer} = {shown}{expected}");
            self.rows.note(PLAIN, &text);
        }
    }
}

/// The rows of the text, each after its place, and the notes below the current one.
#[derive(Default)]
struct Rows {
    has_color: bool,
    /// The line and the column that come next.
    line: usize,
    column: usize,
    /// What the present row is part of, and whether it has begun.
    part: &'static str,
    is_open: bool,
    below: Vec<(Style, String)>,
}

impl Rows {
    fn write(
        &mut self,
        part: &'static str,
        style: Style,
        text: &str,
        output: &mut Output,
    ) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        let is_new = part != self.part || part == "argument";
        if is_new {
            self.end(output)?;
        }
        let mut label = if is_new { part } else { "" };
        for (index, piece) in text.split_inclusive('\n').enumerate() {
            if is_new && index == 0 && matches!(piece, "\n" | "\r\n") {
                // What is nothing but the end of a line needs no row.
                (self.line, self.column) = (self.line + 1, 1);
                continue;
            }
            if !self.is_open {
                let place = format!("{}:{}", self.line, self.column);
                let prefix = format!("{place:>PLACE$} {label:<PART$} ");
                let is_blank = matches!(piece, "\n" | "\r\n");
                let prefix = if is_blank { prefix.trim_end() } else { &prefix };
                self.styled(DIM, prefix, output)?;
                label = "";
            }
            let line = piece.strip_suffix('\n').unwrap_or(piece);
            (self.part, self.is_open) = (part, true);
            self.styled(style, line, output)?;
            if line.len() < piece.len() {
                self.end(output)?;
                self.part = part;
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += line.chars().count();
            }
        }
        Ok(())
    }

    fn note(&mut self, style: Style, text: &str) {
        self.below.push((style, text.to_owned()));
    }

    /// Ends the row, and writes what belongs below it.
    fn end(&mut self, output: &mut Output) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_open) {
            output.bytes(b"\n")?;
        }
        self.part = "";
        for (style, text) in std::mem::take(&mut self.below) {
            self.styled(PLAIN, &" ".repeat(PLACE + PART + 2), output)?;
            self.styled(style, &format!("└ {text}"), output)?;
            output.bytes(b"\n")?;
        }
        Ok(())
    }

    fn styled(&self, style: Style, text: &str, output: &mut Output) -> Result<(), Failure> {
        let text = harmless(text);
        if self.has_color && style != PLAIN && !text.is_empty() {
            output.text(format_args!("{style}{text}{style:#}"))
        } else {
            output.text(format_args!("{text}"))
        }
    }
}
