//! The agent loop: asks a model until it answers (`spec/agent.md` 1 to 5).
//!
//! An [`AgentLoop`] has no clock, no tasks and no I/O. It takes questions, replies and results, and returns requests, questions to
//! the user and the answer. A conversation drives it on one machine, and an engine for durable runs on many.

mod evaluation;
mod history;
mod repeats;
mod turned;

use std::collections::HashSet;
use std::mem::take;
use std::sync::Arc;

use plaincall::prompt::answer::AnswerSchema;
use plaincall::prompt::few_shot::FewShotMessage;
use plaincall::reply::{PromptTextBuilder, Untrusted};
use plaincall::syntax::DialectError;
use plaincall::{CallResult, Dialect, Received, RunEvent, Stop, Toolbox, events::Author};

use crate::agent_loop::history::History;
use crate::agent_loop::repeats::{Failures, SameResults};
use crate::answer::{AgentError, AgentErrorKind, Answer};
use crate::budget::Budget;
use crate::limits::{AgentLimits, OnNoToolCall};
use crate::model::{Message, ModelRequest, Usage};
pub use turned::{ReadReply, Turned};

/// Below this many tokens, the overhead of messages distorts the count.
const FEW_TOKENS: u64 = 200;
/// Bytes per token before the server has reported usage.
const BYTES_PER_TOKEN: f64 = 4.0;
/// The share of the context that is reserved for a reply without a length limit: one in this many.
const FOR_REPLY: u64 = 8;
/// The share of the conversation that is shortened when the server reports that it is too long: one in this many.
const SHORTER_BY: u64 = 4;

/// The agent loop of a conversation.
///
/// A question begins with [`begin_untimed`](Self::begin_untimed) and [`add_question`](Self::add_question), or with
/// [`resume`](Self::resume) without new words. Then, until there is an answer or an error: [`begin_turn`](Self::begin_turn) and
/// [`request`](Self::request), and with the reply and its results [`add_turn`](Self::add_turn) and [`evaluate`](Self::evaluate).
/// After each, carry out the [effects](Self::take_effects), also after an error.
#[derive(Debug)]
pub struct AgentLoop {
    pub(crate) tools: Toolbox,
    pub(crate) dialect: Dialect,
    pub(crate) limits: AgentLimits,
    on_no_tool_call: OnNoToolCall,
    pub(crate) history: History,
    /// Bytes per token, learned from the usage that the server reports.
    bytes_per_token: f64,
    /// Whether the conversation was resumed, and the model has not replied since. Its messages without a reply may be asked
    /// again.
    pub(crate) is_resumed: bool,
    pub(crate) budget: Arc<Budget>,
    /// The schema of the answer to the current question.
    schema: Option<AnswerSchema>,
    partial_text: String,
    /// The size of the last request, in bytes.
    sent: u64,
    counts: Counts,
    effects: Vec<Effect>,
}

/// The counters of a question, beside its budget.
#[derive(Debug, Default)]
struct Counts {
    /// The number of turns in a row with rejected calls and none that succeeded.
    wrong: u32,
    reminders: u32,
    /// The number of answers that do not match the schema.
    mismatches: u32,
    /// The number of replies in a row that a length limit truncated.
    truncated: u32,
    failures: Failures,
    same_results: SameResults,
}

/// A log whose conversation continues.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ReadLog {
    /// The number of turns, and of those that ended.
    pub opened: u32,
    pub(crate) recorded: u32,
    /// The reply of the last turn, if it has not ended.
    pub(crate) written: String,
    /// The calls that were submitted.
    pub(crate) submitted: HashSet<u32>,
}

/// The next step after a turn.
#[derive(Debug)]
#[non_exhaustive]
pub enum Next {
    /// The model is asked again.
    Request,
    /// The user is asked this. The answer is the next [question](AgentLoop::add_question).
    AskUser(String),
    /// The question is answered.
    Answer(Box<Answer>),
}

/// An addition to the conversation, which the driver records or shows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Effect {
    /// The model receives an untrusted text, which the run observes.
    Untrusted {
        /// The name of the text.
        name: String,
        /// The text.
        text: String,
    },
    /// The model receives a message.
    Message {
        /// Its author.
        author: Author,
        /// Its text.
        text: Arc<str>,
    },
    /// Results were shortened.
    Shortened {
        /// The number of results.
        results: usize,
        /// The number of removed bytes.
        bytes: u64,
    },
}

impl AgentLoop {
    /// Creates the loop of a new conversation. `system` is the [system message](crate::Agent) with the tools.
    pub fn new(tools: Toolbox, dialect: Dialect, system: String, limits: AgentLimits) -> Self {
        Self {
            tools,
            history: History::new(dialect.clone(), system),
            dialect,
            limits,
            on_no_tool_call: OnNoToolCall::default(),
            bytes_per_token: BYTES_PER_TOKEN,
            is_resumed: false,
            budget: Budget::new(limits),
            schema: None,
            partial_text: String::new(),
            sent: 0,
            counts: Counts::default(),
            effects: Vec::new(),
        }
    }

