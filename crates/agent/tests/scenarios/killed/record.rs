//! What a log has recorded of a conversation with subagents.

use std::collections::BTreeMap;

use plaincall_agent::plaincall::{RunEvent, Stop};

use super::program::{MAIN, WRITES, is_agent};

/// The calls and replies in a log.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) calls: BTreeMap<u32, Recorded>,
    /// The replies to each task.
    replies: BTreeMap<String, Vec<Written>>,
    /// Whether the last turn has a whole reply without calls.
    pub(super) has_answered: bool,
    has_calls: bool,
}

/// A call.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) name: String,
    pub(super) tag: String,
    /// The task of the agent that made it.
    pub(super) task: String,
    has_started: bool,
    /// Its status, output and error.
    pub(super) result: Option<String>,
}

/// A reply.
#[derive(Debug, Default)]
struct Written {
    stop: Option<Stop>,
    /// Whether something came of it, so that it is not requested again if it is interrupted.
    is_kept: bool,
    is_over: bool,
}

impl Written {
    /// Returns whether it is requested again after a crash.
    fn is_dropped(&self) -> bool {
        !self.is_kept && self.stop.is_none_or(|stop| stop == Stop::Broken)
    }
}

impl Record {
    /// Reads the events of a log.
    pub(super) fn read(events: &[RunEvent]) -> Self {
        let mut record = Self::default();
        for event in events {
            record.take(event);
        }
        record
    }

    fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Turn(_) => {
                (self.has_answered, self.has_calls) = (false, false);
                self.interrupt(MAIN);
                self.of(MAIN).push(Written::default());
            }
            RunEvent::Text(_) => self.of(MAIN).last_mut().unwrap().is_kept = true,
            RunEvent::ReplyEnd(end) => {
                self.has_answered = !self.has_calls && end.stop == Stop::Natural;
                self.of(MAIN).last_mut().unwrap().stop = Some(end.stop);
            }
            RunEvent::Call(call) => {
                self.has_calls = true;
                let parent = call.parent.map(|parent| self.calls[&parent].tag.clone());
                let task = parent.unwrap_or_else(|| MAIN.to_owned());
                let reply = self.of(&task).last_mut();
                reply.expect("a call before its reply").is_kept = true;
                let recorded = Recorded {
                    name: call.name.to_string(),
                    task,
                    ..Recorded::default()
                };
                let known = self.calls.insert(call.call, recorded);
                assert!(known.is_none(), "call {} appears again", call.call);
            }
            RunEvent::Waiting(call) => {
                let (_, tag) = &call.arguments.0[0];
                self.calls.get_mut(&call.call).unwrap().tag.clone_from(tag);
            }
            RunEvent::Start(start) => {
                let call = self.calls.get_mut(&start.call).unwrap();
                call.has_started = true;
                if is_agent(&call.name) {
                    let task = call.tag.clone();
                    self.interrupt(&task);
                }
            }
            RunEvent::SubagentText(part) => {
                let task = self.calls[&part.call].tag.clone();
                let replies = self.of(&task);
                if replies.last().is_none_or(|last| last.is_over) {
                    replies.push(Written::default());
                }
                let last = replies.last_mut().unwrap();
                last.stop = part.stop;
                last.is_over = part.stop.is_some();
            }
            RunEvent::Result(result) => {
                let call = self.calls.get_mut(&result.call).unwrap();
                assert_eq!(call.result, None, "call {} ends again", result.call);
                call.result = Some(format!(
                    "{}: {:?}, {:?}",
                    result.status, result.output, result.error
                ));
            }
            _ => {}
        }
    }

    fn of(&mut self, task: &str) -> &mut Vec<Written> {
        self.replies.entry(task.to_owned()).or_default()
    }

    /// Ends an interrupted reply, or drops it if nothing came of it.
    fn interrupt(&mut self, task: &str) {
        let replies = self.of(task);
        replies.pop_if(|last| last.is_dropped());
        if let Some(last) = replies.last_mut() {
            last.is_over = true;
        }
    }

    /// Returns the number of the first reply to a task that may be requested after a crash.
    pub(super) fn replies_to(&self, task: &str) -> usize {
        let replies = self.replies.get(task).map_or(&[][..], |all| all);
        replies.len() - usize::from(replies.last().is_some_and(Written::is_dropped))
    }

    /// Returns the calls that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = &Recorded> {
        self.calls.values().filter(|call| call.result.is_none())
    }

    /// Returns whether a subagent was working.
    pub(super) fn is_within(&self) -> bool {
        self.open()
            .any(|call| is_agent(&call.name) && call.has_started)
    }

    /// Returns the tasks whose conversation may continue differently after a crash: a part of a reply is lost, or the outcome of
    /// a call.
    pub(super) fn disturbed(&self) -> Vec<String> {
        let cut = self.replies.iter().filter_map(|(task, replies)| {
            let last = replies.last()?;
            (last.is_kept && last.stop.is_none()).then(|| task.clone())
        });
        let lost = self.open().filter(|call| {
            let continues = is_agent(&call.name) && call.has_started;
            let is_unknown = call.name == WRITES && call.has_started;
            is_unknown || call.task == MAIN && !continues
        });
        cut.chain(lost.map(|call| call.task.clone())).collect()
    }
}
