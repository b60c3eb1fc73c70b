//! A worker: the services, and what they need.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plaincall::durable::{DurableSettings, ToolRunner};
use plaincall::prompt::few_shot::{FewShot, FewShotExample, ShownCall, few_shot};
use plaincall::prompt::{PromptOptions, prompt};
use plaincall::reply::Untrusted;
use plaincall::syntax::{DialectError, Syntax};
use plaincall::{BoxError, Dialect, Tool};
use plaincall_agent::agent_loop::AgentLoop;
use plaincall_agent::model::ModelRequest;
use plaincall_agent::{AgentLimits, Model};
use plaincall_grammar::{Constrain, Grammar, GrammarError, GrammarOptions, grammar};
use restate_sdk::endpoint::{HandlerOptions, ServiceOptions};
use restate_sdk::prelude::*;
use tokio::net::TcpListener;

use crate::call::{Call, MOST_FROM_DEPENDENCIES};
use crate::conversation::Conversation;
use crate::definitions::Definitions;
use crate::open_questions::OpenQuestions;
use crate::question::FirstAnswers;
use crate::serve::{definitions_at, serve};

/// How long Restate waits for a tool or a model beyond their own time limits.
const MARGIN: Duration = Duration::from_mins(1);
/// How long a repeated request with the same key has no effect, after the end of the first one.
const RETENTION: Duration = Duration::from_hours(7 * 24);
/// The longest time that a model may take for a reply.
const REPLY: Duration = Duration::from_hours(1);

