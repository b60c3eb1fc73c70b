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
//!
//! The cursor rests on the row that is being written, above the region. Whatever the terminal does to the lines below
//! it when it is resized, the next frame begins at the cursor and clears all that follows.

use std::fmt::Write as _;
use std::time::Instant;

use plaincall::RunEvent;

use crate::picture::board::{Board, State};
use crate::picture::call_line::{Columns, call_line};
use crate::picture::glyphs::Glyphs;
use crate::picture::line::Line;
use crate::picture::palette::{self, ASKING, BOLD, CALL, CALL_NAME, DIM, PLAIN, REASONING};
use crate::picture::prose::Prose;
use crate::picture::summary::{Form, summary};
use crate::picture::words;
use crate::run::news::{Display, Fragment, News};
use crate::run::terminal::Size;

/// How many rows of text may wait for the next frame.
const ROWS_AT_ONCE: usize = 200;

/// The region takes at most so much of the height, so that the text stays in sight.
const SHARE: (usize, usize) = (3, 4);

/// A question that is open.
struct Question {
    call: u32,
    /// What there is to know.
    lines: Vec<Line>,
    prompt: Line,
    /// Whether the lines stand in the text above, because there is no room for them below.
    is_above: bool,
}

impl Question {
    /// The rows below the calls; where there is little room the prompt alone.
    fn rows(&self, width: usize) -> Vec<Line> {
        let lines: &[Line] = if self.is_above { &[] } else { &self.lines };
        let rows = lines.iter().chain([&self.prompt]);
        rows.flat_map(|line| line.wrapped(width)).collect()
    }
}

