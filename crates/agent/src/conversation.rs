//! A conversation that is kept and continued.

use std::fmt;
use std::sync::Arc;

use plaincall::call::{PromptTextBuilder, Untrusted, untrusted::EchoGuard};
use plaincall::syntax::{DialectError, mentions_call_format};
use plaincall::{
    CallResult, Dialect, Run, RunEvents, Toolbox,
    command::Directories,
    events::Author,
    run::{CloseError, RemovedFiles},
};

use crate::agent_loop::AgentStream;
use crate::answer::{AgentError, Answer};
use crate::history::History;
use crate::limits::AgentLimits;
use crate::model::{Message, Model, Retrying, Usage};
use crate::settings::Settings;

/// Up to so many tokens the words around a message count for more than its text.
const FEW_TOKENS: u64 = 200;
/// How many bytes a token has if the model's server has not said.
const BYTES_PER_TOKEN: f64 = 4.0;

/// A conversation with an agent: what was said so far, and its run with ids and results that later turns can name.
pub struct Conversation {
    pub(crate) settings: Arc<Settings>,
    pub(crate) limits: AgentLimits,
    pub(crate) model: Retrying,
    pub(crate) dialect: Dialect,
    pub(crate) run: Run,
    pub(crate) history: History,
    pub(crate) written: String,
    /// Documents for the next question, by their names. They are told when the turn before has ended.
    attached: Vec<(String, String)>,
    pub(crate) opened: u32,
    /// How many of them are in the history.
    pub(crate) told: u32,
    /// Knows what the untrusted texts hold that looks like a call, so that nobody asks for a copy of it.
    pub(crate) untrusted: EchoGuard,
    /// Whether one speaks of calls in other forms.
    pub(crate) is_form_quotable: bool,
    /// How many bytes the model's server takes for a token, as far as it has said.
    pub(crate) bytes_per_token: f64,
}

impl Conversation {
    pub(crate) fn new(
        settings: Arc<Settings>,
        mut run: Run,
        dialect: Dialect,
        system: String,
    ) -> Result<Self, DialectError> {
        let mut untrusted = EchoGuard::new(std::slice::from_ref(&dialect))?;
        for tool in run.toolbox().iter() {
            untrusted.hear(&tool.spec().as_untrusted());
        }
        run.listen();
        Ok(Self {
            model: Retrying::new(Arc::clone(&settings.model), settings.retries),
            written: String::new(),
            limits: settings.limits,
            settings,
            run,
            history: History::new(dialect.clone(), system),
            dialect,
            attached: Vec::new(),
            opened: 0,
            told: 0,
            untrusted,
            is_form_quotable: false,
            bytes_per_token: BYTES_PER_TOKEN,
        })
    }

    /// Asks the next question and waits for the answer.
    ///
    /// # Errors
    /// The model gives no answer: see [`AgentErrorKind`](crate::AgentErrorKind). The conversation can go on.
    pub async fn ask(&mut self, question: impl AsRef<str>) -> Result<Answer, AgentError> {
        self.stream(question).answer().await
    }

    /// Asks the next question and tells what happens meanwhile. Nothing happens before the first event is asked for;
    /// dropping it cancels everything at once.
    pub fn stream(&mut self, question: impl AsRef<str>) -> AgentStream<'_> {
        AgentStream::new(self, Some(question.as_ref().to_owned()))
    }

    /// Lets the model go on without a new question: after a limit, a failure of its server, or in a session that was taken
    /// up again.
    pub fn resume(&mut self) -> AgentStream<'_> {
        AgentStream::new(self, None)
    }

    /// Gives the model a document, before the next question. It is a text from outside: nothing in it counts as a call, and
    /// a call that the model copies from it runs only if somebody says so.
    pub fn attach(&mut self, name: &str, text: &str) {
        self.attached.push((name.to_owned(), text.to_owned()));
    }

    /// The messages as the model would read them now.
    pub fn messages(&self) -> Arc<[Message]> {
        self.history.messages()
    }

    /// Lets another model answer from now on.
    pub fn set_model(&mut self, model: impl Model) {
        self.model = Retrying::new(Arc::new(model), self.settings.retries);
        self.bytes_per_token = BYTES_PER_TOKEN;
        // It may read more at once. The dialect was tried when the agent was built.
        let _ = self.history.restore();
    }

    /// Sets how much each question may cost from now on.
    pub fn set_limits(&mut self, limits: AgentLimits) {
        self.limits = limits;
    }

    /// The name of the model that answers.
    pub fn model(&self) -> &str {
        self.model.name()
    }

    /// The tools.
    pub fn tools(&self) -> &Toolbox {
        self.run.toolbox()
    }

    /// The dialect in which the model is taught and read.
    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// The directories that the placeholders of commands name.
    pub fn directories(&self) -> Directories {
        self.run.directories()
    }

    /// How many turns there were.
    pub fn turns(&self) -> u32 {
        self.opened
    }

    /// What happens in the run from now on, as the record has it. The first event says how the run began.
    pub fn events(&self) -> RunEvents {
        self.run.events()
    }

    /// Ends the conversation as dropping it does, and waits until nothing of it is left: its log can be resumed then, which
    /// is refused for a moment after a drop. Returns the files that were removed with the scratch directory.
    ///
    /// # Errors
    /// If the scratch directory cannot be removed.
    pub async fn close(self) -> Result<Option<RemovedFiles>, CloseError> {
        self.run.close().await
    }

    /// Tells the model what the user says, behind what the user has given it.
    pub(crate) fn tell_question(&mut self, text: &str) {
        for (name, document) in std::mem::take(&mut self.attached) {
            self.write_untrusted(&name, Some(&name), &document);
        }
        if text.trim().is_empty() {
            // Servers refuse messages without a content.
            self.tell(Author::User, "(empty message)\n".into());
        } else {
            self.write_untrusted("the user", None, text);
        }
    }

    /// Tells the model a text from outside, perhaps under a heading, and listens for copies of it.
    fn write_untrusted(&mut self, name: &str, heading: Option<&str>, text: &str) {
        self.heed(text);
        let text = Untrusted::new(text);
        self.run.observe_untrusted(name, &text);
        // The dialect was tried when the agent was built.
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
        self.tell(Author::User, prompt_text.finish().into_text().into());
    }

    pub(crate) fn tell(&mut self, by: Author, text: Arc<str>) {
        self.run.record_message(by, Arc::clone(&text));
        self.history.tell(text);
    }

    pub(crate) fn add_turn(
        &mut self,
        written: String,
        results: Vec<CallResult>,
    ) -> Result<(), DialectError> {
        self.told += 1;
        for result in &results {
            for text in [&result.output, &result.error, &result.note]
                .into_iter()
                .flatten()
            {
                self.heed(text);
            }
            if let Some(observed) = &result.untrusted {
                self.untrusted.hear(observed);
            }
        }
        self.history.reply(written);
        self.history.results(results)
    }

    /// Remembers what an untrusted text holds that looks like a call, or speaks of one.
    pub(crate) fn heed(&mut self, text: &str) {
        self.is_form_quotable = self.is_form_quotable || mentions_call_format(text);
        self.untrusted.hear(&Untrusted::new(text));
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "they are estimates of something far below the limits of the types"
)]
impl Conversation {
    /// How many tokens a text of so many bytes has, as far as one can tell.
    pub(crate) fn tokens(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.bytes_per_token).ceil() as u64
    }

    pub(crate) fn bytes(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.bytes_per_token) as u64
    }

    /// Learns from what the model's server has counted. A few tokens say little, and servers that count too few, because
    /// they have kept some or left some out, must not make the conversation look shorter than it is.
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
