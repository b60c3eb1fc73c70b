//! The body of a streamed answer, filled by a task.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// A body, and where its pieces go in. One piece waits at most: who fills it waits for who reads it.
pub(super) fn pipe() -> (Sender<Bytes>, Pipe) {
    let (sender, receiver) = channel(1);
    (sender, Pipe(receiver))
}

/// A body whose pieces come from elsewhere.
pub(super) struct Pipe(Receiver<Bytes>);

impl Body for Pipe {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.poll_recv(context);
        next.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
