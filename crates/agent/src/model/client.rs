//! A model behind a server, whatever its API: where it is, and how it is asked.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use plaincall_http::http::Request;
use plaincall_http::http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT,
};
use plaincall_http::{HttpClient, HttpSettings, Waits, check_address};
use plaincall_wire::{Json, Unknown};
use url::Url;

use super::answer::{Answered, failed};
use super::key::Key;
use super::server_error::{self, Asked};
use super::{ModelError, ModelErrorKind};

const NAME: &str = concat!("plaincall/", env!("CARGO_PKG_VERSION"));
/// How long models take: many think for minutes before they say a word.
const WAITS: Waits = Waits::new(
    Duration::from_mins(10),
    Duration::from_mins(5),
    Duration::from_hours(1),
);

/// What an API is called and how it is asked.
#[derive(Debug)]
pub(super) struct Api {
    /// The end of the address.
    pub(super) path: &'static str,
    /// The header with the key, and what comes before the key in it.
    pub(super) key_header: (&'static str, &'static str),
    /// A header of every request that sets no other of this name.
    pub(super) fixed: Option<(&'static str, &'static str)>,
    /// Fields of the request that settings may not set.
    pub(super) own_fields: &'static [&'static str],
}

#[derive(Clone)]
pub(super) struct Client {
    api: &'static Api,
    url: String,
    pub(super) model: String,
    pub(super) key: Option<Key>,
    pub(super) headers: Vec<(String, Key)>,
    pub(super) max_tokens: Option<u32>,
    fields: Vec<(String, Json<'static>)>,
    pub(super) waits: Waits,
    pub(super) http: HttpSettings,
    /// Made for the first request.
    ready: OnceLock<Result<Ready, ModelError>>,
}

#[derive(Clone)]
struct Ready {
    client: HttpClient,
    base: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl fmt::Debug for Client {
    /// Without what follows `?` in the address, which may be a key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, _) = self.url.split_once('?').unwrap_or((&self.url, ""));
        formatter
            .debug_struct("Client")
            .field("url", &address)
            .field("model", &self.model)
            .field("key", &self.key)
            .field("max_tokens", &self.max_tokens)
            .field("fields", &self.fields)
            .field("waits", &self.waits)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(api: &'static Api, url: String, model: String) -> Self {
        Self {
            api,
            url,
            model,
            key: None,
            headers: Vec::new(),
            max_tokens: None,
            fields: Vec::new(),
            waits: WAITS,
            http: HttpSettings::default(),
            ready: OnceLock::new(),
        }
    }

    pub(super) fn set(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        self.ready = OnceLock::new();
    }

    /// Checks the settings as far as that is possible without a request.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        self.ready()?;
        let is_own = |name: &str| self.api.own_fields.contains(&name);
        match self.fields.iter().find(|(name, _)| is_own(name)) {
            None => Ok(()),
            Some((name, _)) => Err(refused(format!(
                "the field `{name}` of a request is not for settings: tools are told in the prompt, and the rest is set already"
            ))),
        }
    }

    pub(super) fn set_field(&mut self, name: String, value: Json<'static>) {
        self.fields.retain(|(known, _)| *known != name);
        self.fields.push((name, value));
    }

    /// The value of a field that was set, perhaps to `null`.
    pub(super) fn field(&self, name: &str) -> Option<&Json<'static>> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// Puts the fields behind the others of a request.
    pub(super) fn put_fields<'r>(&'r self, request: &mut Unknown<'r>) {
        for (name, value) in self.fields.iter().filter(|(_, value)| !value.is_null()) {
            request.set(name.as_str(), value.clone());
        }
    }

    pub(super) fn host(&self) -> Option<&str> {
        self.ready().ok()?.base.host_str()
    }

    fn ready(&self) -> Result<&Ready, ModelError> {
        let ready = self.ready.get_or_init(|| self.make());
        ready.as_ref().map_err(Clone::clone)
    }

    fn make(&self) -> Result<Ready, ModelError> {
        let base = base(&self.url).map_err(refused)?;
        let client = HttpClient::new(&self.http);
        let client = client.map_err(|error| refused(error.to_string()))?;
        let mut headers = Vec::new();
        let is_replaced = |name: &str| {
            let mut names = self.headers.iter().map(|(own, _)| own);
            names.any(|own| own.eq_ignore_ascii_case(name))
        };
        let fixed = self.api.fixed.filter(|(name, _)| !is_replaced(name));
        headers.extend(fixed.and_then(|(name, value)| secret_header(name, value)));
        let (name, before) = self.api.key_header;
        if let Some(key) = self.key.as_ref().filter(|_| !is_replaced(name)) {
            let value = format!("{before}{}", key.secret());
            let header = secret_header(name, &value).filter(|_| !key.secret().is_empty());
            let wrong = "the key is empty, or has characters that no header can hold";
            headers.push(header.ok_or_else(|| refused(wrong.to_owned()))?);
        }
        for (name, value) in &self.headers {
            let header = secret_header(name, value.secret()).ok_or_else(|| {
                refused(format!(
                    "the header `{name}` has a name or a value that no header can have"
                ))
            });
            headers.push(header?);
        }
        Ok(Ready {
            client,
            base,
            headers,
        })
    }

