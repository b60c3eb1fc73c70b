//! Responses that are forwarded unchanged.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use plaincall_wire::openai::error_event;

use crate::server::body::{Body, Response};
use crate::server::produced_body::{BodySender, ProducedBody};
use crate::server::report::RequestGuard;
use crate::server::response;
use crate::server::upstream::Answer;

pub(super) fn forward(mut given: Answer, mut guard: RequestGuard) -> Response {
    if has_no_body(given.status()) {
        return forward_head(given, guard);
    }
    let mut response = head(&mut given, Body::default());
    guard.body_permit = None;
    let idle = guard.idle_timeout();
    *response.body_mut() = Body::new(ProducedBody::new(idle, |sender| fill(given, guard, sender)));
    response
}

/// Fills the body of a response until it is complete.
async fn fill(mut given: Answer, mut guard: RequestGuard, sender: BodySender) {
    let status = given.status();
    let is_stream = given.is_event_stream() && given.header(&CONTENT_ENCODING).is_none();
    // The last two bytes, without carriage returns.
    let mut last = *b"\n\n";
    loop {
        match given.piece().await {
            Ok(Some(piece)) => {
                guard.first_piece();
                guard.model_reply(&piece);
                for byte in piece.iter().filter(|byte| **byte != b'\r') {
                    last = [last[1], *byte];
                }
                sender.send(piece).await;
            }
            Ok(None) => {
                guard.end(status, None);
                return sender.complete();
            }
            Err(error) => {
                guard.end(status, Some(&error));
                // An error event can follow a complete event.
                if error.is_shutting_down() && is_stream && last == *b"\n\n" {
                    let mut event = Vec::new();
                    error_event(&error.body, &mut event);
                    sender.send(event.into()).await;
                    sender.complete();
                }
                // Otherwise, the client receives an incomplete body.
                return;
            }
        }
    }
}

fn has_no_body(status: u16) -> bool {
    matches!(status, 204 | 205)
}

/// Forwards only the head of a response, for `HEAD`.
pub(super) fn forward_head(mut given: Answer, mut guard: RequestGuard) -> Response {
    guard.end(given.status(), None);
    let idle = guard.idle_timeout();
    // The length of the body is unknown, so the response has no `content-length`.
    head(&mut given, Body::new(ProducedBody::new(idle, async |_| ())))
}

fn head(given: &mut Answer, body: Body) -> Response {
    let content_type = given
        .header(&CONTENT_TYPE)
        .cloned()
        .unwrap_or(response::JSON);
    let mut response = response::with(given.status(), content_type, body);
    if has_no_body(given.status()) {
        response.headers_mut().remove(CONTENT_TYPE);
    }
    if let Some(encoding) = given.header(&CONTENT_ENCODING) {
        let headers = response.headers_mut();
        headers.insert(CONTENT_ENCODING, encoding.clone());
    }
    response::with_headers(response, std::mem::take(&mut given.headers))
}
