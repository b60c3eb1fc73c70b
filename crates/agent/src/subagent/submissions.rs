//! The messages of subagents to the conversation in whose run their calls run.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plaincall::events::{SubmittedArguments, Usage};
use plaincall::{RunEvent, Stop, Submitted, Turn};
use tokio::sync::{mpsc, oneshot, watch};

use crate::budget::Budget;
use crate::subagent::past::Past;

/// How many messages may wait for the agent loop.
const WAITING: usize = 16;

/// Waits until the run has processed all earlier inputs.
type CaughtUp = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A message of a subagent to the conversation.
pub(crate) enum Message {
    /// A call, on its way to the run.
    Call(Submission),
    /// A part of a reply, for the log.
    Text {
        call: u32,
        text: String,
        stop: Option<Stop>,
        usage: Option<Usage>,
        /// Gets a future that ends once the part is recorded.
        recorded: Option<oneshot::Sender<CaughtUp>>,
    },
}

/// A call of a subagent.
pub(crate) struct Submission {
    pub(super) parent: u32,
    pub(super) name: String,
    pub(super) arguments: SubmittedArguments,
    pub(super) budget: Arc<Budget>,
    pub(super) reply: oneshot::Sender<Submitted>,
}

/// The state that a conversation shares with its subagents.
#[derive(Debug, Default)]
pub(super) struct Family {
    pub(super) state: Mutex<FamilyState>,
    /// Notifies of changes that a subagent may wait for.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
pub(super) struct FamilyState {
    /// The budget of the current question.
    question: Option<Arc<Budget>>,
    /// The budgets of the subagents that submitted calls, by the calls. `None` until the subagent continues after a crash.
    budgets: HashMap<u32, Option<Arc<Budget>>>,
    /// The interrupted subagents in the log, by their calls.
    pub(super) past: HashMap<u32, Past>,
}

/// The conversation's ends of the connection to its subagents.
#[derive(Debug)]
pub(crate) struct Submissions {
    family: Arc<Family>,
    receiver: mpsc::Receiver<Message>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Family {
    /// Returns the budget of the agent that made a call.
    pub(super) async fn budget_of(&self, call: u32) -> Arc<Budget> {
        let mut changed = self.changed.subscribe();
        loop {
            let known = {
                let state = lock(&self.state);
                let submitted = state.budgets.get(&call).cloned();
                submitted.unwrap_or_else(|| state.question.clone())
            };
            if let Some(budget) = known {
                return budget;
            }
            // It cannot fail, because the sender is here.
            let _ = changed.changed().await;
        }
    }

    /// Returns a call that the subagent submitted before a crash.
    pub(super) fn take_past(&self, submission: &Submission) -> Option<Submitted> {
        let mut state = lock(&self.state);
        let past = state.past.get_mut(&submission.parent)?;
        let submitted = past.take(&submission.name, &submission.arguments)?;
        let budget = Some(Arc::clone(&submission.budget));
        state.budgets.insert(submitted.call(), budget);
        drop(state);
        self.changed.send_replace(());
        Some(submitted)
    }
}

impl Submissions {
    /// Creates the ends of a connection.
    pub(super) fn new() -> (Self, Arc<Family>, mpsc::Sender<Message>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let family = Arc::<Family>::default();
        let own = Arc::clone(&family);
        (Self { family, receiver }, own, sender)
    }

    /// Starts a question.
    pub(crate) fn begin(&self, budget: &Arc<Budget>) {
        *lock(&self.family.state) = FamilyState {
            question: Some(Arc::clone(budget)),
            ..FamilyState::default()
        };
    }

    /// Reads the conversations of interrupted subagents from the log. They wait for [`resume`](Self::resume).
    pub(crate) fn read(&self, events: &[RunEvent], calls: &[u32]) {
        let past = Past::read(events, calls);
        let nested = past.values().flat_map(Past::calls);
        let mut state = lock(&self.family.state);
        state.budgets = nested.map(|call| (call, None)).collect();
        state.past = past;
    }

    /// Lets the interrupted subagents continue.
    pub(crate) fn resume(&self, budget: &Arc<Budget>, submitted: Vec<Submitted>) {
        let submitted = submitted.into_iter();
        let mut submitted = submitted.map(|one| (one.call(), one)).collect();
        let mut state = lock(&self.family.state);
        for past in state.past.values_mut() {
            past.attach(&mut submitted);
        }
        state.question = Some(Arc::clone(budget));
        drop(state);
        self.family.changed.send_replace(());
    }

    /// Returns the next message. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        self.receiver.recv().await
    }

    /// Handles a message of a subagent.
    pub(crate) fn handle(&self, message: Message, turn: &mut Turn<'_>) {
        match message {
            Message::Call(submission) => self.submit(submission, turn),
            Message::Text {
                call,
                text,
                stop,
                usage,
                recorded,
            } => {
                turn.record_subagent_text(call, &text, stop, usage);
                if let Some(recorded) = recorded {
                    // It fails only if the subagent was stopped.
                    let _ = recorded.send(Box::pin(turn.caught_up()));
                }
            }
        }
    }

    fn submit(&self, submission: Submission, turn: &mut Turn<'_>) {
        let Submission {
            parent,
            name,
            arguments,
            budget,
            reply,
        } = submission;
        // The subagent was stopped, possibly in an earlier turn.
        if reply.is_closed() {
            return;
        }
        // If the call starts a subagent, that waits until its budget is known.
        let mut state = lock(&self.family.state);
        let submitted = turn.submit_from(parent, &name, arguments);
        state.budgets.insert(submitted.call(), Some(budget));
        drop(state);
        // If the subagent has ended meanwhile, this drops the call, which cancels it.
        let _ = reply.send(submitted);
    }
}
