//! A conversation, put together from what happened in its run: from a log, or where nobody waited for the end of a turn.

use plaincall::syntax::DialectError;
use plaincall::{CallResult, RunEvent};

use crate::history::History;

/// Follows the events of a run and adds the turns to the history that nobody else has added.
#[derive(Debug, Default)]
pub(crate) struct Recounting {
    /// The turn to which events belong now, if one was opened.
    present: Option<u32>,
    /// How many turns are in the history.
    told: u32,
    written: Vec<u8>,
    results: Vec<CallResult>,
    /// Whether events are lost, so that results may be missing.
    has_gaps: bool,
    limit: usize,
    can_read_on: bool,
}

impl Recounting {
    /// `limit` and `can_read_on` as in [`CallResult::for_model`].
    pub(crate) fn new(limit: usize, can_read_on: bool) -> Self {
        Self {
            limit,
            can_read_on,
            ..Self::default()
        }
    }

    /// How many turns are in the history.
    pub(crate) fn told(&self) -> u32 {
        self.told
    }

    /// Takes the next event.
    pub(crate) fn take(
        &mut self,
        event: &RunEvent,
        history: &mut History,
    ) -> Result<(), DialectError> {
        if let RunEvent::Turn(turn) = event {
            self.present = Some(turn.turn);
            self.written.clear();
            self.results.clear();
            self.has_gaps = false;
        }
        if self.present.is_none_or(|turn| turn < self.told) {
            return Ok(());
        }
        match event {
            RunEvent::Text(delta) => self.written.extend_from_slice(delta.source.as_bytes()),
            RunEvent::Result(result) => {
                let result = result.for_model(self.limit, self.can_read_on);
                self.results.push(result);
            }
            RunEvent::Missed(_) => self.has_gaps = true,
            RunEvent::End(_) => {
                let mut results = std::mem::take(&mut self.results);
                results.sort_by_key(|result| result.call);
                let written = std::mem::take(&mut self.written);
                let written = String::from_utf8_lossy(&written).into_owned();
                self.add(written, results, history)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the next turn, with this reply and these results.
    pub(crate) fn add(
        &mut self,
        written: String,
        results: Vec<CallResult>,
        history: &mut History,
    ) -> Result<(), DialectError> {
        self.told += 1;
        history.reply(written);
        history.results(results)?;
        if std::mem::take(&mut self.has_gaps) {
            history.tell("What became of some of these calls is not known.\n".into());
        }
        Ok(())
    }

    /// What has been read of the present turn.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }
}
