//! A server: its connection and its restart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;

use plaincall::{BoxError, Tool, ToolResult};
use rmcp::model::{CallToolRequestParams, ServerResult};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::AbortHandle;

use super::config::{McpServer, McpTransport};
use super::connection::{Connection, Ending, not_answered};
use super::definitions::{Offer, Offered, offer};
use super::messages::Noise;
use super::result::{failure, tool_result};
use super::secrets::Secrets;
use super::{McpOptions, clipped};

/// The default time limit of a call. Progress reports do not extend it.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);
/// How often a server that ended is restarted, unless the user restarts it.
const RESTARTS: u32 = 1;
/// The fields of a result, of which each has at least one.
const RESULT_KEYS: [&str; 3] = ["content", "structuredContent", "isError"];

pub(super) struct Server {
    config: McpServer,
    options: Arc<McpOptions>,
    secrets: Secrets,
    state: Arc<Mutex<State>>,
    /// The task that restarts it.
    starting: Lock<Option<AbortHandle>>,
    noise: Noise,
    is_noted: AtomicBool,
}

struct State {
    connection: Option<Arc<Connection>>,
    restarts: u32,
    /// The server was closed, and is not connected again.
    is_closed: bool,
    end: Ending,
}

impl Server {
    /// Connects to a server and lists its tools.
    pub(super) async fn connect(
        config: McpServer,
        options: Arc<McpOptions>,
    ) -> Result<(Self, Offer), String> {
        let secrets = Secrets::of(&config);
        let noise = Noise::default();
        let reached = reach(&config, &options, &secrets, noise.clone()).await;
        let (connection, offered) = reached.map_err(|why| secrets.redact(why))?;
        let server = Self {
            state: Arc::new(Mutex::new(State {
                connection: Some(Arc::new(connection)),
                restarts: RESTARTS,
                is_closed: false,
                end: Ending::of("has ended"),
            })),
            starting: Lock::default(),
            config,
            options,
            secrets,
            noise,
            is_noted: AtomicBool::new(false),
        };
        Ok((server, offered))
    }

    pub(super) fn name(&self) -> &str {
        &self.config.name
    }

    pub(super) fn tool(self: &Arc<Self>, name: String, offered: &Offered) -> Tool {
        let mut spec = offered.spec.clone();
        spec.name = name;
        let server = Arc::clone(self);
        let called: Arc<str> = offered.name.as_str().into();
        let timeout = self.config.timeout.unwrap_or(CALL_TIMEOUT);
        Tool::raw(spec, move |arguments, _| {
            let server = Arc::clone(&server);
            let called = Arc::clone(&called);
            async move {
                let arguments = match arguments.to_value() {
                    Value::Object(arguments) => arguments,
                    _ => Map::new(),
                };
                server.call(&called, arguments).await
            }
        })
        .timeout(timeout)
        .from_outside(format!("the MCP server {}", self.name()))
    }

