//! The conversion of the model server's event stream.

use plaincall_wire::SurrogateJoiner;
use plaincall_wire::openai::{ChatCompletion, ChatCompletionChunk, RepeatedChunk, read_error};
use plaincall_wire::sse::{Decoder, Event, Limits};

use crate::counts::Counts;
use crate::error::GatewayError;
use crate::reply::{Flow, Next, Reply};

/// The maximum number of bytes that are read after the end of a reply, where the usage is. Comments could arrive without a pause.
const MAX_LATE: usize = 64 << 10;

/// Converts the event stream of the model server to that of the client.
///
/// For any input, even if it is truncated, the output ends with one terminal event: `[DONE]` or an error.
#[derive(Debug)]
pub struct Exchange {
    limits: Limits,
    decoder: Decoder,
    joiner: SurrogateJoiner,
    repeated: RepeatedChunk,
    pub(crate) reply: Reply,
    /// The number of bytes that were read after the end of the reply.
    late: usize,
    /// The result, once the stream has reported its end.
    end: Option<Result<(), GatewayError>>,
    /// A complete answer that is used if the repair round after it fails.
    first: Option<ChatCompletion<'static>>,
}

impl Exchange {
    /// Creates an exchange that feeds a reply from a stream within these limits.
    pub fn new(reply: Reply, limits: Limits) -> Self {
        Self {
            limits,
            decoder: Decoder::new().limits(limits),
            joiner: SurrogateJoiner::default(),
            repeated: RepeatedChunk::default(),
            reply,
            late: 0,
            end: None,
            first: None,
        }
    }

    /// Feeds the next bytes of the model server.
    pub fn feed(&mut self, bytes: &[u8]) -> Flow {
        if self.end.is_some() {
            return Flow::Stop;
        }
        if self.reply.is_settled() {
            self.late += bytes.len();
        }
        for event in self.decoder.feed(bytes) {
            let step = match event {
                Ok(event) => step(
                    &event,
                    &mut self.joiner,
                    &mut self.repeated,
                    &mut self.reply,
                ),
                Err(error) => Some(Err(GatewayError::upstream(error.to_string()))),
            };
            if step.is_some() {
                self.end = step;
                return Flow::Stop;
            }
        }
        match self.reply.is_settled() {
            true if self.late >= MAX_LATE => Flow::Stop,
            true => Flow::UsageOnly,
            false => Flow::Continue,
        }
    }

    /// Ends the model server's stream, with an error if there was one.
    ///
    /// After [`Next::Repair`], the exchange is ready for the next answer.
    pub fn end(&mut self, error: Option<GatewayError>) -> Next {
        let decoder = Decoder::new().limits(self.limits);
        let rest = std::mem::replace(&mut self.decoder, decoder).finish();
        if self.end.is_none()
            && error.is_none()
            && let Ok(Some(event)) = rest
        {
            self.end = step(
                &event,
                &mut self.joiner,
                &mut self.repeated,
                &mut self.reply,
            );
        }
        self.joiner = SurrogateJoiner::default();
        self.late = 0;
        let truncated = || GatewayError::upstream("the model server's answer is incomplete");
        let end = self.end.take();
        let end = end.unwrap_or_else(|| Err(error.unwrap_or_else(truncated)));
        let next = self.reply.end(end);
        self.write_end(next, None)
    }

    fn write_end(&mut self, next: Next, answer: Option<ChatCompletion<'_>>) -> Next {
        match &next {
            Next::Done => {
                let first = self.first.take();
                let first = first.filter(|_| self.counts().failed_repairs > 0);
                if let Some(answer) = first.or(answer) {
                    self.reply.encoder_mut().answer(answer);
                }
                self.reply.encoder_mut().done();
            }
            Next::Failed(error) => self.reply.encoder_mut().error(error),
            Next::Repair(_) if self.first.is_none() => {
                self.first = answer.map(ChatCompletion::into_owned);
            }
            Next::Repair(_) => {}
        }
        next
    }

    /// Takes a complete answer, from a server that does not stream.
    pub fn whole(&mut self, completion: ChatCompletion<'_>) -> Next {
        let next = self.reply.whole(&completion);
        self.write_end(next, Some(completion))
    }

    /// Takes the bytes that can be sent to the client now.
    pub fn take(&mut self) -> Vec<u8> {
        self.reply.encoder_mut().take()
    }

    /// Returns whether output has been produced, so that the status can no longer change.
    pub fn has_begun(&self) -> bool {
        self.reply.encoder().has_begun()
    }

    /// Returns what keeps the connection open, without content, once output has been produced.
    pub fn keep_alive(&self) -> Option<Vec<u8>> {
        let keep_alive = || self.reply.encoder().keep_alive(self.reply.is_holding());
        self.has_begun().then(keep_alive)
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> Counts {
        self.reply.counts()
    }
}

/// Handles one event. Returns the result once the stream has ended.
fn step(
    event: &Event<'_>,
    joiner: &mut SurrogateJoiner,
    repeated: &mut RepeatedChunk,
    reply: &mut Reply,
) -> Option<Result<(), GatewayError>> {
    if event.name.as_deref() == Some("error") {
        let first = event.data.lines().next().unwrap_or_default();
        let chunk = ChatCompletionChunk::read(first).ok().flatten();
        if chunk.is_some_and(|chunk| !chunk.is_error() && !chunk.choices().is_empty()) {
            return Some(Err(GatewayError::upstream(
                "the lines of the model server's event stream have no `data:`",
            )));
        }
        let error = read_error(event.data.as_bytes());
        return Some(Err(GatewayError::from_answer(error)));
    }
    if event.data.trim_ascii().is_empty() {
        return None;
    }
    if let Some(text) = repeated.text(&event.data).filter(|_| !joiner.is_waiting()) {
        return (reply.push_text(text) == Flow::Stop).then_some(Ok(()));
    }
    let data = joiner.join(&event.data);
    match ChatCompletionChunk::read(&data) {
        Ok(Some(chunk)) => {
            repeated.remember(&data, &chunk);
            (reply.push(chunk) == Flow::Stop).then_some(Ok(()))
        }
        Ok(None) => Some(Ok(())),
        Err(error) => Some(Err(GatewayError::unreadable(&error))),
    }
}
