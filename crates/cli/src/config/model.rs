//! The model that a configuration asks for.

use std::path::Path;
use std::sync::Arc;

use plaincall::call::nearest_name;
use plaincall_agent::http::{HttpSettings, Proxy};
use plaincall_agent::model::{Anthropic, Json, Key, Model, OpenAi, Replay};
use plaincall_syntax::Dialect;

use crate::config::check::dialect;
use crate::config::contents::{FilePath, Kind, ModelEntry};
use crate::config::options::GIVEN;
use crate::config::{Configuration, From, MODEL_KEY, layer};
use crate::environment::Environment;
use crate::serve::REPLAY;
use crate::serve::source::Source;
use crate::status::Failure;
use crate::tools_file;

/// The servers that the usual keys of the environment are for.
const USUAL_KEYS: [(&str, &str); 2] = [
    ("api.openai.com", "OPENAI_API_KEY"),
    ("api.anthropic.com", "ANTHROPIC_API_KEY"),
];

/// A model that somebody has chosen.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// What it was called.
    pub(crate) name: String,
    pub(crate) entry: ModelEntry,
}

/// A model that can be asked, and how it is taught.
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) dialect: Dialect,
    pub(crate) is_keyed: bool,
}

/// How the names of models begin, and the provider that has them; the first that fits counts.
const FAMILIES: [(&str, &str); 21] = [
    ("claude", "anthropic"),
    ("gpt-oss", "ollama"),
    ("gpt-", "openai"),
    ("chatgpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("codellama", "ollama"),
    ("command-r", "ollama"),
    ("deepseek", "ollama"),
    ("devstral", "ollama"),
    ("gemma", "ollama"),
    ("granite", "ollama"),
    ("llama", "ollama"),
    ("mistral", "ollama"),
    ("mixtral", "ollama"),
    ("olmo", "ollama"),
    ("phi", "ollama"),
    ("qwen", "ollama"),
    ("qwq", "ollama"),
    ("smollm", "ollama"),
];

/// The name of a model with the provider that was probably meant, if one is near.
fn with_provider(name: &str) -> Option<String> {
    if let Some((provider, id)) = name.split_once(':')
        && !id.is_empty()
        && let Some(near) = nearest_name(provider, ["ollama", "openai", "anthropic", "replay"])
    {
        return Some(format!("{near}:{id}"));
    }
    let small = name.to_ascii_lowercase();
    let mut families = FAMILIES.iter();
    let (_, provider) = families.find(|(family, _)| small.starts_with(family))?;
    Some(format!("{provider}:{name}"))
}

impl Configuration {
    /// The model of this name, or the one that is asked if none is named.
    ///
    /// # Errors
    /// There is none of this name, or none is named.
    pub(crate) fn chosen(&self, name: Option<&str>) -> Result<Chosen, Failure> {
        let Some(name) = name.or(self.contents.model.as_deref()) else {
            return Err(self.no_model());
        };
        let entry = if let Some(entry) = self.contents.models.get(name) {
            entry.clone()
        } else if let Some((scheme, id)) = name.split_once(':') {
            let entry = |url: &str, kind| ModelEntry {
                url: Some(url.to_owned()),
                kind,
                model: Some(id.to_owned()),
                ..ModelEntry::default()
            };
            match scheme {
                _ if id.is_empty() => return Err(self.unknown_model(name)),
                "ollama" => entry("http://localhost:11434/v1", Kind::OpenAi),
                "openai" => entry("https://api.openai.com/v1", Kind::OpenAi),
                "anthropic" => entry("https://api.anthropic.com/v1", Kind::Anthropic),
                "replay" => ModelEntry {
                    replay: Some(FilePath(id.into())),
                    ..ModelEntry::default()
                },
                _ => return Err(self.unknown_model(name)),
            }
        } else {
            return Err(self.unknown_model(name));
        };
        Ok(Chosen {
            name: name.to_owned(),
            entry,
        })
    }

    /// The names of the models that have a table.
    pub(crate) fn model_names(&self) -> impl Iterator<Item = &str> {
        self.contents.models.keys().map(String::as_str)
    }

    fn no_model(&self) -> Failure {
        let own = match &self.user_file {
            Some(file) => format!("`model` in {}", file.display()),
            None => "`model` in a configuration file".to_owned(),
        };
        let names: Vec<&str> = self.model_names().collect();
        let names = match names.as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        Failure::Configuration(format!(
            "no model is set: use `--model NAME`{names}, such as `--model ollama:qwen3` or `--model {REPLAY}FILE`, or set {own}"
        ))
    }

    fn unknown_model(&self, name: &str) -> Failure {
        let near = match nearest_name(name, self.model_names()) {
            Some(near) => Some(near.to_owned()),
            None if Path::new(name).is_file() => Some(format!("{REPLAY}{name}")),
            None => with_provider(name),
        };
        let near = near.map(|near| format!("; did you mean `{near}`?"));
        Failure::Configuration(format!(
            "there is no model `{name}`; a model has a table `[models.NAME]`, or is one of `ollama:ID`, `openai:ID`, `anthropic:ID` and `{REPLAY}FILE`, or is named with `--url`{}",
            near.unwrap_or_default()
        ))
    }

    /// Makes the model ready to be asked. Nothing is sent yet.
    ///
    /// # Errors
    /// Its key is not there, its recorded replies cannot be read, its address is none.
    pub(crate) fn model(
        &self,
        chosen: &Chosen,
        environment: &Environment,
    ) -> Result<Ready, Failure> {
        let entry = &chosen.entry;
        // What is named with options has no name of its own.
        let name = match (&entry.model, &entry.url) {
            (Some(id), Some(url)) if chosen.name == GIVEN => {
                format!("{id} at {}", without_secrets(url))
            }
            (None, Some(url)) if chosen.name == GIVEN => without_secrets(url),
            _ => chosen.name.clone(),
        };
        let ready = |model| Ready {
            name: name.clone(),
            model,
            dialect: dialect(entry),
            is_keyed: entry.keyed,
        };
        if let Some(file) = &entry.replay {
            let (name, text) = tools_file::read(file)?;
            let replay = Replay::read(&text)
                .map_err(|error| Failure::Configuration(format!("{name}: {error}")))?;
            return Ok(ready(Arc::new(replay)));
        }
        let url = entry.url.clone().unwrap_or_default();
        let id = entry.model.clone().unwrap_or_else(|| chosen.name.clone());
        let key = self.key(chosen, &url, environment)?.map(Key::new);
        let extra = entry
            .extra
            .iter()
            .map(|(name, value)| (name.clone(), Json::new(value)));
        let wrong = |error: plaincall_agent::model::ModelError| {
            Failure::Configuration(format!("the model `{}`: {error}", chosen.name))
        };
        // The clients of both APIs are told the same.
        macro_rules! told {
            ($client:expr) => {{
                let mut model = $client.http(http(environment));
                if let Some(key) = key {
                    model = model.key(key);
                }
                if let Some(temperature) = entry.temperature {
                    model = model.temperature(temperature);
                }
                if let Some(tokens) = entry.max_tokens {
                    model = model.max_tokens(tokens);
                }
                for (name, value) in extra {
                    model = model.field(name, value);
                }
                model.check().map_err(wrong)?;
                Arc::new(model)
            }};
        }
        let model: Arc<dyn Model> = match entry.kind {
            Kind::OpenAi => told!(OpenAi::new(url, id)),
            Kind::Anthropic => told!(Anthropic::at(url, id)),
        };
        Ok(ready(model))
    }

    /// The key of a model: the one that is named for it, or the usual one for the server that it is for.
    fn key(
        &self,
        chosen: &Chosen,
        url: &str,
        environment: &Environment,
    ) -> Result<Option<String>, Failure> {
        let entry = &chosen.entry;
        let word = |source: Option<Source>| source.map(|source| source.word("key")).transpose();
        if let Some(file) = &entry.key_file {
            return word(Source::of(Some(file), "", environment)?);
        }
        if let Some(variable) = &entry.key_env {
            let key = word(Source::of(None, variable, environment)?)?;
            return key.map(Some).ok_or_else(|| {
                Failure::Configuration(format!(
                    "the key of the model `{}` is to come from the variable {variable}, which is not set",
                    chosen.name
                ))
            });
        }
        // A file that has a table of this name has not been told this key.
        let given = layer::below("models", GIVEN);
        if chosen.name == GIVEN
            && self.origin(&given).from == From::Options
            && let Some(key) = word(Source::of(None, MODEL_KEY, environment)?)?
        {
            return Ok(Some(key));
        }
        let host = secure_host(url);
        let usual = USUAL_KEYS.iter().find(|(known, _)| host == Some(known));
        let Some((host, variable)) = usual else {
            return Ok(None);
        };
        let key = word(Source::of(None, variable, environment)?)?;
        key.map(Some).ok_or_else(|| {
            Failure::Configuration(format!(
                "{host} wants a key: set the variable {variable}, or name another source with `key_env` or `key_file` in the table of the model"
            ))
        })
    }
}

/// How connections are made: through the proxies that the environment names.
pub(crate) fn http(environment: &Environment) -> HttpSettings {
    let named = |names: [&str; 2]| {
        let value = names.into_iter().find_map(|name| environment.get(name));
        value.and_then(|value| value.to_str()).map(str::to_owned)
    };
    let mut proxy = Proxy::default();
    // The name in capitals can be set by whoever sends a request to a program behind a web server.
    proxy.http = named(["http_proxy", "http_proxy"]);
    proxy.https = named(["https_proxy", "HTTPS_PROXY"]);
    proxy.except = named(["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let mut settings = HttpSettings::default();
    settings.proxy = Some(proxy);
    settings
}

/// The host of an address that is reached over a connection that nobody else can read.
fn secure_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    if authority.contains('@') {
        return None;
    }
    Some(authority.strip_suffix(":443").unwrap_or(authority))
}

/// An address as it may be shown: behind a question mark may stand a key.
fn without_secrets(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{secure_host, with_provider};

    #[test]
    fn where_usual_keys_go() {
        for (url, expected) in [
            ("https://api.openai.com/v1", Some("api.openai.com")),
            ("https://api.openai.com:443/v1", Some("api.openai.com")),
            ("http://api.openai.com/v1", None),
            ("https://api.openai.com@evil.example/v1", None),
            ("https://evil.example/api.openai.com", Some("evil.example")),
            (
                "https://evil.example\\@api.openai.com",
                Some("evil.example"),
            ),
            (
                "https://api.openai.com.evil.example",
                Some("api.openai.com.evil.example"),
            ),
            (
                "https://api.openai.com:8443/v1",
                Some("api.openai.com:8443"),
            ),
        ] {
            assert_eq!(secure_host(url), expected, "{url}");
        }
    }

    #[test]
    fn the_provider_that_was_meant() {
        for (name, expected) in [
            ("qwen3", Some("ollama:qwen3")),
            ("qwen3:8b", Some("ollama:qwen3:8b")),
            ("Llama3.2", Some("ollama:Llama3.2")),
            ("gpt-oss:20b", Some("ollama:gpt-oss:20b")),
            ("gpt-5", Some("openai:gpt-5")),
            ("o3-mini", Some("openai:o3-mini")),
            ("claude-sonnet-4-5", Some("anthropic:claude-sonnet-4-5")),
            ("olama:qwen3", Some("ollama:qwen3")),
            (
                "antropic:claude-sonnet-4-5",
                Some("anthropic:claude-sonnet-4-5"),
            ),
            ("opneai:gpt-5", Some("openai:gpt-5")),
            ("gemini-2.5-pro", None),
            ("mymodel", None),
            ("azure:gpt", None),
            ("ollama:", None),
            ("meta-llama/Llama-3", None),
            ("", None),
        ] {
            assert_eq!(with_provider(name).as_deref(), expected, "{name}");
        }
    }
}
