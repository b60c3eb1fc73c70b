//! What a configuration may say. The comments here are the reference that people read, and the schema is made of these
//! types, so every key has one place.

#![allow(
    clippy::doc_markdown,
    reason = "the comments are a page for people, with proper names as they are"
)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plaincall::Dialect;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::options::UnclosedChoice;
use crate::serve::quantity;

/// What `plaincall ask` and `plaincall chat` are told beforehand.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Contents {
    /// The model that is asked: the name of a table `[models.NAME]`, or one of `ollama:ID`, `openai:ID`, `anthropic:ID`
    /// and `replay:FILE`, which need no table. In a file such a path is relative to where the command is started.
    pub(crate) model: Option<String>,

    /// What the model is told beforehand, before the tools: what it is for, and how it is to answer.
    pub(crate) system: Option<String>,

    /// A file with such words, in the place of `system`.
    pub(crate) system_file: Option<FilePath>,

    /// Files with tools that are commands (`tools.toml`).
    pub(crate) tools: Vec<FilePath>,

    /// Where sessions are kept. Without it: `plaincall/sessions` in the directory that `XDG_STATE_HOME` names, or in
    /// `~/.local/state`.
    #[schemars(extend("x-project" = "never"))]
    pub(crate) sessions: Option<FilePath>,

    /// The built-in tools. Without `directory` there are none.
    pub(crate) builtin: Builtin,

    /// Tools of MCP servers.
    pub(crate) mcp: Mcp,

    /// How far an answer may go.
    pub(crate) limits: Limits,

    /// Models by the names that are used for them here.
    pub(crate) models: BTreeMap<String, ModelEntry>,

    /// What may run, what may not, and about what somebody is asked: the first rule that fits a call decides. Where none
    /// does, tools that only read may run, and about others somebody is asked.
    ///
    /// Rules of a project's file that deny come before your own, and its other rules behind them: it can forbid, and cannot
    /// lift what you forbid. Rules in a file of tools hold for the tools of that file alone, and come last. The table `[run]`
    /// of such a file holds for all tools if the file is the first that is named.
    pub(crate) rules: Vec<RuleEntry>,
}

/// A model, and how to talk to it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelEntry {
    /// The address of its server, up to `/v1`.
    pub(crate) url: Option<String>,

    /// A file with recorded replies that answers in the place of a server; one JSON document a line: a text, or an
    /// object with `content` and perhaps `finish_reason`.
    pub(crate) replay: Option<FilePath>,

    /// What its server speaks. Ollama, llama.cpp, LM Studio and vLLM speak `openai`.
    pub(crate) kind: Kind,

    /// What its server calls it. Without it: the name of the table.
    pub(crate) model: Option<String>,

    /// The variable of the environment with the key. Without `key_env` and `key_file`, and for the servers of OpenAI and
    /// Anthropic alone: `OPENAI_API_KEY` and `ANTHROPIC_API_KEY`. A key itself has no place in a configuration.
    #[schemars(extend("x-project" = "never"))]
    pub(crate) key_env: Option<String>,

    /// A file with the key.
    #[schemars(extend("x-project" = "never"))]
    pub(crate) key_file: Option<FilePath>,

    /// How freely it chooses its words; what its server does by itself if this is not set.
    #[schemars(range(min = 0, max = 2))]
    pub(crate) temperature: Option<f64>,

    /// How many tokens a reply may have, reasoning too. By itself: what its server allows.
    #[schemars(range(min = 1))]
    pub(crate) max_tokens: Option<u32>,

    /// Fields that are added to each request as they are, for what a server knows besides. `num_ctx` is none that Ollama reads
    /// here: docs/local-models.md says how to let a model read more.
    pub(crate) extra: Map<String, Value>,

    /// The syntax in which it is taught to write calls.
    pub(crate) syntax: Syntax,

    /// The start marker of the block syntax.
    pub(crate) start_prefix: Option<String>,

    /// The end marker of the block syntax.
    pub(crate) end_prefix: Option<String>,

    /// The argument marker of the block syntax.
    pub(crate) arg_prefix: Option<String>,

    /// The two markers around the reasoning at the beginning of its replies; or `false` if there is none.
    pub(crate) reasoning: Reasoning,

    /// Its prompt opens the reasoning, so that a reply begins inside it.
    pub(crate) in_reasoning: bool,

    /// What to do with its calls that have no end marker. Default: what the tools file says, else `reject`.
    pub(crate) unclosed: Option<UnclosedChoice>,

    /// Put a random key into the markers of each conversation, so that no text from outside can hold a call.
    pub(crate) keyed: bool,
}

