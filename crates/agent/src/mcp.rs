//! An MCP client and an MCP server.
//!
//! [`McpConfig`] reads the configuration of servers. [`McpServers`] connects to them and makes [`Tool`]s of their tools.
//! [`McpToolServer`] offers your tools to an MCP client.
//!
//! Descriptions and results of a server are untrusted text and are escaped in prompts. The effects that a server declares
//! are only hints ([`ToolSpec::hinted_effect`](plaincall::tool::ToolSpec::hinted_effect)): the effect of every tool is
//! [`Effect::Write`](plaincall::Effect::Write) unless the configuration sets another ([`McpServer::effects`]).

mod client;
mod config;
mod connection;
mod definitions;
mod events;
mod messages;
mod names;
mod requests;
mod result;
mod secrets;
mod server;
mod tool_server;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use plaincall::{Tool, Toolbox, command::DEFAULT_OUTPUT_LIMIT};
use tokio::task::JoinSet;

pub use config::{McpConfig, McpEffect, McpServer, McpTransport};
pub use tool_server::{McpServeError, McpToolServer};

use crate::text::is_unseen;
use definitions::Offer;
use plaincall_http::HttpSettings;
use server::Server;

/// The longest part of a server's message that is quoted, in characters.
const CLIPPED: usize = 500;

/// Options of MCP connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpOptions {
    /// The environment for servers. Each gets `PATH`, `HOME`, `LANG`, `LC_…`, `TMPDIR`, `LOGNAME`, `SHELL`, `TERM` and `USER`
    /// from it, and the variables of its configuration. Default: empty; the environment of this process is not read.
    pub environment: BTreeMap<OsString, OsString>,
    /// The time limit of connecting, and again of listing tools. Default: 30 seconds.
    pub connect_timeout: Duration,
    /// How much of a result is kept, in bytes. Default: 1 MiB.
    pub output_limit: usize,
    /// Settings of the HTTP client.
    pub http: HttpSettings,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            environment: BTreeMap::new(),
            connect_timeout: Duration::from_secs(30),
            output_limit: DEFAULT_OUTPUT_LIMIT,
            http: HttpSettings::default(),
        }
    }
}

/// Connected MCP servers. Dropping all clones and all tools kills the servers that were started; [`close`](Self::close)
/// lets them shut down.
///
/// Tools are listed once; later changes are ignored.
#[derive(Clone)]
pub struct McpServers {
    servers: Arc<[(Arc<Server>, Offer)]>,
    failures: Arc<[McpFailure]>,
    /// The names of all configured servers, including those that failed.
    configured: Arc<[String]>,
}

/// The failure of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the MCP server `{server}` {reason}")]
pub struct McpFailure {
    /// The name of the server.
    pub server: String,
    /// The reason, as a predicate: it follows the name.
    pub reason: String,
}

/// A tool that is not used, or without a part of its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedTool {
    /// The name of the server.
    pub server: String,
    /// The server's name of the tool.
    pub tool: String,
    /// Whether the tool is not used. Otherwise it has a relaxed schema, without the invalid part.
    pub is_dropped: bool,
    /// The reason.
    pub reason: String,
}

impl McpServers {
    /// Connects to all enabled servers concurrently and lists their tools. A server that fails is in
    /// [`failures`](Self::failures); the others work without it.
    pub async fn connect(config: McpConfig, options: McpOptions) -> Self {
        let options = Arc::new(options);
        let names = config.servers.iter().map(|server| server.name.clone());
        let configured = names.collect();
        let mut connecting = JoinSet::new();
        let wanted = config.servers.into_iter().filter(|server| !server.disabled);
        for (place, server) in wanted.enumerate() {
            let options = Arc::clone(&options);
            connecting.spawn(async move {
                let name = server.name.clone();
                let connected = Server::connect(server, options).await;
                (place, name, connected)
            });
        }
        let mut ends = connecting.join_all().await;
        ends.sort_by_key(|(place, ..)| *place);
        let mut servers = Vec::new();
        let mut failures = Vec::new();
        for (_, server, connected) in ends {
            match connected {
                Ok((server, offer)) => servers.push((Arc::new(server), offer)),
                Err(reason) => failures.push(McpFailure { server, reason }),
            }
        }
        Self {
            servers: servers.into(),
            failures: failures.into(),
            configured,
        }
    }

