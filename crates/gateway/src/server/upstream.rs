//! The model server, as it is asked.

mod http;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use plaincall_http::{HttpError, HttpErrorKind, HttpResponse, Waits};
use plaincall_wire::openai::{ErrorObject, read_error};
use plaincall_wire::page_title;
use tokio::sync::watch;

use crate::error::GatewayError;
use crate::server::config::{ConfigError, GatewayConfig, Timeouts};
use crate::server::forwarded_headers::for_client;
use crate::server::local::LocalModel;
use crate::server::response::JSON;
pub(super) use crate::server::upstream::http::HttpServer;

/// How many bytes of an answer are taken at once.
pub(super) const READ: usize = 2 << 10;

/// How much of a body must be there to tell whether it is a page, in bytes: as long as `<!doctype html`.
const PAGE_BEGIN: usize = 14;
/// How much of a body is looked at to tell that.
const MAX_BLANK: usize = 64 << 10;

/// Where the model is.
#[derive(Clone)]
#[non_exhaustive]
pub enum Upstream {
    /// A server that speaks the `OpenAI` API.
    #[non_exhaustive]
    Http {
        /// The beginning of its addresses, up to `/v1`.
        url: String,
        /// The key that it wants. Without one it gets that of the client, if the gateway asks for none itself.
        key: Option<String>,
    },
    /// In this process.
    Local(Arc<dyn LocalModel>),
}

impl Upstream {
    /// A server that speaks the `OpenAI` API: the beginning of its addresses, up to `/v1`, and the key that it wants.
    pub fn http(url: impl Into<String>, key: Option<String>) -> Self {
        Self::Http {
            url: url.into(),
            key,
        }
    }

    /// A model in this process.
    pub fn local(model: impl LocalModel + 'static) -> Self {
        Self::Local(Arc::new(model))
    }

    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Http { key, .. } => key.as_deref(),
            Self::Local(_) => None,
        }
    }
}

pub(crate) struct Connection {
    way: Way,
    timeouts: Timeouts,
    has_key: bool,
    forwards_client_keys: bool,
    /// Becomes true when what has not been answered will not be any more.
    is_over: watch::Receiver<bool>,
}

enum Way {
    Http(Box<HttpServer>),
    Local(Arc<dyn LocalModel>),
}

pub(super) struct Answer {
    response: HttpResponse,
    pub(super) headers: HeaderMap,
    /// What has come and has not been taken.
    rest: Bytes,
    is_over: watch::Receiver<bool>,
}

impl Connection {
    pub(crate) fn new(
        config: &GatewayConfig,
        is_over: watch::Receiver<bool>,
    ) -> Result<Self, ConfigError> {
        let way = match &config.upstream {
            Upstream::Http { url, key } => {
                Way::Http(Box::new(HttpServer::new(url, key.as_deref(), config)?))
            }
            Upstream::Local(model) => Way::Local(Arc::clone(model)),
        };
        Ok(Self {
            way,
            timeouts: config.timeouts,
            has_key: config.upstream.key().is_some(),
            forwards_client_keys: config.forwards_client_keys(),
            is_over,
        })
    }

    pub(super) async fn complete(
        &self,
        body: Vec<u8>,
        headers: &HeaderMap,
    ) -> Result<Answer, GatewayError> {
        let mut headers = headers.clone();
        headers.insert(CONTENT_TYPE, JSON);
        let path = "/chat/completions";
        self.pass(Method::POST, path, headers, body).await
    }

    /// The model server, unless the model is in this process.
    pub(super) fn server(&self) -> Option<&HttpServer> {
        match &self.way {
            Way::Http(server) => Some(server),
            Way::Local(_) => None,
        }
    }

    /// Asks for anything. The path is what stands behind `/v1`.
    pub(super) async fn pass(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, GatewayError> {
        match self.ask(method, path, headers, body.into()).await {
            // In one that is encoded the gateway's own key could not be found.
            Ok(answer) if self.has_key => answer.readable(),
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.told(error)),
        }
    }

