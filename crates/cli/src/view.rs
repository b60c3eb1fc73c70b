//! A text on a terminal, with its calls set off.
//!
//! The text itself is shown, while it arrives; nothing is left out. Lines of a call stand behind a bar. What was found
//! stands below the line that it is about.

use std::collections::HashSet;

use anstyle::Style;
use plaincall_call::{Collected, Collector, Finding, Limits, Span};
use plaincall_syntax::{ByteParser, Dialect, Event, EventKind, Slot};

use crate::output::Output;
use crate::reading::parser;
use crate::screen::Screen;
use crate::status::Failure;

/// A text that is being shown.
pub(crate) struct View {
    parser: ByteParser,
    collector: Collector,
    screen: Screen,
    /// What has been said about the call that is open.
    said: HashSet<(&'static str, Span)>,
}

impl View {
    pub(crate) fn new(dialect: &Dialect, has_color: bool) -> Result<Self, Failure> {
        Ok(Self {
            parser: parser(dialect)?,
            collector: Collector::new(Limits::for_reading()),
            screen: Screen::new(has_color),
            said: HashSet::new(),
        })
    }

    /// Shows the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8], output: &mut Output) -> Result<(), Failure> {
        let Self {
            parser,
            collector,
            screen,
            said,
        } = self;
        for event in parser.feed(bytes) {
            show(&event, collector, screen, said, output)?;
        }
        Ok(())
    }

    /// Shows the last of it.
    pub(crate) fn finish(self, output: &mut Output) -> Result<(), Failure> {
        let Self {
            parser,
            mut collector,
            mut screen,
            mut said,
        } = self;
        for event in parser.finish() {
            show(&event, &mut collector, &mut screen, &mut said, output)?;
        }
        screen.end_line(output)
    }
}

fn show(
    event: &Event<'_>,
    collector: &mut Collector,
    screen: &mut Screen,
    said: &mut HashSet<(&'static str, Span)>,
    output: &mut Output,
) -> Result<(), Failure> {
    let collected = collector.push(event);
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
            screen.note_finding(&finding);
        }
        _ => screen.write(source, Style::new(), output)?,
    }
    if let Some(Collected::Finished(call)) = collected {
        let new = |finding: &&Finding| !said.contains(&(finding.code, finding.span));
        for finding in call.findings.iter().filter(new) {
            screen.note_finding(finding);
        }
        screen.note_end(&call);
    }
    Ok(())
}
