//! One server: its connection, and a new one when that has ended.

use std::sync::Arc;

use plaincall::{Tool, ToolResult};
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::McpOptions;
use super::config::McpServer;
use super::connection::{Connection, Ending, not_answered};
use super::definitions::{Offer, Offered, offer};
use super::told::{failure, told};

/// A server that was reached.
pub(super) struct Server {
    config: McpServer,
    options: Arc<McpOptions>,
    state: Mutex<State>,
}

struct State {
    connection: Option<Arc<Connection>>,
    /// How often it may be started again.
    restarts: u32,
    /// How it ended last.
    end: Ending,
}

impl Server {
    /// Connects to a server and asks for its tools.
    ///
    /// # Errors
    /// Why that did not work, in words that go behind its name.
    pub(super) async fn connect(
        config: McpServer,
        options: Arc<McpOptions>,
    ) -> Result<(Self, Offer), String> {
        let connection = Connection::open(&config.reach, &options).await?;
        let asked = offer(connection.peer(), &config);
        let offered = match tokio::time::timeout(options.connect_timeout, asked).await {
            Ok(Ok(offered)) => offered,
            Ok(Err(_)) if connection.is_gone() => {
                let Ending { how, words } = connection.end().await;
                return Err(format!("{how} when it was asked for its tools{words}"));
            }
            Ok(Err(why)) => return Err(why),
            Err(_) => {
                let time = options.connect_timeout.as_secs_f32();
                return Err(format!("has not said within {time} s which tools it has"));
            }
        };
        let server = Self {
            state: Mutex::new(State {
                connection: Some(Arc::new(connection)),
                restarts: options.restarts,
                end: Ending::of("has ended"),
            }),
            config,
            options,
        };
        Ok((server, offered))
    }

    pub(super) fn name(&self) -> &str {
        &self.config.name
    }

    /// A tool of this server, under this name.
    pub(super) fn tool(self: &Arc<Self>, name: String, offered: &Offered) -> Tool {
        let mut spec = offered.spec.clone();
        spec.name = name;
        let server = Arc::clone(self);
        let called: Arc<str> = offered.name.as_str().into();
        let timeout = self.config.timeout.unwrap_or(self.options.call_timeout);
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
    }

    /// Calls a tool. Dropping the future tells the server that nobody waits any more.
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> ToolResult {
        let connection = self.connection().await.map_err(failure)?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let name = self.name();
        match connection.peer().call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => told(&result, self.options.output_limit),
            Ok(_) => Err(failure(format!(
                "the MCP server `{name}` asks back instead of answering, which nobody here can answer"
            ))),
            Err(error) => Err(failure(match not_answered(&error) {
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
    ///
    /// # Errors
    /// Why there is none, in words for the model.
    async fn connection(&self) -> Result<Arc<Connection>, String> {
        // Whoever comes while it is started again waits for that; the time of each call bounds its wait.
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.clone() {
            if !connection.is_gone() {
                return Ok(connection);
            }
            state.forget(&connection).await;
        }
        let name = self.name();
        let end = &state.end;
        if state.restarts == 0 {
            return Err(format!(
                "the MCP server `{name}` {end}; its tools cannot be called any more"
            ));
        }
        let opened = Connection::open(&self.config.reach, &self.options).await;
        // Not before: a call that was cancelled meanwhile has taken nothing from the others.
        state.restarts -= 1;
        match opened {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(why) => {
                let message = format!(
                    "the MCP server `{name}` {}; starting it again did not work: it {why}",
                    state.end
                );
                state.end = Ending::of(&why);
                Err(message)
            }
        }
    }

    /// Ends the connection in order, for good.
    pub(super) async fn close(&self) {
        let mut state = self.state.lock().await;
        state.restarts = 0;
        state.end = Ending::of("was closed");
        if let Some(connection) = state.connection.take() {
            connection.close().await;
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
