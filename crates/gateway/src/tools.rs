//! The tools of a request, and the choice among them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use plaincall_prompt::few_shot::{FewShot, few_shot};
use plaincall_prompt::{PromptOptions, prompt};
use plaincall_syntax::{Dialect, DialectError};
use plaincall_tool::definitions::{ChangedTool, read_usable_tools};
use plaincall_tool::{SpecError, ToolLookup as _, ToolSet, ToolSpec};
use plaincall_wire::Json;
use plaincall_wire::openai::{ChatCompletionRequest, Choose, Tool};
use serde_json::Value;

use crate::compiled::CompiledDialect;
use crate::constraint::Grammars;
use crate::error::GatewayError;
use crate::settings::{ModelSettings, ToolMode};

/// The tools that a request offers.
#[derive(Debug, Default)]
pub struct OfferedTools {
    tools: ToolSet,
    /// The names that calls as text cannot have, each with the one that the model gets.
    aliases: Vec<(String, String)>,
    is_strict: bool,
    /// The tools that the prompt does not list, because a result introduces them later.
    deferred: HashSet<String>,
    /// The definitions that were loosened or dropped.
    changed: Vec<ChangedTool>,
    prompts: Mutex<Vec<ToolPrompt>>,
    pub(crate) grammars: Grammars,
}

/// The prompt for a set of tools.
#[derive(Clone, Debug)]
pub(crate) struct ToolPrompt {
    key: Option<String>,
    settings: ModelSettings,
    one_call: bool,
    pub(crate) compiled: Arc<CompiledDialect>,
    /// Describes the tools and how to call them. Empty if there are none.
    pub(crate) prompt: Arc<str>,
    pub(crate) few_shot: Arc<FewShot>,
    /// The number of tools that the settings hide.
    pub(crate) hidden: u64,
    /// The number of examples of calls that the prompt does not contain.
    pub(crate) skipped_examples: u64,
}

/// The key of a definition that names the parameter for the body of an emoji call.
pub(crate) const BODY_KEY: &str = "x-plaincall-body";
/// The field of a tool that the prompt does not list.
pub(crate) const DEFER_LOADING: &str = "defer_loading";

/// The maximum number of tools in a request.
const MAX_TOOLS: usize = 1024;
/// The maximum length of their definitions, in bytes. Parsed definitions may take fifty times as much.
const MAX_BYTES: usize = 4 << 20;
/// The maximum number of cached prompts for a set of tools.
const MAX_PROMPTS: usize = 8;

/// The tools that the model may or must call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Any or none.
    Auto,
    None,
    /// At least one.
    Required,
    Only {
        names: Vec<String>,
        is_required: bool,
    },
}

impl OfferedTools {
    /// Reads the tools of a request. Definitions that cannot be used as given are loosened or dropped ([`read_usable_tools`]).
    pub(crate) fn read(request: &ChatCompletionRequest<'_>) -> Result<Self, GatewayError> {
        let Some(tools) = &request.tools else {
            return Ok(Self::default());
        };
        if tools.text().len() > MAX_BYTES {
            return Err(too_much(&format!("{MAX_BYTES} bytes")));
        }
        let given = request
            .tools()
            .map_err(|error| GatewayError::invalid_request(error.to_string(), Some("tools")))?;
        if given.len() > MAX_TOOLS {
            return Err(too_much(&format!("{MAX_TOOLS} definitions")));
        }
        let (given, aliases) = with_aliases(given);
        let mut read = read_usable_tools(given.iter().map(Json::text));
        for tool in &mut read.tools {
            set_body(tool, &given);
        }
        let tools = ToolSet::new(read.tools);
        Ok(Self {
            tools: tools
                .map_err(|error| GatewayError::invalid_request(error.to_string(), Some("tools")))?,
            aliases,
            is_strict: read.is_strict,
            deferred: deferred(&given),
            changed: read.changed,
            prompts: Mutex::default(),
            grammars: Grammars::default(),
        })
    }

    /// Returns the cached or new prompt for these settings and this marker key.
    pub(crate) fn tool_prompt(
        &self,
        settings: &ModelSettings,
        key: Option<String>,
        one_call: bool,
    ) -> Result<ToolPrompt, DialectError> {
        let prompts = || self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |one: &&ToolPrompt| {
            one.one_call == one_call && one.key == key && one.settings == *settings
        };
        if let Some(known) = prompts().iter().find(is_same) {
            return Ok(known.clone());
        }
        // The lock is not held meanwhile.
        let compiled = CompiledDialect::new(settings, key.as_deref())?;
        let budget = &settings.prompt_budget;
        let ((prompt, skipped), few_shot) = match settings.mode {
            ToolMode::Text => (
                self.prompt(settings, &compiled.dialect, one_call)?,
                self.few_shot(settings, &compiled.dialect)?,
            ),
            ToolMode::Native => ((String::new(), 0), FewShot::default()),
        };
        let new = ToolPrompt {
            prompt: prompt.into(),
            skipped_examples: skipped + few_shot.invalid.len() as u64,
            few_shot: Arc::new(few_shot),
            hidden: match settings.mode {
                ToolMode::Text => self
                    .iter()
                    .filter(|tool| !budget.lists(self.original(&tool.name)))
                    .count() as u64,
                ToolMode::Native => 0,
            },
            compiled: Arc::new(compiled),
            settings: settings.clone(),
            key,
            one_call,
        };
        let mut prompts = prompts();
        if prompts.len() >= MAX_PROMPTS {
            prompts.remove(0);
        }
        prompts.push(new.clone());
        Ok(new)
    }

