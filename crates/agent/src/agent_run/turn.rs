//! A turn: parses a reply while its calls run.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;

use plaincall::reply::ReplyItem;
use plaincall::{Run, RunEvent, Stop, Toolbox, Turn, TurnEvent};
use tokio::select;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::agent_loop::{ReadReply, Turned};
use crate::agent_run::AgentRun;
use crate::agent_run::request::Begun;
use crate::answer::AgentErrorKind;
use crate::budget::Budget;
use crate::conversation::Conversation;
use crate::event::AgentEvent;
use crate::model::{Finish, ModelError, ModelErrorKind, Piece, Reply, ReplyNext, Usage};
use crate::subagent::submissions::Submissions;

/// How many bytes of a reply are read before waiting for the run.
const READ_AHEAD: usize = 64 << 10;
/// The longest reply, in bytes.
const LONGEST: usize = 64 << 20;
/// The maximum length of the part of a reply that is read after it has too many calls, in bytes.
const AFTER_CALLS: usize = 64 << 10;

/// The reply that is read.
#[derive(Default)]
struct Reading {
    read: ReadReply,
    /// The number of calls of the reply that have begun.
    begun: u32,
    /// The length of the reply, in bytes, when it had too many calls.
    length_within: Option<usize>,
    /// The calls of subagents.
    submitted: HashSet<u32>,
}

pub(super) enum NextTurn {
    /// A reply that has begun.
    Begun(Begun),
    /// A turn that a crash interrupted, with the calls of subagents in it. They continue or are cancelled.
    Interrupted {
        submitted: HashSet<u32>,
        continues: bool,
    },
}

impl Reading {
    /// Handles an event of the turn, and returns the event for the stream.
    fn take(&mut self, event: TurnEvent, toolbox: &Toolbox, turn: &Turn<'_>) -> Option<AgentEvent> {
        let number = |call: usize| turn.call_of(call).unwrap_or(u32::MAX);
        if let TurnEvent::Reply(item) = &event {
            self.read.item(item, number);
        }
        Some(match event {
            TurnEvent::Run(event) => {
                if let RunEvent::Call(appeared) = &event {
                    if appeared.submitted.is_some() {
                        self.submitted.insert(appeared.call);
                    }
                } else if let RunEvent::Result(result) = &event
                    && !self.submitted.contains(&result.call)
                {
                    self.read.result(result, toolbox);
                }
                AgentEvent::Run(Box::new(event))
            }
            TurnEvent::Reply(ReplyItem::Text(text)) => AgentEvent::Text(text.into_owned()),
            TurnEvent::Reply(ReplyItem::Reasoning(text)) => {
                AgentEvent::Reasoning(text.into_owned())
            }
            TurnEvent::Reply(ReplyItem::CallStart(started)) => {
                self.begun = self.begun.saturating_add(1);
                AgentEvent::Call {
                    call: number(started.index),
                    id: started.id.as_str().into(),
                    name: started.name.as_str().into(),
                }
            }
            TurnEvent::Reply(ReplyItem::ArgumentDelta {
                call,
                pointer,
                text,
            }) => AgentEvent::Value {
                call: number(call),
                pointer,
                text: text.into_owned(),
            },
            _ => return None,
        })
    }
}

struct PacedReply {
    first: Option<ReplyNext>,
    reply: Reply,
    /// How many bytes were read since the last wait for the run.
    ahead: usize,
    catching_up: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl PacedReply {
    fn new(begun: Begun) -> Self {
        Self {
            first: Some(begun.first),
            reply: begun.reply,
            ahead: 0,
            catching_up: None,
        }
    }

    /// Returns the next part once the run has caught up. Cancel safe.
    async fn next(&mut self) -> Option<Result<ReplyNext, ModelError>> {
        if let Some(caught_up) = &mut self.catching_up {
            caught_up.await;
            self.catching_up = None;
        }
        match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => self.reply.next().await,
        }
    }

    fn fed(&mut self, bytes: usize, turn: &Turn<'_>) {
        self.ahead += bytes;
        if self.ahead >= READ_AHEAD {
            self.ahead = 0;
            self.catching_up = Some(Box::pin(turn.caught_up()));
        }
    }
}

/// The cancellation and the deadline.
#[derive(Clone)]
pub(super) struct Bounds {
    pub(super) cancel: CancellationToken,
    pub(super) deadline: Instant,
}

impl Bounds {
    /// Waits for either, and returns which one it was.
    pub(super) async fn over(&self) -> AgentErrorKind {
        select! {
            biased;
            () = self.cancel.cancelled() => AgentErrorKind::Cancelled,
            () = sleep_until(self.deadline) => AgentErrorKind::Time,
        }
    }
}