    /// The servers that failed.
    pub fn failures(&self) -> &[McpFailure] {
        &self.failures
    }

    /// The tools whose definitions are invalid, and those that are too many.
    pub fn skipped(&self) -> impl Iterator<Item = &SkippedTool> {
        self.servers.iter().flat_map(|(_, offer)| &offer.skipped)
    }

    /// Returns a note about each server with output that looks like messages but answers nothing, such as logs. Such lines are
    /// skipped. Each note is returned once, and may come later than the end of [`connect`](Self::connect).
    pub fn notes(&self) -> impl Iterator<Item = McpFailure> {
        self.servers.iter().filter_map(|(server, _)| {
            Some(McpFailure {
                server: server.name().to_owned(),
                reason: format!(
                    "prints lines that answer nothing, which are skipped; the first: {}",
                    server.note()?
                ),
            })
        })
    }

    /// Returns the names of all configured servers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.configured.iter().map(String::as_str)
    }

    /// Returns the name of each server, its number of tools, and why it is not connected, as a predicate.
    pub async fn states(&self) -> Vec<(&str, usize, Option<String>)> {
        let mut states = Vec::new();
        for (server, offer) in self.servers.iter() {
            states.push((server.name(), offer.tools.len(), server.end().await));
        }
        let failed = self.failures.iter();
        states.extend(failed.map(|it| (it.server.as_str(), 0, Some(it.reason.clone()))));
        states
    }

    /// Ends the connection to a server and connects to it again. It keeps the tools of its first start. Calls in progress fail.
    ///
    /// # Errors
    /// Returns a message if the server cannot be reached, or did not offer tools when it was first started.
    pub async fn restart(&self, name: &str) -> Result<(), String> {
        let mut servers = self.servers.iter();
        match servers.find(|(server, _)| server.name() == name) {
            Some((server, _)) => server.restart().await,
            None if self.configured.iter().any(|known| known == name) => Err(format!(
                "the MCP server `{name}` was not connected at the start; begin the conversation again to use its tools"
            )),
            None => Err(format!("unknown MCP server `{name}`")),
        }
    }

    /// Returns the tools of all servers, with names that do not collide with the tools of this toolbox.
    ///
    /// Names depend only on the configuration, not on which servers could be reached, so a rule for a name never applies to
    /// a tool of another server. Tools of a single configured server keep their names unless a call cannot spell a name or it is the
    /// name of a tool in the toolbox, a built-in tool or `read_result`. Otherwise the name is the server's name, `_` and
    /// the tool's.
    pub fn tools_for(&self, own: &Toolbox) -> Vec<Tool> {
        let offered = || {
            let servers = self.servers.iter();
            servers.flat_map(|(server, offer)| offer.tools.iter().map(move |tool| (server, tool)))
        };
        let taken = own.iter().map(Tool::name);
        let called: Vec<(&str, &str)> = offered()
            .map(|(server, tool)| (server.name(), tool.name.as_str()))
            .collect();
        let names = names::names(taken, &self.configured, &called);
        offered()
            .zip(names)
            .map(|((server, offered), name)| server.tool(name, offered))
            .collect()
    }

    /// Closes all connections. A server that was started can exit when its stdin closes, and is killed shortly after. Later
    /// calls fail.
    pub async fn close(&self) {
        let mut closing = JoinSet::new();
        for (server, _) in self.servers.iter() {
            let server = Arc::clone(server);
            closing.spawn(async move { server.close().await });
        }
        closing.join_all().await;
    }
}

/// The beginning of an untrusted message, on one line.
fn clipped(text: &str) -> String {
    let mut clipped: String = text
        .chars()
        .take(CLIPPED)
        .map(|c| if is_unseen(c) { ' ' } else { c })
        .collect();
    if text.chars().nth(CLIPPED).is_some() {
        clipped.push('…');
    }
    clipped
}
