//! The body of a streamed response, filled by a task.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The maximum size of a piece. A slow client has one piece waiting here, one not yet handed over, and what `hyper` has
/// buffered: at most 44 KiB. With the piece and the connection buffer of the model server ([`READ`](super::upstream::READ)):
/// 64 KiB.
pub(super) const PIECE: usize = 4 << 10;

/// Creates a body and its sender. At most one piece is buffered; a client that reads nothing for `idle_timeout` counts as
/// disconnected. The body is complete only after [`BodySender::complete`]; otherwise, even after a panic, it ends with an error.
pub(super) fn pipe(idle_timeout: Duration) -> (BodySender, Pipe) {
    let (sender, receiver) = channel(1);
    let is_complete = Arc::new(AtomicBool::new(false));
    let sender = BodySender {
        sender,
        is_complete: Arc::clone(&is_complete),
        idle_timeout,
    };
    let pipe = Pipe {
        receiver,
        is_complete,
    };
    (sender, pipe)
}

pub(super) struct BodySender {
    sender: Sender<Bytes>,
    is_complete: Arc<AtomicBool>,
    idle_timeout: Duration,
}

impl BodySender {
    /// Sends bytes to the client. Returns `false` if it has disconnected.
    pub(super) async fn send(&self, mut bytes: Bytes) -> bool {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            let piece = match self.sender.try_send(piece) {
                Ok(()) => continue,
                Err(TrySendError::Full(piece)) => piece,
                Err(TrySendError::Closed(_)) => return false,
            };
            let sent = tokio::time::timeout(self.idle_timeout, self.sender.send(piece)).await;
            if !matches!(sent, Ok(Ok(()))) {
                return false;
            }
        }
        true
    }

    /// Marks the body as complete.
    pub(super) fn complete(self) {
        self.is_complete.store(true, Ordering::Release);
    }

    pub(super) async fn closed(&self) {
        self.sender.closed().await;
    }
}

/// A body that receives its pieces from a [`BodySender`].
pub(super) struct Pipe {
    receiver: Receiver<Bytes>,
    is_complete: Arc<AtomicBool>,
}

impl Body for Pipe {
    type Data = Bytes;
    // An error closes the connection, so that no client mistakes a part for the whole body.
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.receiver.poll_recv(context).map(|piece| match piece {
            Some(piece) => Some(Ok(Frame::data(piece))),
            None if self.is_complete.load(Ordering::Acquire) => None,
            None => Some(Err(io::ErrorKind::ConnectionAborted.into())),
        })
    }
}
