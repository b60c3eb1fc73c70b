//! A text on a terminal, with its calls set off.
//!
//! The text itself is shown, while it arrives; nothing is left out. Lines of a call stand behind a bar. What was found
//! stands below the line that it is about.

use std::collections::HashSet;

use anstyle::Style;
use plaincall_call::{
    BoundCall, Collected, Collector, Finding, Limits, Remark, Span, ToolCall, ToolSet,
};
use plaincall_syntax::{ByteParser, Dialect, Event, EventKind, Slot};

use crate::output::Output;
use crate::screen::Screen;
use crate::status::Failure;
use crate::text::reading::parser;

/// A text that is being shown.
pub(crate) struct View<'t> {
    parser: ByteParser,
    shown: Shown<'t>,
}

/// What has been shown, and what is needed for the rest.
struct Shown<'t> {
    collector: Collector,
    screen: Screen,
    /// What has been said about the call that is open.
    said: HashSet<(&'static str, Span)>,
    /// The tools, if they are known.
    tools: Option<&'t ToolSet>,
}

impl<'t> View<'t> {
    pub(crate) fn new(
        dialect: &Dialect,
        tools: Option<&'t ToolSet>,
        has_color: bool,
    ) -> Result<Self, Failure> {
        Ok(Self {
            parser: parser(dialect)?,
            shown: Shown {
                collector: Collector::new(Limits::for_reading()),
                screen: Screen::new(has_color),
                said: HashSet::new(),
                tools,
            },
        })
    }

    /// Shows the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8], output: &mut Output) -> Result<(), Failure> {
        for event in self.parser.feed(bytes) {
            self.shown.event(&event, output)?;
        }
        Ok(())
    }

    /// Shows the last of it.
    pub(crate) fn finish(mut self, output: &mut Output) -> Result<(), Failure> {
        for event in self.parser.finish() {
            self.shown.event(&event, output)?;
        }
        self.shown.screen.end_line(output)
    }
}

impl Shown<'_> {
    fn event(&mut self, event: &Event<'_>, output: &mut Output) -> Result<(), Failure> {
        let collected = self.collector.push(event);
        self.part(event, output)?;
        if let Some(Collected::Finished(call)) = collected {
            self.end_call(&call);
        }
        Ok(())
    }

    fn part(&mut self, event: &Event<'_>, output: &mut Output) -> Result<(), Failure> {
        let Self { screen, said, .. } = self;
        let source = event.source();
        let palette = &screen.palette;
        match &event.kind {
            EventKind::Text(text) => screen.write(text, Style::new(), output)?,
            EventKind::Reasoning(text) => {
                let style = palette.reasoning;
                screen.write(text, style, output)?;
            }
            EventKind::Ignored(text) => {
                let style = palette.ignored;
                screen.write(text, style, output)?;
            }
            EventKind::CallStart(header) => {
                screen.begin_call(output)?;
                said.clear();
                screen.header(header, output)?;
            }
            EventKind::ValueStart(Slot::Argument(pointer)) => {
                let (place, marker) = (palette.place, palette.marker);
                screen.parts(source, pointer.as_str(), [marker, place, marker], output)?;
            }
            EventKind::ValueDelta(text) => {
                let style = palette.value;
                screen.write(text, style, output)?;
            }
            EventKind::ValueStart(Slot::Body) | EventKind::ValueEnd | EventKind::CallEnd(_) => {
                let style = palette.marker;
                screen.write(source, style, output)?;
            }
            EventKind::Diagnostic(diagnostic) => {
                let finding = Finding::from(diagnostic);
                said.insert((finding.code, finding.span));
                screen.note(Remark::Text(&finding));
            }
            _ => screen.write(source, Style::new(), output)?,
        }
        Ok(())
    }

    /// Notes what is still to be said about a call.
    fn end_call(&mut self, call: &ToolCall) {
        let Self {
            screen,
            said,
            tools,
            ..
        } = self;
        let bound = tools.map(|tools| BoundCall::new(call, tools));
        for finding in &call.findings {
            let is_mended = bound.as_ref().is_some_and(|bound| bound.mends(finding));
            if !is_mended && !said.contains(&(finding.code, finding.span)) {
                screen.note(Remark::Text(finding));
            }
        }
        for remark in bound.iter().flat_map(BoundCall::remarks) {
            screen.note(remark);
        }
        screen.note_end(call);
    }
}
