//! The record of a run: the lines of a log.

use plaincall::{LineEncoder, RunEvent};

use crate::run::news::{Display, News};

/// Writes every event of the run as it happens, in the form of a log. If there is a log and it fails, the line that
/// says so is the last: what comes after it is not in the log.
#[derive(Debug, Default)]
pub(crate) struct Record {
    lines: LineEncoder,
    has_failed: bool,
}

impl Display for Record {
    fn take(&mut self, news: News, out: &mut String) {
        if let News::Event(event) = news
            && !self.has_failed
        {
            self.has_failed = matches!(event, RunEvent::LogFailed(_));
            out.push_str(&self.lines.next_line(&event));
        }
    }

    fn abandon(&mut self, _: &mut String) {}
}
