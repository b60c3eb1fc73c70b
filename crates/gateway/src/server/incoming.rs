//! What is done with every request of a client.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
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
pub(super) async fn receive(shared: &Shared, body: Body) -> Result<Vec<u8>, Refusal> {
    let read = read_body(body, shared.config.limits.body);
    let read = tokio::time::timeout(shared.config.timeouts.body, read).await;
    read.unwrap_or_else(|_| {
        let mut refusal = Refusal::request("the body of the request has not come in time", None);
        refusal.status = 408;
        Err(refusal)
    })
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
async fn read_body(mut body: Body, limit: usize) -> Result<Vec<u8>, Refusal> {
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
    let mut read = Vec::with_capacity(least);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
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
