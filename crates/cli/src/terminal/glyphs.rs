//! The symbols of the display, in Unicode and ASCII.

use plaincall::Status;

/// A set of symbols, one column each.
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
    /// Marks truncated text.
    pub(crate) ellipsis: &'static str,
    /// Separates an id from its dependencies.
    pub(crate) needs: &'static str,
    /// Separates the parts of a sentence.
    pub(crate) dot: &'static str,
    pub(crate) bars: Bars,
}

/// The symbols of a timeline.
#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) writing: char,
    pub(crate) waiting: char,
    pub(crate) running: char,
    /// Running, on the critical path.
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
    ellipsis: "…",
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
    ellipsis: "~",
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
    /// Returns the Unicode or ASCII symbols.
    pub(crate) fn new(is_unicode: bool) -> &'static Self {
        if is_unicode { &UNICODE } else { &ASCII }
    }

    /// Returns the symbol of a status.
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

    /// Returns the symbol of a running call at a time in milliseconds.
    pub(crate) fn running(&self, at: u128) -> &'static str {
        let frames = self.running.iter().cycle();
        let frame = usize::try_from(at / 100 % 100).unwrap_or(0);
        frames.copied().nth(frame).unwrap_or(".")
    }
}
