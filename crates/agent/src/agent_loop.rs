//! The agent loop: runs calls while the model writes them and returns results until the model answers.

mod request;
mod turn;
mod validation;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use plaincall::Stop;
use plaincall::call::answer::AnswerSchema;
use tokio::select;
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::turn::{Bounds, NextTurn, Turned};
use crate::agent_loop::validation::{Failures, SameResults};
use crate::answer::{AgentError, AgentErrorKind, Answer};
use crate::budget::Budget;
use crate::conversation::Conversation;
use crate::event::AgentEvent;
use crate::flow::Flow;
use crate::limits::AgentLimits;
use crate::model::Usage;

/// A running question: a stream of events, and then the [answer](Self::answer). Dropping it cancels everything.
pub struct AgentStream<'c> {
    flow: Flow<'c, AgentEvent, Result<Answer, AgentError>>,
    cancel: CancellationToken,
}

impl<'c> AgentStream<'c> {
    /// Without a question, the model continues.
    pub(crate) fn new(talk: &'c mut Conversation, question: Option<Question>) -> Self {
        Self::of(
            |out, cancel| async move { AgentRun::new(talk, out, cancel).ended(question).await },
        )
    }

    /// Runs a question in a conversation that ends with it.
    pub(crate) fn alone(mut talk: Conversation, question: String) -> Self {
        Self::of(|out, cancel| async move {
            let work = AgentRun::new(&mut talk, out, cancel);
            let ended = work.ended(Some((question, None))).await;
            // An error of the cleanup does not change the answer.
            let _ = talk.close().await;
            ended
        })
    }

    fn of<F>(work: impl FnOnce(Sender<AgentEvent>, CancellationToken) -> F) -> Self
    where
        F: Future<Output = Result<Answer, AgentError>> + Send + 'c,
    {
        let cancel = CancellationToken::new();
        Self {
            flow: Flow::new(|out| work(out, cancel.clone())),
            cancel,
        }
    }

    /// Returns the next event; `None` after the last. Cancel safe.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Returns a token that cancels the request to the model, the tools and questions to the user. It takes effect when the
    /// stream is polled. The conversation keeps what was done.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Waits for the answer, and discards the remaining events.
    ///
    /// # Errors
    /// See [`Conversation::ask`].
    pub async fn answer(mut self) -> Result<Answer, AgentError> {
        while self.next().await.is_some() {}
        let end = self.flow.end;
        end.unwrap_or_else(|| Err(AgentErrorKind::Cancelled.into()))
    }
}

impl Stream for AgentStream<'_> {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        Pin::new(&mut self.flow).poll_next(context)
    }
}

/// A question, and the schema of its answer.
type Question = (String, Option<AnswerSchema>);

/// The state of a running question.
struct AgentRun<'c> {
    talk: &'c mut Conversation,
    out: Sender<AgentEvent>,
    bounds: Bounds,
    limits: AgentLimits,
    budget: Arc<Budget>,
    partial_text: String,
    /// The number of turns in a row with rejected calls and none that succeeded.
    wrong: u32,
    reminders: u32,
    /// The number of answers that do not match the schema.
    mismatches: u32,
    /// The number of replies in a row that a length limit truncated.
    truncated: u32,
    failures: Failures,
    same_results: SameResults,
}

impl<'c> AgentRun<'c> {
    fn new(talk: &'c mut Conversation, out: Sender<AgentEvent>, cancel: CancellationToken) -> Self {
        let limits = talk.limits;
        let budget = talk.budget.clone();
        let budget = budget.unwrap_or_else(|| Budget::new(limits, None));
        let deadline = budget.deadline;
        Self {
            talk,
            out,
            bounds: Bounds { cancel, deadline },
            limits,
            budget,
            partial_text: String::new(),
            wrong: 0,
            reminders: 0,
            mismatches: 0,
            truncated: 0,
            failures: Failures::default(),
            same_results: SameResults::default(),
        }
    }

