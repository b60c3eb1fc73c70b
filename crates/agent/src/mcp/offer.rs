//! Our tools for MCP clients.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plaincall::call::{flatten_call, unknown_tool};
use plaincall::syntax::{Call, render};
use plaincall::{
    CallResult, Decision, Dialect, Effect, Gate, GateFuture, Policy, Request, Rules, Run, RunError,
    Status, Stop, Tool, Toolbox, Verdict,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool as ToolDefinition, ToolAnnotations,
};
use rmcp::service::{
    QuitReason, RequestContext, RoleServer, ServerInitializeError, serve_server_with_ct,
};
use rmcp::transport::io::stdio_pipes;
use rmcp::{ErrorData, ServerHandler};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{RwLock, Semaphore};
use tokio_util::sync::CancellationToken;

use super::messages::{Messages, Unreadable};

/// How many calls of a client may be running or waiting; more are refused.
const MOST_CALLS: usize = 1024;

/// How long calls that were called off may take to end.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// Tools that are offered to a client, and what may be done with them.
///
/// Nobody can be asked while it runs: the client is a program, and so is whoever speaks through it. So tools that only
/// read or can be repeated run, and one that writes runs only if a rule allows it, or [`yes`](Self::yes) does. What does
/// not run is refused with a reason that the client's model can read.
///
/// ```no_run
/// use plaincall::{Effect, Rule, Rules, Tool, Toolbox};
/// use plaincall_agent::mcp::McpOffer;
/// use tokio_util::sync::CancellationToken;
///
/// # async fn example() -> Result<(), plaincall::BoxError> {
/// let today = Tool::new("today", |(): (), _| async { Ok("Monday".to_owned()) }).effect(Effect::Read);
/// let mut offer = McpOffer::new(Toolbox::new([today])?);
/// offer.rules = Rules::new([Rule::deny(["today"], "it is late")]);
/// offer.serve_stdio(CancellationToken::new()).await?;
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub struct McpOffer {
    /// The tools.
    pub tools: Toolbox,
    /// What may run and what may not.
    pub rules: Rules,
    /// Lets tools run that may change something, and calls about which a rule wants somebody to be asked. What a rule
    /// denies stays denied.
    pub yes: bool,
    /// Limits. [`Policy::concurrent`] is for all calls of the client together; a result that is longer than
    /// [`Policy::result_limit`] is cut, with a note at its end.
    pub policy: Policy,
    /// What commands may see of the environment ([`RunBuilder::environment`](plaincall::RunBuilder::environment)).
    pub environment: BTreeMap<OsString, OsString>,
    /// The directory in which commands work by default ([`RunBuilder::current_directory`](plaincall::RunBuilder::current_directory)).
    /// Default: the current directory of the process.
    pub current_directory: Option<PathBuf>,
    /// The scratch directory, in which the calls of the client can pass files to each other.
    pub directory: Option<PathBuf>,
    /// What the server calls itself.
    pub name: String,
}

/// Why tools could not be offered, or not to the end.
#[derive(Debug)]
#[non_exhaustive]
pub enum McpServeError {
    /// The tools cannot run.
    Run(RunError),
    /// What the client wrote first is no beginning of a conversation in the protocol.
    Beginning(String),
}

impl fmt::Display for McpServeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(error) => error.fmt(formatter),
            Self::Beginning(message) => formatter.write_str(message),
        }
    }
}

impl std::error::Error for McpServeError {}

impl McpOffer {
    /// An offer of these tools.
    pub fn new(tools: Toolbox) -> Self {
        Self {
            tools,
            rules: Rules::default(),
            yes: false,
            policy: Policy::default(),
            environment: BTreeMap::new(),
            current_directory: None,
            directory: None,
            name: "plaincall".to_owned(),
        }
    }

