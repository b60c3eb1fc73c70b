//! A model with its tools, ready to be asked.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use plaincall::syntax::DialectError;
use plaincall::{AllowAll, Dialect, Gate, Log, Policy, Rules, Run, RunEvent, Tool, Toolbox};

use crate::agent_loop::AgentStream;
use crate::answer::{AgentError, AgentErrorKind, Answer};
use crate::conversation::Conversation;
use crate::limits::{AgentLimits, OnNoToolCall};
#[cfg(feature = "mcp")]
use crate::mcp::McpServers;
use crate::model::{Model, Retries};
use crate::settings::Settings;
use crate::user::User;

/// A model with its tools. It can be asked often, and from several tasks at once; copies are the same agent.
#[derive(Clone, Debug)]
pub struct Agent {
    pub(crate) settings: Arc<Settings>,
}

impl Agent {
    /// Settings for an agent with this model.
    pub fn builder(model: impl Model) -> AgentBuilder {
        AgentBuilder {
            settings: Settings {
                model: Arc::new(model),
                tools: Toolbox::default(),
                dialect: Dialect::block(),
                is_keyed: false,
                system: String::new(),
                rules: Rules::default(),
                gate: None,
                user: None,
                policy: Policy::default(),
                limits: AgentLimits::default(),
                on_no_tool_call: OnNoToolCall::default(),
                environment: BTreeMap::new(),
                directory_in: None,
                retries: Retries::default(),
            },
            #[cfg(feature = "mcp")]
            servers: None,
        }
    }

    /// Asks a question, in a conversation of its own.
    ///
    /// # Errors
    /// See [`Conversation::ask`].
    pub async fn ask(&self, question: impl AsRef<str>) -> Result<Answer, AgentError> {
        let mut talk = self.conversation()?;
        let answer = talk.ask(question).await;
        // What its tools have left behind is their own.
        let _ = talk.close().await;
        answer
    }

    /// Asks a question, in a conversation of its own, and tells what happens meanwhile.
    ///
    /// # Errors
    /// As [`conversation`](Self::conversation).
    pub fn stream(&self, question: impl AsRef<str>) -> Result<AgentStream<'static>, AgentError> {
        Ok(AgentStream::alone(
            self.conversation()?,
            question.as_ref().to_owned(),
        ))
    }

    /// Begins a conversation, on the present tokio runtime.
    ///
    /// # Errors
    /// If there is no runtime, or the system gives no random numbers for a key.
    pub fn conversation(&self) -> Result<Conversation, AgentError> {
        self.begin(self.settings.fresh_key()?, None)
    }

    /// Begins a conversation that is written to a log, or resumes it from there (`spec/log.md`, `spec/agent.md` 7). The
    /// agent must have the tools, the policy and the dialect that it had; the model may be another. `note` is kept for the
    /// program in the first line of the log, as `program` in its `note`.
    ///
    /// A truncated turn is ended first: its calls are cancelled, and the gate is asked what became of those that may have
    /// changed something ([`Gate::recover`]). Nothing is started. The policy and the key of the log hold.
    ///
    /// # Errors
    /// As [`conversation`](Self::conversation), and if the log does not fit.
    pub async fn session(
        &self,
        log: Log,
        note: serde_json::Value,
    ) -> Result<Conversation, AgentError> {
        let past = log.history().to_vec();
        let key = match past.first() {
            Some(RunEvent::Run(begin)) => begin.note["key"].as_str().map(str::to_owned),
            Some(_) => None,
            None => self.settings.fresh_key()?,
        };
        let mut talk = self.begin(key, Some((log, note)))?;
        talk.take_up(&past).await?;
        Ok(talk)
    }

    fn begin(
        &self,
        key: Option<String>,
        log: Option<(Log, serde_json::Value)>,
    ) -> Result<Conversation, AgentError> {
        let settings = &self.settings;
        let mut run = Run::builder(settings.tools.clone())
            .rules(settings.rules.clone())
            .policy(settings.policy)
            .environment(settings.environment.clone());
        if let Some(parent) = &settings.directory_in {
            run = run.directory_in(parent);
        }
        if let Some(gate) = &settings.gate {
            run = run.gate(Arc::clone(gate));
        }
        if let Some((log, note)) = log {
            let mut noted = serde_json::Map::new();
            if let Some(key) = &key {
                noted.insert("key".to_owned(), key.as_str().into());
            }
            noted.insert("program".to_owned(), note);
            run = run.log(log).cancel_unfinished().note(noted.into());
        }
        let dialect = match key {
            Some(key) => settings.dialect.clone().keyed(key),
            None => settings.dialect.clone(),
        };
        let run = run.dialect(dialect.clone()).build()?;
        let system = settings.system_message(&dialect)?;
        Ok(Conversation::new(
            Arc::clone(settings),
            run,
            dialect,
            system,
        )?)
    }

    /// The tools.
    pub fn tools(&self) -> &Toolbox {
        &self.settings.tools
    }
}

