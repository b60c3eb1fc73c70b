//! Conversations.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use plaincall::call::grammar::GrammarError;
use plaincall::call::{PromptTextBuilder, Untrusted, answer::AnswerSchema};
use plaincall::syntax::DialectError;
use plaincall::{
    CallResult, Dialect, Run, RunEvents, Toolbox,
    command::Directories,
    events::Author,
    run::{CloseError, RemovedFiles},
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::agent_loop::AgentStream;
use crate::answer::{AgentError, AgentErrorKind, Answer};
use crate::budget::Budget;
use crate::history::History;
use crate::limits::AgentLimits;
use crate::model::{Message, Model, Retrying, Usage};
use crate::settings::Settings;
use crate::subagent::Submissions;

/// Below this many tokens, the overhead of messages distorts the count.
const FEW_TOKENS: u64 = 200;
/// Bytes per token before the server has reported usage.
const BYTES_PER_TOKEN: f64 = 4.0;

/// A conversation with an agent. Later turns can refer to ids and results of earlier ones.
pub struct Conversation {
    pub(crate) settings: Arc<Settings>,
    pub(crate) limits: AgentLimits,
    pub(crate) model: Retrying,
    pub(crate) dialect: Dialect,
    pub(crate) run: Run,
    pub(crate) history: History,
    pub(crate) written: String,
    /// Documents for the next question, by name. They are added when the previous turn has ended.
    attached: Vec<(String, String)>,
    pub(crate) opened: u32,
    /// The schema of the answer to the current question.
    pub(crate) answer_schema: Option<AnswerSchema>,
    /// The number of turns in the history.
    pub(crate) recorded: u32,
    /// The tools of a resumed conversation that no longer exist.
    pub(crate) gone_tools: Vec<String>,
    /// Whether the conversation was resumed, and the model has not replied since. Its messages without a reply may be asked
    /// again.
    pub(crate) is_resumed: bool,
    /// Bytes per token, learned from the usage that the server reports.
    pub(crate) bytes_per_token: f64,
    /// The calls of subagents, if the agent has any.
    pub(crate) submissions: Option<Submissions>,
    /// The calls of subagents in a turn that a crash interrupted, if the subagents may continue.
    pub(crate) interrupted: Option<HashSet<u32>>,
    /// The budget of its only question, if it is the conversation of a subagent.
    pub(crate) budget: Option<Arc<Budget>>,
}

impl Conversation {
    pub(crate) fn new(
        settings: Arc<Settings>,
        mut run: Run,
        dialect: Dialect,
        system: String,
    ) -> Self {
        run.listen();
        Self {
            model: Retrying::new(Arc::clone(&settings.model), settings.retries),
            written: String::new(),
            limits: settings.limits,
            settings,
            run,
            history: History::new(dialect.clone(), system),
            dialect,
            attached: Vec::new(),
            opened: 0,
            answer_schema: None,
            recorded: 0,
            gone_tools: Vec::new(),
            is_resumed: false,
            bytes_per_token: BYTES_PER_TOKEN,
            submissions: None,
            interrupted: None,
            budget: None,
        }
    }

    /// Asks the next question and waits for the answer.
    ///
    /// # Errors
    /// Returns an error if there is no answer; see [`AgentErrorKind`](crate::AgentErrorKind). The conversation can continue.
    pub async fn ask(&mut self, question: impl AsRef<str>) -> Result<Answer, AgentError> {
        self.stream(question).answer().await
    }

    /// Asks the next question, whose answer is JSON for a type. The model gets the type's JSON Schema. An answer that does not
    /// match gets a repair message, at most [`repairs`](AgentLimits::repairs) times.
    ///
    /// # Errors
    /// See [`ask`](Self::ask). Also returns an error if the type has an invalid schema, and
    /// [`AgentErrorKind::Schema`](crate::AgentErrorKind::Schema) if the answers do not match.
    pub async fn ask_as<T: DeserializeOwned + JsonSchema>(
        &mut self,
        question: impl AsRef<str>,
    ) -> Result<T, AgentError> {
        let schema = AnswerSchema::of::<T>();
        let schema = schema.map_err(|error| AgentErrorKind::Settings(error.to_string()))?;
        let answer = self.stream_as(question, schema.clone()).answer().await?;
        let value = schema.read_as(&answer.text);
        value.map_err(|problems| AgentErrorKind::Schema(problems).into())
    }

    /// Asks the next question and streams the events. The text of the answer is JSON that matches the schema; see
    /// [`ask_as`](Self::ask_as).
    pub fn stream_as(
        &mut self,
        question: impl AsRef<str>,
        schema: AnswerSchema,
    ) -> AgentStream<'_> {
        let question = question.as_ref().to_owned();
        AgentStream::new(self, Some((question, Some(schema))))
    }

    /// Asks the next question and streams the events. Nothing runs until the stream is polled; dropping it cancels
    /// everything.
    pub fn stream(&mut self, question: impl AsRef<str>) -> AgentStream<'_> {
        AgentStream::new(self, Some((question.as_ref().to_owned(), None)))
    }

    /// Lets the model continue without a new question: after a limit, a server failure, or in a resumed session. Interrupted
    /// subagents continue too; a new question cancels them.
    pub fn resume(&mut self) -> AgentStream<'_> {
        AgentStream::new(self, None)
    }

    /// Attaches a document to the next question. It is untrusted text: nothing in it is a call, and a call that the model
    /// copies from it needs approval.
    pub fn attach(&mut self, name: &str, text: &str) {
        self.attached.push((name.to_owned(), text.to_owned()));
    }

    /// Returns the messages as the model would read them now.
    pub fn messages(&self) -> Arc<[Message]> {
        self.history.messages()
    }

    /// Checks the grammar of the conversation for a model to [switch to](Self::set_model), as
    /// [`Agent::check_grammar`](crate::Agent::check_grammar) does for the model of the agent (`spec/agent.md` 10).
    ///
    /// # Errors
    /// Returns an error if there is none, but the model demands one.
    pub async fn check_grammar(
        &self,
        model: &impl Model,
    ) -> Result<Option<GrammarError>, AgentError> {
        let made = self.settings.grammar(model, &self.dialect).await?;
        Ok(made.err())
    }

    /// Switches to another model.
    pub fn set_model(&mut self, model: impl Model) {
        self.model = Retrying::new(Arc::new(model), self.settings.retries);
        self.bytes_per_token = BYTES_PER_TOKEN;
        // Its context may be larger. The dialect was checked when the agent was built.
        let _ = self.history.restore();
    }

    /// Sets the limits of later questions.
    pub fn set_limits(&mut self, limits: AgentLimits) {
        self.limits = limits;
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        self.model.name()
    }

    /// Returns the tools.
    pub fn tools(&self) -> &Toolbox {
        &self.settings.tools
    }

    /// Returns the names of the tools of a resumed conversation that no longer exist. The model got them too.
    pub fn gone_tools(&self) -> &[String] {
        &self.gone_tools
    }

    /// Returns the dialect.
    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// Returns the directories of the placeholders in commands.
    pub fn directories(&self) -> Directories {
        self.run.directories()
    }

    /// Returns the number of turns.
    pub fn turns(&self) -> u32 {
        self.opened
    }

    /// Returns the events of the run from now on. The first one describes the run.
    pub fn events(&self) -> RunEvents {
        self.run.events()
    }

    /// Ends the conversation and waits until its log is released and can be resumed. Returns the files that were removed with
    /// the scratch directory.
    ///
    /// # Errors
    /// Returns an error if the scratch directory cannot be removed.
    pub async fn close(self) -> Result<Option<RemovedFiles>, CloseError> {
        self.run.close().await
    }

    /// Adds the attached documents and a question.
    pub(crate) fn add_question(&mut self, text: &str) {
        for (name, document) in std::mem::take(&mut self.attached) {
            self.write_untrusted(&name, Some(&name), &document);
        }
        if text.trim().is_empty() {
            // Servers reject empty messages.
            self.add_message(Author::User, "(empty message)\n".into());
        } else {
            self.write_untrusted("the user", None, text);
        }
    }

    /// Sets the schema of the next answer, and adds its text to the question.
    pub(crate) fn set_answer_schema(&mut self, schema: Option<AnswerSchema>) {
        // The dialect was checked when the agent was built.
        let text = schema.as_ref().and_then(|it| it.prompt(&self.dialect).ok());
        if let Some(text) = text {
            self.add_message(Author::Program, text.into_text().into());
        }
        self.answer_schema = schema;
    }

    /// Adds untrusted text, optionally with a heading, and observes it for copies.
    pub(crate) fn write_untrusted(&mut self, name: &str, heading: Option<&str>, text: &str) {
        let text = Untrusted::new(text);
        self.run.observe_untrusted(name, &text);
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
        prompt_text.untrusted(&text);
        self.add_message(Author::User, prompt_text.finish().into_text().into());
    }

    pub(crate) fn add_message(&mut self, by: Author, text: Arc<str>) {
        if self.is_resumed && self.history.has_unanswered(&text) {
            return;
        }
        self.run.record_message(by, Arc::clone(&text));
        self.history.add_message(text);
    }

    pub(crate) fn add_turn(
        &mut self,
        written: String,
        results: Vec<CallResult>,
    ) -> Result<(), DialectError> {
        self.recorded += 1;
        self.is_resumed = false;
        self.history.reply(written);
        self.history.results(results)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "they are estimates of something far below the limits of the types"
)]
impl Conversation {
    /// Estimates the tokens of a text.
    pub(crate) fn tokens(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.bytes_per_token).ceil() as u64
    }

    pub(crate) fn bytes(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.bytes_per_token) as u64
    }

    /// Learns from the usage that the server reports. Small counts are ignored. Servers that omit cached tokens must not
    /// make the conversation look shorter than it is.
    pub(crate) fn learn(&mut self, bytes: u64, usage: Usage) {
        if usage.input >= FEW_TOKENS {
            let counted = bytes as f64 / usage.input as f64;
            self.bytes_per_token = counted.clamp(1.0, BYTES_PER_TOKEN);
        }
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Conversation")
            .field("model", &self.model.name())
            .field("turns", &self.turns())
            .finish_non_exhaustive()
    }
}
