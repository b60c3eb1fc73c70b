//! A list of the parts of a text, with the diagnostics or values of its calls.

use std::collections::HashSet;

use anstyle::{AnsiColor, Style};
use plaincall_reply::{DecidedCall, ReplyCheck, ReplyItem, ReplyReader, Stop, Unclosed};
use plaincall_syntax::{Dialect, Event, EventKind, Severity, Slot, Span, Termination};
use plaincall_tool::{Arguments, Limits, ReplyDiagnostic, ToolSet};

use crate::output::Output;
use crate::sanitize::sanitize;
use crate::status::Failure;
use crate::terminal::palette::{CALL, CALL_NAME, DIM, NOTICE, PLAIN, REASONING};

const ARGUMENT: Style = AnsiColor::Yellow.on_default();
const VALUE: Style = AnsiColor::Green.on_default();
const WRONG: Style = AnsiColor::Red.on_default().bold();

/// Widths of the columns before the text: position and part.
const POSITION_WIDTH: usize = 7;
const PART_WIDTH: usize = 9;
/// The maximum length of a value, in characters.
const MAX_VALUE: usize = 80;

/// The additional information in a listing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Diagnostics, below their line.
    Diagnostics,
    /// Values of the arguments, below each call.
    Values,
}

/// A listing of a text that arrives in chunks.
pub(crate) struct Listing<'t> {
    reader: ReplyReader<Option<&'t ToolSet>>,
    parts: Parts<'t>,
}

struct Parts<'t> {
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
        let check = ReplyCheck::new(dialect, Unclosed::Reject)?;
        let reader = ReplyReader::new(dialect, tools, check, Limits::for_reading())?;
        Ok(Self {
            reader: reader.with_events(),
            parts: Parts {
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
        let Self { reader, parts } = self;
        let mut items = reader.feed(bytes);
        items.try_for_each(|item| parts.item(&item, output))
    }

    /// Ends the listing.
    pub(crate) fn finish(self, output: &mut Output) -> Result<(), Failure> {
        let Self {
            mut reader,
            mut parts,
        } = self;
        let items = reader.finish(Stop::Broken).items;
        let mut items = items.iter();
        items.try_for_each(|item| parts.item(item, output))?;
        parts.rows.end(output)
    }
}

impl Parts<'_> {
    fn item(&mut self, item: &ReplyItem<'_>, output: &mut Output) -> Result<(), Failure> {
        match item {
            ReplyItem::CallStart(_) => self.shown.clear(),
            ReplyItem::Event(event) => self.event(event, output)?,
            ReplyItem::Call(read) => self.end_call(read),
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, output: &mut Output) -> Result<(), Failure> {
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
                let diagnostic = ReplyDiagnostic::from(diagnostic);
                self.shown.insert((diagnostic.code, diagnostic.span));
                self.note(&diagnostic);
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
        Ok(())
    }

    fn note(&mut self, diagnostic: &ReplyDiagnostic) {
        if self.detail == Detail::Diagnostics {
            let style = match diagnostic.severity {
                Severity::Error => WRONG,
                Severity::Warning => NOTICE,
            };
            let (code, message) = (diagnostic.code, &diagnostic.message);
            let severity = diagnostic.severity.name();
            self.rows
                .note(style, &format!("{severity}[{code}]: {message}"));
        }
    }

    /// Notes the diagnostics of a call that were not shown yet.
    fn end_call(&mut self, read: &DecidedCall) {
        let call = &read.call;
        for diagnostic in &call.diagnostics {
            if !read.resolves(diagnostic)
                && !self.shown.contains(&(diagnostic.code, diagnostic.span))
            {
                self.note(diagnostic);
            }
        }
        for problem in read.problems() {
            self.note(problem);
        }
        if call.is_id_automatic {
            self.rows.note(DIM, &format!("id {}", call.id));
        }
        if self.detail == Detail::Values {
            match read.arguments() {
                Some(arguments) => self.values(&call.name, arguments),
                None => self.rows.note(DIM, "no values: invalid arguments"),
            }
        }
    }

    /// Notes the value and the declared type of each argument.
    fn values(&mut self, tool: &str, arguments: &Arguments) {
        let tool = self.tools.and_then(|tools| tools.get(tool));
        let values = arguments.to_value();
        for argument in arguments.iter() {
            let pointer = argument.pointer;
            let value = values.pointer(&format!("/{pointer}"));
            let value = value.map_or(String::new(), ToString::to_string);
            let mut shown: String = value.chars().take(MAX_VALUE).collect();
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

/// The rows of the text, each with its position, and the notes below the current row.
#[derive(Default)]
struct Rows {
    has_color: bool,
    /// The next line and column.
    line: usize,
    column: usize,
    /// The part of the current row, and whether the row has text.
    part: &'static str,
    is_open: bool,
    notes: Vec<(Style, String)>,
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
                // A single line end needs no row.
                (self.line, self.column) = (self.line + 1, 1);
                continue;
            }
            if !self.is_open {
                let position = format!("{}:{}", self.line, self.column);
                let prefix = format!("{position:>POSITION_WIDTH$} {label:<PART_WIDTH$} ");
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
        self.notes.push((style, text.to_owned()));
    }

    /// Ends the row and writes the notes below it.
    fn end(&mut self, output: &mut Output) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_open) {
            output.bytes(b"\n")?;
        }
        self.part = "";
        for (style, text) in std::mem::take(&mut self.notes) {
            self.styled(PLAIN, &" ".repeat(POSITION_WIDTH + PART_WIDTH + 2), output)?;
            self.styled(style, &format!("└ {text}"), output)?;
            output.bytes(b"\n")?;
        }
        Ok(())
    }

    fn styled(&self, style: Style, text: &str, output: &mut Output) -> Result<(), Failure> {
        let text = sanitize(text);
        if self.has_color && style != PLAIN && !text.is_empty() {
            output.text(format_args!("{style}{text}{style:#}"))
        } else {
            output.text(format_args!("{text}"))
        }
    }
}
