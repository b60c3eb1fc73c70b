//! A story in lines.

use std::time::Duration;

use anstyle::Style;
use plaincall::{Admission, AdmittedBy, ArgumentTexts, Because, Link, Status, Stop, Teller};

use crate::report::story::{Attempt, Begin, Call, Story, Turn};
use crate::report::transcript::Segment;
use crate::terminal::call_line::ending;
use crate::terminal::glyphs::Glyphs;
use crate::terminal::line::Line;
use crate::terminal::palette::{self, ASKING, BOLD, CALL, CALL_NAME, DIM, PLAIN, REASONING};
use crate::terminal::prose::Prose;
use crate::terminal::summary::{Columns, Form, block, overview, without_line_end, wrapped};
use crate::terminal::words;

/// Where what is said about a call begins, and where its text begins.
const LABEL: usize = 4;
const TEXT: usize = 15;

/// A width that no text has.
const UNBROKEN: usize = usize::MAX;

/// All of it.
pub(crate) fn lines(story: &Story, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(begin) = &story.begin {
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
            lines.push(Line::of(
                DIM,
                &format!("scratch directory {}{kind}", directory.path),
            ));
        }
    }
    for at in &story.resumed {
        let text = format!("taken up again at {}", words::time(*at));
        lines.push(Line::of(ASKING, &text));
    }
    for (place, turn) in story.turns.iter().enumerate() {
        lines.push(Line::new());
        if story.turns.len() > 1 {
            let mut line = Line::of(BOLD, &format!("Turn {}", turn.number.saturating_add(1)));
            line.push(
                DIM,
                &format!(" {} at {}", glyphs.dot, words::time(turn.opened)),
            );
            lines.push(line);
            lines.push(Line::new());
        }
        lines.extend(told(turn, form));
        lines.extend(reply(story, turn, form, glyphs));
        lines.push(Line::new());
        lines.extend(calls(story, place, turn, form, glyphs));
    }
    for problem in &story.problems {
        lines.push(Line::new());
        lines.extend(wrapped(&Line::of(ASKING, problem), form.width));
    }
    lines
}

/// When it was, and with what.
fn head(begin: &Begin, glyphs: &Glyphs) -> Line {
    let mut line = Line::of(
        BOLD,
        &format!("Run of {}", words::moment(begin.began_unix_ms)),
    );
    let tools = words::count(begin.tools.len(), "tool");
    let text = format!(
        " {dot} plaincall {} {dot} {tools}",
        begin.plaincall,
        dot = glyphs.dot
    );
    line.push(DIM, &text);
    line
}

/// What the model was told before the turn.
fn told(turn: &Turn, form: Form) -> Vec<Line> {
    let mut lines = Vec::new();
    for told in &turn.told {
        let (style, by) = match told.by {
            Teller::User => (BOLD, "the user"),
            Teller::Program => (DIM, "the program"),
        };
        lines.push(Line::of(style, &format!("{by}:")));
        let text = told.text.trim_end().split('\n');
        let rows: Vec<Line> = text
            .flat_map(|row| wrapped(&Line::of(PLAIN, row), form.width))
            .collect();
        let most = form.rows.unwrap_or(usize::MAX);
        let more = rows.len().saturating_sub(most);
        lines.extend(rows.into_iter().take(most));
        if more > 0 {
            let text = format!("({} more)", words::count(more, "line"));
            lines.push(Line::of(DIM, &text));
        }
        lines.push(Line::new());
    }
    lines
}

