//! The script for one request.

use std::time::Duration;

use serde_json::{Value, json};

/// The answer of a model server to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The head of the answer. Without it, only [`then`](Self::then) happens.
    pub head: Option<Head>,
    /// The body.
    pub pieces: Vec<Piece>,
    /// The event after the last piece.
    pub then: Then,
}

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The delay before the head.
    pub after: Duration,
    /// The HTTP status.
    pub status: u16,
    /// The headers, except those for the length of the body.
    pub headers: Vec<(&'static str, String)>,
    /// The framing of the body.
    pub framing: Framing,
}

/// A part of the body, which is sent separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The delay before the piece.
    pub after: Duration,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each piece is a separate chunk.
    Chunked,
    /// By `Content-Length`.
    Length,
    /// The connection is closed.
    Close,
}

/// The event after the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The body ends.
    End,
    /// The connection is closed in the middle of the body.
    Break,
    /// The connection is reset, which may lose bytes in transit.
    Reset,
    /// Nothing, until the client has disconnected.
    Stall,
}

impl Script {
    /// Returns an answer with a JSON text.
    pub fn json(status: u16, body: &Value) -> Self {
        let head = Head::new(status).header("content-type", "application/json");
        Self::new(head, vec![body.to_string().into_bytes()])
    }

    /// Returns a stream with these texts and this finish reason.
    pub fn stream(texts: &[&str], reason: &str) -> Self {
        let texts = texts.iter().map(|text| json!({"content": text}));
        let mut pieces: Vec<Vec<u8>> = texts.map(|delta| chunk(&delta, &Value::Null)).collect();
        pieces.push(chunk(&json!({}), &json!(reason)));
        pieces.push(b"data: [DONE]\n\n".to_vec());
        let head = Head::new(200).header("content-type", "text/event-stream");
        Self::new(head, pieces)
    }

    /// Returns an answer with pieces without delays.
    pub fn new(head: Head, pieces: Vec<Vec<u8>>) -> Self {
        Self {
            head: Some(head),
            pieces: pieces.into_iter().map(Piece::new).collect(),
            then: Then::End,
        }
    }

    /// Returns no answer, not even a head.
    pub fn nothing(then: Then) -> Self {
        Self {
            head: None,
            pieces: Vec::new(),
            then,
        }
    }

    /// Keeps only the first pieces, and then does this.
    pub fn only(mut self, pieces: usize, then: Then) -> Self {
        self.pieces.truncate(pieces);
        self.then = then;
        self
    }

    /// Adds a delay before each piece.
    pub fn after(mut self, pause: Duration) -> Self {
        for piece in &mut self.pieces {
            piece.after = pause;
        }
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.head = self.head.map(|head| head.header(name, value));
        self
    }

    /// Sets the framing of the body.
    pub fn framing(mut self, framing: Framing) -> Self {
        if let Some(head) = &mut self.head {
            head.framing = framing;
        }
        self
    }

    /// Splits the body into pieces of these sizes, which are repeated. The first part of a former piece keeps its
    /// delay.
    pub fn cut(mut self, sizes: &[usize]) -> Self {
        let mut sizes = sizes.iter().copied().cycle();
        let mut pieces = Vec::new();
        for piece in self.pieces {
            let mut after = piece.after;
            let mut rest = piece.bytes.as_slice();
            while !rest.is_empty() {
                let size = sizes.next().unwrap_or(usize::MAX).clamp(1, rest.len());
                let (bytes, behind) = rest.split_at(size);
                rest = behind;
                pieces.push(Piece {
                    after,
                    bytes: bytes.to_vec(),
                });
                after = Duration::ZERO;
            }
        }
        self.pieces = pieces;
        self
    }

    /// Returns all bytes of the body.
    pub fn body(&self) -> Vec<u8> {
        let pieces = self.pieces.iter().map(|piece| piece.bytes.as_slice());
        pieces.collect::<Vec<_>>().concat()
    }
}

impl Piece {
    /// Returns a piece without a delay.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            after: Duration::ZERO,
            bytes: bytes.into(),
        }
    }
}

impl Head {
    /// Returns a head with this status, without a delay and without headers.
    pub fn new(status: u16) -> Self {
        Self {
            after: Duration::ZERO,
            status,
            headers: Vec::new(),
            framing: Framing::Chunked,
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Returns an event of a stream: a chunk with this delta and this finish reason.
pub fn chunk(delta: &Value, reason: &Value) -> Vec<u8> {
    let chunk = json!({
        "id": "chatcmpl-9", "object": "chat.completion.chunk", "created": 7, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    });
    format!("data: {chunk}\n\n").into_bytes()
}
