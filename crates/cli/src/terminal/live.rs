//! A display that draws in place: the text scrolls, with a line for each call that has ended; below it stand the calls that
//! have not, and a status line.
//!
//! ```text
//! Each cargo gives a weight, and each weight a draught.    <- rows that are done; they belong to the terminal
//! ✓ cargo_ardea  cargo  ship=ardea  ok 0.4 s
//! And the order its█                                       <- the row that is being written, with the cursor
//!
//! ⠹ weight_ardea  weigh  running 1.2 s                     <- the region
//! ○ draught_ardea  draught  waits for weight_ardea
//! 3.4 s · 1 running · 1 waiting · 4 ok · reply being written
//! ```

use std::time::{Duration, Instant};

use anstyle::Style;
use plaincall::Status;

use crate::terminal::call_line::open_line;
use crate::terminal::call_table::{Call, CallTable, State};
use crate::terminal::event::{Display, UiEvent};
use crate::terminal::line::Line;
use crate::terminal::palette::{self, ASKING, DIM, PLAIN, RUNNING};
use crate::terminal::screen::Screen;
use crate::terminal::transcript::{Look, Sheet, Transcript};
use crate::terminal::tty::Size;
use crate::terminal::words;

/// How many rows of text may wait for the next frame.
const ROWS_AT_ONCE: usize = 200;

pub(crate) struct Live {
    transcript: Transcript<Screen>,
    phase: Phase,
    begun: Instant,
    asked: Instant,
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is nothing below the text, so others may write there.
    Idle,
    Working,
    Stopping,
}

impl Sheet for Screen {
    fn text(&mut self, text: &str, style: Style) {
        let width = self.columns();
        self.prose.text(text, style, width);
    }

    fn line(&mut self, line: Line) {
        self.prose.line(line);
    }

    fn end_row(&mut self) {
        self.prose.end_started_row();
    }

    fn is_in_row(&self) -> bool {
        !self.prose.row().is_empty()
    }

    fn call(&mut self) {
        self.prose.call();
    }

    fn width(&self) -> Option<usize> {
        Some(self.columns())
    }
}

impl Live {
    /// The display of a run that began at this moment.
    pub(crate) fn new(look: Look, begun: Instant, measure: fn() -> Size) -> Self {
        Self {
            transcript: Transcript::new(Screen::new(look.has_color, measure), look),
            // A question begins later.
            phase: look.summary.map_or(Phase::Idle, |_| Phase::Working),
            begun,
            asked: begun,
        }
    }

    fn status_line(&self) -> Line {
        let Transcript {
            table, look, ended, ..
        } = &self.transcript;
        let dot = format!(" {} ", look.glyphs.dot);
        let mut line = Line::of(DIM, &words::time(self.asked.elapsed()));
        let (mut running, mut waiting, mut written) = (0, 0, 0);
        for call in table.open() {
            *match call.state {
                State::Running(_) => &mut running,
                State::Writing => &mut written,
                _ => &mut waiting,
            } += 1;
        }
        for (style, count, word) in [
            (RUNNING, running, "running"),
            (PLAIN, waiting, "waiting"),
            (PLAIN, written, "being written"),
            (palette::status(Status::Ok), ended.0, "ok"),
            (palette::status(Status::Error), ended.1, "failed"),
        ] {
            if count > 0 {
                line.push(DIM, &dot);
                line.push(style, &format!("{count} {word}"));
            }
        }
        line.push(DIM, &dot);
        if self.transcript.turn > 0 {
            line.push(DIM, &format!("turn {}{dot}", self.transcript.turn + 1));
        }
        if self.phase == Phase::Stopping {
            line.push(ASKING, "stopping; press Ctrl-C again to exit immediately");
        } else if let Some(since) = self.transcript.asked {
            let mark = look.glyphs.running(since.elapsed().as_millis());
            line.push(DIM, &format!("{mark} waiting for the model"));
        } else if table.reply_end().is_some() {
            line.push(DIM, "reply complete");
        } else {
            line.push(DIM, "receiving the reply");
        }
        line
    }

    /// The lines below the text: those that wait for the end of a row, the open calls, the status.
    fn region(&self) -> Vec<Line> {
        let Transcript {
            sheet: screen,
            look,
            waiting,
            ..
        } = &self.transcript;
        let width = screen.columns();
        let room = screen.room();
        // A blank line separates the region from the text above it, if there is room.
        let has_gap = room > 1 && screen.is_in_row();
        let mut lines: Vec<Line> = has_gap.then(Line::new).into_iter().collect();
        let left = room.saturating_sub(1 + lines.len());
        lines.extend(waiting.iter().take(left).cloned());
        let left = left.saturating_sub(waiting.len());
        lines.extend(self.open_lines(left, width));
        lines.push(self.status_line().cut(width, look.glyphs.cut));
        lines
    }

    /// The open calls, at most so many: those at work first.
    fn open_lines(&self, room: usize, width: usize) -> Vec<Line> {
        let Transcript { table, look, .. } = &self.transcript;
        let mut open: Vec<(usize, &Call)> = table.open().enumerate().collect();
        open.sort_by_key(|(_, call)| match call.state {
            State::Running(since) => (0, since),
            State::Writing => (1, Duration::ZERO),
            _ => (2, Duration::ZERO),
        });
        open.truncate(room);
        open.sort_by_key(|(place, _)| *place);
        let now = self.begun.elapsed();
        let lines = open.into_iter();
        lines
            .map(|(_, call)| open_line(table, call, now, width, look.glyphs))
            .collect()
    }

    fn draw(&mut self, out: &mut String) {
        if self.phase == Phase::Idle {
            self.transcript.flush();
            self.transcript.sheet.rest(out);
            return;
        }
        let frame = self.transcript.sheet.begin_frame();
        let region = self.region();
        self.transcript.sheet.end_frame(&frame, &region, out);
    }

    /// Removes the region for good.
    fn clear(&mut self, out: &mut String) {
        self.phase = Phase::Idle;
        self.transcript.table = CallTable::default();
        self.transcript.sheet.clear(out);
    }
}

impl Display for Live {
    fn take(&mut self, event: UiEvent, out: &mut String) {
        self.transcript.take(&event);
        match event {
            UiEvent::Begin => {
                self.asked = Instant::now();
                self.phase = Phase::Working;
            }
            UiEvent::Tick => self.draw(out),
            UiEvent::Stopping => {
                self.phase = Phase::Stopping;
                self.draw(out);
            }
            UiEvent::Over => {
                self.transcript.sheet.measure();
                let lines = self.transcript.summary(self.transcript.sheet.width());
                for line in lines {
                    self.transcript.sheet.line(line);
                }
                self.clear(out);
            }
            UiEvent::Totals { .. } | UiEvent::Abandoned => self.clear(out),
            _ if self.transcript.sheet.prose.waiting_rows() > ROWS_AT_ONCE => self.draw(out),
            _ => {}
        }
    }

    fn pause(&mut self, out: &mut String) {
        self.transcript.flush();
        self.transcript.sheet.clear(out);
    }

    fn resume(&mut self, out: &mut String) {
        self.draw(out);
    }

    fn abandon(&mut self, out: &mut String) {
        self.clear(out);
    }
}
