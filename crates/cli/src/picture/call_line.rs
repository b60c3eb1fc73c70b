//! One line that says where a call stands.

use std::time::Duration;

use plaincall::{CallResult, Status};

use crate::picture::board::{Board, Call, State};
use crate::picture::glyphs::Glyphs;
use crate::picture::line::Line;
use crate::picture::palette::{self, ASKING, BOLD, CALL, DIM, PLAIN, RUNNING};
use crate::picture::words;

/// The widths of the columns before the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    id: usize,
    name: usize,
    width: usize,
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
            width,
        }
    }

    /// The column where the state begins.
    pub(crate) fn state(self) -> usize {
        let name = if self.name == 0 { 0 } else { self.name + 2 };
        2 + self.id + 2 + name
    }

    /// The beginning of a call's line: mark, id and name.
    pub(crate) fn begin(self, mark: (anstyle::Style, &str), call: &Call, glyphs: &Glyphs) -> Line {
        let mut line = Line::of(mark.0, mark.1);
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

/// The line of a call at a moment.
pub(crate) fn call_line(
    board: &Board,
    call: &Call,
    now: Duration,
    columns: Columns,
    glyphs: &Glyphs,
) -> Line {
    let (mark, style) = match &call.state {
        State::Writing => (glyphs.writing, DIM),
        State::Waiting | State::Ready | State::Resting => (glyphs.waiting, DIM),
        State::Asking | State::AskingFate => (glyphs.asking, ASKING),
        State::Running(_) => (glyphs.running(now.as_millis()), RUNNING),
        State::Ended(result) => (glyphs.status(result.status), palette::status(result.status)),
    };
    let mut line = columns.begin((style, mark), call, glyphs);
    match &call.state {
        State::Writing => line.push(DIM, "writing"),
        State::Waiting => {
            let open: Vec<&str> = board.open_dependencies(call).collect();
            if open.is_empty() {
                line.push(DIM, "waits for its turn");
            } else {
                line.push(DIM, "waits for ");
                line.push(PLAIN, &open.join(", "));
            }
        }
        State::Ready => line.push(DIM, "waits for its turn"),
        State::Asking => line.push(ASKING, "may it run?"),
        State::AskingFate => line.push(ASKING, "what became of it?"),
        State::Resting => line.push(DIM, "failed; waits to be tried again"),
        State::Running(since) => {
            line.push(
                RUNNING,
                &format!("running {}", words::time(now.saturating_sub(*since))),
            );
        }
        State::Ended(result) => {
            line.append(&ending(result));
            if let Some(because) = &result.because {
                line.push(DIM, " because of ");
                line.push(PLAIN, &because.root.id);
            }
        }
    }
    line.cut(columns.width, glyphs.cut)
}

/// How a call ended, in a few words: `ok 1.2 s`, `failed after 0.3 s`, `skipped`.
pub(crate) fn ending(result: &CallResult) -> Line {
    let style = palette::status(result.status);
    let mut line = Line::of(style, verb(result));
    let started = result.times.started;
    // How long a call ran that was cut off is not known.
    let started = started.filter(|_| result.status != Status::Unknown);
    if let Some(time) = started.map(|started| result.times.ended.saturating_sub(started)) {
        let after = if result.status == Status::Ok {
            ""
        } else {
            "after "
        };
        line.push(DIM, &format!(" {after}{}", words::time(time)));
    }
    line
}

/// The word for how a call ended.
pub(crate) fn verb(result: &CallResult) -> &'static str {
    match result.status {
        Status::Ok => "ok",
        Status::Error => "failed",
        Status::Skipped => "skipped",
        Status::Rejected => "rejected",
        Status::Cancelled => "cancelled",
        Status::Unknown => "unknown",
    }
}