    /// Returns the prompt, and the number of examples of calls that it does not contain.
    fn prompt(
        &self,
        settings: &ModelSettings,
        dialect: &Dialect,
        one_call: bool,
    ) -> Result<(String, u64), DialectError> {
        if self.is_empty() {
            return Ok((String::new(), 0));
        }
        let mut options = list_options(settings);
        if one_call {
            options = options.one_call();
        }
        if settings.few_shot > 0 {
            options = options.few_shot();
        }
        let listed = self.listed(settings);
        // A later message may introduce the others.
        if listed.len() < self.tools.iter().len() {
            options = options.every_rule();
        }
        let prompt = prompt(listed, dialect, &options)?;
        let skipped = prompt.skipped_examples().len() as u64;
        Ok((prompt.text().trim_end().to_owned(), skipped))
    }

    /// Returns the examples that are sent as messages.
    fn few_shot(
        &self,
        settings: &ModelSettings,
        dialect: &Dialect,
    ) -> Result<FewShot, DialectError> {
        if self.is_empty() || settings.few_shot == 0 {
            return Ok(FewShot::default());
        }
        let listed = self.listed(settings);
        few_shot(&settings.examples, &listed, dialect, settings.few_shot)
    }

    fn listed(&self, settings: &ModelSettings) -> Vec<&ToolSpec> {
        let is_listed = |tool: &&ToolSpec| self.is_listed(&tool.name, settings);
        self.iter().filter(is_listed).collect()
    }

    /// Returns whether the prompt lists this tool.
    pub(crate) fn is_listed(&self, name: &str, settings: &ModelSettings) -> bool {
        settings.prompt_budget.lists(self.original(name)) && !self.deferred.contains(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tools.iter().len() == 0
    }

    /// Returns whether any tool is `strict`.
    pub(crate) fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Returns the definitions that were loosened or dropped.
    pub fn changed(&self) -> &[ChangedTool] {
        &self.changed
    }

    /// Returns why a tool was dropped.
    fn why_dropped(&self, name: &str) -> Option<&SpecError> {
        let mut dropped = self.changed.iter().filter(|one| one.is_dropped);
        let dropped = dropped.find(|one| one.name.as_deref() == Some(name));
        dropped.map(|one| &one.reason)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter()
    }

    /// Returns the tool with this name.
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.get(self.alias(name))
    }

    /// Returns the model's name of a tool.
    pub(crate) fn alias<'n>(&'n self, name: &'n str) -> &'n str {
        let mut aliases = self.aliases.iter();
        let found = aliases.find(|(original, _)| original == name);
        found.map_or(name, |(_, alias)| alias)
    }

    /// Returns the client's name of a tool.
    pub(crate) fn original<'n>(&'n self, name: &'n str) -> &'n str {
        let mut aliases = self.aliases.iter();
        let found = aliases.find(|(_, alias)| alias == name);
        found.map_or(name, |(original, _)| original)
    }

    /// Returns whether the request has a tool with this name, also if its calls cannot be written as text.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let mut changed = self.changed.iter();
        self.get(name).is_some() || changed.any(|one| one.name.as_deref() == Some(name))
    }

    pub(crate) fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        self.tools.find(self.alias(name))
    }
}

/// Returns the options with which tools are listed.
pub(crate) fn list_options(settings: &ModelSettings) -> PromptOptions {
    let options = PromptOptions::new().without_dependencies();
    match settings.prompt_budget.description_length {
        Some(length) => options.description_length(length),
        None => options,
    }
}

