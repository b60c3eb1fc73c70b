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

use crate::terminal::call_table::{Call, CallTable};
use crate::terminal::critical::critical;
use crate::terminal::glyphs::Glyphs;
use crate::terminal::line::Line;
use crate::terminal::palette::{self, BOLD, DIM, PLAIN};
use crate::terminal::words;

/// The widest timeline, in columns; more does not show more.
const WIDEST: usize = 110;

/// How many columns the time at the end of a bar takes.
const TIME_WIDTH: usize = 11;

/// The fewest columns that make a picture.
const FEWEST: usize = 12;

/// Where times lie on the axis.
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

    /// The column in which a time lies.
    fn column(self, time: Duration) -> usize {
        self.edge(time).min(self.columns.saturating_sub(1))
    }

    /// The column before which something ends that ended at this time.
    fn edge(self, time: Duration) -> usize {
        let total = self.total().as_nanos().max(1);
        let time = time.saturating_sub(self.from);
        let column = time.as_nanos() * self.columns as u128 / total;
        usize::try_from(column)
            .unwrap_or(usize::MAX)
            .min(self.columns)
    }
}

/// The timeline of the calls at these places, in a terminal of `width` columns.
pub(crate) fn timeline(
    table: &CallTable,
    shown: &[usize],
    width: usize,
    glyphs: &Glyphs,
) -> Vec<Line> {
    let calls: Vec<(usize, &Call)> = shown
        .iter()
        .filter_map(|&index| Some((index, table.calls().get(index)?)))
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
    let scale = Scale {
        from: table.from(),
        to: table.to(),
        columns,
    };
    let reply_end = table.reply_end().map(|end| scale.column(end));
    let is_critical = critical(table);
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
        } else {
            line.push(
                DIM,
                &format!(" {:>width$}", "cut off", width = TIME_WIDTH - 1),
            );
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
    let status = call.result().map(|result| result.status);
    let mut times = call.times;
    if status.is_none() {
        // Nobody knows when it ended.
        times.ended = scale.to;
    }
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
        let style = status.map_or(DIM, palette::status);
        fill(started, times.ended, style, sign, true);
    } else if let Some(status) = status {
        let sign = glyphs.status(status).chars().next().unwrap_or('x');
        fill(
            times.ended,
            times.ended,
            palette::status(status),
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
    // Times of a record can be any number, so the sum must not overflow.
    let step_ns = step(scale).as_nanos().max(1);
    let mut tick_ns = scale.from.as_nanos().div_ceil(step_ns) * step_ns;
    let mut free_from = 0;
    while tick_ns <= scale.to.as_nanos() {
        let tick = Duration::from_millis(u64::try_from(tick_ns / 1_000_000).unwrap_or(u64::MAX));
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
        tick_ns += step_ns;
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
    let total = scale.total().as_nanos();
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
        ms => {
            let seconds = format!("{}.{:03}", ms / 1000, ms % 1000);
            format!("{} s", seconds.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plaincall::{Appeared, ArgumentTexts, Completed, Moment, RunEvent, Started};

    use crate::terminal::call_table::CallTable;
    use crate::terminal::call_table::tests::table;
    use crate::terminal::glyphs::ASCII;
    use crate::terminal::line::Line;

    fn check(text: &str, reply_end: u64, width: usize, expected: &str) {
        let table = table(text, reply_end);
        let shown: Vec<usize> = (0..table.calls().len()).collect();
        let lines = super::timeline(&table, &shown, width, &ASCII);
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

    /// A later turn begins at its own opening, and what the record does not end goes on to where the record does.
    #[test]
    fn a_turn_without_an_end() {
        let at = Duration::from_millis;
        let mut table = CallTable::of_turn(at(10_000), 7);
        let moment = |call, milliseconds| Moment {
            call,
            id: "x".into(),
            name: "tool".into(),
            at: at(milliseconds),
        };
        for (call, id) in [(7, "ran"), (8, "waited"), (9, "written")] {
            table.take_run_event(&RunEvent::Call(Appeared {
                call,
                id: id.into(),
                name: "tool".into(),
                dependencies: Vec::new().into(),
                submitted: None,
                parent: None,
                at: at(10_000 + u64::from(call - 7) * 100),
            }));
        }
        for call in [7, 8] {
            table.take_run_event(&RunEvent::Waiting(Completed {
                call,
                id: "x".into(),
                name: "tool".into(),
                arguments: ArgumentTexts::default(),
                at: at(10_300),
            }));
        }
        table.take_run_event(&RunEvent::Start(Started {
            call: 7,
            id: "ran".into(),
            name: "tool".into(),
            attempt: 1,
            at: at(10_400),
        }));
        table.take_run_event(&RunEvent::Retry(moment(8, 10_800)));
        let lines = super::timeline(&table, &[0, 1, 2], 60, &ASCII);
        let found: Vec<String> = lines.iter().map(Line::to_plain).collect();
        assert_eq!(
            found,
            [
                "ran      ...............:::::====================    cut off",
                "waited        ..........:::::::::::::::::::::::::    cut off",
                "written            ..............................    cut off",
                "         +---------+---------+---------+--------+",
                "         10 s      10.2 s    10.4 s    10.6 s",
            ]
        );
    }

    /// The times of a record may be any numbers.
    #[test]
    fn times_without_bounds() {
        let mut table = CallTable::of_turn(Duration::MAX, 0);
        table.take_run_event(&RunEvent::Over(plaincall::Over {
            stop: plaincall::Stop::Natural,
            at: Duration::from_millis(u64::MAX),
        }));
        table.take_run_event(&RunEvent::Call(Appeared {
            call: 0,
            id: "a".into(),
            name: "tool".into(),
            dependencies: Vec::new().into(),
            submitted: None,
            parent: None,
            at: Duration::from_millis(u64::MAX),
        }));
        assert!(!super::timeline(&table, &[0], 60, &ASCII).is_empty());
    }

    #[test]
    fn too_narrow_for_a_picture() {
        check("a | 0 0 0 100", 0, 28, "");
        check("", 0, 80, "");
    }
}
