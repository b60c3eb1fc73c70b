//! The body of an answer on its way through the filter.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::Response;
use hyper::body::Frame;

use crate::body_filter::{BodyFilter, BodyKind};
use crate::refusal::{Refusal, SHORTEST_KEY};
use crate::server::answer;

/// An answer in which the gateway's key stands nowhere, and which clients can read: see [`BodyFilter`].
pub(super) async fn filtered(response: Response, key: Option<&str>) -> Response {
    let (mut head, body) = response.into_parts();
    if let Some(key) = key.filter(|key| key.len() >= SHORTEST_KEY) {
        let holds_key = |value: &HeaderValue| {
            let mut parts = value.as_bytes().windows(key.len());
            parts.any(|part| part == key.as_bytes())
        };
        let with_key = head.headers.iter().filter(|(_, value)| holds_key(value));
        let with_key: Vec<_> = with_key.map(|(name, _)| name.clone()).collect();
        for name in with_key {
            head.headers.remove(name);
        }
    }
    let content_type = head.headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().trim().to_ascii_lowercase();
    let encoding = head.headers.get(CONTENT_ENCODING);
    let kind = if encoding.is_some_and(|encoding| encoding != "identity") {
        // It cannot be read, and what looks like a text in it is none.
        BodyKind::Other
    } else if content_type.starts_with("text/event-stream") {
        BodyKind::Events
    } else if content_type.starts_with("application/json") {
        BodyKind::Json
    } else {
        BodyKind::Other
    };
    let Some(mut filter) = BodyFilter::new(key, kind) else {
        return Response::from_parts(head, body);
    };
    if body.size_hint().exact().is_none() {
        let body = Filtered {
            body,
            filter: Some(filter),
        };
        return Response::from_parts(head, Body::new(body));
    }
    // A body whose length is known is there already, and its length shall be told.
    match to_bytes(body, usize::MAX).await {
        Ok(whole) => {
            let mut bytes = filter.feed(&whole);
            bytes.extend(filter.finish());
            Response::from_parts(head, Body::from(bytes))
        }
        Err(_) => answer::refused(&Refusal::upstream("the answer could not be made")),
    }
}

/// A body whose pieces go through a filter.
struct Filtered {
    body: Body,
    /// Nothing behind the end.
    filter: Option<BodyFilter>,
}

impl HttpBody for Filtered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            let filtered = &mut *self;
            let Some(filter) = &mut filtered.filter else {
                return Poll::Ready(None);
            };
            let next = ready!(Pin::new(&mut filtered.body).poll_frame(context));
            let bytes = match next.map(|next| next.map(Frame::into_data)) {
                Some(Ok(Ok(piece))) => filter.feed(&piece),
                Some(Ok(Err(frame))) => return Poll::Ready(Some(Ok(frame))),
                // What is held back is not sent: nobody shall take a part for the whole.
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    let rest = filter.finish();
                    filtered.filter = None;
                    if rest.is_empty() {
                        return Poll::Ready(None);
                    }
                    rest
                }
            };
            if !bytes.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.filter.is_none()
    }
}
