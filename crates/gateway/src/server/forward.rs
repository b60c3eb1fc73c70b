//! Responses that are forwarded unchanged.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use plaincall_wire::openai::error_event;

use crate::server::body::{Body, Response};
use crate::server::pipe::pipe;
use crate::server::report::RequestGuard;
use crate::server::response;
use crate::server::upstream::Answer;

pub(super) fn forward(mut given: Answer, mut guard: RequestGuard) -> Response {
    if has_no_body(given.status()) {
        return forward_head(given, guard);
    }
    let (sender, body) = pipe(guard.idle_timeout());
    let status = given.status();
    let response = head(&mut given, Body::new(body));
    let is_stream = given.is_event_stream() && given.header(&CONTENT_ENCODING).is_none();
    // The last two bytes, without carriage returns.
    let mut last = *b"\n\n";
    guard.body_permit = None;
    tokio::spawn(async move {
        loop {
            let piece = tokio::select! {
                piece = given.piece() => piece,
                () = sender.closed() => return,
            };
            match piece {
                Ok(Some(piece)) => {
                    guard.first_piece();
                    guard.model_reply(&piece);
                    for byte in piece.iter().filter(|byte| **byte != b'\r') {
                        last = [last[1], *byte];
                    }
                    if !sender.send(piece).await {
                        return;
                    }
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
                        if sender.send(event.into()).await {
                            sender.complete();
                        }
                    }
                    // Otherwise, dropping the sender truncates the body, which the client notices.
                    return;
                }
            }
        }
    });
    response
}

fn has_no_body(status: u16) -> bool {
    matches!(status, 204 | 205)
}

/// Forwards only the head of a response, for `HEAD`.
pub(super) fn forward_head(mut given: Answer, mut guard: RequestGuard) -> Response {
    guard.end(given.status(), None);
    // The length of the body is unknown, so the response has no `content-length`.
    let (_, body) = pipe(guard.idle_timeout());
    head(&mut given, Body::new(body))
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
