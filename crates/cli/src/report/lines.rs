//! A trace in lines.

use std::time::Duration;

use anstyle::Style;
use plaincall::{
    Status, Stop,
    events::{Admission, AdmittedBy, Author, RunBegin},
    result::{Because, Link},
};

use crate::report::trace::{Attempt, Call, Trace, Turn};
use crate::report::transcript::Segment;
use crate::terminal::call_line::{ending, verb};
use crate::terminal::glyphs::Glyphs;
use crate::terminal::line::Line;
use crate::terminal::palette::{self, ASKING, BOLD, CALL, CALL_NAME, DIM, PLAIN, REASONING};
use crate::terminal::prose::Prose;
use crate::terminal::summary::{Columns, Form, behind, block, overview, without_line_end, wrapped};
use crate::terminal::words;

/// The columns where the labels and the texts of a call begin.
const LABEL: usize = 4;
const TEXT: usize = 15;

/// A width that no text has.
const UNBROKEN: usize = usize::MAX;

pub(crate) fn lines(trace: &Trace, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(begin) = &trace.begin {
        lines.extend(wrapped(&head(begin, glyphs), form.width));
        if let Some(directory) = &begin.current_directory {
            lines.push(Line::of(DIM, &format!("directory {directory}")));
        }
        if let Some(directory) = &begin.directory {
            let kind = if directory.temporary {
                ", temporary"
            } else {
                ""
            };
            let text = format!("scratch directory {}{kind}", directory.path);
            lines.push(Line::of(DIM, &text));
        }
    }
    for at in &trace.resumed {
        let text = format!("resumed at {}", time(*at));
        lines.push(Line::of(ASKING, &text));
    }
    for (place, turn) in trace.turns.iter().enumerate() {
        lines.push(Line::new());
        if trace.turns.len() > 1 {
            let mut line = Line::of(BOLD, &format!("Turn {}", turn.number.saturating_add(1)));
            let opened = format!(" {} at {}", glyphs.dot, time(turn.opened_ms));
            line.push(DIM, &opened);
            lines.push(line);
            lines.push(Line::new());
        }
        lines.extend(messages(turn, form));
        lines.extend(reply(trace, turn, form, glyphs));
        lines.push(Line::new());
        lines.extend(calls(trace, place, turn, form, glyphs));
    }
    for problem in &trace.problems {
        lines.push(Line::new());
        lines.extend(wrapped(&Line::of(ASKING, problem), form.width));
    }
    lines
}

/// When it was, and with what.
fn head(begin: &RunBegin, glyphs: &Glyphs) -> Line {
    let moment = words::moment(begin.began_unix_ms);
    let mut line = Line::of(BOLD, &format!("Run of {moment}"));
    let tools = words::count(begin.tools.len(), "tool");
    let (dot, version) = (glyphs.dot, &begin.plaincall);
    line.push(DIM, &format!(" {dot} plaincall {version} {dot} {tools}"));
    line
}

/// The messages that the model received before the turn.
fn messages(turn: &Turn, form: Form) -> Vec<Line> {
    let mut lines = Vec::new();
    for message in &turn.messages {
        let (style, by) = match message.author {
            Author::User => (BOLD, "the user"),
            Author::Program => (DIM, "the program"),
        };
        lines.push(Line::of(style, &format!("{by}:")));
        let text = message.text.trim_end().split('\n');
        let mut rows = text.flat_map(|row| wrapped(&Line::of(PLAIN, row), form.width));
        lines.extend(rows.by_ref().take(form.rows.unwrap_or(usize::MAX)));
        if let more @ 1.. = rows.count() {
            let text = format!("({} more)", words::count(more, "line"));
            lines.push(Line::of(DIM, &text));
        }
        lines.push(Line::new());
    }
    lines
}

/// The reply, with its calls in their places.
fn reply(trace: &Trace, turn: &Turn, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let width = form.width.unwrap_or(UNBROKEN);
    let mut prose = Prose::new();
    for segment in &turn.segments {
        match segment {
            Segment::Text { text } => prose.text(text, PLAIN, width),
            Segment::Reasoning { text } => prose.text(text, REASONING, width),
            Segment::Call { call } => {
                if let Some(call) = trace.calls.get(*call as usize) {
                    prose.line(place(call, glyphs).cut(width, glyphs.cut));
                    prose.call();
                }
            }
        }
    }
    prose.end_started_row();
    let mut lines = prose.take_rows();
    if !turn.is_exact && turn.segments.len() > 1 {
        let text = "(the reply is shown as received: its calls could not be located)";
        lines.extend(wrapped(&Line::of(DIM, text), form.width));
    }
    let end = match (turn.stop, turn.over_ms) {
        (Some(Stop::Length), _) => Some("(the reply reached its length limit)"),
        (Some(Stop::Broken), _) => Some("(the reply was truncated, or its end is unknown)"),
        (_, None) => Some("(the log ends before the reply)"),
        _ => None,
    };
    lines.extend(end.map(|end| Line::of(ASKING, end)));
    if let Some(cancel) = &turn.cancel {
        let (at, reason) = (words::time(cancel.at), &cancel.reason);
        let text = format!("all calls were cancelled at {at}: {reason}");
        lines.extend(wrapped(&Line::of(ASKING, &text), form.width));
    }
    lines
}

