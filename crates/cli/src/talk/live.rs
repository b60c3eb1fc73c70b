//! An answer on a terminal: its text scrolls, with a line for each call that has ended; below it stand the calls that have
//! not, and what is going on.

use std::time::{Duration, Instant};

use plaincall::RunEvent;
use plaincall_agent::AgentEvent;

use crate::picture::canvas::{Asked, Canvas};
use crate::picture::glyphs::Glyphs;
use crate::picture::line::Line;
use crate::picture::palette::{self, ASKING, BOLD, DIM, PLAIN, REASONING, RUNNING};
use crate::picture::words;
use crate::run::news::{Display, News};
use crate::run::terminal::Size;
use crate::talk::calls::Calls;
use crate::talk::plain::said;
use crate::talk::totals::totals;

/// How many rows of text may wait for the next frame.
const ROWS_AT_ONCE: usize = 200;

/// The display.
pub(crate) struct Live {
    canvas: Canvas,
    glyphs: &'static Glyphs,
    has_color: bool,
    calls: Calls,
    /// Lines that wait until the row that is being written is over.
    waiting: Vec<Line>,
    /// Whether the text is written while it comes. If not, it is held until it is known that it is not the answer.
    is_streamed: bool,
    held: String,
    begun: Instant,
    /// When the last thing came from the model, if it is being asked.
    asked: Option<Instant>,
    turn: u32,
    question: Option<Asked>,
    phase: Phase,
    /// When the run began, for the times of its events.
    run_begun: Instant,
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No question is worked on: nothing stands below the text, and others may write there.
    Idle,
    Working,
    Stopping,
}

impl Live {
    pub(crate) fn new(
        glyphs: &'static Glyphs,
        has_color: bool,
        is_streamed: bool,
        is_verbose: bool,
        run_begun: Instant,
        measure: Box<dyn Fn() -> Size + Send>,
    ) -> Self {
        Self {
            canvas: Canvas::new(has_color, measure),
            glyphs,
            has_color,
            calls: Calls::new(is_verbose),
            waiting: Vec::new(),
            is_streamed,
            held: String::new(),
            begun: Instant::now(),
            asked: None,
            turn: 0,
            question: None,
            phase: Phase::Idle,
            run_begun,
        }
    }

    /// Writes the lines that wait, if no row is cut in two by that.
    fn flush(&mut self, must: bool) {
        if must {
            self.canvas.prose.end_started_row();
        }
        if self.canvas.prose.row().is_empty() {
            for line in self.waiting.drain(..) {
                self.canvas.prose.line(line);
            }
        }
    }

    /// Writes the text that was held: it is not the answer.
    fn let_go(&mut self) {
        let held = std::mem::take(&mut self.held);
        let width = self.canvas.width();
        self.canvas.prose.text(held.trim_end(), PLAIN, width);
        self.canvas.prose.end_started_row();
    }

    fn event(&mut self, event: &AgentEvent) {
        let width = self.canvas.width();
        match event {
            AgentEvent::TurnBegin { turn } => {
                self.let_go();
                self.flush(true);
                self.turn = *turn;
                self.asked = Some(Instant::now());
            }
            AgentEvent::Text(text) => {
                self.asked = None;
                if self.is_streamed {
                    self.canvas.prose.text(text, PLAIN, width);
                    self.flush(false);
                } else {
                    self.held.push_str(text);
                }
            }
            AgentEvent::Reasoning(text) => {
                self.asked = None;
                self.canvas.prose.text(text, REASONING, width);
            }
            AgentEvent::Call { .. } => {
                self.asked = None;
                self.let_go();
                self.flush(true);
                // The line end behind the call belongs to it.
                self.canvas.prose.end_call();
            }
            AgentEvent::TurnEnd { .. } => {
                self.asked = None;
                self.flush(true);
            }
            _ => {}
        }
        if let Some(lines) = self.calls.take(event, self.glyphs, Some(width)) {
            self.waiting.extend(lines);
            self.flush(false);
        }
        if let Some(line) = said(event) {
            for row in line.wrapped(width) {
                self.waiting.push(row);
            }
            self.flush(false);
        }
    }

    fn status_line(&self) -> Line {
        let dot = format!(" {} ", self.glyphs.dot);
        let mut line = Line::of(DIM, &words::time(self.begun.elapsed()));
        let (running, waiting) = self.calls.counts();
        for (style, count, word) in [
            (RUNNING, running, "running"),
            (PLAIN, waiting, "waiting"),
            (palette::status(plaincall::Status::Ok), self.calls.ok, "ok"),
            (
                palette::status(plaincall::Status::Error),
                self.calls.not_ok,
                "not ok",
            ),
        ] {
            if count > 0 {
                line.push(DIM, &dot);
                line.push(style, &format!("{count} {word}"));
            }
        }
        line.push(DIM, &dot);
        if self.phase == Phase::Stopping {
            line.push(ASKING, "stopping; Ctrl-C again ends it at once");
        } else if let Some(since) = self.asked {
            let waited = since.elapsed();
            let mark = self.glyphs.running(waited.as_millis());
            line.push(DIM, &format!("{mark} waiting for the model"));
        } else if running + waiting > 0 {
            line.push(DIM, &format!("turn {}", self.turn + 1));
        } else {
            line.push(DIM, "the model writes");
        }
        line
    }

