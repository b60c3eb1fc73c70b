//! The configuration of MCP servers.

mod read;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use plaincall::{Effect, rules::Pattern};
pub use plaincall_config::servers::McpEffect;

/// The configured MCP servers, in order.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct McpConfig {
    /// The servers, including disabled ones.
    pub servers: Vec<McpServer>,
}

/// The configuration of a server and its tools.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpServer {
    /// The name. It prefixes the names of tools where they would collide.
    pub name: String,
    /// The transport.
    pub transport: McpTransport,
    /// Whether the server is disabled.
    pub disabled: bool,
    /// The effects of tools by name; the first match applies. Default: [`Effect::Write`], regardless of the server's hints.
    pub effects: Vec<(Pattern, McpEffect)>,
    /// The tools to include. Default: all.
    pub tools: Vec<Pattern>,
    /// The tools to exclude.
    pub exclude_tools: Vec<Pattern>,
    /// The time limit of a call. Default: 60 seconds.
    pub timeout: Option<Duration>,
}

/// The transport of a server.
#[derive(Clone)]
#[non_exhaustive]
pub enum McpTransport {
    /// A program that is started and communicates over stdin and stdout.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment variables, in addition to the default ones.
        env: Vec<(String, String)>,
        /// Its working directory. Default: that of this process.
        cwd: Option<PathBuf>,
    },
    /// A running server, over streamable HTTP.
    Http {
        /// Its URL.
        url: String,
        /// The headers of each request.
        headers: Vec<(String, String)>,
    },
}

impl McpServer {
    /// Creates a server that includes all its tools.
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

    /// Whether a tool is included.
    pub(super) fn takes(&self, tool: &str) -> bool {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(tool));
        (self.tools.is_empty() || fits(&self.tools)) && !fits(&self.exclude_tools)
    }

    /// The effect of a tool with this hint of its server.
    pub(super) fn effect_of(&self, tool: &str, hinted: Option<Effect>) -> Effect {
        let mut effects = self.effects.iter();
        match effects.find(|(pattern, _)| pattern.matches(tool)) {
            Some((_, McpEffect::Read)) => Effect::Read,
            Some((_, McpEffect::Idempotent)) => Effect::Idempotent,
            Some((_, McpEffect::Hinted)) => hinted.unwrap_or(Effect::Write),
            Some((_, McpEffect::Write)) | None => Effect::Write,
        }
    }
}

impl fmt::Debug for McpTransport {
    /// Omits arguments, URLs and the values of variables and headers, which may be secret.
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
