//! The body of an answer on its way to the client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use crate::error::GatewayError;
use crate::server::body_filter::{BodyFilter, BodyKind, MIN_KEY};
use crate::server::pipe::PIECE;
use crate::server::response;

/// An answer in which the gateway's key stands nowhere, and which clients can read: see [`BodyFilter`]. Its body keeps
/// the place of its request until it has been taken or dropped.
pub(super) async fn outgoing(
    mut response: Response,
    key: Option<&str>,
    place: Arc<OwnedSemaphorePermit>,
) -> Response {
    let headers = response.headers_mut();
    if let Some(key) = key.filter(|key| key.len() >= MIN_KEY) {
        let holds_key = |value: &[u8]| value.windows(key.len()).any(|part| part == key.as_bytes());
        let with_key = headers
            .iter()
            .filter(|(_, value)| holds_key(value.as_bytes()));
        let with_key: Vec<_> = with_key.map(|(name, _)| name.clone()).collect();
        for name in with_key {
            headers.remove(name);
        }
    }
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let content_type = text(CONTENT_TYPE).unwrap_or_default().trim();
    let content_type = content_type.to_ascii_lowercase();
    let kind = match text(CONTENT_ENCODING) {
        // It cannot be read, and what looks like a text in it is none.
        Some(encoding) if encoding != "identity" => BodyKind::Other,
        _ if content_type.starts_with("text/event-stream") => BodyKind::Events,
        _ if content_type.starts_with("application/json") => BodyKind::Json,
        _ => BodyKind::Other,
    };
    let (head, mut body) = response.into_parts();
    let mut filter = BodyFilter::new(key, kind);
    // A body whose length is known is there already, and its length shall be known.
    if body.size_hint().exact().is_some()
        && let Some(mut filter) = filter.take()
    {
        let Ok(whole) = to_bytes(body, usize::MAX).await else {
            return response::refused(&GatewayError::upstream("the response could not be created"));
        };
        let mut bytes = filter.feed(&whole);
        bytes.extend(filter.finish());
        body = Body::from(bytes);
    }
    let body = Outgoing {
        body,
        filter,
        is_over: false,
        rest: Bytes::new(),
        _place: place,
    };
    Response::from_parts(head, Body::new(body))
}

/// It gives pieces of [`PIECE`] bytes at most, which `hyper` takes only as the client reads.
struct Outgoing {
    body: Body,
    filter: Option<BodyFilter>,
    is_over: bool,
    /// What of a piece has not been taken.
    rest: Bytes,
    _place: Arc<OwnedSemaphorePermit>,
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        while this.rest.is_empty() {
            if this.is_over {
                return Poll::Ready(None);
            }
            let next = ready!(Pin::new(&mut this.body).poll_frame(context));
            this.rest = match (
                next.map(|next| next.map(Frame::into_data)),
                &mut this.filter,
            ) {
                (Some(Ok(Ok(piece))), Some(filter)) => filter.feed(&piece).into(),
                (Some(Ok(Ok(piece))), None) => piece,
                (Some(Ok(Err(frame))), _) => return Poll::Ready(Some(Ok(frame))),
                // What is held back is not sent: nobody shall take a part for the whole.
                (Some(Err(error)), _) => return Poll::Ready(Some(Err(error))),
                (None, filter) => {
                    this.is_over = true;
                    filter
                        .as_mut()
                        .map(BodyFilter::finish)
                        .unwrap_or_default()
                        .into()
                }
            };
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        let is_over = self.is_over || (self.filter.is_none() && self.body.is_end_stream());
        self.rest.is_empty() && is_over
    }

    fn size_hint(&self) -> SizeHint {
        if self.filter.is_some() {
            return SizeHint::default();
        }
        let rest = self.rest.len() as u64;
        let hint = self.body.size_hint();
        let mut all = SizeHint::new();
        all.set_lower(hint.lower().saturating_add(rest));
        if let Some(upper) = hint.upper() {
            all.set_upper(upper.saturating_add(rest));
        }
        all
    }
}