/// The line of a call in the reply.
fn place(call: &Call, glyphs: &Glyphs) -> Line {
    let mut line = Line::of(CALL, glyphs.call);
    line.push(CALL_NAME, &format!(" {}", call.name));
    line.push(BOLD, &format!(" {}", call.id));
    if !call.dependencies.is_empty() {
        let ids: Vec<&str> = call.dependencies.iter().map(|it| it.id.as_str()).collect();
        line.push(DIM, &format!(" {} {}", glyphs.needs, ids.join(", ")));
    }
    line
}

/// What became of the calls of a turn, and their timeline.
fn calls(trace: &Trace, place: usize, turn: &Turn, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let table = &turn.table;
    // In a conversation it is usual.
    if table.calls().is_empty() && trace.turns.iter().any(|turn| !turn.messages.is_empty()) {
        return Vec::new();
    }
    if table.calls().is_empty() {
        let text = Line::of(PLAIN, "The reply has no calls.");
        return wrapped(&text, form.width);
    }
    let columns = Columns::of(table.calls(), form.picture_width());
    let mut lines = vec![Line::of(BOLD, "Calls")];
    for (call, in_table) in trace.calls_of(place).zip(table.calls()) {
        let mut line = columns.begin(in_table, glyphs);
        if let Some(result) = in_table.result() {
            line.append(&ending(result));
        } else if let Some(open) = &call.open {
            line.push(ASKING, &format!("interrupted {}", open.stage.sentence()));
        }
        lines.extend(wrapped(&line, form.width));
        lines.extend(about(call, form, glyphs));
    }
    lines.push(Line::new());
    lines.extend(overview(table, form, glyphs));
    lines
}

/// The details of a call below its line.
fn about(call: &Call, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let mut details = Details {
        lines: Vec::new(),
        form,
        glyphs,
    };
    if let Some(arguments) = &call.arguments {
        details.arguments("arguments", arguments);
    } else if let Some(source) = call.source.as_deref().filter(|it| !it.is_empty()) {
        details.text("written", without_line_end(source), DIM);
    }
    if let Some(held) = &call.held {
        details.line("held", &format!("it {held}"));
    }
    if let Some(admission) = &call.admission {
        details.line("allowed", &admitted(admission, call.ready_ms));
    }
    if let Some(edited) = &call.edited {
        details.arguments("ran with", edited);
    }
    if let Some(because) = &call.because {
        details.line("because", &cause(call, because));
    }
    let is_plain = |attempt: &Attempt| attempt.error.is_none() && !attempt.is_interrupted;
    if call.attempts.len() > 1 || !call.attempts.iter().all(is_plain) {
        for attempt in &call.attempts {
            let label = format!("attempt {}", attempt.number);
            details.line(&label, &attempt_line(attempt, call));
        }
    }
    if let Some(error) = &call.error {
        let style = match call.status {
            Some(status @ Status::Error) => palette::status(status),
            _ => PLAIN,
        };
        details.text("error", without_line_end(error), style);
    }
    if let Some(output) = &call.output {
        details.text("output", without_line_end(output), PLAIN);
    }
    if let Some(note) = &call.note {
        details.text("note", without_line_end(note), PLAIN);
    }
    if let Some(open) = &call.open {
        details.line("then", &format!("`--resume` {}", open.resume));
    }
    details.line("times", &times(call));
    details.lines
}

/// Who let a call pass, and how long that took.
fn admitted(admission: &Admission, ready: Option<u64>) -> String {
    let by = match admission.by {
        AdmittedBy::Rule => "by a rule of the run",
        AdmittedBy::Always => "by an earlier approval of all calls of this tool",
        AdmittedBy::Gate => "by the gate",
    };
    let waited = ready.map(|ready| admission.at.saturating_sub(Duration::from_millis(ready)));
    let waited = waited.filter(|it| *it >= Duration::from_millis(1));
    let waited = waited.map_or(String::new(), |it| format!(" after {}", words::time(it)));
    let mut text = format!("{by}{waited}");
    if admission.always {
        text.push_str(", with all later calls of this tool");
    }
    text
}

