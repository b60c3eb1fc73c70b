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

use crate::error::GatewayError;
use crate::server::filtered_body::outgoing;
use crate::server::forwarded_headers::for_upstream;
use crate::server::report::RequestGuard;
use crate::server::response::REQUEST_ID;
use crate::server::{Shared, response};

/// The longest id of a request that is taken over from a client.
const MAX_ID: usize = 128;
/// How long is read what is not wanted of a request.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);
/// What is reported of a path that the gateway does not have: it may be anything, also something secret.
const UNKNOWN_PATH: &str = "other";
/// The status of a request whose body has not come in time.
const REQUEST_TIMEOUT: u16 = 408;

pub(super) struct AcceptedRequest {
    pub(super) head: Parts,
    pub(super) body: Vec<u8>,
    pub(super) asking: HeaderMap,
    pub(super) guard: RequestGuard,
}

/// Handles a request if its client may ask, its head passes this check, there is a place for it and its body comes in
/// time; else the answer says why not. Whoever is refused holds no place. Its path is reported as this one.
pub(super) async fn with_request<F: Future<Output = Response>>(
    shared: &Arc<Shared>,
    path: &'static str,
    request: Request<Body>,
    check: fn(&Parts) -> Result<(), GatewayError>,
    handle: impl FnOnce(AcceptedRequest) -> F,
) -> Response {
    let (head, mut body) = request.into_parts();
    let id = request_id(shared, &head.headers);
    let mut guard = RequestGuard::new(Arc::clone(shared), path, id.clone());
    let response = match admit(shared, &head, check, &mut body, &mut guard).await {
        Ok((body, place)) => {
            guard.permit = Some(Arc::clone(&place));
            let mut asking = for_upstream(&head.headers, shared.config.forwards_client_keys());
            asking.insert(REQUEST_ID, header(&id));
            let entered = AcceptedRequest {
                head,
                body,
                asking,
                guard,
            };
            let response = handle(entered).await;
            outgoing(response, shared.config.upstream.key(), place).await
        }
        Err(error) => {
            // What has not come in time will not.
            if error.status != REQUEST_TIMEOUT {
                discard(shared, &head.headers, body).await;
            }
            reject(guard, &error)
        }
    };
    within(shared, response, &id)
}

async fn admit(
    shared: &Shared,
    head: &Parts,
    check: fn(&Parts) -> Result<(), GatewayError>,
    body: &mut Body,
    guard: &mut RequestGuard,
) -> Result<(Vec<u8>, Arc<OwnedSemaphorePermit>), GatewayError> {
    let caller = shared.keys.caller(&head.headers)?;
    guard.caller(&caller);
    check(head)?;
    let place = Arc::clone(&shared.places).try_acquire_owned();
    let place = place.map_err(|_| overloaded("too many concurrent requests: try again soon"))?;
    let read = read_body(shared, body, &mut guard.body_permit);
    let read = tokio::time::timeout(shared.config.timeouts.body, read).await;
    let read = read.unwrap_or_else(|_| {
        let words = "timed out while reading the request body";
        Err(GatewayError::invalid_request(words, None).status(REQUEST_TIMEOUT))
    });
    if read.is_err() {
        guard.body_permit = None;
    }
    Ok((read?, Arc::new(place)))
}

pub(super) fn overloaded(message: &'static str) -> GatewayError {
    let mut error = GatewayError::new(503, ErrorObject::new("overloaded_error", message));
    error
        .headers
        .push((RETRY_AFTER.to_string(), "1".to_owned()));
    error
}

/// Answers a request that nobody can answer.
pub(super) async fn reject_unknown_path(
    shared: &Arc<Shared>,
    request: Request<Body>,
    error: &GatewayError,
) -> Response {
    let (head, body) = request.into_parts();
    let id = request_id(shared, &head.headers);
    let guard = RequestGuard::new(Arc::clone(shared), UNKNOWN_PATH, id.clone());
    discard(shared, &head.headers, body).await;
    within(shared, reject(guard, error), &id)
}

pub(super) fn reject(mut guard: RequestGuard, error: &GatewayError) -> Response {
    guard.end(error.status, Some(error));
    response::refused(error)
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
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, read).await;
}

/// The id of a request: the client's, if it can stand in a header and a log, else a new one.
fn request_id(shared: &Shared, headers: &HeaderMap) -> String {
    let given = headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    let is_plain = |id: &&str| {
        !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(|byte| byte.is_ascii_graphic())
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
) -> Result<Vec<u8>, GatewayError> {
    let limit = shared.config.limits.body;
    let too_long = || {
        let message = format!("the request body exceeds {limit} bytes");
        GatewayError::invalid_request(message, None).status(413)
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
        let frame = frame
            .map_err(|_| GatewayError::invalid_request("the request body is incomplete", None))?;
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
        let more = Arc::clone(&shared.body_limits).try_acquire_many_owned(permits);
        let more = more.map_err(|_| overloaded("too many request bytes in use: try again soon"))?;
        match room {
            Some(room) => room.merge(more),
            None => *room = Some(more),
        }
        read.reserve_exact(grown - read.len());
        read.extend_from_slice(&piece);
    }
    Ok(read)
}
