//! A client's socket with timeouts.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::server::config::Timeouts;
use crate::server::waiting::{Closing, Wait, Waiting};

/// A connection with deadlines, which `hyper` does not have: for the client to read what is written, for the next request to
/// begin, and for its head to arrive. Request bodies have their own deadline.
pub(super) struct Socket {
    stream: TcpStream,
    turns: Turns,
    /// The turn that `reading` is set for.
    turn: Option<u64>,
    /// Whether the head of that turn's request has started.
    is_started: bool,
    reading: Deadline,
    writing: Deadline,
    head: Duration,
    next: Duration,
    write: Duration,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, turns: Turns, timeouts: &Timeouts) -> Self {
        Self {
            stream,
            turns,
            turn: None,
            is_started: false,
            reading: Deadline::default(),
            writing: Deadline::default(),
            head: timeouts.head,
            next: timeouts.connection_idle,
            write: timeouts.idle,
        }
    }

    fn poll_no_request(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.turns.0.closing.waker.register(context.waker());
        let turn = self.turns.now();
        if is_response(turn) || self.writing.is_set() {
            self.turn = None;
            self.reading.clear();
            return Poll::Pending;
        }
        if self.turns.0.closing.is_due() {
            return Poll::Ready(());
        }
        if self.turn != Some(turn) {
            self.turn = Some(turn);
            self.is_started = turn == 0;
            let time = if self.is_started {
                self.head
            } else {
                self.next
            };
            self.reading.set(time);
        }
        self.reading.poll(context)
    }

    /// Handles received bytes. Between turns, they belong to the head of the next request.
    fn has_read(&mut self) {
        let turn = self.turns.now();
        let is_started = self.turn == Some(turn) && self.is_started;
        if !is_response(turn) && !is_started {
            self.turn = Some(turn);
            self.is_started = true;
            self.reading.set(self.head);
        }
    }

    /// Returns the result of a write, or an error if the client has read nothing for too long.
    fn written<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing.clear();
            return written;
        }
        if !self.writing.is_set() {
            self.writing.set(self.write);
        }
        if self.writing.poll(context).is_ready() {
            // Discards the unsent rest.
            let _ = self.stream.set_zero_linger();
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        let read = Pin::new(&mut socket.stream).poll_read(context, buffer);
        if read.is_ready() {
            socket.has_read();
            return read;
        }
        let late = socket.poll_no_request(context);
        late.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let written = Pin::new(&mut socket.stream).poll_write(context, bytes);
        socket.written(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let written = Pin::new(&mut socket.stream).poll_write_vectored(context, parts);
        socket.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Flushing and closing a TCP socket never wait, so they need no timeout.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// An optional deadline.
#[derive(Default)]
struct Deadline {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    fn is_set(&self) -> bool {
        self.at.is_some()
    }

    /// Sets the deadline. A timer is created only when it is polled.
    fn set(&mut self, time: Duration) {
        // `None` if the time exceeds what the clock can represent.
        self.at = Instant::now().checked_add(time);
    }

    fn clear(&mut self) {
        self.at = None;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else {
            return Poll::Pending;
        };
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(context)
    }
}

/// Counts request and response phases of a connection: even while the client must send a request, odd while it is answered.
#[derive(Clone)]
pub(super) struct Turns(Arc<Shared>);

struct Shared {
    number: AtomicU64,
    waiting: Waiting,
    /// The current wait for a request.
    wait: Mutex<Option<Wait>>,
    /// Wakes the task that waits for the next request. `hyper` does not poll again on its own.
    closing: Arc<Closing>,
}

fn is_response(turn: u64) -> bool {
    turn % 2 == 1
}

impl Turns {
    /// Creates the phases of a new connection, which waits for its first request.
    pub(super) fn new(waiting: &Waiting) -> Self {
        let closing = Arc::default();
        let wait = waiting.begin(&closing);
        Self(Arc::new(Shared {
            number: AtomicU64::new(0),
            waiting: waiting.clone(),
            wait: Mutex::new(Some(wait)),
            closing,
        }))
    }

    /// Begins a response phase, which ends when the returned guard is dropped.
    pub(super) fn begin(&self) -> Turn {
        self.0.number.fetch_add(1, Ordering::Relaxed);
        self.set_wait(None);
        Turn(self.clone())
    }

    fn now(&self) -> u64 {
        self.0.number.load(Ordering::Relaxed)
    }

    fn set_wait(&self, wait: Option<Wait>) {
        let mut current = self.0.wait.lock().unwrap_or_else(PoisonError::into_inner);
        *current = wait;
    }
}

/// A response phase, until it is dropped.
pub(super) struct Turn(Turns);

impl Drop for Turn {
    fn drop(&mut self) {
        let shared = &self.0.0;
        shared.number.fetch_add(1, Ordering::Relaxed);
        self.0.set_wait(Some(shared.waiting.begin(&shared.closing)));
        shared.closing.waker.wake();
    }
}
