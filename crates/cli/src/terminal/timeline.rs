//! The timeline: one bar per call.
//!
//! ```text
//! fetch      ·██████████                 1.0 s
//! measure     ··╌╌╌╌╌╌╌╌████████│███     1.1 s
//! look          ··▒▒▒▒▒▒        │        0.6 s
//! ────────────┬─────────────┬───┴───
//!             1 s           2 s
//! ```

use std::time::Duration;

use anstyle::Style;
use plaincall_report::call_table::{Call, CallTable};
use plaincall_report::critical::critical_path;

use crate::terminal::glyphs::Glyphs;
use crate::terminal::human;
use crate::terminal::line::Line;
use crate::terminal::palette::{self, BOLD, DIM, PLAIN};

/// The maximum width in columns. A wider timeline shows no more.
const MAX_WIDTH: usize = 110;

/// The width of the time after a bar.
const TIME_WIDTH: usize = 11;

/// The minimum width of the bars.
const MIN_COLUMNS: usize = 12;

/// The scale of the time axis.
#[derive(Clone, Copy, Debug)]
struct Scale {
    from: Duration,
    to: Duration,
    columns: usize,
}

impl Scale {
    fn total(self) -> Duration {
        self.to.saturating_sub(self.from)
    }

    fn column(self, time: Duration) -> usize {
        self.edge(time).min(self.columns.saturating_sub(1))
    }

    /// Returns the column at which something that ended at this time ends (exclusive).
    fn edge(self, time: Duration) -> usize {
        let total = self.total().as_nanos().max(1);
        let time = time.saturating_sub(self.from);
        let column = time.as_nanos() * self.columns as u128 / total;
        usize::try_from(column)
            .unwrap_or(usize::MAX)
            .min(self.columns)
    }
}

/// Returns the timeline of the first `max` calls in a terminal of `width` columns.
pub(crate) fn timeline(table: &CallTable, max: usize, width: usize, glyphs: &Glyphs) -> Vec<Line> {
    let calls = table.order().into_iter().take(max);
    let calls = calls.filter_map(|index| Some((index, table.calls().get(index)?)));
    let calls: Vec<(usize, &Call)> = calls.collect();
    let width = width.min(MAX_WIDTH);
    let ids = calls.iter();
    let ids = ids.map(|(_, call)| Line::of(PLAIN, &call.label()).width());
    let label = ids.max().unwrap_or(0).min(width / 3).max(4);
    let columns = width.saturating_sub(label + 2 + TIME_WIDTH);
    if calls.is_empty() || columns < MIN_COLUMNS {
        return Vec::new();
    }
    let scale = Scale {
        from: table.from(),
        to: table.to(),
        columns,
    };
    let reply_end = table.reply_end().map(|end| scale.column(end));
    let mut lines = Vec::new();
    let mut is_critical = vec![false; table.calls().len()];
    for index in critical_path(table) {
        if let Some(flag) = is_critical.get_mut(index) {
            *flag = true;
        }
    }
    for (index, call) in calls {
        let is_critical = is_critical.get(index).is_some_and(|it| *it);
        let (style, time_style) = if is_critical {
            (BOLD, BOLD)
        } else {
            (PLAIN, DIM)
        };
        let mut line = Line::of(style, &call.label()).truncate(label, glyphs.ellipsis);
        line.pad_to(label + 2);
        for (style, c) in bar(call, is_critical, scale, reply_end, glyphs) {
            line.push_character(style, c);
        }
        let time = match (call.result(), call.running_time()) {
            (None, _) => "interrupted".to_owned(),
            (Some(result), None) => result.status.name().to_owned(),
            (Some(_), Some(time)) => human::time(time),
        };
        let time = format!(" {time:>width$}", width = TIME_WIDTH - 1);
        line.push(time_style, &time);
        lines.push(line);
    }
    lines.extend(axis(scale, label, reply_end, glyphs));
    lines
}

