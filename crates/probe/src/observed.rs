//! A model of an attempt: it gets the seed, and its conversation is written down.

use std::sync::{Arc, Mutex};

use plaincall_agent::model::{
    Constrain, Model, ModelRequest, NativeMessage, Piece, Reply, ReplyNext, ReplyWriter,
};
use plaincall_agent::{Finish, ModelError, Role};

use crate::arm::Arm;
use crate::attempt::{Author, Entry};
use crate::world::World;

/// The most of a system prompt that a transcript has, in bytes.
const SYSTEM_BYTES: usize = 4_000;

/// Fields of each request of an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requested {
    pub(crate) seed: Option<u64>,
    /// The most tokens of a reply.
    pub(crate) max_tokens: Option<u32>,
}

pub(crate) struct Observed {
    model: Arc<dyn Model>,
    has_grammar: bool,
    requested: Requested,
    world: Arc<World>,
    transcript: Mutex<Transcript>,
}

#[derive(Default)]
struct Transcript {
    entries: Vec<Entry>,
    /// How many messages of the conversation are in it.
    known: usize,
}

impl Observed {
    pub(crate) fn new(
        model: Arc<dyn Model>,
        arm: &Arm,
        requested: Requested,
        world: Arc<World>,
    ) -> Arc<Self> {
        Arc::new(Self {
            model,
            has_grammar: arm.has_grammar(),
            requested,
            world,
            transcript: Mutex::default(),
        })
    }

    pub(crate) fn transcript(&self) -> Vec<Entry> {
        self.with(|transcript| transcript.entries.clone())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Transcript) -> T) -> T {
        let mut transcript = self.transcript.lock();
        work(transcript.as_mut().unwrap_or_else(|error| error.get_mut()))
    }

    async fn pass_on(
        self: Arc<Self>,
        request: ModelRequest,
        out: ReplyWriter,
    ) -> Result<Finish, ModelError> {
        let mut reply = self.model.reply(request.clone());
        let mut has_begun = false;
        while let Some(next) = reply.next().await {
            let next = match next {
                Ok(next) => next,
                Err(error) => {
                    self.with(|transcript| {
                        let text = error.to_string();
                        transcript.entries.push(Entry::new(Author::Error, &text));
                    });
                    return Err(error);
                }
            };
            // A request that is repeated before its reply begins is in the transcript once.
            if !has_begun {
                has_begun = true;
                self.world.begin_reply();
                self.with(|transcript| transcript.begin(&request));
            }
            match next {
                ReplyNext::Finish(finish) => return Ok(finish),
                ReplyNext::Piece(piece) => {
                    self.with(|transcript| transcript.add(&piece));
                    out.piece(piece).await;
                }
            }
        }
        Err(ModelError::new(
            plaincall_agent::ModelErrorKind::Broken,
            "the reply has no end",
        ))
    }
}

/// The model of one attempt, as arms use it.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Arc<Observed>);

impl Model for Shared {
    fn name(&self) -> &str {
        self.0.model.name()
    }

    fn reply(&self, mut request: ModelRequest) -> Reply {
        request.seed = self.0.requested.seed;
        request.max_tokens = request.max_tokens.or(self.0.requested.max_tokens);
        let model = Arc::clone(&self.0);
        Reply::new(|out| model.pass_on(request, out))
    }

    fn supports_native_calls(&self) -> bool {
        self.0.model.supports_native_calls()
    }

    fn constrains(&self) -> Constrain {
        if self.0.has_grammar {
            self.0.model.constrains()
        } else {
            Constrain::Never
        }
    }
}

impl Transcript {
    /// Adds the new messages of a request, and an empty reply.
    fn begin(&mut self, request: &ModelRequest) {
        let all = match &request.native {
            Some(native) => native.messages.iter().map(entry_of).collect(),
            None => text_entries(request),
        };
        let new = all.get(self.known..).unwrap_or_default();
        let new = new.iter().filter(|entry| entry.author != Author::Model);
        self.entries.extend(new.cloned());
        self.known = all.len();
        self.entries.push(Entry::new(Author::Model, ""));
    }

    /// Adds a part of the reply.
    fn add(&mut self, piece: &Piece) {
        let mut add = |author: Author, text: &str| match self.entries.last_mut() {
            Some(last) if last.author == author => last.text.push_str(text),
            _ => self.entries.push(Entry::new(author, text)),
        };
        match piece {
            Piece::Text(text) => add(Author::Model, text),
            Piece::Reasoning(text) => add(Author::Reasoning, text),
            Piece::Call(call) => {
                let text = format!("{} {}\n", call.name, call.arguments);
                add(Author::NativeCall, &text);
            }
            _ => {}
        }
    }
}

fn text_entries(request: &ModelRequest) -> Vec<Entry> {
    let messages = request.messages.iter().map(|message| {
        let author = match message.role {
            Role::System => Author::System,
            Role::User => Author::Program,
            Role::Assistant => Author::Model,
        };
        Entry::new(author, &shown(author, &message.text))
    });
    messages.collect()
}

fn entry_of(message: &NativeMessage) -> Entry {
    let (author, text) = match message {
        NativeMessage::System(text) => (Author::System, text),
        NativeMessage::Assistant { text, .. } => (Author::Model, text),
        NativeMessage::User(text) | NativeMessage::Result { text, .. } => (Author::Program, text),
    };
    Entry::new(author, &shown(author, text))
}

/// A long system prompt is shortened.
fn shown(author: Author, text: &str) -> String {
    if author != Author::System || text.len() <= SYSTEM_BYTES {
        return text.to_owned();
    }
    let shown = text.get(..text.floor_char_boundary(SYSTEM_BYTES));
    format!(
        "{}\n… ({} bytes in all)",
        shown.unwrap_or_default(),
        text.len()
    )
}