    /// Calls a tool. Dropping the future cancels the call at the server.
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> ToolResult {
        let connection = self.connection().await;
        let connection = connection.map_err(|why| self.failure(why))?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let name = self.name();
        match connection.call(params).await {
            Ok(ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_)) => {
                Err(self.failure(format!(
                    "the MCP server `{name}` asked for input instead of answering, which is not supported"
                )))
            }
            // Also a result with content of an unknown kind.
            Ok(result) => {
                let result = serde_json::to_value(result).unwrap_or_default();
                let is_result = result.as_object().is_some_and(Map::is_empty)
                    || RESULT_KEYS.iter().any(|key| result.get(key).is_some());
                if !is_result {
                    return Err(self.failure(format!(
                        "the MCP server `{name}` sent an answer that is not a result: {}",
                        clipped(&result.to_string())
                    )));
                }
                tool_result(&result, self.options.output_limit, &self.secrets)
            }
            Err(error) => Err(self.failure(match not_answered(&error) {
                // The answer to one request has ended, and not a process.
                None if self.is_remote() && !connection.is_gone() => format!(
                    "the MCP server `{name}` closed the connection during this call; the call may have run and is not repeated"
                ),
                Some(why) if !connection.is_gone() => {
                    let changed = if connection.has_changed() {
                        "; it reports that its tools have changed, and this conversation still uses the old ones"
                    } else {
                        ""
                    };
                    format!("the MCP server `{name}` {why}{changed}")
                }
                _ => self.interrupted(&connection).await,
            })),
        }
    }

    /// Returns whether the server is reached over HTTP. Such a server is never started, only connected.
    fn is_remote(&self) -> bool {
        matches!(self.config.transport, McpTransport::Http { .. })
    }

    /// The error for the model, without secrets.
    fn failure(&self, message: String) -> BoxError {
        failure(self.secrets.redact(message))
    }

    /// The error of a call whose connection ended.
    async fn interrupted(&self, connection: &Arc<Connection>) -> String {
        let mut state = self.state.lock().await;
        state.forget(connection).await;
        let later = if self.is_remote() {
            "it is connected again for the next call"
        } else if state.restarts > 0 {
            "it is restarted for the next call"
        } else {
            "it was already restarted once and is not restarted again"
        };
        let Ending { how, words } = &state.end;
        format!(
            "the MCP server `{}` {how} during this call{words}; the call may have run and is not repeated; {later}",
            self.name(),
        )
    }

    /// An open connection, as far as is known.
    async fn connection(&self) -> Result<Arc<Connection>, String> {
        // Calls during a restart wait for it, within their time limits.
        let mut state = Arc::clone(&self.state).lock_owned().await;
        if let Some(connection) = state.connection.clone() {
            if !connection.is_gone() {
                return Ok(connection);
            }
            state.forget(&connection).await;
        }
        let name = self.name();
        let end = state.end.to_string();
        if state.is_closed || (state.restarts == 0 && !self.is_remote()) {
            return Err(format!(
                "the MCP server `{name}` {end}; its tools are unavailable"
            ));
        }
        // Counted before the start, or a server that hangs would be restarted for every call.
        state.restarts = state.restarts.saturating_sub(1);
        // A task, so that a cancelled call does not cancel the start for others.
        let starting = tokio::spawn(start(
            state,
            self.config.transport.clone(),
            Arc::clone(&self.options),
            self.noise.clone(),
        ));
        self.set_starting(Some(starting.abort_handle()));
        let started = starting.await;
        let why = match started {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(why)) => why,
            Err(_) => "was closed".to_owned(),
        };
        Err(format!(
            "the MCP server `{name}` {end}; the restart failed: it {why}"
        ))
    }

    fn set_starting(&self, starting: Option<AbortHandle>) {
        let mut current = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *current, starting) {
            before.abort();
        }
    }

    /// Returns the first line that was skipped, once.
    pub(super) fn note(&self) -> Option<String> {
        let noise = self.noise.get()?;
        let is_new = !self.is_noted.swap(true, Ordering::Relaxed);
        is_new.then(|| self.secrets.redact(noise.clone()))
    }

    /// Returns why it has no connection, as a predicate.
    pub(super) async fn end(&self) -> Option<String> {
        let state = self.state.lock().await;
        let connection = state.connection.as_ref();
        let is_open = connection.is_some_and(|connection| !connection.is_gone());
        (!is_open).then(|| self.secrets.redact(state.end.to_string()))
    }

    /// Ends the connection and begins a new one.
    pub(super) async fn restart(&self) -> Result<(), String> {
        self.close().await;
        {
            let mut state = self.state.lock().await;
            // This start is not counted.
            (state.restarts, state.is_closed) = (RESTARTS + 1, false);
            state.end = Ending::of("was stopped");
        }
        let restarted = self.connection().await.map(drop);
        restarted.map_err(|why| self.secrets.redact(why))
    }

    pub(super) async fn close(&self) {
        self.set_starting(None);
        let mut state = self.state.lock().await;
        state.is_closed = true;
        state.end = Ending::of("was closed");
        if let Some(connection) = state.connection.take() {
            connection.close().await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.set_starting(None);
    }
}

/// Connects and lists tools.
async fn reach(
    config: &McpServer,
    options: &McpOptions,
    secrets: &Secrets,
    noise: Noise,
) -> Result<(Connection, Offer), String> {
    let connection = Connection::open(&config.transport, options, noise).await?;
    let asked = offer(connection.peer(), config, secrets);
    match tokio::time::timeout(options.connect_timeout, asked).await {
        Ok(Ok(offered)) => Ok((connection, offered)),
        Ok(Err(_)) if connection.is_gone() => {
            let Ending { how, words } = connection.end().await;
            Err(format!("{how} while listing its tools{words}"))
        }
        Ok(Err(why)) => Err(why),
        Err(_) => {
            let time = options.connect_timeout.as_secs_f32();
            Err(format!("did not list its tools within {time} s"))
        }
    }
}

/// Restarts a server while holding the lock of its state.
async fn start(
    mut state: OwnedMutexGuard<State>,
    transport: McpTransport,
    options: Arc<McpOptions>,
    noise: Noise,
) -> Result<Arc<Connection>, String> {
    match Connection::open(&transport, &options, noise).await {
        Ok(connection) => {
            let connection = Arc::new(connection);
            state.connection = Some(Arc::clone(&connection));
            Ok(connection)
        }
        Err(why) => {
            state.end = Ending::of(&why);
            Err(why)
        }
    }
}

impl State {
    /// Records the end of this connection, unless it is recorded already.
    async fn forget(&mut self, connection: &Arc<Connection>) {
        let is_this = |last: &Arc<Connection>| Arc::ptr_eq(last, connection);
        if self.connection.as_ref().is_some_and(is_this) {
            // In case this future is dropped.
            self.end = Ending::of("has ended");
            self.connection = None;
            self.end = connection.end().await;
        }
    }
}
