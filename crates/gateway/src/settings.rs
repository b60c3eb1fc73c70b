//! The settings of a model.

use std::borrow::Cow;
use std::num::NonZeroUsize;

use plaincall_config::matches;
pub use plaincall_config::settings::{ArgumentMode, ToolMode};
use plaincall_grammar::Constrain;
use plaincall_prompt::few_shot::FewShotExample;
use plaincall_reply::{Unclosed, rescue::Format};
use plaincall_syntax::{Dialect, DialectError};

use plaincall_config::settings::Model;
use plaincall_wire::Json;
use plaincall_wire::openai::{ChatCompletionRequest, Message};
use serde_json::{Map, Value};

/// The settings of a model: its prompts, and the parsing and delivery of its replies. The default works for unknown models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelSettings {
    /// How tools are offered to the model. The fields below, except `developer_is_system`, `system_anywhere` and the reasoning markers
    /// of `dialect`, apply to text mode.
    pub mode: ToolMode,
    /// The dialect of replies. The gateway adds escaping, the key, and the reasoning markers `<think>` unless the dialect has others
    /// or is without reasoning. They are recognized at the beginning of a reply (`spec/common.md` 5.1). Default: block.
    pub dialect: Dialect,
    /// Whether the markers contain a key.
    pub markers: Markers,
    /// When the arguments of calls are sent.
    pub arguments: ArgumentMode,
    /// How calls without an end marker are handled.
    pub unclosed: Unclosed,
    /// The maximum number of hidden repair rounds for a reply. Default: 2. In native mode, at most one.
    pub repair_rounds: u32,
    /// Whether messages with the role `developer` are sent as `system`, which all servers support. Chat completions requests that
    /// are forwarded, and those in native mode, keep their roles. Default: `true`.
    pub developer_is_system: bool,
    /// Whether messages with the role `system` or `developer` stay where they are. Otherwise those after the first become text of
    /// the user's messages, because many chat templates reject them. Chat completions requests that are forwarded, and those in
    /// native mode, are not changed. Default: `false`.
    pub system_anywhere: bool,
    /// The name of the model that is sent to the model server. Default: the requested one.
    pub upstream_model: Option<String>,
    /// Fields of each chat completions request to the model server that has none of the same name.
    pub default_fields: Map<String, Value>,
    /// The tools that the prompt lists. Default: all.
    pub prompt_budget: PromptBudget,
    /// The formats in which calls that arrive as text are accepted in native mode. Default: those of the model
    /// ([`Format::of_model`]).
    pub formats: Option<Vec<Format>>,
    /// Whether the model server constrains replies with a grammar.
    pub constrain: Constrain,
    /// Few-shot examples (`spec/prompt.md` 3.3).
    pub examples: Vec<FewShotExample>,
    /// The number of examples that are sent as messages. Default: 0.
    pub few_shot: usize,
}

/// The default of [`ModelSettings::repair_rounds`].
const REPAIR_ROUNDS: u32 = 2;
/// The field for the maximum number of tokens of a reply, which has a newer name too.
const MAX_TOKENS: &str = "max_tokens";

/// Limits for the list of tools in a prompt (`spec/gateway.md` 1, `spec/prompt.md` 3.2). In names, `*` matches any characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptBudget {
    /// The names of the tools that are listed. Default: all.
    pub listed_tools: Option<Vec<String>>,
    /// The names of tools that are not listed, even if `listed_tools` has them.
    pub hidden_tools: Vec<String>,
    /// The maximum length of each description, in characters. Default: no limit.
    pub description_length: Option<NonZeroUsize>,
}

impl PromptBudget {
    /// Returns whether the prompt lists the tool with this name.
    pub fn lists(&self, name: &str) -> bool {
        let has = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        self.listed_tools.as_deref().is_none_or(has) && !has(&self.hidden_tools)
    }
}

/// Whether markers contain a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Markers {
    /// Without a key.
    #[default]
    Plain,
    /// With a key derived for each conversation (`spec/common.md` 7), so that untrusted texts cannot contain calls.
    Keyed,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self::from(&Model::default())
    }
}

