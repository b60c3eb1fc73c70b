//! Models: their servers, syntax and keys, for `ask`, `chat`, `probe` and `serve`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use plaincall_names::{Engine, FewShotExample, Format, Unclosed};
use plaincall_syntax::Dialect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::FilePath;
use crate::secret::{Address, hide_values, is_variable_name};
use crate::servers::expand;
use crate::{Document, FileError, Location, Node, Origin, child};

/// The maximum number of repair rounds.
pub const MAX_REPAIR_ROUNDS: u32 = 20;

/// The number of few-shot examples by default, if there are any, and the maximum.
const FEW_SHOT: u32 = 16;
const MAX_FEW_SHOT: u32 = 64;

/// The fields of a request that every client sets itself.
const OWN_FIELDS: &str =
    "model messages tools tool_choice parallel_tool_calls response_format n stream stream_options";

/// A model: its server, syntax and key. All commands read the same keys; one that a command does not use has no effect there. Keys
/// may be added in any version: build it with `..Model::default()`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Model {
    /// The base URL of the server, including `/v1`.
    pub url: Option<Address>,

    /// A file with recorded replies, used instead of a server. Each line is a JSON string, or an object with `content` and
    /// optionally `finish_reason`.
    pub replay: Option<FilePath>,

    /// The API of the server. Ollama, llama.cpp, LM Studio and vLLM use `openai`. `plaincall serve`
    /// skips models with `anthropic`. Default: `"openai"`.
    pub kind: Option<Api>,

    /// The name of the model on the server. Default: the name that was asked for: that of the table, in which `*` matches any
    /// characters.
    pub model: Option<String>,

    /// The environment variable that contains the key. Default, only for the servers of OpenAI and Anthropic and without
    /// `key_file`: `OPENAI_API_KEY` and `ANTHROPIC_API_KEY`. A configuration cannot contain the key itself. Not allowed in a
    /// project's file.
    pub key_env: Option<String>,

    /// A file that contains the key. Not allowed in a project's file.
    pub key_file: Option<FilePath>,

    /// Further HTTP headers of each request to the server. `${NAME}` is replaced with the value of your environment variable, but
    /// not in a project's file.
    #[serde(
        serialize_with = "hide_values",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub headers: BTreeMap<String, String>,

    /// The sampling temperature. A client of `plaincall serve` can replace it. Default: set by the server.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,

    /// The maximum number of tokens of a reply, including reasoning. A client of `plaincall serve` can replace it. Default: set by the
    /// server.
    pub max_tokens: Option<NonZeroU32>,

    /// Additional fields of each request, for example for options of one server. A client of `plaincall serve` can replace them.
    /// Ollama ignores `num_ctx` here: see docs/local-models.md.
    #[serde(serialize_with = "hide_values", skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,

    /// The syntax in which the model writes calls. Default: the measured one of this model (docs/measured-models.md), else
    /// `"block"`.
    pub syntax: Option<Syntax>,

    /// The start marker of the block syntax.
    pub start_prefix: Option<String>,

    /// The end marker of the block syntax.
    pub end_prefix: Option<String>,

    /// The argument marker of the block syntax.
    pub arg_prefix: Option<String>,

    /// Whether markers of the block syntax count anywhere inside a call, not only at the beginning of a line. Default: `false`.
    pub markers_anywhere: Option<bool>,

    /// Whether ` /]` ends a call of the emoji syntax without a body. Default: `false`.
    pub self_closing: Option<bool>,

    /// The two markers around the reasoning at the beginning of a reply, or `false` for none. Default:
    /// `["<think>","</think>"]`.
    pub reasoning: Option<Reasoning>,

    /// Whether replies begin inside the reasoning, because the model's prompt template opens it. Default: `false`.
    pub in_reasoning: Option<bool>,

    /// The number of examples that are sent as messages before each conversation: of these `examples`, and of the tools' own that
    /// have a question. They help small models and cost tokens in every request. Not in `native` mode. Default: 16 if there are
    /// `examples`, else 0.
    #[schemars(range(max = 64))]
    pub few_shot: Option<u32>,

    /// Questions with the calls that answer them. Those of tools that are not offered are omitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<FewShotExample>,

    /// The handling of calls without an end marker. Default: the value in the tools file, else `"reject"`.
    pub unclosed: Option<Unclosed>,

    /// Whether markers include a random key for each conversation, so that untrusted text cannot contain a call. Default: `false`.
    pub keyed: Option<bool>,

    /// How `plaincall serve` offers tools: `text` in the prompt, for any model; `native` as tools of the model server, whose calls are
    /// returned unchanged. In `native` mode, the model is asked once more for a call that arrives as text and is not accepted.
    /// Default: `"text"`.
    pub mode: Option<ToolMode>,

    /// The formats in which the model's calls are accepted when they arrive as text, in `native` mode. For calls in other formats, the
    /// model is asked once more. Default: those of the model with this name on the server, if it is known; else
    /// `["hermes","mistral","function","fenced","json"]`.
    pub formats: Option<Vec<Format>>,

    /// Whether the model server constrains replies with a grammar. `plaincall serve` does it only in text mode. Default:
    /// `"never"`.
    pub constrain: Option<Constrain>,

    /// When `plaincall serve` sends the arguments of a call. Default: `"checked"`.
    pub arguments: Option<ArgumentMode>,

    /// How many times `plaincall serve` asks the model again, hidden from the client, before an invalid call is an error. In
    /// `native` mode, it asks at most once more, and no error follows. Default: 2.
    #[schemars(range(max = 20))]
    pub repair_rounds: Option<u32>,

    /// Whether the server supports the role `developer`. Otherwise `plaincall serve` sends such messages as `system`, except in
    /// chat completions requests that it forwards or handles in native mode. Default: `false`.
    pub developer_role: Option<bool>,

    /// Whether the server supports messages with the role `system` or `developer` after the first message. Otherwise
    /// `plaincall serve` sends their texts in messages of the user, except in chat completions requests that it forwards or handles
    /// in native mode. Default: `false`.
    pub system_anywhere: Option<bool>,

    /// The tools that the prompt of `plaincall serve` lists. In names, `*` matches any characters. The others can still be called.
    /// Only in text mode. Default: all.
    pub listed_tools: Option<Vec<String>>,

    /// Tools that the prompt of `plaincall serve` does not list, even if `listed_tools` has them. In names, `*` matches any
    /// characters. Only in text mode.
    pub hidden_tools: Option<Vec<String>>,

    /// The maximum length of each description of a tool or parameter in the prompt of `plaincall serve`, in characters. Only in
    /// text mode. Default: no limit.
    pub description_length: Option<NonZeroU32>,
}

