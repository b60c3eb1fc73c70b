//! The kept parts of a command's output, so that memory is bounded.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::cut::{first_of, with_last_line};

/// The size of a read, in bytes: the capacity of a pipe.
const CHUNK: usize = 64 << 10;

/// Reads a stream to its end, even if nothing more is kept: a command blocks when its output is not read.
pub(crate) async fn drain(stream: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&[u8])) {
    let Some(mut stream) = stream else { return };
    let mut piece = vec![0; CHUNK];
    // A stream that fails has ended, and its beginning counts.
    while let Ok(count @ 1..) = stream.read(&mut piece).await {
        take(piece.get(..count).unwrap_or_default());
    }
}

/// Keeps the beginning, or the beginning and the end, half of the limit each.
#[derive(Debug)]
pub(crate) struct Output {
    /// The limit of the beginning.
    limit: usize,
    first: Vec<u8>,
    total: u64,
    last: Option<Tail>,
}

impl Output {
    pub(crate) fn new(limit: usize, keeps_both_ends: bool) -> Self {
        let end = if keeps_both_ends { limit / 2 } else { 0 };
        Self {
            limit: limit - end,
            first: Vec::new(),
            total: 0,
            last: keeps_both_ends.then(|| Tail::new(end)),
        }
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let room = self.limit - self.first.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.first.extend_from_slice(first);
        self.total += bytes.len() as u64;
        if let Some(last) = &mut self.last {
            last.take(rest);
        }
    }

    /// Returns the kept text, with a note where a part is missing.
    pub(crate) fn into_text(mut self) -> String {
        let last = match self.last {
            Some(last) if last.is_whole() => {
                self.first.extend(last.kept);
                return into_text(self.first);
            }
            None if self.first.len() as u64 == self.total => return into_text(self.first),
            last => last.map(|last| Vec::from(last.kept)),
        };
        let first = whole_characters(&self.first);
        let last = last.as_deref().map(without_rest);
        let note = match last {
            None => first_of(first.len(), self.total),
            Some(last) => {
                let missing = self.total - (first.len() + last.len()) as u64;
                let total = self.total;
                format!("output truncated: {missing} of {total} bytes omitted here")
            }
        };
        let text = with_last_line(&String::from_utf8_lossy(first), &note);
        text + &String::from_utf8_lossy(last.unwrap_or_default())
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

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let last = bytes.len().saturating_sub(self.limit);
        let bytes_kept = bytes.get(last..).unwrap_or_default();
        let surplus = (self.kept.len() + bytes_kept.len()).saturating_sub(self.limit);
        self.kept.drain(..surplus);
        self.kept.extend(bytes_kept);
        self.total += bytes.len() as u64;
    }

    /// Returns the kept text, after a note if the beginning is missing.
    pub(crate) fn into_text(self) -> String {
        let is_whole = self.is_whole();
        let kept = Vec::from(self.kept);
        if is_whole {
            return into_text(kept);
        }
        let whole = without_rest(&kept);
        format!(
            "[output truncated: last {} of {} bytes]\n{}",
            whole.len(),
            self.total,
            String::from_utf8_lossy(whole)
        )
    }

    fn is_whole(&self) -> bool {
        self.kept.len() as u64 == self.total
    }
}

/// Decodes UTF-8, with U+FFFD for invalid bytes.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the kept end without the partial line or character at its beginning.
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

/// Returns the bytes without an incomplete character at their end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        // No length: the last character is incomplete, not invalid.
        Err(error) if error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).unwrap_or_default()
        }
        _ => bytes,
    }
}
