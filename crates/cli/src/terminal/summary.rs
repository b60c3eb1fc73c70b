//! What a run came to: the results in call order, the timeline, and a sentence.

use std::sync::Arc;
use std::time::Duration;

use anstyle::Style;
use plaincall::{CallResult, Status};

use crate::terminal::call_line::{ending, verb};
use crate::terminal::call_table::{Call, CallTable};
use crate::terminal::glyphs::Glyphs;
use crate::terminal::line::Line;
use crate::terminal::palette::{self, BOLD, CALL, DIM, PLAIN};
use crate::terminal::timeline::timeline;
use crate::terminal::words;

/// How far a text below a call's line is indented.
const INDENT: usize = 2;

/// How many calls a timeline shows.
const BARS: usize = 60;

/// How much of the results is shown, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The width of the terminal; `None` for a pipe, where lines are not broken.
    pub(crate) width: Option<usize>,
    /// How many rows of one output are shown; `None` for all.
    pub(crate) rows: Option<usize>,
}

impl Form {
    /// For pictures in a pipe.
    const PIPE_WIDTH: usize = 100;

    /// How many columns of one line a pipe gets, unless all is wanted.
    const LONGEST: usize = 2000;

    pub(crate) fn picture_width(self) -> usize {
        self.width.unwrap_or(Self::PIPE_WIDTH)
    }

    /// Whether a line is too long for a pipe, where lines are not broken.
    pub(crate) fn is_too_long(self, line: &Line) -> bool {
        self.width.is_none() && self.rows.is_some() && line.width() > Self::LONGEST
    }
}

/// The widths of the columns before what a call came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    id: usize,
    name: usize,
}

impl Columns {
    /// Columns for these calls in a terminal of `width` columns.
    pub(crate) fn of<'a>(calls: impl IntoIterator<Item = &'a Call>, width: usize) -> Self {
        let (mut id, mut name) = (0, 0);
        for call in calls {
            id = id.max(Line::of(PLAIN, &call.id).width());
            name = name.max(Line::of(PLAIN, &call.name).width());
        }
        // Where there is little room, the state is worth more than the name, and the name less than the id.
        Self {
            id: id.min(width / 3).min(32),
            name: if width < 44 {
                0
            } else {
                name.min(width / 5).min(24)
            },
        }
    }

    /// The column where the state begins.
    fn state(self) -> usize {
        let name = if self.name == 0 { 0 } else { self.name + 2 };
        2 + self.id + 2 + name
    }

    /// The beginning of a call's line: mark, id and name.
    pub(crate) fn begin(self, call: &Call, glyphs: &Glyphs) -> Line {
        let status = call.result().map(|result| result.status);
        let mut line = match status {
            Some(status) => Line::of(palette::status(status), glyphs.status(status)),
            None => Line::of(palette::ASKING, glyphs.cut),
        };
        line.pad_to(2);
        line.append(&Line::of(BOLD, &call.id).cut(self.id, glyphs.cut));
        line.pad_to(2 + self.id + 2);
        if self.name > 0 {
            line.append(&Line::of(CALL, &call.name).cut(self.name, glyphs.cut));
            line.pad_to(self.state());
        }
        line
    }
}

pub(crate) fn summary(table: &CallTable, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let calls = table.calls();
    if calls.is_empty() {
        let text = "No calls found. `plaincall check` lists near misses.";
        return wrapped(&Line::of(PLAIN, text), form.width);
    }
    let mut lines = vec![Line::of(BOLD, "Results")];
    let columns = Columns::of(calls, form.picture_width());
    for call in calls {
        if let Some(result) = call.result() {
            lines.extend(result_lines(call, result, columns, form, glyphs));
            if let Some(note) = &result.note {
                lines.extend(wrapped(&behind(INDENT, &Line::of(DIM, note)), form.width));
            }
        }
    }
    lines.push(Line::new());
    lines.extend(overview(table, form, glyphs));
    lines
}

/// The timeline of some calls, and the sentence.
pub(crate) fn overview(table: &CallTable, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let bars = timeline(table, BARS, form.picture_width(), glyphs);
    let mut lines = Vec::new();
    if !bars.is_empty() {
        lines.push(Line::of(BOLD, "Timeline"));
        if let more @ 1.. = table.calls().len().saturating_sub(BARS) {
            let text = format!(
                "(first {BARS} calls; {} more not shown)",
                words::count(more, "call")
            );
            lines.push(Line::of(DIM, &text));
        }
        lines.extend(bars);
        lines.extend(legend(table, form, glyphs));
        lines.push(Line::new());
    }
    lines.extend(wrapped(&sentence(table, glyphs), form.width));
    lines
}

