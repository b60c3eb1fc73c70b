//! Selection of a model, and its client.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use plaincall::Dialect;
use plaincall::names::nearest_name;
use plaincall_agent::http::{HttpSettings, Proxy};
use plaincall_agent::model::{ConfiguredClient, Key, Model as Client, OpenAi, Replay};
use plaincall_config::secret::Address;
use plaincall_config::settings::{FilePath, KeySource, Model};

use crate::environment::Environment;
use crate::keys::{self, Source};
use crate::settings::Configuration;
use crate::status::Failure;
use crate::tools_file;

/// The environment variable with the key for `--url`.
pub(super) const KEY: &str = "PLAINCALL_KEY";

/// A selected model.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// The name in the configuration, or the model id for `--url`.
    pub(crate) name: String,
    pub(crate) entry: Model,
    /// Whether the options set its URL.
    pub(crate) is_from_options: bool,
}

/// A model that is ready for requests.
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) model: Arc<dyn Client>,
    /// The same client, if its server may accept a grammar.
    pub(crate) grammar_client: Option<OpenAi>,
    pub(crate) dialect: Dialect,
    pub(crate) is_keyed: bool,
}

impl Configuration {
    /// Returns the model called `name`, or the default model.
    pub(crate) fn chosen(&self, name: Option<&str>) -> Result<Chosen, Failure> {
        let name = name.or(self.settings.model.as_deref());
        let name = name.ok_or_else(|| self.no_model())?.to_owned();
        let entry = self.named(&name).or_else(|| self.settings.table_of(&name));
        Ok(Chosen {
            entry: entry.ok_or_else(|| self.unknown_model(&name))?,
            name,
            is_from_options: false,
        })
    }

    /// Returns the model for a name without a table. `ollama:ID` is on the server in `OLLAMA_HOST`, if it is set.
    pub(crate) fn named(&self, name: &str) -> Option<Model> {
        let mut model = Model::named(name)?;
        if let Some(url) = self.ollama.as_ref().filter(|_| name.starts_with("ollama:")) {
            model.url = Some(Address(url.clone()));
        }
        Some(model)
    }

    /// Returns the names of the models in the configuration.
    pub(crate) fn model_names(&self) -> impl Iterator<Item = &str> {
        self.settings.models.keys().map(String::as_str)
    }

    fn no_model(&self) -> Failure {
        let file = self
            .user_file
            .as_ref()
            .map(|file| file.display().to_string());
        let file = file.as_deref().unwrap_or("a configuration file");
        let mut names = self.model_names().collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            names = format!(" ({names})");
        }
        Failure::Configuration(format!(
            "no model is set; use `--model NAME`{names}, such as `--model ollama:qwen3` or `--model replay:FILE`, or set `model` in {file}"
        ))
    }

    fn unknown_model(&self, name: &str) -> Failure {
        let near = match nearest_name(name, self.model_names()) {
            Some(near) => Some(near.to_owned()),
            None if Path::new(name).is_file() => Some(format!("replay:{name}")),
            None => Model::with_provider(name),
        };
        let advice = near.map_or(
            "`plaincall models` lists what is available".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Failure::Configuration(format!(
            "unknown model `{name}`; use the name of a `[models.NAME]` table, `ollama:ID`, `openai:ID`, `anthropic:ID` or `replay:FILE`; {advice}"
        ))
    }
}

impl Chosen {
    pub(crate) fn from_options(url: &str, model: Option<&str>) -> Self {
        let entry = Model {
            url: Some(Address(url.to_owned())),
            ..Model::default()
        };
        Self {
            name: model.unwrap_or_default().to_owned(),
            entry,
            is_from_options: true,
        }
    }

    /// Returns the id of the model on its server.
    pub(crate) fn id(&self) -> &str {
        self.entry.model.as_deref().unwrap_or(&self.name)
    }

