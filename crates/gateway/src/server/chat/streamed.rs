//! Streamed responses.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use crate::adapter::{AskEnd, Asked};
use crate::error::GatewayError;
use crate::reply::{Flow, USAGE_WAIT};
use crate::server::body::{Body, Response};
use crate::server::chat::prepare::read_reply;
use crate::server::constrained::ConstrainedRequest;
use crate::server::produced_body::{BodySender, ProducedBody};
use crate::server::report::RequestGuard;
use crate::server::upstream::Answer;
use crate::server::{Shared, response};

pub(super) struct Run {
    shared: Arc<Shared>,
    request: ConstrainedRequest,
    /// Whether the request must be sent next.
    is_asking: bool,
    upstream_headers: HeaderMap,
    answer: Option<Answer>,
    /// The time to wait for the usage, once the reply has ended.
    late: Option<Duration>,
    /// The model server's headers for the client.
    headers: HeaderMap,
    /// The result, once the reply has ended.
    ended: Option<Result<(), GatewayError>>,
    guard: RequestGuard,
}

/// Returns the next piece after the end of a reply. The time that the client needs to read does not count.
async fn late_piece(
    answer: &mut Answer,
    wait: &mut Duration,
) -> Result<Option<Bytes>, GatewayError> {
    let started = Instant::now();
    let piece = timeout(*wait, answer.piece()).await.unwrap_or(Ok(None));
    *wait = wait.saturating_sub(started.elapsed());
    piece
}

impl Run {
    pub(super) fn new(
        shared: Arc<Shared>,
        request: ConstrainedRequest,
        upstream_headers: HeaderMap,
        guard: RequestGuard,
    ) -> Self {
        Self {
            shared,
            request,
            is_asking: true,
            upstream_headers,
            answer: None,
            late: None,
            headers: HeaderMap::new(),
            ended: None,
            guard,
        }
    }

    /// Returns the next bytes for the client, which may be empty, or `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended.is_some() {
            return None;
        }
        if let Err(error) = self.step().await {
            self.conclude(0, move |asked| asked.end(Some(error))).await;
        }
        let mut asked = self.request.asked.lock().await;
        self.guard.report.counts = asked.counts();
        if !self.is_asking && !asked.free() {
            self.guard.body_permit = None;
        }
        let bytes = asked.take();
        drop(asked);
        if !bytes.is_empty() {
            self.guard.first_piece();
            self.guard.client_reply(&bytes);
        }
        Some(bytes.into())
    }

    async fn step(&mut self) -> Result<(), GatewayError> {
        if std::mem::take(&mut self.is_asking) {
            let sent = self.request.send(&self.upstream_headers, &mut self.guard);
            let answer = sent.await?;
            let mut answer = answer.readable()?;
            // The latest answer has the current rate limits.
            self.headers = std::mem::take(&mut answer.headers);
            // Some servers do not stream.
            let mut asked = self.request.asked.lock().await;
            asked.begin_answer(!answer.is_json());
            drop(asked);
            if answer.is_json() {
                let body = answer.whole(self.shared.config.limits.answer).await?;
                self.guard.model_reply(&body);
                let length = body.len();
                self.conclude(length, move |asked| asked.whole(&body)).await;
            } else {
                self.answer = Some(answer);
            }
            return Ok(());
        }
        let Some(answer) = &mut self.answer else {
            return Err(GatewayError::upstream(
                "the model server returned no answer",
            ));
        };
        let piece = match &mut self.late {
            None => answer.piece().await?,
            Some(wait) => late_piece(answer, wait).await?,
        };
        let has_ended = match piece {
            Some(piece) => {
                self.guard.model_reply(&piece);
                let (asked, length) = (&self.request.asked, piece.len());
                let read = read_reply(&self.shared, asked, length, move |asked| asked.feed(&piece));
                match read.await? {
                    Flow::Continue => false,
                    Flow::Stop => true,
                    Flow::UsageOnly => {
                        self.late.get_or_insert(USAGE_WAIT);
                        false
                    }
                }
            }
            None => true,
        };
        if has_ended {
            self.conclude(0, |asked| asked.end(None)).await;
        }
        Ok(())
    }

    /// Ends the answer with the last bytes, so many.
    async fn conclude(
        &mut self,
        bytes: usize,
        end: impl FnOnce(&mut Asked) -> AskEnd + Send + 'static,
    ) {
        // Drops the rest of the answer.
        self.answer = None;
        self.late = None;
        let elapsed = self.guard.elapsed();
        let end = move |asked: &mut Asked| {
            asked.elapsed(elapsed);
            end(asked)
        };
        let read = read_reply(&self.shared, &self.request.asked, bytes, end);
        match read.await.unwrap_or_else(AskEnd::Refused) {
            AskEnd::Done => self.ended = Some(Ok(())),
            AskEnd::Refused(error) => self.ended = Some(Err(error)),
            AskEnd::Again => self.is_asking = true,
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

/// The headers of a response that has started, or the error.
type Head = Result<HeaderMap, GatewayError>;

/// Responds with a stream once it has started. Errors before that have their own status.
pub(super) async fn stream(run: Run) -> Response {
    let api = run.guard.api;
    let id = run.guard.report.request_id.clone();
    let (head, is_started) = oneshot::channel();
    let idle = run.shared.config.timeouts.idle;
    let mut body = ProducedBody::unstarted(idle, |sender| fill(run, head, sender));
    match body.started(is_started).await {
        Ok(Ok(headers)) => response::with_headers(response::stream(api, Body::new(body)), headers),
        Ok(Err(error)) => response::error(api, &error, &id),
        Err(_) => {
            let words = "the response could not be created";
            response::error(api, &GatewayError::upstream(words), &id)
        }
    }
}

/// Fills the body of a response until it is complete.
async fn fill(mut run: Run, head: oneshot::Sender<Head>, sender: BodySender) {
    let mut head = Some(head);
    let api = run.guard.api;
    let keep_alive = run.shared.config.timeouts.keep_alive;
    let mut next_heartbeat = Instant::now() + keep_alive;
    // One timer for the whole stream. It is moved only when it has elapsed.
    let mut timer = pin!(sleep_until(next_heartbeat));
    let asked = Arc::clone(&run.request.asked);
    loop {
        let piece = {
            let mut next = pin!(run.next());
            loop {
                tokio::select! {
                    biased;
                    () = timer.as_mut() => {
                        if next_heartbeat <= Instant::now() {
                            if let Some(head) = head.take() {
                                let _ = head.send(Ok(HeaderMap::new()));
                            }
                            // A reply that is being read at this moment gets what the API ignores.
                            let heartbeat = asked.try_lock().ok().and_then(|asked| asked.keep_alive());
                            let heartbeat = heartbeat.unwrap_or_else(|| api.keep_alive());
                            sender.send(heartbeat.into()).await;
                            next_heartbeat = Instant::now() + keep_alive;
                        }
                        timer.as_mut().reset(next_heartbeat);
                    }
                    piece = &mut next => break piece,
                }
            }
        };
        if piece.as_ref().is_some_and(Bytes::is_empty) && run.ended.is_none() {
            sender.waits();
            continue;
        }
        if let Some(head) = head.take() {
            let has_begun = run.request.asked.lock().await.has_begun();
            if let (Some(Err(error)), false) = (&run.ended, has_begun) {
                let status = error.status;
                // A client that disconnects at this moment does not receive the error.
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
        sender.send(piece).await;
        next_heartbeat = Instant::now() + keep_alive;
    }
}
