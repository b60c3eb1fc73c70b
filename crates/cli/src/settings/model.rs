//! The model that is asked, and its client.

use std::path::Path;
use std::sync::Arc;

use plaincall::Dialect;
use plaincall::call::names::nearest_name;
use plaincall_agent::http::{HttpSettings, Proxy};
use plaincall_agent::model::{Anthropic, Json, Key, Model as Client, ModelError, OpenAi, Replay};
use plaincall_config::{Address, Api, FilePath, KeySource, Model};

use crate::environment::Environment;
use crate::keys::Source;
use crate::settings::Configuration;
use crate::status::Failure;
use crate::tools_file;

/// The variable with the key of a model that `--url` names.
pub(super) const KEY: &str = "PLAINCALL_KEY";

#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// The name by which it was chosen; for a model of `--url` the name that its server has for it.
    pub(crate) name: String,
    pub(crate) entry: Model,
    /// Whether options say where it is.
    pub(crate) is_given: bool,
}

/// A model that can be asked, and how it is taught.
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) model: Arc<dyn Client>,
    pub(crate) dialect: Dialect,
    pub(crate) is_keyed: bool,
}

impl Configuration {
    /// The model of this name, or the one of the configuration.
    ///
    /// # Errors
    /// There is none of this name, or none is set.
    pub(crate) fn chosen(&self, name: Option<&str>) -> Result<Chosen, Failure> {
        let name = name.or(self.settings.model.as_deref());
        let name = name.ok_or_else(|| self.no_model())?.to_owned();
        let entry = self.settings.models.get(&name).cloned();
        let entry = entry.or_else(|| Model::named(&name));
        Ok(Chosen {
            entry: entry.ok_or_else(|| self.unknown_model(&name))?,
            name,
            is_given: false,
        })
    }

    /// The names of the models that have a table.
    pub(crate) fn model_names(&self) -> impl Iterator<Item = &str> {
        self.settings.models.keys().map(String::as_str)
    }

    fn no_model(&self) -> Failure {
        let own = self
            .user_file
            .as_ref()
            .map(|file| file.display().to_string());
        let own = own.as_deref().unwrap_or("a configuration file");
        let mut names = self.model_names().collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            names = format!(" ({names})");
        }
        Failure::Configuration(format!(
            "no model is set; use `--model NAME`{names}, such as `--model ollama:qwen3` or `--model replay:FILE`, or set `model` in {own}"
        ))
    }

    fn unknown_model(&self, name: &str) -> Failure {
        let near = match nearest_name(name, self.model_names()) {
            Some(near) => Some(near.to_owned()),
            None if Path::new(name).is_file() => Some(format!("replay:{name}")),
            None => Model::with_provider(name),
        };
        let near = near.map(|near| format!("; did you mean `{near}`?"));
        Failure::Configuration(format!(
            "unknown model `{name}`; use the name of a `[models.NAME]` table, `ollama:ID`, `openai:ID`, `anthropic:ID` or `replay:FILE`, or pass `--url`{}",
            near.unwrap_or_default()
        ))
    }
}

impl Chosen {
    /// A model that is at this address.
    pub(crate) fn given(url: &str, model: Option<&str>, kind: Option<Api>) -> Self {
        let entry = Model {
            url: Some(Address(url.to_owned())),
            kind,
            ..Model::default()
        };
        Self {
            name: model.unwrap_or_default().to_owned(),
            entry,
            is_given: true,
        }
    }

    /// The client of the model. Nothing is sent yet.
    ///
    /// # Errors
    /// Its key is not there, its recorded replies cannot be read, its address is none.
    pub(crate) fn ready(&self, environment: &Environment) -> Result<Ready, Failure> {
        let Self {
            name,
            entry,
            is_given,
        } = self;
        let ready = |name: String, model| Ready {
            name,
            model,
            dialect: entry.conversation(),
            is_keyed: entry.keyed == Some(true),
        };
        if let Some(FilePath(file)) = &entry.replay {
            let (file, text) = tools_file::read(file)?;
            let replay = Replay::read(&text)
                .map_err(|error| Failure::Configuration(format!("{file}: {error}")))?;
            return Ok(ready(name.clone(), Arc::new(replay)));
        }
        let url = entry
            .url
            .as_ref()
            .map_or(String::new(), |url| url.0.clone());
        // What is behind a question mark may be a key.
        let address = url.split(['?', '#']).next().unwrap_or_default();
        let mut shown = name.clone();
        if *is_given {
            shown = format!("{name} at {address}");
        }
        let id = entry.model.clone().unwrap_or_else(|| name.clone());
        let key = self.key(environment)?.map(Key::new);
        let wrong =
            |error: ModelError| Failure::Configuration(format!("the model `{name}`: {error}"));
        // The clients of both APIs have the same settings.
        macro_rules! client {
            ($client:expr) => {{
                let mut client = $client.http(http(environment));
                if let Some(key) = key {
                    client = client.key(key);
                }
                if let Some(temperature) = entry.temperature {
                    client = client.temperature(temperature);
                }
                if let Some(tokens) = entry.max_tokens {
                    client = client.max_tokens(tokens.get());
                }
                for (name, value) in &entry.extra {
                    client = client.field(name.clone(), Json::new(value));
                }
                client.check().map_err(wrong)?;
                Arc::new(client)
            }};
        }
        let client: Arc<dyn Client> = match entry.kind.unwrap_or_default() {
            Api::OpenAi => client!(OpenAi::new(url, id)),
            Api::Anthropic => client!(Anthropic::at(url, id)),
        };
        Ok(ready(shown, client))
    }

    /// The key of the model: the one that is named for it, or the usual one for its server.
    fn key(&self, environment: &Environment) -> Result<Option<String>, Failure> {
        let word = |file: Option<&Path>, variable: &str| {
            let source = Source::of(file, variable, environment)?;
            source.map(|source| source.word("key")).transpose()
        };
        if self.is_given
            && let Some(key) = word(None, KEY)?
        {
            return Ok(Some(key));
        }
        let (variable, missing) = match self.entry.key() {
            None => return Ok(None),
            Some(KeySource::File(file)) => return word(Some(&file), ""),
            Some(KeySource::Variable(variable)) => {
                let model = format!("the key of the model `{}`", self.name);
                let missing = format!("{model} is missing; set the variable {variable}");
                (variable, missing)
            }
            Some(KeySource::Usual(host, variable)) => {
                let missing = format!(
                    "{host} requires a key; set the variable {variable}, or `key_env` or `key_file` in the table of the model"
                );
                (variable.to_owned(), missing)
            }
        };
        let key = word(None, &variable)?;
        key.map(Some).ok_or(Failure::Configuration(missing))
    }
}

/// How connections are made: through the proxies that the environment names.
pub(super) fn http(environment: &Environment) -> HttpSettings {
    let named = |names: &[&str]| {
        let value = names.iter().find_map(|name| environment.get(name));
        value.and_then(|value| value.to_str()).map(str::to_owned)
    };
    let mut proxy = Proxy::default();
    // Not in capitals: behind a web server, the sender of a request can set that variable.
    proxy.http = named(&["http_proxy"]);
    proxy.https = named(&["https_proxy", "HTTPS_PROXY"]);
    proxy.except = named(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let mut settings = HttpSettings::default();
    settings.proxy = Some(proxy);
    settings
}