    fn region(&self) -> Vec<Line> {
        let width = self.canvas.width();
        let mut below = match &self.question {
            Some(question) => question.rows(width),
            None if self.phase == Phase::Idle => Vec::new(),
            None => vec![self.status_line().cut(width, self.glyphs.cut)],
        };
        let room = self.canvas.room();
        below.truncate(room.max(1));
        let has_gap = room > below.len() && !self.canvas.prose.row().is_empty();
        let left = room.saturating_sub(below.len() + usize::from(has_gap));
        let mut lines = Vec::new();
        if has_gap {
            lines.push(Line::new());
        }
        let waiting = self.waiting.iter().take(left).cloned();
        lines.extend(waiting);
        let left = left.saturating_sub(self.waiting.len());
        lines.extend(self.calls.lines(left, width, self.now(), self.glyphs));
        lines.append(&mut below);
        lines
    }

    /// The time since the run began.
    fn now(&self) -> Duration {
        self.run_begun.elapsed()
    }

    fn draw(&mut self, out: &mut String) {
        if self.phase == Phase::Idle && self.question.is_none() {
            self.flush(true);
            self.canvas.rest(out);
            return;
        }
        let frame = self.canvas.begin_frame();
        if let Some(question) = &mut self.question {
            question.place(&mut self.canvas);
        }
        self.canvas.fit();
        let region = self.region();
        self.canvas.end_frame(&frame, &region, out);
    }

    /// Nothing is worked on any more.
    fn rest(&mut self) {
        self.phase = Phase::Idle;
        self.asked = None;
        self.question = None;
        self.calls.clear();
    }

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
}

impl Display for Live {
    fn take(&mut self, news: News, out: &mut String) {
        match news {
            News::Agent(event) => {
                if let AgentEvent::Run(event) = &*event
                    && let RunEvent::Result(result) = &**event
                {
                    self.end_question(result.call);
                }
                self.event(&event);
                if self.canvas.prose.waiting_rows() > ROWS_AT_ONCE {
                    self.draw(out);
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
            News::Asking {
                call,
                about,
                lines,
                prompt,
            } => {
                self.flush(true);
                self.calls.ask(call, Some(about));
                self.question = Some(Asked::new(call, lines, prompt));
                self.draw(out);
            }
            News::Answered { call, answer } => {
                self.end_question(call);
                if let Some(answer) = answer {
                    let mut line = Line::of(ASKING, &format!("{} ", self.glyphs.asking));
                    if let Some(name) = self.calls.name(call) {
                        line.push(BOLD, &format!("{name} "));
                    }
                    line.push(ASKING, &answer);
                    let line = line.cut(self.canvas.width(), self.glyphs.cut);
                    self.canvas.prose.line(line);
                }
                self.calls.ask(call, None);
                self.draw(out);
            }
            News::Stopping => {
                self.phase = Phase::Stopping;
                self.draw(out);
            }
            News::Tick => self.draw(out),
            News::Answer(text) => {
                self.flush(true);
                let width = self.canvas.width();
                self.canvas.prose.text(&text, PLAIN, width);
            }
            News::Totals {
                progress,
                time,
                is_answered,
            } => {
                if !is_answered {
                    self.let_go();
                }
                self.flush(true);
                self.canvas.measure();
                self.canvas.clear(out);
                let line = totals(&progress, time, self.glyphs);
                for row in line.wrapped(self.canvas.width()) {
                    row.write(out, self.has_color);
                    out.push('\n');
                }
                self.rest();
            }
            News::Left => {
                self.let_go();
                self.flush(true);
                self.canvas.clear(out);
                self.rest();
            }
            News::Begin => {
                self.begun = Instant::now();
                self.asked = Some(self.begun);
                self.calls.reset();
                self.held.clear();
                self.phase = Phase::Working;
            }
            News::Over => {
                self.canvas.measure();
                self.canvas.clear(out);
            }
            News::Reply(_) | News::Event(_) | News::Quiet { .. } | News::Written(_) => {}
        }
    }

    fn be_quiet(&mut self, out: &mut String) {
        self.flush(true);
        self.canvas.clear(out);
    }

    fn come_back(&mut self, out: &mut String) {
        self.canvas.forget();
        self.draw(out);
    }

    fn abandon(&mut self, out: &mut String) {
        self.calls.clear();
        self.canvas.clear(out);
    }
}
