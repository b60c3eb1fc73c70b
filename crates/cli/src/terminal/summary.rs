//! The summary of a run: results in call order, the timeline, and the totals.

use std::sync::Arc;
use std::time::Duration;

use anstyle::Style;
use plaincall::{CallResult, Status};
use plaincall_report::call_table::{Call, CallTable};

use crate::terminal::call_line::{outcome, status_word};
use crate::terminal::glyphs::Glyphs;
use crate::terminal::human;
use crate::terminal::line::Line;
use crate::terminal::palette::{self, BOLD, CALL, DIM, PLAIN};
use crate::terminal::timeline::timeline;

/// The indentation of text below a call.
const INDENT: usize = 2;

/// The maximum number of calls in a timeline.
const MAX_CALLS: usize = 60;

/// The layout of results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The width of the terminal. None for a pipe, where lines are not wrapped.
    pub(crate) width: Option<usize>,
    /// The maximum number of rows of an output. None for all.
    pub(crate) rows: Option<usize>,
}

impl Layout {
    /// The width of a timeline in a pipe.
    const PIPE_WIDTH: usize = 100;

    /// The maximum width of a line in a pipe, unless outputs are shown in full.
    const MAX_COLUMNS: usize = 2000;

    pub(crate) fn chart_width(self) -> usize {
        self.width.unwrap_or(Self::PIPE_WIDTH)
    }

    /// Returns whether a line is too long for a pipe, where lines are not wrapped.
    pub(crate) fn is_too_long(self, line: &Line) -> bool {
        self.width.is_none() && self.rows.is_some() && line.width() > Self::MAX_COLUMNS
    }
}

/// The widths of the columns before the state of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    id: usize,
    name: usize,
}

impl Columns {
    /// Computes the widths for these calls in a terminal of `width` columns.
    pub(crate) fn of<'a>(calls: impl IntoIterator<Item = &'a Call>, width: usize) -> Self {
        let (mut id, mut name) = (0, 0);
        for call in calls {
            id = id.max(Line::of(PLAIN, &call.label()).width());
            name = name.max(Line::of(PLAIN, &call.name).width());
        }
        // In a narrow terminal, state and id are more important than the name.
        Self {
            id: id.min(width / 3).min(32),
            name: if width < 44 {
                0
            } else {
                name.min(width / 5).min(24)
            },
        }
    }

    /// Returns the column of the state.
    fn state(self) -> usize {
        let name = if self.name == 0 { 0 } else { self.name + 2 };
        2 + self.id + 2 + name
    }

    /// Formats the beginning of a call's line: mark, id and name.
    pub(crate) fn call_prefix(self, call: &Call, glyphs: &Glyphs) -> Line {
        let status = call.result().map(|result| result.status);
        let mut line = match status {
            Some(status) => Line::of(palette::status(status), glyphs.status(status)),
            None => Line::of(palette::NOTICE, glyphs.ellipsis),
        };
        line.pad_to(2);
        line.append(&Line::of(BOLD, &call.label()).truncate(self.id, glyphs.ellipsis));
        line.pad_to(2 + self.id + 2);
        if self.name > 0 {
            line.append(&Line::of(CALL, &call.name).truncate(self.name, glyphs.ellipsis));
            line.pad_to(self.state());
        }
        line
    }
}

pub(crate) fn summary(table: &CallTable, layout: Layout, glyphs: &Glyphs) -> Vec<Line> {
    let mut lines = results(table, layout, glyphs);
    if !table.calls().is_empty() {
        lines.push(Line::new());
        lines.extend(overview(table, layout, glyphs));
    }
    lines
}

/// Returns the part of the summary with the results of the calls.
pub(crate) fn results(table: &CallTable, layout: Layout, glyphs: &Glyphs) -> Vec<Line> {
    let calls = table.calls();
    if calls.is_empty() {
        let text = "No calls found. `plaincall check` lists near misses.";
        return wrap(&Line::of(PLAIN, text), layout.width);
    }
    let mut lines = vec![Line::of(BOLD, "Results")];
    let columns = Columns::of(calls, layout.chart_width());
    for call in table.in_order() {
        if let Some(result) = call.result() {
            lines.extend(result_lines(call, result, columns, layout, glyphs));
            if let Some(note) = &result.note {
                lines.extend(wrap(&indent(INDENT, &Line::of(DIM, note)), layout.width));
            }
        }
    }
    lines
}

