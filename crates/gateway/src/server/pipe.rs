//! The body of a streamed answer, filled by a task.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// A body, and where its pieces go in. One piece waits at most: who fills it waits for who reads it.
pub(super) fn pipe() -> (Sender<Piece>, Pipe) {
    let (sender, receiver) = channel(1);
    (sender, Pipe(receiver))
}

/// A piece of a body, or the word that the rest of it will not come.
pub(super) type Piece = Result<Bytes, BrokenOff>;

/// The rest of the body will not come. The connection is closed, so that nobody takes what has come for all of it.
#[derive(Debug)]
pub(super) struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the answer broke off")
    }
}

impl Error for BrokenOff {}

/// A body whose pieces come from elsewhere.
pub(super) struct Pipe(Receiver<Piece>);

impl Body for Pipe {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let next = self.0.poll_recv(context);
        next.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
