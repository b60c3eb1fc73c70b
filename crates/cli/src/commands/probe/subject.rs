//! The model that is measured.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::Model as Client;
use plaincall_config::Node;
use plaincall_config::settings::{Api, Model};
use plaincall_probe::{Reference, Settings};

use crate::environment::Environment;
use crate::options::FileOptions;
use crate::settings::{Chosen, Configuration};
use crate::status::Failure;

/// The prefix of a reference model's name.
const REFERENCE: &str = "reference:";

/// The options about the model.
pub(super) struct Given<'g> {
    pub(super) address: Option<&'g str>,
    pub(super) model: Option<&'g str>,
    pub(super) kind: Option<Api>,
    pub(super) self_closing: Option<bool>,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<NonZeroU32>,
    pub(super) files: &'g FileOptions,
}

/// The model that is measured.
pub(super) struct Subject {
    pub(super) model: Arc<dyn Client>,
    /// Its name on the server.
    pub(super) id: String,
    /// The name and the contents of its table, if it has one.
    pub(super) table: Option<(String, Model)>,
    pub(super) entry: Model,
    pub(super) api: &'static str,
}

impl Subject {
    pub(super) fn new(given: &Given<'_>, environment: &Environment) -> Result<Self, Failure> {
        if let Some(name) = given.address.and_then(|name| name.strip_prefix(REFERENCE)) {
            return Self::reference(name, given.self_closing);
        }
        let is_url =
            |address: &&str| address.starts_with("http://") || address.starts_with("https://");
        let (mut chosen, table) = if let Some(url) = given.address.filter(is_url) {
            let model = given.model.ok_or_else(|| {
                Failure::Usage(
                    "a URL requires the id of the model: `plaincall probe URL MODEL`".to_owned(),
                )
            })?;
            (Chosen::from_options(url, Some(model), given.kind), None)
        } else {
            let configuration =
                Configuration::load(given.files, Node::default(), false, environment)?;
            if let Some(kind) = given.kind {
                let kind = format!("{kind:?}").to_lowercase();
                let message = format!("`--kind {kind}` requires a URL; a name determines the API");
                return Err(Failure::Usage(message));
            }
            if given.address.is_none() && configuration.settings.model.is_none() {
                let message = "missing model; pass its name or address, such as `plaincall probe ollama:qwen3`, or `plaincall probe reference:block` for a scripted model";
                return Err(Failure::Usage(message.to_owned()));
            }
            let mut chosen = configuration.chosen(given.address)?;
            let table = configuration.settings.models.get(&chosen.name).cloned();
            let table = table.map(|table| (chosen.name.clone(), table));
            if let Some(model) = given.model {
                chosen.entry.model = Some(model.to_owned());
            }
            (chosen, table)
        };
        chosen.entry.self_closing = given.self_closing.or(chosen.entry.self_closing);
        chosen.entry.temperature = given.temperature.or(chosen.entry.temperature);
        chosen.entry.max_tokens = given.max_tokens.or(chosen.entry.max_tokens);
        let (id, api) = match (&chosen.entry.replay, chosen.entry.kind) {
            (Some(_), _) => ("replay".to_owned(), "replay"),
            (None, Some(Api::Anthropic)) => (chosen.id().to_owned(), "anthropic"),
            (None, _) => (chosen.id().to_owned(), "openai"),
        };
        let model = chosen.ready(environment)?.model;
        if let Some(variable) = chosen.url_key(environment) {
            chosen.entry.key_env = Some(variable.to_owned());
        }
        Ok(Self {
            model,
            id,
            table,
            entry: chosen.entry,
            api,
        })
    }

    /// Returns whether it is a scripted model, which a configuration cannot select.
    pub(super) fn is_reference(&self) -> bool {
        self.api == "reference"
    }

    fn reference(name: &str, self_closing: Option<bool>) -> Result<Self, Failure> {
        let Some(model) = Reference::named(name) else {
            let names: Vec<String> = Reference::names()
                .map(|name| format!("`{REFERENCE}{name}`"))
                .collect();
            return Err(Failure::Usage(format!(
                "unknown reference model `{name}`; there are {}",
                names.join(", ")
            )));
        };
        Ok(Self {
            id: Client::name(&model).to_owned(),
            model: Arc::new(model),
            table: None,
            entry: Model {
                self_closing,
                ..Model::default()
            },
            api: "reference",
        })
    }

    /// The settings that a result contains: no address, no key, no header and no value of a request field.
    pub(super) fn settings(&self, seed: Option<u64>, timeout: Duration) -> Settings {
        let mut settings = Settings::default();
        self.api.clone_into(&mut settings.api);
        settings.temperature = self.entry.temperature;
        settings.max_tokens = self.entry.max_tokens.map(NonZeroU32::get);
        settings.seed = seed;
        settings.self_closing = self.entry.self_closing == Some(true);
        settings.timeout_seconds = timeout.as_secs();
        settings.request_fields = self.entry.extra.keys().cloned().collect();
        settings
    }
}
