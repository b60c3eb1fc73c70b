//! The signs of the display, for terminals that can show them and for those that cannot.

use plaincall::Status;

/// A set of signs; each takes one column.
#[derive(Debug)]
pub(crate) struct Glyphs {
    pub(crate) call: &'static str,
    pub(crate) writing: &'static str,
    pub(crate) waiting: &'static str,
    pub(crate) running: &'static [&'static str],
    pub(crate) ok: &'static str,
    pub(crate) error: &'static str,
    pub(crate) skipped: &'static str,
    pub(crate) rejected: &'static str,
    pub(crate) cancelled: &'static str,
    pub(crate) unknown: &'static str,
    /// The sign for truncated text.
    pub(crate) cut: &'static str,
    /// Between an id and what it depends on.
    pub(crate) needs: &'static str,
    /// Between parts of a sentence.
    pub(crate) dot: &'static str,
    pub(crate) bars: Bars,
}

#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) writing: char,
    pub(crate) waiting: char,
    pub(crate) running: char,
    /// Running, on the path that decided how long it all took.
    pub(crate) critical: char,
    pub(crate) reply_end: char,
    pub(crate) axis: char,
    pub(crate) tick: char,
}

static UNICODE: Glyphs = Glyphs {
    call: "▸",
    writing: "…",
    waiting: "○",
    running: &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"],
    ok: "✓",
    error: "✗",
    skipped: "↷",
    rejected: "⊘",
    cancelled: "■",
    unknown: "?",
    cut: "…",
    needs: "←",
    dot: "·",
    bars: Bars {
        writing: '·',
        waiting: '╌',
        running: '▒',
        critical: '█',
        reply_end: '│',
        axis: '─',
        tick: '┬',
    },
};

static ASCII: Glyphs = Glyphs {
    call: ">",
    writing: "~",
    waiting: ".",
    running: &["|", "/", "-", "\\"],
    ok: "+",
    error: "x",
    skipped: "-",
    rejected: "!",
    cancelled: "#",
    unknown: "?",
    cut: "~",
    needs: "<-",
    dot: "-",
    bars: Bars {
        writing: '.',
        waiting: ':',
        running: '=',
        critical: '#',
        reply_end: '|',
        axis: '-',
        tick: '+',
    },
};

impl Glyphs {
    /// The signs for a terminal that shows more than ASCII, or for one that may not.
    pub(crate) fn new(is_unicode: bool) -> &'static Self {
        if is_unicode { &UNICODE } else { &ASCII }
    }

    /// The sign of a call that has ended.
    pub(crate) fn status(&self, status: Status) -> &'static str {
        match status {
            Status::Ok => self.ok,
            Status::Error => self.error,
            Status::Skipped => self.skipped,
            Status::Rejected => self.rejected,
            Status::Cancelled => self.cancelled,
            Status::Unknown => self.unknown,
        }
    }

    /// The sign of a running call at a moment, in milliseconds.
    pub(crate) fn running(&self, at: u128) -> &'static str {
        let frames = self.running.iter().cycle();
        let frame = usize::try_from(at / 100 % 100).unwrap_or(0);
        frames.copied().nth(frame).unwrap_or(".")
    }
}
