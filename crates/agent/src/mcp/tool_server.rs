//! Offers tools to MCP clients.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plaincall::names::unknown_tool;
use plaincall::plan::CallFailure;
use plaincall::{
    CallResult, Decision, Effect, Gate, Log, Policy, ReadOnly, Request, Rules, Run, RunError,
    RunEvent, Status, Stop, Submitted, Tool, Toolbox, gate::GateFuture, rules::Verdict,
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

/// The most running and waiting calls of a client; more are rejected.
const MOST_CALLS: usize = 1024;
/// The most progress notifications that wait to be sent; more are dropped.
const WAITING_STEPS: usize = 16;
/// How long a result waits for the notifications before it.
const LAST_STEP: Duration = Duration::from_millis(100);
/// How long cancelled calls may take to end.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// An MCP server with your tools.
///
/// No one can be asked for approval. Tools with the effect `Read` or `Idempotent` run; a tool that writes runs only if a
/// rule or [`allow_all`](Self::allow_all) allows it. Other calls are denied with a reason for the client's model.
///
/// ```no_run
/// use plaincall::{Effect, Rules, Tool, Toolbox, rules::Rule};
/// use plaincall_agent::mcp::McpToolServer;
/// use tokio_util::sync::CancellationToken;
///
/// # async fn example() -> Result<(), plaincall::BoxError> {
/// let today = Tool::new("today", |(): (), _| async { Ok("Monday".to_owned()) }).effect(Effect::Read);
/// let mut server = McpToolServer::new(Toolbox::new([today])?);
/// server.rules = Rules::new([Rule::deny(["today"], "it is late")]);
/// server.serve_stdio(CancellationToken::new()).await?;
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub struct McpToolServer {
    /// The tools.
    pub tools: Toolbox,
    /// The rules for calls.
    pub rules: Rules,
    /// Whether to allow tools that write, and calls for which a rule requires approval. Rules can still deny calls.
    pub allow_all: bool,
    /// The limits of all calls of the client. [`Policy::turn_timeout`] is the time limit of each call;
    /// [`Policy::calls_per_turn`] is ignored.
    pub policy: Policy,
    /// The log of the calls. Default: none.
    pub log: Option<Log>,
    /// The environment of commands ([`RunBuilder::environment`](plaincall::RunBuilder::environment)).
    pub environment: BTreeMap<OsString, OsString>,
    /// The default working directory of commands ([`RunBuilder::current_directory`](plaincall::RunBuilder::current_directory)).
    /// Default: the current directory of the process.
    pub current_directory: Option<PathBuf>,
    /// The scratch directory that the calls of the client share.
    pub directory: Option<PathBuf>,
}

/// An error of an [`McpToolServer`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpServeError {
    /// The tools cannot run.
    #[error("{0}")]
    Run(RunError),
    /// The client did not start with the protocol's `initialize`.
    #[error("{0}")]
    Beginning(String),
}

impl McpToolServer {
    /// Creates a server with these tools.
    pub fn new(tools: Toolbox) -> Self {
        Self {
            tools,
            rules: Rules::default(),
            allow_all: false,
            policy: Policy::default(),
            log: None,
            environment: BTreeMap::new(),
            current_directory: None,
            directory: None,
        }
    }

    /// Serves the parent process over stdin and stdout. Nothing else may use them.
    ///
    /// # Errors
    /// See [`serve`](Self::serve).
    pub async fn serve_stdio(self, stop: CancellationToken) -> Result<(), McpServeError> {
        let (input, output) = stdio_pipes();
        self.serve(input, output, stop).await
    }

    /// Serves one client over two streams until it disconnects or `stop` is cancelled.
    ///
    /// When the client disconnects, running calls have a few seconds to end. On `stop`, or when the client cancels a call,
    /// tools are stopped at once. When this returns, nothing is running.
    ///
    /// # Errors
    /// Returns an error if the tools cannot run, or the client uses another protocol.
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
            permits: Arc::new(Semaphore::new(MOST_CALLS)),
            requests,
        };
        let transport = Messages::<RoleServer, _, _>::new(input, output, Unreadable::Answer);
        // A child token: it is cancelled when the connection ends for any reason.
        let connection = serve_server_with_ct(handler, transport, stop.child_token());
        let mut serving = Box::pin(serving(connection));
        let mut turn = run.turn();
        let mut watched: HashMap<u32, Sender<&'static str>> = HashMap::new();
        let ended = loop {
            tokio::select! {
                ended = &mut serving => break ended,
                Some(Requested { name, arguments, progress, reply }) = calls.recv() => {
                    let call = turn.submit(&name, arguments);
                    // The missed events may include results of calls, which no longer need notifications.
                    watched.retain(|_, progress| !progress.is_closed());
                    watched.extend(progress.map(|progress| (call.call(), progress)));
                    // If the client has cancelled it in the meantime, dropping the call cancels it.
                    let _ = reply.send(call);
                }
                Some(event) = events.next() => notify(&event, &mut watched),
            }
        };
        turn.cancel();
        let _ = timeout(LAST_CALLS, turn.finish(Stop::Natural)).await;
        let _ = timeout(LAST_CALLS, run.close()).await;
        ended
    }

    fn run(&mut self) -> Result<Run, RunError> {
        let gate = ServerGate {
            rules: self.rules.clone(),
            allow_all: self.allow_all,
        };
        let mut builder = Run::builder(self.tools.clone())
            .rules(self.rules.clone())
            .policy(self.policy.calls_per_turn(None).turn_timeout(None))
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
            // A panic of the task is reported by the panic hook.
            let _: Result<QuitReason, _> = running.waiting().await;
            Ok(())
        }
        // The client disconnected, or `stop` was cancelled.
        Err(
            ServerInitializeError::ConnectionClosed(_)
            | ServerInitializeError::Cancelled
            | ServerInitializeError::TransportError { .. },
        ) => Ok(()),
        Err(_) => Err(McpServeError::Beginning(
            "the client did not send `initialize` first; is it an MCP client?".to_owned(),
        )),
    }
}

