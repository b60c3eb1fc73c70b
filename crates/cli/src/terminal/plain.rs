//! A display in lines: for pipes and files, for terminals that cannot do more, and for people who want it so.

use std::mem::take;
use std::time::{Duration, Instant};

use anstyle::Style;

use crate::terminal::event::{Display, UiEvent};
use crate::terminal::line::Line;
use crate::terminal::palette::{ASKING, DIM, REASONING};
use crate::terminal::transcript::{Look, Sheet, Transcript};
use crate::terminal::tty::Size;
use crate::visible::harmless;

/// How long to wait before showing "waiting for the model".
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Plain {
    transcript: Transcript<Lines>,
    /// The size of the terminal that it is written on, where people wait.
    measure: Option<fn() -> Size>,
}

/// Text and lines that have not been written.
#[derive(Debug, Default)]
struct Lines {
    text: String,
    has_color: bool,
    is_in_row: bool,
    /// Whether the line end that follows belongs to a call.
    is_behind_call: bool,
}

impl Sheet for Lines {
    fn text(&mut self, text: &str, style: Style) {
        let text = match text.strip_prefix('\n') {
            Some(rest) if self.is_behind_call => rest,
            _ => text,
        };
        // Without styles, reasoning and text look the same.
        if text.is_empty() || style == REASONING {
            return;
        }
        self.is_behind_call = false;
        self.text.push_str(&harmless(text));
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
        self.is_behind_call = true;
    }

    fn width(&self) -> Option<usize> {
        None
    }
}

impl Plain {
    pub(crate) fn new(look: Look, measure: Option<fn() -> Size>) -> Self {
        let lines = Lines {
            has_color: look.has_color,
            ..Lines::default()
        };
        Self {
            transcript: Transcript::new(lines, look),
            measure,
        }
    }

    /// Shows once that the model has not answered yet.
    fn tick(&mut self) {
        let is_long = |since: &mut Instant| since.elapsed() >= PATIENCE;
        if self.measure.is_some() && self.transcript.asked.take_if(is_long).is_some() {
            self.transcript.flush();
            let line = Line::of(DIM, "waiting for the model");
            self.transcript.sheet.line(line);
        }
    }
}

impl Display for Plain {
    fn take(&mut self, event: UiEvent, out: &mut String) {
        self.transcript.take(&event);
        match event {
            UiEvent::Tick => self.tick(),
            UiEvent::Stopping => {
                self.transcript.asked = None;
                self.transcript.flush();
                self.transcript.sheet.line(Line::of(ASKING, "stopping"));
            }
            UiEvent::Over => {
                let width = self.measure.map(|measure| measure().columns);
                for line in self.transcript.summary(width) {
                    self.transcript.sheet.line(line);
                }
            }
            _ => {}
        }
        out.push_str(&take(&mut self.transcript.sheet.text));
    }

    fn pause(&mut self, out: &mut String) {
        self.transcript.flush();
        out.push_str(&take(&mut self.transcript.sheet.text));
    }

    fn abandon(&mut self, out: &mut String) {
        self.pause(out);
    }
}
