//! The settings of all commands: the user's `config.toml` and a project's `plaincall.toml`. The comments on these types
//! become docs/configuration.md.

#![allow(
    clippy::doc_markdown,
    reason = "the comments become a page of documentation, with plain product names"
)]

mod check;
mod layers;
mod measured;
mod model;
mod model_name;
mod paths;
mod reference;
mod serve;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use check::{MAX_AGENT_DEPTH, read_settings};
pub use layers::{Layers, untrusted};
pub use measured::measured_models;
pub use model::{
    Api, ArgumentMode, Constrain, MAX_REPAIR_ROUNDS, Model, Reasoning, Syntax, ToolMode,
};
pub use model_name::KeySource;
pub use paths::FilePath;
pub use reference::{reference, schema, variables};
pub use serve::{MAX_REQUESTS, Serve};

use crate::Time;
use crate::for_name;
use crate::servers::ServerTable;
use crate::tools::RuleTable;

/// The settings. Serializing them hides secrets.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Settings {
    /// The model to use: the name of a table `[models.NAME]`, or one of `ollama:ID`, `openai:ID`, `anthropic:ID` and
    /// `replay:FILE`, which need no table. The path of `replay:FILE` is relative to the working directory.
    pub model: Option<String>,

    /// The system prompt, before the tools: the purpose of the model, and how it should answer.
    pub system: Option<String>,

    /// A file with the system prompt, instead of `system`.
    pub system_file: Option<FilePath>,

    /// Files that define commands as tools (`tools.toml`).
    pub tools: Vec<FilePath>,

    /// The directory for sessions. Default: `plaincall/sessions` in `$XDG_STATE_HOME` or `~/.local/state`. Not allowed in a
    /// project's file.
    pub sessions: Option<FilePath>,

    /// The built-in tools. They are off unless `directory` is set.
    pub builtin: Builtin,

    /// Tools of MCP servers.
    pub mcp: Mcp,

    /// The limits of one answer. A duration is a number of seconds, or a number with a unit: `"500ms"`, `"1.5s"`, `"2m"`, `"1h"`.
    pub limits: Limits,

    /// Models, by the names that you use for them.
    pub models: BTreeMap<String, Model>,

    /// The gateway, `plaincall serve`. Not allowed in a project's file, which `serve` does not read.
    ///
    /// SIGHUP reloads `models`, the tables of the models, `keys_file`, `key_requests` and `key_rate`. Changes of other keys take
    /// effect when the gateway is restarted. A size is a number of bytes, or a number with a unit: `"64 KiB"`, `"1 GiB"`.
    pub serve: Serve,

    /// Named agents, for `plaincall ask --agent NAME` and `plaincall chat --agent NAME`. The values of an agent replace those
    /// of the files and of environment variables; options replace those of the agent. An agent that sets one of `tools`,
    /// `builtin` and `mcp` has only these tools.
    ///
    /// An agent that is a tool of another gets a task from its model, works on it in a conversation of its own, and returns
    /// its answer. The rules, approvals and limits of your question apply to its calls too; its own limits apply to each
    /// task. It writes in the syntax of the agent that you ask, and uses its model if it sets none. Options do not apply to it,
    /// except `--no-tools`, which removes it, and `--yes`.
    pub agents: BTreeMap<String, NamedAgent>,

    /// Rules that allow or deny calls, or require your approval. The first rule that matches a call decides. By default, tools that
    /// read or are idempotent run, and you are asked about all others.
    ///
    /// The `deny` rules of a project's file are checked before your own rules, and its other rules after them, so a project can
    /// deny more but cannot override what you deny. Rules in a tools file apply only to the tools of that file, and are
    /// checked last. The table `[run]` of the first tools file applies to all tools.
    pub rules: Vec<RuleTable>,
}

impl Settings {
    /// Returns the table of a model. `*` in the name of a table with a server matches any characters.
    pub fn table_of(&self, name: &str) -> Option<Model> {
        let is_for = |(known, model): &(&String, &Model)| *known == name || model.has_server();
        let tables = self.models.iter().filter(is_for);
        let tables: Vec<(String, &Model)> = tables.map(|(name, it)| (name.clone(), it)).collect();
        let table = for_name(&tables, name).filter(|_| !name.contains('*'))?;
        Some((*table).clone())
    }
}

