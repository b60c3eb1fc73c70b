//! Scripted models, for tests and demos.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{
    Finish, Model, ModelError, ModelErrorKind, ModelRequest, NativeCall, Piece, Reply, ReplyWriter,
    Usage,
};

/// The default size of the parts of a scripted reply, in bytes.
const PIECE: usize = 12;

/// A model that gives scripted replies in order and records its requests. It is deterministic.
///
/// A script can also be a function of the request ([`with`](Self::with)).
#[derive(Clone)]
pub struct Scripted {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

enum Script {
    List(Vec<ScriptedReply>),
    Function(Box<Answers>),
}

/// The function that answers a request, given its number.
type Answers = dyn Fn(usize, &ModelRequest) -> ScriptedReply + Send + Sync;

/// A reply of a script.
#[derive(Clone, Debug)]
pub struct ScriptedReply {
    parts: Vec<Part>,
    /// `None` if it never ends.
    end: Option<Result<Finish, ModelError>>,
    piece_bytes: usize,
}

#[derive(Clone, Debug)]
enum Part {
    Piece(Piece),
    Pause(Duration),
}

impl Scripted {
    /// Creates a model with these replies: texts or [`ScriptedReply`]s. Further requests fail.
    pub fn new<R: Into<ScriptedReply>>(replies: impl IntoIterator<Item = R>) -> Self {
        let replies = replies.into_iter().map(Into::into);
        Self::of(Script::List(replies.collect()))
    }

    /// Creates a model from a function of the number of earlier requests and the request.
    pub fn with(
        function: impl Fn(usize, &ModelRequest) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        Self::of(Script::Function(Box::new(function)))
    }

    fn of(script: Script) -> Self {
        Self {
            script: Arc::new(script),
            asked: Arc::default(),
        }
    }

    /// Returns the requests so far. A reply that was never polled sent no request.
    pub fn requests(&self) -> Vec<ModelRequest> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }

    fn next(&self, request: &ModelRequest) -> Result<ScriptedReply, ModelError> {
        let number = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.push(request.clone());
            asked.len() - 1
        };
        match &*self.script {
            Script::Function(function) => Ok(function(number, request)),
            Script::List(replies) => replies.get(number).cloned().ok_or_else(|| {
                ModelError::new(
                    ModelErrorKind::Refused,
                    format!(
                        "the script has {} replies, and this is request {}",
                        replies.len(),
                        number + 1
                    ),
                )
            }),
        }
    }
}

impl Model for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn supports_native_calls(&self) -> bool {
        true
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        let model = self.clone();
        Reply::new(|out| async move { model.next(&request)?.play(&out).await })
    }
}

impl ScriptedReply {
    /// Creates an empty reply with a natural end.
    pub fn new() -> Self {
        Self {
            parts: Vec::new(),
            end: Some(Ok(Finish::stop().reason("stop"))),
            piece_bytes: PIECE,
        }
    }

    /// Creates a reply that fails with this error.
    pub fn error(error: ModelError) -> Self {
        Self::new().fail(error)
    }

    fn then(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Appends text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.then(Part::Piece(Piece::Text(text.into())))
    }

    /// Appends reasoning.
    pub fn reasoning(self, text: impl Into<String>) -> Self {
        self.then(Part::Piece(Piece::Reasoning(text.into())))
    }

    /// Appends usage.
    pub fn usage(self, usage: Usage) -> Self {
        self.then(Part::Piece(Piece::Usage(usage)))
    }

    /// Appends a native call.
    pub fn call(self, call: NativeCall) -> Self {
        self.then(Part::Piece(Piece::Call(call)))
    }

    /// Appends a pause.
    pub fn pause(self, pause: Duration) -> Self {
        self.then(Part::Pause(pause))
    }

    /// Sets the end.
    pub fn finish(mut self, finish: Finish) -> Self {
        self.end = Some(Ok(finish));
        self
    }

    /// Sets the reason of the end, such as `stop` or `length`.
    pub fn reason(self, reason: &str) -> Self {
        self.finish(Finish::by_reason(reason))
    }

    /// Ends with this error.
    pub fn fail(mut self, error: ModelError) -> Self {
        self.end = Some(Err(error));
        self
    }

    /// Makes the reply hang at its end.
    pub fn stall(mut self) -> Self {
        self.end = None;
        self
    }

    /// Sets the size of its parts, in bytes. Characters are not split. Default: 12.
    pub fn piece_bytes(mut self, bytes: usize) -> Self {
        self.piece_bytes = bytes;
        self
    }

    pub(super) async fn play(self, out: &ReplyWriter) -> Result<Finish, ModelError> {
        for part in self.parts {
            match part {
                Part::Piece(Piece::Text(text)) => {
                    for piece in pieces(&text, self.piece_bytes) {
                        out.text(piece).await;
                    }
                }
                Part::Piece(Piece::Reasoning(text)) => {
                    for piece in pieces(&text, self.piece_bytes) {
                        out.reasoning(piece).await;
                    }
                }
                Part::Piece(piece) => out.piece(piece).await,
                Part::Pause(pause) => tokio::time::sleep(pause).await,
            }
        }
        match self.end {
            Some(end) => end,
            None => std::future::pending().await,
        }
    }
}

/// Splits a text into parts of at most `bytes`, or one character.
fn pieces(mut text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let first = text.chars().next()?;
        let length = text.floor_char_boundary(bytes).max(first.len_utf8());
        let (piece, rest) = text.split_at(length);
        text = rest;
        Some(piece)
    })
}

impl Default for ScriptedReply {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&str> for ScriptedReply {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl From<String> for ScriptedReply {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}