    /// Serves the client that has started this process, over standard input and output. Nothing else may be written there.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub async fn serve_stdio(self, stop: CancellationToken) -> Result<(), McpServeError> {
        let (input, output) = stdio_pipes();
        self.serve(input, output, stop).await
    }

    /// Serves one client, over its two streams, until it closes its end or `stop` is set.
    ///
    /// A client that goes away leaves the calls that are running a few seconds; with `stop`, and when a client calls one
    /// off, their tools are ended at once, as after a timeout. When this returns, nothing runs any more.
    ///
    /// # Errors
    /// If the tools cannot run, or the client speaks another protocol.
    pub async fn serve<R, W>(
        self,
        input: R,
        output: W,
        stop: CancellationToken,
    ) -> Result<(), McpServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let service = Arc::new(Service::new(self, &stop));
        // What keeps tools from running is known before the first call.
        let run = service.run().map_err(McpServeError::Run)?;
        let _ = run.close().await;
        let transport = Messages::<RoleServer, _, _>::new(input, output, Unreadable::Answer);
        // A token of its own: it is cancelled when the connection goes away, whoever ends it.
        let serving =
            serve_server_with_ct(Handler(Arc::clone(&service)), transport, stop.child_token());
        let ended = match serving.await {
            Ok(running) => {
                // A task that panicked has said so where panics are said.
                let _: Result<QuitReason, _> = running.waiting().await;
                Ok(())
            }
            // The client went away without a word, or we were told to end.
            Err(
                ServerInitializeError::ConnectionClosed(_)
                | ServerInitializeError::Cancelled
                | ServerInitializeError::TransportError { .. },
            ) => Ok(()),
            Err(_) => Err(McpServeError::Beginning(
                "what came in does not begin as the protocol does: an MCP client asks for `initialize` first".to_owned(),
            )),
        };
        service.stop.cancel();
        let all = u32::try_from(MOST_CALLS).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(LAST_CALLS, service.calls.acquire_many(all)).await;
        ended
    }
}

/// What all calls of a client share.
struct Service {
    offer: McpOffer,
    dialect: Dialect,
    /// Set when all calls are to end.
    stop: CancellationToken,
    /// A permit for each call that runs or waits.
    calls: Semaphore,
    /// A permit for each call that runs, if their number is limited.
    slots: Option<Semaphore>,
    /// The same for the tools of which only so many calls may run.
    of_tool: HashMap<String, Semaphore>,
    /// A tool that runs alone holds it alone.
    alone: RwLock<()>,
}

impl Service {
    fn new(offer: McpOffer, stop: &CancellationToken) -> Self {
        let semaphore = |count: u32| {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            Semaphore::new(count.min(Semaphore::MAX_PERMITS))
        };
        let limited = offer.tools.iter().filter_map(|tool| {
            let most = tool.policy().max_concurrent?;
            Some((tool.name().to_owned(), semaphore(most.get())))
        });
        Self {
            of_tool: limited.collect(),
            slots: (offer.policy.concurrent > 0).then(|| semaphore(offer.policy.concurrent)),
            calls: Semaphore::new(MOST_CALLS),
            alone: RwLock::new(()),
            // Arguments of any text can be written in it.
            dialect: Dialect::block().escaped(),
            stop: stop.child_token(),
            offer,
        }
    }

    /// A run for one call: what a client calls does not depend on other calls, and can be called off by itself.
    fn run(&self) -> Result<Run, RunError> {
        let gate = Nobody {
            rules: self.offer.rules.clone(),
            yes: self.offer.yes,
        };
        let mut builder = Run::builder(self.offer.tools.clone())
            .dialect(self.dialect.clone())
            .rules(self.offer.rules.clone())
            .policy(self.offer.policy)
            .environment(self.offer.environment.clone())
            .gate(gate);
        if let Some(directory) = &self.offer.directory {
            builder = builder.directory(directory);
        }
        if let Some(directory) = &self.offer.current_directory {
            builder = builder.current_directory(directory);
        }
        builder.build()
    }