/// The reply, with its calls in their places.
fn reply(story: &Story, turn: &Turn, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let width = form.width.unwrap_or(UNBROKEN);
    let mut prose = Prose::new();
    for segment in &turn.segments {
        match segment {
            Segment::Text { text } => prose.text(text, PLAIN, width),
            Segment::Reasoning { text } => prose.text(text, REASONING, width),
            Segment::Call { call } => {
                if let Some(call) = story.calls.get(*call as usize) {
                    prose.line(place(call, glyphs).cut(width, glyphs.cut));
                    prose.call();
                }
            }
        }
    }
    prose.end_started_row();
    let mut lines = prose.take_rows();
    if !turn.is_exact && turn.segments.len() > 1 {
        let text = "(the reply is shown as it arrived: its calls could not be found in it again)";
        lines.extend(wrapped(&Line::of(DIM, text), form.width));
    }
    match (turn.stop, turn.over) {
        (Some(Stop::Length), _) => {
            lines.push(Line::of(ASKING, "(a limit of length cut the reply off)"));
        }
        (Some(Stop::Broken), _) => lines.push(Line::of(
            ASKING,
            "(the reply broke off, or nothing is known about its end)",
        )),
        (_, None) => lines.push(Line::of(ASKING, "(the record ends before the reply does)")),
        _ => {}
    }
    if let Some(cancel) = &turn.cancel {
        let text = format!(
            "all calls were called off at {}: {}",
            words::time(cancel.at),
            cancel.reason
        );
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
fn calls(story: &Story, place: usize, turn: &Turn, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let table = &turn.table;
    // In a conversation it is usual.
    if table.calls().is_empty() && story.turns.iter().any(|turn| !turn.told.is_empty()) {
        return Vec::new();
    }
    if table.calls().is_empty() {
        return wrapped(
            &Line::of(PLAIN, "There are no calls in the reply."),
            form.width,
        );
    }
    let columns = Columns::of(table.calls(), form.picture_width());
    let mut lines = vec![Line::of(BOLD, "Calls")];
    for (call, in_table) in story.calls_of(place).zip(table.calls()) {
        let mark = match call.status {
            Some(status) => (palette::status(status), glyphs.status(status)),
            None => (ASKING, glyphs.cut),
        };
        let mut line = columns.begin(mark, in_table, glyphs);
        match (in_table.result(), &call.open) {
            (Some(result), _) => line.append(&ending(result)),
            (None, Some(open)) => {
                line.push(ASKING, &format!("cut off {}", open.stage.sentence()));
            }
            (None, None) => {}
        }
        lines.extend(wrapped(&line, form.width));
        lines.extend(about(call, form, glyphs));
    }
    lines.push(Line::new());
    lines.extend(overview(table, form, glyphs));
    lines
}

/// What is said about a call below its line.
fn about(call: &Call, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let mut said = Said {
        lines: Vec::new(),
        form,
        glyphs,
    };
    if let Some(arguments) = &call.arguments {
        said.arguments("arguments", arguments);
    } else if let Some(source) = call.source.as_deref().filter(|it| !it.is_empty()) {
        said.text("written", without_line_end(source), DIM);
    }
    if let Some(held) = &call.held {
        said.line("held", &format!("it {held}"));
    }
    if let Some(admission) = &call.admission {
        said.line("allowed", &admitted(admission, call.ready));
    }
    if let Some(edited) = &call.edited {
        said.arguments("ran with", edited);
    }
    if let Some(because) = &call.because {
        said.line("because", &cause(call, because));
    }
    let is_plain = matches!(
        call.attempts.as_slice(),
        [] | [Attempt {
            error: None,
            is_cut_off: false,
            ..
        }]
    );
    if !is_plain {
        for attempt in &call.attempts {
            said.line(
                &format!("attempt {}", attempt.number),
                &attempt_line(attempt, call),
            );
        }
    }
    if let Some(error) = &call.error {
        let style = match call.status {
            Some(status @ Status::Error) => palette::status(status),
            _ => PLAIN,
        };
        said.text("error", without_line_end(error), style);
    }
    if let Some(output) = &call.output {
        said.text("output", without_line_end(output), PLAIN);
    }
    if let Some(note) = &call.note {
        said.text("note", without_line_end(note), PLAIN);
    }
    if let Some(open) = &call.open {
        said.line("then", &format!("`--resume` {}", open.resume));
    }
    said.line("times", &times(call));
    said.lines
}

/// Who let a call pass, and how long that took.
fn admitted(admission: &Admission, ready: Option<Duration>) -> String {
    let by = match admission.by {
        AdmittedBy::Rule => "by a rule of the run",
        AdmittedBy::Always => "by an earlier answer for all calls of this tool",
        AdmittedBy::Gate => "by the gate",
    };
    let waited = ready.map(|ready| admission.at.saturating_sub(ready));
    let waited = match waited.filter(|it| *it >= Duration::from_millis(1)) {
        Some(waited) => format!(" after {}", words::time(waited)),
        None => String::new(),
    };
    let always = if admission.always {
        ", and all later calls of this tool with it"
    } else {
        ""
    };
    format!("{by}{waited}{always}")
}

fn cause(call: &Call, because: &Because) -> String {
    let link = match because.link {
        Link::Dependency => "it depends on",
        Link::Order => "it was written after",
    };
    let root = if because.root == because.direct {
        String::new()
    } else {
        format!("; it began with {}", because.root.id)
    };
    let itself = if because.direct.call == call.number {
        " (itself)"
    } else {
        ""
    };
    format!("{link} {}{itself}{root}", because.direct.id)
}

fn attempt_line(attempt: &Attempt, call: &Call) -> String {
    let from = moment(attempt.started);
    let Some(ended) = attempt.ended else {
        return format!("at {from}, cut off");
    };
    let took = words::time(ended.saturating_sub(attempt.started));
    match (&attempt.error, attempt.wait) {
        (Some(error), Some(wait)) => format!(
            "at {from}, failed after {took}: {}; waits {}",
            without_line_end(error),
            words::time(wait)
        ),
        (Some(error), None) => format!("at {from}, failed after {took}: {error}"),
        (None, _) => {
            let status = match call.status {
                Some(Status::Error) => "failed",
                Some(status) => status.as_str(),
                None => "ended",
            };
            format!("at {from}, {status} after {took}")
        }
    }
}

fn times(call: &Call) -> String {
    let started = call.attempts.last().map(|attempt| attempt.started);
    let stations = [
        ("appeared", Some(call.appeared)),
        ("complete", call.complete),
        ("started", started),
        ("ended", call.ended),
    ];
    let said: Vec<String> = stations
        .into_iter()
        .filter_map(|(name, at)| Some(format!("{name} {}", moment(at?))))
        .collect();
    said.join(", ")
}

/// A time from the beginning of the run, to the millisecond.
fn moment(at: Duration) -> String {
    let milliseconds = at.as_millis();
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        _ => format!("{}.{:03} s", milliseconds / 1000, milliseconds % 1000),
    }
}

/// Lines with a label each.
struct Said<'a> {
    lines: Vec<Line>,
    form: Form,
    glyphs: &'a Glyphs,
}

