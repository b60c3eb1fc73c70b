//! Model names with a provider, and the location of API keys.

use std::path::PathBuf;

use plaincall_names::nearest_name;

use super::model::{Api, Model};
use super::paths::FilePath;
use crate::secret::Address;

/// The providers whose models need no table.
pub(super) const PROVIDERS: [&str; 4] = ["ollama", "openai", "anthropic", "replay"];
/// The servers to which the keys in the standard environment variables belong.
const USUAL_KEYS: [(&str, &str); 2] = [
    ("api.openai.com", "OPENAI_API_KEY"),
    ("api.anthropic.com", "ANTHROPIC_API_KEY"),
];
/// The prefixes of model names, by provider. The first match decides.
const FAMILIES: [(&str, &str); 4] = [
    ("anthropic", "claude"),
    ("ollama", "gpt-oss"),
    ("openai", "gpt- chatgpt o1 o3 o4"),
    (
        "ollama",
        "codellama command-r deepseek devstral gemma granite llama mistral mixtral olmo phi qwen qwq smollm",
    ),
];

/// The location of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// The standard variable for a server: its host and the variable.
    Usual(&'static str, &'static str),
}

impl KeySource {
    /// Returns the name of the variable, unless the key is in a file.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::File(_) => None,
            Self::Variable(variable) => Some(variable),
            Self::Usual(_, variable) => Some(variable),
        }
    }
}

impl Model {
    /// Returns the model for a name without a table: `ollama:ID`, `openai:ID`, `anthropic:ID` or `replay:FILE`.
    pub fn named(name: &str) -> Option<Self> {
        let (provider, id) = name.split_once(':').filter(|(_, id)| !id.is_empty())?;
        let at = |url: &str, kind| Self {
            url: Some(Address(url.to_owned())),
            kind: Some(kind),
            model: Some(id.to_owned()),
            ..Self::default()
        };
        Some(match provider {
            "ollama" => at("http://localhost:11434/v1", Api::OpenAi),
            "openai" => at("https://api.openai.com/v1", Api::OpenAi),
            "anthropic" => at("https://api.anthropic.com/v1", Api::Anthropic),
            "replay" => Self {
                replay: Some(FilePath(id.into())),
                ..Self::default()
            },
            _ => return None,
        })
    }

    /// Returns the location of the key, if the model needs or has one.
    pub fn key(&self) -> Option<KeySource> {
        if let Some(FilePath(file)) = &self.key_file {
            return Some(KeySource::File(file.clone()));
        }
        if let Some(variable) = &self.key_env {
            return Some(KeySource::Variable(variable.clone()));
        }
        let host = secure_host(&self.url.as_ref()?.0)?;
        let usual = USUAL_KEYS.iter().find(|(known, _)| host == *known);
        usual.map(|(host, variable)| KeySource::Usual(host, variable))
    }

    /// Returns the name with the provider that was probably meant.
    pub fn with_provider(name: &str) -> Option<String> {
        if let Some((provider, id)) = name.split_once(':')
            && !id.is_empty()
            && let Some(near) = nearest_name(provider, PROVIDERS)
        {
            return Some(format!("{near}:{id}"));
        }
        let small = name.to_ascii_lowercase();
        let begins = |families: &str| families.split(' ').any(|family| small.starts_with(family));
        let (provider, _) = FAMILIES.iter().find(|(_, families)| begins(families))?;
        Some(format!("{provider}:{name}"))
    }
}

/// Returns the host of an HTTPS URL.
fn secure_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    if authority.contains('@') {
        return None;
    }
    Some(authority.strip_suffix(":443").unwrap_or(authority))
}
