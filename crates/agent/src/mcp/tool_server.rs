//! Our tools for MCP clients.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plaincall::call::unknown_tool;
use plaincall::{
    CallResult, Decision, Effect, Gate, Log, Policy, Request, Rules, Run, RunError, RunEvent,
    Status, Stop, Submitted, Tool, Toolbox, gate::GateFuture, rules::Verdict,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ServerCapabilities, ServerConfig, Tool as ToolDefinition, ToolAnnotations,
};
use rmcp::service::{
    QuitReason, RequestContext, RoleServer, RunningService, ServerInitializeError,
    serve_server_with_ct,
};
use rmcp::transport::io::stdio_pipes;
use rmcp::{ErrorData, ServerHandler};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::messages::{Messages, Unreadable};

/// How many calls of a client may be running or waiting; more are refused.
const MOST_CALLS: usize = 1024;
/// How many steps of a call wait to be told to a client; more are not told.
const WAITING_STEPS: usize = 16;
/// How long a result waits for the steps before it to be told.
const LAST_STEP: Duration = Duration::from_millis(100);
/// How long calls that were called off may take to end.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// Tools that are offered to a client, and what may be done with them.
///
/// Nobody can be asked while it runs. So tools that only read or can be repeated run, and one that writes runs only if a
/// rule allows it, or [`yes`](Self::yes) does. Other calls are refused with a reason for the client's model.
///
/// ```no_run
/// use plaincall::{Effect, Rules, Tool, Toolbox, rules::Rule};
/// use plaincall_agent::mcp::McpToolServer;
/// use tokio_util::sync::CancellationToken;
///
/// # async fn example() -> Result<(), plaincall::BoxError> {
/// let today = Tool::new("today", |(): (), _| async { Ok("Monday".to_owned()) }).effect(Effect::Read);
/// let mut offer = McpToolServer::new(Toolbox::new([today])?);
/// offer.rules = Rules::new([Rule::deny(["today"], "it is late")]);
/// offer.serve_stdio(CancellationToken::new()).await?;
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub struct McpToolServer {
    /// The tools.
    pub tools: Toolbox,
    /// What may run and what may not.
    pub rules: Rules,
    /// Lets tools run that may change something, and calls about which a rule wants somebody to be asked. What a rule
    /// denies stays denied.
    pub yes: bool,
    /// Limits, for all calls of the client together. [`Policy::turn_timeout`] is the time of each call, and
    /// [`Policy::calls_per_turn`] does not count.
    pub policy: Policy,
    /// Where the calls are recorded. Default: nowhere.
    pub log: Option<Log>,
    /// What commands may see of the environment ([`RunBuilder::environment`](plaincall::RunBuilder::environment)).
    pub environment: BTreeMap<OsString, OsString>,
    /// The directory in which commands work by default ([`RunBuilder::current_directory`](plaincall::RunBuilder::current_directory)).
    /// Default: the current directory of the process.
    pub current_directory: Option<PathBuf>,
    /// The scratch directory, in which the calls of the client can pass files to each other.
    pub directory: Option<PathBuf>,
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

impl McpToolServer {
    /// An offer of these tools.
    pub fn new(tools: Toolbox) -> Self {
        Self {
            tools,
            rules: Rules::default(),
            yes: false,
            policy: Policy::default(),
            log: None,
            environment: BTreeMap::new(),
            current_directory: None,
            directory: None,
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
        mut self,
        input: R,
        output: W,
        stop: CancellationToken,
    ) -> Result<(), McpServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (requests, mut calls) = channel(1);
        let mut run = self.run().map_err(McpServeError::Run)?;
        let mut events = run.events();
        let handler = Handler {
            tools: self.tools,
            time: self.policy.turn_timeout,
            places: Arc::new(Semaphore::new(MOST_CALLS)),
            requests,
        };
        let transport = Messages::<RoleServer, _, _>::new(input, output, Unreadable::Answer);
        // A token of its own: it is cancelled when the connection goes away, whoever ends it.
        let connection = serve_server_with_ct(handler, transport, stop.child_token());
        let mut serving = Box::pin(serving(connection));
        let mut turn = run.turn();
        let mut watched: HashMap<u32, Sender<&'static str>> = HashMap::new();
        let ended = loop {
            tokio::select! {
                ended = &mut serving => break ended,
                Some(Requested { name, arguments, progress, reply }) = calls.recv() => {
                    let call = turn.submit(&name, arguments);
                    // The result of a call may be among the events that were missed; nobody listens after its end.
                    watched.retain(|_, progress| !progress.is_closed());
                    watched.extend(progress.map(|progress| (call.call(), progress)));
                    // Should the client have cancelled it meanwhile, the call is dropped, and so cancelled.
                    let _ = reply.send(call);
                }
                Some(event) = events.next() => tell(&event, &mut watched),
            }
        };
        turn.cancel();
        let _ = timeout(LAST_CALLS, turn.finish(Stop::Natural)).await;
        let _ = timeout(LAST_CALLS, run.close()).await;
        ended
    }

    fn run(&mut self) -> Result<Run, RunError> {
        let gate = Nobody {
            rules: self.rules.clone(),
            yes: self.yes,
        };
        let mut builder = Run::builder(self.tools.clone())
            .rules(self.rules.clone())
            .policy(Policy {
                calls_per_turn: None,
                turn_timeout: None,
                ..self.policy
            })
            .environment(self.environment.clone())
            .gate(gate);
        if let Some(directory) = &self.directory {
            builder = builder.directory(directory);
        }
        if let Some(directory) = &self.current_directory {
            builder = builder.current_directory(directory);
        }
        if let Some(log) = self.log.take() {
            builder = builder.log(log);
        }
        builder.build()
    }
}

async fn serving(
    connection: impl Future<Output = Result<RunningService<RoleServer, Handler>, ServerInitializeError>>,
) -> Result<(), McpServeError> {
    match connection.await {
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
    }
}

struct Requested {
    name: String,
    arguments: JsonObject,
    progress: Option<Sender<&'static str>>,
    reply: oneshot::Sender<Submitted>,
}

/// Tells who wants to know how far a call is. What is not taken in time is not told.
fn tell(event: &RunEvent, watched: &mut HashMap<u32, Sender<&'static str>>) {
    let Some(progress) = event.call().and_then(|call| watched.get(&call)) else {
        return;
    };
    let message = match event {
        RunEvent::Ready(_) => "waiting to be allowed",
        RunEvent::Admitted(_) => "waiting to be started",
        RunEvent::Start(started) if started.attempt == 1 => "started",
        RunEvent::Start(_) => "started again",
        RunEvent::BackOff(_) => "failed, waiting to be tried again",
        RunEvent::Result(result) => {
            watched.remove(&result.call);
            return;
        }
        _ => return,
    };
    let _ = progress.try_send(message);
}

fn refused(why: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// What a client reads of a result. `late` is the time that the call had, if it was cancelled because that was over.
fn answered(result: &CallResult, late: Option<Duration>) -> CallToolResult {
    let mut content: Vec<ContentBlock> = Vec::new();
    match late.filter(|_| result.status == Status::Cancelled) {
        Some(time) => content.push(ContentBlock::text(format!("timed out after {time:?}"))),
        None => content.extend(result.error.as_deref().map(ContentBlock::text)),
    }
    content.extend(result.note.as_deref().map(ContentBlock::text));
    content.extend(result.output.as_deref().map(ContentBlock::text));
    if result.status == Status::Ok {
        CallToolResult::success(content)
    } else {
        CallToolResult::error(content)
    }
}

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

struct Handler {
    tools: Toolbox,
    /// How long a call may take, from when it comes to its end.
    time: Option<Duration>,
    /// A permit for each call that runs or waits.
    places: Arc<Semaphore>,
    requests: Sender<Requested>,
}

impl Handler {
    /// Submits a call and waits for its result. Dropping this cancels the call.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let Ok(_place) = self.places.try_acquire() else {
            return refused(format!(
                "{MOST_CALLS} calls are running or waiting already; try again when some have ended"
            ));
        };
        let token = context.meta.get_progress_token();
        let (progress, steps) = token.as_ref().map(|_| channel(WAITING_STEPS)).unzip();
        let (reply, submitted) = oneshot::channel();
        let requested = Requested {
            name: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            progress,
            reply,
        };
        let _ = self.requests.send(requested).await;
        let Ok(mut call) = submitted.await else {
            return refused("the server ends, so the call was not started".to_owned());
        };
        let over = async {
            match self.time {
                Some(time) => sleep(time).await,
                None => pending().await,
            }
        };
        // A client that does not read is waited for here, and nowhere else.
        let telling = async {
            let (Some(token), Some(mut steps)) = (token, steps) else {
                return;
            };
            let mut step = 0_u32;
            while let Some(message) = steps.recv().await {
                step += 1;
                let told = ProgressNotificationParam::new(token.clone(), f64::from(step));
                // Should the client be gone, the connection says so.
                let _ = context
                    .peer
                    .notify_progress(told.with_message(message))
                    .await;
            }
        };
        tokio::pin!(over, telling);
        let (mut is_cancelled, mut is_late, mut is_told) = (false, false, false);
        loop {
            tokio::select! {
                biased;
                result = &mut call => {
                    // Steps come before the result, where they can be told.
                    if !is_told {
                        let _ = timeout(LAST_STEP, telling).await;
                    }
                    return answered(&result, is_late.then_some(self.time).flatten());
                }
                () = context.ct.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    call.cancel();
                }
                () = &mut over, if !is_late => {
                    is_late = true;
                    call.cancel();
                }
                () = &mut telling, if !is_told => is_told = true,
            }
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let name = Implementation::new("plaincall", env!("CARGO_PKG_VERSION"));
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.iter().map(defined);
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.tools.get(&request.name).is_none() {
            let message = unknown_tool(&request.name, self.tools.iter().map(Tool::name));
            return Err(ErrorData::invalid_params(message, None));
        }
        let result = self.call(request, context).await;
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
