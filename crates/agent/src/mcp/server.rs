//! A server: its connection and its restart.

use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;

use plaincall::{BoxError, Tool, ToolResult};
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::AbortHandle;

use super::McpOptions;
use super::config::{McpServer, McpTransport};
use super::connection::{Connection, Ending, not_answered};
use super::definitions::{Offer, Offered, offer};
use super::result::{failure, tool_result};
use super::secrets::Secrets;

/// The default time limit of a call. Progress reports do not extend it.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);
/// How often a server is restarted.
const RESTARTS: u32 = 1;

pub(super) struct Server {
    config: McpServer,
    options: Arc<McpOptions>,
    secrets: Secrets,
    state: Arc<Mutex<State>>,
    /// The task that restarts it.
    starting: Lock<Option<AbortHandle>>,
}

struct State {
    connection: Option<Arc<Connection>>,
    restarts: u32,
    end: Ending,
}

impl Server {
    /// Connects to a server and lists its tools.
    pub(super) async fn connect(
        config: McpServer,
        options: Arc<McpOptions>,
    ) -> Result<(Self, Offer), String> {
        let secrets = Secrets::of(&config);
        let reached = reach(&config, &options, &secrets).await;
        let (connection, offered) = reached.map_err(|why| secrets.redact(why))?;
        let server = Self {
            state: Arc::new(Mutex::new(State {
                connection: Some(Arc::new(connection)),
                restarts: RESTARTS,
                end: Ending::of("has ended"),
            })),
            starting: Lock::default(),
            config,
            options,
            secrets,
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
        match connection.peer().call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => {
                tool_result(&result, self.options.output_limit, &self.secrets)
            }
            Ok(_) => Err(self.failure(format!(
                "the MCP server `{name}` asked for input instead of answering, which is not supported"
            ))),
            Err(error) => Err(self.failure(match not_answered(&error) {
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

    /// The error for the model, without secrets.
    fn failure(&self, message: String) -> BoxError {
        failure(self.secrets.redact(message))
    }

    /// The error of a call whose connection ended.
    async fn interrupted(&self, connection: &Arc<Connection>) -> String {
        let mut state = self.state.lock().await;
        state.forget(connection).await;
        let later = if state.restarts > 0 {
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
        if state.restarts == 0 {
            return Err(format!(
                "the MCP server `{name}` {end}; its tools are unavailable"
            ));
        }
        // Counted before the start, or a server that hangs would be restarted for every call.
        state.restarts -= 1;
        // A task, so that a cancelled call does not cancel the start for others.
        let starting = tokio::spawn(start(
            state,
            self.config.transport.clone(),
            Arc::clone(&self.options),
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

    pub(super) async fn close(&self) {
        self.set_starting(None);
        let mut state = self.state.lock().await;
        state.restarts = 0;
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
) -> Result<(Connection, Offer), String> {
    let connection = Connection::open(&config.transport, options).await?;
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
) -> Result<Arc<Connection>, String> {
    match Connection::open(&transport, &options).await {
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
