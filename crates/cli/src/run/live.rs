//! A run on a terminal: the reply's text scrolls, and below it stand the calls, one line each, redrawn in place.
//!
//! ```text
//! Each cargo gives a weight, and each weight a draught.    <- rows that are done; they belong to the terminal
//!   ▸ weigh  weight_ardea  ← cargo_ardea
//! And the order its█                                       <- the row that is being written, with the cursor
//!
//! ⠹ weight_ardea   weigh  running 1.2 s                    <- the region
//! ○ draught_ardea  draught  waits for weight_ardea
//! 1 running · 1 waiting · 4 ok · 3.4 s
//! ```

use std::time::Instant;

use plaincall::RunEvent;

use crate::picture::board::{Board, State};
use crate::picture::call_line::{Columns, call_line};
use crate::picture::canvas::{Asked, Canvas};
use crate::picture::glyphs::Glyphs;
use crate::picture::line::Line;
use crate::picture::palette::{self, ASKING, BOLD, CALL, CALL_NAME, DIM, PLAIN, REASONING};
use crate::picture::summary::{Form, summary};
use crate::picture::words;
use crate::run::news::{Display, Fragment, News};
use crate::run::terminal::Size;

/// How many rows of text may wait for the next frame.
const ROWS_AT_ONCE: usize = 200;

/// The display.
pub(crate) struct Live {
    board: Board,
    canvas: Canvas,
    glyphs: &'static Glyphs,
    has_color: bool,
    /// How many rows of an output the summary shows.
    rows: Option<usize>,
    /// The question that stands below the calls.
    question: Option<Asked>,
    is_stopping: bool,
}

impl Live {
    pub(crate) fn new(
        begun: Instant,
        glyphs: &'static Glyphs,
        has_color: bool,
        rows: Option<usize>,
        measure: Box<dyn Fn() -> Size + Send>,
    ) -> Self {
        Self {
            board: Board::new(begun),
            canvas: Canvas::new(has_color, measure),
            glyphs,
            has_color,
            rows,
            question: None,
            is_stopping: false,
        }
    }

    fn reply(&mut self, fragments: Vec<Fragment>) {
        let width = self.canvas.width();
        for fragment in fragments {
            match fragment {
                Fragment::Text(text) => self.canvas.prose.text(&text, PLAIN, width),
                Fragment::Reasoning(text) => self.canvas.prose.text(&text, REASONING, width),
                Fragment::Call {
                    name,
                    id,
                    dependencies,
                    line,
                } => {
                    let mark = self.call_mark(&name, id.as_deref(), &dependencies, &line);
                    self.canvas.prose.call(mark);
                }
                Fragment::CallOver => self.canvas.prose.end_call(),
            }
        }
    }

    /// What stands in the text in place of a call.
    fn call_mark(&self, name: &str, id: Option<&str>, dependencies: &[String], line: &str) -> Line {
        let mut mark = Line::of(CALL, &format!("  {} ", self.glyphs.call));
        mark.push(CALL_NAME, name);
        if let Some(id) = id {
            mark.push(CALL, &format!("  {id}"));
        }
        if !line.is_empty() {
            mark.push(DIM, &format!(" {line}"));
        }
        if !dependencies.is_empty() {
            mark.push(
                DIM,
                &format!("  {} {}", self.glyphs.needs, dependencies.join(", ")),
            );
        }
        mark.cut(self.canvas.width(), self.glyphs.cut)
    }

    /// Takes the question about this call away. What was said about it stays in the text.
    fn end_question(&mut self, call: u32) {
        if let Some(question) = self.question.take_if(|question| question.call == call) {
            question.end(&mut self.canvas);
        }
    }

    fn turn_page(&mut self, call: u32, lines: Vec<Line>, prompt: Line) {
        if let Some(question) = &mut self.question
            && question.call == call
        {
            question.turn(lines, prompt, &mut self.canvas);
        }
    }

    /// The lines below the text.
    fn region(&self) -> Vec<Line> {
        let calls = self.board.calls();
        let mut below = Vec::new();
        match &self.question {
            Some(question) => below = question.rows(self.canvas.width()),
            None => below.push(self.status_line().cut(self.canvas.width(), self.glyphs.cut)),
        }
        let room = self.canvas.room();
        below.truncate(room.max(1));
        // A blank line sets the region off, if there is none and there is room for it.
        let has_gap = room > below.len() && !self.canvas.prose.row().is_empty();
        let room_for_calls = room.saturating_sub(below.len() + usize::from(has_gap));
        let columns = Columns::of(calls, self.canvas.width());
        let now = self.board.now();
        let mut lines = Vec::new();
        if has_gap {
            lines.push(Line::new());
        }
        for index in self.chosen(room_for_calls) {
            if let Some(call) = calls.get(index) {
                lines.push(call_line(&self.board, call, now, columns, self.glyphs));
            }
        }
        lines.append(&mut below);
        lines
    }