    /// Who is asked for what, for messages.
    pub(super) fn asked(&self) -> Asked<'_> {
        let base = self.ready().map(|ready| shown(&ready.base));
        Asked {
            base: base.unwrap_or_default(),
            path: self.api.path,
            model: &self.model,
            has_key: self.key.is_some() || !self.headers.is_empty(),
        }
    }

    /// Sends a request, and reads the beginning of the answer.
    pub(super) async fn post(
        &self,
        body: Vec<u8>,
        asked: &Asked<'_>,
    ) -> Result<Answered, ModelError> {
        let ready = self.ready()?;
        let mut url = ready.base.clone();
        url.set_path(&(url.path().trim_end_matches('/').to_owned() + self.api.path));
        let mut request = Request::post(url.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            // What is encoded could not be read.
            .header(ACCEPT_ENCODING, "identity")
            .header(USER_AGENT, NAME);
        for (name, value) in &ready.headers {
            request = request.header(name, value);
        }
        let request = request
            .body(body.into())
            .map_err(|error| refused(format!("{} cannot be asked: {error}", asked.server())))?;
        let sent = ready.client.send(request, self.waits).await;
        let mut answer = sent.map_err(|error| failed(&error, asked))?;
        if (200..300).contains(&answer.status()) {
            return Answered::open(answer, asked).await;
        }
        let body = answer.error_body(Vec::new()).await;
        Err(server_error::by_status(&answer, &body, asked))
    }

    /// Leaves the keys out of an error.
    pub(super) fn conceal(&self, mut error: ModelError) -> ModelError {
        let headers = self.headers.iter().map(|(_, value)| value);
        for key in self.key.iter().chain(headers) {
            error.message = key.conceal(&error.message);
            // A scheme stands before some.
            if let Some((_, secret)) = key.secret().split_once(' ') {
                error.message = Key::new(secret).conceal(&error.message);
            }
        }
        error
    }
}

fn refused(message: String) -> ModelError {
    ModelError::new(ModelErrorKind::Refused, message)
}

fn secret_header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name: HeaderName = name.parse().ok()?;
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

/// The beginning of the addresses of a server.
fn base(url: &str) -> Result<Url, String> {
    check_address(url)?;
    let shown = url.split(['?', '#']).next().unwrap_or_default();
    let mut base: Url = url.parse().map_err(|error| format!("{shown}: {error}"))?;
    base.set_fragment(None);
    // The whole address of a request, as documents show it.
    let path = base.path().trim_end_matches('/');
    let path = path.strip_suffix("/chat/completions").unwrap_or(path);
    let path = path.strip_suffix("/messages").unwrap_or(path).to_owned();
    base.set_path(&path);
    Ok(base)
}

/// An address without what follows `?`, which may be a key.
fn shown(base: &Url) -> String {
    let mut base = base.clone();
    base.set_query(None);
    base.as_str().trim_end_matches('/').to_owned()
}

/// The setters of a client, how it is shown and how it is asked. Its API has a constant `API`, a function `body`, and an
/// `Answer` with a `reading` that takes an `event` of a stream, or the `whole` answer.
macro_rules! client {
    ($client:ident, $key_words:literal) => {
        impl $client {
            fn set(mut self, change: impl FnOnce(&mut Client)) -> Self {
                Arc::make_mut(&mut self.0).set(change);
                self
            }

            #[doc = $key_words]
            pub fn key(self, key: impl Into<Key>) -> Self {
                let key = key.into();
                self.set(|client| client.key = Some(key))
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
                self.set(|client| client.headers.push(header))
            }

            /// How long is waited: by default ten minutes for the beginning of a reply, five between its pieces, an hour
            /// for all.
            pub fn waits(self, waits: Waits) -> Self {
                self.set(|client| client.waits = waits)
            }

            /// How connections are made.
            pub fn http(self, http: HttpSettings) -> Self {
                self.set(|client| client.http = http)
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
                    let client = &*model.0;
                    client.check()?;
                    let asked = client.asked();
                    let read = async {
                        let body = model.body(&request);
                        drop(request);
                        let answered = client.post(body, &asked).await?;
                        let answer = Answer::new(client, Reading::new(&asked, &out));
                        match answered {
                            Answered::Whole(body) => answer.whole(&body).await,
                            Answered::Stream(events) => answer.stream(*events).await,
                        }
                    };
                    read.await.map_err(|error| client.conceal(error))
                })
            }
        }

        impl Answer<'_> {
            async fn stream(mut self, mut events: EventStream) -> Result<Finish, ModelError> {
                loop {
                    let Some(event) = self.reading.event(&mut events).await? else {
                        let finish = self.reading.finish.take();
                        return finish.ok_or_else(|| self.reading.broken("it ended in the middle"));
                    };
                    match self.event(&event).await {
                        Ok(false) => {}
                        Err(error) if self.reading.finish.is_none() => return Err(error),
                        Ok(true) | Err(_) => {
                            let finish = self.reading.finish.take();
                            return Ok(finish.unwrap_or(Finish::new(Stop::Broken)));
                        }
                    }
                }
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

#[cfg(test)]
mod tests {
    use super::{base, shown};

    #[test]
    fn addresses() {
        for (url, expected) in [
            ("http://localhost:11434/v1", "http://localhost:11434/v1"),
            ("http://localhost:11434/v1//", "http://localhost:11434/v1"),
            ("https://api.example", "https://api.example"),
            ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
            ("https://a/v1/chat/completions", "https://a/v1"),
            ("https://a/v1/messages/", "https://a/v1"),
            ("https://a/v1?api-version=1#x", "https://a/v1"),
        ] {
            assert_eq!(shown(&base(url).unwrap()), expected);
        }
    }
}
