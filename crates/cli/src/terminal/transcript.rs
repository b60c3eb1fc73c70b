//! What both displays show in the same way: the text of the reply, a line for each call that has ended, remarks.

use std::mem::take;
use std::time::Instant;

use anstyle::Style;
use plaincall::{RunEvent, Status};

use crate::terminal::call_line::{ended_lines, output_lines, started_line};
use crate::terminal::call_table::CallTable;
use crate::terminal::event::UiEvent;
use crate::terminal::glyphs::Glyphs;
use crate::terminal::line::Line;
use crate::terminal::palette::{ASKING, DIM, PLAIN, REASONING};
use crate::terminal::summary::{Form, summary, wrapped};
use crate::terminal::words;

/// Which text of a reply is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextShown {
    /// All of it, while it arrives.
    AtOnce,
    /// The text that is not the answer, as soon as that is known.
    WithoutAnswer,
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) glyphs: &'static Glyphs,
    pub(crate) has_color: bool,
    pub(crate) text: TextShown,
    /// Whether the beginnings of results are shown.
    pub(crate) is_verbose: bool,
    /// How many rows of an output the summary at the end shows; `None` if there is no summary.
    pub(crate) summary: Option<Rows>,
}

/// How many rows of an output are shown; `None` for all.
pub(crate) type Rows = Option<usize>;

/// Where text and lines are written.
pub(crate) trait Sheet {
    fn text(&mut self, text: &str, style: Style);

    /// Adds a line on a row of its own.
    fn line(&mut self, line: Line);

    /// Ends the current row, if it has text.
    fn end_row(&mut self);

    fn is_in_row(&self) -> bool;

    /// Marks a call: the line end that follows belongs to it.
    fn call(&mut self);

    /// The width of the terminal; `None` where lines are not broken.
    fn width(&self) -> Option<usize>;
}

/// The text and the lines, written on a sheet.
pub(crate) struct Transcript<S> {
    pub(crate) sheet: S,
    pub(crate) look: Look,
    pub(crate) table: CallTable,
    /// How many calls of the question have ended `ok`, and how many otherwise.
    pub(crate) ended: (usize, usize),
    /// Lines that wait until the row that is being written is over.
    pub(crate) waiting: Vec<Line>,
    /// Text that may be the answer.
    held: String,
    /// When the model was asked, until something comes of its reply.
    pub(crate) asked: Option<Instant>,
    pub(crate) turn: u32,
}

impl<S: Sheet> Transcript<S> {
    pub(crate) fn new(sheet: S, look: Look) -> Self {
        Self {
            sheet,
            look,
            table: CallTable::default(),
            ended: (0, 0),
            waiting: Vec::new(),
            held: String::new(),
            asked: None,
            turn: 0,
        }
    }

    pub(crate) fn take(&mut self, event: &UiEvent) {
        self.table.take(event);
        match event {
            UiEvent::Begin => {
                self.table = CallTable::default();
                self.ended = (0, 0);
                self.held.clear();
                self.asked = Some(Instant::now());
            }
            UiEvent::TurnBegin(turn) => {
                self.release();
                self.flush();
                self.turn = *turn;
                self.asked = Some(Instant::now());
            }
            UiEvent::Text(text) => {
                self.asked = None;
                match self.look.text {
                    TextShown::AtOnce => self.sheet.text(text, PLAIN),
                    TextShown::WithoutAnswer => self.held.push_str(text),
                    TextShown::Nothing => {}
                }
            }
            UiEvent::Reasoning(text) => {
                self.asked = None;
                self.sheet.text(text, REASONING);
            }
            UiEvent::Call { .. } => {
                self.asked = None;
                self.release();
                self.flush();
                self.sheet.call();
            }
            UiEvent::TurnEnd => {
                self.asked = None;
                self.flush();
            }
            UiEvent::Run(event) => self.run_event(event),
            UiEvent::Remark(text) => self.remark(DIM, text),
            UiEvent::Answer(text) => {
                self.flush();
                self.sheet.text(text, PLAIN);
            }
            UiEvent::Totals { parts, is_answered } => {
                if !is_answered {
                    self.release();
                }
                self.flush();
                let totals = parts.join(&format!(" {} ", self.look.glyphs.dot));
                self.remark(DIM, &totals);
                self.asked = None;
            }
            UiEvent::Abandoned => {
                self.release();
                self.flush();
                self.asked = None;
            }
            UiEvent::Over => self.flush(),
            _ => {}
        }
        if !self.sheet.is_in_row() {
            self.flush();
        }
    }

    fn run_event(&mut self, event: &RunEvent) {
        let (width, glyphs) = (self.sheet.width(), self.look.glyphs);
        match event {
            RunEvent::Start(started) if width.is_none() && self.look.summary.is_some() => {
                let call = self.table.call(started.call);
                let line = call.map(|call| started_line(call, started.attempt > 1, glyphs));
                self.waiting.extend(line);
            }
            RunEvent::BackOff(back_off) => {
                let wait = words::time(back_off.wait);
                let text = format!("{} failed; retrying in {wait}", back_off.id);
                self.remark(DIM, &text);
            }
            RunEvent::Result(result) => {
                let is_ok = result.status == Status::Ok;
                self.ended.0 += usize::from(is_ok);
                self.ended.1 += usize::from(!is_ok);
                if let Some(call) = self.table.call(result.call) {
                    // The table knows when it began, too.
                    let result = call.result().unwrap_or(result);
                    let mut lines = ended_lines(call, result, width, glyphs);
                    if self.look.summary.is_some() {
                        // The summary shows why the call failed.
                        lines.truncate(1);
                    }
                    self.waiting.append(&mut lines);
                    if self.look.is_verbose {
                        self.waiting.extend(output_lines(result, width, glyphs));
                    }
                }
            }
            RunEvent::Resumed(_) if self.look.summary.is_some() => {
                self.remark(ASKING, "the run was resumed");
            }
            RunEvent::LogFailed(failed) => {
                let (begin, end) = ("the log cannot be written", "no further calls start");
                self.remark(ASKING, &format!("{begin}: {}; {end}", failed.error));
            }
            _ => {}
        }
    }

    /// Adds a line of the program's own.
    fn remark(&mut self, style: Style, text: &str) {
        let lines = wrapped(&Line::of(style, text), self.sheet.width());
        self.waiting.extend(lines);
    }

    /// Writes the lines that wait, on rows of their own.
    pub(crate) fn flush(&mut self) {
        self.sheet.end_row();
        for line in take(&mut self.waiting) {
            self.sheet.line(line);
        }
    }

    /// Writes the text that was held: it is not the answer.
    fn release(&mut self) {
        let held = take(&mut self.held);
        self.sheet.text(held.trim_end(), PLAIN);
        self.sheet.end_row();
    }

    /// The results, the timeline and a sentence, if they are wanted.
    pub(crate) fn summary(&self, width: Option<usize>) -> Vec<Line> {
        let Some(rows) = self.look.summary else {
            return Vec::new();
        };
        let mut lines = vec![Line::new()];
        let form = Form { width, rows };
        lines.extend(summary(&self.table, form, self.look.glyphs));
        lines
    }
}
