//! The timeline: one bar a call over the time of the run.
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

use crate::run::board::{Board, Call};
use crate::run::critical::critical;
use crate::run::glyphs::Glyphs;
use crate::run::line::Line;
use crate::run::palette::{self, BOLD, DIM, PLAIN};
use crate::run::words;

/// The widest timeline, in columns; more does not show more.
const WIDEST: usize = 110;

/// How many columns the time at the end of a bar takes.
const TIME_WIDTH: usize = 11;

/// The fewest columns that make a picture.
const FEWEST: usize = 12;

/// Where times lie on the axis.
#[derive(Clone, Copy, Debug)]
struct Scale {
    total: Duration,
    columns: usize,
}

impl Scale {
    /// The column in which a time lies.
    fn column(self, time: Duration) -> usize {
        self.edge(time).min(self.columns.saturating_sub(1))
    }

    /// The column before which something ends that ended at this time.
    fn edge(self, time: Duration) -> usize {
        let total = self.total.as_nanos().max(1);
        let column = time.as_nanos() * self.columns as u128 / total;
        usize::try_from(column)
            .unwrap_or(usize::MAX)
            .min(self.columns)
    }
}

/// The timeline of the calls at these places, in a terminal of `width` columns.
pub(crate) fn timeline(board: &Board, shown: &[usize], width: usize, glyphs: &Glyphs) -> Vec<Line> {
    let calls: Vec<(usize, &Call)> = shown
        .iter()
        .filter_map(|&index| Some((index, board.calls().get(index)?)))
        .collect();
    let width = width.min(WIDEST);
    let label = calls
        .iter()
        .map(|(_, call)| Line::of(PLAIN, &call.id).width())
        .max()
        .unwrap_or(0)
        .min(width / 3)
        .max(4);
    let columns = width.saturating_sub(label + 2 + TIME_WIDTH);
    if calls.is_empty() || columns < FEWEST {
        return Vec::new();
    }
    let ends = board
        .calls()
        .iter()
        .filter_map(|call| Some(call.result()?.times.ended));
    let total = ends.chain(board.reply_end()).max().unwrap_or_default();
    let scale = Scale { total, columns };
    let reply_end = board.reply_end().map(|end| scale.column(end));
    let is_critical = critical(board);
    let mut lines = Vec::new();
    for (index, call) in &calls {
        let is_critical = is_critical.get(*index).copied().unwrap_or(false);
        let mut line =
            Line::of(if is_critical { BOLD } else { PLAIN }, &call.id).cut(label, glyphs.cut);
        line.pad_to(label + 2);
        for (style, c) in bar(call, is_critical, scale, reply_end, glyphs) {
            line.push_character(style, c);
        }
        if let Some(result) = call.result() {
            let time = result
                .times
                .started
                .map(|started| result.times.ended.saturating_sub(started));
            let time = time.map_or_else(|| result.status.as_str().to_owned(), words::time);
            let style = if is_critical { BOLD } else { DIM };
            line.push(style, &format!(" {time:>width$}", width = TIME_WIDTH - 1));
        }
        lines.push(line);
    }
    lines.extend(axis(scale, label, reply_end, glyphs));
    lines
}

/// The cells of one call.
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
    let Some(result) = call.result() else {
        return cells;
    };
    let times = result.times;
    let mut fill = |from: Duration, to: Duration, style: Style, sign: char, covers_mark: bool| {
        let (from, to) = (scale.column(from), scale.edge(to));
        // What happened takes up one column at least.
        for (column, cell) in cells
            .iter_mut()
            .enumerate()
            .take(to.max(from + 1))
            .skip(from)
        {
            if covers_mark || reply_end != Some(column) {
                *cell = (style, sign);
            }
        }
    };
    let complete = times.complete.unwrap_or(times.ended);
    fill(times.appeared, complete, DIM, bars.writing, false);
    if let Some(complete) = times.complete {
        fill(
            complete,
            times.started.unwrap_or(times.ended),
            DIM,
            bars.waiting,
            false,
        );
    }
    if let Some(started) = times.started {
        let sign = if is_critical {
            bars.critical
        } else {
            bars.running
        };
        fill(
            started,
            times.ended,
            palette::status(result.status),
            sign,
            true,
        );
    } else {
        let sign = glyphs.status(result.status).chars().next().unwrap_or('x');
        fill(
            times.ended,
            times.ended,
            palette::status(result.status),
            sign,
            true,
        );
    }
    cells
}

