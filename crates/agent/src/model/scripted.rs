//! Models that say what a script says, for tests and demonstrations.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{
    Finish, Model, ModelError, ModelErrorKind, ModelRequest, Piece, Reply, ReplyWriter, Usage,
};

/// How long the pieces of a scripted reply are by default, in bytes.
const PIECE: usize = 12;

/// A model that says what a script says: the first reply of it when it is first asked, then the second. It knows
/// afterwards what it was asked. The same script, the same replies, in the same pieces.
///
/// A script can also be a function that looks at what is asked ([`with`](Self::with)).
#[derive(Clone)]
pub struct Scripted {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

enum Script {
    List(Vec<ScriptedReply>),
    Function(Box<Answers>),
}

/// What answers a request, which has this number.
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
    /// A model with these replies: texts, or [`ScriptedReply`]s. Asked once more than there are replies, it fails.
    pub fn new<R: Into<ScriptedReply>>(replies: impl IntoIterator<Item = R>) -> Self {
        let replies = replies.into_iter().map(Into::into);
        Self::of(Script::List(replies.collect()))
    }

    /// A model whose replies a function gives: it hears how often the model was asked before, and what.
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

    /// What it was asked so far, in this order. A reply that nobody began to read was not asked for.
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

    fn reply(&self, request: ModelRequest) -> Reply {
        let model = self.clone();
        Reply::new(|out| async move { model.next(&request)?.play(&out).await })
    }
}

impl ScriptedReply {
    /// A reply with this text, which ends as a model does that has said all.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().say(text)
    }

    /// A reply without anything.
    pub fn new() -> Self {
        Self {
            parts: Vec::new(),
            end: Some(Ok(Finish::stop().reason("stop"))),
            piece_bytes: PIECE,
        }
    }

    /// No reply, but this error.
    pub fn error(error: ModelError) -> Self {
        Self::new().fail(error)
    }

    fn then(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Then it says this.
    pub fn say(self, text: impl Into<String>) -> Self {
        self.then(Part::Piece(Piece::Text(text.into())))
    }

    /// Then it thinks this.
    pub fn think(self, text: impl Into<String>) -> Self {
        self.then(Part::Piece(Piece::Reasoning(text.into())))
    }

    /// Then it tells what it has cost so far.
    pub fn usage(self, usage: Usage) -> Self {
        self.then(Part::Piece(Piece::Usage(usage)))
    }

    /// Then it does nothing for this long.
    pub fn pause(self, pause: Duration) -> Self {
        self.then(Part::Pause(pause))
    }

    /// It ends like this.
    pub fn finish(mut self, finish: Finish) -> Self {
        self.end = Some(Ok(finish));
        self
    }

    /// It ends with the reason that a server gives, such as `stop` or `length`.
    pub fn reason(self, reason: &str) -> Self {
        self.finish(Finish::by_reason(reason))
    }

    /// At the end it breaks off with this error.
    pub fn fail(mut self, error: ModelError) -> Self {
        self.end = Some(Err(error));
        self
    }

    /// It never ends.
    pub fn stall(mut self) -> Self {
        self.end = None;
        self
    }

    /// Sets how long the pieces of its texts are, in bytes; a character is never cut. Default: 12.
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

/// The pieces of a text: at most so many bytes, but at least a character.
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
        Self::text(text)
    }
}

impl From<String> for ScriptedReply {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}
