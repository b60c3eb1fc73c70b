//! The line of a call and its state.

use std::time::Duration;

use anstyle::Style;
use plaincall::{CallResult, Status};
use plaincall_report::call_table::{Call, CallTable, State};

use crate::terminal::glyphs::Glyphs;
use crate::terminal::human;
use crate::terminal::line::{Line, indented};
use crate::terminal::palette::{self, BOLD, CALL, DIM, NOTICE, PLAIN, RUNNING};

/// The maximum length of an argument, in characters.
const MAX_ARGUMENT: usize = 60;
/// The maximum width of a line without a terminal width.
const MAX_WIDTH: usize = 300;
/// The maximum number of output lines shown for a result.
const MAX_LINES: usize = 20;

/// Returns the line of a call that has not ended. `now` is the time since the beginning of the run.
pub(crate) fn open_line(
    table: &CallTable,
    call: &Call,
    now: Duration,
    width: usize,
    glyphs: &Glyphs,
) -> Line {
    let (style, mark, state) = match call.state {
        State::Running(since) => {
            let time = human::time(now.saturating_sub(since));
            let mark = glyphs.running(now.as_millis());
            (RUNNING, mark, format!("running {time}"))
        }
        State::Writing => (DIM, glyphs.writing, "writing".to_owned()),
        State::BackingOff => {
            let state = "failed; waiting for a retry".to_owned();
            (DIM, glyphs.waiting, state)
        }
        _ => {
            let open: Vec<&str> = match call.state {
                State::Waiting => table.open_dependencies(call).collect(),
                _ => Vec::new(),
            };
            let state = if open.is_empty() {
                "waiting for its turn".to_owned()
            } else {
                format!("waiting for {}", open.join(", "))
            };
            (DIM, glyphs.waiting, state)
        }
    };
    let state = Line::of(style, &state);
    // It is below the calls above it.
    call_line((style, mark), ("", call), &state, Some(width), glyphs)
}

/// Returns the line of a call that has ended and, if it failed, the error below it.
pub(crate) fn ended_lines(
    call: &Call,
    result: &CallResult,
    width: Option<usize>,
    glyphs: &Glyphs,
) -> Vec<Line> {
    let style = palette::status(result.status);
    let mark = (style, glyphs.status(result.status));
    let mut lines = vec![call_line(
        mark,
        (&call.path, call),
        &outcome(result),
        width,
        glyphs,
    )];
    let error = result.error.as_deref();
    if let Some(error) = error.filter(|_| result.status != Status::Ok) {
        let mut rows = error.trim().lines();
        let first = rows.next().unwrap_or_default();
        let style = match result.status {
            Status::Error | Status::Rejected => PLAIN,
            _ => DIM,
        };
        let mut line = Line::of(style, first);
        if first.ends_with(':') {
            line.push(PLAIN, " ");
            line.push(PLAIN, rows.next().unwrap_or_default().trim());
        }
        if rows.next().is_some() {
            line.push(PLAIN, glyphs.ellipsis);
        }
        let line = line.truncate(MAX_WIDTH - 2, glyphs.ellipsis);
        for row in line.wrap(width.map_or(MAX_WIDTH, |width| width.saturating_sub(2))) {
            let mut below = Line::of(PLAIN, "  ");
            below.append(&row);
            lines.push(below);
        }
    }
    lines
}

/// Returns whether an error has more lines than [`ended_lines`] shows.
pub(crate) fn has_long_error(result: &CallResult) -> bool {
    let mut rows = result.error.as_deref().unwrap_or_default().trim().lines();
    let first = rows.next().unwrap_or_default();
    rows.count() > usize::from(first.ends_with(':'))
}

/// Returns the first lines of a tool's output, or of its error.
pub(crate) fn output_lines(
    result: &CallResult,
    width: Option<usize>,
    glyphs: &Glyphs,
) -> Vec<Line> {
    let mut lines = Vec::new();
    let error = result.error.as_ref().filter(|_| has_long_error(result));
    for text in result.output.iter().chain(error) {
        let mut rows = text.trim_end().lines();
        for row in rows.by_ref().take(MAX_LINES) {
            lines.push(indented(DIM, row).truncate(width.unwrap_or(MAX_WIDTH), glyphs.ellipsis));
        }
        let more = rows.count();
        if more > 0 {
            let more = format!("({})", human::count(more, "more line"));
            lines.push(indented(NOTICE, &more));
        }
    }
    lines
}

/// Returns the line of a call that starts, for displays that do not draw in place.
pub(crate) fn started_line(call: &Call, is_again: bool, glyphs: &Glyphs) -> Line {
    let state = if is_again { "started again" } else { "started" };
    let mark = (RUNNING, glyphs.call);
    let call = (&*call.path, call);
    call_line(mark, call, &Line::of(DIM, state), None, glyphs)
}

/// Formats a call: mark, path, id (if the model set one), tool, arguments and state. Arguments are truncated so that the
/// state fits.
fn call_line(
    (style, mark): (Style, &str),
    (path, call): (&str, &Call),
    state: &Line,
    width: Option<usize>,
    glyphs: &Glyphs,
) -> Line {
    let mut line = Line::of(style, &format!("{}{mark} ", "  ".repeat(call.depth)));
    line.push(DIM, path);
    match call.own_id() {
        None => line.push(BOLD, &call.name),
        Some(id) => {
            line.push(BOLD, id);
            line.push(CALL, &format!("  {}", call.name));
        }
    }
    let shown = arguments(call, glyphs);
    let room_for_arguments = match width {
        None => MAX_WIDTH,
        Some(width) => {
            let room = width.saturating_sub(state.width() + 2);
            line = line.truncate(room, glyphs.ellipsis);
            room.saturating_sub(line.width() + 2)
        }
    };
    // A few columns are not useful.
    if !shown.is_empty() && room_for_arguments >= 6 {
        line.push(PLAIN, "  ");
        line.append(&shown.truncate(room_for_arguments, glyphs.ellipsis));
    }
    line.push(PLAIN, "  ");
    line.append(state);
    match width {
        Some(width) => line.truncate(width, glyphs.ellipsis),
        None => line,
    }
}

/// Formats the arguments on one line: `path=src/main.rs, text=one two…`.
fn arguments(call: &Call, glyphs: &Glyphs) -> Line {
    let mut line = Line::new();
    for (index, (name, value)) in call.arguments.iter().enumerate() {
        if index > 0 {
            line.push(DIM, ", ");
        }
        if let Some(name) = name {
            line.push(DIM, &format!("{name}="));
        }
        let mut shown: String = value.trim().chars().take(MAX_ARGUMENT).collect();
        if value.trim().chars().count() > MAX_ARGUMENT {
            shown.push_str(glyphs.ellipsis);
        }
        // A line end with the whitespace around it becomes one blank.
        let parts: Vec<&str> = shown.split_whitespace().collect();
        line.push(PLAIN, &parts.join(" "));
    }
    line
}

/// Formats the outcome of a call: `ok 1.2 s`, `failed after 0.3 s`, `skipped`.
pub(crate) fn outcome(result: &CallResult) -> Line {
    let style = palette::status(result.status);
    let mut line = Line::of(style, status_word(result.status));
    // The running time of an interrupted call is unknown.
    let started = result
        .times
        .started
        .filter(|_| result.status != Status::Unknown);
    if let Some(started) = started {
        let after = match result.status {
            Status::Ok => "",
            _ => "after ",
        };
        let time = human::time(result.times.ended.saturating_sub(started));
        line.push(DIM, &format!(" {after}{time}"));
    }
    line
}

pub(crate) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Error => "failed",
        status => status.name(),
    }
}
