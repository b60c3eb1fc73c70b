//! One streamed reply: bytes of the model server in, bytes for the client out.

use plaincall_wire::SurrogateJoiner;
use plaincall_wire::openai::{ChatCompletion, ChatCompletionChunk, read_error};
use plaincall_wire::sse::{Decoder, Event, Limits};

use crate::counts::Counts;
use crate::error::GatewayError;
use crate::reply::{Flow, Next, Reply};
use crate::sink::streamed::StreamedResponse;

/// Reads the event stream of the model server and writes that of the client.
///
/// Whatever comes in, and however it breaks off: what goes out ends with one terminal event, `[DONE]` or an error.
#[derive(Debug)]
pub struct Exchange {
    limits: Limits,
    decoder: Decoder,
    joiner: SurrogateJoiner,
    pub(crate) reply: Reply<StreamedResponse>,
    /// How the stream has ended, if it has said so.
    end: Option<Result<(), GatewayError>>,
}

impl Exchange {
    /// An exchange that makes this reply of a stream within these limits.
    pub fn new(reply: Reply<StreamedResponse>, limits: Limits) -> Self {
        Self {
            limits,
            decoder: Decoder::new().limits(limits),
            joiner: SurrogateJoiner::default(),
            reply,
            end: None,
        }
    }

    /// Takes the next bytes of the model server.
    pub fn feed(&mut self, bytes: &[u8]) -> Flow {
        if self.end.is_some() {
            return Flow::Stop;
        }
        for event in self.decoder.feed(bytes) {
            let step = match event {
                Ok(event) => step(&event, &mut self.joiner, &mut self.reply),
                Err(error) => Some(Err(GatewayError::upstream(error.to_string()))),
            };
            if step.is_some() {
                self.end = step;
                return Flow::Stop;
            }
        }
        if self.reply.is_settled() {
            Flow::UsageOnly
        } else {
            Flow::Continue
        }
    }

    /// The stream of the model server has ended, by itself or because something went wrong.
    ///
    /// When the model is to be asked again, the exchange is ready for the next answer.
    pub fn end(&mut self, broken: Option<GatewayError>) -> Next {
        let decoder = Decoder::new().limits(self.limits);
        let rest = std::mem::replace(&mut self.decoder, decoder).finish();
        if self.end.is_none()
            && broken.is_none()
            && let Ok(Some(event)) = rest
        {
            self.end = step(&event, &mut self.joiner, &mut self.reply);
        }
        self.joiner = SurrogateJoiner::default();
        let cut = || GatewayError::upstream("the model server's answer is incomplete");
        let end = self.end.take();
        let end = end.unwrap_or_else(|| Err(broken.unwrap_or_else(cut)));
        let next = self.reply.end(end);
        self.write_end(next)
    }

    fn write_end(&mut self, next: Next) -> Next {
        match &next {
            Next::Done => self.reply.out.done(),
            Next::Failed(error) => self.reply.out.error(&error.body),
            Next::Repair(_) => {}
        }
        next
    }

    /// Takes a whole answer, of a server that does not stream.
    pub fn whole(&mut self, completion: &ChatCompletion<'_>) -> Next {
        let next = self.reply.whole(completion);
        self.write_end(next)
    }

    /// The bytes that can go to the client now.
    pub fn take(&mut self) -> Vec<u8> {
        self.reply.out.take()
    }

    /// Whether the client has been answered already, so that it is too late for a status.
    pub fn has_begun(&self) -> bool {
        self.reply.out.has_begun()
    }

    /// A chunk without anything, for a client that waits for what is held back: a call, or a round of repair.
    #[cfg(feature = "server")]
    pub(crate) fn empty_delta(&self) -> Option<Vec<u8>> {
        let is_holding = self.has_begun() && self.reply.is_holding();
        is_holding.then(|| self.reply.out.empty_delta())
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        self.reply.counts()
    }
}

/// Takes one event; how the stream has ended, if it has.
fn step(
    event: &Event<'_>,
    joiner: &mut SurrogateJoiner,
    reply: &mut Reply<StreamedResponse>,
) -> Option<Result<(), GatewayError>> {
    if event.name.as_deref() == Some("error") {
        let error = read_error(event.data.as_bytes());
        return Some(Err(GatewayError::from_upstream(502, error)));
    }
    if event.data.trim_ascii().is_empty() {
        return None;
    }
    match ChatCompletionChunk::read(&joiner.join(&event.data)) {
        Ok(Some(chunk)) => (reply.push(chunk) == Flow::Stop).then_some(Ok(())),
        Ok(None) => Some(Ok(())),
        Err(error) => Some(Err(GatewayError::unreadable(&error))),
    }
}