impl Said<'_> {
    /// A label and a sentence.
    fn line(&mut self, label: &str, text: &str) {
        self.styled(label, &Line::of(PLAIN, text));
    }

    fn styled(&mut self, label: &str, text: &Line) {
        let width = self.form.width.map(|width| width.saturating_sub(TEXT));
        for (row, text) in wrapped(text, width).iter().enumerate() {
            let mut line = Line::new();
            line.pad_to(LABEL);
            line.push(DIM, if row == 0 { label } else { "" });
            if !text.is_empty() {
                line.pad_to(TEXT);
                line.append(text);
            }
            self.lines.push(line);
        }
    }

    /// A label and a text, which stands below if it has several lines.
    fn text(&mut self, label: &str, text: &str, style: Style) {
        if text.is_empty() {
            return self.styled(label, &Line::of(DIM, "(empty)"));
        }
        if !text.contains('\n') {
            let line = Line::of(style, text);
            let rows = wrapped(
                &line,
                self.form.width.map(|width| width.saturating_sub(TEXT)),
            );
            let fits = self.form.rows.is_none_or(|most| rows.len() <= most);
            if fits && !self.form.is_too_long(&line) {
                return self.styled(label, &line);
            }
        }
        self.styled(label, &Line::new());
        let form = Form {
            width: self.form.width.map(|width| width.saturating_sub(LABEL)),
            ..self.form
        };
        for text in block(text, style, form, self.glyphs) {
            let mut line = Line::new();
            line.pad_to(LABEL);
            line.append(&text);
            self.lines.push(line);
        }
    }

    /// Arguments: on a line, cut to it; or whole, each on its own.
    fn arguments(&mut self, label: &str, arguments: &ArgumentTexts) {
        if arguments.0.is_empty() {
            return self.styled(label, &Line::of(DIM, "none"));
        }
        if self.form.rows.is_none() {
            for (place, (pointer, value)) in arguments.0.iter().enumerate() {
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
        for (place, (pointer, value)) in arguments.0.iter().enumerate() {
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
