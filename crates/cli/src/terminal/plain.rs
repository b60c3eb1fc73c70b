//! A display that prints lines, for pipes, files, simple terminals, and users who prefer it.

use std::mem::take;
use std::time::{Duration, Instant};

use anstyle::Style;

use crate::output::is_quiet;
use crate::sanitize::sanitize;
use crate::terminal::event::{Display, UiEvent};
use crate::terminal::line::Line;
use crate::terminal::palette::{DIM, NOTICE, REASONING};
use crate::terminal::transcript::{DisplayOptions, TextOutput, Transcript};
use crate::terminal::tty::Size;

/// How long to wait before showing "waiting for the model".
const WAIT_NOTE_AFTER: Duration = Duration::from_secs(2);

/// A display that prints lines.
pub(crate) struct Plain {
    transcript: Transcript<Lines>,
    /// Measures the terminal, if the output is one.
    measure: Option<fn() -> Size>,
}

/// Text that is not written yet.
#[derive(Debug, Default)]
struct Lines {
    text: String,
    has_color: bool,
    is_in_row: bool,
    /// Whether the next line end belongs to a call.
    follows_call: bool,
}

impl TextOutput for Lines {
    fn text(&mut self, text: &str, style: Style) {
        let text = match text.strip_prefix('\n') {
            Some(rest) if self.follows_call => rest,
            _ => text,
        };
        // Without styles, reasoning looks like text, so it is not shown.
        if text.is_empty() || style == REASONING {
            return;
        }
        self.follows_call = false;
        self.text.push_str(&sanitize(text));
        self.is_in_row = !text.ends_with('\n');
    }

    fn line(&mut self, line: Line) {
        line.write(&mut self.text, self.has_color);
        self.text.push('\n');
    }

    fn end_row(&mut self) {
        if take(&mut self.is_in_row) {
            self.text.push('\n');
        }
    }

    fn is_in_row(&self) -> bool {
        self.is_in_row
    }

    fn call(&mut self) {
        self.follows_call = true;
    }

    fn width(&self) -> Option<usize> {
        None
    }
}

impl Plain {
    pub(crate) fn new(options: DisplayOptions, measure: Option<fn() -> Size>) -> Self {
        let lines = Lines {
            has_color: options.has_color,
            ..Lines::default()
        };
        Self {
            transcript: Transcript::new(lines, options),
            measure,
        }
    }

    /// Prints once that the model has not answered yet.
    fn tick(&mut self) {
        let is_long = |since: &mut Instant| since.elapsed() >= WAIT_NOTE_AFTER;
        if self.measure.is_some() && self.transcript.asked.take_if(is_long).is_some() {
            self.transcript.flush();
            let line = Line::of(DIM, "waiting for the model");
            self.transcript.output.line(line);
        }
    }
}

impl Display for Plain {
    fn handle(&mut self, event: UiEvent, out: &mut String) {
        self.transcript.handle(&event);
        if is_quiet() {
            self.transcript.output.text.clear();
        }
        match event {
            UiEvent::Tick => self.tick(),
            UiEvent::Stopping => {
                self.transcript.asked = None;
                self.transcript.flush();
                self.transcript.output.line(Line::of(NOTICE, "stopping"));
            }
            UiEvent::End => {
                let width = self.measure.map(|measure| measure().columns);
                for line in self.transcript.summary(width) {
                    self.transcript.output.line(line);
                }
            }
            _ => {}
        }
        out.push_str(&take(&mut self.transcript.output.text));
    }

    fn pause(&mut self, out: &mut String) {
        self.transcript.flush();
        out.push_str(&take(&mut self.transcript.output.text));
    }

    fn abandon(&mut self, out: &mut String) {
        self.pause(out);
    }
}
