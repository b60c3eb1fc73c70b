//! Models: where they are, how they are taught, and where their keys come from. One description for `ask`, `chat`, `probe`
//! and `serve`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use plaincall_call::Unclosed;
use plaincall_syntax::Dialect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::FilePath;
use crate::secret::{Address, hide_values};
use crate::{Document, FileError, Place, child};

/// More rounds of repair than this help no model.
pub const MOST_REPAIR_ROUNDS: u32 = 20;

/// The keys that `plaincall serve` alone has a use for.
pub(super) const SERVED: &str = "arguments repair_rounds developer_role";
/// The keys that it has no use for.
const NOT_SERVED: &str = "url replay kind model key_env key_file temperature max_tokens extra";

/// A model: where it is, and how to talk to it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Model {
    /// The address of its server, up to `/v1`.
    pub url: Option<Address>,

    /// A file with recorded replies that answers in the place of a server; one JSON document a line: a text, or an
    /// object with `content` and perhaps `finish_reason`.
    pub replay: Option<FilePath>,

    /// The API of its server. Ollama, llama.cpp, LM Studio and vLLM have `openai`. Default: `"openai"`.
    pub kind: Option<Api>,

    /// The name that its server has for it. Default: the name of the table.
    pub model: Option<String>,

    /// The variable of the environment with the key. Without `key_env` and `key_file`, and for the servers of OpenAI and
    /// Anthropic alone: `OPENAI_API_KEY` and `ANTHROPIC_API_KEY`. A key itself has no place in a configuration. Not in a
    /// project's file.
    pub key_env: Option<String>,

    /// A file with the key. Not in a project's file.
    pub key_file: Option<FilePath>,

    /// How freely it chooses its words. Default: that of its server.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,

    /// How many tokens a reply may have, reasoning too. Default: what its server allows.
    pub max_tokens: Option<NonZeroU32>,

    /// Fields that are added to each request as they are, for what a server knows besides. `num_ctx` is none that Ollama reads
    /// here: docs/local-models.md says how to let a model read more.
    #[serde(serialize_with = "hide_values", skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,

    /// The syntax in which it is taught to write calls. Default: `"block"`.
    pub syntax: Option<Syntax>,

    /// The start marker of the block syntax.
    pub start_prefix: Option<String>,

    /// The end marker of the block syntax.
    pub end_prefix: Option<String>,

    /// The argument marker of the block syntax.
    pub arg_prefix: Option<String>,

    /// The two markers around the reasoning at the beginning of its replies; or `false` if there is none. Default:
    /// `["<think>","</think>"]`.
    pub reasoning: Option<Reasoning>,

    /// Its prompt opens the reasoning, so that a reply begins inside it. Default: `false`.
    pub in_reasoning: Option<bool>,

    /// What to do with its calls that have no end marker. Default: what the tools file says, else `"reject"`.
    pub unclosed: Option<Unclosed>,

    /// Put a random key into the markers of each conversation, so that no text from outside can hold a call. Default: `false`.
    pub keyed: Option<bool>,

    /// When `plaincall serve` sends the arguments of a call. Only in a file of `--models`.
    pub arguments: Option<Arguments>,

    /// How often `plaincall serve` asks the model again, hidden from the client, before an invalid call is an error. Only in a
    /// file of `--models`.
    #[schemars(range(max = 20))]
    pub repair_rounds: Option<u32>,

    /// Its server knows messages of the role `developer`, which `plaincall serve` otherwise sends as `system`. Only in a file of
    /// `--models`.
    pub developer_role: Option<bool>,
}

/// The API of a model's server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "clap", value(rename_all = "lowercase"))]
pub enum Api {
    /// Chat completions, as OpenAI, Ollama, llama.cpp, vLLM, LM Studio and Gemini have them.
    #[default]
    OpenAi,
    /// Messages, as Anthropic has them.
    Anthropic,
}

/// The syntax that a model is taught.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Syntax {
    /// The block syntax.
    #[default]
    Block,
    /// The emoji-bracket syntax.
    Emoji,
}

/// When the arguments of a call are sent to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Arguments {
    /// When the call has ended and is valid.
    #[default]
    Checked,
    /// While the model writes them.
    Stream,
}

/// The reasoning of a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "a list of two texts, or true or false")]
#[schemars(inline)]
pub enum Reasoning {
    /// It is between these markers.
    Between([String; 2]),
    /// Whether it is between the usual markers, or there is none.
    Is(bool),
}

