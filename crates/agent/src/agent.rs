//! Agents and their builder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use plaincall::prompt::few_shot::{FewShotExample, ShownCall};
use plaincall::prompt::{PromptOptions, SkippedExample};
use plaincall::reply::Untrusted;
use plaincall::syntax::DialectError;
use plaincall::{AllowAll, Dialect, Gate, Log, Policy, Rules, RunEvent, Tool, Toolbox};
use plaincall_grammar::GrammarError;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::agent_run::AgentStream;
use crate::answer::{AgentError, AgentErrorKind, Answer};
use crate::conversation::Conversation;
use crate::given::GivenMessage;
use crate::grammar::KnownGrammar;
use crate::limits::{AgentLimits, OnNoToolCall};
#[cfg(feature = "mcp")]
use crate::mcp::McpServers;
use crate::model::{Model, Retries};
use crate::settings::{Settings, Subagent};
use crate::subagent;
use crate::user::User;

/// A model with its tools. Clones share it, and it can answer several questions concurrently.
#[derive(Clone, Debug)]
pub struct Agent {
    pub(crate) settings: Arc<Settings>,
}

impl Agent {
    /// Creates a builder for an agent with this model.
    pub fn builder(model: impl Model) -> AgentBuilder {
        AgentBuilder {
            settings: Settings {
                model: Arc::new(model),
                tools: Toolbox::default(),
                run_tools: Toolbox::default(),
                subagents: Vec::new(),
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
                prompt: PromptOptions::new(),
                examples: Vec::new(),
                few_shot: 0,
                transform: None,
                observers: Vec::new(),
                known_grammar: KnownGrammar::default(),
            },
            subagents: Vec::new(),
            #[cfg(feature = "mcp")]
            servers: None,
        }
    }

    /// Asks a question in a new conversation.
    ///
    /// # Errors
    /// See [`Conversation::ask`].
    pub async fn ask(&self, question: impl AsRef<str>) -> Result<Answer, AgentError> {
        let mut talk = self.conversation()?;
        let answer = talk.ask(question).await;
        // An error of the cleanup does not change the answer.
        let _ = talk.close().await;
        answer
    }

    /// Asks a question whose answer is JSON, in a new conversation. See [`Conversation::ask_as`].
    ///
    /// # Errors
    /// See [`Conversation::ask_as`].
    pub async fn ask_as<T: DeserializeOwned + JsonSchema>(
        &self,
        question: impl AsRef<str>,
    ) -> Result<T, AgentError> {
        let mut talk = self.conversation()?;
        let answer = talk.ask_as(question).await;
        // An error of the cleanup does not change the answer.
        let _ = talk.close().await;
        answer
    }

