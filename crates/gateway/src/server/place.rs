//! The place of a request among those that are answered at one time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use crate::server::pipe::PIECE;

/// The body of an answer, which keeps the place of its request until it has been taken or dropped.
///
/// It gives pieces of [`PIECE`] bytes at most. `hyper` takes them only as the client reads, so the place is kept as long as
/// there is more to write than fits in its buffer.
pub(super) struct PlacedBody {
    body: Body,
    /// What of a piece has not been taken.
    rest: Bytes,
    _place: Arc<OwnedSemaphorePermit>,
}

impl PlacedBody {
    pub(super) fn new(body: Body, place: Arc<OwnedSemaphorePermit>) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            _place: place,
        }
    }
}

impl HttpBody for PlacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let next = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
            match next.map(|next| next.map(Frame::into_data)) {
                Some(Ok(Ok(piece))) => self.rest = piece,
                Some(Ok(Err(frame))) => return Poll::Ready(Some(Ok(frame))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let len = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(len);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let hint = self.body.size_hint();
        let mut all = SizeHint::new();
        all.set_lower(hint.lower().saturating_add(rest));
        if let Some(upper) = hint.upper() {
            all.set_upper(upper.saturating_add(rest));
        }
        all
    }
}
