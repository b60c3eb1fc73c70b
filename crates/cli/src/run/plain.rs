//! A run in lines: for pipes and files, and for terminals that cannot do more.

use std::time::{Duration, Instant};

use anstyle::Style;
use plaincall::RunEvent;

use crate::picture::board::Board;
use crate::picture::call_line::ending;
use crate::picture::glyphs::Glyphs;
use crate::picture::line::Line;
use crate::picture::palette::{ASKING, BOLD, CALL, DIM, PLAIN};
use crate::picture::summary::{Form, summary};
use crate::picture::words;
use crate::run::news::{About, Display, News};

/// Writes one line for every event of a call, then the summary.
#[derive(Debug)]
pub(crate) struct Plain {
    board: Board,
    glyphs: &'static Glyphs,
    has_color: bool,
    form: Form,
}

impl Plain {
    pub(crate) fn new(
        begun: Instant,
        glyphs: &'static Glyphs,
        has_color: bool,
        form: Form,
    ) -> Self {
        Self {
            board: Board::new(begun),
            glyphs,
            has_color,
            form,
        }
    }

    fn line(&self, line: &Line, out: &mut String) {
        line.write(out, self.has_color);
        out.push('\n');
    }

    /// What happened to a call, if it is worth a line.
    fn event(&self, event: &RunEvent) -> Option<Line> {
        let (call, at, what) = match event {
            RunEvent::Call(appeared) => (appeared.call, appeared.at, Line::of(DIM, "writing")),
            RunEvent::Waiting(moment) => {
                let call = self.board.calls().get(moment.call as usize)?;
                let open: Vec<&str> = self.board.open_dependencies(call).collect();
                if open.is_empty() {
                    return None;
                }
                let mut what = Line::of(DIM, "waits for ");
                what.push(PLAIN, &open.join(", "));
                (moment.call, moment.at, what)
            }
            RunEvent::Start(started) => {
                let again = if started.attempt > 1 { " again" } else { "" };
                let what = Line::of(PLAIN, &format!("started{again}"));
                (started.call, started.at, what)
            }
            RunEvent::BackOff(back_off) => {
                let wait = words::time(back_off.wait);
                let what = Line::of(PLAIN, &format!("failed; tried again in {wait}"));
                (back_off.call, back_off.at, what)
            }
            RunEvent::Resumed(resumed) => {
                return Some(about_all(resumed.at, ASKING, "the run was taken up again"));
            }
            RunEvent::Over(over) => {
                return Some(about_all(over.at, DIM, "the reply is over"));
            }
            RunEvent::LogFailed(failed) => {
                let what = format!(
                    "the log cannot be written any more: {}; nothing more is started",
                    failed.error
                );
                return Some(about_all(failed.at, ASKING, &what));
            }
            RunEvent::Result(result) => {
                // The board knows when it began, too.
                let result = self.board.calls().get(result.call as usize)?.result()?;
                (result.call, result.times.ended, ending(result))
            }
            _ => return None,
        };
        Some(self.about(call, at, &what))
    }

    fn about(&self, call: u32, at: Duration, what: &Line) -> Line {
        let mut line = time(at);
        if let Some(call) = self.board.calls().get(call as usize) {
            line.push(BOLD, &call.id);
            line.push(CALL, &format!(" ({})", call.name));
            line.push(PLAIN, ": ");
        }
        line.append(what);
        line
    }
}

/// What happened to the run as a whole.
fn about_all(at: Duration, style: Style, what: &str) -> Line {
    let mut line = time(at);
    line.push(style, what);
    line
}

fn time(at: Duration) -> Line {
    Line::of(DIM, &format!("[{:>7.2} s] ", at.as_secs_f64()))
}

impl Display for Plain {
    fn take(&mut self, news: News, out: &mut String) {
        match news {
            News::Event(event) => {
                self.board.take(&event);
                if let Some(line) = self.event(&event) {
                    self.line(&line, out);
                }
            }
            News::Asking { call, about, .. } => {
                let what = match about {
                    About::Permission => "asks whether it may run",
                    About::Fate => "was cut off; what became of it?",
                };
                let what = Line::of(ASKING, what);
                self.line(&self.about(call, self.board.now(), &what), out);
            }
            News::Answered { call, answer } => {
                if let Some(answer) = answer {
                    let what = Line::of(ASKING, &answer);
                    self.line(&self.about(call, self.board.now(), &what), out);
                }
            }
            News::Stopping => {
                let mut line = time(self.board.now());
                line.push(ASKING, "stopping");
                self.line(&line, out);
            }
            News::Over => {
                out.push('\n');
                for line in summary(&self.board, self.form, self.glyphs) {
                    self.line(&line, out);
                }
            }
            News::Reply(_)
            | News::Tick
            | News::Page { .. }
            | News::Prompt { .. }
            | News::Quiet { .. }
            | News::Written(_)
            | News::Begin
            | News::Left
            | News::Agent(_)
            | News::Answer(_)
            | News::Totals { .. } => {}
        }
    }

    fn abandon(&mut self, _: &mut String) {}
}
