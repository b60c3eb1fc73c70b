//! What an answer took, in one line.

use std::time::Duration;

use plaincall_agent::Progress;

use crate::picture::glyphs::Glyphs;
use crate::picture::line::Line;
use crate::picture::palette::DIM;
use crate::picture::words::{self, count};

/// `2 turns · 3 calls (1 not ok) · 1204 tokens read, 56 written · 3.4 s`.
pub(crate) fn totals(progress: &Progress, time: Duration, glyphs: &Glyphs) -> Line {
    let calls = progress.calls.total() as usize;
    let not_ok = calls.saturating_sub(progress.calls.ok as usize);
    let mut parts = vec![count(progress.turns as usize, "turn")];
    parts.push(match not_ok {
        0 => count(calls, "call"),
        not_ok => format!("{} ({not_ok} not ok)", count(calls, "call")),
    });
    let usage = progress.usage;
    if usage.total() > 0 {
        let about = if progress.is_usage_estimated {
            "about "
        } else {
            ""
        };
        parts.push(format!(
            "{about}{} tokens read, {} written",
            usage.input, usage.output
        ));
    }
    parts.push(words::time(time));
    Line::of(DIM, &parts.join(&format!(" {} ", glyphs.dot)))
}
