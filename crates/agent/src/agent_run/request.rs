//! Requests to the model.

use tokio::select;

use crate::agent_run::AgentRun;
use crate::answer::AgentErrorKind;
use crate::conversation::Conversation;
use crate::event::AgentEvent;
use crate::model::{Model as _, ModelError, ModelErrorKind, Piece, Reply, ReplyNext};

pub(super) struct Begun {
    pub(super) first: ReplyNext,
    pub(super) reply: Reply,
}

impl AgentRun<'_> {
    /// Returns the reply once it has begun.
    pub(super) async fn request(&mut self) -> Result<Begun, AgentErrorKind> {
        let Conversation {
            agent_loop,
            model,
            settings,
            run,
            ..
        } = &mut *self.talk;
        let mut request = agent_loop.request(run.received())?;
        // The grammar of the reply, if the model constrains it and the tools have one.
        let grammar = select! {
            biased;
            kind = self.bounds.over() => return Err(kind),
            made = settings.grammar(model, &agent_loop.dialect) => made?.unwrap_or_default(),
        };
        loop {
            request.grammar.clone_from(&grammar);
            self.carry_out(true).await;
            let reply = self.talk.model.reply(request);
            match self.begun(reply).await? {
                Ok(begun) => return Ok(begun),
                Err(error) if error.kind == ModelErrorKind::TooLong => {
                    let Conversation {
                        agent_loop, run, ..
                    } = &mut *self.talk;
                    request = agent_loop.shorter_request(run.received())?;
                }
                Err(error) => return Err(AgentErrorKind::Model(error)),
            }
        }
    }

    /// Waits until the reply begins. Until then the request can be retried.
    async fn begun(
        &mut self,
        mut reply: Reply,
    ) -> Result<Result<Begun, ModelError>, AgentErrorKind> {
        loop {
            let next = select! {
                biased;
                kind = self.bounds.over() => return Err(kind),
                next = reply.next() => next,
            };
            return Ok(match next {
                Some(Ok(ReplyNext::Piece(Piece::Retry(retry)))) => {
                    self.emit(AgentEvent::Retry(retry)).await;
                    continue;
                }
                Some(Ok(first)) => Ok(Begun { first, reply }),
                Some(Err(error)) => Err(error),
                None => Err(ModelError::endless()),
            });
        }
    }
}
