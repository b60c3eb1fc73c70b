//! The model's server, as it is asked.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue};
use plaincall_wire::openai::{ChatCompletionRequest, ErrorObject, read_error};
use reqwest::{Client, Method};

use crate::refusal::Refusal;
use crate::server::answer::{JSON, REQUEST_ID};
use crate::server::replay::Replay;
use crate::server::{GatewayConfig, Timeouts, Upstream};

/// How often a connection is tried, and how long is waited in between.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];
/// How much of the body of an error is read, in bytes.
const ERROR_BYTES: usize = 64 << 10;

/// The way to the model's server.
pub(crate) enum Connection {
    Http {
        client: Client,
        url: String,
        key: Option<HeaderValue>,
        timeouts: Timeouts,
    },
    Replay(Replay),
}

/// What goes with a request beside its body.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) request_id: HeaderValue,
    /// What the client has shown, if it is meant for the model's server.
    pub(super) authorization: Option<HeaderValue>,
}

/// An answer whose head has come.
pub(super) struct Answer {
    pub(super) content_type: Option<HeaderValue>,
    body: Pieces,
    idle: Duration,
}

enum Pieces {
    Http(reqwest::Response),
    Replayed(VecDeque<Bytes>),
}

impl Connection {
    pub(crate) fn new(config: &GatewayConfig) -> Result<Self, String> {
        let (url, key) = match &config.upstream {
            Upstream::Replay(replay) => return Ok(Self::Replay(replay.clone())),
            Upstream::Http { url, key } => (url, key),
        };
        let parsed = reqwest::Url::parse(url).map_err(|error| format!("{url}: {error}"))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(format!(
                "{url}: an address that begins with http:// or https:// is needed"
            ));
        }
        // Somebody else may have chosen one before, which will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(config.timeouts.connect)
            .pool_max_idle_per_host(config.limits.concurrent)
            .tcp_nodelay(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| sentence(&error))?;
        let bearer = |key: &String| {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(
                |_| "the key of the model's server has characters that no header can hold",
            )?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        };
        Ok(Self::Http {
            client,
            url: url.trim_end_matches('/').to_owned(),
            key: key.as_ref().map(bearer).transpose()?,
            timeouts: config.timeouts,
        })
    }

    /// Asks for a completion. The body is that of the request.
    pub(super) async fn complete(
        &self,
        request: &ChatCompletionRequest<'_>,
        body: Vec<u8>,
        asking: &Asking,
    ) -> Result<Answer, Refusal> {
        match self {
            Self::Http { .. } => {
                self.ask(Method::POST, "/chat/completions", body, asking)
                    .await
            }
            Self::Replay(replay) => {
                let (content_type, pieces) = replay.answer(request)?;
                Ok(Answer {
                    content_type: Some(HeaderValue::from_static(content_type)),
                    body: Pieces::Replayed(pieces),
                    idle: Duration::MAX,
                })
            }
        }
    }

    /// Whether the request itself is looked at, and not only its body.
    pub(super) fn looks_at_requests(&self) -> bool {
        matches!(self, Self::Replay(_))
    }

    /// Asks for the list of models.
    pub(super) async fn models(&self, asking: &Asking) -> Result<Answer, Refusal> {
        match self {
            Self::Http { .. } => self.ask(Method::GET, "/models", Vec::new(), asking).await,
            Self::Replay(_) => Ok(Answer {
                content_type: Some(JSON),
                body: Pieces::Replayed(VecDeque::from([Bytes::from_static(
                    br#"{"object":"list","data":[{"id":"replay","object":"model","created":0,"owned_by":"plaincall"}]}"#,
                )])),
                idle: Duration::MAX,
            }),
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        asking: &Asking,
    ) -> Result<Answer, Refusal> {
        let Self::Http {
            client,
            url,
            key,
            timeouts,
        } = self
        else {
            return Err(Refusal::upstream("there is no server"));
        };
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST_ID, asking.request_id.clone());
        if let Some(key) = key.as_ref().or(asking.authorization.as_ref()) {
            headers.insert(AUTHORIZATION, key.clone());
        }
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, JSON);
        }
        let body = Bytes::from(body);
        let address = format!("{url}{path}");
        let mut pauses = PAUSES.iter();
        let response = loop {
            let request = client
                .request(method.clone(), &address)
                .headers(headers.clone());
            let sent = request.body(body.clone()).send();
            match tokio::time::timeout(timeouts.first_byte, sent).await {
                Ok(Ok(response)) => break response,
                // Nothing has been sent yet, so it can be sent again.
                Ok(Err(error)) if error.is_connect() => {
                    let Some(pause) = pauses.next() else {
                        let error = sentence(&error);
                        let message = format!("the model's server cannot be reached: {error}");
                        return Err(Refusal::upstream(message));
                    };
                    tokio::time::sleep(*pause).await;
                }
                Ok(Err(error)) => return Err(broken(&error)),
                Err(_) => return Err(late("has not begun to answer", timeouts.first_byte)),
            }
        };
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).cloned();
        let mut answer = Answer {
            content_type: response.headers().get(CONTENT_TYPE).cloned(),
            body: Pieces::Http(response),
            idle: timeouts.idle,
        };
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let body = answer.begin(ERROR_BYTES).await;
        let mut error = read_error(&body);
        if error.message.as_deref().is_none_or(str::is_empty) {
            error = ErrorObject::new(
                "upstream_error",
                format!("the model's server has answered with the status {status}"),
            );
        }
        let mut refusal = Refusal::of_upstream(status, error);
        refusal.retry_after = retry_after.and_then(|value| value.to_str().ok().map(str::to_owned));
        // Only errors are told as such.
        if !(400..600).contains(&status) {
            refusal.status = 502;
        }
        Err(refusal)
    }
}

