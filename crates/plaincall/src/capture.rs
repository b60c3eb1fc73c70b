//! What is kept of a command's output, so that no output is too long for the memory.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::cut::{first_of, with_last_line};

/// How much is read at a time, in bytes: what a pipe holds.
const PIECE: usize = 64 << 10;

/// Takes the bytes of a stream and keeps some of them.
pub(crate) trait Capture {
    fn take(&mut self, bytes: &[u8]);
}

/// Reads a stream to its end, whatever is kept of it; a command that nobody reads from stands still.
pub(crate) async fn drain(stream: Option<impl AsyncRead + Unpin>, capture: &mut impl Capture) {
    let Some(mut stream) = stream else { return };
    let mut piece = vec![0; PIECE];
    // A stream that fails has ended; what was read before counts.
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        capture.take(piece.get(..count).unwrap_or_default());
    }
}

/// Keeps the beginning, or half of what there is room for of the beginning and half of the end.
#[derive(Debug)]
pub(crate) struct Output {
    head: Head,
    tail: Option<Tail>,
}

impl Output {
    pub(crate) fn new(limit: usize, keeps_both_ends: bool) -> Self {
        let end = if keeps_both_ends { limit / 2 } else { 0 };
        Self {
            head: Head::new(limit - end),
            tail: keeps_both_ends.then(|| Tail::new(end)),
        }
    }

    /// What was kept as text; if that is not all, a line says so where the rest is missing.
    pub(crate) fn into_text(self) -> String {
        let Some(tail) = self.tail else {
            return self.head.into_text();
        };
        let mut bytes = self.head.kept;
        if tail.is_whole() {
            bytes.extend(tail.kept);
            return into_text(bytes);
        }
        let total = bytes.len() as u64 + tail.total;
        let (first, _) = split_last_character(&bytes);
        let end = Vec::from(tail.kept);
        let last = without_rest(&end);
        let missing = total - (first.len() + last.len()) as u64;
        let note = format!("output cut: {missing} of {total} bytes are missing here");
        let mut text = with_last_line(&String::from_utf8_lossy(first), &note);
        text.push_str(&String::from_utf8_lossy(last));
        text
    }
}

impl Capture for Output {
    fn take(&mut self, bytes: &[u8]) {
        let Some(tail) = &mut self.tail else {
            return self.head.take(bytes);
        };
        let room = self.head.limit - self.head.kept.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.take(first);
        tail.take(rest);
    }
}

/// Keeps the beginning.
#[derive(Debug)]
pub(crate) struct Head {
    limit: usize,
    kept: Vec<u8>,
    total: u64,
}

impl Head {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: Vec::new(),
            total: 0,
        }
    }

    /// What was kept as text; if that is not all, a line at its end says so.
    pub(crate) fn into_text(self) -> String {
        let kept = self.kept.len();
        if kept as u64 == self.total {
            return into_text(self.kept);
        }
        let (whole, _) = split_last_character(&self.kept);
        let text = String::from_utf8_lossy(whole);
        with_last_line(&text, &first_of(whole.len(), self.total))
    }
}

impl Capture for Head {
    fn take(&mut self, bytes: &[u8]) {
        let room = self.limit - self.kept.len();
        let count = room.min(bytes.len());
        self.kept
            .extend_from_slice(bytes.get(..count).unwrap_or_default());
        self.total += bytes.len() as u64;
    }
}

/// Keeps the end.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    limit: usize,
    kept: VecDeque<u8>,
    total: u64,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: VecDeque::new(),
            total: 0,
        }
    }

    /// What was kept as text; if that is not all, a line at its beginning says so.
    pub(crate) fn into_text(self) -> String {
        let is_whole = self.is_whole();
        let kept = Vec::from(self.kept);
        if is_whole {
            return into_text(kept);
        }
        let whole = without_rest(&kept);
        format!(
            "[output cut: the last {} of {} bytes]\n{}",
            whole.len(),
            self.total,
            String::from_utf8_lossy(whole)
        )
    }

    fn is_whole(&self) -> bool {
        self.kept.len() as u64 == self.total
    }
}

impl Capture for Tail {
    fn take(&mut self, bytes: &[u8]) {
        let last = bytes.len().saturating_sub(self.limit);
        let bytes_kept = bytes.get(last..).unwrap_or_default();
        let surplus = (self.kept.len() + bytes_kept.len()).saturating_sub(self.limit);
        self.kept.drain(..surplus);
        self.kept.extend(bytes_kept);
        self.total += bytes.len() as u64;
    }
}

/// The bytes as text; what is no UTF-8 becomes U+FFFD.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The end of a stream without what the cut may have left behind: the rest of a line, or of a character.
fn without_rest(end: &[u8]) -> &[u8] {
    let rest = match end.iter().position(|&byte| byte == b'\n') {
        Some(line_end) if line_end + 1 < end.len() => line_end + 1,
        _ => end
            .iter()
            .take(3)
            .take_while(|&&byte| byte & 0xC0 == 0x80)
            .count(),
    };
    end.get(rest..).unwrap_or_default()
}

/// Splits off a character at the end that lacks bytes.
fn split_last_character(bytes: &[u8]) -> (&[u8], &[u8]) {
    let whole = match std::str::from_utf8(bytes) {
        // No length: the bytes end too early, they are not wrong.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    bytes.split_at(whole)
}