impl Model {
    /// The syntax that it is taught, and its markers, without those of reasoning.
    pub fn dialect(&self) -> Dialect {
        let dialect = match self.syntax.unwrap_or_default() {
            Syntax::Block => Dialect::block(),
            Syntax::Emoji => Dialect::emoji(),
        };
        with_markers(
            dialect,
            [&self.start_prefix, &self.end_prefix, &self.arg_prefix],
        )
    }

    /// The markers of its reasoning.
    pub fn reasoning(&self) -> Option<[String; 2]> {
        match &self.reasoning {
            Some(Reasoning::Between(markers)) => Some(markers.clone()),
            Some(Reasoning::Is(false)) => None,
            Some(Reasoning::Is(true)) | None => Some(Dialect::THINK.map(str::to_owned)),
        }
    }

    /// The dialect of a conversation with it, reasoning and all. Its prompt teaches the escape too.
    pub fn conversation(&self) -> Dialect {
        let mut dialect = self.dialect();
        if let Some([open, close]) = self.reasoning() {
            dialect = dialect.leading_reasoning(open, close);
            if self.in_reasoning == Some(true) {
                dialect = dialect.in_reasoning();
            }
        }
        dialect.escaped()
    }

    /// Why it cannot be taught so: the key that is wrong, and a sentence.
    pub fn teaching_problem(&self) -> Option<(&'static str, String)> {
        let markers = [
            ("start_prefix", &self.start_prefix),
            ("end_prefix", &self.end_prefix),
            ("arg_prefix", &self.arg_prefix),
        ];
        let marker = markers.into_iter().find(|(_, marker)| marker.is_some());
        if let (Some(Syntax::Emoji), Some((key, _))) = (self.syntax, marker) {
            let message = format!(
                "`{key}` is a marker of the block syntax, and the model is taught the emoji syntax; leave one out"
            );
            return Some((key, message));
        }
        if self.in_reasoning == Some(true) && self.reasoning().is_none() {
            let message = "a reply cannot begin in reasoning if there is none: set `reasoning` to its two markers";
            return Some(("in_reasoning", message.to_owned()));
        }
        let refused = self.conversation().check().err()?;
        Some(("syntax", format!("these markers cannot work: {refused}")))
    }

    /// How it is taught, and nothing else, with all defaults.
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
            ..Self::default()
        }
    }

    /// This model, taught as another one.
    pub fn taught_as(self, teaching: &Self) -> Self {
        let mut bare = self;
        (bare.start_prefix, bare.end_prefix, bare.arg_prefix) = (None, None, None);
        teaching.clone().over(&bare)
    }

    /// What this sets of how a model is taught and served, over another model. A syntax has its own markers.
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
            reasoning: self.reasoning.or_else(|| base.reasoning.clone()),
            in_reasoning: self.in_reasoning.or(base.in_reasoning),
            unclosed: self.unclosed.or(base.unclosed),
            keyed: self.keyed.or(base.keyed),
            arguments: self.arguments.or(base.arguments),
            repair_rounds: self.repair_rounds.or(base.repair_rounds),
            developer_role: self.developer_role.or(base.developer_role),
            ..base.clone()
        }
    }
}

/// A dialect with the start, end and argument markers that are set.
pub fn with_markers(mut dialect: Dialect, markers: [&Option<String>; 3]) -> Dialect {
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

/// Reads a file of `plaincall serve --models`: tables `[models.NAME]`, each over what holds for all models.
///
/// # Errors
/// All problems of the file.
pub fn read_models(file: &str, text: &str, all: &Model) -> Result<Vec<(String, Model)>, FileError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Models {
        models: BTreeMap<String, Value>,
    }
    let mut document = Document::toml(file, text);
    document.read::<Models>("");
    let mut models = Vec::new();
    for name in document.keys("/models") {
        let pointer = child("/models", &name);
        let Some(own) = document.read::<Model>(&pointer) else {
            continue;
        };
        document.refuse_keys(&pointer, NOT_SERVED, |key| {
            format!(
                "`{key}` is not for `plaincall serve`, whose `--upstream` says where all models are"
            )
        });
        let model = own.over(all);
        let mut problem = model.teaching_problem();
        if problem.is_none() && model.repair_rounds > Some(MOST_REPAIR_ROUNDS) {
            let message =
                format!("`repair_rounds` must be an integer from 0 to {MOST_REPAIR_ROUNDS}");
            problem = Some(("repair_rounds", message));
        }
        if let Some((key, message)) = problem {
            document.problem(&Place::key(child(&pointer, key)), message);
        }
        models.push((name, model));
    }
    document.finish(models)
}
