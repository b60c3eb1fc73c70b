//! The common part of both displays: the text of the reply, a line for each call that has ended, and notes.

use std::mem::take;
use std::time::Instant;

use anstyle::Style;
use plaincall::{RunEvent, Status};
use plaincall_report::call_table::CallTable;

use crate::output::is_quiet;
use crate::terminal::call_line::{ended_lines, has_long_error, output_lines, started_line};
use crate::terminal::event::UiEvent;
use crate::terminal::glyphs::Glyphs;
use crate::terminal::human;
use crate::terminal::line::Line;
use crate::terminal::palette::{DIM, NOTICE, PLAIN, REASONING};
use crate::terminal::summary::{Layout, results, rows_of_parts, summary, wrap};

/// Which text of a reply is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyText {
    /// All text, while it arrives.
    Streamed,
    /// All text except the answer, when a call or another turn shows that it is not the answer.
    ExceptAnswer,
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DisplayOptions {
    pub(crate) glyphs: &'static Glyphs,
    pub(crate) has_color: bool,
    pub(crate) text: ReplyText,
    /// Whether the first lines of results are shown.
    pub(crate) is_verbose: bool,
    /// The rows per output in the final summary. None without a summary.
    pub(crate) summary: Option<Rows>,
    /// Whether a display that does not draw in place has a line for the start of a call.
    pub(crate) shows_starts: bool,
}

/// The maximum number of rows of an output. None for all.
pub(crate) type Rows = Option<usize>;

/// An output for text and lines.
pub(crate) trait TextOutput {
    fn text(&mut self, text: &str, style: Style);

    /// Adds a line on its own row.
    fn line(&mut self, line: Line);

    /// Ends the current row, if it has text.
    fn end_row(&mut self);

    fn is_in_row(&self) -> bool;

    /// Marks a call: the next line end belongs to it.
    fn call(&mut self);

    /// Returns the width of the terminal. None if lines are not wrapped.
    fn width(&self) -> Option<usize>;
}

/// Writes the transcript to an output.
pub(crate) struct Transcript<S> {
    pub(crate) output: S,
    pub(crate) options: DisplayOptions,
    pub(crate) table: CallTable,
    /// The number of calls of the question that ended with `ok`, and of the others.
    pub(crate) ended: (usize, usize),
    /// Lines that wait for the end of the current row.
    pub(crate) waiting: Vec<Line>,
    /// Text that may be the answer.
    held: String,
    /// When the model was asked, until its reply starts.
    pub(crate) asked: Option<Instant>,
    pub(crate) turn: u32,
}

impl<S: TextOutput> Transcript<S> {
    pub(crate) fn new(output: S, options: DisplayOptions) -> Self {
        Self {
            output,
            options,
            table: CallTable::default(),
            ended: (0, 0),
            waiting: Vec::new(),
            held: String::new(),
            asked: None,
            turn: 0,
        }
    }

    pub(crate) fn handle(&mut self, event: &UiEvent) {
        event.apply_to(&mut self.table);
        match event {
            UiEvent::Start => {
                self.table = CallTable::default();
                self.ended = (0, 0);
                self.held.clear();
                self.asked = Some(Instant::now());
            }
            UiEvent::TurnStart(turn) => {
                self.write_held();
                self.flush();
                self.turn = *turn;
                self.asked = Some(Instant::now());
            }
            UiEvent::Text(text) => {
                self.asked = None;
                match self.options.text {
                    ReplyText::Streamed => self.output.text(text, PLAIN),
                    ReplyText::ExceptAnswer => self.held.push_str(text),
                    ReplyText::Nothing => {}
                }
            }
            UiEvent::Reasoning(text) => {
                self.asked = None;
                self.output.text(text, REASONING);
            }
            UiEvent::Call { .. } => {
                self.asked = None;
                self.write_held();
                self.flush();
                self.output.call();
            }
            UiEvent::TurnEnd => {
                self.asked = None;
                self.flush();
            }
            UiEvent::Run(event) => self.run_event(event),
            UiEvent::Note(text) => self.note(DIM, text),
            UiEvent::Answer(text) => {
                self.flush();
                self.output.text(text, PLAIN);
            }
            UiEvent::Totals { parts, is_answered } => {
                if !is_answered {
                    self.write_held();
                }
                self.flush();
                let separator = Line::of(DIM, &format!(" {} ", self.options.glyphs.dot));
                let rows = rows_of_parts(parts, &separator, self.output.width());
                self.waiting.extend(rows);
                self.asked = None;
            }
            UiEvent::Abandoned => {
                self.write_held();
                self.flush();
                self.asked = None;
            }
            UiEvent::End => self.flush(),
            _ => {}
        }
        if !self.output.is_in_row() {
            self.flush();
        }
    }

    fn run_event(&mut self, event: &RunEvent) {
        let (width, glyphs) = (self.output.width(), self.options.glyphs);
        match event {
            RunEvent::Start(started) if width.is_none() && self.options.shows_starts => {
                let call = self.table.call(started.call);
                let line = call.map(|call| started_line(call, started.attempt > 1, glyphs));
                self.waiting.extend(line);
            }
            RunEvent::BackOff(back_off) => {
                let wait = human::time(back_off.wait);
                let text = format!("{} failed; retrying in {wait}", back_off.id);
                self.note(DIM, &text);
            }
            RunEvent::Result(result) => {
                let is_ok = result.status == Status::Ok;
                self.ended.0 += usize::from(is_ok);
                self.ended.1 += usize::from(!is_ok);
                if let Some(call) = self.table.call(result.call) {
                    // The table also knows the start time.
                    let result = call.result().unwrap_or(result);
                    let mut lines = ended_lines(call, result, width, glyphs);
                    let is_verbose = self.options.is_verbose;
                    if self.options.summary.is_some() || is_verbose && has_long_error(result) {
                        // The summary or the output shows the error.
                        lines.truncate(1);
                    }
                    self.waiting.append(&mut lines);
                    if is_verbose {
                        self.waiting.extend(output_lines(result, width, glyphs));
                    }
                }
            }
            RunEvent::Resumed(_) if self.options.summary.is_some() => {
                self.note(NOTICE, "the run was resumed");
            }
            RunEvent::LogFailed(failed) => {
                let (problem, consequence) =
                    ("the log cannot be written", "no further calls start");
                self.note(
                    NOTICE,
                    &format!("{problem}: {}; {consequence}", failed.error),
                );
            }
            _ => {}
        }
    }

    /// Adds a note.
    fn note(&mut self, style: Style, text: &str) {
        let lines = wrap(&Line::of(style, text), self.output.width());
        self.waiting.extend(lines);
    }

    /// Writes the waiting lines on their own rows.
    pub(crate) fn flush(&mut self) {
        self.output.end_row();
        for line in take(&mut self.waiting) {
            self.output.line(line);
        }
    }

    /// Writes the held text, which is not the answer.
    fn write_held(&mut self) {
        let held = take(&mut self.held);
        self.output.text(held.trim_end(), PLAIN);
        self.output.end_row();
    }

    /// Returns the summary, if the display has one.
    pub(crate) fn summary(&self, width: Option<usize>) -> Vec<Line> {
        let Some(rows) = self.options.summary else {
            return Vec::new();
        };
        let layout = Layout { width, rows };
        let glyphs = self.options.glyphs;
        if is_quiet() {
            return results(&self.table, layout, glyphs);
        }
        // On a terminal, the calls are above it.
        let mut lines: Vec<Line> = width.map(|_| Line::new()).into_iter().collect();
        lines.extend(summary(&self.table, layout, glyphs));
        lines
    }
}