impl From<&Model> for ModelSettings {
    fn from(model: &Model) -> Self {
        let own = [
            ("temperature", model.temperature.map(Value::from)),
            ("max_tokens", model.max_tokens.map(|most| most.get().into())),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let mut default_fields = model.extra.clone();
        default_fields.extend(own);
        let length = model.description_length;
        Self {
            mode: model.mode.unwrap_or_default(),
            dialect: model.conversation(),
            markers: match model.keyed {
                Some(true) => Markers::Keyed,
                _ => Markers::Plain,
            },
            arguments: model.arguments.unwrap_or_default(),
            unclosed: model.unclosed.unwrap_or_default(),
            repair_rounds: model.repair_rounds.unwrap_or(REPAIR_ROUNDS),
            developer_is_system: model.developer_role != Some(true),
            system_anywhere: model.system_anywhere == Some(true),
            upstream_model: model.model.clone(),
            default_fields,
            prompt_budget: PromptBudget {
                listed_tools: model.listed_tools.clone(),
                hidden_tools: model.hidden_tools.clone().unwrap_or_default(),
                description_length: length.and_then(|length| length.try_into().ok()),
            },
            formats: model.formats.clone(),
            constrain: model.constrain.unwrap_or_default().into(),
            examples: model.examples.clone(),
            few_shot: model.few_shot(),
        }
    }
}

impl ModelSettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid or does not have exactly one syntax, which prompts need.
    pub fn check(&self) -> Result<(), DialectError> {
        if self.dialect.syntax().is_none() {
            return Err(DialectError::NoSyntax);
        }
        let key = (self.markers == Markers::Keyed).then(|| "0".repeat(crate::key::KEY_LENGTH));
        self.dialect(key.as_deref()).check()
    }

    /// Changes the role `developer` to `system`, unless the model server supports it.
    pub(crate) fn adapt_role(&self, message: &mut Message<'_>) {
        if self.developer_is_system && message.role() == "developer" {
            message.role = Some("system".into());
        }
    }

    /// Adds the default fields that a request does not have. Returns whether there are any.
    pub(crate) fn add_defaults(&self, chat: &mut ChatCompletionRequest<'_>) -> bool {
        let mut is_changed = false;
        for (name, value) in self
            .default_fields
            .iter()
            .filter(|(_, value)| !value.is_null())
        {
            let same: &[&str] = match name.as_str() {
                MAX_TOKENS => &[MAX_TOKENS, "max_completion_tokens"],
                name => &[name],
            };
            if same.iter().all(|name| chat.unknown.get(name).is_none()) {
                chat.unknown.set(name.clone(), Json::new(value));
                is_changed = true;
            }
        }
        is_changed
    }

    /// Returns the dialect of replies.
    pub(crate) fn dialect(&self, key: Option<&str>) -> Dialect {
        let dialect = self.dialect.clone().for_reply().escaped();
        match key {
            Some(key) => dialect.keyed(key),
            None => dialect,
        }
    }

    /// Returns the formats in which calls that arrive as text are accepted, if this model is requested.
    pub(crate) fn formats_of(&self, requested: &str) -> Vec<Format> {
        let name = self.upstream_model.as_deref().unwrap_or(requested);
        self.formats
            .clone()
            .unwrap_or_else(|| Format::of_model(name))
    }

    /// Returns the settings for the reply to this request. Without thinking, no reply begins inside reasoning.
    pub(crate) fn for_request(&self, chat: &ChatCompletionRequest<'_>) -> Cow<'_, Self> {
        let mut settings = Cow::Borrowed(self);
        if self.dialect.is_in_reasoning() && has_no_thinking(chat) {
            settings.to_mut().dialect = self.dialect.clone().outside_reasoning();
        }
        settings
    }
}

/// The fields with which servers switch thinking off: a name, a JSON Pointer in its value, and the word there, or `false`.
const NO_THINKING: [(&str, &str, Option<&str>); 8] = [
    ("chat_template_kwargs", "/enable_thinking", None),
    ("chat_template_kwargs", "/thinking", None),
    ("enable_thinking", "", None),
    ("reasoning", "/effort", Some("none")),
    ("reasoning", "/enabled", None),
    ("reasoning_effort", "", Some("none")),
    ("think", "", None),
    ("thinking", "/type", Some("disabled")),
];

/// Returns whether a request switches thinking off.
fn has_no_thinking(chat: &ChatCompletionRequest<'_>) -> bool {
    NO_THINKING.iter().any(|(name, pointer, off)| {
        let field = chat.unknown.get(name);
        let field = field.and_then(|json| json.read::<Value>().ok());
        let value = field.as_ref().and_then(|field| field.pointer(pointer));
        value.is_some_and(|value| match off {
            Some(word) => value == word,
            None => *value == Value::Bool(false),
        })
    })
}