/// The API of a model server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// The Chat Completions API: OpenAI, Ollama, llama.cpp, vLLM, LM Studio, Gemini.
    #[default]
    OpenAi,
    /// The Messages API: Anthropic.
    Anthropic,
}

/// The syntax in which a model writes calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Syntax {
    /// The block syntax.
    #[default]
    Block,
    /// The emoji-bracket syntax.
    Emoji,
}

/// How tools are offered to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolMode {
    /// In the prompt. The model writes its calls as text.
    #[default]
    Text,
    /// As tools of the model server. Its calls are returned unchanged, and complete calls that arrive as text become calls.
    Native,
}

/// Whether a model server constrains replies with a grammar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Constrain {
    /// Without a grammar.
    #[default]
    Never,
    /// If the server is one that accepts a grammar. If it rejects the grammar, the request is sent again without it.
    Auto,
    /// With a grammar, or not at all.
    Always,
    /// As `always`, for llama.cpp.
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    /// As `always`, for vLLM.
    Vllm,
    /// As `always`, for SGLang.
    Sglang,
    /// As `always`, for vLLM with the backend guidance.
    LlGuidance,
}

impl From<Constrain> for plaincall_names::Constrain {
    fn from(constrain: Constrain) -> Self {
        match constrain {
            Constrain::Never => Self::Never,
            Constrain::Auto => Self::Auto,
            Constrain::Always => Self::Always,
            Constrain::LlamaCpp => Self::For(Engine::LlamaCpp),
            Constrain::Vllm => Self::For(Engine::Vllm),
            Constrain::Sglang => Self::For(Engine::Sglang),
            Constrain::LlGuidance => Self::For(Engine::LlGuidance),
        }
    }
}