    async fn emit(&self, event: AgentEvent) {
        // It fails only if the stream was dropped, and then this is not polled either.
        let _ = self.out.send(event).await;
    }

    async fn ended(mut self, question: Option<Question>) -> Result<Answer, AgentError> {
        let ended = self.answer(question).await;
        ended.map_err(|kind| AgentError {
            kind,
            progress: Box::new(self.budget.used()),
            partial_text: self.partial_text,
        })
    }

    async fn answer(&mut self, question: Option<Question>) -> Result<Answer, AgentErrorKind> {
        self.catch_up(question.is_none()).await?;
        if let Some(submissions) = &self.talk.submissions {
            submissions.begin(&self.budget);
        }
        if let Some((question, schema)) = question {
            self.talk.add_question(&question);
            self.talk.set_answer_schema(schema);
        } else if !self.talk.history.awaits_reply() {
            // Servers reject a conversation that ends with the model's message, or continue that message.
            self.send_message("Continue.\n".to_owned()).await;
        }
        loop {
            self.budget.begin_turn()?;
            let number = self.talk.turns();
            self.emit(AgentEvent::TurnBegin { turn: number }).await;
            let (reply, sent) = match self.request().await {
                Ok(begun) => begun,
                Err(kind) => {
                    self.budget.abandon_turn();
                    return Err(kind);
                }
            };
            let turned = self.turn(NextTurn::Begun(reply)).await?;
            self.count(&turned, sent);
            self.emit(AgentEvent::TurnEnd {
                turn: number,
                finish: turned.finish.clone(),
                usage: turned.usage,
            })
            .await;
            if let Some(answer) = self.evaluate(turned).await? {
                return Ok(answer);
            }
        }
    }

    /// Records the end of a turn that was dropped or interrupted. Interrupted subagents continue first, or are cancelled.
    async fn catch_up(&mut self, continues: bool) -> Result<(), AgentErrorKind> {
        if let Some(submitted) = self.talk.interrupted.take() {
            let turned = self.turn(NextTurn::Interrupted {
                submitted,
                continues,
            });
            let turned = turned.await?;
            if let Some(failure) = turned.results.log_failure() {
                return Err(AgentErrorKind::Log(failure.into()));
            }
            if let Some(end) = turned.end {
                return Err(end);
            }
        }
        if self.talk.recorded < self.talk.opened {
            let results = select! {
                biased;
                kind = self.bounds.over() => return Err(kind),
                results = self.talk.run.last_results() => results,
            };
            // Discard the events of that turn.
            while self.talk.run.try_event().is_some() {}
            let written = std::mem::take(&mut self.talk.written);
            let added = self.talk.add_turn(written, results.into_iter().collect());
            added.map_err(AgentErrorKind::Dialect)?;
        }
        Ok(())
    }

    fn count(&mut self, turned: &Turned, sent: u64) {
        let written = turned.written.len() as u64;
        let estimate = Usage::new(self.talk.tokens(sent), self.talk.tokens(written));
        let counted = turned.usage.unwrap_or_default();
        if turned.finish.stop != Stop::Broken {
            self.talk.learn(sent, counted);
        }
        let mut cost = counted;
        let mut is_estimated = false;
        if counted.input == 0 {
            cost.input = estimate.input;
            is_estimated = true;
        }
        // For a reply that failed midway, the server may have counted only a part.
        let is_partial = turned.finish.stop == Stop::Broken && counted.output < estimate.output;
        if counted.output == 0 && written > 0 || is_partial {
            cost.output = estimate.output;
            is_estimated = true;
        }
        self.budget.count(|used| {
            used.is_usage_estimated |= is_estimated;
            used.usage.add(cost);
            for result in &turned.results {
                used.calls.add(result.status);
            }
            used.unclosed += turned.unclosed();
        });
        self.partial_text.clone_from(&turned.read.text);
    }
}