/// Returns the cells of one call.
fn bar(
    call: &Call,
    is_critical: bool,
    scale: Scale,
    reply_end: Option<usize>,
    glyphs: &Glyphs,
) -> Vec<(Style, char)> {
    let bars = &glyphs.bars;
    let mut cells = vec![(PLAIN, ' '); scale.columns];
    if let Some(cell) = reply_end.and_then(|column| cells.get_mut(column)) {
        *cell = (DIM, bars.reply_end);
    }
    let status = call.result().map(|result| result.status);
    let mut times = call.times;
    if status.is_none() {
        // The end is unknown.
        times.ended = scale.to;
    }
    let mut fill = |from: Duration, to: Duration, style: Style, symbol: char, covers_mark: bool| {
        let (from, to) = (scale.column(from), scale.edge(to));
        // Everything takes at least one column.
        let cells = cells.iter_mut().enumerate();
        for (column, cell) in cells.take(to.max(from + 1)).skip(from) {
            if covers_mark || reply_end != Some(column) {
                *cell = (style, symbol);
            }
        }
    };
    let complete = times.complete.unwrap_or(times.ended);
    fill(times.appeared, complete, DIM, bars.writing, false);
    if let Some(complete) = times.complete {
        let started = times.started.unwrap_or(times.ended);
        fill(complete, started, DIM, bars.waiting, false);
    }
    let style = status.map_or(DIM, palette::status);
    let ended = times.ended;
    match (times.started, status) {
        (Some(started), _) if is_critical => fill(started, ended, style, bars.critical, true),
        (Some(started), _) => fill(started, ended, style, bars.running, true),
        (None, Some(status)) => {
            let symbol = glyphs.status(status).chars().next().unwrap_or('x');
            fill(ended, ended, style, symbol, true);
        }
        (None, None) => {}
    }
    cells
}

/// Returns the axis and, below it, the labels of its ticks.
fn axis(scale: Scale, label: usize, reply_end: Option<usize>, glyphs: &Glyphs) -> [Line; 2] {
    let bars = &glyphs.bars;
    let mut symbols = vec![bars.axis; scale.columns];
    let mut labels = vec![' '; scale.columns];
    // Logged times may be arbitrarily large; the sum must not overflow.
    let step_ns = step(scale);
    let mut tick_ns = scale.from.as_nanos().div_ceil(step_ns) * step_ns;
    let mut free_from = 0;
    while tick_ns <= scale.to.as_nanos() {
        let tick = Duration::from_millis(u64::try_from(tick_ns / 1_000_000).unwrap_or(u64::MAX));
        let column = scale.column(tick);
        let text = tick_label(tick);
        if let Some(symbol) = symbols.get_mut(column) {
            *symbol = bars.tick;
        }
        if column >= free_from && column + text.len() <= scale.columns {
            for (cell, c) in labels.iter_mut().skip(column).zip(text.chars()) {
                *cell = c;
            }
            free_from = column + text.len() + 1;
        }
        tick_ns += step_ns;
    }
    if let Some(symbol) = reply_end.and_then(|column| symbols.get_mut(column)) {
        *symbol = bars.reply_end;
    }
    [symbols, labels].map(|cells| {
        let mut line = Line::new();
        line.pad_to(label + 2);
        let text: String = cells.into_iter().collect();
        line.push(DIM, text.trim_end());
        line
    })
}

/// Returns the time between two ticks in nanoseconds: 1, 2 or 5 times a power of ten, at least 1 ms, so that labels do
/// not touch.
fn step(scale: Scale) -> u128 {
    const LABEL: u128 = 8;
    let total = scale.total().as_nanos();
    let mut power: u128 = 1_000_000;
    loop {
        for factor in [1, 2, 5] {
            let step = power * factor;
            let columns = step * scale.columns as u128 / total.max(1);
            if columns >= LABEL || step >= total {
                return step;
            }
        }
        power *= 10;
    }
}

fn tick_label(time: Duration) -> String {
    let milliseconds = time.as_millis();
    match milliseconds {
        0 => "0".to_owned(),
        ms if ms < 1000 => format!("{ms} ms"),
        ms => {
            let seconds = format!("{}.{:03}", ms / 1000, ms % 1000);
            format!("{} s", seconds.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}