/// One call: its line, and below it what does not fit there.
fn result_lines(
    call: &Call,
    result: &CallResult,
    columns: Columns,
    form: Form,
    glyphs: &Glyphs,
) -> Vec<Line> {
    let mut head = columns.begin(call, glyphs);
    head.append(&ending(result));
    let text = |text: &Option<Arc<str>>| text.as_deref().map_or("", without_line_end).to_owned();
    let (output, error) = (text(&result.output), text(&result.error));
    let error_style = match result.status {
        status @ Status::Error => palette::status(status),
        _ => PLAIN,
    };
    // A short result is shown on the line of its call.
    let (short, short_style) = match error.as_str() {
        "" => (output.as_str(), PLAIN),
        error => (error, error_style),
    };
    if (error.is_empty() || output.is_empty()) && !short.contains('\n') {
        if short.is_empty() {
            return vec![head];
        }
        let mut whole = head.clone();
        whole.pad_to(columns.state() + 9);
        whole.push(PLAIN, " ");
        whole.push(short_style, short);
        if form.width.is_none_or(|width| whole.width() <= width) && !form.is_too_long(&whole) {
            return vec![whole];
        }
    }
    let mut lines = vec![match form.width {
        Some(width) => head.cut(width, glyphs.cut),
        None => head,
    }];
    lines.extend(block(&error, error_style, form, glyphs));
    lines.extend(block(&output, PLAIN, form, glyphs));
    lines
}

/// A text below a call's line, cut if it is long.
pub(crate) fn block(text: &str, style: Style, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    if text.is_empty() {
        return Vec::new();
    }
    let limit = form.rows.unwrap_or(usize::MAX);
    let mut rows: Vec<Line> = Vec::new();
    let mut more = 0;
    for text in text.split('\n') {
        if rows.len() >= limit {
            more += 1;
            continue;
        }
        let text = text.strip_suffix('\r').unwrap_or(text);
        let mut line = Line::of(style, text);
        if form.is_too_long(&line) {
            line = line.cut(Form::LONGEST, glyphs.cut);
            more += 1;
        }
        let mut wrapped = wrapped(&line, form.width.map(|width| width.saturating_sub(INDENT)));
        let fits = limit - rows.len();
        if wrapped.len() > fits {
            wrapped.truncate(fits);
            more += 1;
        }
        rows.extend(wrapped);
    }
    if more > 0 {
        let lines = words::count(more, "more line");
        let note = format!("{} {lines}; use --full to show all", glyphs.cut);
        rows.push(Line::of(DIM, &note));
    }
    rows.iter().map(|row| behind(INDENT, row)).collect()
}

/// A line behind so many blanks.
pub(crate) fn behind(columns: usize, line: &Line) -> Line {
    let mut whole = Line::new();
    whole.pad_to(columns);
    whole.append(line);
    whole
}

/// What the signs of the timeline mean.
fn legend(table: &CallTable, form: Form, glyphs: &Glyphs) -> Vec<Line> {
    let bars = &glyphs.bars;
    let mut parts = vec![
        format!("{} writing", bars.writing),
        format!("{} waiting", bars.waiting),
        format!("{} running", bars.running),
        format!("{} critical path", bars.critical),
    ];
    if let Some(end) = table.reply_end() {
        parts.push(format!(
            "{} reply complete, {}",
            bars.reply_end,
            words::time(end.saturating_sub(table.from()))
        ));
    }
    // A sign and its meaning stay together.
    let mut lines: Vec<Line> = Vec::new();
    for part in parts {
        let part = Line::of(DIM, &part);
        let fits = |line: &&mut Line| {
            form.width
                .is_none_or(|width| line.width() + 3 + part.width() <= width)
        };
        match lines.last_mut().filter(fits) {
            Some(line) => {
                line.push(PLAIN, "   ");
                line.append(&part);
            }
            None => lines.push(part),
        }
    }
    lines
}

/// How many calls ended how, and how long it took.
fn sentence(table: &CallTable, glyphs: &Glyphs) -> Line {
    let calls = table.calls();
    let mut line = Line::of(BOLD, &words::count(calls.len(), "call"));
    let mut separator = ": ";
    for status in Status::ALL {
        let results = calls.iter().filter_map(Call::result);
        let count = results.filter(|result| result.status == status).count();
        if count > 0 {
            line.push(PLAIN, separator);
            line.push(
                palette::status(status),
                &format!("{count} {}", verb(status)),
            );
            separator = ", ";
        }
    }
    let open = calls.iter().filter(|call| call.result().is_none()).count();
    if open > 0 {
        line.push(PLAIN, separator);
        line.push(palette::ASKING, &format!("{open} interrupted"));
    }
    let total = table.to().saturating_sub(table.from());
    let times = calls.iter().filter_map(Call::running_time);
    let work = times.fold(Duration::ZERO, Duration::saturating_add);
    let reply = table.reply_end().unwrap_or_default();
    let results = calls.iter().filter_map(Call::result);
    let started = results.filter_map(|result| result.times.started);
    let early = started.filter(|started| *started < reply).count();
    let mut add = |text: &str| line.push(DIM, &format!(" {} {text}", glyphs.dot));
    add(&words::time(total));
    if early > 0 {
        add(&format!("{early} started before the reply was complete"));
    }
    let one_by_one = reply.saturating_sub(table.from()).saturating_add(work);
    if one_by_one.saturating_sub(total) > Duration::from_millis(50) {
        add(&format!("sequential time: {}", words::time(one_by_one)));
    }
    line
}

pub(crate) fn wrapped(line: &Line, width: Option<usize>) -> Vec<Line> {
    match width {
        Some(width) => line.wrapped(width),
        None => vec![line.clone()],
    }
}

pub(crate) fn without_line_end(text: &str) -> &str {
    text.trim_end_matches(['\n', '\r'])
}
