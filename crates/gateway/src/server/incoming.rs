//! What is done with every request of a client.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use hyper::body::Frame;
use plaincall_wire::openai::ErrorObject;

use crate::key::random_word;
use crate::refusal::Refusal;
use crate::server::answer::REQUEST_ID;
use crate::server::headers::for_upstream;
use crate::server::report::Ticket;
use crate::server::upstream::Asking;
use crate::server::{Shared, answer};

/// The longest id of a request that is taken over from a client.
const LONGEST_ID: usize = 128;
/// How long is read what is not wanted of a request.
const LINGER: Duration = Duration::from_secs(1);
/// How much room is made for a body before any of it has come, in bytes.
const ANNOUNCED: usize = 1 << 20;

/// Lets a request in, if there is a place for it.
pub(super) fn admit(
    shared: &Arc<Shared>,
    path: &'static str,
    id: &str,
) -> Result<Ticket, Box<Response>> {
    let place = Arc::clone(&shared.places).try_acquire_owned();
    let is_full = place.is_err();
    let ticket = Ticket::new(Arc::clone(shared), path, id.to_owned(), place.ok());
    if !is_full {
        return Ok(ticket);
    }
    let error = ErrorObject::new(
        "overloaded_error",
        "the gateway has as many requests as it takes: try again soon",
    );
    let mut refusal = Refusal::new(503, error);
    refusal.retry_after = Some("1".to_owned());
    Err(Box::new(refuse(ticket, &refusal)))
}

/// Ends a request with an error.
pub(super) fn refuse(mut ticket: Ticket, refusal: &Refusal) -> Response {
    ticket.end(refusal.status, Some(refusal));
    answer::refused(refusal)
}

/// The body of a request, if it comes in time.
pub(super) async fn receive(
    shared: &Shared,
    headers: &HeaderMap,
    mut body: Body,
) -> Result<Vec<u8>, Refusal> {
    let read = read_body(&mut body, shared.config.limits.body);
    let read = tokio::time::timeout(shared.config.timeouts.body, read).await;
    let Ok(read) = read else {
        let mut refusal = Refusal::request("the body of the request has not come in time", None);
        refusal.status = 408;
        return Err(refusal);
    };
    if read.is_err() {
        discard(shared, headers, body).await;
    }
    read
}

/// Reads for a while what is not wanted of a refused request, at most twice as much as a body may have.
///
/// Many clients listen only when they have sent everything, and a connection that is closed on what nobody has read may
/// take the answer with it. So the client gets the answer, and can use its connection again.
pub(super) async fn discard(shared: &Shared, headers: &HeaderMap, mut body: Body) {
    // Who asks first whether the body is wanted has not sent it.
    if headers.contains_key(EXPECT) {
        return;
    }
    let mut left = shared.config.limits.body.saturating_mul(2);
    let read = async {
        while let Some(Ok(frame)) = next_frame(&mut body).await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(len) else {
                return;
            };
            left = rest;
        }
    };
    let _ = tokio::time::timeout(LINGER, read).await;
}

async fn next_frame(body: &mut Body) -> Option<Result<Frame<Bytes>, axum::Error>> {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

/// The id of a request: the client's, if it can stand in a header and a log, else a new one.
pub(super) fn request_id(headers: &HeaderMap) -> String {
    let given = headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    let is_plain = |id: &&str| {
        !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if let Some(id) = given.filter(is_plain) {
        return id.to_owned();
    }
    // A system without random numbers gives no request a name of its own.
    format!("req_{}", random_word().unwrap_or_default())
}

/// What goes to the model's server beside the body.
pub(super) fn asking(shared: &Shared, headers: &HeaderMap, id: &str) -> Asking {
    let mut headers = for_upstream(headers, shared.keys.is_open());
    headers.insert(REQUEST_ID, header(id));
    Asking { headers }
}

/// An answer with the id of its request.
pub(super) fn within(shared: &Shared, mut response: Response, id: &str) -> Response {
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

/// The body of a request, if it is not too long.
async fn read_body(body: &mut Body, limit: usize) -> Result<Vec<u8>, Refusal> {
    let too_long = || {
        let message = format!("the body of the request has more than {limit} bytes");
        let mut refusal = Refusal::request(message, None);
        refusal.status = 413;
        refusal
    };
    let least = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if least > limit {
        return Err(too_long());
    }
    let mut read = Vec::with_capacity(least.min(ANNOUNCED));
    while let Some(frame) = next_frame(body).await {
        let frame =
            frame.map_err(|_| Refusal::request("the body of the request broke off", None))?;
        if let Ok(piece) = frame.into_data() {
            if read.len() + piece.len() > limit {
                return Err(too_long());
            }
            read.extend_from_slice(&piece);
        }
    }
    Ok(read)
}