    /// Sets what a reply without a call means.
    pub fn on_no_tool_call(mut self, meaning: OnNoToolCall) -> Self {
        self.on_no_tool_call = meaning;
        self
    }

    /// Shows examples before the conversation. They are not part of it.
    pub fn set_examples(&mut self, messages: &[FewShotMessage]) {
        self.history.set_examples(messages);
    }

    /// Returns the messages as the model would read them now.
    pub fn messages(&self) -> Arc<[Message]> {
        self.history.messages()
    }

    /// Begins a question whose time is not limited.
    pub fn begin_untimed(&mut self) {
        self.begin(Budget::new(self.limits));
    }

    /// Begins a question with the given budget.
    pub(crate) fn begin(&mut self, budget: Arc<Budget>) {
        self.budget = budget;
        self.partial_text.clear();
        self.counts = Counts::default();
    }

    /// Returns the number of calls that the current question may still have.
    pub fn calls_left(&self) -> u32 {
        self.budget.calls_left()
    }

    /// Returns the additions to the conversation since the last call, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        take(&mut self.effects)
    }

    /// Returns the error of the current question.
    pub fn error(&mut self, kind: AgentErrorKind) -> AgentError {
        AgentError {
            kind,
            progress: Box::new(self.budget.used()),
            partial_text: take(&mut self.partial_text),
        }
    }

    /// Adds a question of the user.
    pub fn add_question(&mut self, text: &str) {
        if text.trim().is_empty() {
            // Servers reject empty messages.
            self.add_message(Author::User, "(empty message)\n".into());
        } else {
            self.add_untrusted("the user", None, text);
        }
    }

    /// Sets the schema of the next answer, and adds its text to the question.
    pub(crate) fn set_schema(&mut self, schema: Option<AnswerSchema>) {
        // The dialect was checked when the agent was built.
        let text = schema.as_ref().and_then(|it| it.prompt(&self.dialect).ok());
        if let Some(text) = text {
            self.add_message(Author::Program, text.into_text().into());
        }
        self.schema = schema;
    }

    /// Lets the model continue without a question.
    pub fn resume(&mut self) {
        // Servers reject a conversation that ends with the model's message, or continue that message.
        if !self.history.awaits_reply() {
            self.add_message(Author::Program, "Continue.\n".into());
        }
    }

    /// Adds untrusted text, optionally with a heading.
    pub(crate) fn add_untrusted(&mut self, name: &str, heading: Option<&str>, text: &str) {
        self.effects.push(Effect::Untrusted {
            name: name.to_owned(),
            text: text.to_owned(),
        });
        // The dialect was checked when the agent was built.
        let Ok(mut prompt_text) = PromptTextBuilder::new(std::slice::from_ref(&self.dialect))
        else {
            return;
        };
        if let Some(heading) = heading {
            prompt_text
                .trusted("The user provided ")
                .untrusted(&Untrusted::new(heading))
                .trusted(":\n\n");
        }
        prompt_text.untrusted(&Untrusted::new(text));
        self.add_message(Author::User, prompt_text.finish().into_text().into());
    }

    pub(crate) fn add_message(&mut self, author: Author, text: Arc<str>) {
        if self.is_resumed && self.history.has_unanswered(&text) {
            return;
        }
        self.history.add_message(Arc::clone(&text));
        self.effects.push(Effect::Message { author, text });
    }

    /// Adds a reply and its results as the model reads them.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid.
    pub fn add_turn(
        &mut self,
        written: String,
        results: Vec<CallResult>,
    ) -> Result<(), DialectError> {
        self.is_resumed = false;
        self.history.reply(written);
        self.history.results(results)
    }

    /// Rebuilds the history from a log.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid.
    pub fn replay<'e>(
        &mut self,
        events: impl IntoIterator<Item = &'e RunEvent>,
        received: &Received,
    ) -> Result<ReadLog, DialectError> {
        let mut read = ReadLog::default();
        let mut written = Vec::new();
        let mut results = Vec::new();
        let text = |written: &mut Vec<u8>| String::from_utf8_lossy(&take(written)).into_owned();
        let mut is_empty = true;
        for event in events {
            is_empty = false;
            match event {
                RunEvent::Message(message) => self.history.add_message(Arc::clone(&message.text)),
                RunEvent::Turn(_) => {
                    read.opened += 1;
                    written.clear();
                    results.clear();
                }
                RunEvent::Text(delta) => written.extend_from_slice(delta.source.as_bytes()),
                RunEvent::Call(call) if call.submitted.is_some() => {
                    read.submitted.insert(call.call);
                }
                RunEvent::Result(result) if !read.submitted.contains(&result.call) => {
                    results.push(received.for_model(result));
                }
                RunEvent::TurnEnd(_) => {
                    results.sort_by_key(|result: &CallResult| result.call);
                    read.recorded += 1;
                    self.add_turn(text(&mut written), take(&mut results))?;
                }
                _ => {}
            }
        }
        read.written = text(&mut written);
        self.is_resumed = !is_empty;
        Ok(read)
    }

    /// Forgets what was learned about the model, for another one. Its context may be larger, so nothing is shortened.
    pub(crate) fn forget_model(&mut self) {
        self.bytes_per_token = BYTES_PER_TOKEN;
        // The dialect was checked when the agent was built.
        let _ = self.history.restore();
    }

    /// Counts a reply that is about to begin.
    ///
    /// # Errors
    /// Returns an error if a limit is reached.
    pub fn begin_turn(&mut self) -> Result<(), AgentErrorKind> {
        self.budget.begin_turn()
    }

    /// Takes back a reply that did not begin.
    pub fn abandon_turn(&mut self) {
        self.budget.abandon_turn();
    }

    /// Returns the next request, with a conversation that fits the context window, if that is known.
    ///
    /// # Errors
    /// Returns an error if it does not fit.
    pub fn request(&mut self, received: &Received) -> Result<ModelRequest, AgentErrorKind> {
        if let Some(context) = self.limits.context {
            let for_reply = self.limits.reply_tokens.map(u64::from);
            let room = context.saturating_sub(for_reply.unwrap_or(context / FOR_REPLY));
            let most = self.bytes(room);
            let bytes = self.history.bytes();
            if bytes > most {
                // More than needed, so that later turns do not invalidate the cache of the server each time.
                self.shorten(received, bytes - most / 4 * 3, bytes - most)?;
            }
            if self.tokens(self.history.bytes()) > context {
                return Err(AgentErrorKind::TooLong);
            }
        }
        Ok(self.unchecked_request())
    }

    /// Returns the next request after the server has refused one as too long.
    ///
    /// # Errors
    /// Returns an error if no result is left to shorten.
    pub fn shorter_request(&mut self, received: &Received) -> Result<ModelRequest, AgentErrorKind> {
        let bytes = self.history.bytes() / SHORTER_BY;
        if self.shorten(received, bytes, bytes)? {
            Ok(self.unchecked_request())
        } else {
            Err(AgentErrorKind::TooLong)
        }
    }

    fn unchecked_request(&mut self) -> ModelRequest {
        self.sent = self.history.bytes();
        let mut request = ModelRequest::new(self.history.messages());
        // At most the rest of the token limit.
        let left = self.budget.tokens_left();
        let left = left.map(|left| u32::try_from(left).unwrap_or(u32::MAX));
        request.max_tokens = [self.limits.reply_tokens, left].into_iter().flatten().min();
        request
    }

    /// Shortens the oldest large results. Returns whether any was shortened.
    fn shorten(
        &mut self,
        received: &Received,
        bytes: u64,
        at_least: u64,
    ) -> Result<bool, AgentErrorKind> {
        let shorten = |result: &CallResult, limit| received.shortened(result, limit);
        let shortened = self.history.shorten(bytes, at_least, shorten);
        let shortened = shortened.map_err(AgentErrorKind::Dialect)?;
        let (results, bytes) = (shortened.results, shortened.bytes);
        if results > 0 {
            self.effects.push(Effect::Shortened { results, bytes });
        }
        Ok(results > 0)
    }

    fn count(&mut self, turned: &Turned) {
        let written = turned.written.len() as u64;
        let estimate = Usage::new(self.tokens(self.sent), self.tokens(written));
        let counted = turned.usage.unwrap_or_default();
        if turned.finish.stop != Stop::Broken {
            self.learn(self.sent, counted);
        }
        let mut cost = counted;
        let mut is_estimated = false;
        if counted.input == 0 {
            cost.input = estimate.input;
            is_estimated = true;
        }
        // For a reply that failed midway, the server may have counted only a part.
        let is_partial = turned.finish.stop == Stop::Broken && counted.output < estimate.output;
        if counted.output == 0 && written > 0 || is_partial {
            cost.output = estimate.output;
            is_estimated = true;
        }
        self.budget.count(|used| {
            used.is_usage_estimated |= is_estimated;
            used.usage.add(cost);
            for result in &turned.results {
                used.calls.add(result.status);
            }
            used.unclosed += turned.unclosed();
        });
        self.partial_text.clone_from(&turned.read.text);
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "they are estimates of something far below the limits of the types"
)]
impl AgentLoop {
    /// Estimates the tokens of a text.
    fn tokens(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.bytes_per_token).ceil() as u64
    }

    fn bytes(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.bytes_per_token) as u64
    }

    /// Learns from the usage that the server reports. Small counts are ignored. Servers that omit cached tokens must not
    /// make the conversation look shorter than it is.
    fn learn(&mut self, bytes: u64, usage: Usage) {
        if usage.input >= FEW_TOKENS {
            let counted = bytes as f64 / usage.input as f64;
            self.bytes_per_token = counted.clamp(1.0, BYTES_PER_TOKEN);
        }
    }
}
