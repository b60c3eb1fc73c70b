//! The common part of the clients for model servers.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use plaincall_http::http::Request;
use plaincall_http::http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT,
};
use plaincall_http::http::request::Builder;
use plaincall_http::{HttpClient, HttpResponse, HttpSettings, Waits, base_url};
use plaincall_wire::{Json, Unknown, paths};
use url::Url;

use super::answer::failed;
use super::key::Key;
use super::server_error::{self, Asked};
use super::{ModelError, ModelErrorKind};

const NAME: &str = concat!("plaincall/", env!("CARGO_PKG_VERSION"));
/// The default timeouts: many models reason for minutes before the first text.
const WAITS: Waits = Waits::new(
    Duration::from_mins(10),
    Duration::from_mins(5),
    Duration::from_hours(1),
);

/// The properties of an API.
#[derive(Debug)]
pub(super) struct Api {
    /// The path of requests for replies.
    pub(super) path: &'static str,
    /// The header of the key, and the prefix of its value.
    pub(super) key_header: (&'static str, &'static str),
    /// A default header of every request.
    pub(super) fixed: Option<(&'static str, &'static str)>,
    /// Request fields that cannot be set.
    pub(super) own_fields: &'static [&'static str],
    /// Whether the client supports [`ModelRequest::native`](super::ModelRequest::native).
    pub(super) supports_native: bool,
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
    /// Created with the first request.
    ready: OnceLock<Result<Ready, ModelError>>,
}

#[derive(Clone)]
struct Ready {
    client: HttpClient,
    base: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl fmt::Debug for Client {
    /// Omits the query of the URL, which may contain a key.
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

    /// Checks the settings without sending a request.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        self.ready()?;
        let is_own = |name: &str| self.api.own_fields.contains(&name);
        match self.fields.iter().find(|(name, _)| is_own(name)) {
            None => Ok(()),
            Some((name, _)) => Err(refused(format!(
                "the request field `{name}` cannot be set: tools are in the prompt, and the client sets the rest"
            ))),
        }
    }

    pub(super) fn set_field(&mut self, name: String, value: Json<'static>) {
        self.fields.retain(|(known, _)| *known != name);
        self.fields.push((name, value));
    }