/// When the arguments of a call are sent to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentMode {
    /// When the call is complete and valid, together with its name. Invalid calls are not sent.
    #[default]
    Checked,
    /// While the model writes them. The arguments of an invalid call end as unparsable JSON. Answers that are not streamed, and answers
    /// to requests with a `strict` function, are checked anyway.
    Stream,
}

/// The reasoning of a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "an array of two strings, or true or false")]
#[schemars(inline)]
pub enum Reasoning {
    /// Reasoning is between these markers.
    Between([String; 2]),
    /// `true`: between the default markers; `false`: no reasoning.
    Is(bool),
}

impl Model {
    /// Reads settings that a program passes: an object with the keys of a table `[models.NAME]`.
    ///
    /// # Errors
    /// Returns all problems, without locations.
    pub fn from_json(settings: Value) -> Result<Self, FileError> {
        let mut document = Document::of(Node::new(settings, Origin::Default));
        let model = document.read::<Self>("").unwrap_or_default();
        if let Some((key, message)) = model.problem() {
            document.problem(&Location::key(child("", key)), message);
        }
        document.finish(model)
    }

    /// Returns the number of few-shot examples, at most.
    pub fn few_shot(&self) -> usize {
        let default = if self.examples.is_empty() {
            0
        } else {
            FEW_SHOT
        };
        self.few_shot.unwrap_or(default) as usize
    }

    /// Returns whether the settings name a server, or a file that replaces one.
    pub fn has_server(&self) -> bool {
        self.url.is_some() || self.replay.is_some()
    }

    /// Returns the dialect without reasoning markers.
    pub fn dialect(&self) -> Dialect {
        let dialect = match self.syntax.unwrap_or_default() {
            Syntax::Block => Dialect::block(),
            Syntax::Emoji => Dialect::emoji(),
        };
        let dialect = match self.self_closing {
            Some(true) => dialect.self_closing(),
            _ => dialect,
        };
        let dialect = match self.markers_anywhere {
            Some(true) => dialect.markers_anywhere(),
            _ => dialect,
        };
        with_markers(
            dialect,
            [&self.start_prefix, &self.end_prefix, &self.arg_prefix],
        )
    }

    /// Returns the markers of the reasoning.
    pub fn reasoning(&self) -> Option<[String; 2]> {
        match &self.reasoning {
            Some(Reasoning::Between(markers)) => Some(markers.clone()),
            Some(Reasoning::Is(false)) => None,
            Some(Reasoning::Is(true)) | None => Some(Dialect::THINK.map(str::to_owned)),
        }
    }

    /// Returns the dialect of a conversation, including reasoning markers and the escape.
    pub fn conversation(&self) -> Dialect {
        let dialect = self.dialect().escaped();
        let Some([open, close]) = self.reasoning() else {
            return dialect.without_reasoning();
        };
        let dialect = dialect.leading_reasoning(open, close);
        match self.in_reasoning {
            Some(true) => dialect.in_reasoning(),
            _ => dialect,
        }
    }

