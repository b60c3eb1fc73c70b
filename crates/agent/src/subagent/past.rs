//! Continues the conversation of a subagent after a crash (`spec/agent.md` 8).
//!
//! The subagent starts again. Its model first gives the replies in the log, and its calls get the results that they had.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use plaincall::events::{SubagentText, SubmittedArguments, Usage};
use plaincall::{RunEvent, Stop, Submitted};

/// The conversation of a subagent in the log.
#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) replies: VecDeque<PastReply>,
    calls: Vec<PastCall>,
}

#[derive(Debug, Default)]
pub(super) struct PastReply {
    pub(super) text: String,
    pub(super) stop: Option<Stop>,
    pub(super) usage: Option<Usage>,
    has_calls: bool,
}

#[derive(Debug)]
struct PastCall {
    call: u32,
    name: Arc<str>,
    arguments: Arc<SubmittedArguments>,
    submitted: Option<Submitted>,
}

impl Past {
    /// Reads the conversations of these calls.
    pub(super) fn read(events: &[RunEvent], calls: &[u32]) -> HashMap<u32, Self> {
        let pasts = calls.iter().map(|call| (*call, Self::default()));
        let mut pasts: HashMap<u32, Self> = pasts.collect();
        for event in events {
            match event {
                RunEvent::SubagentText(part) => {
                    if let Some(past) = pasts.get_mut(&part.call) {
                        past.write(part);
                    }
                }
                RunEvent::Start(start) => {
                    if let Some(past) = pasts.get_mut(&start.call) {
                        past.interrupt();
                    }
                }
                RunEvent::Call(call) => {
                    let past = call.parent.and_then(|parent| pasts.get_mut(&parent));
                    if let (Some(past), Some(arguments)) = (past, &call.submitted) {
                        past.calls.push(PastCall {
                            call: call.call,
                            name: Arc::clone(&call.name),
                            arguments: Arc::clone(arguments),
                            submitted: None,
                        });
                        if let Some(reply) = past.replies.back_mut() {
                            reply.has_calls = true;
                        }
                    }
                }
                _ => {}
            }
        }
        for past in pasts.values_mut() {
            past.interrupt();
        }
        pasts
    }

    fn write(&mut self, part: &SubagentText) {
        if self.replies.back().is_none_or(|last| last.stop.is_some()) {
            self.replies.push_back(PastReply::default());
        }
        if let Some(reply) = self.replies.back_mut() {
            reply.text.push_str(&part.text);
            reply.stop = part.stop;
            reply.usage = part.usage;
        }
    }

    /// Ends an interrupted reply, or drops it if none of its calls was submitted: then the model can be asked again.
    fn interrupt(&mut self) {
        let is_broken = |reply: &PastReply| reply.stop.is_none_or(|stop| stop == Stop::Broken);
        let Some(reply) = self.replies.back_mut().filter(|reply| is_broken(reply)) else {
            return;
        };
        if reply.has_calls {
            reply.stop = Some(Stop::Broken);
        } else {
            self.replies.pop_back();
        }
    }

    /// Returns the calls that were submitted.
    pub(super) fn calls(&self) -> impl Iterator<Item = u32> {
        self.calls.iter().map(|call| call.call)
    }

    /// Returns the names of the tools that were called.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|call| &*call.name)
    }

    /// Adds what is left of the calls in the resumed run.
    pub(super) fn attach(&mut self, submitted: &mut HashMap<u32, Submitted>) {
        for call in &mut self.calls {
            call.submitted = submitted.remove(&call.call);
        }
    }

    /// Takes the first call with this name and these arguments. Calls that are equal run in the same order again, unless their
    /// order does not matter.
    pub(super) fn take(&mut self, name: &str, arguments: &SubmittedArguments) -> Option<Submitted> {
        let is_same = |call: &PastCall| *call.name == *name && *call.arguments == *arguments;
        let place = self.calls.iter().position(is_same)?;
        self.calls.remove(place).submitted
    }
}
