//! The table of results.

use std::fmt::Write as _;

use plaincall_agent::probe::{ProbeReport, StyleReport};

/// Formats the table: a row per task, a column per dialect, and the totals.
pub(super) fn table(report: &ProbeReport) -> String {
    let tasks = report.styles.first().map(|style| style.tasks.as_slice());
    let mut rows: Vec<Vec<String>> = Vec::new();
    let row = |name: &str, cell: &dyn Fn(&StyleReport) -> String| {
        let cells = report.styles.iter().map(cell);
        std::iter::once(name.to_owned()).chain(cells).collect()
    };
    rows.push(row("", &|style| style.style.name.to_owned()));
    for (index, task) in tasks.unwrap_or_default().iter().enumerate() {
        rows.push(row(task.task, &|style| {
            let task = style.tasks.get(index);
            task.map_or(String::new(), |task| fraction(task.right, task.trials))
        }));
    }
    let totals_row = rows.len();
    rows.push(row("right", &|style| fraction(style.right, style.trials)));
    rows.push(row("repaired", &|style| style.repaired.to_string()));
    rows.push(row("calls", &|style| style.calls.to_string()));
    rows.push(row("well formed", &|style| style.well_formed.to_string()));
    rows.push(row("tokens per task", &|style| {
        let tokens = style.usage.total() / u64::from(style.trials.max(1));
        let prefix = if style.is_usage_estimated { "~" } else { "" };
        format!("{prefix}{tokens}")
    }));
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(String::len).max().unwrap_or_default()
    };
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells = row.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("{cell:width$}", width = width(0)),
            _ => format!("  {cell:>width$}", width = width(column)),
        });
        let gap = if index == totals_row { "\n" } else { "" };
        let _ = writeln!(text, "{gap}{}", cells.collect::<String>().trim_end());
    }
    text
}

fn fraction(part: u32, of: u32) -> String {
    if of == 0 {
        return "-".to_owned();
    }
    format!("{part}/{of}")
}
