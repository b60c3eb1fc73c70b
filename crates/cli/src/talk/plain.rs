//! An answer in lines: for pipes and files, for terminals that cannot do more, and for people who want it so.

use std::time::{Duration, Instant};

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

/// How long nobody hears that the model is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

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
    /// Whether it is written on a terminal, where people wait, and where questions are written, too.
    is_on_terminal: bool,
    /// Since when the model is waited for, as long as nobody was told.
    asked: Option<Instant>,
}

impl Plain {
    pub(crate) fn new(
        glyphs: &'static Glyphs,
        has_color: bool,
        is_streamed: bool,
        is_on_terminal: bool,
    ) -> Self {
        Self {
            glyphs,
            has_color,
            calls: Calls::default(),
            is_streamed,
            held: String::new(),
            is_in_line: false,
            is_behind_call: false,
            waiting: Vec::new(),
            is_on_terminal,
            asked: None,
        }
    }

    /// Whether the beginnings of results are shown.
    pub(crate) fn verbose(mut self, is_verbose: bool) -> Self {
        self.calls = Calls::new(is_verbose);
        self
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

    /// Nothing is worked on any more.
    fn rest(&mut self) {
        self.asked = None;
        self.calls.clear();
    }

    fn let_go(&mut self, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        self.text(held.trim_end(), out);
        self.end_line(out);
    }

    /// Says once that the model is waited for.
    fn tick(&mut self, now: Instant, out: &mut String) {
        let is_long = |since: &mut Instant| now.saturating_duration_since(*since) >= PATIENCE;
        if self.is_on_terminal && self.asked.take_if(is_long).is_some() {
            self.flush(true, out);
            self.line(&Line::of(DIM, "waiting for the model"), out);
        }
    }

    fn event(&mut self, event: &AgentEvent, out: &mut String) {
        match event {
            AgentEvent::Text(_)
            | AgentEvent::Reasoning(_)
            | AgentEvent::Call { .. }
            | AgentEvent::TurnEnd { .. } => self.asked = None,
            _ => {}
        }
        match event {
            AgentEvent::TurnBegin { .. } => {
                self.asked = Some(Instant::now());
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
                // The question itself is written there.
                if self.is_on_terminal {
                    return;
                }
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
                if let Some(answer) = answer.filter(|_| !self.is_on_terminal) {
                    let mut line = self.about(call);
                    line.push(ASKING, &answer);
                    self.line(&line, out);
                }
            }
            News::Stopping => {
                self.asked = None;
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
                self.rest();
                self.line(&totals(&progress, time, self.glyphs), out);
            }
            News::Left => {
                self.rest();
                self.let_go(out);
                self.flush(true, out);
            }
            News::Tick => self.tick(Instant::now(), out),
            News::Begin => {
                self.calls.reset();
                self.held.clear();
            }
            News::Over => self.end_line(out),
            News::Reply(_)
            | News::Event(_)
            | News::Page { .. }
            | News::Prompt { .. }
            | News::Quiet { .. }
            | News::Written(_) => {}
        }
    }

    fn abandon(&mut self, out: &mut String) {
        self.end_line(out);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use plaincall_agent::AgentEvent;

    use super::Plain;
    use crate::picture::glyphs::ASCII;
    use crate::run::news::{Display as _, News};

    #[test]
    fn who_waits_hears_of_it_once() {
        let check = |is_on_terminal: bool, text: Option<&str>, expected: &str| {
            let mut plain = Plain::new(&ASCII, false, true, is_on_terminal);
            let mut out = String::new();
            plain.take(News::Begin, &mut out);
            let mut event = |event| plain.take(News::Agent(Box::new(event)), &mut out);
            event(AgentEvent::TurnBegin { turn: 0 });
            if let Some(text) = text {
                event(AgentEvent::Text(text.to_owned()));
            }
            plain.tick(Instant::now(), &mut out);
            for seconds in [2, 4] {
                plain.tick(Instant::now() + Duration::from_secs(seconds), &mut out);
            }
            assert_eq!(out, expected);
        };
        check(true, None, "waiting for the model\n");
        check(true, Some("Hello"), "Hello");
        check(false, None, "");
    }
}
