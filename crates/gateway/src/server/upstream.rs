//! The model's server, as it is asked.

mod http;

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, Method, Request};
use plaincall_wire::openai::{ErrorObject, read_error};
use plaincall_wire::page_title;
use tokio::sync::watch;

use crate::refusal::Refusal;
use crate::server::answer::JSON;
use crate::server::config::{ConfigError, GatewayConfig, Timeouts};
use crate::server::headers::for_client;
use crate::server::local::LocalModel;
use crate::server::upstream::http::{HttpServer, causes};

/// How many bytes of an answer are taken at once.
pub(super) const READ: usize = 2 << 10;

/// How much of the body of an error is read, in bytes.
const ERROR_BYTES: usize = 64 << 10;
/// How much of a body must be there to tell whether it is a page, in bytes: as long as `<!doctype html`.
const PAGE_BEGIN: usize = 14;
/// How long is waited for it: the status is known already, and the client shall hear it while it is still to be told.
const ERROR_TIME: Duration = Duration::from_secs(2);

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
}

impl Upstream {
    /// The key that the model's server wants.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Http { key, .. } => key.as_deref(),
            Self::Local(_) => None,
        }
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { url, .. } => formatter
                .debug_struct("Http")
                .field("url", url)
                .finish_non_exhaustive(),
            Self::Local(_) => formatter.debug_tuple("Local").finish_non_exhaustive(),
        }
    }
}

/// The way to the model's server.
pub(crate) struct Connection {
    way: Way,
    timeouts: Timeouts,
    /// The key of the gateway's own.
    key: Option<String>,
    /// Whether the model's server gets the key that the client shows.
    passes_keys: bool,
    /// Becomes true when what has not been answered will not be any more.
    is_over: watch::Receiver<bool>,
}

enum Way {
    Http(Box<HttpServer>),
    Local(Arc<dyn LocalModel>),
}

/// What goes with a request beside its body.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) headers: HeaderMap,
}

