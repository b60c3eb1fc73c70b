//! Messages as lines, none of them longer than a limit.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// How long a message of a server is at most, in bytes.
pub(super) const LONGEST_MESSAGE: usize = 16 << 20;

/// A stream that ends where a line is longer than the limit: whoever writes such a line answers no question any more that
/// somebody waits for.
pub(super) struct Lines<R> {
    stream: R,
    limit: usize,
    /// How long the line is that is being read.
    length: usize,
    /// Whether a line was too long.
    is_over: Arc<AtomicBool>,
}

impl<R> Lines<R> {
    pub(super) fn new(stream: R, limit: usize, is_over: Arc<AtomicBool>) -> Self {
        Self {
            stream,
            limit,
            length: 0,
            is_over,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        for part in read.split_inclusive(|&byte| byte == b'\n') {
            self.length += part.len();
            if self.length > self.limit {
                self.is_over.store(true, Ordering::Relaxed);
                buffer.set_filled(before);
                return Poll::Ready(Ok(()));
            }
            if part.ends_with(b"\n") {
                self.length = 0;
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use tokio::io::AsyncReadExt as _;

    use super::Lines;

    async fn check(text: &str, expected: &str, is_over: bool) {
        let over = Arc::default();
        // A stream that gives one byte at a time.
        let stream = text.as_bytes().iter().fold(
            Box::new(tokio::io::empty()) as Box<dyn tokio::io::AsyncRead + Unpin>,
            |before, byte| Box::new(before.chain(std::slice::from_ref(byte))),
        );
        let mut read = String::new();
        let mut lines = Lines::new(stream, 4, Arc::clone(&over));
        lines.read_to_string(&mut read).await.expect("it is text");
        assert_eq!(read, expected);
        assert_eq!(over.load(Ordering::Relaxed), is_over, "{text:?}");
    }

    #[tokio::test]
    async fn long_lines() {
        check("abc\nabc\n\nabcd", "abc\nabc\n\nabcd", false).await;
        check("abc\nabcd\nabc\n", "abc\nabcd", true).await;
        check("abcdef", "abcd", true).await;
        check("", "", false).await;
    }
}