    /// Asks for something that no client has asked for. What fails has the status of the model server.
    pub(super) async fn fetch(&self, path: &str) -> Result<Answer, GatewayError> {
        self.ask(Method::GET, path, HeaderMap::new(), Bytes::new())
            .await
    }

    /// Why the model server has not answered, as the client is told it. It would take the error of a key that is not its
    /// own for one of its own.
    fn told(&self, error: GatewayError) -> GatewayError {
        if self.forwards_client_keys || !matches!(error.status, 401 | 403) {
            return error;
        }
        let status = error.status;
        let words = format!("the model server rejected the gateway's request (status {status})");
        // What is said about a key may quote parts of it.
        let message = match status {
            403 => format!("{words}: {}", error.message()),
            _ => format!("{words}; the operator of the gateway must fix this"),
        };
        let mut told = GatewayError::upstream(message).log(words).without_retry();
        told.headers = error.headers;
        told
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, GatewayError> {
        // What is encoded could not be read: neither an answer nor why there is none.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let wait = self.timeouts.first_byte;
        let asked = tokio::time::timeout(wait, self.head(method, path, headers, body));
        let asked = tokio::select! {
            asked = asked => asked,
            () = over(&self.is_over) => return Err(GatewayError::shutting_down()),
        };
        let response = asked.map_err(|_| {
            let seconds = wait.as_secs();
            late(format!(
                "the model server did not start to answer within {seconds} seconds"
            ))
        })??;
        let status = response.status();
        let mut answer = Answer {
            headers: for_client(response.headers()),
            response,
            rest: Bytes::new(),
            is_over: self.is_over.clone(),
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
        // Only errors are told as such.
        if !(400..600).contains(&status) {
            error.status = 502;
        }
        Err(error)
    }

    async fn head(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpResponse, GatewayError> {
        let waits = Waits::new(self.timeouts.first_byte, self.timeouts.idle, Duration::MAX);
        match &self.way {
            Way::Http(server) => {
                let response = server.ask(method, path, headers, body).await?;
                Ok(HttpResponse::new(response, waits))
            }
            Way::Local(model) => {
                let request = Request::builder().method(method).uri(format!("/v1{path}"));
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

    /// This answer, if its body can be read.
    pub(super) fn readable(self) -> Result<Self, GatewayError> {
        match self.header(&CONTENT_ENCODING) {
            Some(encoding) if *encoding != "identity" => Err(GatewayError::upstream(
                "the model server encoded its answer although `identity` was requested",
            )),
            _ => Ok(self),
        }
    }

    /// The next piece of the body, of [`READ`] bytes at most: what a client reads slowly is taken slowly.
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
            piece = self.response.piece() => piece.map_err(|error| failed(&error)),
            () = over(&self.is_over) => Err(GatewayError::shutting_down()),
        }
    }

    pub(super) async fn whole(&mut self, most: usize) -> Result<Vec<u8>, GatewayError> {
        let started = std::mem::take(&mut self.rest).into();
        tokio::select! {
            body = self.response.body(started, most) => body.map_err(|error| failed(&error)),
            () = over(&self.is_over) => Err(GatewayError::shutting_down()),
        }
    }

    /// The title of the web page that this is, if it is one in the place of an answer. Only a text, or what has no content
    /// type, can be one.
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

    /// Whether it is JSON, and no stream.
    pub(super) fn is_json(&self) -> bool {
        self.response.content_type().starts_with("application/json")
    }

    /// Whether it is an event stream.
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

/// A web page came with a status of success: the address is that of something else than the API.
fn no_api(page: &str) -> GatewayError {
    let words = "the model server answered with a web page instead of an API response";
    GatewayError::upstream(format!(
        "{words} ({page}): check the URL of the model server; it usually ends with /v1"
    ))
    .log(words)
    .without_retry()
}

/// Completes when what has not been answered will not be any more.
async fn over(is_over: &watch::Receiver<bool>) {
    // Who could say so lives as long as what is answered.
    let _ = is_over.clone().wait_for(|is_over| *is_over).await;
}

/// Why there is no answer, or only a part of one.
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
