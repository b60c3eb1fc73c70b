//! Questions of a conversation: runs calls while the model writes them, as the [agent loop](crate::agent_loop) decides.

mod request;
mod turn;

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use plaincall::prompt::answer::AnswerSchema;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::select;
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::Next;
use crate::agent_run::turn::{Bounds, NextTurn};
use crate::answer::{AgentError, AgentErrorKind, Answer};
use crate::budget::Budget;
use crate::conversation::Conversation;
use crate::event::AgentEvent;
use crate::flow::Flow;

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

impl Conversation {
    /// Asks the next question and waits for the answer.
    ///
    /// # Errors
    /// Returns an error if there is no answer; see [`AgentErrorKind`](crate::AgentErrorKind). The conversation can continue.
    pub async fn ask(&mut self, question: impl AsRef<str>) -> Result<Answer, AgentError> {
        self.stream(question).answer().await
    }

    /// Asks the next question, whose answer is JSON for a type. The model gets the type's JSON Schema. An answer that does not
    /// match gets a repair message, at most [`repairs`](crate::AgentLimits::repairs) times.
    ///
    /// # Errors
    /// See [`ask`](Self::ask). Also returns an error if the type has an invalid schema, and
    /// [`AgentErrorKind::Schema`](crate::AgentErrorKind::Schema) if the answers do not match.
    pub async fn ask_as<T: DeserializeOwned + JsonSchema>(
        &mut self,
        question: impl AsRef<str>,
    ) -> Result<T, AgentError> {
        let schema = AnswerSchema::of::<T>();
        let schema = schema.map_err(|error| AgentErrorKind::Settings(error.to_string()))?;
        let answer = self.stream_as(question, schema.clone()).answer().await?;
        let value = schema.read_as(&answer.text);
        value.map_err(|problems| AgentErrorKind::Schema(problems).into())
    }

    /// Asks the next question and streams the events. The text of the answer is JSON that matches the schema; see
    /// [`ask_as`](Self::ask_as).
    pub fn stream_as(
        &mut self,
        question: impl AsRef<str>,
        schema: AnswerSchema,
    ) -> AgentStream<'_> {
        let question = question.as_ref().to_owned();
        AgentStream::new(self, Some((question, Some(schema))))
    }

    /// Asks the next question and streams the events. Nothing runs until the stream is polled; dropping it cancels
    /// everything.
    pub fn stream(&mut self, question: impl AsRef<str>) -> AgentStream<'_> {
        AgentStream::new(self, Some((question.as_ref().to_owned(), None)))
    }

    /// Lets the model continue without a new question: after a limit, a server failure, or in a resumed session. Interrupted
    /// subagents continue too; a new question cancels them.
    pub fn resume(&mut self) -> AgentStream<'_> {
        AgentStream::new(self, None)
    }
}

impl Stream for AgentStream<'_> {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        Pin::new(&mut self.flow).poll_next(context)
    }
}

type Question = (String, Option<AnswerSchema>);

/// A running question: it asks the model, feeds the run and waits, as the agent loop decides.
struct AgentRun<'c> {
    talk: &'c mut Conversation,
    out: Sender<AgentEvent>,
    bounds: Bounds,
}

impl<'c> AgentRun<'c> {
    fn new(talk: &'c mut Conversation, out: Sender<AgentEvent>, cancel: CancellationToken) -> Self {
        let limits = talk.agent_loop.limits;
        let budget = talk.budget.clone();
        let budget = budget.unwrap_or_else(|| Budget::timed(limits, None));
        let deadline = budget.deadline();
        talk.agent_loop.begin(budget);
        Self {
            talk,
            out,
            bounds: Bounds { cancel, deadline },
        }
    }

    async fn emit(&self, event: AgentEvent) {
        // It fails only if the stream was dropped, and then this is not polled either.
        let _ = self.out.send(event).await;
    }

    /// Records the messages of the agent loop, and shows those of the program.
    async fn carry_out(&mut self, shows: bool) {
        for effect in self.talk.carry_out() {
            if shows {
                self.emit(effect).await;
            }
        }
    }

    async fn ended(mut self, question: Option<Question>) -> Result<Answer, AgentError> {
        let ended = self.answer(question).await;
        self.carry_out(true).await;
        ended.map_err(|kind| self.talk.agent_loop.error(kind))
    }

    async fn answer(&mut self, question: Option<Question>) -> Result<Answer, AgentErrorKind> {
        self.catch_up(question.is_none()).await?;
        if let Some(submissions) = &self.talk.submissions {
            submissions.begin(&self.talk.agent_loop.budget);
        }
        if let Some((question, schema)) = question {
            self.talk.add_question(&question);
            self.talk.agent_loop.set_schema(schema);
            self.carry_out(false).await;
        } else {
            self.talk.agent_loop.resume();
            self.carry_out(true).await;
        }
        loop {
            self.talk.agent_loop.begin_turn()?;
            let turn = self.talk.turns();
            self.emit(AgentEvent::TurnBegin { turn }).await;
            let reply = self.request().await;
            let reply = reply.inspect_err(|_| self.talk.agent_loop.abandon_turn())?;
            let turned = self.turn(NextTurn::Begun(reply)).await?;
            let (finish, usage) = (turned.finish.clone(), turned.usage);
            self.emit(AgentEvent::TurnEnd {
                turn,
                finish,
                usage,
            })
            .await;
            let Conversation {
                agent_loop, run, ..
            } = &mut *self.talk;
            let next = agent_loop.evaluate(turned, run.received())?;
            self.carry_out(true).await;
            match next {
                Next::Request => {}
                Next::AskUser(question) => self.ask_user(&question).await?,
                Next::Answer(answer) => return Ok(*answer),
            }
        }
    }

    async fn ask_user(&mut self, question: &str) -> Result<(), AgentErrorKind> {
        let failed = |error: &dyn fmt::Display| AgentErrorKind::User(error.to_string());
        let user = self.talk.settings.user.as_ref();
        let user = user.ok_or_else(|| failed(&"there is no user"))?;
        let answer = select! {
            biased;
            kind = self.bounds.over() => return Err(kind),
            answer = user.answer(question) => answer,
        };
        let answer = answer.map_err(|error| failed(&error))?;
        self.talk.add_question(&answer);
        self.carry_out(false).await;
        Ok(())
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
}
