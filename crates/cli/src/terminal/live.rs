//! A display that draws in place: the text scrolls, with a line for each call that has ended. Calls that have not ended
//! are listed below it, with a status line.
//!
//! ```text
//! Each cargo gives a weight, and each weight a draught.    <- complete rows, which scroll away
//! ✓ cargo_ardea  cargo  ship=ardea  ok 0.4 s
//! And the order its█                                       <- the current row, with the cursor
//!
//! ⠹ weight_ardea  weigh  running 1.2 s                     <- the region
//! ○ draught_ardea  draught  waits for weight_ardea
//! 3.4 s · 1 running · 1 waiting · 4 ok · reply being written
//! ```

use std::time::{Duration, Instant};

use anstyle::Style;
use plaincall::Status;
use plaincall_report::call_table::{Call, CallTable, State};

use crate::terminal::call_line::open_line;
use crate::terminal::event::{Display, UiEvent};
use crate::terminal::human;
use crate::terminal::line::Line;
use crate::terminal::palette::{self, DIM, NOTICE, PLAIN, RUNNING};
use crate::terminal::screen::Screen;
use crate::terminal::transcript::{DisplayOptions, TextOutput, Transcript};
use crate::terminal::tty::Size;

/// The maximum number of rows that wait for the next frame.
const MAX_WAITING_ROWS: usize = 200;

/// A display that draws in place.
pub(crate) struct Live {
    transcript: Transcript<Screen>,
    phase: Phase,
    started: Instant,
    asked: Instant,
}

/// The state of the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is drawn below the text, so others may write there.
    Idle,
    Working,
    Stopping,
}

impl TextOutput for Screen {
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
    /// Creates the display of a run that began at `started`.
    pub(crate) fn new(options: DisplayOptions, started: Instant, measure: fn() -> Size) -> Self {
        Self {
            transcript: Transcript::new(Screen::new(options.has_color, measure), options),
            // The work on a question starts later.
            phase: options.summary.map_or(Phase::Idle, |_| Phase::Working),
            started,
            asked: started,
        }
    }

    fn status_line(&self) -> Line {
        let Transcript {
            table,
            options,
            ended,
            ..
        } = &self.transcript;
        let dot = format!(" {} ", options.glyphs.dot);
        let mut line = Line::of(DIM, &human::time(self.asked.elapsed()));
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
            line.push(NOTICE, "stopping; press Ctrl-C again to exit immediately");
        } else if let Some(since) = self.transcript.asked {
            let mark = options.glyphs.running(since.elapsed().as_millis());
            line.push(DIM, &format!("{mark} waiting for the model"));
        } else if table.reply_end().is_some() {
            line.push(DIM, "reply complete");
        } else {
            line.push(DIM, "receiving the reply");
        }
        line
    }

    /// Returns the lines below the text: notes that wait for the end of the row, open calls, and the status.
    fn region(&self) -> Vec<Line> {
        let Transcript {
            output: screen,
            options,
            waiting,
            ..
        } = &self.transcript;
        let width = screen.columns();
        let room = screen.room();
        // A blank line separates the region from the text, if there is room.
        let has_gap = room > 1 && screen.is_in_row();
        let mut lines: Vec<Line> = has_gap.then(Line::new).into_iter().collect();
        let remaining = room.saturating_sub(1 + lines.len());
        lines.extend(waiting.iter().take(remaining).cloned());
        let remaining = remaining.saturating_sub(waiting.len());
        lines.extend(self.open_lines(remaining, width));
        lines.push(self.status_line().truncate(width, options.glyphs.ellipsis));
        lines
    }

    /// Returns at most `room` lines: the open calls, running calls first, and the number of those that are not shown.
    fn open_lines(&self, room: usize, width: usize) -> Vec<Line> {
        let Transcript { table, options, .. } = &self.transcript;
        let mut open: Vec<(usize, &Call)> = table.open().enumerate().collect();
        open.sort_by_key(|(_, call)| match call.state {
            State::Running(since) => (0, since),
            State::Writing => (1, Duration::ZERO),
            _ => (2, Duration::ZERO),
        });
        let all = open.len();
        if all > room {
            open.truncate(room.saturating_sub(1));
        }
        let hidden = all - open.len();
        open.sort_by_key(|(index, _)| *index);
        let now = self.started.elapsed();
        let lines = open.into_iter();
        let mut lines: Vec<Line> = lines
            .map(|(_, call)| open_line(table, call, now, width, options.glyphs))
            .collect();
        if hidden > 0 && room > 0 {
            let calls = human::count(hidden, "more call");
            let line = Line::of(
                DIM,
                &format!("{} {calls} not shown", options.glyphs.ellipsis),
            );
            lines.push(line.truncate(width, options.glyphs.ellipsis));
        }
        lines
    }

    fn draw(&mut self, out: &mut String) {
        if self.phase == Phase::Idle {
            self.transcript.flush();
            self.transcript.output.finish_text(out);
            return;
        }
        let frame = self.transcript.output.begin_frame();
        let region = self.region();
        self.transcript.output.end_frame(&frame, &region, out);
    }

    /// Removes the region and forgets its calls.
    fn clear(&mut self, out: &mut String) {
        self.phase = Phase::Idle;
        self.transcript.table = CallTable::default();
        self.transcript.output.clear(out);
    }
}

impl Display for Live {
    fn handle(&mut self, event: UiEvent, out: &mut String) {
        self.transcript.handle(&event);
        match event {
            UiEvent::Start => {
                self.asked = Instant::now();
                self.phase = Phase::Working;
            }
            UiEvent::Tick => self.draw(out),
            UiEvent::Stopping => {
                self.phase = Phase::Stopping;
                self.draw(out);
            }
            UiEvent::End => {
                self.transcript.output.measure();
                let lines = self.transcript.summary(self.transcript.output.width());
                for line in lines {
                    self.transcript.output.line(line);
                }
                self.clear(out);
            }
            UiEvent::Totals { .. } | UiEvent::Abandoned => self.clear(out),
            _ if self.transcript.output.prose.waiting_rows() > MAX_WAITING_ROWS => self.draw(out),
            _ => {}
        }
    }

    fn pause(&mut self, out: &mut String) {
        self.transcript.flush();
        self.transcript.output.clear(out);
    }

    fn resume(&mut self, out: &mut String) {
        self.draw(out);
    }

    fn abandon(&mut self, out: &mut String) {
        self.clear(out);
    }
}
