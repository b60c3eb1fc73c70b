//! Tools of MCP servers, and our tools for MCP clients.
//!
//! [`McpConfig`] reads which servers there are, [`McpServers`] connects to them and makes [`Tool`]s of what they offer.
//! [`McpToolServer`] is the other way round.
//!
//! Descriptions and results of a server are untrusted text, and reach a model only escaped. What a server says of the
//! effects of its tools is kept as [`ToolSpec::hinted_effect`](plaincall::call::ToolSpec::hinted_effect), for people to look at:
//! every tool counts as [`Effect::Write`](plaincall::Effect::Write) unless the user says otherwise ([`McpServer::effects`]).

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
use std::fmt;
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

/// How long the words of a server are at most that a message repeats, in characters.
const CLIPPED: usize = 500;

/// How servers are reached and called.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpOptions {
    /// The variables from which a started server sees `PATH`, `HOME`, `LANG`, `LC_…`, `TMPDIR`, `LOGNAME`, `SHELL`, `TERM`
    /// and `USER`, beside those that its configuration sets. Default: none; the environment of this process is not read.
    pub environment: BTreeMap<OsString, OsString>,
    /// How long a server may take to be there, and once more to say its tools; 30 seconds if nothing is said. A program
    /// that is fetched before it is started takes its time.
    pub connect_timeout: Duration,
    /// How much of a result is kept, in bytes; 1 MiB if nothing is said.
    pub output_limit: usize,
    /// How connections are made.
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

/// MCP servers that were reached. Dropping it, its copies and all its tools ends every server that was started;
/// [`close`](Self::close) gives them time to end by themselves.
///
/// The tools are those that the servers offer at first: later changes are not followed.
#[derive(Clone)]
pub struct McpServers {
    servers: Arc<[(Arc<Server>, Offer)]>,
    failures: Arc<[McpFailure]>,
    /// The names of all servers of the configuration, also of those that are not here.
    configured: Arc<[String]>,
}

/// A server that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpFailure {
    /// What the server is called.
    pub server: String,
    /// Why, in words that go behind its name.
    pub reason: String,
}

impl fmt::Display for McpFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the MCP server `{}` {}",
            self.server, self.reason
        )
    }
}

impl std::error::Error for McpFailure {}

/// A tool of a server that is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedTool {
    /// What the server is called.
    pub server: String,
    /// What the server calls the tool.
    pub tool: String,
    /// Why it is not taken.
    pub reason: String,
}

impl McpServers {
    /// Connects to all servers that are not switched off, side by side, and asks each for its tools. Where one cannot be
    /// used, the others work without it, and [`failures`](Self::failures) says why.
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

    /// The servers that were wanted and cannot be used.
    pub fn failures(&self) -> &[McpFailure] {
        &self.failures
    }

    /// The tools that are not taken: their definitions cannot be used, or there are too many.
    pub fn skipped(&self) -> impl Iterator<Item = &SkippedTool> {
        self.servers.iter().flat_map(|(_, offer)| &offer.skipped)
    }

    /// The tools of all servers, in their order, for a model that has the tools of this box too.
    ///
    /// The configuration decides what a tool is called, and not which servers could be reached, so that a rule for a name
    /// never means a tool of another server. The tools of a server that is alone keep their names, as far as calls can
    /// spell them and neither a tool of the box, nor a built-in tool, nor `read_result` is called so. Otherwise a tool is
    /// called by its server's name, `_` and its own.
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

    /// Ends all connections in order: each server that was started finds its input closed, and has a moment to end by
    /// itself before it is ended. Calls that come later fail.
    pub async fn close(&self) {
        let mut closing = JoinSet::new();
        for (server, _) in self.servers.iter() {
            let server = Arc::clone(server);
            closing.spawn(async move { server.close().await });
        }
        closing.join_all().await;
    }
}

/// The beginning of what a stranger says, on one line.
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