/// What a model's server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Chat completions, as OpenAI, Ollama, llama.cpp, vLLM, LM Studio and Gemini have them.
    #[default]
    OpenAi,
    /// Messages, as Anthropic has them.
    Anthropic,
}

/// The syntax that a model is taught.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Syntax {
    /// The block syntax.
    #[default]
    Block,
    /// The emoji-bracket syntax.
    Emoji,
}

/// The markers around reasoning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reasoning {
    None,
    Between(String, String),
}

impl Default for Reasoning {
    fn default() -> Self {
        let [open, close] = Dialect::THINK.map(str::to_owned);
        Self::Between(open, close)
    }
}

impl JsonSchema for Reasoning {
    fn schema_name() -> Cow<'static, str> {
        "Reasoning".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 },
                { "const": false }
            ],
            "default": Dialect::THINK
        })
    }
}

impl<'d> Deserialize<'d> for Reasoning {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Between([String; 2]),
            IsThere(bool),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Between([open, close]) => Self::Between(open, close),
            Written::IsThere(true) => Self::default(),
            Written::IsThere(false) => Self::None,
        })
    }
}

/// The built-in tools.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Builtin {
    /// The directory that they work in and cannot leave.
    pub(crate) directory: Option<FilePath>,

    /// Which of them there are. Without it: all.
    pub(crate) tools: Option<Vec<String>>,

    /// The hosts from which `fetch_url` may fetch pages; `*.example.org` means all below `example.org`. With it, fetching
    /// counts as reading, which needs nobody's yes. Without it, pages may come from anywhere, and somebody is asked.
    pub(crate) fetch_hosts: Option<Vec<String>>,

    /// How long a command of `run_command` may run; without it 2 minutes.
    pub(crate) command_timeout: Option<Time>,

    /// The names of variables of this environment that commands of `run_command` may see, besides the usual ones.
    #[schemars(extend("x-project" = "never"))]
    pub(crate) command_environment: Vec<String>,
}

/// Where tools of MCP servers come from.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Mcp {
    /// Files with `mcpServers`, as many programs have them (JSON), or with `[mcp.servers.NAME]` (TOML).
    pub(crate) files: Vec<FilePath>,

    /// Servers by name.
    pub(crate) servers: BTreeMap<String, McpServer>,
}

/// An MCP server: a command to start, or an address.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpServer {
    /// The program to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,

    /// What it is started with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) args: Vec<String>,

    /// Variables for its environment. `${NAME}` stands for a variable of this environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,

    /// Where it is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<FilePath>,

    /// The address of a server that runs already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,

    /// What is sent to it with each request. `${NAME}` stands for a variable of this environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,

    /// What its tools may do, by patterns of their names; the first that fits decides. Without it each tool counts as one
    /// that may change something, whatever the server says.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) effects: BTreeMap<String, McpEffect>,

    /// Patterns of the names of the tools that are taken. Without it: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<String>,

    /// Patterns of the names of tools that are not taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) exclude_tools: Vec<String>,

    /// How long a call of one of its tools may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<Time>,

    /// It is not used.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) disabled: bool,
}

/// What a tool of an MCP server may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum McpEffect {
    /// It only reads.
    Read,
    /// It can be repeated without harm.
    Idempotent,
    /// It may change something.
    Write,
    /// What the server says of it is taken for true.
    Hinted,
}