impl Answer {
    /// The next piece of the body.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, Refusal> {
        match &mut self.body {
            Pieces::Replayed(pieces) => Ok(pieces.pop_front()),
            Pieces::Http(response) => {
                match tokio::time::timeout(self.idle, response.chunk()).await {
                    Ok(Ok(piece)) => Ok(piece),
                    Ok(Err(error)) => Err(broken(&error)),
                    Err(_) => Err(late("has fallen silent", self.idle)),
                }
            }
        }
    }

    /// The whole body.
    pub(super) async fn whole(&mut self, most: usize) -> Result<Vec<u8>, Refusal> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await? {
            if body.len() + piece.len() > most {
                let message =
                    format!("the answer of the model's server has more than {most} bytes");
                return Err(Refusal::upstream(message));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// The beginning of the body, as far as it comes.
    async fn begin(&mut self, most: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < most
            && let Ok(Some(piece)) = self.piece().await
        {
            body.extend_from_slice(&piece);
        }
        body.truncate(most);
        body
    }

    /// Whether it is JSON, and no stream.
    pub(super) fn is_json(&self) -> bool {
        let value = self.content_type.as_ref();
        let text = value.and_then(|value| value.to_str().ok());
        text.is_some_and(|text| text.starts_with("application/json"))
    }
}

fn broken(error: &reqwest::Error) -> Refusal {
    let error = sentence(error);
    Refusal::upstream(format!(
        "the connection to the model's server broke: {error}"
    ))
}

fn late(what: &str, time: Duration) -> Refusal {
    let seconds = time.as_secs();
    let message = format!("the model's server {what} for {seconds} seconds");
    Refusal::new(504, ErrorObject::new("timeout_error", message))
}

/// An error with all its causes, without the address, which may hold a secret.
fn sentence(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let colon = if text.is_empty() { "" } else { ": " };
        let _ = write!(text, "{colon}{error}");
        cause = error.source();
    }
    if text.is_empty() {
        "something went wrong".to_owned()
    } else {
        text
    }
}