/// The display.
pub(crate) struct Live {
    board: Board,
    prose: Prose,
    glyphs: &'static Glyphs,
    has_color: bool,
    /// How many rows of an output the summary shows.
    rows: Option<usize>,
    /// Asks the terminal for its size.
    measure: Box<dyn Fn() -> Size + Send>,
    size: Size,
    /// The question that stands below the calls.
    question: Option<Question>,
    is_stopping: bool,
    /// The last frame, so that nothing is written if nothing has changed.
    frame: String,
    /// How many columns of the cursor's row are taken.
    row_width: usize,
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
            prose: Prose::new(),
            glyphs,
            has_color,
            rows,
            size: measure(),
            measure,
            question: None,
            is_stopping: false,
            frame: String::new(),
            row_width: 0,
        }
    }

    /// The widest line: the last column stays free, since terminals differ in what they do there.
    fn width(&self) -> usize {
        self.size.columns.saturating_sub(1).max(1)
    }

    fn reply(&mut self, fragments: Vec<Fragment>) {
        let width = self.width();
        for fragment in fragments {
            match fragment {
                Fragment::Text(text) => self.prose.text(&text, PLAIN, width),
                Fragment::Reasoning(text) => self.prose.text(&text, REASONING, width),
                Fragment::Call {
                    name,
                    id,
                    dependencies,
                    line,
                } => {
                    let mark = self.call_mark(&name, id.as_deref(), &dependencies, &line);
                    self.prose.call(mark);
                }
                Fragment::CallOver => self.prose.end_call(),
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
        mark.cut(self.width(), self.glyphs.cut)
    }

    /// How many rows the region may take.
    fn room(&self) -> usize {
        let (part, whole) = SHARE;
        (self.size.rows * part / whole).min(self.size.rows.saturating_sub(1))
    }

    /// Moves what is said about the open question up into the text if it does not fit below it: all of it must be
    /// there to be read, and text that still arrives must not push it out of sight if that can be helped.
    fn place_question(&mut self) {
        let (room, width) = (self.room(), self.width());
        if let Some(question) = &mut self.question
            && !question.is_above
            && question.rows(width).len() >= room
        {
            question.is_above = true;
            let rows = question.lines.iter().flat_map(|line| line.wrapped(width));
            for row in rows {
                self.prose.call(row);
            }
        }
    }

    /// Takes the question about this call away. What was said about it stays in the text.
    fn end_question(&mut self, call: u32) {
        let Some(question) = self.question.take_if(|question| question.call == call) else {
            return;
        };
        if !question.is_above {
            for line in &question.lines {
                for row in line.wrapped(self.width()) {
                    self.prose.call(row);
                }
            }
        }
    }

    /// The lines below the text.
    fn region(&self) -> Vec<Line> {
        let calls = self.board.calls();
        let mut below = Vec::new();
        match &self.question {
            Some(question) => below = question.rows(self.width()),
            None => below.push(self.status_line().cut(self.width(), self.glyphs.cut)),
        }
        let room = self.room();
        below.truncate(room.max(1));
        // A blank line sets the region off, if there is none and there is room for it.
        let has_gap = room > below.len() && !self.prose.row().is_empty();
        let room_for_calls = room.saturating_sub(below.len() + usize::from(has_gap));
        let columns = Columns::of(calls, self.width());
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
        let size = (self.measure)();
        let is_resized = size != self.size;
        let begin = self.beginning(size);
        self.size = size;
        self.place_question();
        self.prose.fit(self.width());
        let rows = self.prose.take_rows();
        let mut frame = String::new();
        self.prose.row().write(&mut frame, self.has_color);
        frame.push_str("\x1b[K");
        let region = self.region();
        for line in &region {
            frame.push_str("\r\n");
            line.write(&mut frame, self.has_color);
            frame.push_str("\x1b[K");
        }
        frame.push_str("\x1b[J");
        if !region.is_empty() {
            let _ = write!(frame, "\x1b[{}A", region.len());
        }
        frame.push('\r');
        let column = self.prose.row().width();
        if column > 0 {
            let _ = write!(frame, "\x1b[{column}C");
        }
        if rows.is_empty() && !is_resized && frame == self.frame {
            return;
        }
        // Terminals that know it show the frame as a whole; the others pass over it.
        out.push_str("\x1b[?2026h");
        out.push_str(&begin);
        for row in &rows {
            row.write(out, self.has_color);
            out.push_str("\x1b[K\r\n");
        }
        out.push_str(&frame);
        out.push_str("\x1b[?2026l");
        self.row_width = column;
        self.frame = frame;
    }

    /// Moves the cursor to the beginning of its row, which a narrower terminal may have broken into several.
    fn beginning(&self, size: Size) -> String {
        let rows = self.row_width.saturating_sub(1) / size.columns.max(1);
        if size.columns < self.size.columns && rows > 0 {
            format!("\x1b[{rows}A\r")
        } else {
            "\r".to_owned()
        }
    }

    /// Takes the region away and leaves the cursor on an empty row below the text.
    fn clear(&mut self, out: &mut String) {
        self.prose.end_started_row();
        out.push_str(&self.beginning(self.size));
        for row in self.prose.take_rows() {
            row.write(out, self.has_color);
            out.push_str("\x1b[K\r\n");
        }
        out.push_str("\x1b[J");
        self.row_width = 0;
    }
}

impl Display for Live {
    fn take(&mut self, news: News, out: &mut String) {
        match news {
            News::Reply(fragments) => {
                self.reply(fragments);
                if self.prose.waiting_rows() > ROWS_AT_ONCE {
                    self.draw(out);
                }
            }
            News::Event(event) => {
                self.board.take(&event);
                match &event {
                    RunEvent::Result(result) => self.end_question(result.call),
                    RunEvent::Resumed(_) => {
                        self.prose
                            .call(Line::of(ASKING, "  the run was taken up again"));
                    }
                    RunEvent::LogFailed(failed) => {
                        let text = format!(
                            "  the log cannot be written any more: {}; nothing more is started",
                            failed.error
                        );
                        for row in Line::of(ASKING, &text).wrapped(self.width()) {
                            self.prose.call(row);
                        }
                    }
                    _ => {}
                }
            }
            News::Prompt { call, prompt } => {
                if let Some(question) = &mut self.question
                    && question.call == call
                {
                    question.prompt = prompt;
                    self.draw(out);
                }
            }
            // The thread that writes heeds it.
            News::Quiet { .. } => {}
            News::Asking {
                call,
                about,
                lines,
                prompt,
            } => {
                self.board.ask(call, about);
                self.question = Some(Question {
                    call,
                    lines,
                    prompt,
                    is_above: false,
                });
                self.draw(out);
            }
            News::Answered { call, answer } => {
                self.board.end_question(call);
                self.end_question(call);
                if let Some((answer, call)) = answer.zip(self.board.calls().get(call as usize)) {
                    let mut line = Line::of(ASKING, &format!("  {} ", self.glyphs.asking));
                    line.push(BOLD, &call.id);
                    line.push(ASKING, &format!(" {answer}"));
                    self.prose.call(line.cut(self.width(), self.glyphs.cut));
                }
                self.draw(out);
            }
            News::Stopping => {
                self.is_stopping = true;
                self.draw(out);
            }
            News::Tick => self.draw(out),
            News::Over => {
                self.size = (self.measure)();
                self.clear(out);
                let form = Form {
                    width: Some(self.width()),
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
        self.clear(out);
    }

    fn come_back(&mut self, out: &mut String) {
        self.frame.clear();
        self.draw(out);
    }

    fn abandon(&mut self, out: &mut String) {
        self.clear(out);
    }
}