    /// Asks a question in a new conversation and streams the events.
    ///
    /// # Errors
    /// See [`conversation`](Self::conversation).
    pub fn stream(&self, question: impl AsRef<str>) -> Result<AgentStream<'static>, AgentError> {
        Ok(AgentStream::alone(
            self.conversation()?,
            question.as_ref().to_owned(),
        ))
    }

    /// Starts a conversation on the current tokio runtime.
    ///
    /// # Errors
    /// Returns an error if there is no runtime, or the system provides no random numbers for a key.
    pub fn conversation(&self) -> Result<Conversation, AgentError> {
        self.start(self.settings.fresh_key()?.as_deref(), None)
    }

    /// Starts a conversation that begins with these messages, such as an example of a question, a call and its result. They
    /// are part of no log.
    ///
    /// # Errors
    /// See [`conversation`](Self::conversation).
    pub fn conversation_from(
        &self,
        messages: impl IntoIterator<Item = GivenMessage>,
    ) -> Result<Conversation, AgentError> {
        let mut talk = self.conversation()?;
        for message in messages {
            talk.add_given(&message).map_err(AgentErrorKind::Dialect)?;
        }
        Ok(talk)
    }

    /// Starts a conversation on a new log, or resumes one from an existing log (`spec/log.md`, `spec/agent.md` 7). The agent
    /// must have the same tools, policy and dialect; the model may differ. `note` is stored as `program` in the `note` of
    /// the log's first line.
    ///
    /// An interrupted turn is ended first: its calls are cancelled, and the gate is asked for the outcome of those that may
    /// have changed something ([`Gate::recover`]). Nothing is started. If subagents were interrupted,
    /// [`resume`](Conversation::resume) lets them continue before the turn is ended.
    ///
    /// # Errors
    /// See [`conversation`](Self::conversation). Also returns an error if the log does not match the agent, or the tool of an
    /// interrupted call is gone or has changed. Other tools may be gone: the model gets their names
    /// ([`gone_tools`](Conversation::gone_tools)).
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
        let mut talk = self.start(key.as_deref(), Some((log, note)))?;
        talk.replay(&past).await?;
        talk.report_gone_tools(&past);
        Ok(talk)
    }

    fn start(
        &self,
        key: Option<&str>,
        log: Option<(Log, serde_json::Value)>,
    ) -> Result<Conversation, AgentError> {
        let settings = &self.settings;
        let dialect = match key {
            Some(key) => settings.dialect.clone().keyed(key),
            None => settings.dialect.clone(),
        };
        let mut shown = settings.shown_examples(&dialect)?;
        shown.calls.observe(&Untrusted::new(&*settings.system));
        let past = log.as_ref().map_or(&[][..], |(log, _)| log.history());
        let calls: Arc<[ShownCall]> = shown.calls.unknown().cloned().collect();
        let (tools, submissions) = subagent::bound(settings, &dialect, past)?;
        let run = settings.run(tools).policy(settings.policy);
        let mut run = run.environment(settings.environment.clone());
        if let Some(parent) = &settings.directory_in {
            run = run.directory_in(parent);
        }
        if let Some(gate) = &settings.gate {
            run = run.gate(Arc::clone(gate));
        }
        if let Some((log, note)) = log {
            let mut noted = serde_json::Map::new();
            if let Some(key) = key {
                noted.insert("key".to_owned(), key.into());
            }
            noted.insert("program".to_owned(), note);
            run = run.log(log).cancel_unfinished().note(noted.into());
        }
        let mut run = run.dialect(dialect.clone()).build()?;
        run.observe_examples(calls);
        let system = settings.system_message(&dialect)?;
        let mut talk = Conversation::new(Arc::clone(settings), run, dialect, system);
        talk.agent_loop.set_examples(&shown.messages);
        talk.submissions = submissions;
        Ok(talk)
    }

    /// Returns the examples of calls that the prompt does not contain, because they do not fit or are not valid.
    pub fn skipped_examples(&self) -> Vec<SkippedExample> {
        // The dialect was checked when the agent was built.
        let prompt = self.settings.prompt(&self.settings.dialect).ok().flatten();
        prompt.map_or(Vec::new(), |prompt| prompt.skipped_examples().to_vec())
    }

    /// Makes the grammar of the tools, if the model [constrains](Model::constrains) replies. Returns why there is none; then
    /// replies are not constrained. Without this check, the first question of a conversation does the same.
    ///
    /// # Errors
    /// Returns an error if there is none, but the model demands one.
    pub async fn check_grammar(&self) -> Result<Option<GrammarError>, AgentError> {
        let settings = &self.settings;
        let made = settings
            .grammar(&*settings.model, &settings.dialect)
            .await?;
        Ok(made.err())
    }

    /// Returns the tools.
    pub fn tools(&self) -> &Toolbox {
        &self.settings.tools
    }
}

/// A builder of an [`Agent`].
pub struct AgentBuilder {
    settings: Settings,
    /// The subagents: names, descriptions, agents.
    subagents: Vec<(String, String, Agent)>,
    #[cfg(feature = "mcp")]
    servers: Option<McpServers>,
}

impl AgentBuilder {
    /// Sets the retries of failed model requests.
    pub fn retries(mut self, retries: Retries) -> Self {
        self.settings.retries = retries;
        self
    }

    /// Sets the options of the prompt, such as the limit of the tools' examples of calls.
    pub fn prompt(mut self, options: PromptOptions) -> Self {
        self.settings.prompt = options;
        self
    }

    /// Sends at most this many examples as messages before each conversation: of these, and of the tools' own that have a
    /// question (`spec/prompt.md` 3.3). A call that a model copies from one is held.
    pub fn few_shot(mut self, examples: Vec<FewShotExample>, most: usize) -> Self {
        self.settings.examples = examples;
        self.settings.few_shot = most;
        self
    }

    /// Transforms outputs and errors of tools before other calls, observers, the log or the model get them. See
    /// [`RunBuilder::transform`](plaincall::run::RunBuilder::transform).
    pub fn transform(
        mut self,
        transform: impl Fn(&str, String) -> String + Send + Sync + 'static,
    ) -> Self {
        self.settings.transform = Some(Arc::new(transform));
        self
    }

    /// Adds an observer of the events of all conversations. Each conversation calls it on a thread of its own. See
    /// [`Observer`](plaincall::Observer).
    pub fn observer(mut self, observer: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.settings.observers.push(Arc::new(observer));
        self
    }

    /// Sets the tools. Default: none.
    pub fn tools(mut self, tools: Toolbox) -> Self {
        self.settings.tools = tools;
        self
    }

    /// Adds another agent as a tool, with one parameter, `task`. Its model reads the task and nothing else of the conversation;
    /// its answer is the result.
    ///
    /// Rules, gate, policy and log of this agent apply to the subagent's calls, and its own rules, transform and observers in
    /// addition. They are calls of
    /// the same run, with the call of the subagent as parent. The limits of a question apply to both together, and the
    /// subagent's own limits to each task. A subagent uses the dialect of this agent; its gate and its environment are not used.
    /// Agents can be nested 4 deep.
    pub fn subagent(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        agent: Agent,
    ) -> Self {
        let named = (name.into(), description.into(), agent);
        self.subagents.push(named);
        self
    }

