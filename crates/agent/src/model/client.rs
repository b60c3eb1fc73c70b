//! What the clients of both APIs can be told.

use plaincall_wire::{Json, Unknown};

use super::server::Server;
use super::{ModelError, ModelErrorKind};

/// A model behind a server.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) server: Server,
    pub(super) model: String,
    pub(super) max_tokens: Option<u32>,
    fields: Vec<(String, Json<'static>)>,
    /// Fields of the request that are not for others to set.
    own_fields: &'static [&'static str],
}

impl Client {
    pub(super) fn new(server: Server, model: String, own_fields: &'static [&'static str]) -> Self {
        Self {
            server,
            model,
            max_tokens: None,
            fields: Vec::new(),
            own_fields,
        }
    }

    pub(super) fn check(&self) -> Result<(), ModelError> {
        self.server.check()?;
        for (name, _) in &self.fields {
            if self.own_fields.contains(&name.as_str()) {
                let message = format!(
                    "the field `{name}` of a request is not for settings: tools are told in the prompt, and the rest is set already"
                );
                return Err(ModelError::new(ModelErrorKind::Refused, message));
            }
        }
        Ok(())
    }

    pub(super) fn set_field(&mut self, name: String, value: Json<'static>) {
        self.fields.retain(|(known, _)| *known != name);
        self.fields.push((name, value));
    }

    /// Whether a field was set, perhaps to nothing.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| known == name)
    }

    /// Whether a field was set to something.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|(known, value)| known == name && !value.is_null())
    }

    /// Puts the fields behind the others of a request.
    pub(super) fn put_fields<'r>(&'r self, request: &mut Unknown<'r>) {
        for (name, value) in self.fields.iter().filter(|(_, value)| !value.is_null()) {
            request.set(name.as_str(), value.clone());
        }
    }
}

/// The setters of a client, how it is shown, and how it is asked: its API has a `PATH`, a `body` and an `Answer`.
macro_rules! settings {
    ($client:ident, $key_words:literal) => {
        impl $client {
            fn set(mut self, change: impl FnOnce(&mut Client)) -> Self {
                change(Arc::make_mut(&mut self.0));
                self
            }

            fn set_server(self, change: impl FnOnce(&mut Server)) -> Self {
                self.set(|client| client.server.set(change))
            }

            #[doc = $key_words]
            pub fn key(self, key: impl Into<Key>) -> Self {
                let key = key.into();
                self.set_server(|server| server.key = Some(key))
            }

            /// How much chance there is in the choice of words: 0 for none, where the server can do that.
            pub fn temperature(self, temperature: f64) -> Self {
                self.field("temperature", Json::new(&temperature))
            }

            /// How many tokens a reply may have at most, thoughts too. What a request asks for comes first.
            pub fn max_tokens(self, tokens: u32) -> Self {
                self.set(|client| client.max_tokens = Some(tokens))
            }

            /// A field of the request, passed on as it is: sampling, reasoning, what a server has of its own. `null`
            /// leaves a field out, also one that would be sent else.
            pub fn field(self, name: impl Into<String>, value: Json<'static>) -> Self {
                self.set(|client| client.set_field(name.into(), value))
            }

            /// A header of the request. Its value is kept secret like a key; under the name of the key's header it comes
            /// in its place.
            pub fn header(self, name: impl Into<String>, value: impl Into<Key>) -> Self {
                let header = (name.into(), value.into());
                self.set_server(|server| server.headers.push(header))
            }

            /// How long is waited: by default ten minutes for the beginning of a reply, five between its pieces, an hour
            /// for all.
            pub fn waits(self, waits: Waits) -> Self {
                self.set_server(|server| server.waits = waits)
            }

            /// How connections are made.
            pub fn http(self, http: HttpSettings) -> Self {
                self.set_server(|server| server.http = http)
            }

            /// Whether it can be asked, as far as that can be known before.
            ///
            /// # Errors
            /// Says what is wrong with the address, the key, a header, a field or a proxy.
            pub fn check(&self) -> Result<(), ModelError> {
                self.0.check()
            }
        }

        impl Model for $client {
            fn name(&self) -> &str {
                &self.0.model
            }

            fn reply(&self, request: ModelRequest) -> Reply {
                let model = self.clone();
                Reply::new(|out| async move {
                    model.check()?;
                    let client = &*model.0;
                    let asked = client.server.asked(PATH, &client.model);
                    let body = model.body(&request);
                    drop(request);
                    let answered = client.server.post(PATH, body, &asked).await?;
                    let answer = Answer::new(client, Reading::new(&asked, &out));
                    let read = match answered {
                        Answered::Whole(body) => answer.whole(&body).await,
                        Answered::Stream(events) => answer.stream(*events).await,
                    };
                    read.map_err(|error| client.server.conceal(error))
                })
            }
        }

        impl std::fmt::Debug for $client {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter
                    .debug_tuple(stringify!($client))
                    .field(&self.0)
                    .finish()
            }
        }
    };
}
