//! The handling that all requests of clients share.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use plaincall_wire::openai::ErrorObject;
use tokio::sync::OwnedSemaphorePermit;

use crate::api::ClientApi;
use crate::error::GatewayError;
use crate::server::body::{Body, Response};
use crate::server::endpoint::{Endpoint, UNKNOWN};
use crate::server::filtered_body::filtered;
use crate::server::forwarded_headers::for_upstream;
use crate::server::key_limits::RequestPermit;
use crate::server::report::RequestGuard;
use crate::server::response::{ANTHROPIC_REQUEST_ID, REQUEST_ID};
use crate::server::{Shared, response};

/// The longest request id that is accepted from a client.
const MAX_ID: usize = 128;
/// How long an unused request body is read.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);
/// The status if the body does not arrive in time.
const REQUEST_TIMEOUT: u16 = 408;

pub(super) struct AcceptedRequest {
    pub(super) head: Parts,
    pub(super) body: Vec<u8>,
    /// The headers for the model server.
    pub(super) upstream_headers: HeaderMap,
    pub(super) guard: RequestGuard,
}

/// Handles a request if its client is authorized, its head passes `check`, the limits allow it and its body arrives in time;
/// otherwise responds with an error. Only accepted requests count towards the limit.
pub(super) async fn with_request<F: Future<Output = Response>>(
    shared: &Arc<Shared>,
    endpoint: Endpoint,
    request: Request<Body>,
    check: fn(&Parts) -> Result<(), GatewayError>,
    handle: impl FnOnce(AcceptedRequest) -> F,
) -> Response {
    let (head, mut body) = request.into_parts();
    let id = request_id(shared, &head.headers);
    let (path, api) = (endpoint.path(), endpoint.api(&head.headers));
    let mut guard = RequestGuard::new(Arc::clone(shared), path, api, id.clone());
    let response = match admit(shared, &head, check, &mut body, &mut guard).await {
        Ok((body, permit)) => {
            guard.permit = Some(Arc::clone(&permit));
            // The connection decides whether the key is sent.
            let mut upstream_headers = for_upstream(&head.headers, shared.keys.is_open());
            upstream_headers.insert(REQUEST_ID, header(&id));
            let accepted = AcceptedRequest {
                head,
                body,
                upstream_headers,
                guard,
            };
            let response = handle(accepted).await;
            filtered(api, response, &shared.own_keys, permit, &id).await
        }
        Err(error) => {
            // Reading on after a timeout would be of no use.
            if error.status != REQUEST_TIMEOUT {
                discard(shared, &head.headers, body).await;
            }
            reject(guard, &error)
        }
    };
    finished(shared, response, &id)
}

async fn admit(
    shared: &Shared,
    head: &Parts,
    check: fn(&Parts) -> Result<(), GatewayError>,
    body: &mut Body,
    guard: &mut RequestGuard,
) -> Result<(Vec<u8>, Arc<RequestPermit>), GatewayError> {
    let caller = shared.keys.caller(&head.headers)?;
    guard.caller(&caller);
    check(head)?;
    let permit = Arc::clone(&shared.process.requests).try_acquire_owned();
    let permit = permit.map_err(|_| overloaded("too many concurrent requests: try again soon"))?;
    let permit = RequestPermit {
        _request: permit,
        _key: caller.begin()?,
    };
    let read = read_body(shared, body, &mut guard.body_permit);
    let read = tokio::time::timeout(shared.config.timeouts.body, read).await;
    let read = read.unwrap_or_else(|_| {
        let words = "timed out while reading the request body";
        Err(GatewayError::invalid_request(words, None).status(REQUEST_TIMEOUT))
    });
    if read.is_err() {
        guard.body_permit = None;
    }
    Ok((read?, Arc::new(permit)))
}

pub(super) fn overloaded(message: &'static str) -> GatewayError {
    GatewayError::new(503, ErrorObject::new("overloaded_error", message)).retry_after(1)
}

/// Responds with an error to a request that reaches no endpoint.
pub(super) async fn reject_unread(
    shared: &Arc<Shared>,
    request: Request<Body>,
    api: ClientApi,
    error: &GatewayError,
) -> Response {
    let (head, body) = request.into_parts();
    let id = request_id(shared, &head.headers);
    let guard = RequestGuard::new(Arc::clone(shared), UNKNOWN, api, id.clone());
    discard(shared, &head.headers, body).await;
    finished(shared, reject(guard, error), &id)
}

pub(super) fn reject(mut guard: RequestGuard, error: &GatewayError) -> Response {
    guard.end(error.status, Some(error));
    response::error(guard.api, error, &guard.report.request_id)
}

/// Reads and drops the body of a rejected request for a short time, up to twice the size limit: many clients read the response
/// only after they have sent everything.
async fn discard(shared: &Shared, headers: &HeaderMap, mut body: Body) {
    // A client with `expect: 100-continue` has not sent the body yet.
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

/// Returns the client's request id if it is valid in a header and a log, otherwise a new one.
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
    shared.process.fresh.request_id()
}

fn finished(shared: &Shared, mut response: Response, id: &str) -> Response {
    for name in [REQUEST_ID, ANTHROPIC_REQUEST_ID] {
        response.headers_mut().insert(name, header(id));
    }
    if shared.is_draining() {
        // The next request on this connection could arrive after the server has stopped.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

fn header(id: &str) -> HeaderValue {
    HeaderValue::from_str(id).unwrap_or(HeaderValue::from_static(""))
}

/// Reads the body of a request within the limits for one body and for all bodies.
async fn read_body(
    shared: &Shared,
    body: &mut Body,
    permit: &mut Option<OwnedSemaphorePermit>,
) -> Result<Vec<u8>, GatewayError> {
    let limit = shared.config.limits.body;
    let too_long = || {
        let message = format!("the request body exceeds {limit} bytes");
        GatewayError::invalid_request(message, None).status(413)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_long());
    }
    // A declared length is an upper limit.
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
        // Permits are taken for allocated memory, not for the declared length, which costs a client nothing.
        let grown = match read.capacity() {
            capacity if length <= capacity => capacity,
            capacity => length.max(capacity.saturating_mul(2).min(most)),
        };
        let permits = u32::try_from(grown - read.capacity()).unwrap_or(u32::MAX);
        let more = Arc::clone(&shared.process.body_limits).try_acquire_many_owned(permits);
        let more = more.map_err(|_| overloaded("too many request bytes in use: try again soon"))?;
        match permit {
            Some(permit) => permit.merge(more),
            None => *permit = Some(more),
        }
        read.reserve_exact(grown - read.len());
        read.extend_from_slice(&piece);
    }
    Ok(read)
}
