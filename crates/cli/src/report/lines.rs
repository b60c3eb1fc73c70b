//! The report as lines of text.

use std::time::Duration;

use anstyle::Style;
use plaincall::{
    Status, Stop,
    events::{Admission, AdmittedBy, Author, RunBegin, Usage},
    result::{Because, Link},
};
use plaincall_report::trace::Segment;
use plaincall_report::trace::{Attempt, Call, Trace, Turn};

use crate::terminal::call_line::{outcome, status_word};
use crate::terminal::glyphs::Glyphs;
use crate::terminal::human;
use crate::terminal::line::Line;
use crate::terminal::palette::{self, BOLD, CALL, CALL_NAME, DIM, NOTICE, PLAIN, REASONING};
use crate::terminal::prose::Prose;
use crate::terminal::summary::{Columns, Layout, block, indent, overview, without_line_end, wrap};

/// The columns of labels and texts below a call.
const LABEL: usize = 4;
const TEXT: usize = 15;

/// A width at which no line is wrapped.
const NO_WRAP: usize = usize::MAX;

pub(crate) fn lines(trace: &Trace, layout: Layout, glyphs: &Glyphs) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(start) = &trace.begin {
        let mut line = head(start, glyphs);
        push_tokens(&mut line, trace.usage, glyphs);
        lines.extend(wrap(&line, layout.width));
        if let Some(directory) = &start.current_directory {
            lines.push(Line::of(DIM, &format!("directory {directory}")));
        }
        if let Some(directory) = &start.directory {
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
        lines.push(Line::of(NOTICE, &text));
    }
    for turn in &trace.turns {
        lines.push(Line::new());
        if trace.turns.len() > 1 {
            let mut line = Line::of(BOLD, &format!("Turn {}", turn.number.saturating_add(1)));
            let opened = format!(" {} at {}", glyphs.dot, time(turn.opened_ms));
            line.push(DIM, &opened);
            push_tokens(&mut line, turn.usage, glyphs);
            lines.extend(wrap(&line, layout.width));
            lines.push(Line::new());
        }
        lines.extend(messages(turn, layout));
        lines.extend(reply(trace, turn, layout, glyphs));
        lines.push(Line::new());
        lines.extend(calls(trace, turn, layout, glyphs));
    }
    for problem in &trace.problems {
        lines.push(Line::new());
        lines.extend(wrap(&Line::of(NOTICE, problem), layout.width));
    }
    lines
}

/// Formats the start time, the version and the number of tools.
fn head(start: &RunBegin, glyphs: &Glyphs) -> Line {
    let began = human::utc(start.began_unix_ms);
    let mut line = Line::of(BOLD, &format!("Run of {began}"));
    let tools = human::count(start.tools.len(), "tool");
    let (dot, version) = (glyphs.dot, &start.plaincall);
    line.push(DIM, &format!(" {dot} plaincall {version} {dot} {tools}"));
    line
}

fn push_tokens(line: &mut Line, usage: Option<Usage>, glyphs: &Glyphs) {
    if let Some(usage) = usage {
        let text = format!(" {} {}", glyphs.dot, human::tokens(usage));
        line.push(DIM, &text);
    }
}

/// Formats the messages that the model received before the turn.
fn messages(turn: &Turn, layout: Layout) -> Vec<Line> {
    let mut lines = Vec::new();
    for message in &turn.messages {
        let (style, by) = match message.author {
            Author::User => (BOLD, "the user"),
            Author::Program => (DIM, "the program"),
        };
        lines.push(Line::of(style, &format!("{by}:")));
        let text = message.text.trim_end().split('\n');
        let mut rows = text.flat_map(|row| wrap(&Line::of(PLAIN, row), layout.width));
        lines.extend(rows.by_ref().take(layout.rows.unwrap_or(usize::MAX)));
        if let more @ 1.. = rows.count() {
            let text = format!("({} more)", human::count(more, "line"));
            lines.push(Line::of(DIM, &text));
        }
        lines.push(Line::new());
    }
    lines
}

