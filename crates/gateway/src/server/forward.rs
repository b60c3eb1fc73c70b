//! Answers that are passed on as they come.

use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::Response;
use plaincall_wire::openai::error_event;

use crate::server::answer;
use crate::server::pipe::pipe;
use crate::server::report::Ticket;
use crate::server::upstream::Answer;

pub(super) fn forward(mut given: Answer, mut ticket: Ticket) -> Response {
    if has_no_body(given.status()) {
        return forward_head(given, ticket);
    }
    let (filler, body) = pipe(ticket.patience());
    let status = given.status();
    let response = head(&mut given, Body::new(body));
    let is_stream = given.is_event_stream() && given.header(&CONTENT_ENCODING).is_none();
    // The last two bytes that are no CR.
    let mut last = *b"\n\n";
    ticket.room = None;
    tokio::spawn(async move {
        loop {
            let piece = tokio::select! {
                piece = given.piece() => piece,
                () = filler.closed() => return,
            };
            match piece {
                Ok(Some(piece)) => {
                    ticket.first_piece();
                    ticket.said(&piece);
                    for byte in piece.iter().filter(|byte| **byte != b'\r') {
                        last = [last[1], *byte];
                    }
                    if !filler.send(piece).await {
                        return;
                    }
                }
                Ok(None) => {
                    ticket.end(status, None);
                    return filler.complete();
                }
                Err(refusal) => {
                    ticket.end(status, Some(&refusal));
                    // An event of ours can stand in a stream behind another one.
                    if refusal.is_shutting_down() && is_stream && last == *b"\n\n" {
                        let mut event = Vec::new();
                        error_event(&refusal.error, &mut event);
                        if filler.send(event.into()).await {
                            filler.complete();
                        }
                    }
                    // Else what has gone out cannot be taken back; the client sees that it broke off.
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

/// Passes on the head of an answer alone, as `HEAD` wants it.
pub(super) fn forward_head(mut given: Answer, mut ticket: Ticket) -> Response {
    ticket.end(given.status(), None);
    // How long the body would be is not known, so that nothing is said of it; nobody asks for this one.
    let (_, body) = pipe(ticket.patience());
    head(&mut given, Body::new(body))
}

fn head(given: &mut Answer, body: Body) -> Response {
    let content_type = given.header(&CONTENT_TYPE).cloned().unwrap_or(answer::JSON);
    let mut response = answer::with(given.status(), content_type, body);
    if has_no_body(given.status()) {
        response.headers_mut().remove(CONTENT_TYPE);
    }
    if let Some(encoding) = given.header(&CONTENT_ENCODING) {
        let headers = response.headers_mut();
        headers.insert(CONTENT_ENCODING, encoding.clone());
    }
    answer::with_headers(response, std::mem::take(&mut given.headers))
}
