//! A conversation that is kept and continued.

use std::fmt;
use std::sync::Arc;

use plaincall::call::{Collector, Foreign, Limits, PassageBuilder};
use plaincall::syntax::near_misses;
use plaincall::{Canceller, Dialect, Run, RunEvents, Toolbox};

use crate::agent::Settings;
use crate::answer::{AgentError, Answer};
use crate::asking::Asking;
use crate::history::History;
use crate::model::{Message, Model};

/// A conversation with an agent: what was said so far, and its run with ids and results that later turns can name.
///
/// ```
/// use plaincall_agent::{Agent, AgentEvent, Scripted};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), plaincall_agent::AgentError> {
/// let agent = Agent::builder(Scripted::new(["Hello.", "As I said: hello."])).build()?;
/// let mut talk = agent.conversation()?;
/// assert_eq!(talk.ask("Good morning!").await?.text, "Hello.");
///
/// let mut asking = talk.stream("What?");
/// let mut heard = String::new();
/// while let Some(event) = asking.next().await {
///     if let AgentEvent::Text(text) = event {
///         heard.push_str(&text);
///     }
/// }
/// assert_eq!(heard, "As I said: hello.");
/// assert_eq!(asking.answer().await?.progress.turns, 1);
/// # Ok(())
/// # }
/// ```
pub struct Conversation {
    pub(crate) settings: Arc<Settings>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) dialect: Dialect,
    pub(crate) run: Run,
    pub(crate) events: RunEvents,
    /// Reads what the run reads, to know what was wrong with a call.
    pub(crate) collector: Collector,
    pub(crate) history: History,
    /// How many turns there were.
    pub(crate) turns: u32,
    /// Whether a text from outside looks like a call, so that a near miss may be a quotation.
    pub(crate) is_quotable: bool,
    /// What was written of a reply that was dropped while it came.
    pub(crate) dropped: Option<String>,
}

impl Conversation {
    pub(crate) fn new(settings: Arc<Settings>, run: Run, dialect: Dialect, system: String) -> Self {
        Self {
            model: Arc::clone(&settings.model),
            settings,
            events: run.events(),
            run,
            collector: Collector::new(Limits::for_running()),
            history: History::new(dialect.clone(), system),
            dialect,
            turns: 0,
            is_quotable: false,
            dropped: None,
        }
    }

    /// Asks the next question and waits for the answer.
    ///
    /// # Errors
    /// If the model gives no answer: its server fails, a limit is reached, its calls stay wrong. The conversation can go
    /// on all the same.
    pub async fn ask(&mut self, question: impl AsRef<str>) -> Result<Answer, AgentError> {
        let mut asking = self.stream(question);
        while asking.next().await.is_some() {}
        asking.answer().await
    }

    /// Asks the next question and tells what happens meanwhile. Nothing happens before the first event is asked for; dropping
    /// it cancels everything at once.
    pub fn stream(&mut self, question: impl AsRef<str>) -> Asking<'_> {
        Asking::new(self, question.as_ref().to_owned())
    }

    /// The messages as the model would read them now.
    pub fn messages(&self) -> Arc<[Message]> {
        self.history.messages()
    }

    /// Lets another model answer from now on.
    pub fn set_model(&mut self, model: impl Model) {
        self.model = Arc::new(model);
    }

    /// The name of the model.
    pub fn model(&self) -> &str {
        self.model.name()
    }

    /// The tools.
    pub fn tools(&self) -> &Toolbox {
        self.run.toolbox()
    }

    /// A handle by which the calls of the present turn can be cancelled from elsewhere.
    pub fn canceller(&self) -> Canceller {
        self.run.canceller()
    }

    /// The dialect in which the model is taught and read.
    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// Gives the model a document, before the next question. It is a text from outside: nothing in it counts as a call, and
    /// a call that the model copies from it runs only if somebody says so.
    pub fn attach(&mut self, name: &str, text: &str) {
        self.heed(text);
        let text = Foreign::new(text);
        self.run.hear(name, &text);
        if let Ok(mut passage) = PassageBuilder::new(std::slice::from_ref(&self.dialect)) {
            passage.own("The user gives you ");
            passage.foreign(&Foreign::new(name));
            passage.own(":\n\n");
            passage.foreign(&text);
            self.history.tell(passage.finish().into_text().into());
        }
    }

    /// Tells the model a text from outside, and listens for copies of it.
    pub(crate) fn tell_foreign(&mut self, name: &str, text: &str) {
        self.heed(text);
        let text = Foreign::new(text);
        self.run.hear(name, &text);
        // The dialect was tried when the agent was built.
        if let Ok(mut passage) = PassageBuilder::new(std::slice::from_ref(&self.dialect)) {
            passage.foreign(&text);
            self.history.tell(passage.finish().into_text().into());
        }
    }

    /// Notices a text from outside that looks like a call.
    pub(crate) fn heed(&mut self, text: &str) {
        self.is_quotable = self.is_quotable
            || near_misses(text, &self.dialect).map_or(true, |near| !near.is_empty());
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Conversation")
            .field("model", &self.model.name())
            .field("turns", &self.turns)
            .finish_non_exhaustive()
    }
}