    /// Which calls are shown if there is not room for all: those at work first, those that ended long ago last.
    fn chosen(&self, room: usize) -> Vec<usize> {
        let calls = self.board.calls();
        if calls.len() <= room {
            return (0..calls.len()).collect();
        }
        let mut order: Vec<(u8, u128, usize)> = calls
            .iter()
            .enumerate()
            .map(|(index, call)| match &call.state {
                State::Asking | State::AskingFate => (0, 0, index),
                State::Running(since) => (1, since.as_millis(), index),
                State::Writing => (2, 0, index),
                State::Ready | State::Waiting | State::Resting => (3, 0, index),
                State::Ended(result) => (4, u128::MAX - result.times.ended.as_millis(), index),
            })
            .collect();
        order.sort_unstable();
        let mut chosen: Vec<usize> = order
            .into_iter()
            .take(room)
            .map(|(.., index)| index)
            .collect();
        chosen.sort_unstable();
        chosen
    }

    fn status_line(&self) -> Line {
        let counts = self.board.counts();
        let dot = format!(" {} ", self.glyphs.dot);
        let mut line = Line::of(DIM, &words::time(self.board.now()));
        let mut part = |style, count: usize, word: &str| {
            if count > 0 {
                line.push(DIM, &dot);
                line.push(style, &format!("{count} {word}"));
            }
        };
        part(ASKING, counts.asking, "to answer");
        part(palette::RUNNING, counts.running, "running");
        part(PLAIN, counts.waiting, "waiting");
        part(PLAIN, counts.writing, "written now");
        part(palette::status(plaincall::Status::Ok), counts.ok, "ok");
        part(
            palette::status(plaincall::Status::Error),
            counts.not_ok,
            "not ok",
        );
        line.push(DIM, &dot);
        if self.is_stopping {
            line.push(ASKING, "stopping; Ctrl-C again ends it at once");
        } else if self.board.reply_end().is_some() {
            line.push(DIM, "reply over");
        } else {
            line.push(DIM, "reply being written");
        }
        line
    }

    /// Draws what has changed.
    fn draw(&mut self, out: &mut String) {
        let frame = self.canvas.begin_frame();
        if let Some(question) = &mut self.question {
            question.place(&mut self.canvas);
        }
        self.canvas.fit();
        let region = self.region();
        self.canvas.end_frame(&frame, &region, out);
    }
}

impl Display for Live {
    fn take(&mut self, news: News, out: &mut String) {
        match news {
            News::Reply(fragments) => {
                self.reply(fragments);
                if self.canvas.prose.waiting_rows() > ROWS_AT_ONCE {
                    self.draw(out);
                }
            }
            News::Event(event) => {
                self.board.take(&event);
                match &event {
                    RunEvent::Result(result) => self.end_question(result.call),
                    RunEvent::Resumed(_) => {
                        self.canvas
                            .prose
                            .call(Line::of(ASKING, "  the run was taken up again"));
                    }
                    RunEvent::LogFailed(failed) => {
                        let text = format!(
                            "  the log cannot be written any more: {}; nothing more is started",
                            failed.error
                        );
                        for row in Line::of(ASKING, &text).wrapped(self.canvas.width()) {
                            self.canvas.prose.call(row);
                        }
                    }
                    _ => {}
                }
            }
            News::Page {
                call,
                lines,
                prompt,
            } => {
                self.turn_page(call, lines, prompt);
                self.draw(out);
            }
            News::Prompt { call, prompt } => {
                if let Some(question) = &mut self.question
                    && question.call == call
                {
                    question.prompt = prompt;
                    self.draw(out);
                }
            }
            // The thread that writes heeds the first; the others belong to conversations.
            News::Quiet { .. }
            | News::Written(_)
            | News::Begin
            | News::Left
            | News::Agent(_)
            | News::Answer(_)
            | News::Totals { .. } => {}
            News::Asking {
                call,
                about,
                lines,
                prompt,
            } => {
                self.board.ask(call, about);
                self.question = Some(Asked::new(call, lines, prompt));
                self.draw(out);
            }
            News::Answered { call, answer } => {
                self.board.end_question(call);
                self.end_question(call);
                if let Some((answer, call)) = answer.zip(self.board.calls().get(call as usize)) {
                    let mut line = Line::of(ASKING, &format!("  {} ", self.glyphs.asking));
                    line.push(BOLD, &call.id);
                    line.push(ASKING, &format!(" {answer}"));
                    self.canvas
                        .prose
                        .call(line.cut(self.canvas.width(), self.glyphs.cut));
                }
                self.draw(out);
            }
            News::Stopping => {
                self.is_stopping = true;
                self.draw(out);
            }
            News::Tick => self.draw(out),
            News::Over => {
                self.canvas.measure();
                self.canvas.clear(out);
                let form = Form {
                    width: Some(self.canvas.width()),
                    rows: self.rows,
                };
                out.push('\n');
                for line in summary(&self.board, form, self.glyphs) {
                    line.write(out, self.has_color);
                    out.push('\n');
                }
            }
        }
    }

    fn be_quiet(&mut self, out: &mut String) {
        self.canvas.clear(out);
    }

    fn come_back(&mut self, out: &mut String) {
        self.canvas.forget();
        self.draw(out);
    }

    fn abandon(&mut self, out: &mut String) {
        self.canvas.clear(out);
    }
}
