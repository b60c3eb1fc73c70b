//! The client of a model from its table in a configuration.

use std::sync::Arc;

use plaincall_config::settings::{Api, Model as Table};
use plaincall_grammar::Constrain;
use plaincall_http::HttpSettings;
use plaincall_wire::Json;

use super::{Anthropic, Key, Model, ModelError, ModelErrorKind, OpenAi};

/// The client of a model server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConfiguredClient {
    /// For a server with the Chat Completions API.
    OpenAi(OpenAi),
    /// For a server with the Messages API.
    Anthropic(Anthropic),
}

impl ConfiguredClient {
    /// Creates the client of a model with the keys of its table; `id` is the name of a model whose table has none. The values of
    /// variables must have been set in its headers. Sends no request.
    ///
    /// # Errors
    /// Returns an error without a URL, if the settings are invalid, and if they demand a grammar from a server that has none.
    pub fn new(
        table: &Table,
        id: &str,
        key: Option<Key>,
        http: &HttpSettings,
    ) -> Result<Self, ModelError> {
        let refused = |message: &str| ModelError::new(ModelErrorKind::Refused, message);
        let Some(url) = &table.url else {
            return Err(refused(
                "its table has no `url`, the base URL of the model server, such as \"http://localhost:11434/v1\"",
            ));
        };
        let id = table.model.as_deref().unwrap_or(id);
        let constrain = Constrain::from(table.constrain.unwrap_or_default());
        // Both clients have the same settings.
        macro_rules! client {
            ($client:expr) => {{
                let mut client = $client.http(http.clone());
                if let Some(key) = key {
                    client = client.key(key);
                }
                if let Some(temperature) = table.temperature {
                    client = client.temperature(temperature);
                }
                if let Some(tokens) = table.max_tokens {
                    client = client.max_tokens(tokens.get());
                }
                for (name, value) in &table.headers {
                    client = client.header(name.clone(), value.clone());
                }
                for (name, value) in &table.extra {
                    client = client.field(name.clone(), Json::new(value));
                }
                client.check()?;
                client
            }};
        }
        match table.kind.unwrap_or_default() {
            Api::OpenAi => Ok(Self::OpenAi(client!(
                OpenAi::new(&url.0, id).constrain(constrain)
            ))),
            Api::Anthropic if constrain.is_demanded() => Err(refused(
                "`constrain` requires a server with the API `openai`; set it to `auto` or `never`",
            )),
            Api::Anthropic => Ok(Self::Anthropic(client!(Anthropic::at(&url.0, id)))),
        }
    }

    /// Returns the client as a model.
    pub fn into_model(self) -> Arc<dyn Model> {
        match self {
            Self::OpenAi(client) => Arc::new(client),
            Self::Anthropic(client) => Arc::new(client),
        }
    }
}
