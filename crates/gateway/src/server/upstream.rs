//! Requests to the model server.

mod engines;
mod health;
mod http_server;
mod routes;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use plaincall_http::{HttpError, HttpErrorKind, HttpResponse, Waits};
use plaincall_wire::openai::{ErrorObject, read_error};
use plaincall_wire::{page_title, paths};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::error::GatewayError;
use crate::server::config::{ConfigError, GatewayConfig, Timeouts};
use crate::server::forwarded_headers::{for_client, remove_keys};
use crate::server::local::LocalModel;
use crate::server::response::JSON;
pub(super) use crate::server::upstream::engines::DetectedEngines;
use crate::server::upstream::engines::GrammarSupport;
use crate::server::upstream::health::Health;
pub(super) use crate::server::upstream::health::UpstreamCounts;
use crate::server::upstream::http_server::HttpServer;
pub(super) use crate::server::upstream::routes::{Routes, unknown_model};

/// The maximum size of a piece of an answer, in bytes.
pub(super) const READ: usize = 2 << 10;

/// The part of a model server to which a path belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// The API, below `/v1`.
    Api,
    /// The server itself, which has `/tokenize` or Ollama's API.
    Server,
}

/// The headers whose values are keys.
const KEY_HEADERS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
];

/// The length of `<!doctype html`, which is enough to detect a web page.
const PAGE_BEGIN: usize = 14;
/// The most leading whitespace that is read to detect a web page.
const MAX_BLANK: usize = 64 << 10;

/// Where the model is.
#[derive(Clone)]
#[non_exhaustive]
pub enum Upstream {
    /// A server with the `OpenAI` API.
    #[non_exhaustive]
    Http {
        /// The base URL, including `/v1`.
        url: String,
        /// The API key. Default: the client's key is forwarded if the gateway requires no keys itself.
        key: Option<String>,
        /// Further headers of each request, by name.
        headers: Vec<(String, String)>,
        /// Secrets in `headers`, which no client and no report gets.
        secrets: Vec<String>,
    },
    /// A model in this process.
    Local(Arc<dyn LocalModel>),
    /// No model server. Requests for models that have no other one get status 404.
    None,
}

impl Upstream {
    /// Creates an upstream for a server with the `OpenAI` API, from its base URL (including `/v1`) and API key.
    pub fn http(url: impl Into<String>, key: Option<String>) -> Self {
        Self::Http {
            url: url.into(),
            key,
            headers: Vec::new(),
            secrets: Vec::new(),
        }
    }

    /// Adds headers to each request to a server. In answers and reports, the keys in `authorization`, `proxy-authorization`,
    /// `x-api-key` and `api-key` are redacted; for other secrets, use [`with_secrets`](Self::with_secrets).
    #[must_use]
    pub fn with_headers(mut self, more: impl IntoIterator<Item = (String, String)>) -> Self {
        if let Self::Http { headers, .. } = &mut self {
            headers.extend(more);
        }
        self
    }

    /// Redacts these parts of headers in answers and reports like the key. Each must have at least eight bytes.
    #[must_use]
    pub fn with_secrets(mut self, more: impl IntoIterator<Item = String>) -> Self {
        if let Self::Http { secrets, .. } = &mut self {
            secrets.extend(more);
        }
        self
    }

    /// Creates an upstream for a model in this process.
    pub fn local(model: impl LocalModel + 'static) -> Self {
        Self::Local(Arc::new(model))
    }

    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Http { key, .. } => key.as_deref(),
            Self::Local(_) | Self::None => None,
        }
    }

    /// Returns the key and the secrets in headers.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let (headers, secrets) = match self {
            Self::Http {
                headers, secrets, ..
            } => (&**headers, &**secrets),
            Self::Local(_) | Self::None => (&[][..], &[][..]),
        };
        let is_key = |name: &str| {
            let mut known = KEY_HEADERS.iter();
            known.any(|known| name.eq_ignore_ascii_case(known))
        };
        let headers = headers.iter().filter(move |(name, _)| is_key(name));
        // A scheme such as `Bearer` precedes the key.
        let keys = headers.filter_map(|(_, value)| value.split_whitespace().next_back());
        let secrets = secrets.iter().map(String::as_str);
        self.key().into_iter().chain(keys).chain(secrets)
    }

    /// Returns whether both are the same server, with the same key and headers.
    fn is_same(&self, other: &Self) -> bool {
        fn server(upstream: &Upstream) -> Option<impl PartialEq> {
            match upstream {
                Upstream::Http {
                    url,
                    key,
                    headers,
                    secrets,
                } => Some((url, key, headers, secrets)),
                Upstream::Local(_) | Upstream::None => None,
            }
        }
        match (self, other) {
            (Self::Local(one), Self::Local(other)) => Arc::ptr_eq(one, other),
            _ => server(self).is_some() && server(self) == server(other),
        }
    }
}

