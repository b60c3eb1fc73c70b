//! The model that is measured.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::{Model as Client, ModelErrorKind, OpenAi};
use plaincall_config::Node;
use plaincall_config::settings::{Api, Model};
use plaincall_grammar::{Constrain, Engine};
use plaincall_probe::{Reference, Settings};
use serde_json::Value;

use crate::environment::Environment;
use crate::options::FileOptions;
use crate::settings::{Chosen, Configuration, Ready};
use crate::status::Failure;

/// The prefix of a reference model's name.
const REFERENCE: &str = "reference:";

/// The options about the model.
pub(super) struct Given<'g> {
    pub(super) address: Option<&'g str>,
    pub(super) model: Option<&'g str>,
    /// The most tokens of a reply, if the configuration sets no other limit.
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
    /// The client of a server that may accept a grammar.
    pub(super) grammar_client: Option<OpenAi>,
    /// The engine that constrains the arms with a grammar.
    pub(super) engine: Option<Engine>,
    /// The most tokens of a reply.
    pub(super) max_tokens: Option<NonZeroU32>,
    /// The seed of the first repetition.
    pub(super) seed: Option<u64>,
}

impl Subject {
    pub(super) fn new(given: &Given<'_>, environment: &Environment) -> Result<Self, Failure> {
        if let Some(name) = given.address.and_then(|name| name.strip_prefix(REFERENCE)) {
            return Self::reference(name);
        }
        let is_url =
            |address: &&str| address.starts_with("http://") || address.starts_with("https://");
        let (mut chosen, table) = if let Some(url) = given.address.filter(is_url) {
            let model = given.model.ok_or_else(|| {
                Failure::Usage(
                    "a URL requires the id of the model: `plaincall probe URL MODEL`".to_owned(),
                )
            })?;
            (Chosen::from_options(url, Some(model)), None)
        } else {
            let configuration =
                Configuration::load(given.files, Node::default(), false, environment)?;
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
        let (id, api) = match (&chosen.entry.replay, chosen.entry.kind) {
            (Some(_), _) => ("replay".to_owned(), "replay"),
            (None, Some(Api::Anthropic)) => (chosen.id().to_owned(), "anthropic"),
            (None, _) => (chosen.id().to_owned(), "openai"),
        };
        // The limit of the comparison does not belong to the model.
        let own = chosen.entry.max_tokens;
        let max_tokens = own.or(given.max_tokens);
        chosen.entry.max_tokens = max_tokens;
        // Each repetition has a seed of its own.
        let extra = chosen.entry.extra.clone();
        let seed = extra.get("seed").and_then(Value::as_u64);
        if seed.is_some() {
            chosen.entry.extra.remove("seed");
        }
        let Ready {
            model,
            grammar_client,
            ..
        } = chosen.ready(environment)?;
        chosen.entry.max_tokens = own;
        chosen.entry.extra = extra;
        if let Some(variable) = chosen.url_key(environment) {
            chosen.entry.key_env = Some(variable.to_owned());
        }
        Ok(Self {
            model,
            id,
            table,
            entry: chosen.entry,
            api,
            grammar_client,
            engine: None,
            max_tokens,
            seed,
        })
    }

    /// Returns whether it is a scripted model, which a configuration cannot select.
    pub(super) fn is_reference(&self) -> bool {
        self.api == "reference"
    }

    /// Lets the model constrain replies with a grammar. Returns why it cannot.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached.
    pub(super) async fn accept_grammars(&mut self) -> Result<Option<String>, Failure> {
        if self.model.constrains() != Constrain::Never && self.is_reference() {
            return Ok(None);
        }
        let because = |reason: &str| Ok(Some(reason.to_owned()));
        let Some(client) = self.grammar_client.take() else {
            return because("only servers with the API `openai` accept grammars");
        };
        // Another setting is for conversations.
        let constrain = Constrain::from(self.entry.constrain.unwrap_or_default());
        let client = match constrain {
            Constrain::For(_) => client,
            _ => client.constrain(Constrain::Always),
        };
        if client.constrains() == Constrain::Never {
            return because("a request field in `extra` constrains the replies already");
        }
        let engine = match client.engine().await {
            Ok(engine) => engine,
            Err(error) => {
                use ModelErrorKind::{Connect, NotRunning};
                if matches!(error.kind, Connect | NotRunning) {
                    return Err(Failure::Runtime(error.message));
                }
                return Ok(Some(error.message));
            }
        };
        let Some(engine) = engine else {
            return because(
                "the server's list of models names no engine that accepts a grammar; if it is one, set `constrain` in the table of the model to its name",
            );
        };
        self.model = Arc::new(client.constrain(Constrain::For(engine)));
        self.engine = Some(engine);
        Ok(None)
    }

    fn reference(name: &str) -> Result<Self, Failure> {
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
            entry: Model::default(),
            api: "reference",
            grammar_client: None,
            engine: None,
            max_tokens: None,
            seed: None,
        })
    }

    /// The settings that a result contains: no address, no key, no header and no value of a request field.
    pub(super) fn settings(&self, timeout: Duration) -> Settings {
        let mut settings = Settings::default();
        self.api.clone_into(&mut settings.api);
        settings.temperature = self.entry.temperature;
        settings.max_tokens = self.max_tokens.map(NonZeroU32::get);
        settings.seed = self.seed;
        settings.self_closing = self.entry.self_closing == Some(true);
        settings.engine = self.engine.map(|engine| engine.name().to_owned());
        settings.timeout_seconds = timeout.as_secs();
        settings.request_fields = self.entry.extra.keys().cloned().collect();
        settings
    }
}
