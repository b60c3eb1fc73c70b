//! Options of agents, which override the configuration.
#![allow(
    clippy::doc_markdown,
    reason = "help is plain text, so proper names have no markup"
)]

use std::path::PathBuf;

use clap::Args;
use plaincall_config::{Node, Origin, Time};
use serde_json::Value;

use crate::options::{FileOptions, TaughtDialect};

/// The model, tools and limits of an agent.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AgentOptions {
    /// The model: a name from the configuration, `ollama:ID`, `openai:ID`, `anthropic:ID`, or `replay:FILE` for
    /// recorded replies. With `--url`, the model id that the server uses.
    #[arg(long, short, value_name = "NAME", help_heading = "Model")]
    pub(crate) model: Option<String>,

    /// The agent to use: the name of a table `[agents.NAME]` in the configuration. Other options override its settings.
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub(crate) agent: Option<String>,

    /// The base URL of a server with OpenAI's Chat Completions API that is not in the configuration, up to `/v1`. Its API key is
    /// read from `PLAINCALL_KEY`.
    #[arg(long, value_name = "URL", requires = "model", help_heading = "Model")]
    pub(crate) url: Option<String>,

    /// The dialect that the model is taught: `block` or `emoji`, and options after it, separated by blanks. Default: the
    /// settings of the model, else `block`.
    ///
    /// The options are `start=`, `end=` and `arg=` for the markers of the block syntax; `anywhere`, which recognizes them anywhere in a
    /// line; `self-closing`, which accepts ` /]` as
    /// the end of an emoji call without a body; `keyed`, which adds a random key to the markers of each conversation, so that
    /// untrusted text cannot contain a valid call; and `reasoning=OPEN,CLOSE` and `in-reasoning`. A value with blanks is in quotes.
    #[arg(long, value_name = "DIALECT", help_heading = "Model")]
    pub(crate) dialect: Option<TaughtDialect>,

    /// A file with command-line tools (`tools.toml`), instead of those in the configuration. May be repeated.
    #[arg(long, short, value_name = "FILE", help_heading = "Tools")]
    pub(crate) tools: Vec<PathBuf>,

    /// Enable the built-in tools, confined to this directory.
    #[arg(long, value_name = "DIR", help_heading = "Tools")]
    pub(crate) builtin: Option<PathBuf>,

    /// A file with MCP servers (`mcpServers`), instead of those in the configuration. May be repeated.
    #[arg(long, value_name = "FILE", help_heading = "Tools")]
    pub(crate) mcp: Vec<PathBuf>,

    /// Disable all tools, including those in the configuration.
    #[arg(long, conflicts_with_all = ["tools", "builtin", "mcp"], help_heading = "Tools")]
    pub(crate) no_tools: bool,

    /// Approve all calls that need approval.
    ///
    /// Calls that a rule denies are still denied, and calls that also appear in untrusted text still need approval.
    #[arg(long, short, help_heading = "Tools")]
    pub(crate) yes: bool,

    /// The time limit per question: seconds, or a number with `ms`, `s`, `m` or `h`. Default: `limits.time` in the
    /// configuration, else `1h`.
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub(crate) timeout: Option<Time>,

    #[command(flatten)]
    pub(crate) files: FileOptions,
}

impl AgentOptions {
    /// Returns the options as a configuration layer.
    pub(crate) fn layer(&self) -> Node {
        let paths = |paths: &[PathBuf]| {
            let paths: Vec<Value> = paths.iter().map(absolute).collect();
            (!paths.is_empty()).then_some(Value::Array(paths))
        };
        let builtin = self.builtin.as_ref().map(absolute);
        let time = self.timeout.and_then(|it| serde_json::to_value(it).ok());
        let values: [(_, &str, Option<Value>); 5] = [
            ("/model", "--model", value(self.model.as_deref())),
            ("/tools", "--tools", paths(&self.tools)),
            ("/mcp/files", "--mcp", paths(&self.mcp)),
            ("/builtin/directory", "--builtin", builtin),
            ("/limits/time", "--timeout", time),
        ];
        let mut layer = Node::default();
        for (pointer, option, value) in values {
            if let Some(value) = value {
                layer.set(pointer, Node::new(value, Origin::Option(option.into())));
            }
        }
        layer
    }
}

impl AgentOptions {
    /// Returns the options that a later command needs to reach the model and the tools, for a shell.
    pub(crate) fn for_shell(&self) -> String {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let one = [
            ("--model", self.model.clone()),
            ("--agent", self.agent.clone()),
            ("--url", self.url.clone()),
            ("--builtin", self.builtin.as_ref().map(path)),
            ("--config", self.files.config.as_ref().map(path)),
        ];
        let many = [("--tools", &self.tools), ("--mcp", &self.mcp)];
        let many = many
            .into_iter()
            .flat_map(|(name, paths)| paths.iter().map(move |it| (name, Some(path(it)))));
        let given = one.into_iter().chain(many);
        let given = given.filter_map(|(name, value)| Some(format!("{name} {} ", word(&value?))));
        given.collect()
    }
}

/// Quotes a word for a shell, if necessary.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn value(value: Option<impl Into<Value>>) -> Option<Value> {
    value.map(Into::into)
}

/// Makes a path absolute, based on the working directory.
fn absolute(path: &PathBuf) -> Value {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    path.to_string_lossy().into_owned().into()
}