/// An answer whose head has come.
pub(super) struct Answer {
    /// The status, which is one of success.
    pub(super) status: u16,
    /// How the body is encoded, if it is: nobody has asked for that.
    pub(super) content_encoding: Option<HeaderValue>,
    pub(super) content_type: Option<HeaderValue>,
    /// Headers that are for the client.
    pub(super) headers: HeaderMap,
    body: Body,
    /// What has come and has not been taken.
    rest: Bytes,
    idle: Duration,
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
            key: config.upstream.key().map(str::to_owned),
            passes_keys: config.passes_keys(),
            is_over,
        })
    }

    /// Asks for a completion. The body is that of the request.
    pub(super) async fn complete(&self, body: Vec<u8>, asking: &Asking) -> Result<Answer, Refusal> {
        let mut headers = asking.headers.clone();
        headers.insert(CONTENT_TYPE, JSON);
        let asked = self.ask(Method::POST, "/chat/completions", headers, body.into());
        self.for_client(asked.await)
    }

    /// How often a request has been sent again.
    pub(super) fn retries(&self) -> u64 {
        match &self.way {
            Way::Http(server) => server.retried(),
            Way::Local(_) => 0,
        }
    }

    /// The beginning of the addresses of the model's server, if it is one.
    pub(super) fn base(&self) -> Option<&str> {
        match &self.way {
            Way::Http(server) => Some(server.base()),
            Way::Local(_) => None,
        }
    }

    /// Asks for anything. The path is what stands behind `/v1`.
    pub(super) async fn pass(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        asking: &Asking,
    ) -> Result<Answer, Refusal> {
        let headers = asking.headers.clone();
        let asked = self.ask(method, path, headers, body.into());
        self.for_client(asked.await)
    }

    /// Asks for something that no client has asked for. What fails has the status of the model's server.
    pub(super) async fn fetch(&self, path: &str) -> Result<Answer, Refusal> {
        self.ask(Method::GET, path, HeaderMap::new(), Bytes::new())
            .await
    }

    /// An answer that may go to a client. In one that is encoded the gateway's own key could not be found.
    fn for_client(&self, asked: Result<Answer, Refusal>) -> Result<Answer, Refusal> {
        match asked {
            Ok(answer) if self.key.is_some() => answer.readable(),
            Ok(answer) => Ok(answer),
            Err(refusal) => Err(self.told(refusal)),
        }
    }

    /// Why the model's server has not answered, as the client is told it.
    ///
    /// A client can mend nothing about a key that is not its own, and would take the refusal of that key for one of its
    /// own key.
    fn told(&self, mut refusal: Refusal) -> Refusal {
        self.conceal(&mut refusal);
        if self.passes_keys || !matches!(refusal.status, 401 | 403) {
            return refusal;
        }
        let status = refusal.status;
        let words = format!("the model's server does not let the gateway ask (status {status})");
        // What is said about a key may quote parts of it.
        let message = match status {
            403 => format!("{words}: {}", refusal.message()),
            _ => format!("{words}; whoever runs the gateway can mend it"),
        };
        let mut told = Refusal::upstream(message).log(words).for_good();
        told.headers = refusal.headers;
        told
    }

    /// Leaves the gateway's own key out of what a client is told.
    pub(super) fn conceal(&self, refusal: &mut Refusal) {
        if let Some(key) = &self.key {
            refusal.conceal(key);
        }
    }

    /// The gateway's own key.
    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, Refusal> {
        // What is encoded could not be read: neither an answer nor why there is none.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let wait = self.timeouts.first_byte;
        let asked = tokio::time::timeout(wait, self.head(&method, path, headers, body));
        let asked = tokio::select! {
            asked = asked => asked,
            () = over(&self.is_over) => return Err(Refusal::shutting_down()),
        };
        let (status, headers, body) =
            asked.map_err(|_| late("has not begun to answer", wait))??;
        let mut answer = Answer {
            status,
            content_encoding: headers.get(CONTENT_ENCODING).cloned(),
            content_type: headers.get(CONTENT_TYPE).cloned(),
            headers: for_client(&headers),
            body,
            rest: Bytes::new(),
            idle: self.timeouts.idle,
            is_over: self.is_over.clone(),
        };
        if (200..300).contains(&status) {
            return match answer.page().await? {
                Some(title) => Err(no_api(status, &title)),
                None => Ok(answer),
            };
        }
        let body = answer.begin(ERROR_BYTES).await;
        let mut error = if let Some(title) = page_title(answer.content_type(), &body) {
            ErrorObject::new("upstream_error", page(status, &title))
        } else {
            read_error(&body)
        };
        if error.message.as_deref().is_none_or(str::is_empty) {
            error = ErrorObject::new(
                "upstream_error",
                format!("the model's server has answered with the status {status}"),
            );
        }
        let mut refusal = Refusal::of_upstream(status, error);
        let retry_after = headers.get(RETRY_AFTER);
        refusal.retry_after = retry_after.and_then(|value| value.to_str().ok().map(str::to_owned));
        let limits = answer
            .headers
            .iter()
            .filter(|(name, _)| *name != RETRY_AFTER);
        refusal.headers = limits
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect();
        // Only errors are told as such.
        if !(400..600).contains(&status) {
            refusal.status = 502;
        }
        Err(refusal)
    }

    /// Asks, and waits for the head of the answer: its status, its headers, and where the rest comes from.
    async fn head(
        &self,
        method: &Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(u16, HeaderMap, Body), Refusal> {
        match &self.way {
            Way::Http(server) => {
                let response = server.ask(method, path, headers, body).await?;
                let (head, body) = response.into_parts();
                Ok((head.status.as_u16(), head.headers, Body::new(body)))
            }
            Way::Local(model) => {
                let request = Request::builder().method(method).uri(format!("/v1{path}"));
                let failed = |error: &dyn fmt::Display| {
                    Refusal::upstream(format!("the model cannot answer: {error}"))
                        .log("the model cannot answer")
                };
                let mut request = request.body(body).map_err(|error| failed(&error))?;
                *request.headers_mut() = headers;
                let response = model.answer(request).await;
                let (head, body) = response.map_err(|error| failed(&error))?.into_parts();
                Ok((head.status.as_u16(), head.headers, body))
            }
        }
    }
}

impl Answer {
    /// This answer, if its body can be read.
    pub(super) fn readable(self) -> Result<Self, Refusal> {
        match &self.content_encoding {
            Some(encoding) if *encoding != "identity" => Err(Refusal::upstream(
                "the model's server has encoded its answer, which it was asked not to do",
            )),
            _ => Ok(self),
        }
    }