/// Formats the reply with its calls.
fn reply(trace: &Trace, turn: &Turn, layout: Layout, glyphs: &Glyphs) -> Vec<Line> {
    let width = layout.width.unwrap_or(NO_WRAP);
    let mut prose = Prose::new();
    for segment in &turn.segments {
        match segment {
            Segment::Text { text } => prose.text(text, PLAIN, width),
            Segment::Reasoning { text } => prose.text(text, REASONING, width),
            Segment::Call { call } => {
                if let Some(call) = trace.calls.get(*call as usize) {
                    prose.line(call_marker(call, glyphs).truncate(width, glyphs.ellipsis));
                    prose.call();
                }
            }
        }
    }
    prose.end_started_row();
    let mut lines = prose.take_rows();
    if !turn.is_exact && turn.segments.len() > 1 {
        let text = "(the reply is shown as received: its calls could not be located)";
        lines.extend(wrap(&Line::of(DIM, text), layout.width));
    }
    let end = match (turn.stop, turn.over_ms) {
        (Some(Stop::Length), _) => Some("(the reply reached its length limit)"),
        (Some(Stop::Broken), _) => Some("(the reply was truncated, or its end is unknown)"),
        (_, None) => Some("(the log ends before the reply)"),
        _ => None,
    };
    lines.extend(end.map(|end| Line::of(NOTICE, end)));
    if let Some(cancel) = &turn.cancel {
        let (at, reason) = (human::time(cancel.at), &cancel.reason);
        let text = format!("all calls were cancelled at {at}: {reason}");
        lines.extend(wrap(&Line::of(NOTICE, &text), layout.width));
    }
    lines
}

/// Formats a call in the reply.
fn call_marker(call: &Call, glyphs: &Glyphs) -> Line {
    let mut line = Line::of(CALL, glyphs.call);
    line.push(CALL_NAME, &format!(" {}", call.name));
    line.push(BOLD, &format!(" {}", call.id));
    if !call.dependencies.is_empty() {
        let ids: Vec<&str> = call.dependencies.iter().map(|it| it.id.as_str()).collect();
        line.push(DIM, &format!(" {} {}", glyphs.needs, ids.join(", ")));
    }
    line
}

/// Formats the outcomes of a turn's calls, and the timeline.
fn calls(trace: &Trace, turn: &Turn, layout: Layout, glyphs: &Glyphs) -> Vec<Line> {
    let table = &turn.table;
    // In a conversation, turns without calls are common.
    if table.calls().is_empty() && trace.turns.iter().any(|turn| !turn.messages.is_empty()) {
        return Vec::new();
    }
    if table.calls().is_empty() {
        let text = Line::of(PLAIN, "The reply has no calls.");
        return wrap(&text, layout.width);
    }
    let columns = Columns::of(table.calls(), layout.chart_width());
    let mut lines = vec![Line::of(BOLD, "Calls")];
    let first = turn.first_call as usize;
    for at in table.order() {
        let Some((call, entry)) = trace.calls.get(first + at).zip(table.calls().get(at)) else {
            continue;
        };
        let mut line = columns.call_prefix(entry, glyphs);
        if let Some(result) = entry.result() {
            line.append(&outcome(result));
        } else if let Some(open) = &call.open {
            line.push(NOTICE, &format!("interrupted {}", open.state.phrase()));
        }
        lines.extend(wrap(&line, layout.width));
        lines.extend(call_details(call, layout, glyphs));
    }
    lines.push(Line::new());
    lines.extend(overview(table, layout, glyphs));
    lines
}