/// A named agent.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct NamedAgent {
    /// The purpose of the agent, for the model of an agent that has it as a tool.
    pub description: Option<String>,

    /// The agents that this agent has as tools: names of other agents, each with a `description`. Agents can be nested 4 deep.
    pub agents: Vec<String>,

    /// The model to use, as in the key `model` at the top level.
    pub model: Option<String>,

    /// The system prompt.
    pub system: Option<String>,

    /// A file with the system prompt, instead of `system`.
    pub system_file: Option<FilePath>,

    /// Files that define commands as tools (`tools.toml`).
    pub tools: Vec<FilePath>,

    /// The built-in tools, with the keys of `[builtin]`.
    pub builtin: Builtin,

    /// Tools of MCP servers, with the keys of `[mcp]`.
    pub mcp: Mcp,

    /// The limits of one answer, with the keys of `[limits]`.
    pub limits: Limits,
}

/// The built-in tools.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Builtin {
    /// The directory in which they work, and which they cannot leave.
    pub directory: Option<FilePath>,

    /// The names of the tools to offer. Default: all.
    pub tools: Option<Vec<String>>,

    /// The hosts that `fetch_url` may access; `*.example.org` matches all subdomains. If set, fetching counts as reading,
    /// which needs no approval. Default: all hosts, with your approval.
    pub fetch_hosts: Option<Vec<String>>,

    /// The timeout for commands of `run_command`. Default: 2 minutes.
    pub command_timeout: Option<Time>,

    /// The names of additional environment variables that are passed to commands of `run_command`. Not allowed in a
    /// project's file.
    pub command_environment: Vec<String>,
}

impl Builtin {
    /// Returns these settings without the choice of tools.
    pub fn all_tools(&self) -> Self {
        Self {
            tools: None,
            ..self.clone()
        }
    }
}

/// The MCP servers.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Mcp {
    /// Files with MCP servers: JSON with `mcpServers`, as in other programs, or TOML with `[mcp.servers.NAME]`.
    pub files: Vec<FilePath>,

    /// Servers by name.
    pub servers: BTreeMap<String, ServerTable>,
}

/// The limits of one answer.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of replies of the model. Default: 50.
    pub turns: Option<NonZeroU32>,

    /// The maximum number of calls. Default: 500.
    pub calls: Option<NonZeroU32>,

    /// The maximum time, including tools and questions to you. Default: 1 hour.
    pub time: Option<Time>,

    /// The maximum number of tokens, input and output, of all replies together. Default: unlimited.
    pub tokens: Option<NonZeroU32>,

    /// The maximum number of replies in a row in which calls are invalid or denied and none succeeds. After each one the model
    /// receives a message about the problem. Default: 5.
    pub repairs: Option<u32>,

    /// The number of failures of one identical call after which the answer fails. Default: 3.
    pub same_failure: Option<NonZeroU32>,

    /// The number of replies in a row with the same calls and the same results after which the answer fails. After 3, the model
    /// receives a message. Default: 10, because a tool may be polled.
    pub same_result: Option<NonZeroU32>,

    /// The maximum number of reminders after an empty reply or one without a required call. Default: 2.
    pub reminders: Option<u32>,

    /// The meaning of a reply without a tool call. Default: `"answer"`.
    pub on_no_tool_call: Option<OnNoToolCall>,

    /// The context length of the model, in tokens. When a conversation approaches it, the oldest large results are replaced with
    /// a note. Default: unknown; results are replaced only after the server rejects the conversation as too long. Local
    /// servers often do not report that: see docs/local-models.md.
    pub context: Option<NonZeroU32>,

    /// The maximum number of concurrent calls; 0 is unlimited. Default: the value in `[run]` of a tools file, else 32.
    pub concurrent: Option<u32>,
}

/// The meaning of a reply without a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnNoToolCall {
    /// It is the answer.
    Answer,
    /// It is a question to you, and your reply is sent to the model. Only a tool with `finishes` ends the answer.
    Ask,
    /// It is a mistake: the model is reminded that only a tool with `finishes` ends the answer.
    Remind,
}