/// Returns the timeline and the totals.
pub(crate) fn overview(table: &CallTable, layout: Layout, glyphs: &Glyphs) -> Vec<Line> {
    let bars = timeline(table, MAX_CALLS, layout.chart_width(), glyphs);
    let mut lines = Vec::new();
    if !bars.is_empty() {
        lines.push(Line::of(BOLD, "Timeline"));
        if let more @ 1.. = table.calls().len().saturating_sub(MAX_CALLS) {
            let text = format!(
                "(first {MAX_CALLS} calls; {} more not shown)",
                human::count(more, "call")
            );
            lines.push(Line::of(DIM, &text));
        }
        lines.extend(bars);
        lines.extend(legend(table, layout, glyphs));
        lines.push(Line::new());
    }
    lines.extend(wrap(&totals(table, glyphs), layout.width));
    lines
}

/// Formats a call: its line, and below it what does not fit.
fn result_lines(
    call: &Call,
    result: &CallResult,
    columns: Columns,
    layout: Layout,
    glyphs: &Glyphs,
) -> Vec<Line> {
    let mut head = columns.call_prefix(call, glyphs);
    head.append(&outcome(result));
    let text = |text: &Option<Arc<str>>| text.as_deref().map_or("", without_line_end).to_owned();
    let (output, error) = (text(&result.output), text(&result.error));
    let error_style = match result.status {
        status @ Status::Error => palette::status(status),
        _ => PLAIN,
    };
    // A short result is shown on the line of the call.
    let (short, short_style) = match error.as_str() {
        "" => (output.as_str(), PLAIN),
        error => (error, error_style),
    };
    if (error.is_empty() || output.is_empty()) && !short.contains('\n') {
        if short.is_empty() {
            return vec![head];
        }
        let mut joined = head.clone();
        joined.pad_to(columns.state() + 9);
        joined.push(PLAIN, " ");
        joined.push(short_style, short);
        if layout.width.is_none_or(|width| joined.width() <= width) && !layout.is_too_long(&joined)
        {
            return vec![joined];
        }
    }
    let mut lines = vec![match layout.width {
        Some(width) => head.truncate(width, glyphs.ellipsis),
        None => head,
    }];
    lines.extend(block(&error, error_style, layout, glyphs));
    lines.extend(block(&output, PLAIN, layout, glyphs));
    lines
}

/// Formats the text below a call, truncated if it is long.
pub(crate) fn block(text: &str, style: Style, layout: Layout, glyphs: &Glyphs) -> Vec<Line> {
    if text.is_empty() {
        return Vec::new();
    }
    let limit = layout.rows.unwrap_or(usize::MAX);
    let mut rows: Vec<Line> = Vec::new();
    let mut more = 0;
    for text in text.split('\n') {
        if rows.len() >= limit {
            more += 1;
            continue;
        }
        let text = text.strip_suffix('\r').unwrap_or(text);
        let mut line = Line::of(style, text);
        if layout.is_too_long(&line) {
            line = line.truncate(Layout::MAX_COLUMNS, glyphs.ellipsis);
            more += 1;
        }
        let mut wrapped = wrap(
            &line,
            layout.width.map(|width| width.saturating_sub(INDENT)),
        );
        let fits = limit - rows.len();
        if wrapped.len() > fits {
            wrapped.truncate(fits);
            more += 1;
        }
        rows.extend(wrapped);
    }
    if more > 0 {
        let lines = human::count(more, "more line");
        let note = format!("{} {lines}; use --full to show all", glyphs.ellipsis);
        rows.push(Line::of(DIM, &note));
    }
    rows.iter().map(|row| indent(INDENT, row)).collect()
}

