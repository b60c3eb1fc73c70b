//! The calls of an answer, one line each.

use std::sync::Arc;
use std::time::Duration;

use anstyle::Style;
use plaincall::{CallResult, RunEvent, Status};
use plaincall_agent::AgentEvent;

use crate::picture::call_line::ending;
use crate::picture::glyphs::Glyphs;
use crate::picture::line::Line;
use crate::picture::palette::{self, ASKING, BOLD, DIM, PLAIN, RUNNING};
use crate::picture::words;
use crate::run::listing::indented;
use crate::run::news::About;

/// How much of the arguments of a call is kept to be shown, in characters.
const KEPT: usize = 400;
/// How much of one argument is shown, in characters.
const SHOWN: usize = 60;
/// How many columns what is said of a failed call takes at most where lines are not broken.
const LONGEST: usize = 300;

/// How many lines of a result are shown where results are.
const LINES: usize = 20;

/// The calls that have not ended, in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: Vec<Doing>,
    pub(crate) ok: usize,
    pub(crate) not_ok: usize,
    /// Whether the beginnings of results are shown.
    is_verbose: bool,
}

/// A call that has not ended.
#[derive(Debug)]
pub(crate) struct Doing {
    call: u32,
    name: Arc<str>,
    arguments: Arguments,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Writing,
    Waiting,
    Asking(About),
    Resting,
    Running(Duration),
}

/// The arguments of a call, as far as they are shown.
#[derive(Debug, Default)]
struct Arguments {
    /// Each with what it is called; nothing for a body.
    values: Vec<(Option<Arc<str>>, String)>,
    kept: usize,
}

impl Arguments {
    fn add(&mut self, pointer: Option<&Arc<str>>, text: &str) {
        if self.kept >= KEPT {
            return;
        }
        let is_same = |(known, _): &mut (Option<Arc<str>>, String)| known.as_ref() == pointer;
        if self.values.last_mut().is_none_or(|last| !is_same(last)) {
            self.values.push((pointer.cloned(), String::new()));
        }
        if let Some((_, value)) = self.values.last_mut() {
            let room = KEPT - self.kept;
            value.extend(text.chars().take(room));
            self.kept += text.chars().count().min(room);
        }
    }

    /// In one line: `path=src/main.rs, text=one ⏎ two…`.
    fn line(&self, glyphs: &Glyphs) -> Line {
        let mut line = Line::new();
        for (index, (name, value)) in self.values.iter().enumerate() {
            if index > 0 {
                line.push(DIM, ", ");
            }
            if let Some(name) = name {
                line.push(DIM, &format!("{name}="));
            }
            let mut shown: String = value.trim().chars().take(SHOWN).collect();
            if value.trim().chars().count() > SHOWN {
                shown.push_str(glyphs.cut);
            }
            // Lines and the blanks before them are one blank.
            let words: Vec<&str> = shown.split_whitespace().collect();
            line.push(PLAIN, &words.join(" "));
        }
        line
    }
}

impl Calls {
    pub(crate) fn new(is_verbose: bool) -> Self {
        Self {
            is_verbose,
            ..Self::default()
        }
    }

    /// Forgets all that was.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.is_verbose);
    }

    /// Takes note of what has happened. Returns the lines of a call that has ended, for this many columns.
    pub(crate) fn take(
        &mut self,
        event: &AgentEvent,
        glyphs: &Glyphs,
        width: Option<usize>,
    ) -> Option<Vec<Line>> {
        match event {
            AgentEvent::Call { call, name, .. } => {
                self.begin(*call, name);
                None
            }
            AgentEvent::Value {
                call,
                pointer,
                text,
            } => {
                if let Some(doing) = self.get(*call) {
                    doing.arguments.add(pointer.as_ref(), text);
                }
                None
            }
            AgentEvent::Run(event) => self.run(event, glyphs, width),
            _ => None,
        }
    }

    fn run(
        &mut self,
        event: &RunEvent,
        glyphs: &Glyphs,
        width: Option<usize>,
    ) -> Option<Vec<Line>> {
        let state = match event {
            RunEvent::Call(appeared) => {
                self.begin(appeared.call, &appeared.name);
                return None;
            }
            RunEvent::Result(result) => {
                let place = self.open.iter().position(|doing| doing.call == result.call);
                let doing = place.map(|place| self.open.remove(place));
                if result.status == Status::Ok {
                    self.ok += 1;
                } else {
                    self.not_ok += 1;
                }
                let mut lines = ended(doing.as_ref(), result, glyphs, width);
                if self.is_verbose {
                    lines.extend(beginning(result, glyphs, width));
                }
                return Some(lines);
            }
            RunEvent::Waiting(_) | RunEvent::Ready(_) | RunEvent::Retry(_) => State::Waiting,
            RunEvent::Start(started) => State::Running(started.at),
            RunEvent::BackOff(_) => State::Resting,
            _ => return None,
        };
        if let Some(doing) = event.call().and_then(|call| self.get(call)) {
            doing.state = state;
        }
        None
    }

    fn begin(&mut self, call: u32, name: &Arc<str>) {
        if self.get(call).is_none() {
            self.open.push(Doing {
                call,
                name: Arc::clone(name),
                arguments: Arguments::default(),
                state: State::Writing,
            });
        }
    }

    fn get(&mut self, call: u32) -> Option<&mut Doing> {
        self.open.iter_mut().find(|doing| doing.call == call)
    }

    /// Somebody is asked about the call, or not any more.
    pub(crate) fn ask(&mut self, call: u32, about: Option<About>) {
        if let Some(doing) = self.get(call) {
            doing.state = about.map_or(State::Waiting, State::Asking);
        }
    }

    /// What the tool of a call is called.
    pub(crate) fn name(&self, call: u32) -> Option<&str> {
        let doing = self.open.iter().find(|doing| doing.call == call)?;
        Some(&doing.name)
    }

    /// The lines of the open calls, at most so many: those at work first.
    pub(crate) fn lines(
        &self,
        room: usize,
        width: usize,
        now: Duration,
        glyphs: &Glyphs,
    ) -> Vec<Line> {
        let mut chosen: Vec<usize> = (0..self.open.len()).collect();
        let rank = |index: &usize| {
            self.open.get(*index).map_or(9, |doing| match doing.state {
                State::Asking(_) => 0,
                State::Running(_) => 1,
                State::Writing => 2,
                State::Waiting | State::Resting => 3,
            })
        };
        chosen.sort_by_key(rank);
        chosen.truncate(room);
        chosen.sort_unstable();
        let open = chosen.into_iter().filter_map(|index| self.open.get(index));
        open.map(|doing| doing.line(width, now, glyphs)).collect()
    }

    /// How many are at work, and how many wait or are being written.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let is_running = |doing: &&Doing| matches!(doing.state, State::Running(_));
        let running = self.open.iter().filter(is_running).count();
        (running, self.open.len() - running)
    }

    /// Forgets those that never ended.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