/// Formats the details of a call below its line.
fn call_details(call: &Call, layout: Layout, glyphs: &Glyphs) -> Vec<Line> {
    let mut details = Details {
        lines: Vec::new(),
        layout,
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
        let text = admission_text(admission, call.ready_ms);
        details.text("allowed", &text, PLAIN);
    }
    if let Some(edited) = &call.edited {
        details.arguments("ran with", edited);
    }
    if let Some(reason) = &call.because {
        details.line("because", &cause(call, reason));
    }
    let is_plain = |attempt: &Attempt| attempt.error.is_none() && !attempt.is_interrupted;
    if call.attempts.len() > 1 || !call.attempts.iter().all(is_plain) {
        for attempt in &call.attempts {
            let label = format!("attempt {}", attempt.number);
            details.line(&label, &attempt_line(attempt, call));
        }
    }
    for reply in &call.replies {
        details.text("writes", without_line_end(&reply.text), DIM);
        if let Some(usage) = reply.usage {
            details.line("tokens", &human::tokens(usage));
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

/// Formats who approved a call and how long that took.
fn admission_text(admission: &Admission, ready: Option<u64>) -> String {
    let by = match admission.by {
        AdmittedBy::Rule => "by a rule of the run",
        AdmittedBy::Always => "by an earlier approval of all calls of this tool",
        AdmittedBy::Gate => "by the gate",
    };
    let waited = ready.map(|ready| admission.at.saturating_sub(Duration::from_millis(ready)));
    let waited = waited.filter(|it| *it >= Duration::from_millis(1));
    let waited = waited.map_or(String::new(), |it| format!(" after {}", human::time(it)));
    let mut text = format!("{by}{waited}");
    if admission.always {
        text.push_str(", with all later calls of this tool");
    }
    if let Some(reason) = &admission.reason {
        text = format!("{text}: {reason}");
    }
    text
}

fn cause(call: &Call, reason: &Because) -> String {
    let link = match reason.link {
        Link::Dependency => "it depends on",
        Link::Order => "it follows",
    };
    let mut text = format!("{link} {}", reason.direct.id);
    if reason.direct.call == call.number {
        text.push_str(" (itself)");
    }
    if reason.root != reason.direct {
        text = format!("{text}; the first failure was {}", reason.root.id);
    }
    text
}

fn attempt_line(attempt: &Attempt, call: &Call) -> String {
    let from = exact_time(attempt.started_ms);
    let Some(ended) = attempt.ended_ms else {
        return format!("at {from}, interrupted");
    };
    let took = time(ended.saturating_sub(attempt.started_ms));
    let Some(error) = &attempt.error else {
        let status = call.status.map_or("ended", status_word);
        return format!("at {from}, {status} after {took}");
    };
    let (error, wait) = (without_line_end(error), attempt.wait_ms.map(time));
    let wait = wait.map_or(String::new(), |wait| format!("; retry after {wait}"));
    format!("at {from}, failed after {took}: {error}{wait}")
}

fn times(call: &Call) -> String {
    let started = call.attempts.last().map(|attempt| attempt.started_ms);
    let times = [
        ("appeared", Some(call.appeared_ms)),
        ("complete", call.complete_ms),
        ("started", started),
        ("ended", call.ended_ms),
    ];
    let details: Vec<String> = times
        .into_iter()
        .filter_map(|(name, at)| Some(format!("{name} {}", exact_time(at?))))
        .collect();
    details.join(", ")
}

/// Formats a time since the beginning of the run, to the millisecond.
fn exact_time(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        _ => format!("{}.{:03} s", ms / 1000, ms % 1000),
    }
}

fn time(ms: u64) -> String {
    human::time(Duration::from_millis(ms))
}

/// The labelled lines below a call.
struct Details<'a> {
    lines: Vec<Line>,
    layout: Layout,
    glyphs: &'a Glyphs,
}

impl Details<'_> {
    /// Adds a label and one line.
    fn line(&mut self, label: &str, text: &str) {
        self.styled(label, &Line::of(PLAIN, text));
    }

    fn styled(&mut self, label: &str, text: &Line) {
        for (row, text) in self.rows(text).iter().enumerate() {
            let label = if row == 0 { label } else { "" };
            let mut line = indent(LABEL, &Line::of(DIM, label));
            if !text.is_empty() {
                line.pad_to(TEXT);
                line.append(text);
            }
            self.lines.push(line);
        }
    }

    fn rows(&self, text: &Line) -> Vec<Line> {
        wrap(
            text,
            self.layout.width.map(|width| width.saturating_sub(TEXT)),
        )
    }

    /// Adds a label and a text, which starts below the label if it has several lines.
    fn text(&mut self, label: &str, text: &str, style: Style) {
        if text.is_empty() {
            return self.styled(label, &Line::of(DIM, "(empty)"));
        }
        if !text.contains('\n') {
            let line = Line::of(style, text);
            let rows = self.rows(&line).len();
            let fits = self.layout.rows.is_none_or(|max| rows <= max);
            if fits && !self.layout.is_too_long(&line) {
                return self.styled(label, &line);
            }
        }
        self.styled(label, &Line::new());
        let layout = Layout {
            width: self.layout.width.map(|width| width.saturating_sub(LABEL)),
            ..self.layout
        };
        let block = block(text, style, layout, self.glyphs);
        self.lines
            .extend(block.iter().map(|line| indent(LABEL, line)));
    }

    /// Adds arguments: on one truncated line, or in full on separate lines.
    fn arguments(&mut self, label: &str, arguments: &[(String, String)]) {
        if arguments.is_empty() {
            return self.styled(label, &Line::of(DIM, "none"));
        }
        if self.layout.rows.is_none() {
            for (index, (pointer, value)) in arguments.iter().enumerate() {
                let label = if index == 0 { label } else { "" };
                if value.contains('\n') {
                    self.styled(label, &Line::of(CALL, &format!("{pointer}:")));
                    self.text("", value, PLAIN);
                } else {
                    self.styled(label, &argument(pointer, value));
                }
            }
            return;
        }
        let width = self.layout.chart_width().saturating_sub(TEXT);
        let mut line = Line::new();
        for (index, (pointer, value)) in arguments.iter().enumerate() {
            if index > 0 {
                line.push(DIM, ", ");
            }
            line.append(&argument(pointer, value));
            if line.width() > width {
                break;
            }
        }
        self.styled(label, &line.truncate(width, self.glyphs.ellipsis));
    }
}

fn argument(pointer: &str, value: &str) -> Line {
    let mut line = Line::of(CALL, pointer);
    line.push(DIM, ": ");
    line.push(PLAIN, value);
    line
}