impl AgentRun<'_> {
    /// Reads a reply and runs its calls. They are cancelled at the deadline, and if the reply fails midway.
    pub(super) async fn turn(&mut self, next: NextTurn) -> Result<Turned, AgentErrorKind> {
        let calls_left = self.talk.agent_loop.calls_left();
        let Conversation {
            agent_loop,
            run,
            written,
            opened,
            settings,
            submissions,
            ..
        } = &mut *self.talk;
        let mut reading = Reading::default();
        let (mut usage, mut finish, mut end, mut is_over) = (None, None, None, false);
        // Dropped when reading ends, because it holds the request to the server.
        let mut paced = None;
        let mut turn = match next {
            NextTurn::Begun(begun) => {
                *opened += 1;
                paced = Some(PacedReply::new(begun));
                run.turn_of(calls_left)
            }
            NextTurn::Interrupted {
                submitted,
                continues,
            } => {
                reading.submitted = submitted;
                finish = Some(Finish::new(Stop::Broken));
                let submissions = submissions.as_ref().filter(|_| continues);
                resume(run, submissions, &agent_loop.budget)
            }
        };
        loop {
            let next = async { paced.as_mut()?.next().await };
            let message = async { submissions.as_mut()?.next().await };
            let ended: Result<Finish, AgentErrorKind> = select! {
                biased;
                kind = self.bounds.over(), if !is_over => {
                    is_over = true;
                    turn.cancel();
                    Err(kind)
                }
                event = turn.next() => {
                    let Some(event) = event else {
                        break;
                    };
                    if let Some(event) = reading.take(event, &settings.tools, &turn) {
                        // It fails only if the stream was dropped, and then this is not polled either.
                        let _ = self.out.send(event).await;
                    }
                    continue;
                }
                Some(message) = message => {
                    if let Some(submissions) = submissions {
                        submissions.handle(message, &mut turn);
                    }
                    continue;
                }
                next = next, if finish.is_none() => match next {
                    Some(Ok(ReplyNext::Piece(Piece::Text(text)))) => {
                        turn.feed(&text);
                        written.push_str(&text);
                        if written.len() > LONGEST {
                            Err(too_long())
                        } else if reading.is_endless(calls_left, written.len()) {
                            // The agent run ends after this reply anyway.
                            Err(AgentErrorKind::Calls)
                        } else {
                            if let Some(paced) = &mut paced {
                                paced.fed(text.len(), &turn);
                            }
                            continue;
                        }
                    }
                    Some(Ok(ReplyNext::Piece(piece))) => {
                        pass_on(piece, &mut usage, &self.out).await;
                        continue;
                    }
                    Some(Ok(ReplyNext::Finish(finish))) => Ok(finish),
                    Some(Err(error)) => Err(AgentErrorKind::Model(error)),
                    None => Ok(Finish::new(Stop::Broken)),
                },
            };
            let ended = ended.unwrap_or_else(|kind| broken(&mut end, kind));
            paced = None;
            turn.set_usage(usage);
            turn.end(finish.get_or_insert(ended).stop);
        }
        let finish = finish.unwrap_or(Finish::new(Stop::Broken));
        let results = turn.finish(finish.stop).await;
        let turned = Turned {
            written: std::mem::take(&mut self.talk.written),
            usage,
            read: reading.read,
            results,
            finish,
            end,
        };
        let results = turned.results.iter().cloned().collect();
        let added = self.talk.add_turn(turned.written.clone(), results);
        added.map_err(AgentErrorKind::Dialect)?;
        Ok(turned)
    }
}

/// Handles a part of a reply that is not its text.
async fn pass_on(piece: Piece, usage: &mut Option<Usage>, out: &Sender<AgentEvent>) {
    let event = match piece {
        Piece::Usage(so_far) => return *usage = Some(so_far),
        Piece::Reasoning(text) => AgentEvent::Reasoning(text),
        Piece::Retry(retry) => AgentEvent::Retry(retry),
        // Only native requests have such calls, and this is not one.
        Piece::Call(_) | Piece::Text(_) => return,
    };
    let _ = out.send(event).await;
}

/// Opens an interrupted turn again and ends its reply. Without `submissions`, its calls are cancelled.
fn resume<'run>(
    run: &'run mut Run,
    submissions: Option<&Submissions>,
    budget: &Arc<Budget>,
) -> Turn<'run> {
    let mut turn = run.resume_turn();
    match submissions {
        Some(submissions) => submissions.resume(budget, turn.submitted()),
        None => turn.cancel(),
    }
    turn.end(Stop::Broken);
    turn
}

/// Sets the first error of a turn, and returns how its reply ended.
fn broken(end: &mut Option<AgentErrorKind>, kind: AgentErrorKind) -> Finish {
    end.get_or_insert(kind);
    Finish::new(Stop::Broken)
}

impl Reading {
    /// Returns whether the reply has too many calls, and continues after them.
    fn is_endless(&mut self, calls_left: u32, length: usize) -> bool {
        if self.begun <= calls_left {
            return false;
        }
        let within = *self.length_within.get_or_insert(length);
        length - within > AFTER_CALLS
    }
}

fn too_long() -> AgentErrorKind {
    let message = format!("the reply has more than {} MiB", LONGEST >> 20);
    AgentErrorKind::Model(ModelError::new(ModelErrorKind::Broken, message))
}
