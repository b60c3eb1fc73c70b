//! The common part of reading responses.

use std::borrow::Cow;
use std::time::Duration;

use plaincall_wire::openai::{ToolCall, read_error};
use plaincall_wire::sse::Event;
use plaincall_wire::{ReadError, SurrogateJoiner};

use super::answer::EventStream;
use super::server_error::{self, Asked};
use super::{Finish, ModelError, ModelErrorKind, NativeCall, Piece, ReplyWriter, Usage};

/// The longest reply, including reasoning, in bytes.
const MOST_TEXT: usize = 64 << 20;
/// How long to wait for the usage after a complete reply.
const AFTERWARDS: Duration = Duration::from_secs(5);

pub(super) struct ResponseReader<'r> {
    pub(super) asked: &'r Asked<'r>,
    out: &'r ReplyWriter,
    length: usize,
    pub(super) finish: Option<Finish>,
    /// Joins surrogate pairs that a server has split.
    joiner: SurrogateJoiner,
    is_native: bool,
    /// The calls of a native request so far, each with its index.
    calls: Vec<(Option<u64>, NativeCall)>,
}

impl<'r> ResponseReader<'r> {
    pub(super) fn new(asked: &'r Asked<'r>, out: &'r ReplyWriter, is_native: bool) -> Self {
        Self {
            is_native,
            calls: Vec::new(),
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

    pub(super) async fn text(&mut self, text: &str) -> Result<(), ModelError> {
        self.count(text)?;
        if !text.is_empty() {
            self.out.text(text).await;
        }
        Ok(())
    }

    pub(super) async fn reasoning(&mut self, text: &str) -> Result<(), ModelError> {
        self.count(text)?;
        if !text.is_empty() {
            self.out.reasoning(text).await;
        }
        Ok(())
    }

    /// Handles calls, or pieces of them: errors unless the request is native.
    pub(super) fn calls(&mut self, pieces: &[ToolCall<'_>]) -> Result<(), ModelError> {
        if !self.is_native && !pieces.is_empty() {
            return Err(self.native_call());
        }
        for piece in pieces {
            self.count(piece.arguments())?;
            let id = piece.id.as_deref().unwrap_or_default();
            // Some servers omit the index. Then a piece with a name begins a call.
            let open = match piece.index {
                Some(_) => self.calls.iter().rposition(|call| call.0 == piece.index),
                None if piece.name().is_empty() => self.calls.len().checked_sub(1),
                None => None,
            };
            // Some give all calls the index 0, with an id and a name each.
            let begins = |call: &NativeCall| {
                !piece.name().is_empty() && !id.is_empty() && !call.id.is_empty() && call.id != id
            };
            let open = open.and_then(|at| self.calls.get_mut(at));
            if let Some((_, call)) = open.filter(|(_, call)| !begins(call)) {
                if call.id.is_empty() {
                    call.id.push_str(id);
                }
                if call.name.is_empty() {
                    call.name.push_str(piece.name());
                }
                call.arguments.push_str(piece.arguments());
            } else {
                let call = NativeCall {
                    id: id.to_owned(),
                    name: piece.name().to_owned(),
                    arguments: piece.arguments().to_owned(),
                };
                self.calls.push((piece.index, call));
            }
        }
        Ok(())
    }

    /// Ends the reply: its calls are complete.
    pub(super) async fn finish(&mut self, finish: Finish) {
        for (_, call) in self.calls.drain(..) {
            self.out.piece(Piece::Call(call)).await;
        }
        self.finish = Some(finish);
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
