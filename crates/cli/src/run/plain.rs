//! A run in lines: for pipes and files, and for terminals that cannot do more.

use std::time::{Duration, Instant};

use plaincall::RunEvent;

use crate::run::board::Board;
use crate::run::call_line::ending;
use crate::run::glyphs::Glyphs;
use crate::run::line::Line;
use crate::run::news::{Display, News};
use crate::run::palette::{ASKING, BOLD, CALL, DIM, PLAIN};
use crate::run::summary::{Form, summary};

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
            RunEvent::Start(moment) => (moment.call, moment.at, Line::of(PLAIN, "started")),
            RunEvent::Result(result) => (result.call, result.times.ended, ending(result)),
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
            News::ReplyOver(at) => {
                self.board.end_reply(at);
                let mut line = time(self.board.reply_end().unwrap_or_default());
                line.push(DIM, "the reply is over");
                self.line(&line, out);
            }
            News::Asking { call, .. } => {
                let what = Line::of(ASKING, "asks whether it may run");
                self.line(&self.about(call, self.board.now(), &what), out);
            }
            News::Answered { call, answer } => {
                if let Some(answer) = answer {
                    let what = Line::of(ASKING, answer);
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
            News::Reply(_) | News::Tick => {}
        }
    }

    fn abandon(&mut self, _: &mut String) {}
}