struct Requested {
    name: String,
    arguments: JsonObject,
    progress: Option<Sender<&'static str>>,
    reply: oneshot::Sender<Submitted>,
}

/// Sends a progress notification, unless too many are waiting.
fn notify(event: &RunEvent, watched: &mut HashMap<u32, Sender<&'static str>>) {
    let Some(progress) = event.call().and_then(|call| watched.get(&call)) else {
        return;
    };
    let message = match event {
        RunEvent::Ready(_) => "waiting for approval",
        RunEvent::Admitted(_) => "waiting to start",
        RunEvent::Start(started) if started.attempt == 1 => "started",
        RunEvent::Start(_) => "retried",
        RunEvent::BackOff(_) => "failed, waiting to retry",
        RunEvent::Result(result) => {
            watched.remove(&result.call);
            return;
        }
        _ => return,
    };
    let _ = progress.try_send(message);
}

fn rejected(why: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// The result for the client. `late` is the time limit of a call that timed out.
fn call_result(result: &CallResult, late: Option<Duration>) -> CallToolResult {
    let mut content: Vec<ContentBlock> = Vec::new();
    match late.filter(|_| result.status == Status::Cancelled) {
        Some(time) => content.push(ContentBlock::text(CallFailure::TimedOut(time).to_string())),
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

struct ServerGate {
    rules: Rules,
    allow_all: bool,
}

impl Gate for ServerGate {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            let name = &request.name;
            let is_ruled = self.rules.verdict(request) == Some(Verdict::Ask);
            Ok(match &request.held {
                Some(held) => {
                    Decision::deny(format!("this call {held}, and no one can approve it here"))
                }
                None if self.allow_all => Decision::allow("this server allows every call"),
                None if is_ruled => Decision::deny(format!(
                    "a rule of this server requires approval for this call of `{name}`, and no one can approve it here"
                )),
                None if request.effect == Effect::Write => Decision::deny(format!(
                    "the tool `{name}` writes, and no one can approve it here; the operator can allow it with a rule"
                )),
                None => return ReadOnly.decide(request).await,
            })
        })
    }
}

struct Handler {
    tools: Toolbox,
    /// The time limit of a call.
    time: Option<Duration>,
    /// A permit for each running or waiting call.
    permits: Arc<Semaphore>,
    requests: Sender<Requested>,
}

impl Handler {
    /// Submits a call and waits for its result. Dropping this cancels the call.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let Ok(_permit) = self.permits.try_acquire() else {
            return rejected(format!(
                "{MOST_CALLS} calls are already running or waiting; try again later"
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
            return rejected("the server is shutting down; the call was not started".to_owned());
        };
        let over = async {
            match self.time {
                Some(time) => sleep(time).await,
                None => pending().await,
            }
        };
        // Only this future waits for a client that does not read.
        let notifying = async {
            let (Some(token), Some(mut steps)) = (token, steps) else {
                return;
            };
            let mut step = 0_u32;
            while let Some(message) = steps.recv().await {
                step += 1;
                let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
                // If the client has disconnected, the connection reports it.
                let _ = context
                    .peer
                    .notify_progress(progress.with_message(message))
                    .await;
            }
        };
        tokio::pin!(over, notifying);
        let (mut is_cancelled, mut is_late, mut is_notified) = (false, false, false);
        loop {
            tokio::select! {
                biased;
                result = &mut call => {
                    // Notifications come before the result, if possible.
                    if !is_notified {
                        let _ = timeout(LAST_STEP, notifying).await;
                    }
                    return call_result(&result, is_late.then_some(self.time).flatten());
                }
                () = context.ct.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    call.cancel();
                }
                () = &mut over, if !is_late => {
                    is_late = true;
                    call.cancel();
                }
                () = &mut notifying, if !is_notified => is_notified = true,
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

/// The definition of a tool for clients. Its effect is a hint.
fn defined(tool: &Tool) -> ToolDefinition {
    let spec = tool.spec();
    let mut schema = match spec.schema().document() {
        Value::Object(schema) => schema.clone(),
        _ => JsonObject::new(),
    };
    schema
        .entry("type")
        .or_insert_with(|| Value::String("object".to_owned()));
    if !spec.examples.is_empty() {
        let examples = spec.call_examples();
        let examples = examples.iter().map(|one| one.arguments.clone());
        schema.insert("examples".to_owned(), examples.collect());
    }
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
