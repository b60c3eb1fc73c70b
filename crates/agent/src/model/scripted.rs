//! Models that say what a script says, for tests and demonstrations.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Finish, Model, ModelError, ModelErrorKind, ModelRequest, Reply, ReplyWriter, Usage};

/// How long the pieces of a scripted reply are, in bytes, if nothing else is said.
const PIECE: usize = 12;

/// A model that says what a script says: the first reply of it when it is first asked, then the second. It knows
/// afterwards what it was asked. The same script, the same replies, in the same pieces.
///
/// ```
/// use plaincall_agent::model::{
///     Chunks, Message, Model, ModelRequest, Piece, ReplyNext, Role, Scripted, ScriptedReply,
/// };
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// # runtime.block_on(async {
/// let model = Scripted::new([
///     ScriptedReply::text("Hello.").chunks(Chunks::Characters),
///     ScriptedReply::text("Good night.").reason("length"),
/// ]);
/// let question = Message::new(Role::User, "Hi.");
/// let mut reply = model.reply(ModelRequest::new([question.clone()]));
/// let first = reply.next().await.expect("a reply")?;
/// assert!(matches!(first, ReplyNext::Piece(Piece::Text(text)) if text == "H"));
/// assert_eq!(model.requests()[0].messages[0], question);
/// # Ok::<(), plaincall_agent::model::ModelError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A script can also be a function that looks at what is asked:
///
/// ```
/// use plaincall_agent::model::{Scripted, ScriptedReply};
///
/// let model = Scripted::with(|number, request| {
///     let last = request.messages.last().map(|message| message.text.as_ref());
///     ScriptedReply::text(format!("{number}: {}", last.unwrap_or_default()))
/// });
/// ```
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
    end: End,
    chunks: Chunks,
    first: Duration,
    between: Duration,
}

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Reasoning(String),
    Usage(Usage),
    Pause(Duration),
}

#[derive(Clone, Debug)]
enum End {
    Finish(Finish),
    Error(ModelError),
    Stall,
}

/// The pieces that the texts of a reply come in. A character is never cut.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chunks {
    /// Each text in one piece.
    Whole,
    /// Each character by itself.
    Characters,
    /// So many bytes, or less by a part of a character, but a character at least.
    Bytes(usize),
    /// One character to so many, by chance: the same for the same seed.
    Random {
        /// What chance begins with.
        seed: u64,
        /// The longest piece, in characters.
        most: usize,
    },
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

    /// How many replies of the script have not been asked for; none of a function.
    pub fn left(&self) -> usize {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match &*self.script {
            Script::List(replies) => replies.len().saturating_sub(asked.len()),
            Script::Function(_) => 0,
        }
    }

    /// Notes that it was asked.
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

impl fmt::Debug for Scripted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Scripted")
            .field("requests", &self.requests().len())
            .field("left", &self.left())
            .finish()
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
            end: End::Finish(Finish::stop().reason("stop")),
            chunks: Chunks::Bytes(PIECE),
            first: Duration::ZERO,
            between: Duration::ZERO,
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
        self.then(Part::Text(text.into()))
    }

    /// Then it thinks this.
    pub fn think(self, text: impl Into<String>) -> Self {
        self.then(Part::Reasoning(text.into()))
    }

    /// Then it tells what it has cost so far.
    pub fn usage(self, usage: Usage) -> Self {
        self.then(Part::Usage(usage))
    }

    /// Then it does nothing for this long.
    pub fn pause(self, pause: Duration) -> Self {
        self.then(Part::Pause(pause))
    }

    /// It ends like this.
    pub fn finish(mut self, finish: Finish) -> Self {
        self.end = End::Finish(finish);
        self
    }

    /// It ends with the reason that a server gives, such as `stop` or `length`.
    pub fn reason(self, reason: &str) -> Self {
        self.finish(Finish::by_reason(reason))
    }

    /// At the end it breaks off with this error.
    pub fn fail(mut self, error: ModelError) -> Self {
        self.end = End::Error(error);
        self
    }

    /// It never ends.
    pub fn stall(mut self) -> Self {
        self.end = End::Stall;
        self
    }

    /// The pieces that its texts come in: by default 12 bytes each.
    pub fn chunks(mut self, chunks: Chunks) -> Self {
        self.chunks = chunks;
        self
    }

    /// How long it takes before the first piece, and before each other; by default no time.
    pub fn latency(mut self, first: Duration, between: Duration) -> Self {
        self.first = first;
        self.between = between;
        self
    }

    /// Says it.
    pub(super) async fn play(self, out: &ReplyWriter) -> Result<Finish, ModelError> {
        let mut chance = match self.chunks {
            Chunks::Random { seed, .. } => seed,
            _ => 0,
        };
        let mut first = Some(self.first);
        for part in self.parts {
            let (text, is_reasoning) = match part {
                Part::Text(text) => (text, false),
                Part::Reasoning(text) => (text, true),
                Part::Usage(usage) => {
                    out.usage(usage).await;
                    continue;
                }
                Part::Pause(pause) => {
                    tokio::time::sleep(pause).await;
                    continue;
                }
            };
            for piece in self.chunks.cut(&text, &mut chance) {
                sleep(first.take().unwrap_or(self.between)).await;
                if is_reasoning {
                    out.reasoning(piece).await;
                } else {
                    out.text(piece).await;
                }
            }
        }
        // What has no text takes its time too.
        sleep(first.unwrap_or_default()).await;
        match self.end {
            End::Finish(finish) => Ok(finish),
            End::Error(error) => Err(error),
            End::Stall => std::future::pending().await,
        }
    }
}

async fn sleep(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
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

impl Chunks {
    /// The pieces of a text.
    fn cut<'t>(&self, text: &'t str, chance: &mut u64) -> VecDeque<&'t str> {
        let mut pieces = VecDeque::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = match *self {
                Self::Whole => rest.len(),
                Self::Characters => first.len_utf8(),
                Self::Bytes(most) => rest.floor_char_boundary(most).max(first.len_utf8()),
                Self::Random { most, .. } => {
                    let count = 1 + below(chance, most.max(1));
                    let end = rest.char_indices().nth(count);
                    end.map_or(rest.len(), |(at, _)| at)
                }
            };
            let (piece, after) = rest.split_at(length);
            pieces.push_back(piece);
            rest = after;
        }
        pieces
    }
}

/// A number below the limit, by chance: the generator `SplitMix64`.
fn below(state: &mut u64, limit: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    usize::try_from((mixed ^ (mixed >> 31)) % limit).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Chunks;

    #[test]
    fn no_character_is_cut() {
        let text = "ä日a😀";
        let random = Chunks::Random { seed: 7, most: 3 };
        for (chunks, expected) in [
            (Chunks::Whole, &["ä日a😀"][..]),
            (Chunks::Characters, &["ä", "日", "a", "😀"]),
            (Chunks::Bytes(0), &["ä", "日", "a", "😀"]),
            (Chunks::Bytes(4), &["ä", "日a", "😀"]),
            (Chunks::Bytes(100), &["ä日a😀"]),
        ] {
            assert_eq!(chunks.cut(text, &mut 0), expected, "{chunks:?}");
        }
        let long = text.repeat(50);
        let pieces = random.cut(&long, &mut 7);
        assert_eq!(pieces, random.cut(&long, &mut 7));
        assert_ne!(pieces, random.cut(&long, &mut 8));
        assert_eq!(pieces.iter().copied().collect::<String>(), long);
        for length in 1..=3 {
            assert!(pieces.iter().any(|piece| piece.chars().count() == length));
        }
    }
}