/// A model server or a model in this process, with its connections and counters.
pub(crate) struct Connection {
    upstream: Upstream,
    /// The base URL, or `local`.
    name: Arc<str>,
    transport: Transport,
    timeouts: Timeouts,
    forwards_client_keys: bool,
    health: Health,
    pub(super) grammars: GrammarSupport,
    /// Cancels active requests.
    stop: CancellationToken,
}

enum Transport {
    Http(Box<HttpServer>),
    Local(Arc<dyn LocalModel>),
}

pub(super) struct Answer {
    response: HttpResponse,
    pub(super) headers: HeaderMap,
    /// Bytes that were received but not returned.
    rest: Bytes,
    /// Completes when active requests are cancelled. One future for all pieces, since each one has to register.
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Connection {
    /// Creates a connection, or returns `None` if there is no model server. `gets_client_keys` is whether the keys of clients may be
    /// forwarded to it.
    fn new(
        upstream: &Upstream,
        config: &GatewayConfig,
        gets_client_keys: bool,
        stop: CancellationToken,
    ) -> Result<Option<Self>, ConfigError> {
        let (name, transport) = match upstream {
            Upstream::Http {
                url, key, headers, ..
            } => {
                let server = HttpServer::new(url, key.as_deref(), headers, config)?;
                (server.base().into(), Transport::Http(Box::new(server)))
            }
            Upstream::Local(model) => ("local".into(), Transport::Local(Arc::clone(model))),
            Upstream::None => return Ok(None),
        };
        Ok(Some(Self {
            name,
            transport,
            timeouts: config.timeouts,
            forwards_client_keys: gets_client_keys && upstream.key().is_none(),
            upstream: upstream.clone(),
            health: Health::default(),
            grammars: GrammarSupport::default(),
            stop,
        }))
    }

    /// Returns whether this is the connection to a server that gets the keys of clients or not.
    fn is_for(&self, upstream: &Upstream, gets_client_keys: bool) -> bool {
        let forwards_client_keys = gets_client_keys && upstream.key().is_none();
        self.upstream.is_same(upstream) && self.forwards_client_keys == forwards_client_keys
    }

    /// Returns the name for logs and metrics.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn forwards_client_keys(&self) -> bool {
        self.forwards_client_keys
    }

    /// Returns the gateway's key for this server.
    pub(super) fn key(&self) -> Option<&str> {
        self.upstream.key()
    }

    /// Returns the counters since the server was configured.
    pub(super) fn counts(&self) -> UpstreamCounts {
        self.health
            .counts(self.server().map_or(0, HttpServer::retried))
    }

    /// Returns the base URL, unless the model is in this process.
    pub(super) fn base(&self) -> Option<&str> {
        self.server().map(HttpServer::base)
    }

    pub(super) async fn complete(
        &self,
        body: Bytes,
        headers: &HeaderMap,
    ) -> Result<Answer, GatewayError> {
        let mut headers = headers.clone();
        headers.insert(CONTENT_TYPE, JSON);
        let path = paths::after_base(paths::CHAT);
        self.pass(Method::POST, path, headers, body).await
    }

    fn server(&self) -> Option<&HttpServer> {
        match &self.transport {
            Transport::Http(server) => Some(server),
            Transport::Local(_) => None,
        }
    }

