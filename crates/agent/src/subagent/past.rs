//! Continues the conversation of a subagent after a crash (`spec/agent.md` 8).
//!
//! The subagent starts again. Its model first gives the replies in the log, and its calls get the results that they had.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use plaincall::events::{SubagentText, SubmittedArguments, Usage};
use plaincall::{RunEvent, Stop, Submitted};
use tokio::sync::oneshot;

use super::{Link, Message, lock};
use crate::model::{Constrain, Finish, Model, ModelError, ModelRequest, Piece, Reply, ReplyNext};

/// The conversation of a subagent in the log.
#[derive(Debug, Default)]
pub(super) struct Past {
    replies: VecDeque<PastReply>,
    calls: Vec<PastCall>,
}

#[derive(Debug, Default)]
struct PastReply {
    text: String,
    stop: Option<Stop>,
    usage: Option<Usage>,
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

/// The model of a subagent, whose replies are recorded.
pub(super) struct RecordedModel {
    model: Arc<dyn Model>,
    link: Link,
    call: u32,
    past: Mutex<VecDeque<PastReply>>,
}

impl RecordedModel {
    /// Creates the model of the subagent that a call runs.
    pub(super) fn new(model: Arc<dyn Model>, link: Link, call: u32) -> Self {
        let mut family = lock(&link.family.state);
        let past = family.past.get_mut(&call);
        let past = past.map(|past| std::mem::take(&mut past.replies));
        drop(family);
        Self {
            model,
            link,
            call,
            past: Mutex::new(past.unwrap_or_default()),
        }
    }
}

impl Model for RecordedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn constrains(&self) -> Constrain {
        self.model.constrains()
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        if let Some(past) = lock(&self.past).pop_front() {
            return Reply::new(|out| async move {
                out.text(past.text).await;
                if let Some(usage) = past.usage {
                    out.usage(usage).await;
                }
                Ok(Finish::new(past.stop.unwrap_or(Stop::Broken)))
            });
        }
        let mut reply = self.model.reply(request);
        let (sender, call) = (self.link.sender.clone(), self.call);
        Reply::new(move |out| async move {
            let mut usage = None;
            while let Some(next) = reply.next().await {
                let (text, finish) = match next? {
                    ReplyNext::Piece(Piece::Text(text)) => (text, None),
                    ReplyNext::Piece(piece) => {
                        if let Piece::Usage(so_far) = piece {
                            usage = Some(so_far);
                        }
                        out.piece(piece).await;
                        continue;
                    }
                    ReplyNext::Finish(finish) => (String::new(), Some(finish)),
                };
                let (recorded, caught_up) = oneshot::channel();
                // Before any call in it is submitted. It fails only if the conversation has ended.
                let _ = sender
                    .send(Message::Text {
                        call,
                        text: text.clone(),
                        stop: finish.as_ref().map(|finish| finish.stop),
                        usage: usage.filter(|_| finish.is_some()),
                        recorded: finish.is_some().then_some(recorded),
                    })
                    .await;
                let Some(finish) = finish else {
                    out.text(text).await;
                    continue;
                };
                // The end must be recorded before the call ends, which does not wait for messages.
                if let Ok(caught_up) = caught_up.await {
                    caught_up.await;
                }
                return Ok(finish);
            }
            Err(ModelError::endless())
        })
    }
}
