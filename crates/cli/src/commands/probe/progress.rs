//! How far a probe is, on the standard error: on a terminal one line that changes, elsewhere a line for each trial.

use std::io::{self, IsTerminal as _, Write as _};

use plaincall_agent::probe::Trial;

use crate::environment::Environment;
use crate::options::Color;
use crate::visible::harmless;

pub(super) struct Progress {
    total: usize,
    done: usize,
    /// How often each style was right, of how many.
    styles: Vec<(&'static str, u32, u32)>,
    is_live: bool,
}

impl Progress {
    pub(super) fn new(total: usize, color: Color, environment: &Environment) -> Self {
        let progress = Self {
            total,
            done: 0,
            styles: Vec::new(),
            is_live: io::stderr().is_terminal()
                && environment.has_capable_terminal()
                && environment.get("NO_COLOR").is_none()
                && color != Color::Never,
        };
        progress.line("");
        progress
    }

    /// A trial has ended.
    pub(super) fn tell(&mut self, trial: &Trial) {
        self.done += 1;
        let found = self
            .styles
            .iter()
            .position(|(name, ..)| *name == trial.style);
        let index = found.unwrap_or(self.styles.len());
        if found.is_none() {
            self.styles.push((trial.style, 0, 0));
        }
        if let Some((_, right, all)) = self.styles.get_mut(index) {
            *right += u32::from(trial.is_right);
            *all += 1;
        }
        if self.is_live {
            let styles = self
                .styles
                .iter()
                .map(|(name, right, all)| format!("  {name} {right}/{all}"));
            self.line(&styles.collect::<String>());
            return;
        }
        let outcome = match &trial.why {
            None if trial.repairs > 0 => "right, repaired".to_owned(),
            None => "right".to_owned(),
            Some(why) => format!("wrong: {}", harmless(why)),
        };
        // Nobody is left to tell if standard error is closed.
        let _ = writeln!(
            io::stderr(),
            "{}/{} {} {}: {outcome}",
            self.done,
            self.total,
            trial.style,
            trial.task
        );
    }

    /// Writes the line that changes; it is cut at the width of narrow terminals by the terminal itself.
    fn line(&self, behind: &str) {
        if self.is_live {
            let (done, total) = (self.done, self.total);
            let _ = write!(
                io::stderr(),
                "\r\x1b[?7l{done}/{total}{behind}\x1b[K\x1b[?7h"
            );
            let _ = io::stderr().flush();
        }
    }

    /// Takes the line away.
    pub(super) fn end(&self) {
        if self.is_live {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
