//! Answers that come piece by piece.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::Response;
use plaincall_wire::openai::{ChatCompletion, ChatCompletionRequest};
use plaincall_wire::sse::encode_comment;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use crate::error::GatewayError;
use crate::exchange::Exchange;
use crate::reply::{Flow, Next, Reply};
use crate::server::chat::prepare::Ask;
use crate::server::chat::{answer_id, now};
use crate::server::pipe::{BodySender, pipe};
use crate::server::report::RequestGuard;
use crate::server::upstream::Answer;
use crate::server::{Shared, response};
use crate::sink::streamed::StreamedResponse;

const LATE: Late = Late {
    wait: Duration::from_secs(5),
    bytes: 64 << 10,
};

pub(super) struct Run {
    shared: Arc<Shared>,
    /// The request, if it may be needed again.
    request: ChatCompletionRequest<'static>,
    body: Option<Vec<u8>>,
    asking: HeaderMap,
    exchange: Exchange,
    given: Option<Answer>,
    /// What may still come behind the end of the reply, if that has come.
    late: Option<Late>,
    /// What else the client is told of the answer.
    headers: HeaderMap,
    /// What is left to say when it has ended.
    ended: Option<Result<(), GatewayError>>,
    guard: RequestGuard,
}

/// What may still come behind the end of a reply: what it cost.
struct Late {
    wait: Duration,
    /// How much is read, in bytes: comments need not take any time.
    bytes: usize,
}

impl Late {
    /// The next piece, if it may come. How long the client takes to read does not count.
    async fn piece(&mut self, given: &mut Answer) -> Result<Option<Bytes>, GatewayError> {
        if self.bytes == 0 {
            return Ok(None);
        }
        let started = Instant::now();
        let piece = timeout(self.wait, given.piece())
            .await
            .unwrap_or(Ok(None))?;
        self.wait = self.wait.saturating_sub(started.elapsed());
        let length = piece.as_ref().map_or(0, Bytes::len);
        self.bytes = self.bytes.saturating_sub(length);
        Ok(piece)
    }
}

impl Run {
    pub(super) fn new(
        shared: Arc<Shared>,
        ask: Ask,
        asking: HeaderMap,
        guard: RequestGuard,
    ) -> Self {
        let seed = shared.fresh.seed();
        let answer = StreamedResponse::new(answer_id(&seed), now(), ask.plan.includes_usage());
        let reply = Reply::new(*ask.plan, seed, answer);
        let limits = shared.config.limits.stream;
        Self {
            exchange: Exchange::new(reply, limits),
            shared,
            request: *ask.kept,
            body: Some(ask.body),
            asking,
            given: None,
            late: None,
            headers: HeaderMap::new(),
            ended: None,
            guard,
        }
    }

