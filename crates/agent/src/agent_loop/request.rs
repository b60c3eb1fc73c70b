//! Requests to the model, with a shortened conversation where needed.

use std::sync::Arc;

use plaincall::call::grammar::Grammar;
use tokio::select;

use crate::agent_loop::AgentRun;
use crate::answer::AgentErrorKind;
use crate::conversation::Conversation;
use crate::event::AgentEvent;
use crate::model::{Model as _, ModelError, ModelErrorKind, ModelRequest, Piece, Reply, ReplyNext};

/// The share of the context that is reserved for a reply without a length limit: one in this many.
const FOR_REPLY: u64 = 8;
/// The share of the conversation that is shortened when the server reports that it is too long: one in this many.
const SHORTER_BY: u64 = 4;

pub(super) struct Begun {
    pub(super) first: ReplyNext,
    pub(super) reply: Reply,
}

impl AgentRun<'_> {
    /// Returns the reply once it has begun, and the size of the request in bytes.
    pub(super) async fn request(&mut self) -> Result<(Begun, u64), AgentErrorKind> {
        self.fit().await?;
        let grammar = self.grammar().await?;
        loop {
            let sent = self.talk.history.bytes();
            let mut request = ModelRequest::new(self.talk.history.messages());
            request.max_tokens = self.reply_tokens();
            request.grammar.clone_from(&grammar);
            let reply = self.talk.model.reply(request);
            match self.begun(reply).await? {
                Ok(begun) => return Ok((begun, sent)),
                Err(error) if error.kind == ModelErrorKind::TooLong => {
                    let bytes = sent / SHORTER_BY;
                    if !self.shorten(bytes, bytes).await? {
                        return Err(AgentErrorKind::TooLong);
                    }
                }
                Err(error) => return Err(AgentErrorKind::Model(error)),
            }
        }
    }

    /// The grammar of the reply, if the model constrains it and the tools have one.
    async fn grammar(&self) -> Result<Option<Arc<Grammar>>, AgentErrorKind> {
        let Conversation {
            model,
            dialect,
            settings,
            ..
        } = &*self.talk;
        select! {
            biased;
            kind = self.bounds.over() => Err(kind),
            made = settings.grammar(model, dialect) => Ok(made?.unwrap_or_default()),
        }
    }

    /// The limit of reply tokens, at most the rest of the token limit.
    fn reply_tokens(&self) -> Option<u32> {
        let left = self.budget.tokens_left();
        let left = left.map(|left| u32::try_from(left).unwrap_or(u32::MAX));
        [self.limits.reply_tokens, left].into_iter().flatten().min()
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

    /// Shortens the conversation to the context window, if that is known.
    async fn fit(&mut self) -> Result<(), AgentErrorKind> {
        let Some(context) = self.limits.context else {
            return Ok(());
        };
        let for_reply = self.limits.reply_tokens.map(u64::from);
        let room = context.saturating_sub(for_reply.unwrap_or(context / FOR_REPLY));
        let most = self.talk.bytes(room);
        let bytes = self.talk.history.bytes();
        if bytes > most {
            // More than needed, so that later turns do not invalidate the cache of the server each time.
            self.shorten(bytes - most / 4 * 3, bytes - most).await?;
        }
        if self.talk.tokens(self.talk.history.bytes()) > context {
            return Err(AgentErrorKind::TooLong);
        }
        Ok(())
    }

    /// Shortens the oldest large results. Returns whether any was shortened.
    async fn shorten(&mut self, bytes: u64, at_least: u64) -> Result<bool, AgentErrorKind> {
        let Conversation { history, run, .. } = &mut *self.talk;
        let shortened = history.shorten(bytes, at_least, |result, limit| {
            run.shortened(result, limit)
        });
        let shortened = shortened.map_err(AgentErrorKind::Dialect)?;
        if shortened.results > 0 {
            self.emit(AgentEvent::Shortened {
                results: shortened.results,
                bytes: shortened.bytes,
            })
            .await;
        }
        Ok(shortened.results > 0)
    }
}
