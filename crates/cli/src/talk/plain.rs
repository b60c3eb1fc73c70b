//! An answer in lines: for pipes and files, for terminals that cannot do more, and for people who want it so.

use plaincall_agent::AgentEvent;

use crate::picture::glyphs::Glyphs;
use crate::picture::line::Line;
use crate::picture::palette::{ASKING, BOLD, DIM, PLAIN};
use crate::picture::words;
use crate::run::news::{About, Display, News};
use crate::talk::calls::Calls;
use crate::talk::totals::totals;
use crate::visible::harmless;

/// How many characters of what the model was told are shown.
const SHOWN: usize = 160;

/// Writes the text, a line for each call that has ended, and what it took.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "two settings, and two things to know of the line that is written"
)]
pub(crate) struct Plain {
    glyphs: &'static Glyphs,
    has_color: bool,
    calls: Calls,
    /// Whether the text is written while it comes. If not, it is held until it is known that it is not the answer.
    is_streamed: bool,
    held: String,
    /// Whether the cursor stands behind text.
    is_in_line: bool,
    /// Whether the line end that follows belongs to a call.
    is_behind_call: bool,
    waiting: Vec<Line>,
}

impl Plain {
    pub(crate) fn new(glyphs: &'static Glyphs, has_color: bool, is_streamed: bool) -> Self {
        Self {
            glyphs,
            has_color,
            calls: Calls::default(),
            is_streamed,
            held: String::new(),
            is_in_line: false,
            is_behind_call: false,
            waiting: Vec::new(),
        }
    }

    fn line(&self, line: &Line, out: &mut String) {
        line.write(out, self.has_color);
        out.push('\n');
    }

    /// The beginning of a line about a call; nothing if it is about none.
    fn about(&self, call: u32) -> Line {
        let Some(name) = self.calls.name(call) else {
            return Line::new();
        };
        let mut line = Line::of(BOLD, name);
        line.push(PLAIN, ": ");
        line
    }

    fn text(&mut self, text: &str, out: &mut String) {
        let text = match text.strip_prefix('\n') {
            Some(rest) if self.is_behind_call => rest,
            _ => text,
        };
        if text.is_empty() {
            return;
        }
        self.is_behind_call = false;
        out.push_str(&harmless(text));
        self.is_in_line = !text.ends_with('\n');
    }

    fn end_line(&mut self, out: &mut String) {
        if std::mem::take(&mut self.is_in_line) {
            out.push('\n');
        }
    }

    fn flush(&mut self, must: bool, out: &mut String) {
        if must {
            self.end_line(out);
        }
        if !self.is_in_line {
            for line in std::mem::take(&mut self.waiting) {
                self.line(&line, out);
            }
        }
    }

    fn let_go(&mut self, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        self.text(held.trim_end(), out);
        self.end_line(out);
    }

    fn event(&mut self, event: &AgentEvent, out: &mut String) {
        match event {
            AgentEvent::TurnBegin { .. } => {
                self.let_go(out);
                self.flush(true, out);
            }
            AgentEvent::Text(text) if self.is_streamed => {
                self.text(text, out);
                self.flush(false, out);
            }
            AgentEvent::Text(text) => self.held.push_str(text),
            AgentEvent::Call { .. } => {
                self.let_go(out);
                self.flush(true, out);
                self.is_behind_call = true;
            }
            AgentEvent::TurnEnd { .. } => self.flush(true, out),
            _ => {}
        }
        if let Some(lines) = self.calls.take(event, self.glyphs, None) {
            self.waiting.extend(lines);
            self.flush(false, out);
        }
        if let Some(line) = said(event) {
            self.waiting.push(line);
            self.flush(false, out);
        }
    }
}

/// What is said about something that happens beside the reply and its calls.
pub(crate) fn said(event: &AgentEvent) -> Option<Line> {
    let text = match event {
        AgentEvent::Retry(retry) => {
            let again = format!(
                "asked again in {} ({} of {})",
                words::time(retry.pause),
                retry.number,
                retry.most
            );
            // The reason is told once, and again at the end if it stays so.
            if retry.number == 1 {
                let error = retry.error.to_string();
                let sign = if error.ends_with('?') { "" } else { ";" };
                format!("{error}{sign} {again}")
            } else {
                again
            }
        }
        AgentEvent::Told { text } => {
            let first = text.trim().lines().next().unwrap_or_default();
            let first: String = first.chars().take(SHOWN).collect();
            format!("the model is told: {first}")
        }
        AgentEvent::Shortened { results, bytes } => format!(
            "the conversation is long: {} shortened for the model, by {bytes} bytes",
            if *results == 1 {
                "a result was".to_owned()
            } else {
                format!("{results} results were")
            }
        ),
        _ => return None,
    };
    Some(Line::of(DIM, &text))
}

impl Display for Plain {
    fn take(&mut self, news: News, out: &mut String) {
        match news {
            News::Agent(event) => self.event(&event, out),
            News::Asking { call, about, .. } => {
                self.flush(true, out);
                let mut line = self.about(call);
                let is_call = !line.is_empty();
                line.push(
                    ASKING,
                    match about {
                        About::Permission if !is_call => "the model asks you",
                        About::Permission => "asks whether it may run",
                        About::Fate => "was cut off; what became of it?",
                    },
                );
                self.line(&line, out);
            }
            News::Answered { call, answer } => {
                if let Some(answer) = answer {
                    let mut line = self.about(call);
                    line.push(ASKING, &answer);
                    self.line(&line, out);
                }
            }
            News::Stopping => {
                self.end_line(out);
                self.line(&Line::of(ASKING, "stopping"), out);
            }
            News::Answer(text) => {
                self.flush(true, out);
                self.text(&text, out);
            }
            News::Totals {
                progress,
                time,
                is_answered,
            } => {
                if !is_answered {
                    self.let_go(out);
                }
                self.flush(true, out);
                self.line(&totals(&progress, time, self.glyphs), out);
            }
            News::Begin => {
                self.calls = Calls::default();
                self.held.clear();
            }
            News::Over => self.end_line(out),
            News::Reply(_)
            | News::Event(_)
            | News::Tick
            | News::Prompt { .. }
            | News::Quiet { .. }
            | News::Written(_) => {}
        }
    }

    fn abandon(&mut self, out: &mut String) {
        self.end_line(out);
    }
}
