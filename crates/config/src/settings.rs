//! The settings of `ask` and `chat`: `config.toml` of the user and `plaincall.toml` of a project. The comments on these types
//! are the reference that people read.

#![allow(
    clippy::doc_markdown,
    reason = "the comments are a page for people, with proper names as they are"
)]

mod check;
mod layers;
mod model;
mod model_name;
mod paths;
mod reference;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use check::read_settings;
pub use layers::{Layers, untrusted};
pub use model::{
    Api, Arguments, MOST_REPAIR_ROUNDS, Model, Reasoning, Syntax, read_models, with_markers,
};
pub use model_name::KeySource;
pub use paths::FilePath;
pub use reference::{reference, schema, variables};

use crate::Time;
use crate::servers::ServerTable;
use crate::tools::RuleTable;

/// The settings. What serde writes of them is for people to see: it holds no secret.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The model that is asked: the name of a table `[models.NAME]`, or one of `ollama:ID`, `openai:ID`, `anthropic:ID`
    /// and `replay:FILE`, which need no table. In a file such a path is relative to where the command is started.
    pub model: Option<String>,

    /// The system prompt, before the tools: what the model is for, and how it should answer.
    pub system: Option<String>,

    /// A file with the system prompt, in the place of `system`.
    pub system_file: Option<FilePath>,

    /// Files with tools that are commands (`tools.toml`).
    pub tools: Vec<FilePath>,

    /// Where sessions are kept. Default: `plaincall/sessions` in the directory that `XDG_STATE_HOME` names, or in
    /// `~/.local/state`. Not in a project's file.
    pub sessions: Option<FilePath>,

    /// The built-in tools. Without `directory` there are none.
    pub builtin: Builtin,

    /// Tools of MCP servers.
    pub mcp: Mcp,

    /// How far an answer may go. A time is seconds, or a number with its unit, such as `"500ms"`, `"1.5s"`, `"2m"`, `"1h"`.
    pub limits: Limits,

    /// Models by the names that are used for them here.
    pub models: BTreeMap<String, Model>,

    /// What may run, what may not, and which calls need an answer from you: the first rule that fits a call decides. Where none
    /// does, tools that only read may run, and you are asked about others.
    ///
    /// Rules of a project's file that deny come before your own, and its other rules behind them: it can forbid, and cannot
    /// lift what you forbid. Rules in a tools file hold for the tools of that file alone, and come last. The table `[run]`
    /// of such a file holds for all tools if the file is the first that is named.
    pub rules: Vec<RuleTable>,
}

/// The built-in tools.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Builtin {
    /// The directory that they work in and cannot leave.
    pub directory: Option<FilePath>,

    /// Which of them there are. Default: all.
    pub tools: Option<Vec<String>>,

    /// The hosts from which `fetch_url` may fetch pages; `*.example.org` means all below `example.org`. With it, fetching
    /// counts as reading, which needs no answer from you. Without it, pages may come from anywhere, and you are asked.
    pub fetch_hosts: Option<Vec<String>>,

    /// How long a command of `run_command` may run. Default: 2 minutes.
    pub command_timeout: Option<Time>,

    /// The names of variables of this environment that commands of `run_command` may see, besides the usual ones. Not in a
    /// project's file.
    pub command_environment: Vec<String>,
}

/// Where tools of MCP servers come from.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mcp {
    /// Files with `mcpServers`, as many programs have them (JSON), or with `[mcp.servers.NAME]` (TOML).
    pub files: Vec<FilePath>,

    /// Servers by name.
    pub servers: BTreeMap<String, ServerTable>,
}

/// How far the answer to one question may go.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// How many replies the model may write. Default: 50.
    pub turns: Option<NonZeroU32>,

    /// How many calls it may write. Default: 500.
    pub calls: Option<NonZeroU32>,

    /// How long it may take, tools and questions to you too. Default: an hour.
    pub time: Option<Time>,

    /// How many tokens may be read and written, all replies together. Default: any number.
    pub tokens: Option<NonZeroU32>,

    /// How many replies in a row may hold calls that are wrong or not allowed, with none that ends well, before the answer
    /// fails. The model reads each time what is wrong. Default: 5.
    pub repairs: Option<u32>,

    /// How often the very same call may fail before the answer fails. Default: 3.
    pub same_failure: Option<NonZeroU32>,

    /// How often the model is reminded after an empty reply, or one without the call that it needs. Default: 2.
    pub reminders: Option<u32>,

    /// What a reply without a call means. Default: `"answer"`.
    pub without_call: Option<WithoutCall>,

    /// How many tokens the model can read. When a conversation comes near, the oldest large results are shortened, with a
    /// note in their place. Default: not known, and they are shortened only when its server says that the conversation is
    /// too long. Servers on your own machine often do not say so: docs/local-models.md.
    pub context: Option<NonZeroU32>,

    /// How many calls may run at the same time; 0 is any number. Default: 32, or what `[run]` of a tools file says.
    pub concurrent: Option<u32>,
}

/// What a reply without a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WithoutCall {
    /// It is the answer.
    Answer,
    /// It is a question to you, and your answer goes back to the model; only a tool that finishes the work ends it.
    Ask,
    /// The model has forgotten to call: it is reminded that only a tool that finishes ends the work.
    Remind,
}