    /// Adds the tools of connected MCP servers, with the names of [`McpServers::tools_for`] and the effects of
    /// [`McpServer::effects`](crate::mcp::McpServer::effects).
    #[cfg(feature = "mcp")]
    pub fn mcp(mut self, servers: McpServers) -> Self {
        self.servers = Some(servers);
        self
    }

    /// Sets the syntax and the markers. Default: the block syntax. The escape is always on.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.settings.dialect = dialect;
        self
    }

    /// Adds a random key to the markers of each conversation, so that untrusted text cannot contain them.
    pub fn keyed(mut self) -> Self {
        self.settings.is_keyed = true;
        self
    }

    /// Sets the system text, which follows the tools in the system prompt. It is trusted and not escaped.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.settings.system = text.into();
        self
    }

    /// Sets the rules, which decide before the gate. Default: none.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.settings.rules = rules;
        self
    }

    /// Sets the gate, which decides about calls that match no rule. Default: calls that
    /// [write](plaincall::Effect::Write) are denied ([`ReadOnly`](plaincall::ReadOnly)).
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.settings.gate = Some(Arc::new(gate));
        self
    }

    /// Allows every call except held ones: [`AllowAll`].
    pub fn allow_all(self) -> Self {
        self.gate(AllowAll)
    }

    /// Sets the user who answers questions ([`OnNoToolCall::AskUser`]).
    pub fn user(mut self, user: impl User) -> Self {
        self.settings.user = Some(Arc::new(user));
        self
    }

    /// Sets the policy of the run. Default: [`Policy::default`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.settings.policy = policy;
        self
    }

    /// Sets the limits of a question.
    pub fn limits(mut self, limits: AgentLimits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Sets what a reply without a call means. Default: it is the answer.
    pub fn on_no_tool_call(mut self, meaning: OnNoToolCall) -> Self {
        self.settings.on_no_tool_call = meaning;
        self
    }

    /// Sets the environment of commands. Default: empty; the environment of this process is not read.
    pub fn environment(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.settings.environment = variables.into_iter().collect();
        self
    }

    /// Creates a working directory for each conversation in this one. It is removed at the end.
    pub fn directory_in(mut self, parent: impl Into<PathBuf>) -> Self {
        self.settings.directory_in = Some(parent.into());
        self
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid or automatic, if [`on_no_tool_call`](Self::on_no_tool_call) needs a user or a
    /// finishing tool that is missing, if two tools have the same name, or if a few-shot example is invalid.
    pub fn build(mut self) -> Result<Agent, AgentError> {
        #[cfg(feature = "mcp")]
        let servers = self.servers.as_ref();
        #[cfg(feature = "mcp")]
        for tool in servers.map_or(Vec::new(), |servers| {
            servers.tools_for(&self.settings.tools)
        }) {
            let added = self.settings.tools.add(tool);
            added.map_err(|error| AgentErrorKind::Settings(error.to_string()))?;
        }
        for (name, description, agent) in std::mem::take(&mut self.subagents) {
            let settings = agent.settings;
            let own = Subagent { name, settings };
            let added = (self.settings.tools).add(subagent::tool(&own, &description));
            added.map_err(|error| AgentErrorKind::Settings(error.to_string()))?;
            self.settings.subagents.push(own);
        }
        subagent::add_tools(&mut self.settings)?;
        let finishes = |tool: &Tool| tool.policy().finishes;
        let can_finish = self.settings.tools.iter().any(finishes);
        let lacks = match self.settings.on_no_tool_call {
            OnNoToolCall::Answer => None,
            OnNoToolCall::AskUser if self.settings.user.is_none() => Some("user"),
            OnNoToolCall::AskUser | OnNoToolCall::Remind => {
                (!can_finish).then_some("finishing tool")
            }
        };
        if let Some(lacking) = lacks {
            let problem = format!("this setting for replies without a call requires a {lacking}");
            return Err(AgentErrorKind::Settings(problem).into());
        }
        self.settings.dialect = self.settings.dialect.escaped().for_reply();
        if self.settings.dialect.syntax().is_none() {
            return Err(AgentErrorKind::Dialect(DialectError::NoSyntax).into());
        }
        if self.settings.few_shot > 0 {
            self.settings.prompt = self.settings.prompt.few_shot();
        }
        self.settings.system_message(&self.settings.dialect)?;
        let shown = self.settings.shown_examples(&self.settings.dialect)?;
        if let Some(invalid) = shown.invalid.first() {
            return Err(AgentErrorKind::Example(invalid.clone()).into());
        }
        Ok(Agent {
            settings: Arc::new(self.settings),
        })
    }
}