    /// Checks the dialect. Returns the invalid key and a message.
    pub fn teaching_problem(&self) -> Option<(&'static str, String)> {
        let markers = [
            ("start_prefix", &self.start_prefix),
            ("end_prefix", &self.end_prefix),
            ("arg_prefix", &self.arg_prefix),
        ];
        let marker = markers.into_iter().find(|(_, marker)| marker.is_some());
        if let (Some(Syntax::Emoji), Some((key, _))) = (self.syntax, marker) {
            let message = format!(
                "`{key}` is a marker of the block syntax, but `syntax` is `emoji`; remove one"
            );
            return Some((key, message));
        }
        if self.markers_anywhere == Some(true) && self.syntax == Some(Syntax::Emoji) {
            let message =
                "`markers_anywhere` is for the block syntax, but `syntax` is `emoji`; remove one";
            return Some(("markers_anywhere", message.to_owned()));
        }
        if self.self_closing == Some(true) && self.syntax != Some(Syntax::Emoji) {
            let message = "`self_closing` requires `syntax` to be `emoji`";
            return Some(("self_closing", message.to_owned()));
        }
        if self.in_reasoning == Some(true) && self.reasoning().is_none() {
            let message = "`in_reasoning` requires `reasoning`: set it to the two markers";
            return Some(("in_reasoning", message.to_owned()));
        }
        let refused = self.conversation().check().err()?;
        Some(("syntax", format!("invalid markers: {refused}")))
    }

    /// Returns only the settings of the dialect, with all defaults.
    pub fn teaching(&self) -> Self {
        let reasoning = self.reasoning();
        Self {
            syntax: Some(self.syntax.unwrap_or_default()),
            reasoning: Some(reasoning.map_or(Reasoning::Is(false), Reasoning::Between)),
            in_reasoning: Some(self.in_reasoning == Some(true)),
            keyed: Some(self.keyed == Some(true)),
            start_prefix: self.start_prefix.clone(),
            end_prefix: self.end_prefix.clone(),
            arg_prefix: self.arg_prefix.clone(),
            // Sessions that were saved without it mean the same.
            self_closing: self.self_closing.filter(|is_accepted| *is_accepted),
            markers_anywhere: self.markers_anywhere.filter(|is_accepted| *is_accepted),
            ..Self::default()
        }
    }

    /// Replaces the settings of the dialect with those of another model.
    pub fn taught_as(self, teaching: &Self) -> Self {
        let mut bare = self;
        (bare.start_prefix, bare.end_prefix, bare.arg_prefix) = (None, None, None);
        (bare.self_closing, bare.markers_anywhere) = (None, None);
        teaching.clone().over(&bare)
    }

    /// Applies the dialect of these settings to those of another model. If the syntax changes, so do the markers.
    pub fn over(self, base: &Self) -> Self {
        let is_other = |syntax: Syntax| syntax != base.syntax.unwrap_or_default();
        let has_own = self.syntax.is_some_and(is_other);
        let marker = |own: Option<String>, below: &Option<String>| {
            own.or_else(|| below.clone().filter(|_| !has_own))
        };
        Self {
            syntax: self.syntax.or(base.syntax),
            start_prefix: marker(self.start_prefix, &base.start_prefix),
            end_prefix: marker(self.end_prefix, &base.end_prefix),
            arg_prefix: marker(self.arg_prefix, &base.arg_prefix),
            self_closing: self
                .self_closing
                .or_else(|| base.self_closing.filter(|_| !has_own)),
            markers_anywhere: self
                .markers_anywhere
                .or_else(|| base.markers_anywhere.filter(|_| !has_own)),
            reasoning: self.reasoning.or_else(|| base.reasoning.clone()),
            in_reasoning: self.in_reasoning.or(base.in_reasoning),
            keyed: self.keyed.or(base.keyed),
            ..base.clone()
        }
    }
}