impl Doing {
    /// The line of a call at a moment, counted from the beginning of the run.
    fn line(&self, width: usize, now: Duration, glyphs: &Glyphs) -> Line {
        let (style, mark) = match self.state {
            State::Writing => (DIM, glyphs.writing),
            State::Waiting | State::Resting => (DIM, glyphs.waiting),
            State::Asking(_) => (ASKING, glyphs.asking),
            State::Running(_) => (RUNNING, glyphs.running(now.as_millis())),
        };
        let end = match self.state {
            State::Writing => Line::of(DIM, "writing"),
            State::Waiting => Line::of(DIM, "waits"),
            State::Resting => Line::of(DIM, "failed; waits to be tried again"),
            State::Asking(About::Permission) => Line::of(ASKING, "may it run?"),
            State::Asking(About::Fate) => Line::of(ASKING, "what became of it?"),
            State::Running(since) => Line::of(RUNNING, &words::time(now.saturating_sub(since))),
        };
        whole(
            style,
            mark,
            &self.name,
            &self.arguments,
            &end,
            Some(width),
            glyphs,
        )
    }
}

/// A call that has ended, and below it why it failed.
fn ended(
    doing: Option<&Doing>,
    result: &CallResult,
    glyphs: &Glyphs,
    width: Option<usize>,
) -> Vec<Line> {
    let style = palette::status(result.status);
    let nothing = Arguments::default();
    let arguments = doing.map_or(&nothing, |doing| &doing.arguments);
    let mark = glyphs.status(result.status);
    let end = ending(result);
    let mut lines = vec![whole(
        style,
        mark,
        &result.name,
        arguments,
        &end,
        width,
        glyphs,
    )];
    if let Some(error) = result
        .error
        .as_deref()
        .filter(|_| result.status != Status::Ok)
    {
        let mut rows = error.trim().lines();
        let first = rows.next().unwrap_or_default();
        let mut line = Line::of(PLAIN, "  ");
        line.push(style_of_reason(result.status), first);
        if first.ends_with(':') {
            line.push(PLAIN, " ");
            line.push(PLAIN, rows.next().unwrap_or_default().trim());
        }
        if rows.next().is_some() {
            line.push(PLAIN, glyphs.cut);
        }
        lines.push(line.cut(width.unwrap_or(LONGEST), glyphs.cut));
    }
    lines
}

/// What a tool returned, or wrote before it failed: its first lines.
fn beginning(result: &CallResult, glyphs: &Glyphs, width: Option<usize>) -> Vec<Line> {
    let mut lines = Vec::new();
    // An error of one line was shown whole.
    let error = result.error.as_ref();
    let error = error.filter(|error| error.trim().lines().count() > 1);
    for text in result.output.iter().chain(error) {
        let mut rows = text.trim_end().lines();
        for row in rows.by_ref().take(LINES) {
            lines.push(indented(DIM, row).cut(width.unwrap_or(LONGEST), glyphs.cut));
        }
        let more = rows.count();
        if more > 0 {
            lines.push(indented(
                ASKING,
                &format!("({} more)", words::count(more, "line")),
            ));
        }
    }
    lines
}

fn style_of_reason(status: Status) -> Style {
    match status {
        Status::Error | Status::Rejected => PLAIN,
        _ => DIM,
    }
}

/// Mark, name, arguments and end; the arguments are cut so that the end is seen.
fn whole(
    style: Style,
    mark: &str,
    name: &str,
    arguments: &Arguments,
    end: &Line,
    width: Option<usize>,
    glyphs: &Glyphs,
) -> Line {
    let mut line = Line::of(style, &format!("{mark} "));
    line.push(BOLD, name);
    let shown = arguments.line(glyphs);
    if let Some(width) = width {
        let room = width.saturating_sub(end.width() + 2);
        line = line.cut(room, glyphs.cut);
        let left = room.saturating_sub(line.width() + 2);
        // A few columns say nothing.
        if !shown.is_empty() && left >= 6 {
            line.push(PLAIN, "  ");
            line.append(&shown.cut(left, glyphs.cut));
        }
        line.push(PLAIN, "  ");
        line.append(end);
        return line.cut(width, glyphs.cut);
    }
    if !shown.is_empty() {
        line.push(PLAIN, "  ");
        line.append(&shown.cut(LONGEST, glyphs.cut));
    }
    line.push(PLAIN, "  ");
    line.append(end);
    line
}
