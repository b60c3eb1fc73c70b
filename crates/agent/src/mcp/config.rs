//! Which MCP servers there are, as people write it down.

mod read;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use plaincall::{Effect, rules::Pattern};
pub use plaincall_config::servers::McpEffect;

/// MCP servers, in the order in which they are written.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct McpConfig {
    /// The servers; those that are switched off too.
    pub servers: Vec<McpServer>,
}

/// One server, and what is made of its tools.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpServer {
    /// What it is called. It stands before the names of its tools where they would clash.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Whether it is switched off.
    pub disabled: bool,
    /// What its tools may do, by their names; the first that fits decides. A tool that none fits counts as
    /// [`Effect::Write`], whatever the server says of it.
    pub effects: Vec<(Pattern, McpEffect)>,
    /// Only tools with these names are taken; all if there are none.
    pub tools: Vec<Pattern>,
    /// Tools with these names are not taken.
    pub exclude_tools: Vec<Pattern>,
    /// How long a call of one of its tools may take. Default: 60 seconds.
    pub timeout: Option<Duration>,
}

/// How a server is reached.
#[derive(Clone)]
#[non_exhaustive]
pub enum McpTransport {
    /// A program that is started, over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of its environment, beside the few that every server sees.
        env: Vec<(String, String)>,
        /// Its working directory; that of this process if nothing is said.
        cwd: Option<PathBuf>,
    },
    /// A server that runs already, over streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// What each request has in its head.
        headers: Vec<(String, String)>,
    },
}

impl McpServer {
    /// A server with this name, all of whose tools are taken.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            disabled: false,
            effects: Vec::new(),
            tools: Vec::new(),
            exclude_tools: Vec::new(),
            timeout: None,
        }
    }

    /// Whether a tool is taken.
    pub(super) fn takes(&self, tool: &str) -> bool {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(tool));
        (self.tools.is_empty() || fits(&self.tools)) && !fits(&self.exclude_tools)
    }

    /// What a tool may do of which its server says this.
    pub(super) fn effect_of(&self, tool: &str, hinted: Option<Effect>) -> Effect {
        let mut said = self.effects.iter();
        match said.find(|(pattern, _)| pattern.matches(tool)) {
            Some((_, McpEffect::Read)) => Effect::Read,
            Some((_, McpEffect::Idempotent)) => Effect::Idempotent,
            Some((_, McpEffect::Hinted)) => hinted.unwrap_or(Effect::Write),
            Some((_, McpEffect::Write)) | None => Effect::Write,
        }
    }
}

impl fmt::Debug for McpTransport {
    /// Without the values of variables and heads, the arguments and the address, all of which may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| -> Vec<String> {
            pairs.iter().map(|(name, _)| name.clone()).collect()
        };
        match self {
            Self::Stdio {
                command,
                args,
                env,
                cwd,
            } => formatter
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &names(env))
                .field("cwd", cwd)
                .finish(),
            Self::Http { headers, .. } => formatter
                .debug_struct("Http")
                .field("headers", &names(headers))
                .finish_non_exhaustive(),
        }
    }
}
