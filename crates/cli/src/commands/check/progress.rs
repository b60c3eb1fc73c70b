//! How far `check --every-split` is: a line that changes, on a terminal, once it takes long.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::environment::Environment;
use crate::options::Color;

/// What takes less says nothing.
const QUIET: Duration = Duration::from_millis(500);
/// How often the line changes.
const EVERY: Duration = Duration::from_millis(100);

pub(super) struct Progress {
    is_live: bool,
    total: usize,
    done: usize,
    /// When the line changes next.
    next: Instant,
    is_shown: bool,
}

impl Progress {
    pub(super) fn new(color: Color, environment: &Environment) -> Self {
        Self {
            is_live: io::stderr().is_terminal()
                && environment.has_capable_terminal()
                && environment.get("NO_COLOR").is_none()
                && color != Color::Never,
            total: 0,
            done: 0,
            next: Instant::now(),
            is_shown: false,
        }
    }

    /// So many ways are to be tried.
    pub(super) fn begin(&mut self, total: usize) {
        self.total = total;
        self.done = 0;
        self.next = Instant::now() + QUIET;
    }

    /// One more has been tried.
    pub(super) fn step(&mut self) {
        self.done += 1;
        if !self.is_live {
            return;
        }
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        self.is_shown = true;
        let (done, total) = (self.done, self.total);
        // Nobody is left to tell if standard error is closed.
        let _ = write!(
            io::stderr(),
            "\r\x1b[?7l{done} of {total} ways tried, all the same\x1b[K\x1b[?7h"
        );
        let _ = io::stderr().flush();
    }

    /// Takes the line away.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