    /// The next bytes for the client, which may be none yet; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended.is_some() {
            return None;
        }
        if let Err(error) = self.step().await {
            self.conclude(Some(error));
        }
        self.guard.report.counts = self.exchange.counts();
        if self.body.is_none() && !self.exchange.reply.may_ask_again() {
            self.request = ChatCompletionRequest::default();
            if !self.exchange.reply.keeps_texts() {
                self.guard.body_permit = None;
            }
        }
        let bytes = self.exchange.take();
        if !bytes.is_empty() {
            self.guard.first_piece();
            self.guard.client_reply(&bytes);
        }
        Some(bytes.into())
    }

    async fn step(&mut self) -> Result<(), GatewayError> {
        if let Some(body) = self.body.take() {
            self.guard.model_request(&body);
            let given = self.shared.connection.complete(body, &self.asking).await?;
            let mut given = given.readable()?;
            // A later answer tells of limits that are nearer.
            self.headers = std::mem::take(&mut given.headers);
            if given.is_json() {
                // A server that does not stream.
                let body = given.whole(self.shared.config.limits.answer).await?;
                self.guard.model_reply(&body);
                let completion: ChatCompletion<'_> = plaincall_wire::read(&body)
                    .map_err(|error| GatewayError::unreadable(&error))?;
                let next = self.exchange.whole(&completion);
                self.follow(next);
            } else {
                self.given = Some(given);
            }
            return Ok(());
        }
        let Some(given) = &mut self.given else {
            return Err(GatewayError::upstream("there is no answer"));
        };
        let piece = match &mut self.late {
            None => given.piece().await?,
            Some(late) => late.piece(given).await?,
        };
        let is_over = match piece {
            Some(piece) => {
                self.guard.model_reply(&piece);
                match self.exchange.feed(&piece) {
                    Flow::Continue => false,
                    Flow::Stop => true,
                    Flow::UsageOnly => {
                        self.late.get_or_insert(LATE);
                        false
                    }
                }
            }
            None => true,
        };
        if is_over {
            self.conclude(None);
        }
        Ok(())
    }

    fn conclude(&mut self, broken: Option<GatewayError>) {
        // What still comes of it is not wanted.
        self.given = None;
        self.late = None;
        let next = self.exchange.end(broken);
        self.follow(next);
    }

    fn follow(&mut self, next: Next) {
        match next {
            Next::Done => self.ended = Some(Ok(())),
            Next::Failed(error) => self.ended = Some(Err(error)),
            Next::Repair(round) => {
                round.add_to(&mut self.request);
                self.body = Some(plaincall_wire::write_bytes(&self.request));
            }
        }
    }

    fn end(mut self, status: u16) {
        let error = match &self.ended {
            Some(Err(error)) => Some(error),
            _ => None,
        };
        self.guard.end(status, error);
    }
}

/// The headers of an answer that has started, or why there is none.
type Begun = Result<HeaderMap, GatewayError>;

/// Answers with a stream, once it has started. What fails before has a status of its own.
pub(super) async fn stream(run: Run) -> Response {
    let (head, is_started) = oneshot::channel();
    let (sender, body) = pipe(run.shared.config.timeouts.idle);
    tokio::spawn(fill(run, head, sender));
    match is_started.await {
        Ok(Ok(headers)) => response::with_headers(response::stream(Body::new(body)), headers),
        Ok(Err(error)) => response::refused(&error),
        Err(_) => response::refused(&GatewayError::upstream("the response could not be created")),
    }
}

/// Fills the body of an answer until it is complete or the client has gone.
async fn fill(mut run: Run, head: oneshot::Sender<Begun>, sender: BodySender) {
    let mut head = Some(head);
    let keep_alive = run.shared.config.timeouts.keep_alive;
    let mut silent_until = Instant::now() + keep_alive;
    let mut comment = Vec::new();
    encode_comment("keep-alive", &mut comment);
    loop {
        // What tells the client that it is not forgotten. A comment is not enough for those that wait for chunks.
        let still_there = run.exchange.empty_delta();
        let still_there = still_there.unwrap_or_else(|| comment.clone());
        let piece = {
            let mut next = pin!(run.next());
            loop {
                tokio::select! {
                    biased;
                    () = sleep_until(silent_until) => {
                        if let Some(head) = head.take() {
                            let _ = head.send(Ok(HeaderMap::new()));
                        }
                        if !sender.send(still_there.clone().into()).await {
                            return;
                        }
                        silent_until = Instant::now() + keep_alive;
                    }
                    piece = &mut next => break piece,
                    // The client has gone: with this all that was asked for is dropped.
                    () = sender.closed() => return,
                }
            }
        };
        if piece.as_ref().is_some_and(Bytes::is_empty) && run.ended.is_none() {
            continue;
        }
        if let Some(head) = head.take() {
            if let (Some(Err(error)), false) = (&run.ended, run.exchange.has_begun()) {
                let status = error.status;
                // Who has gone at this very moment has not recorded of it.
                if head.send(Err(error.clone())).is_ok() {
                    run.end(status);
                }
                return;
            }
            if head.send(Ok(std::mem::take(&mut run.headers))).is_err() {
                return;
            }
        }
        let Some(piece) = piece else {
            run.end(200);
            return sender.complete();
        };
        if !sender.send(piece).await {
            return;
        }
        silent_until = Instant::now() + keep_alive;
    }
}
