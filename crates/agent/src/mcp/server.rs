//! One server: its connection, and a new one when that has ended.

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

/// How long a call may take if the configuration does not say. Progress that a server reports does not lengthen it.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);
/// How often a server that has ended is started again.
const RESTARTS: u32 = 1;

pub(super) struct Server {
    config: McpServer,
    options: Arc<McpOptions>,
    secrets: Secrets,
    state: Arc<Mutex<State>>,
    /// What starts it again, while it does.
    starting: Lock<Option<AbortHandle>>,
}

struct State {
    connection: Option<Arc<Connection>>,
    restarts: u32,
    end: Ending,
}

impl Server {
    /// Connects to a server and asks for its tools.
    pub(super) async fn connect(
        config: McpServer,
        options: Arc<McpOptions>,
    ) -> Result<(Self, Offer), String> {
        let secrets = Secrets::of(&config);
        let reached = reach(&config, &options, &secrets).await;
        let (connection, offered) = reached.map_err(|why| secrets.conceal(why))?;
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

    /// Calls a tool. Dropping the future tells the server that nobody waits any more.
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
                "the MCP server `{name}` asks back instead of answering, which nobody here can answer"
            ))),
            Err(error) => Err(self.failure(match not_answered(&error) {
                Some(why) if !connection.is_gone() => {
                    let changed = if connection.has_changed() {
                        "; it says that its tools are others by now, and this conversation keeps those that it began with"
                    } else {
                        ""
                    };
                    format!("the MCP server `{name}` {why}{changed}")
                }
                _ => self.broke_off(&connection).await,
            })),
        }
    }

    /// What the model reads of it: without what this server was told in confidence.
    fn failure(&self, message: String) -> BoxError {
        failure(self.secrets.conceal(message))
    }

    /// The connection ended while a call was waiting for its answer.
    async fn broke_off(&self, connection: &Arc<Connection>) -> String {
        let mut state = self.state.lock().await;
        state.forget(connection).await;
        let later = if state.restarts > 0 {
            "it is started again for the next call"
        } else {
            "it was started again before and is not once more"
        };
        let Ending { how, words } = &state.end;
        format!(
            "the MCP server `{}` {how} while this call was running{words}; nobody knows how far the call came, and it is not made again by itself; {later}",
            self.name(),
        )
    }

    /// A connection that stands, as far as one can know.
    async fn connection(&self) -> Result<Arc<Connection>, String> {
        // Whoever comes while it is started again waits for that; the time of each call bounds its wait.
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
                "the MCP server `{name}` {end}; its tools cannot be called any more"
            ));
        }
        // It counts from here on: a server that hangs would otherwise be started again with every call.
        state.restarts -= 1;
        // A call that does not wait any more takes the start with it from no other.
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
            "the MCP server `{name}` {end}; starting it again did not work: it {why}"
        ))
    }

    fn set_starting(&self, starting: Option<AbortHandle>) {
        let mut place = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *place, starting) {
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

/// A connection, and the tools that the server offers.
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
            Err(format!("{how} when it was asked for its tools{words}"))
        }
        Ok(Err(why)) => Err(why),
        Err(_) => {
            let time = options.connect_timeout.as_secs_f32();
            Err(format!("has not said within {time} s which tools it has"))
        }
    }
}

/// Starts a server again, while nobody else can look at its state.
async fn start(
    mut state: OwnedMutexGuard<State>,
    reach: McpTransport,
    options: Arc<McpOptions>,
) -> Result<Arc<Connection>, String> {
    match Connection::open(&reach, &options).await {
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
    /// Takes note that this connection has ended, if nobody has yet.
    async fn forget(&mut self, connection: &Arc<Connection>) {
        let is_this = |last: &Arc<Connection>| Arc::ptr_eq(last, connection);
        if self.connection.as_ref().is_some_and(is_this) {
            // Should nobody wait for its end, this is what is known.
            self.end = Ending::of("has ended");
            self.connection = None;
            self.end = connection.end().await;
        }
    }
}