    /// The value of a field that was set, possibly `null`.
    pub(super) fn field(&self, name: &str) -> Option<&Json<'static>> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// Returns the fields, in their order.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &Json<'static>)> {
        self.fields
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    /// Appends the fields to a request.
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
            let wrong = "the key is empty or contains characters that are invalid in a header";
            headers.push(header.ok_or_else(|| refused(wrong.to_owned()))?);
        }
        for (name, value) in &self.headers {
            let header = secret_header(name, value.secret()).ok_or_else(|| {
                refused(format!("the header `{name}` has an invalid name or value"))
            });
            headers.push(header?);
        }
        Ok(Ready {
            client,
            base,
            headers,
        })
    }

    /// The server and the request, for error messages.
    pub(super) fn asked(&self) -> Asked<'_> {
        let base = self.ready().map(|ready| shown(&ready.base));
        Asked {
            base: base.unwrap_or_default(),
            path: paths::after_base(self.api.path),
            model: &self.model,
            has_key: self.key.is_some() || !self.headers.is_empty(),
        }
    }

    /// Sends a request with this body.
    pub(super) async fn post(
        &self,
        body: Vec<u8>,
        asked: &Asked<'_>,
    ) -> Result<HttpResponse, ModelError> {
        let request = Request::post(self.url_of(self.api.path)?.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json");
        self.send(request, body, self.waits, asked).await
    }

    /// Requests the resource with this path. An error status is an error.
    pub(super) async fn get(
        &self,
        path: &str,
        waits: Waits,
        asked: &Asked<'_>,
    ) -> Result<HttpResponse, ModelError> {
        let request = Request::get(self.url_of(path)?.as_str()).header(ACCEPT, "application/json");
        let answer = self.send(request, Vec::new(), waits, asked).await?;
        server_error::checked(answer, asked).await
    }

    fn url_of(&self, path: &str) -> Result<Url, ModelError> {
        let mut url = self.ready()?.base.clone();
        url.set_path(&(url.path().trim_end_matches('/').to_owned() + paths::after_base(path)));
        Ok(url)
    }

    /// Sends a request. An error status is not an error.
    async fn send(
        &self,
        mut request: Builder,
        body: Vec<u8>,
        waits: Waits,
        asked: &Asked<'_>,
    ) -> Result<HttpResponse, ModelError> {
        let ready = self.ready()?;
        request = request
            // Compressed responses are not supported.
            .header(ACCEPT_ENCODING, "identity")
            .header(USER_AGENT, NAME);
        for (name, value) in &ready.headers {
            request = request.header(name, value);
        }
        let request = request.body(body.into()).map_err(|error| {
            refused(format!(
                "cannot send a request to {}: {error}",
                asked.server()
            ))
        })?;
        let sent = ready.client.send(request, waits).await;
        let response = sent.map_err(|error| failed(&error, asked))?;
        match response.encoding().filter(|_| response.is_success()) {
            Some(encoding) => Err(refused(format!(
                "{} sent a reply with the content encoding `{encoding}`, although the request accepts none; is there a proxy in front of it?",
                asked.server()
            ))),
            None => Ok(response),
        }
    }

    /// Redacts the keys in an error.
    pub(super) fn redact(&self, mut error: ModelError) -> ModelError {
        let headers = self.headers.iter().map(|(_, value)| value);
        for key in self.key.iter().chain(headers) {
            error.message = key.redact(&error.message);
            // Some have a scheme as a prefix.
            if let Some((_, secret)) = key.secret().split_once(' ') {
                error.message = Key::new(secret).redact(&error.message);
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

/// The base URL of a server, with its query.
fn base(url: &str) -> Result<Url, String> {
    let (shown, query) = base_url(url)?;
    let mut base: Url = shown.parse().map_err(|error| format!("{shown}: {error}"))?;
    base.set_query(query);
    Ok(base)
}

/// A URL without its query, which may contain a key.
fn shown(base: &Url) -> String {
    let mut base = base.clone();
    base.set_query(None);
    base.as_str().trim_end_matches('/').to_owned()
}

/// Implements the setters, `Debug` and `Model` of a client. It has functions `constraint` and `send`, and its module has a
/// constant `API`, and an `Answer` with a `reader` that handles an `event` of a stream, or the `whole` response.
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

            /// Sets the sampling temperature.
            pub fn temperature(self, temperature: f64) -> Self {
                self.field("temperature", Json::new(&temperature))
            }

            /// Sets the most tokens of a reply, including reasoning. The limit of a request overrides it.
            pub fn max_tokens(self, tokens: u32) -> Self {
                self.set(|client| client.max_tokens = Some(tokens))
            }

            /// Sets a field of the request, such as a sampling or reasoning option. `null` omits a field that would be
            /// sent by default.
            pub fn field(self, name: impl Into<String>, value: Json<'static>) -> Self {
                self.set(|client| client.set_field(name.into(), value))
            }

            /// Sets a header of the request. Its value is redacted like a key. The key's header is replaced by one of the
            /// same name.
            pub fn header(self, name: impl Into<String>, value: impl Into<Key>) -> Self {
                let header = (name.into(), value.into());
                self.set(|client| client.headers.push(header))
            }

            /// Sets the timeouts. Default: ten minutes for the beginning of a reply, five between its parts, an hour in
            /// total.
            pub fn waits(self, waits: Waits) -> Self {
                self.set(|client| client.waits = waits)
            }

            /// Sets the settings of the HTTP client.
            pub fn http(self, http: HttpSettings) -> Self {
                self.set(|client| client.http = http)
            }

            /// Checks the settings without sending a request.
            ///
            /// # Errors
            /// Returns an error if the URL, the key, a header, a field or a proxy is invalid.
            pub fn check(&self) -> Result<(), ModelError> {
                self.0.check()
            }
        }

        impl Model for $client {
            fn name(&self) -> &str {
                &self.0.model
            }

            fn supports_native_calls(&self) -> bool {
                API.supports_native
            }

            fn constrains(&self) -> Constrain {
                self.constraint()
            }

            fn reply(&self, request: ModelRequest) -> Reply {
                let model = self.clone();
                Reply::new(|out| async move {
                    let client = &*model.0;
                    client.check()?;
                    let asked = client.asked();
                    let read = async {
                        let is_native = API.supports_native && request.native.is_some();
                        let answered = model.send(request, &asked).await?;
                        let answer =
                            Answer::new(client, ResponseReader::new(&asked, &out, is_native));
                        match answered {
                            Answered::Whole(body) => answer.whole(&body).await,
                            Answered::Stream(events) => answer.stream(*events).await,
                        }
                    };
                    read.await.map_err(|error| client.redact(error))
                })
            }
        }

        impl Answer<'_> {
            async fn stream(mut self, mut events: EventStream) -> Result<Finish, ModelError> {
                loop {
                    let Some(event) = self.reader.event(&mut events).await? else {
                        let finish = self.reader.finish.take();
                        return finish.ok_or_else(|| self.reader.broken("it ended midway"));
                    };
                    match self.event(&event).await {
                        Ok(false) => {}
                        Err(error) if self.reader.finish.is_none() => return Err(error),
                        Ok(true) | Err(_) => {
                            let finish = self.reader.finish.take();
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