/// How far the answer to one question may go. A time is seconds, or a number with its unit, such as `"500ms"`, `"10s"`, `"2m"`, `"1h"`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// How many replies the model may write. By itself: 50.
    #[schemars(range(min = 1))]
    pub(crate) turns: Option<u32>,

    /// How many calls it may write. By itself: 500.
    #[schemars(range(min = 1))]
    pub(crate) calls: Option<u32>,

    /// How long it may take, tools and questions to you too. By itself: an hour.
    pub(crate) time: Option<Time>,

    /// How many tokens may be read and written, all replies together. By itself: any number.
    #[schemars(range(min = 1))]
    pub(crate) tokens: Option<u32>,

    /// In how many replies one after the other calls may be wrong or not allowed, and none end well, before the model is given
    /// up. It is told each time what is wrong. By itself: 5.
    pub(crate) repairs: Option<u32>,

    /// How often the very same call may fail before the model is given up. By itself: 3.
    #[schemars(range(min = 1))]
    pub(crate) same_failure: Option<u32>,

    /// How often the model is told that its reply is empty, or that a call is missing. By itself: 2.
    pub(crate) reminders: Option<u32>,

    /// What a reply without a call means.
    pub(crate) without_call: WithoutCall,

    /// How many tokens the model can read. When a conversation comes near, the oldest large results are shortened, with a
    /// note in their place. By itself: not known, and they are shortened only when its server says that the conversation is
    /// too long. Servers on your own machine often do not say so: docs/local-models.md.
    #[schemars(range(min = 1))]
    pub(crate) context: Option<u32>,

    /// How many calls may run at the same time; 0 is any number. By itself: 32, or what `[run]` of a file of tools says.
    pub(crate) concurrent: Option<u32>,
}

/// What a reply without a call means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WithoutCall {
    /// It is the answer.
    #[default]
    Answer,
    /// It is a question to you, and your answer goes back to the model; only a tool that finishes the work ends it.
    Ask,
    /// The model has forgotten to call: it is reminded that only a tool that finishes ends the work.
    Remind,
}

/// What is said about calls of some tools.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleEntry {
    /// The names of the tools it is about, one or several. `*` stands for any characters.
    pub(crate) tools: OneOrMore,

    /// The effect that the tool must have.
    #[serde(default)]
    pub(crate) effect: Option<Effect>,

    /// What the arguments must be: a pattern for each, by its name or JSON Pointer. `*` stands for any characters but
    /// `/`, `**` for any characters. A path is relative to `builtin.directory`. A command is compared word by word, and a last
    /// word `*` stands for any further words: `rm *` denies `rm -rf a/b` and `true; rm x`. A rule that denies a command is a
    /// convenience and no security boundary; one that allows, such as `git log *`, fits one simple command only, and
    /// all that this program runs itself.
    #[serde(default)]
    pub(crate) arguments: BTreeMap<String, String>,

    /// What it says.
    pub(crate) verdict: Verdict,

    /// Why not, in words for the model, for a rule that denies.
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

/// What a tool may do to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effect {
    /// It only reads.
    Read,
    /// It can be repeated without harm.
    Idempotent,
    /// It may change something.
    Write,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// The call runs.
    Allow,
    /// Somebody is asked.
    Ask,
    /// The call does not run.
    Deny,
}

/// A text, or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(crate) fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::More(texts) => texts,
        }
    }
}

impl JsonSchema for OneOrMore {
    fn schema_name() -> Cow<'static, str> {
        "OneOrMore".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 }
            ]
        })
    }
}

/// A path; a whole one as soon as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct FilePath(pub(crate) PathBuf);

impl Deref for FilePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl JsonSchema for FilePath {
    fn schema_name() -> Cow<'static, str> {
        "Path".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "path", "minLength": 1 })
    }
}

/// A time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "pattern": "^[0-9]+ *(ms|s|m|h)?$" },
                { "type": "integer", "minimum": 1 }
            ],
            "format": "time"
        })
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        format!("{}ms", self.0.as_millis()).serialize(serializer)
    }
}

impl<'d> Deserialize<'d> for Time {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Seconds(u64),
            Text(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Seconds(seconds) => seconds.to_string(),
            Written::Text(text) => text,
        };
        let time = quantity::time(&text).map_err(serde::de::Error::custom)?;
        Ok(Self(time))
    }
}