impl Model {
    /// Reports keys that have no effect on the prompt, because tools are not in it.
    fn budget_problem(&self) -> Option<(&'static str, String)> {
        let set = [
            ("listed_tools", self.listed_tools.is_some()),
            ("hidden_tools", self.hidden_tools.is_some()),
            ("description_length", self.description_length.is_some()),
        ];
        if self.mode != Some(ToolMode::Native) {
            return None;
        }
        if !matches!(self.constrain, None | Some(Constrain::Never)) {
            let message = "`constrain` is for calls that are text, but with `mode = \"native\"` the model server has its own; remove one";
            return Some(("constrain", message.to_owned()));
        }
        let key = set.into_iter().find(|(_, is_set)| *is_set);
        let (key, _) = key?;
        let message = format!(
            "`{key}` limits the prompt, but with `mode = \"native\"` tools are not in it; remove one"
        );
        Some((key, message))
    }

    /// Checks everything that needs no environment. Returns the key with the first problem, and a message with the fix.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let for_server = [
            ("key_env", self.key_env.is_some()),
            ("key_file", self.key_file.is_some()),
            ("headers", !self.headers.is_empty()),
        ];
        let for_server = for_server.into_iter().find(|(_, is_set)| *is_set);
        let is_own = |(name, value): &(&String, &Value)| {
            !value.is_null() && OWN_FIELDS.split(' ').any(|own| own == *name)
        };
        let own = self.extra.iter().find(is_own).map(|(name, _)| {
            let message =
                format!("`extra` cannot set `{name}`, which each request sets itself; remove it");
            ("extra", message)
        });
        let (key, message) = match (&self.url, &self.replay, for_server) {
            (Some(_), Some(_), _) => (
                "replay",
                "`url` and `replay` cannot both be set; remove one".to_owned(),
            ),
            (Some(url), None, _) if !url.is_web() => {
                let message =
                    format!("invalid URL `{url}`; it must begin with `http://` or `https://`");
                ("url", message)
            }
            (None, _, Some((key, _))) => (
                key,
                format!("`{key}` requires `url`, the server that it is for"),
            ),
            _ if self.key_env.is_some() && self.key_file.is_some() => (
                "key_file",
                "`key_env` and `key_file` cannot both be set; remove one".to_owned(),
            ),
            _ if self.key_env.as_deref().is_some_and(|name| !is_variable_name(name)) => (
                "key_env",
                "`key_env` must be the name of an environment variable that has the key, not the key"
                    .to_owned(),
            ),
            _ if !(0.0..=2.0).contains(&self.temperature.unwrap_or_default()) => (
                "temperature",
                "`temperature` must be a number from 0 to 2".to_owned(),
            ),
            _ if self.repair_rounds > Some(MAX_REPAIR_ROUNDS) => (
                "repair_rounds",
                format!("`repair_rounds` must be an integer from 0 to {MAX_REPAIR_ROUNDS}"),
            ),
            _ if self.few_shot > Some(MAX_FEW_SHOT) => (
                "few_shot",
                format!("`few_shot` must be an integer from 0 to {MAX_FEW_SHOT}"),
            ),
            _ => {
                let own = own.or_else(|| self.teaching_problem());
                return own.or_else(|| self.budget_problem());
            }
        };
        Some((key, message))
    }

    /// Replaces the variables in the headers with their values.
    ///
    /// # Errors
    /// Returns the names of headers, each with a message about a variable in it.
    pub fn expand_headers(
        &mut self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), Vec<(String, String)>> {
        let mut problems = Vec::new();
        for (name, value) in &mut self.headers {
            match expand(value, variable) {
                Ok(expanded) => *value = expanded,
                Err(messages) => {
                    problems.extend(messages.into_iter().map(|message| (name.clone(), message)));
                }
            }
        }
        Some(()).filter(|()| problems.is_empty()).ok_or(problems)
    }
}

/// Sets the start, end and argument markers of a dialect.
fn with_markers(mut dialect: Dialect, markers: [&Option<String>; 3]) -> Dialect {
    let [start, end, arg] = markers;
    if let Some(marker) = start {
        dialect = dialect.start(marker);
    }
    if let Some(marker) = end {
        dialect = dialect.end(marker);
    }
    if let Some(marker) = arg {
        dialect = dialect.arg(marker);
    }
    dialect
}
