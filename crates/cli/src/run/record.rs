//! The record of a run: one JSON object a line.

use plaincall::RunEvent;

use crate::run::news::{Display, News};

/// Writes every event of the run as it happens.
#[derive(Debug)]
pub(crate) struct Record;

impl Record {
    fn line(event: &RunEvent, out: &mut String) {
        // Events are made of texts and numbers, which JSON can always say.
        if let Ok(line) = serde_json::to_string(event) {
            out.push_str(&line);
            out.push('\n');
        }
    }
}

impl Display for Record {
    fn take(&mut self, news: News, out: &mut String) {
        if let News::Event(event) = news {
            Self::line(&event, out);
        }
    }

    fn abandon(&mut self, _: &mut String) {}
}