    /// The next piece of the body, of [`READ`] bytes at most: what a client reads slowly is taken slowly.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, Refusal> {
        while self.rest.is_empty() {
            match self.next().await? {
                Some(piece) => self.rest = piece,
                None => return Ok(None),
            }
        }
        Ok(Some(self.rest.split_to(self.rest.len().min(READ))))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        let next = tokio::time::timeout(self.idle, next(&mut self.body));
        tokio::select! {
            next = next => next.unwrap_or_else(|_| Err(late("has fallen silent", self.idle))),
            () = over(&self.is_over) => Err(Refusal::shutting_down()),
        }
    }

    /// How long is waited for each piece.
    pub(super) fn idle(&self) -> Duration {
        self.idle
    }

    /// The whole body.
    pub(super) async fn whole(&mut self, most: usize) -> Result<Vec<u8>, Refusal> {
        let mut body = Vec::new();
        while let Some(piece) = self.next().await? {
            if body.len() + piece.len() > most {
                let message =
                    format!("the answer of the model's server has more than {most} bytes");
                return Err(Refusal::upstream(message));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// The title of the web page that this is, if it is one in the place of an answer.
    ///
    /// Only what calls itself a text, or nothing, can be one. Nothing of what is not one is lost.
    async fn page(&mut self) -> Result<Option<String>, Refusal> {
        let may_be_one = match self.content_type() {
            "" => true,
            _ if self.is_event_stream() => false,
            other => other.starts_with("text/"),
        };
        if !may_be_one || self.content_encoding.is_some() {
            return Ok(None);
        }
        while self.rest.trim_ascii_start().len() < PAGE_BEGIN {
            let Some(piece) = self.next().await? else {
                break;
            };
            self.rest = [&*self.rest, &*piece].concat().into();
            if self.rest.len() > ERROR_BYTES {
                break;
            }
        }
        if page_title(self.content_type(), &self.rest).is_none() {
            return Ok(None);
        }
        let page = self.begin(ERROR_BYTES).await;
        Ok(page_title(self.content_type(), &page))
    }

    /// The beginning of the body, as far as it comes in time.
    async fn begin(&mut self, most: usize) -> Vec<u8> {
        let mut body = Vec::from(std::mem::take(&mut self.rest));
        let gathered = async {
            while body.len() < most
                && let Ok(Some(piece)) = next(&mut self.body).await
            {
                body.extend_from_slice(&piece);
            }
        };
        // What has come is enough.
        let _ = tokio::time::timeout(self.idle.min(ERROR_TIME), gathered).await;
        body.truncate(most);
        body
    }

    /// Whether it is JSON, and no stream.
    pub(super) fn is_json(&self) -> bool {
        self.content_type().starts_with("application/json")
    }

    /// Whether it is an event stream.
    pub(super) fn is_event_stream(&self) -> bool {
        self.content_type().starts_with("text/event-stream")
    }

    fn content_type(&self) -> &str {
        let value = self.content_type.as_ref();
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// What is told of a page that came in the place of an answer.
fn page(status: u16, title: &str) -> String {
    let colon = if title.is_empty() { "" } else { ": " };
    format!("the model's server answered with a page, status {status}{colon}{title}")
}

/// A web page came with a status of success: the address is that of something else than the API.
fn no_api(status: u16, title: &str) -> Refusal {
    let words = "the model's server answered with a web page, not with the API";
    let colon = if title.is_empty() { "" } else { ": " };
    Refusal::upstream(format!(
        "{words} (status {status}{colon}{title}): check the URL of the model's server; mostly it ends with /v1"
    ))
    .log(words)
    .for_good()
}

/// The next piece of a body.
async fn next(body: &mut Body) -> Result<Option<Bytes>, Refusal> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        match frame.map(|frame| frame.map(hyper::body::Frame::into_data)) {
            None => return Ok(None),
            Some(Ok(Ok(piece))) => return Ok(Some(piece)),
            // What stands behind a body tells nothing of it.
            Some(Ok(Err(_))) => {}
            Some(Err(error)) => {
                let message = format!(
                    "the answer of the model's server broke off: {}",
                    causes(&error)
                );
                return Err(Refusal::upstream(message));
            }
        }
    }
}

/// Completes when what has not been answered will not be any more.
async fn over(is_over: &watch::Receiver<bool>) {
    let mut is_over = is_over.clone();
    if is_over.wait_for(|is_over| *is_over).await.is_err() {
        // Nobody is left who could say so.
        std::future::pending::<()>().await;
    }
}

fn late(what: &str, time: Duration) -> Refusal {
    let seconds = time.as_secs();
    let message = format!("the model's server {what} for {seconds} seconds");
    Refusal::new(504, ErrorObject::new("timeout_error", message))
}
