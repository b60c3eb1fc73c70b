//! Conversations.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use plaincall::reply::Untrusted;
use plaincall::syntax::DialectError;
use plaincall::{
    CallResult, Dialect, Run, RunEvents, Toolbox,
    command::Directories,
    events::Author,
    run::{CloseError, RemovedFiles},
};
use plaincall_grammar::GrammarError;

use crate::agent_loop::{AgentLoop, Effect};
use crate::answer::AgentError;
use crate::budget::Budget;
use crate::event::AgentEvent;
use crate::limits::AgentLimits;
use crate::model::{Message, Model, Retrying};
use crate::settings::Settings;
use crate::subagent::submissions::Submissions;

/// A conversation with an agent. Later turns can refer to ids and results of earlier ones.
pub struct Conversation {
    pub(crate) settings: Arc<Settings>,
    pub(crate) agent_loop: AgentLoop,
    pub(crate) model: Retrying,
    pub(crate) run: Run,
    pub(crate) written: String,
    /// Documents for the next question, by name. They are added when the previous turn has ended.
    attached: Vec<(String, String)>,
    pub(crate) opened: u32,
    /// The number of turns in the history.
    pub(crate) recorded: u32,
    /// The tools of a resumed conversation that no longer exist.
    pub(crate) gone_tools: Vec<String>,
    /// A message of the program that follows the current turn.
    pub(crate) after_turn: Option<Arc<str>>,
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
        let tools = settings.tools.clone();
        let agent_loop = AgentLoop::new(tools, dialect, system, settings.limits);
        Self {
            model: Retrying::new(Arc::clone(&settings.model), settings.retries),
            agent_loop: agent_loop.on_no_tool_call(settings.on_no_tool_call),
            written: String::new(),
            settings,
            run,
            attached: Vec::new(),
            opened: 0,
            recorded: 0,
            gone_tools: Vec::new(),
            after_turn: None,
            submissions: None,
            interrupted: None,
            budget: None,
        }
    }

    /// Attaches a document to the next question. It is untrusted text: nothing in it is a call, and a call that the model
    /// copies from it needs approval.
    pub fn attach(&mut self, name: &str, text: &str) {
        self.attached.push((name.to_owned(), text.to_owned()));
    }

    /// Returns the messages as the model would read them now.
    pub fn messages(&self) -> Arc<[Message]> {
        self.agent_loop.messages()
    }

    /// Checks the grammar of the conversation for a model to [switch to](Self::set_model), as
    /// [`Agent::check_grammar`](crate::Agent::check_grammar) does for the model of the agent (`spec/agent.md` 9).
    ///
    /// # Errors
    /// Returns an error if there is none, but the model demands one.
    pub async fn check_grammar(
        &self,
        model: &impl Model,
    ) -> Result<Option<GrammarError>, AgentError> {
        let made = self.settings.grammar(model, self.dialect()).await?;
        Ok(made.err())
    }

    /// Switches to another model.
    pub fn set_model(&mut self, model: impl Model) {
        self.model = Retrying::new(Arc::new(model), self.settings.retries);
        self.agent_loop.forget_model();
    }

    /// Sets the limits of later questions.
    pub fn set_limits(&mut self, limits: AgentLimits) {
        self.agent_loop.limits = limits;
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        self.model.name()
    }

    /// Returns the tools.
    pub fn tools(&self) -> &Toolbox {
        &self.agent_loop.tools
    }

    /// Returns the names of the tools of a resumed conversation that no longer exist. The model got them too.
    pub fn gone_tools(&self) -> &[String] {
        &self.gone_tools
    }

    /// Returns the dialect.
    pub fn dialect(&self) -> &Dialect {
        &self.agent_loop.dialect
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
            let heading = Some(name.as_str());
            self.agent_loop.add_untrusted(&name, heading, &document);
        }
        self.agent_loop.add_question(text);
    }

    /// Records what the agent loop adds to the conversation. Returns the events to show.
    pub(crate) fn carry_out(&mut self) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        for effect in self.agent_loop.take_effects() {
            match effect {
                Effect::Untrusted { name, text } => {
                    self.run.observe_untrusted(&name, &Untrusted::new(text));
                }
                Effect::Message { author, text } => {
                    self.run.record_message(author, Arc::clone(&text));
                    events.push(AgentEvent::Message { text });
                }
                Effect::Shortened { results, bytes } => {
                    events.push(AgentEvent::Shortened { results, bytes });
                }
            }
        }
        events
    }

    pub(crate) fn add_turn(
        &mut self,
        written: String,
        results: Vec<CallResult>,
    ) -> Result<(), DialectError> {
        self.recorded += 1;
        self.agent_loop.add_turn(written, results)?;
        if let Some(text) = self.after_turn.take() {
            self.agent_loop.add_message(Author::Program, text);
            self.carry_out();
        }
        Ok(())
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