/// A worker that serves conversations and calls to a Restate server. All workers at one address must be the same
/// build, with the same tools and settings; a reply in progress continues only on such workers. Clones share it.
#[derive(Clone, Debug)]
pub struct Worker(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    settings: DurableSettings,
    dialect: Dialect,
    runner: ToolRunner,
    definitions: Definitions,
    model: Option<Arc<dyn Model>>,
    /// The grammar of its replies, if it constrains them.
    grammar: Option<Arc<Grammar>>,
    /// The instructions and the tools, the texts after them, and both together.
    taught: String,
    texts: String,
    system: String,
    examples: FewShot,
    /// The calls of the examples whose values the system prompt does not contain.
    shown_calls: Arc<[ShownCall]>,
    limits: AgentLimits,
    release: Option<String>,
    approves_all: bool,
    /// The public keys of servers.
    identity_keys: Vec<String>,
    shutdown_timeout: Option<Duration>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Worker")
            .field("tools", &self.runner)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// Creates a worker with these tools. It has no model, and a person must approve calls of tools that write. A call gets at
    /// most 4 MiB from its dependencies, and outputs are truncated after 3 MiB.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid.
    pub fn new(settings: DurableSettings) -> Result<Self, DialectError> {
        let dialect = settings.model_dialect().clone().escaped();
        let settings = settings
            .dialect(dialect.clone())
            .dependency_limit(MOST_FROM_DEPENDENCIES);
        let specs = settings.tools().iter().map(Tool::spec);
        let taught = prompt(specs, &shown(&dialect), &PromptOptions::new())?.into_text();
        let worker = Self(Arc::new(Inner {
            runner: settings.runner(),
            definitions: Definitions::default(),
            settings,
            dialect,
            model: None,
            grammar: None,
            taught,
            texts: String::new(),
            system: String::new(),
            examples: FewShot::default(),
            shown_calls: [].into(),
            limits: AgentLimits::default(),
            release: None,
            approves_all: false,
            identity_keys: Vec::new(),
            shutdown_timeout: None,
        }));
        Ok(worker.with(|_| {}))
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        change(&mut inner);
        inner.system = format!("{}{}", inner.taught, inner.texts);
        let mut calls = inner.examples.calls.clone();
        calls.observe(&Untrusted::new(&*inner.system));
        inner.shown_calls = calls.unknown().cloned().collect();
        let model = inner.model.as_ref().map(Model::name);
        let texts = (&inner.system, &inner.examples.messages);
        let others = (model, texts, inner.limits, inner.approves_all);
        inner.definitions = Definitions::of(&inner.settings, inner.release.as_deref(), others);
        Self(Arc::new(inner))
    }

    /// Sets the model that answers questions.
    ///
    /// # Errors
    /// Returns an error if the model demands a grammar and the tools have none.
    pub fn model(self, model: impl Model) -> Result<Self, GrammarError> {
        let constrain = model.constrains();
        let tools = self.settings().tools();
        let made = (constrain != Constrain::Never && !tools.is_empty()).then(|| {
            let options = GrammarOptions::new().ids();
            let made = grammar(
                tools.iter().map(Tool::spec),
                &shown(self.dialect()),
                &options,
            );
            made.map(Arc::new)
        });
        let grammar = match made {
            Some(Err(error)) if constrain.is_demanded() => return Err(error),
            made => made.and_then(Result::ok),
        };
        let model: Arc<dyn Model> = Arc::new(model);
        Ok(self.with(|inner| (inner.model, inner.grammar) = (Some(model), grammar)))
    }

    /// Sets the limits of a question. Its time is limited by that of each turn ([`turn_timeout`](plaincall::Policy::turn_timeout))
    /// and of each reply.
    pub fn limits(self, limits: AgentLimits) -> Self {
        self.with(|inner| inner.limits = limits)
    }

    /// Shows at most this many examples as messages before each conversation
    /// ([`AgentBuilder::few_shot`](plaincall_agent::AgentBuilder::few_shot)).
    ///
    /// # Errors
    /// Returns an error if an example or the dialect is invalid.
    pub fn few_shot(self, examples: &[FewShotExample], most: usize) -> Result<Self, BoxError> {
        if most == 0 {
            return Ok(self);
        }
        let dialect = shown(self.dialect());
        let specs: Vec<_> = self.settings().tools().iter().map(Tool::spec).collect();
        let chosen = few_shot(examples, &specs, &dialect, most)?;
        if let Some(invalid) = chosen.invalid.first() {
            return Err(invalid.to_string().into());
        }
        let taught = prompt(specs, &dialect, &PromptOptions::new().few_shot())?.into_text();
        Ok(self.with(|inner| (inner.taught, inner.examples) = (taught, chosen)))
    }

    /// Appends a text to the system prompt.
    pub fn system_text(self, text: &str) -> Self {
        self.with(|inner| {
            inner.texts.push_str("\n\n");
            inner.texts.push_str(text);
        })
    }

    /// Names the release of the tools' own code, so that a reply in progress does not continue on workers with other code.
    /// Default: none.
    pub fn release(self, name: &str) -> Self {
        self.with(|inner| inner.release = Some(name.to_owned()))
    }

    /// Approves calls of tools that write, except held ones, without asking a person.
    pub fn approve_all(self) -> Self {
        self.with(|inner| inner.approves_all = true)
    }

    /// Sets the working directory of commands, an absolute path, and the environment from which they get the variables that
    /// they request. Default: none.
    pub fn commands(self, directory: PathBuf, environment: BTreeMap<OsString, OsString>) -> Self {
        self.with(|inner| inner.runner = inner.runner.clone().with(directory, environment))
    }

    /// Accepts only requests that a server with this public key has signed, `publickeyv1_…`. Several keys can be set.
    ///
    /// # Errors
    /// Returns an error if the key is invalid.
    pub fn identity_key(self, key: &str) -> Result<Self, BoxError> {
        Endpoint::builder().identity_key(key)?;
        Ok(self.with(|inner| inner.identity_keys.push(key.to_owned())))
    }

    /// Sets how long [`serve`](Self::serve) waits for invocations in progress at the end. Default: as long as the longest tool
    /// may take.
    pub fn shutdown_timeout(self, timeout: Duration) -> Self {
        self.with(|inner| inner.shutdown_timeout = Some(timeout))
    }

    /// Returns the longest time that a tool may take.
    fn longest(&self) -> Duration {
        let policies = self.settings().tools().iter().map(Tool::policy);
        let times = policies.map(|policy| policy.timeout.saturating_add(policy.grace));
        times.max().unwrap_or_default()
    }

    /// Returns the endpoint of the services.
    ///
    /// # Errors
    /// Returns an error if a key is invalid, which was checked when it was set.
    fn endpoint(&self) -> Result<Endpoint, BoxError> {
        let call = Call(self.clone()).definition();
        let answers = FirstAnswers.into_service_definition();
        let questions = OpenQuestions.into_service_definition();
        let conversation = Conversation(self.clone()).into_service_definition();
        // Otherwise Restate ends the attempt of a tool that is quiet for a minute.
        let call_options = unlimited()
            .inactivity_timeout(self.longest().saturating_add(MARGIN))
            .ingress_private(true);
        let mut endpoint = Endpoint::builder();
        for key in &self.0.identity_keys {
            endpoint = endpoint.identity_key(key)?;
        }
        Ok(endpoint
            .bind(call.options(call_options))
            .bind(answers.options(unkept().ingress_private(true)))
            .bind(
                questions.options(
                    unkept()
                        .enable_lazy_state(true)
                        .handler("add", HandlerOptions::new().ingress_private(true))
                        .handler("remove", HandlerOptions::new().ingress_private(true)),
                ),
            )
            // Its state contains the record, which `status` does not need, and of which each journal has a copy.
            .bind(conversation.options(conversation_options()))
            .build())
    }

    /// Serves a Restate server until `shutdown` completes. Then it waits for invocations in progress
    /// ([`shutdown_timeout`](Self::shutdown_timeout)); other workers continue the rest.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let definitions = self.definitions().checksum();
        let patience = self.0.shutdown_timeout.unwrap_or_else(|| self.longest());
        if let Ok(endpoint) = self.endpoint() {
            serve(endpoint, definitions, listener, shutdown, patience).await;
        }
    }

    /// Checks that a worker which listens on an address has the same tools and settings. All workers at one address must.
    ///
    /// # Errors
    /// Returns an error if it has others.
    pub async fn check_address(&self, address: SocketAddr) -> Result<(), String> {
        match definitions_at(address).await {
            Some(other) if other != self.definitions().checksum() => Err(format!(
                "a worker with other tools or settings listens on {address}; stop it first, or use another address and register it"
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn settings(&self) -> &DurableSettings {
        &self.0.settings
    }

    pub(crate) fn dialect(&self) -> &Dialect {
        &self.0.dialect
    }

    pub(crate) fn runner(&self) -> &ToolRunner {
        &self.0.runner
    }

    pub(crate) fn definitions(&self) -> &Definitions {
        &self.0.definitions
    }

    pub(crate) fn model_of_questions(&self) -> Option<&Arc<dyn Model>> {
        self.0.model.as_ref()
    }

    /// Returns the agent loop of a new conversation.
    pub(crate) fn agent_loop(&self) -> AgentLoop {
        let (tools, dialect) = (self.settings().tools().clone(), self.dialect().clone());
        let mut agent_loop = AgentLoop::new(tools, dialect, self.0.system.clone(), self.0.limits);
        agent_loop.set_examples(&self.0.examples.messages);
        agent_loop
    }

    pub(crate) fn shown_calls(&self) -> Arc<[ShownCall]> {
        Arc::clone(&self.0.shown_calls)
    }

    /// Returns a request with the grammar of the tools, if the model constrains its replies.
    pub(crate) fn constrained(&self, mut request: ModelRequest) -> ModelRequest {
        request.grammar.clone_from(&self.0.grammar);
        request
    }

    pub(crate) fn approves_all(&self) -> bool {
        self.0.approves_all
    }
}

/// Returns the dialect that a model is shown, which has one syntax.
fn shown(dialect: &Dialect) -> Dialect {
    match dialect.syntax() {
        Some(_) => dialect.clone(),
        None => dialect.for_syntax(Syntax::Block),
    }
}

/// Returns options with as many attempts as an invocation needs until there is a worker for it.
fn unlimited() -> ServiceOptions {
    ServiceOptions::new().retry_policy_max_attempts(u32::MAX.into())
}

/// Returns options of a service of whose ended invocations the server keeps nothing.
fn unkept() -> ServiceOptions {
    let unkept = unlimited().idempotency_retention(Duration::ZERO);
    unkept.journal_retention(Duration::ZERO)
}

/// The server keeps only the results of replies.
fn conversation_options() -> ServiceOptions {
    let unkept = HandlerOptions::new()
        .idempotency_retention(Duration::ZERO)
        .journal_retention(Duration::ZERO);
    let options = unlimited()
        .abort_timeout(REPLY)
        .idempotency_retention(RETENTION)
        .journal_retention(Duration::ZERO)
        .enable_lazy_state(true)
        // While a model is silent, nothing else completes. An invocation that was suspended meanwhile would wait forever.
        .handler(
            "ask",
            HandlerOptions::new().inactivity_timeout(REPLY.saturating_add(MARGIN)),
        )
        .handler("clear", unkept.clone().ingress_private(true));
    let readers = ["status", "answer", "record", "record_part", "forget"];
    readers.iter().fold(options, |options, name| {
        options.handler(*name, unkept.clone())
    })
}

/// Returns the time in milliseconds since 1970 (UTC).
pub(crate) fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