pub(crate) fn indent(columns: usize, line: &Line) -> Line {
    let mut indented = Line::new();
    indented.pad_to(columns);
    indented.append(line);
    indented
}

/// Explains the symbols of the timeline.
fn legend(table: &CallTable, layout: Layout, glyphs: &Glyphs) -> Vec<Line> {
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
            human::time(end.saturating_sub(table.from()))
        ));
    }
    rows_of_parts(&parts, &Line::of(PLAIN, "   "), layout.width)
}

/// Puts texts on rows, and breaks a text only if it is wider than a row.
pub(crate) fn rows_of_parts(parts: &[String], separator: &Line, width: Option<usize>) -> Vec<Line> {
    let mut rows: Vec<Line> = Vec::new();
    for part in parts {
        let part = Line::of(DIM, part);
        let fits = |row: &&mut Line| {
            width.is_none_or(|width| row.width() + separator.width() + part.width() <= width)
        };
        match rows.last_mut().filter(fits) {
            Some(row) => {
                row.append(separator);
                row.append(&part);
            }
            None => rows.extend(wrap(&part, width)),
        }
    }
    rows
}

/// Formats the number of calls per status and the times.
fn totals(table: &CallTable, glyphs: &Glyphs) -> Line {
    let calls = table.calls();
    let mut line = Line::of(BOLD, &human::count(calls.len(), "call"));
    let mut separator = ": ";
    for status in Status::ALL {
        let results = calls.iter().filter_map(Call::result);
        let count = results.filter(|result| result.status == status).count();
        if count > 0 {
            line.push(PLAIN, separator);
            line.push(
                palette::status(status),
                &format!("{count} {}", status_word(status)),
            );
            separator = ", ";
        }
    }
    let open = calls.iter().filter(|call| call.result().is_none()).count();
    if open > 0 {
        line.push(PLAIN, separator);
        line.push(palette::NOTICE, &format!("{open} interrupted"));
    }
    let total = table.to().saturating_sub(table.from());
    let times = calls.iter().filter_map(Call::running_time);
    let work = times.fold(Duration::ZERO, Duration::saturating_add);
    let reply = table.reply_end().unwrap_or_default();
    let results = calls.iter().filter_map(Call::result);
    let started = results.filter_map(|result| result.times.started);
    let early = started.filter(|started| *started < reply).count();
    let mut add = |text: &str| line.push(DIM, &format!(" {} {text}", glyphs.dot));
    add(&human::time(total));
    if early > 0 {
        add(&format!("{early} started before the reply was complete"));
    }
    let sequential = reply.saturating_sub(table.from()).saturating_add(work);
    if sequential.saturating_sub(total) > Duration::from_millis(50) {
        add(&format!("sequential time: {}", human::time(sequential)));
    }
    line
}

pub(crate) fn wrap(line: &Line, width: Option<usize>) -> Vec<Line> {
    match width {
        Some(width) => line.wrap(width),
        None => vec![line.clone()],
    }
}

pub(crate) fn without_line_end(text: &str) -> &str {
    text.trim_end_matches(['\n', '\r'])
}

#[cfg(test)]
mod tests {
    use super::{Line, PLAIN, rows_of_parts};

    #[test]
    fn a_part_breaks_only_if_it_is_wider_than_a_row() {
        let parts = ["2 turns", "12 input tokens", "3 s"].map(str::to_owned);
        let separator = Line::of(PLAIN, " - ");
        for (width, expected) in [
            (None, &["2 turns - 12 input tokens - 3 s"][..]),
            (Some(31), &["2 turns - 12 input tokens - 3 s"]),
            (Some(30), &["2 turns - 12 input tokens", "3 s"]),
            (Some(20), &["2 turns", "12 input tokens", "3 s"]),
            (Some(8), &["2 turns", "12 input", "tokens", "3 s"]),
        ] {
            let rows = rows_of_parts(&parts, &separator, width);
            let rows: Vec<String> = rows.iter().map(Line::to_plain).collect();
            assert_eq!(rows, expected, "{width:?}");
        }
    }
}
