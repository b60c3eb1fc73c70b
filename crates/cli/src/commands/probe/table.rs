//! The figures as a table for a terminal, and the list of tasks.

use std::fmt::Write as _;
use std::time::Duration;

use plaincall_probe::{ArmReport, Report, Task};

/// The cell of an arm.
type Figure = fn(&ArmReport) -> String;

/// The rows of figures, each with its name.
pub(super) const FIGURES: [(&str, Figure); 10] = [
    ("correct", |arm| format!("{}/{}", arm.correct, arm.attempts)),
    ("correct, %", |arm| percent(arm.share())),
    ("95 % interval", |arm| {
        format!(
            "{}-{}",
            percent(arm.interval.low),
            percent(arm.interval.high)
        )
    }),
    ("calls", |arm| arm.calls.to_string()),
    ("well-formed calls", |arm| arm.well_formed.to_string()),
    ("successful calls", |arm| arm.succeeded.to_string()),
    ("repaired calls", |arm| arm.repaired.to_string()),
    ("tokens in per task", |arm| tokens(arm, arm.input_tokens)),
    ("tokens out per task", |arm| tokens(arm, arm.output_tokens)),
    ("seconds per task", |arm| {
        let tenths = arm.milliseconds / 100 / u64::from(arm.attempts.max(1));
        format!("{}.{}", tenths / 10, tenths % 10)
    }),
];

fn tokens(arm: &ArmReport, tokens: u64) -> String {
    let about = if arm.is_estimated { "~" } else { "" };
    format!("{about}{}", tokens / u64::from(arm.attempts.max(1)))
}

/// The cell of an arm. One without attempts has none.
pub(super) fn cell(arm: &ArmReport, figure: Figure) -> String {
    if arm.attempts == 0 {
        return "-".to_owned();
    }
    figure(arm)
}

pub(super) fn task_cell(arm: &ArmReport, task: &Task) -> String {
    let report = arm.tasks.iter().find(|report| report.task == task.name);
    report.map_or("-".to_owned(), |report| {
        format!("{}/{}", report.correct, report.attempts)
    })
}

/// A share in whole per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// A duration for people: `40 s`, `12 min`, `3 h 20 min`.
pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        ..100 => format!("{} s", seconds.max(1)),
        100..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Returns the table: figures of the arms, then the tasks by kind.
pub(super) fn table(report: &Report, tasks: &[Task]) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let row = |name: String, cell: &dyn Fn(&ArmReport) -> String| {
        let cells = report.arms.iter().map(cell);
        std::iter::once(name).chain(cells).collect::<Vec<_>>()
    };
    rows.push(row(String::new(), &|arm| arm.arm.clone()));
    for (name, figure) in FIGURES {
        rows.push(row(name.to_owned(), &|arm| cell(arm, figure)));
    }
    let mut kind = "";
    for task in tasks {
        let is_tried = |arm: &ArmReport| arm.tasks.iter().any(|report| report.task == task.name);
        if !report.arms.iter().any(is_tried) {
            continue;
        }
        if task.kind != kind {
            kind = &task.kind;
            rows.push(Vec::new());
            rows.push(vec![kind.to_owned()]);
        }
        rows.push(row(format!("  {}", task.name), &|arm| task_cell(arm, task)));
    }
    let mut text = aligned(&rows);
    for arm in &report.arms {
        if let Some(reason) = &arm.unavailable {
            let _ = writeln!(text, "\n{} could not be tried: {reason}", arm.arm);
        }
        if let Some(level) = arm.stopped {
            let _ = writeln!(
                text,
                "\n{} stopped in level {level}: it was certainly worse than the best arm",
                arm.arm
            );
        }
        if arm.server_failures > 0 {
            let _ = writeln!(
                text,
                "\n{}: {} attempts do not count because the server failed",
                arm.arm, arm.server_failures
            );
        }
    }
    text
}

/// Returns the tasks by kind.
pub(super) fn task_list(tasks: &[Task]) -> String {
    let mut text = String::new();
    let width = tasks.iter().map(|task| task.name.len()).max().unwrap_or(0);
    let mut kind = "";
    for task in tasks {
        if task.kind != kind {
            let gap = if kind.is_empty() { "" } else { "\n" };
            kind = &task.kind;
            let _ = writeln!(text, "{gap}{kind}, level {}", task.level);
        }
        let _ = writeln!(text, "  {:width$}  {}", task.name, task.about);
    }
    text
}

/// Rows in columns: the first to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter(|row| row.len() == count);
        let widths = cells.filter_map(|row| row.get(column).map(String::len));
        widths.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:width$}"),
            _ => format!("  {cell:>width$}"),
        });
        let _ = writeln!(text, "{}", cells.collect::<String>().trim_end());
    }
    text
}
