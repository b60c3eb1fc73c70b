//! The common part of reading responses.

use std::borrow::Cow;
use std::time::Duration;

use plaincall_wire::openai::read_error;
use plaincall_wire::sse::Event;
use plaincall_wire::{ReadError, SurrogateJoiner};

use super::answer::EventStream;
use super::server_error::{self, Asked};
use super::{Finish, ModelError, ModelErrorKind, ReplyWriter, Usage};

/// The longest reply, including reasoning, in bytes.
const MOST_TEXT: usize = 64 << 20;
/// How long to wait for the usage after a complete reply.
const AFTERWARDS: Duration = Duration::from_secs(5);

pub(super) struct Reading<'r> {
    pub(super) asked: &'r Asked<'r>,
    out: &'r ReplyWriter,
    length: usize,
    pub(super) finish: Option<Finish>,
    /// Joins surrogate pairs that a server has split.
    joiner: SurrogateJoiner,
}

impl<'r> Reading<'r> {
    pub(super) fn new(asked: &'r Asked<'r>, out: &'r ReplyWriter) -> Self {
        Self {
            asked,
            out,
            length: 0,
            finish: None,
            joiner: SurrogateJoiner::default(),
        }
    }

    /// Returns the next event. Errors after the end of a reply are ignored.
    pub(super) async fn event(
        &mut self,
        events: &mut EventStream,
    ) -> Result<Option<Event<'static>>, ModelError> {
        let next = events.next(self.asked);
        if self.finish.is_some() {
            let late = tokio::time::timeout(AFTERWARDS, next).await;
            return Ok(late.ok().and_then(Result::ok).flatten());
        }
        let mut event = next.await?;
        if let Some(event) = &mut event
            && let Cow::Owned(joined) = self.joiner.join(&event.data)
        {
            event.data = joined.into();
        }
        Ok(event)
    }

    pub(super) async fn say(&mut self, text: &str) -> Result<(), ModelError> {
        self.count(text)?;
        if !text.is_empty() {
            self.out.text(text).await;
        }
        Ok(())
    }

    pub(super) async fn think(&mut self, text: &str) -> Result<(), ModelError> {
        self.count(text)?;
        if !text.is_empty() {
            self.out.reasoning(text).await;
        }
        Ok(())
    }

    pub(super) async fn cost(&self, usage: Usage) {
        self.out.usage(usage).await;
    }

    fn count(&mut self, text: &str) -> Result<(), ModelError> {
        self.length += text.len();
        if self.length > MOST_TEXT {
            return Err(self.broken(&format!("it has more than {MOST_TEXT} bytes")));
        }
        Ok(())
    }

    pub(super) fn broken(&self, what: &str) -> ModelError {
        let server = self.asked.server();
        let message = format!("the response of {server} is incomplete: {what}");
        ModelError::new(ModelErrorKind::Broken, message)
    }

    pub(super) fn unreadable(&self, error: &ReadError) -> ModelError {
        self.asked.cannot_be_read(error)
    }

    pub(super) fn error(&self, body: &[u8]) -> ModelError {
        server_error::by_words(None, &read_error(body), self.asked)
    }

    pub(super) fn native_call(&self) -> ModelError {
        server_error::native_call(self.asked)
    }
}
