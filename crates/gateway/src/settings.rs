//! The settings of a model.

use std::num::NonZeroUsize;

use plaincall_call::Unclosed;
use plaincall_call::grammar::Constrain;
use plaincall_syntax::{Dialect, DialectError};
use plaincall_wire::openai::Message;

/// The settings of a model: its prompts, and the parsing and delivery of its replies. The default works for unknown models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelSettings {
    /// How tools are offered to the model. The fields below, except `reasoning` and `developer_is_system`, apply to text mode.
    pub mode: ToolMode,
    /// The dialect without reasoning markers. The gateway adds escaping and the key. Default: block.
    pub dialect: Dialect,
    /// Whether the markers contain a key.
    pub markers: Markers,
    /// The markers around reasoning in the model's text. Default: `<think>`.
    pub reasoning: Option<ReasoningSpan>,
    /// When the arguments of calls are sent.
    pub arguments: ArgumentMode,
    /// How calls without an end marker are handled.
    pub unclosed: Unclosed,
    /// The maximum number of hidden repair rounds for a reply. Default: 2. In native mode, at most one.
    pub repair_rounds: u32,
    /// Whether messages with the role `developer` are sent as `system`, which all servers support. Chat completions requests that
    /// are forwarded, and those in native mode, keep their roles. Default: `true`.
    pub developer_is_system: bool,
    /// The name of the model that is sent to the model server. Default: the requested one.
    pub upstream_model: Option<String>,
    /// The tools that the prompt lists. Default: all.
    pub prompt_budget: PromptBudget,
    /// Whether the model server constrains replies with a grammar.
    pub constrain: Constrain,
}

/// Limits for the list of tools in a prompt (`spec/gateway.md` 1). In names, `*` matches any characters.
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

/// How tools are offered to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolMode {
    /// In the prompt. The model writes its calls as text.
    #[default]
    Text,
    /// As tools of the model server, whose calls are returned unchanged. A call that arrives as text in a known format becomes a
    /// call (`spec/gateway.md` 11.1).
    Native,
}

/// The markers around the reasoning in a model's text. They are recognized at the beginning of a reply (`spec/common.md` 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReasoningSpan {
    /// The start marker, such as `<think>`.
    pub open: String,
    /// The end marker, such as `</think>`.
    pub close: String,
    /// Whether the prompt ends inside the reasoning, so that a reply begins with it.
    pub is_started: bool,
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

/// When the arguments of calls are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArgumentMode {
    /// After the call is complete and valid, together with its name. Invalid calls are not sent.
    #[default]
    Checked,
    /// While the model writes them. The arguments of an invalid call end as unparsable JSON.
    ///
    /// Complete responses, and responses to requests with a `strict` function, are checked anyway.
    Stream,
}

plaincall_call::named!(ToolMode { Text = "text", Native = "native" });
plaincall_call::named!(ArgumentMode { Checked = "checked", Stream = "stream" });

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            mode: ToolMode::default(),
            dialect: Dialect::block(),
            markers: Markers::default(),
            reasoning: Some(ReasoningSpan::think()),
            arguments: ArgumentMode::default(),
            unclosed: Unclosed::default(),
            repair_rounds: 2,
            developer_is_system: true,
            upstream_model: None,
            prompt_budget: PromptBudget::default(),
            constrain: Constrain::default(),
        }
    }
}

impl ReasoningSpan {
    /// Creates a span with these markers.
    pub fn new(open: impl Into<String>, close: impl Into<String>) -> Self {
        Self {
            open: open.into(),
            close: close.into(),
            is_started: false,
        }
    }

    /// Creates a span with the most common markers, [`Dialect::THINK`].
    pub fn think() -> Self {
        let [open, close] = Dialect::THINK;
        Self::new(open, close)
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
        self.prompt_dialect(key.as_deref()).check()?;
        self.reply_dialect(key.as_deref()).check()
    }

    /// Changes the role `developer` to `system`, unless the model server supports it.
    pub(crate) fn adapt_role(&self, message: &mut Message<'_>) {
        if self.developer_is_system && message.role() == "developer" {
            message.role = Some("system".into());
        }
    }

    pub(crate) fn prompt_dialect(&self, key: Option<&str>) -> Dialect {
        let mut dialect = self.dialect.clone().escaped();
        if let Some(key) = key {
            dialect = dialect.keyed(key);
        }
        if let Some(span) = &self.reasoning {
            dialect = dialect.leading_reasoning(&*span.open, &*span.close);
        }
        dialect
    }

    pub(crate) fn reply_dialect(&self, key: Option<&str>) -> Dialect {
        let dialect = self.prompt_dialect(key);
        match &self.reasoning {
            Some(span) if span.is_started => dialect.in_reasoning(),
            _ => dialect,
        }
    }
}

/// Returns the value for a name from a list of patterns. `*` matches any characters. A pattern without `*` takes precedence, then
/// the one with the most other characters, then the first.
pub fn for_name<'l, T>(list: &'l [(String, T)], name: &str) -> Option<&'l T> {
    let weight = |pattern: &str| {
        if pattern.contains('*') {
            pattern.chars().filter(|c| *c != '*').count()
        } else {
            usize::MAX
        }
    };
    // `max_by_key` returns the last maximum, and the first pattern takes precedence.
    let patterns = list.iter().rev();
    let matching = patterns.filter(|(pattern, _)| matches(pattern, name));
    let best = matching.max_by_key(|(pattern, _)| weight(pattern));
    best.map(|(_, value)| value)
}

/// Returns whether a name matches a pattern. Takes time proportional to the product of both lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(begin) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    // The first occurrence of a part leaves the most text for the others.
    for part in parts {
        let Some((_, after)) = name.split_once(part) else {
            return false;
        };
        name = after;
    }
    name.ends_with(end)
}