/// Settings of an [`Agent`].
pub struct AgentBuilder {
    settings: Settings,
    #[cfg(feature = "mcp")]
    servers: Option<McpServers>,
}

impl AgentBuilder {
    /// Sets how often a model is asked again that has not begun to answer.
    pub fn retries(mut self, retries: Retries) -> Self {
        self.settings.retries = retries;
        self
    }

    /// Sets the tools; none if nothing is said.
    pub fn tools(mut self, tools: Toolbox) -> Self {
        self.settings.tools = tools;
        self
    }

    /// Adds the tools of connected MCP servers, named as by [`McpServers::tools_for`]. They count as tools that
    /// [write](plaincall::Effect::Write) unless the user has said otherwise
    /// ([`McpServer::effects`](crate::mcp::McpServer::effects)).
    #[cfg(feature = "mcp")]
    pub fn mcp(mut self, servers: McpServers) -> Self {
        self.servers = Some(servers);
        self
    }

    /// Sets the syntax and the markers; the block syntax with its own markers if nothing is said. It is always read and
    /// taught with the escape.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.settings.dialect = dialect;
        self
    }

    /// Puts a random key into the markers of each conversation, so that no text from outside can know them.
    pub fn keyed(mut self) -> Self {
        self.settings.is_keyed = true;
        self
    }

    /// Sets the words of the program that the model reads first, behind how to call tools. They are the program's own:
    /// nothing in them is escaped.
    pub fn system(mut self, words: impl Into<String>) -> Self {
        self.settings.system = words.into();
        self
    }

    /// Sets what is decided without asking anybody; nothing if nothing is said.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.settings.rules = rules;
        self
    }

    /// Sets who decides about the calls that no rule decides about; if nothing is said, tools that
    /// [write](plaincall::Effect::Write) may not run ([`ReadOnly`](plaincall::ReadOnly)).
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.settings.gate = Some(Arc::new(gate));
        self
    }

    /// Lets every call run that is not a copy of a text from outside: [`AllowAll`].
    pub fn allow_all(self) -> Self {
        self.gate(AllowAll)
    }

    /// Sets who is asked back ([`OnNoToolCall::AskUser`]).
    pub fn user(mut self, user: impl User) -> Self {
        self.settings.user = Some(Arc::new(user));
        self
    }

    /// Sets how calls are run; [`Policy::default`] if nothing is said.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.settings.policy = policy;
        self
    }

    /// Sets how much one question may cost.
    pub fn limits(mut self, limits: AgentLimits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Sets what a reply without a call means; the answer if nothing is said.
    pub fn on_no_tool_call(mut self, meaning: OnNoToolCall) -> Self {
        self.settings.on_no_tool_call = meaning;
        self
    }

    /// Sets the environment from which commands get what they may see; none if nothing is said. That of this process is
    /// not looked at.
    pub fn environment(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.settings.environment = variables.into_iter().collect();
        self
    }

    /// Gives each conversation a directory of its own, made in this one. Commands work there, and it is removed at the end.
    pub fn directory_in(mut self, parent: impl Into<PathBuf>) -> Self {
        self.settings.directory_in = Some(parent.into());
        self
    }

    /// The agent.
    ///
    /// # Errors
    /// The dialect cannot work or is the automatic one, a reply without a call can have no such meaning, or two tools have
    /// one name.
    pub fn build(mut self) -> Result<Agent, AgentError> {
        #[cfg(feature = "mcp")]
        let of_servers = self.servers.as_ref();
        #[cfg(feature = "mcp")]
        for tool in of_servers.map_or(Vec::new(), |servers| {
            servers.tools_for(&self.settings.tools)
        }) {
            let added = self.settings.tools.add(tool);
            added.map_err(|error| AgentErrorKind::Settings(error.to_string()))?;
        }
        let finishes = |tool: &Tool| tool.policy().finishes;
        let can_finish = self.settings.tools.iter().any(finishes);
        let lacks = match self.settings.on_no_tool_call {
            OnNoToolCall::Answer => None,
            OnNoToolCall::AskUser if self.settings.user.is_none() => {
                Some("nobody who can be asked")
            }
            OnNoToolCall::AskUser | OnNoToolCall::Remind => {
                (!can_finish).then_some("no tool that finishes the work")
            }
        };
        if let Some(lacking) = lacks {
            let problem =
                format!("a reply without a call is to mean no answer, but there is {lacking}");
            return Err(AgentErrorKind::Settings(problem).into());
        }
        self.settings.dialect = self.settings.dialect.escaped();
        if self.settings.dialect.syntax().is_none() {
            return Err(AgentErrorKind::Dialect(DialectError::NoSyntax).into());
        }
        self.settings.system_message(&self.settings.dialect)?;
        Ok(Agent {
            settings: Arc::new(self.settings),
        })
    }
}