/// Sets the parameter for the body of a tool's emoji calls, if its definition names one.
fn set_body(tool: &mut ToolSpec, given: &[Json<'_>]) {
    let with_key = given.iter().filter(|json| json.text().contains(BODY_KEY));
    for json in with_key {
        let Ok(definition) = json.read::<Value>() else {
            continue;
        };
        if definition["name"] == *tool.name
            && let Some(body) = definition[BODY_KEY].as_str()
            && tool.get(body).is_some()
        {
            tool.body = Some(body.to_owned());
        }
    }
}

/// Replaces the characters of names that only the markers of calls exclude: colons and blanks. Returns the definitions, and the
/// names with their replacements.
fn with_aliases(given: Vec<Json<'_>>) -> (Vec<Json<'_>>, Vec<(String, String)>) {
    let name_of = |json: &Json<'_>| {
        let tool = json.read::<Tool<'_>>().ok()?;
        Some(tool.function?.name?.into_owned())
    };
    let is_odd = |name: &String| name.contains([':', ' ', '\t']);
    let names: Vec<Option<String>> = given.iter().map(name_of).collect();
    let mut taken: HashSet<String> = names.iter().flatten().cloned().collect();
    let mut aliases: Vec<(String, String)> = Vec::new();
    if !taken.iter().any(is_odd) {
        return (given, aliases);
    }
    let renamed = given.into_iter().zip(names).map(|(json, name)| {
        let Some(name) = name.filter(is_odd) else {
            return json;
        };
        let known = aliases.iter().find(|(original, _)| *original == name);
        let alias = known.map(|(_, alias)| alias.clone()).or_else(|| {
            let mut alias = name.replace([':', ' ', '\t'], "_");
            ToolSpec::new(&*alias).check().ok()?;
            while !taken.insert(alias.clone()) {
                alias.push('_');
            }
            aliases.push((name, alias.clone()));
            Some(alias)
        });
        let definition = json.read::<Value>().ok();
        match (definition, alias) {
            (Some(mut definition), Some(alias)) => {
                definition["function"]["name"] = alias.into();
                Json::new(&definition)
            }
            _ => json,
        }
    });
    let renamed = renamed.collect();
    (renamed, aliases)
}

/// Returns the names of the deferred tools.
fn deferred(given: &[Json<'_>]) -> HashSet<String> {
    let marked = given
        .iter()
        .filter(|json| json.text().contains(DEFER_LOADING));
    let marked = marked.filter_map(|json| json.read::<Tool<'_>>().ok());
    let is_deferred = |tool: &Tool<'_>| {
        let field = tool.unknown.get(DEFER_LOADING);
        field.is_some_and(|field| field.text() == "true")
    };
    let functions = marked.filter(is_deferred).filter_map(|tool| tool.function);
    let names = functions.filter_map(|function| function.name);
    names.map(Cow::into_owned).collect()
}

fn too_much(limit: &str) -> GatewayError {
    let message = format!("`tools` exceeds {limit}; offer only the tools that this turn may need");
    GatewayError::invalid_request(message, Some("tools"))
}

impl Choice {
    /// Reads `tool_choice`.
    pub(crate) fn read(
        request: &ChatCompletionRequest<'_>,
        offer: &OfferedTools,
    ) -> Result<Self, GatewayError> {
        let invalid =
            |message: String| Err(GatewayError::invalid_request(message, Some("tool_choice")));
        let choose = request.tool_choice.as_ref().map(|choice| choice.choose());
        let choice = match choose {
            None | Some(Choose::Auto) => Self::Auto,
            Some(Choose::None) => Self::None,
            Some(Choose::Required) => Self::Required,
            Some(Choose::Named(name)) => Self::Only {
                names: vec![offer.alias(name).to_owned()],
                is_required: true,
            },
            Some(Choose::Allowed { names, is_required }) if names.is_empty() => {
                if is_required {
                    return invalid("`tool_choice` requires a call but allows no tool".to_owned());
                }
                Self::None
            }
            Some(Choose::Allowed { names, is_required }) => Self::Only {
                names: names
                    .iter()
                    .map(|name| offer.alias(name).to_owned())
                    .collect(),
                is_required,
            },
            Some(Choose::Other) => {
                return invalid(
                    "invalid `tool_choice`; it must be `none`, `auto`, `required` or a function"
                        .to_owned(),
                );
            }
        };
        if let Self::Only { names, .. } = &choice
            && let Some(name) = names.iter().find(|name| offer.get(name).is_none())
        {
            return invalid(match offer.why_dropped(name) {
                Some(reason) => {
                    format!(
                        "`tool_choice` names the tool `{name}`, which cannot be offered: {reason}"
                    )
                }
                None => format!(
                    "`tool_choice` names the unknown tool `{name}`; it must be one of `tools`"
                ),
            });
        }
        if choice.is_required() && offer.is_empty() {
            return invalid(match offer.changed.first() {
                Some(dropped) => format!(
                    "`tool_choice` requires a call, but none of `tools` can be offered: {}",
                    dropped.reason
                ),
                None => "`tool_choice` requires a call, but there are no `tools`".to_owned(),
            });
        }
        if offer.is_empty() {
            return Ok(Self::None);
        }
        Ok(choice)
    }

    /// Returns whether a reply must contain a call.
    pub(crate) fn is_required(&self) -> bool {
        match self {
            Self::Auto | Self::None => false,
            Self::Required => true,
            Self::Only { is_required, .. } => *is_required,
        }
    }

    /// Returns whether a tool may be called.
    pub(crate) fn allows(&self, name: &str) -> bool {
        match self {
            Self::Auto | Self::Required => true,
            Self::None => false,
            Self::Only { names, .. } => names.iter().any(|one| one == name),
        }
    }
}