    /// Returns the variable of the key for `--url`, if this model uses it.
    pub(crate) fn url_key(&self, environment: &Environment) -> Option<&'static str> {
        (self.is_from_options && environment.get_set(KEY).is_some()).then_some(KEY)
    }

    /// Returns the settings, with the measured ones of the model where nothing is set.
    pub(crate) fn measured(&self) -> Model {
        self.entry.clone().or_measured(self.id())
    }

    /// Creates the client of the model. Sends no request.
    pub(crate) fn ready(&self, environment: &Environment) -> Result<Ready, Failure> {
        let Self {
            name,
            entry,
            is_from_options,
        } = self;
        let ready = |name: String, model, grammar_client| Ready {
            name,
            model,
            grammar_client,
            dialect: entry.conversation(),
            is_keyed: entry.keyed == Some(true),
        };
        if let Some(FilePath(file)) = &entry.replay {
            let (file, text) = tools_file::read(file)?;
            let replay = Replay::read(&text)
                .map_err(|error| Failure::Configuration(format!("{file}: {error}")))?;
            return Ok(ready(name.clone(), Arc::new(replay), None));
        }
        // The query may contain a key.
        let url = entry.url.as_ref().map_or("", |Address(url)| url);
        let address = url.split(['?', '#']).next().unwrap_or_default();
        let mut shown = name.clone();
        if *is_from_options {
            shown = format!("{name} at {address}");
        }
        let mut table = entry.clone();
        table.headers = self.headers(environment)?;
        let key = self.key(environment)?.map(Key::new);
        let client = ConfiguredClient::new(&table, name, key, &http(environment));
        let client = client
            .map_err(|error| Failure::Configuration(format!("the model `{name}`: {error}")))?;
        let grammar_client = match &client {
            ConfiguredClient::OpenAi(client) => Some(client.clone()),
            _ => None,
        };
        Ok(ready(shown, client.into_model(), grammar_client))
    }

    /// Returns the headers with the values of the variables in them.
    fn headers(&self, environment: &Environment) -> Result<BTreeMap<String, String>, Failure> {
        let mut entry = self.entry.clone();
        let variable = |name: &str| environment.get_set(name)?.to_str().map(str::to_owned);
        entry.expand_headers(&variable).map_err(|problems| {
            let problems = problems.into_iter();
            let problems =
                problems.map(|(header, message)| format!("`headers.{header}`: {message}"));
            let problems: Vec<String> = problems.collect();
            Failure::Configuration(format!(
                "the model `{}`: {}",
                self.name,
                problems.join("; ")
            ))
        })?;
        Ok(entry.headers)
    }

    /// Returns the key of the model: from its settings, or from the usual variable for its server.
    pub(crate) fn key(&self, environment: &Environment) -> Result<Option<String>, Failure> {
        if self.is_from_options
            && let Some(source) = Source::of(None, KEY, environment)?
        {
            return source.value("key").map(Some);
        }
        if let Some(key) = keys::of_model(&self.entry, environment)? {
            return Ok(Some(key));
        }
        let missing = match self.entry.key() {
            None | Some(KeySource::File(_)) => return Ok(None),
            Some(KeySource::Variable(variable)) => {
                let model = format!("the key of the model `{}`", self.name);
                format!("{model} is missing; set the variable {variable}")
            }
            Some(KeySource::Usual(host, variable)) => format!(
                "{host} requires a key; set the variable {variable}, or `key_env` or `key_file` in the table of the model"
            ),
        };
        Err(Failure::Configuration(missing))
    }
}

/// Returns the HTTP settings, with the proxies from the environment.
pub(crate) fn http(environment: &Environment) -> HttpSettings {
    let variable_of = |names: &[&str]| {
        let value = names.iter().find_map(|name| environment.get(name));
        value.and_then(|value| value.to_str()).map(str::to_owned)
    };
    let mut proxy = Proxy::default();
    // `HTTP_PROXY` is ignored: in CGI programs, the client sets it with a `Proxy` header.
    proxy.http = variable_of(&["http_proxy"]);
    proxy.https = variable_of(&["https_proxy", "HTTPS_PROXY"]);
    proxy.except = variable_of(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let mut settings = HttpSettings::default();
    settings.proxy = Some(proxy);
    settings
}
