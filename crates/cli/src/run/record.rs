//! The record of a run: the lines of a log.

use plaincall::{LineEncoder, RunEvent};

use crate::run::news::{Display, News};

/// Writes every event of the run as it happens, in the form of a log.
#[derive(Debug, Default)]
pub(crate) struct Record {
    lines: LineEncoder,
}

impl Display for Record {
    fn take(&mut self, news: News, out: &mut String) {
        // A log that cannot be written any more says so in the exit status and on the standard error; no log has it.
        if let News::Event(event) = news
            && !matches!(event, RunEvent::LogFailed(_))
        {
            out.push_str(&self.lines.next_line(&event));
        }
    }

    fn abandon(&mut self, _: &mut String) {}
}
