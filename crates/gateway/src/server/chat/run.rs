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

use crate::exchange::Exchange;
use crate::outlet::streamed::StreamedAnswer;
use crate::refusal::Refusal;
use crate::reply::{Flow, Next, Reply};
use crate::server::chat::prepared::Ask;
use crate::server::chat::{answer_id, now};
use crate::server::pipe::{Filler, pipe};
use crate::server::report::Ticket;
use crate::server::upstream::Answer;
use crate::server::{Shared, answer};

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
    ended: Option<Result<(), Refusal>>,
    ticket: Ticket,
}

/// What may still come behind the end of a reply: what it cost.
struct Late {
    wait: Duration,
    /// How much is read, in bytes: comments need not take any time.
    bytes: usize,
}

impl Late {
    /// The next piece, if it may come. How long the client takes to read does not count.
    async fn piece(&mut self, given: &mut Answer) -> Result<Option<Bytes>, Refusal> {
        if self.bytes == 0 {
            return Ok(None);
        }
        let begun = Instant::now();
        let piece = timeout(self.wait, given.piece())
            .await
            .unwrap_or(Ok(None))?;
        self.wait = self.wait.saturating_sub(begun.elapsed());
        let length = piece.as_ref().map_or(0, Bytes::len);
        self.bytes = self.bytes.saturating_sub(length);
        Ok(piece)
    }
}

impl Run {
    pub(super) fn new(shared: Arc<Shared>, ask: Ask, asking: HeaderMap, ticket: Ticket) -> Self {
        let seed = shared.fresh.seed();
        let answer = StreamedAnswer::new(answer_id(&seed), now(), ask.plan.includes_usage());
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
            ticket,
        }
    }

    /// The next bytes for the client, which may be none yet; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended.is_some() {
            return None;
        }
        if let Err(refusal) = self.step().await {
            self.conclude(Some(refusal));
        }
        self.ticket.report.counts = self.exchange.counts();
        if self.body.is_none() && !self.exchange.reply.may_ask_again() {
            self.request = ChatCompletionRequest::default();
            if !self.exchange.reply.keeps_texts() {
                self.ticket.room = None;
            }
        }
        let bytes = self.exchange.take();
        if !bytes.is_empty() {
            self.ticket.first_piece();
            self.ticket.given(&bytes);
        }
        Some(bytes.into())
    }

    async fn step(&mut self) -> Result<(), Refusal> {
        if let Some(body) = self.body.take() {
            self.ticket.asked(&body);
            let given = self.shared.connection.complete(body, &self.asking).await?;
            let mut given = given.readable()?;
            // A later answer tells of limits that are nearer.
            self.headers = std::mem::take(&mut given.headers);
            if given.is_json() {
                // A server that does not stream.
                let body = given.whole(self.shared.config.limits.answer).await?;
                self.ticket.said(&body);
                let completion: ChatCompletion<'_> =
                    plaincall_wire::read(&body).map_err(|error| Refusal::unreadable(&error))?;
                let next = self.exchange.whole(&completion);
                self.follow(next);
            } else {
                self.given = Some(given);
            }
            return Ok(());
        }
        let Some(given) = &mut self.given else {
            return Err(Refusal::upstream("there is no answer"));
        };
        let piece = match &mut self.late {
            None => given.piece().await?,
            Some(late) => late.piece(given).await?,
        };
        let is_over = match piece {
            Some(piece) => {
                self.ticket.said(&piece);
                match self.exchange.feed(&piece) {
                    Flow::Go => false,
                    Flow::Over => true,
                    Flow::Late => {
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

    fn conclude(&mut self, broken: Option<Refusal>) {
        // What still comes of it is not wanted.
        self.given = None;
        self.late = None;
        let next = self.exchange.end(broken);
        self.follow(next);
    }

    fn follow(&mut self, next: Next) {
        match next {
            Next::Done => self.ended = Some(Ok(())),
            Next::Failed(refusal) => self.ended = Some(Err(refusal)),
            Next::Again(round) => {
                round.add_to(&mut self.request);
                self.body = Some(plaincall_wire::write_bytes(&self.request));
            }
        }
    }

    fn end(mut self, status: u16) {
        let error = match &self.ended {
            Some(Err(refusal)) => Some(refusal),
            _ => None,
        };
        self.ticket.end(status, error);
    }
}

/// The headers of an answer that has begun, or why there is none.
type Begun = Result<HeaderMap, Refusal>;

/// Answers with a stream, once it has begun. What fails before has a status of its own.
pub(super) async fn stream(run: Run) -> Response {
    let (head, is_begun) = oneshot::channel();
    let (filler, body) = pipe(run.shared.config.timeouts.idle);
    tokio::spawn(fill(run, head, filler));
    match is_begun.await {
        Ok(Ok(headers)) => answer::with_headers(answer::stream(Body::new(body)), headers),
        Ok(Err(refusal)) => answer::refused(&refusal),
        Err(_) => answer::refused(&Refusal::upstream("the answer could not be made")),
    }
}

/// Fills the body of an answer until it is complete or the client has gone.
async fn fill(mut run: Run, head: oneshot::Sender<Begun>, filler: Filler) {
    let mut head = Some(head);
    let keep_alive = run.shared.config.timeouts.keep_alive;
    let mut silent_until = Instant::now() + keep_alive;
    let mut comment = Vec::new();
    encode_comment("still there", &mut comment);
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
                        if !filler.send(still_there.clone().into()).await {
                            return;
                        }
                        silent_until = Instant::now() + keep_alive;
                    }
                    piece = &mut next => break piece,
                    // The client has gone: with this all that was asked for is dropped.
                    () = filler.closed() => return,
                }
            }
        };
        if piece.as_ref().is_some_and(Bytes::is_empty) && run.ended.is_none() {
            continue;
        }
        if let Some(head) = head.take() {
            if let (Some(Err(refusal)), false) = (&run.ended, run.exchange.has_begun()) {
                let status = refusal.status;
                // Who has gone at this very moment has not heard of it.
                if head.send(Err(refusal.clone())).is_ok() {
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
            return filler.complete();
        };
        if !filler.send(piece).await {
            return;
        }
        silent_until = Instant::now() + keep_alive;
    }
}