    /// Sends a request to a path below `/v1`.
    pub(super) async fn pass(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, GatewayError> {
        self.pass_to(Base::Api, method, path, headers, body).await
    }

    /// Sends a request to a path below this base.
    pub(super) async fn pass_to(
        &self,
        base: Base,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, GatewayError> {
        match self.ask(method, base, path, headers, body).await {
            // The gateway's secrets could not be found in an encoded answer.
            Ok(answer) if self.upstream.secrets().next().is_some() => answer.readable(),
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.client_error(error)),
        }
    }

    /// Sends a request with a JSON body to a path that is not below `/v1`.
    pub(super) async fn ask_server(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Answer, GatewayError> {
        let mut headers = headers.clone();
        headers.insert(CONTENT_TYPE, JSON);
        let answer = self.ask(Method::POST, Base::Server, path, headers, body);
        answer.await?.readable()
    }

    /// Requests the models.
    pub(super) async fn list(&self, headers: HeaderMap) -> Result<Answer, GatewayError> {
        self.pass(
            Method::GET,
            paths::after_base(paths::MODELS),
            headers,
            Bytes::new(),
        )
        .await
    }

    /// Sends a request of the gateway itself. Errors keep the model server's status.
    pub(super) async fn fetch(
        &self,
        path: &str,
        headers: HeaderMap,
    ) -> Result<Answer, GatewayError> {
        self.ask(Method::GET, Base::Api, path, headers, Bytes::new())
            .await
    }

    /// Converts an error of the model server for the client. An error about the gateway's key would look like one about the
    /// client's key.
    fn client_error(&self, error: GatewayError) -> GatewayError {
        if self.forwards_client_keys || !matches!(error.status, 401 | 403) {
            return error;
        }
        let status = error.status;
        let words = format!("the model server rejected the gateway's request (status {status})");
        // A message about the key may quote parts of it.
        let message = match status {
            403 => format!("{words}: {}", error.message()),
            _ => format!("{words}; the operator of the gateway must fix this"),
        };
        let mut converted = GatewayError::upstream(message).log(words).without_retry();
        converted.headers = error.headers;
        converted
    }

    async fn ask(
        &self,
        method: Method,
        base: Base,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, GatewayError> {
        if !self.forwards_client_keys {
            remove_keys(&mut headers);
        }
        // Encoded answers could not be parsed.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let wait = self.timeouts.first_byte;
        let request = tokio::time::timeout(wait, self.head(method, base, path, headers, body));
        let response = tokio::select! {
            response = request => response,
            () = self.stop.cancelled() => return Err(GatewayError::shutting_down()),
        };
        let response = response.map_err(|_| {
            let seconds = wait.as_secs();
            late(format!(
                "the model server did not start to answer within {seconds} seconds"
            ))
        });
        let response = response.and_then(|response| response);
        self.health
            .add(response.as_ref().ok().map(HttpResponse::status));
        let response = response?;
        let status = response.status();
        let mut answer = Answer {
            headers: for_client(response.headers()),
            response,
            rest: Bytes::new(),
            stopped: Box::pin(self.stop.clone().cancelled_owned()),
        };
        if (200..300).contains(&status) {
            return match answer.page().await? {
                Some(title) => Err(no_api(&page(status, &title))),
                None => Ok(answer),
            };
        }
        let response = &mut answer.response;
        let body = response.error_body(Vec::new()).await;
        let mut error = match page_title(response.header(&CONTENT_TYPE), &body) {
            Some(title) => {
                let page = page(status, &title);
                let words = format!("the model server answered with a web page, {page}");
                ErrorObject::new("upstream_error", words)
            }
            None => read_error(&body),
        };
        if error.message.as_deref().is_none_or(str::is_empty) {
            error = ErrorObject::new(
                "upstream_error",
                format!("the model server answered with status {status}"),
            );
        }
        let mut error = GatewayError::from_upstream(status, error);
        let headers = answer.headers.iter();
        error.headers = headers
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect();
        // Statuses that are not errors become 502.
        if !(400..600).contains(&status) {
            error.status = 502;
        }
        Err(error)
    }

    async fn head(
        &self,
        method: Method,
        base: Base,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpResponse, GatewayError> {
        let waits = Waits::new(self.timeouts.first_byte, self.timeouts.idle, Duration::MAX);
        match &self.transport {
            Transport::Http(server) => {
                let response = server.ask(method, base, path, headers, body).await?;
                Ok(HttpResponse::new(response, waits))
            }
            Transport::Local(model) => {
                let request = Request::builder().method(method);
                let base = match base {
                    Base::Api => paths::VERSION,
                    Base::Server => "",
                };
                let request = request.uri(format!("{base}{path}"));
                let failed = |error: &dyn fmt::Display| {
                    GatewayError::upstream(format!("the model failed: {error}"))
                        .log("the model failed")
                };
                let mut request = request.body(body).map_err(|error| failed(&error))?;
                *request.headers_mut() = headers;
                let response = model.answer(request).await;
                let response = response.map_err(|error| failed(&error))?;
                Ok(HttpResponse::new(response, waits))
            }
        }
    }
}

impl Answer {
    pub(super) fn status(&self) -> u16 {
        self.response.status()
    }

    pub(super) fn header(&self, name: &HeaderName) -> Option<&HeaderValue> {
        self.response.headers().get(name)
    }

    /// Returns this answer, or an error if its body is encoded.
    pub(super) fn readable(self) -> Result<Self, GatewayError> {
        match self.header(&CONTENT_ENCODING) {
            Some(encoding) if *encoding != "identity" => Err(GatewayError::upstream(
                "the model server encoded its answer although `identity` was requested",
            )),
            _ => Ok(self),
        }
    }

    /// Returns the next piece of the body, at most [`READ`] bytes, so that a slow client slows down the model server.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, GatewayError> {
        while self.rest.is_empty() {
            match self.next().await? {
                Some(piece) => self.rest = piece,
                None => return Ok(None),
            }
        }
        Ok(Some(self.rest.split_to(self.rest.len().min(READ))))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, GatewayError> {
        tokio::select! {
            biased;
            () = &mut self.stopped => Err(GatewayError::shutting_down()),
            piece = self.response.piece() => piece.map_err(|error| failed(&error)),
        }
    }

    pub(super) async fn whole(&mut self, most: usize) -> Result<Vec<u8>, GatewayError> {
        let started = std::mem::take(&mut self.rest).into();
        tokio::select! {
            body = self.response.body(started, most) => body.map_err(|error| failed(&error)),
            () = &mut self.stopped => Err(GatewayError::shutting_down()),
        }
    }

    /// Returns the title if this answer is a web page. Only text, or an answer without a content type, can be one.
    async fn page(&mut self) -> Result<Option<String>, GatewayError> {
        let content_type = self.response.content_type();
        let may_be_one = content_type.is_empty() || content_type.starts_with("text/");
        if !may_be_one || self.is_event_stream() || self.header(&CONTENT_ENCODING).is_some() {
            return Ok(None);
        }
        while self.rest.trim_ascii_start().len() < PAGE_BEGIN && self.rest.len() <= MAX_BLANK {
            let Some(piece) = self.next().await? else {
                break;
            };
            self.rest = [&*self.rest, &*piece].concat().into();
        }
        if page_title(&content_type, &self.rest).is_none() {
            return Ok(None);
        }
        let page = self.response.error_body(self.rest.to_vec()).await;
        Ok(page_title(&content_type, &page))
    }

    /// Returns whether the content type is JSON.
    pub(super) fn is_json(&self) -> bool {
        self.response.content_type().starts_with("application/json")
    }

    /// Returns whether the content type is an event stream.
    pub(super) fn is_event_stream(&self) -> bool {
        self.response
            .content_type()
            .starts_with("text/event-stream")
    }
}

fn page(status: u16, title: &str) -> String {
    let colon = if title.is_empty() { "" } else { ": " };
    format!("status {status}{colon}{title}")
}

/// The error for a web page with a success status, which means that the URL is not that of the API.
fn no_api(page: &str) -> GatewayError {
    let words = "the model server answered with a web page instead of an API response";
    GatewayError::upstream(format!(
        "{words} ({page}): check the URL of the model server; it usually ends with /v1"
    ))
    .log(words)
    .without_retry()
}

/// Converts an HTTP error.
fn failed(error: &HttpError) -> GatewayError {
    let message = error.message_for("the model server");
    match error.kind() {
        HttpErrorKind::Timeout => late(message),
        _ => GatewayError::upstream(message),
    }
}

fn late(message: String) -> GatewayError {
    GatewayError::new(504, ErrorObject::new("timeout_error", message))
}
