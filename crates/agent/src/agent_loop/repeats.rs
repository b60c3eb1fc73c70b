//! Calls that the model repeats in vain.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plaincall::Status;

use crate::agent_loop::turned::Turned;

/// Failed calls: the number of turns, by tool and by the text after the header.
#[derive(Debug, Default)]
pub(super) struct Failures(HashMap<(Arc<str>, String), u32>);

pub(super) enum Repeated {
    /// The next failure ends the agent run.
    Warn(Arc<str>),
    /// The agent run ends.
    End(Arc<str>),
}

/// The calls and results of the last turn: tool, text after the header and output of each, and the number of equal turns in a row.
#[derive(Debug, Default)]
pub(super) struct SameResults {
    last: Vec<(Arc<str>, String, Option<Arc<str>>)>,
    count: u32,
}

/// After how many equal turns the model gets a message.
const EQUAL_TURNS: u32 = 3;

impl SameResults {
    /// Counts a turn whose calls all ended `ok`.
    pub(super) fn count(&mut self, turned: &Turned, most: u32) -> Option<Repeated> {
        let results = || turned.results.iter();
        let now = results().map(|result| {
            let name = Arc::clone(&result.name);
            (name, values(turned, result.call), result.output.clone())
        });
        let now: Vec<_> = now.collect();
        let is_same = now == self.last && results().all(|result| result.status == Status::Ok);
        self.count = if is_same { self.count + 1 } else { 1 };
        self.last = now;
        let name = Arc::clone(&self.last.first()?.0);
        match self.count {
            count if most > 0 && count >= most => Some(Repeated::End(name)),
            EQUAL_TURNS => Some(Repeated::Warn(name)),
            _ => None,
        }
    }
}

/// Returns the text of a call after its header.
fn values(turned: &Turned, call: u32) -> String {
    let written = turned.call(call);
    let values = written.map(|call| [call.raw_args.as_deref().unwrap_or_default(), call.raw()]);
    values.unwrap_or_default().join("]")
}

impl Failures {
    /// Counts each failed call of a turn once.
    pub(super) fn count(&mut self, turned: &Turned, most: u32) -> Option<Repeated> {
        let mut counted = HashSet::new();
        let mut warned = None;
        for result in &turned.results {
            if !matches!(result.status, Status::Error | Status::Rejected) {
                continue;
            }
            let key = (Arc::clone(&result.name), values(turned, result.call));
            if !counted.insert(key.clone()) {
                continue;
            }
            let count = self.0.entry(key).or_default();
            *count += 1;
            if most > 0 && *count >= most {
                return Some(Repeated::End(Arc::clone(&result.name)));
            }
            if *count > 1 && *count + 1 == most {
                warned = Some(Repeated::Warn(Arc::clone(&result.name)));
            }
        }
        warned
    }
}
