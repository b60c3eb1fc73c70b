//! What is done with every request of a client.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::header::{CONNECTION, EXPECT, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request};
use axum::response::Response;
use http_body_util::BodyExt as _;
use plaincall_wire::openai::ErrorObject;
use tokio::sync::OwnedSemaphorePermit;

use crate::refusal::Refusal;
use crate::server::answer::REQUEST_ID;
use crate::server::headers::for_upstream;
use crate::server::outgoing::outgoing;
use crate::server::report::Ticket;
use crate::server::{Shared, answer};

/// The longest id of a request that is taken over from a client.
const LONGEST_ID: usize = 128;
/// How long is read what is not wanted of a request.
const LINGER: Duration = Duration::from_secs(1);
/// What is reported of a path that the gateway does not have: it may be anything, also something secret.
const ELSEWHERE: &str = "other";
/// The status of a request whose body has not come in time.
const TOO_LATE: u16 = 408;

pub(super) struct Entered {
    pub(super) head: Parts,
    pub(super) body: Vec<u8>,
    pub(super) asking: HeaderMap,
    pub(super) ticket: Ticket,
}

/// Handles a request if its client may ask, its head passes this check, there is a place for it and its body comes in
/// time; else the answer says why not. Whoever is refused holds no place. Its path is reported as this one.
pub(super) async fn answered<F: Future<Output = Response>>(
    shared: &Arc<Shared>,
    path: &'static str,
    request: Request<Body>,
    check: fn(&Parts) -> Result<(), Refusal>,
    handle: impl FnOnce(Entered) -> F,
) -> Response {
    let (head, mut body) = request.into_parts();
    let id = request_id(shared, &head.headers);
    let mut ticket = Ticket::new(Arc::clone(shared), path, id.clone());
    let response = match let_in(shared, &head, check, &mut body, &mut ticket).await {
        Ok((body, place)) => {
            ticket.place = Some(Arc::clone(&place));
            let mut asking = for_upstream(&head.headers, shared.config.passes_keys());
            asking.insert(REQUEST_ID, header(&id));
            let entered = Entered {
                head,
                body,
                asking,
                ticket,
            };
            let response = handle(entered).await;
            outgoing(response, shared.config.upstream.key(), place).await
        }
        Err(refusal) => {
            // What has not come in time will not.
            if refusal.status != TOO_LATE {
                discard(shared, &head.headers, body).await;
            }
            refuse(ticket, &refusal)
        }
    };
    within(shared, response, &id)
}

async fn let_in(
    shared: &Shared,
    head: &Parts,
    check: fn(&Parts) -> Result<(), Refusal>,
    body: &mut Body,
    ticket: &mut Ticket,
) -> Result<(Vec<u8>, Arc<OwnedSemaphorePermit>), Refusal> {
    let caller = shared.keys.caller(&head.headers)?;
    ticket.caller(&caller);
    check(head)?;
    let place = Arc::clone(&shared.places).try_acquire_owned();
    let place = place
        .map_err(|_| overloaded("the gateway has as many requests as it takes: try again soon"))?;
    let read = read_body(shared, body, &mut ticket.room);
    let read = tokio::time::timeout(shared.config.timeouts.body, read).await;
    let read = read.unwrap_or_else(|_| {
        let words = "the body of the request has not come in time";
        Err(Refusal::request(words, None).status(TOO_LATE))
    });
    if read.is_err() {
        ticket.room = None;
    }
    Ok((read?, Arc::new(place)))
}

pub(super) fn overloaded(message: &'static str) -> Refusal {
    let mut refusal = Refusal::new(503, ErrorObject::new("overloaded_error", message));
    refusal
        .headers
        .push((RETRY_AFTER.to_string(), "1".to_owned()));
    refusal
}

/// Answers a request that nobody can answer.
pub(super) async fn turn_away(
    shared: &Arc<Shared>,
    request: Request<Body>,
    refusal: &Refusal,
) -> Response {
    let (head, body) = request.into_parts();
    let id = request_id(shared, &head.headers);
    let ticket = Ticket::new(Arc::clone(shared), ELSEWHERE, id.clone());
    discard(shared, &head.headers, body).await;
    within(shared, refuse(ticket, refusal), &id)
}

pub(super) fn refuse(mut ticket: Ticket, refusal: &Refusal) -> Response {
    ticket.end(refusal.status, Some(refusal));
    answer::refused(refusal)
}

/// Reads for a while what is not wanted of a refused request, at most twice as much as a body may have: many clients
/// listen only when they have sent everything.
async fn discard(shared: &Shared, headers: &HeaderMap, mut body: Body) {
    // Who asks first whether the body is wanted has not sent it.
    if headers.contains_key(EXPECT) {
        return;
    }
    let mut left = shared.config.limits.body.saturating_mul(2);
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(len) else {
                return;
            };
            left = rest;
        }
    };
    let _ = tokio::time::timeout(LINGER, read).await;
}

/// The id of a request: the client's, if it can stand in a header and a log, else a new one.
fn request_id(shared: &Shared, headers: &HeaderMap) -> String {
    let given = headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    let is_plain = |id: &&str| {
        !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if let Some(id) = given.filter(is_plain) {
        return id.to_owned();
    }
    format!("req_{}", shared.fresh.word())
}

fn within(shared: &Shared, mut response: Response, id: &str) -> Response {
    response.headers_mut().insert(REQUEST_ID, header(id));
    if shared.is_draining() {
        // Whoever keeps the connection would send the next request when nobody listens any more.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

fn header(id: &str) -> HeaderValue {
    HeaderValue::from_str(id).unwrap_or(HeaderValue::from_static(""))
}

/// The body of a request, if it is not too long and there is room for it.
async fn read_body(
    shared: &Shared,
    body: &mut Body,
    room: &mut Option<OwnedSemaphorePermit>,
) -> Result<Vec<u8>, Refusal> {
    let limit = shared.config.limits.body;
    let too_long = || {
        let message = format!("the body of the request has more than {limit} bytes");
        Refusal::request(message, None).status(413)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_long());
    }
    // A length that is announced is the most that comes.
    let most = body
        .size_hint()
        .exact()
        .map_or(limit, |length| usize::try_from(length).unwrap_or(limit));
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| Refusal::request("the body of the request broke off", None))?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        let length = read.len() + piece.len();
        if length > limit {
            return Err(too_long());
        }
        // Room is taken for the memory that is taken, not for what is announced, which costs a client nothing.
        let grown = match read.capacity() {
            capacity if length <= capacity => capacity,
            capacity => length.max(capacity.saturating_mul(2).min(most)),
        };
        let permits = u32::try_from(grown - read.capacity()).unwrap_or(u32::MAX);
        let more = Arc::clone(&shared.room).try_acquire_many_owned(permits);
        let more = more.map_err(|_| {
            overloaded("the gateway holds as much of requests as it may: try again soon")
        })?;
        match room {
            Some(room) => room.merge(more),
            None => *room = Some(more),
        }
        read.reserve_exact(grown - read.len());
        read.extend_from_slice(&piece);
    }
    Ok(read)
}
