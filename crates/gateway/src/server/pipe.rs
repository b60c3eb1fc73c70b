//! The body of a streamed answer, filled by a task.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The most bytes that go into a body at once.
///
/// What is held for a client that reads slowly: one piece that waits here, one that could not be handed over yet, and what
/// `hyper` has taken, which is one piece more than its buffer (as long as the head of a request may be, 32 KiB at most):
/// 44 KiB. Beside that the model's server has been read on by one piece of its answer at most, and by what its connection
/// holds ([`READ`](super::upstream::READ)): 64 KiB in all.
pub(super) const PIECE: usize = 4 << 10;

/// A body, and where its pieces go in. One piece waits at most: who fills it waits for who reads it.
///
/// A client that reads nothing for as long as `patience` has gone.
pub(super) fn pipe(patience: Duration) -> (Filler, Pipe) {
    let (sender, receiver) = channel(1);
    (Filler { sender, patience }, Pipe(receiver))
}

/// A piece of a body, or the word that the rest of it will not come.
type Piece = Result<Bytes, BrokenOff>;

/// Fills a body.
pub(super) struct Filler {
    sender: Sender<Piece>,
    patience: Duration,
}

impl Filler {
    /// Gives bytes to the client; whether it is still there.
    pub(super) async fn send(&self, mut bytes: Bytes) -> bool {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            let piece = match self.sender.try_send(Ok(piece)) {
                Ok(()) => continue,
                Err(TrySendError::Full(piece)) => piece,
                Err(TrySendError::Closed(_)) => return false,
            };
            let sent = tokio::time::timeout(self.patience, self.sender.send(piece)).await;
            if !matches!(sent, Ok(Ok(()))) {
                return false;
            }
        }
        true
    }

    /// Ends the body before it is complete.
    pub(super) async fn break_off(self) {
        let broken = self.sender.send(Err(BrokenOff));
        let _ = tokio::time::timeout(self.patience, broken).await;
    }

    /// Completes when the client has gone.
    pub(super) async fn closed(&self) {
        self.sender.closed().await;
    }
}

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