/// The axis with its ticks, and below it what they mean.
fn axis(scale: Scale, label: usize, reply_end: Option<usize>, glyphs: &Glyphs) -> [Line; 2] {
    let bars = &glyphs.bars;
    let mut signs = vec![bars.axis; scale.columns];
    let mut below = vec![' '; scale.columns];
    let step = step(scale);
    let mut tick = Duration::ZERO;
    let mut free_from = 0;
    while tick <= scale.total {
        let column = scale.column(tick);
        let text = tick_label(tick);
        if let Some(sign) = signs.get_mut(column) {
            *sign = bars.tick;
        }
        if column >= free_from && column + text.len() <= scale.columns {
            for (cell, c) in below.iter_mut().skip(column).zip(text.chars()) {
                *cell = c;
            }
            free_from = column + text.len() + 1;
        }
        tick += step;
    }
    if let Some(sign) = reply_end.and_then(|column| signs.get_mut(column)) {
        *sign = bars.reply_end;
    }
    [signs, below].map(|cells| {
        let mut line = Line::new();
        line.pad_to(label + 2);
        let text: String = cells.into_iter().collect();
        line.push(DIM, text.trim_end());
        line
    })
}

/// The time between two ticks: 1, 2 or 5 times a power of ten, from a millisecond on, so that their labels do not touch.
fn step(scale: Scale) -> Duration {
    const LABEL: u128 = 8;
    let total = scale.total.as_nanos();
    let mut power: u128 = 1_000_000;
    loop {
        for factor in [1, 2, 5] {
            let step = power * factor;
            let columns = step * scale.columns as u128 / total.max(1);
            if columns >= LABEL || step >= total {
                let nanoseconds = u64::try_from(step).unwrap_or(u64::MAX);
                return Duration::from_nanos(nanoseconds);
            }
        }
        power *= 10;
    }
}

fn tick_label(time: Duration) -> String {
    let milliseconds = time.as_millis();
    match milliseconds {
        0 => "0".to_owned(),
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms if ms < 1000 => format!("{ms} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use crate::run::board::tests::board;
    use crate::run::glyphs::ASCII;
    use crate::run::line::Line;

    fn check(text: &str, reply_end: u64, width: usize, expected: &str) {
        let board = board(text, reply_end);
        let shown: Vec<usize> = (0..board.calls().len()).collect();
        let lines = super::timeline(&board, &shown, width, &ASCII);
        let found: Vec<String> = lines.iter().map(Line::to_plain).collect();
        let expected: Vec<&str> = expected
            .lines()
            .skip(1)
            .map(|line| line.strip_prefix('|').unwrap_or(line))
            .collect();
        assert_eq!(found, expected, "{text}");
        assert!(lines.iter().all(|line| line.width() <= width));
    }

    #[test]
    fn pictures() {
        let text = "fetch | 0 100 100 1100\nmeasure: fetch | 200 300 1100 2000\nlook | 300 400 400 1000\nskip: fetch | 500 600 - 1100";
        check(
            text,
            800,
            60,
            r"
|fetch    ..####################                        1.0 s
|measure      ..::::::::::|:::::##################      0.9 s
|look           ..============                          0.6 s
|skip               ..::::|:::::-                     skipped
|         +---------+-----|---+---------+--------+
|         0         500 ms    1 s       1.5 s",
        );
    }

    #[test]
    fn too_narrow_for_a_picture() {
        check("a | 0 0 0 100", 0, 28, "");
        check("", 0, 80, "");
    }
}
