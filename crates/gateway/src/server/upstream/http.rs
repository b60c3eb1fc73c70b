//! A model's server, asked over HTTP.

use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, Method};
use reqwest::{Client, Response};

use crate::refusal::Refusal;
use crate::server::config::{ConfigError, GatewayConfig};

/// How often a connection is tried, and how long is waited in between.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];

/// A server that speaks the `OpenAI` API.
pub(super) struct HttpServer {
    client: Client,
    url: String,
    key: Option<HeaderValue>,
}

impl HttpServer {
    pub(super) fn new(
        url: &str,
        key: Option<&str>,
        config: &GatewayConfig,
    ) -> Result<Self, ConfigError> {
        let refused = |message: String| Err(ConfigError(message));
        match reqwest::Url::parse(url) {
            Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => {}
            Ok(_) => {
                return refused(format!(
                    "{url}: an address that begins with http:// or https:// is needed"
                ));
            }
            Err(error) => return refused(format!("{url}: {error}")),
        }
        let bearer = |key: &str| HeaderValue::from_str(&format!("Bearer {key}"));
        let Ok(mut key) = key.map(bearer).transpose() else {
            let message = "the key of the model's server has characters that no header can hold";
            return refused(message.to_owned());
        };
        if let Some(key) = &mut key {
            key.set_sensitive(true);
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
            .map_err(|error| ConfigError(sentence(&error)))?;
        Ok(Self {
            client,
            url: url.trim_end_matches('/').to_owned(),
            key,
        })
    }

    /// Asks, and waits for the head of the answer.
    pub(super) async fn ask(
        &self,
        method: &Method,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, Refusal> {
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        let address = format!("{}{path}", self.url);
        let mut pauses = PAUSES.iter();
        loop {
            let request = self
                .client
                .request(method.clone(), &address)
                .headers(headers.clone());
            match request.body(body.clone()).send().await {
                Ok(response) => return Ok(response),
                // Nothing has been sent yet, so it can be sent again.
                Err(error) if error.is_connect() => {
                    let Some(pause) = pauses.next() else {
                        let error = sentence(&error);
                        let message = format!("the model's server cannot be reached: {error}");
                        return Err(Refusal::upstream(message));
                    };
                    tokio::time::sleep(*pause).await;
                }
                Err(error) => return Err(broken(&error)),
            }
        }
    }
}

/// The connection broke.
pub(super) fn broken(error: &reqwest::Error) -> Refusal {
    let error = sentence(error);
    Refusal::upstream(format!(
        "the connection to the model's server broke: {error}"
    ))
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
