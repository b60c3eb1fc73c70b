//! One line with a call and its state.

use std::time::Duration;

use anstyle::Style;
use plaincall::{CallResult, Status};

use crate::terminal::call_table::{Call, CallTable, State};
use crate::terminal::glyphs::Glyphs;
use crate::terminal::line::{Line, indented};
use crate::terminal::palette::{self, ASKING, BOLD, CALL, DIM, PLAIN, RUNNING};
use crate::terminal::words;

/// How much of one argument is shown, in characters.
const SHOWN: usize = 60;
/// How many columns a part of a line takes at most where lines are not broken.
const LONGEST: usize = 300;
/// How many lines of a result are shown where results are.
const LINES: usize = 20;

/// The line of a call that has not ended, at a moment counted from the beginning of the run.
pub(crate) fn open_line(
    table: &CallTable,
    call: &Call,
    now: Duration,
    width: usize,
    glyphs: &Glyphs,
) -> Line {
    let (style, mark, state) = match call.state {
        State::Running(since) => {
            let time = words::time(now.saturating_sub(since));
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
    whole((style, mark), call, &state, Some(width), glyphs)
}

/// A call that has ended, and below it why it failed.
pub(crate) fn ended_lines(
    call: &Call,
    result: &CallResult,
    width: Option<usize>,
    glyphs: &Glyphs,
) -> Vec<Line> {
    let style = palette::status(result.status);
    let mark = (style, glyphs.status(result.status));
    let mut lines = vec![whole(mark, call, &ending(result), width, glyphs)];
    let error = result.error.as_deref();
    if let Some(error) = error.filter(|_| result.status != Status::Ok) {
        let mut rows = error.trim().lines();
        let first = rows.next().unwrap_or_default();
        let style = match result.status {
            Status::Error | Status::Rejected => PLAIN,
            _ => DIM,
        };
        let mut line = Line::of(PLAIN, "  ");
        line.push(style, first);
        if first.ends_with(':') {
            line.push(PLAIN, " ");
            line.push(PLAIN, rows.next().unwrap_or_default().trim());
        }
        if rows.next().is_some() {
            line.push(PLAIN, glyphs.cut);
        }
        lines.push(line.cut(width.unwrap_or(LONGEST), glyphs.cut));
    }
    lines
}

/// The first lines of what a tool returned, or wrote before it failed.
pub(crate) fn output_lines(
    result: &CallResult,
    width: Option<usize>,
    glyphs: &Glyphs,
) -> Vec<Line> {
    let mut lines = Vec::new();
    // An error of one line was shown whole.
    let error = result.error.as_ref();
    let error = error.filter(|error| error.trim().lines().count() > 1);
    for text in result.output.iter().chain(error) {
        let mut rows = text.trim_end().lines();
        for row in rows.by_ref().take(LINES) {
            lines.push(indented(DIM, row).cut(width.unwrap_or(LONGEST), glyphs.cut));
        }
        let more = rows.count();
        if more > 0 {
            let more = format!("({})", words::count(more, "more line"));
            lines.push(indented(ASKING, &more));
        }
    }
    lines
}

/// A call that begins to run, for displays that draw nothing in place.
pub(crate) fn started_line(call: &Call, is_again: bool, glyphs: &Glyphs) -> Line {
    let state = if is_again { "started again" } else { "started" };
    let mark = (RUNNING, glyphs.call);
    whole(mark, call, &Line::of(DIM, state), None, glyphs)
}

/// The mark, the id if the model gave one, the tool, the arguments and the state; the arguments are cut so that the state is
/// seen.
fn whole(
    (style, mark): (Style, &str),
    call: &Call,
    state: &Line,
    width: Option<usize>,
    glyphs: &Glyphs,
) -> Line {
    let mut line = Line::of(style, &format!("{mark} "));
    let prefixes = ["gadget_", "call_"].into_iter();
    let mut numbers = prefixes.filter_map(|prefix| call.id.strip_prefix(prefix));
    let is_number = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit());
    let is_automatic = call.id.is_empty() || numbers.any(is_number);
    if is_automatic {
        line.push(BOLD, &call.name);
    } else {
        line.push(BOLD, &call.id);
        line.push(CALL, &format!("  {}", call.name));
    }
    let shown = arguments(call, glyphs);
    let left = match width {
        None => LONGEST,
        Some(width) => {
            let room = width.saturating_sub(state.width() + 2);
            line = line.cut(room, glyphs.cut);
            room.saturating_sub(line.width() + 2)
        }
    };
    // A few columns say nothing.
    if !shown.is_empty() && left >= 6 {
        line.push(PLAIN, "  ");
        line.append(&shown.cut(left, glyphs.cut));
    }
    line.push(PLAIN, "  ");
    line.append(state);
    match width {
        Some(width) => line.cut(width, glyphs.cut),
        None => line,
    }
}

/// The arguments in one line: `path=src/main.rs, text=one two…`.
fn arguments(call: &Call, glyphs: &Glyphs) -> Line {
    let mut line = Line::new();
    for (index, (name, value)) in call.arguments.iter().enumerate() {
        if index > 0 {
            line.push(DIM, ", ");
        }
        if let Some(name) = name {
            line.push(DIM, &format!("{name}="));
        }
        let mut shown: String = value.trim().chars().take(SHOWN).collect();
        if value.trim().chars().count() > SHOWN {
            shown.push_str(glyphs.cut);
        }
        // Line ends and the blanks around them are one blank.
        let words: Vec<&str> = shown.split_whitespace().collect();
        line.push(PLAIN, &words.join(" "));
    }
    line
}

/// How a call ended, in a few words: `ok 1.2 s`, `failed after 0.3 s`, `skipped`.
pub(crate) fn ending(result: &CallResult) -> Line {
    let style = palette::status(result.status);
    let mut line = Line::of(style, verb(result.status));
    // How long a call ran that was interrupted is not known.
    let started = result
        .times
        .started
        .filter(|_| result.status != Status::Unknown);
    if let Some(started) = started {
        let after = match result.status {
            Status::Ok => "",
            _ => "after ",
        };
        let time = words::time(result.times.ended.saturating_sub(started));
        line.push(DIM, &format!(" {after}{time}"));
    }
    line
}

/// The word for how a call ended.
pub(crate) fn verb(status: Status) -> &'static str {
    match status {
        Status::Error => "failed",
        status => status.as_str(),
    }
}