    async fn call(
        &self,
        tool: &Tool,
        arguments: &JsonObject,
        called_off: &CancellationToken,
    ) -> CallToolResult {
        let Ok(_call) = self.calls.try_acquire() else {
            return refused(format!(
                "{MOST_CALLS} calls are running or waiting already; try again when some have ended"
            ));
        };
        let text = match self.written(tool, arguments) {
            Ok(text) => text,
            Err(why) => return refused(why),
        };
        let stopped = async {
            tokio::select! {
                () = called_off.cancelled() => {}
                () = self.stop.cancelled() => {}
            }
        };
        tokio::pin!(stopped);
        // The same order for every call, so that no two wait for each other. Semaphores that are never closed give their
        // permits in the end.
        let turn = async {
            let of_tool = match self.of_tool.get(tool.name()) {
                Some(permits) => permits.acquire().await.ok(),
                None => None,
            };
            let slot = match &self.slots {
                Some(permits) => permits.acquire().await.ok(),
                None => None,
            };
            let (alone, beside) = if tool.policy().exclusive {
                (Some(self.alone.write().await), None)
            } else {
                (None, Some(self.alone.read().await))
            };
            (of_tool, slot, alone, beside)
        };
        let _turn = tokio::select! {
            turn = turn => turn,
            () = &mut stopped => return refused("the call was called off before it was started".to_owned()),
        };
        let mut run = match self.run() {
            Ok(run) => run,
            Err(error) => return refused(format!("no tool can run here: {error}")),
        };
        let canceller = run.canceller();
        let mut turn = run.turn();
        turn.feed(&text);
        let finished = turn.finish(Stop::Natural);
        tokio::pin!(finished);
        let results = tokio::select! {
            results = &mut finished => results,
            () = &mut stopped => {
                canceller.cancel();
                finished.await
            }
        };
        match results.iter().next() {
            Some(result) => answered(result),
            None => refused("the call could not be understood".to_owned()),
        }
    }

    /// The call as a model would write it.
    ///
    /// # Errors
    /// Says which argument cannot be told to the tool.
    fn written(&self, tool: &Tool, arguments: &JsonObject) -> Result<String, String> {
        let pairs = flatten_call(arguments, tool.spec())
            .map_err(|error| format!("wrong arguments: {error}"))?;
        let call = Call::Block {
            name: tool.name(),
            id: None,
            dependencies: Vec::new(),
            arguments: pairs
                .iter()
                .map(|(pointer, text)| (pointer.as_str(), text.as_str()))
                .collect(),
        };
        render(&call, &self.dialect).map_err(|error| format!("wrong arguments: {error}"))
    }
}

fn refused(why: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

fn answered(result: &CallResult) -> CallToolResult {
    let mut content: Vec<ContentBlock> = Vec::new();
    content.extend(result.error.as_deref().map(ContentBlock::text));
    content.extend(result.note.as_deref().map(ContentBlock::text));
    content.extend(result.output.as_deref().map(ContentBlock::text));
    if result.status == Status::Ok {
        CallToolResult::success(content)
    } else {
        CallToolResult::error(content)
    }
}

/// The gate of a run in which nobody can be asked.
struct Nobody {
    rules: Rules,
    yes: bool,
}

impl Gate for Nobody {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            let name = &request.name;
            let is_ruled = self.rules.verdict(request) == Some(Verdict::Ask);
            Ok(match &request.held {
                Some(held) => {
                    Decision::deny(format!("this call {held}, and nobody can be asked here"))
                }
                None if self.yes => Decision::Allow,
                None if is_ruled => Decision::deny(format!(
                    "a rule of this server wants somebody to be asked about this call of `{name}`, and nobody can be asked here"
                )),
                None if request.effect == Effect::Write => Decision::deny(format!(
                    "the tool `{name}` may change something, and nobody can be asked here whether it may; who runs this server can allow it by a rule"
                )),
                None => Decision::Allow,
            })
        })
    }
}

/// What the protocol asks for.
struct Handler(Arc<Service>);

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new(&*self.0.offer.name, env!("CARGO_PKG_VERSION"));
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.0.offer.tools.iter().map(defined);
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tools = &self.0.offer.tools;
        let Some(tool) = tools.get(&request.name) else {
            let message = unknown_tool(&request.name, tools.iter().map(Tool::name));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let result = self.0.call(tool, &arguments, &context.ct).await;
        Ok(CallToolResponse::Complete(result))
    }
}

/// A tool as a client is told of it. Its effect is a hint there, as every server's is.
fn defined(tool: &Tool) -> ToolDefinition {
    let spec = tool.spec();
    let mut schema = match spec.schema().document() {
        Value::Object(schema) => schema.clone(),
        _ => JsonObject::new(),
    };
    schema
        .entry("type")
        .or_insert_with(|| Value::String("object".to_owned()));
    let hints = ToolAnnotations::new().read_only(spec.effect == Effect::Read);
    let hints = match spec.effect {
        Effect::Read => hints,
        Effect::Idempotent => hints.idempotent(true),
        Effect::Write => hints.idempotent(false),
    };
    let description = Some(spec.description.clone()).filter(|text| !text.is_empty());
    ToolDefinition::new_with_raw(
        spec.name.clone(),
        description.map(Into::into),
        Arc::new(schema),
    )
    .with_annotations(hints)
}