fn cause(call: &Call, because: &Because) -> String {
    let link = match because.link {
        Link::Dependency => "it depends on",
        Link::Order => "it follows",
    };
    let mut text = format!("{link} {}", because.direct.id);
    if because.direct.call == call.number {
        text.push_str(" (itself)");
    }
    if because.root != because.direct {
        text = format!("{text}; the first failure was {}", because.root.id);
    }
    text
}

fn attempt_line(attempt: &Attempt, call: &Call) -> String {
    let from = moment(attempt.started_ms);
    let Some(ended) = attempt.ended_ms else {
        return format!("at {from}, interrupted");
    };
    let took = time(ended.saturating_sub(attempt.started_ms));
    let Some(error) = &attempt.error else {
        let status = call.status.map_or("ended", verb);
        return format!("at {from}, {status} after {took}");
    };
    let (error, wait) = (without_line_end(error), attempt.wait_ms.map(time));
    let wait = wait.map_or(String::new(), |wait| format!("; retry after {wait}"));
    format!("at {from}, failed after {took}: {error}{wait}")
}

fn times(call: &Call) -> String {
    let started = call.attempts.last().map(|attempt| attempt.started_ms);
    let stations = [
        ("appeared", Some(call.appeared_ms)),
        ("complete", call.complete_ms),
        ("started", started),
        ("ended", call.ended_ms),
    ];
    let details: Vec<String> = stations
        .into_iter()
        .filter_map(|(name, at)| Some(format!("{name} {}", moment(at?))))
        .collect();
    details.join(", ")
}

/// A time from the beginning of the run, to the millisecond.
fn moment(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        _ => format!("{}.{:03} s", ms / 1000, ms % 1000),
    }
}

fn time(ms: u64) -> String {
    words::time(Duration::from_millis(ms))
}

/// Lines with a label each.
struct Details<'a> {
    lines: Vec<Line>,
    form: Form,
    glyphs: &'a Glyphs,
}

impl Details<'_> {
    /// A label and a sentence.
    fn line(&mut self, label: &str, text: &str) {
        self.styled(label, &Line::of(PLAIN, text));
    }

    fn styled(&mut self, label: &str, text: &Line) {
        for (row, text) in self.rows(text).iter().enumerate() {
            let label = if row == 0 { label } else { "" };
            let mut line = behind(LABEL, &Line::of(DIM, label));
            if !text.is_empty() {
                line.pad_to(TEXT);
                line.append(text);
            }
            self.lines.push(line);
        }
    }

    fn rows(&self, text: &Line) -> Vec<Line> {
        wrapped(
            text,
            self.form.width.map(|width| width.saturating_sub(TEXT)),
        )
    }

    /// A label and a text, which goes below the label if it has several lines.
    fn text(&mut self, label: &str, text: &str, style: Style) {
        if text.is_empty() {
            return self.styled(label, &Line::of(DIM, "(empty)"));
        }
        if !text.contains('\n') {
            let line = Line::of(style, text);
            let rows = self.rows(&line).len();
            let fits = self.form.rows.is_none_or(|most| rows <= most);
            if fits && !self.form.is_too_long(&line) {
                return self.styled(label, &line);
            }
        }
        self.styled(label, &Line::new());
        let form = Form {
            width: self.form.width.map(|width| width.saturating_sub(LABEL)),
            ..self.form
        };
        let block = block(text, style, form, self.glyphs);
        self.lines
            .extend(block.iter().map(|line| behind(LABEL, line)));
    }

    /// Arguments: on a line, cut to it; or whole, each on its own.
    fn arguments(&mut self, label: &str, arguments: &[(String, String)]) {
        if arguments.is_empty() {
            return self.styled(label, &Line::of(DIM, "none"));
        }
        if self.form.rows.is_none() {
            for (place, (pointer, value)) in arguments.iter().enumerate() {
                let label = if place == 0 { label } else { "" };
                if value.contains('\n') {
                    self.styled(label, &Line::of(CALL, &format!("{pointer}:")));
                    self.text("", value, PLAIN);
                } else {
                    self.styled(label, &argument(pointer, value));
                }
            }
            return;
        }
        let width = self.form.picture_width().saturating_sub(TEXT);
        let mut line = Line::new();
        for (place, (pointer, value)) in arguments.iter().enumerate() {
            if place > 0 {
                line.push(DIM, ", ");
            }
            line.append(&argument(pointer, value));
            if line.width() > width {
                break;
            }
        }
        self.styled(label, &line.cut(width, self.glyphs.cut));
    }
}

fn argument(pointer: &str, value: &str) -> Line {
    let mut line = Line::of(CALL, pointer);
    line.push(DIM, ": ");
    line.push(PLAIN, value);
    line
}
