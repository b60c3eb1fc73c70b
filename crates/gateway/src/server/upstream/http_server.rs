//! A model server over HTTP.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use hyper::body::Incoming;
use plaincall_http::{HttpClient, HttpSettings, base_url, check_certificates, retry_after};

use crate::error::GatewayError;
use crate::server::config::{ConfigError, GatewayConfig, Retries, is_valid_key};
use crate::server::upstream::{Base, failed};

/// The pause before the first retry. It doubles with each retry.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The read buffer of a connection, and the longest response head: the minimum that `hyper` accepts, in bytes.
const CONNECTION_BUFFER: usize = 8 << 10;

/// A server with the `OpenAI` API.
pub(crate) struct HttpServer {
    client: HttpClient,
    /// The base URL without a trailing slash.
    base: String,
    key: Option<HeaderValue>,
    /// Further headers of each request.
    headers: HeaderMap,
    retries: Retries,
    /// The number of retries.
    retried: AtomicU64,
}

impl HttpServer {
    pub(in crate::server) fn new(
        url: &str,
        key: Option<&str>,
        headers: &[(String, String)],
        config: &GatewayConfig,
    ) -> Result<Self, ConfigError> {
        let base = base(url).map_err(ConfigError)?;
        let bearer = |key: &str| {
            let header = is_valid_key(key).then(|| HeaderValue::from_str(&format!("Bearer {key}")));
            let mut header = header.and_then(Result::ok).ok_or_else(|| {
                let words = "the key for the model server is empty or contains characters that are not allowed in a header";
                ConfigError(words.to_owned())
            })?;
            header.set_sensitive(true);
            Ok(header)
        };
        let key = key.map(bearer).transpose()?;
        let mut settings = HttpSettings::default();
        settings.connect = config.timeouts.connect;
        settings.buffer = Some(CONNECTION_BUFFER);
        settings.kept = config.limits.concurrent;
        let client = HttpClient::new(&settings);
        let client = client.map_err(|error| ConfigError(error.to_string()))?;
        Ok(Self {
            client,
            base,
            key,
            headers: further(headers)?,
            retries: config.retries,
            retried: AtomicU64::new(0),
        })
    }

    /// Returns the number of retries.
    pub(in crate::server) fn retried(&self) -> u64 {
        self.retried.load(Ordering::Relaxed)
    }

    pub(in crate::server) fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request and waits for the head of the response. Retries only if no connection was established, or if the server
    /// is busy and asks for a retry: otherwise it may be working on the request already.
    pub(in crate::server) async fn ask(
        &self,
        method: Method,
        base: Base,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, GatewayError> {
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        let base = match base {
            Base::Api => &self.base,
            Base::Server => self.base.strip_suffix("/v1").unwrap_or(&self.base),
        };
        let address: Uri = format!("{base}{path}").parse().map_err(|_| {
            GatewayError::invalid_request("the request path is not part of a valid URL", None)
        })?;
        let mut pause = FIRST_PAUSE;
        let mut left = self.retries.max_retries;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = address;
        *request.headers_mut() = headers;
        loop {
            let wait = match self.client.request(request.clone()).await {
                Ok(response) => match self.retries.wait_for(&response) {
                    Some(wait) if left > 0 => wait,
                    _ => return Ok(response),
                },
                Err(error) if error.is_connect() && left > 0 => pause,
                Err(error) => return Err(failed(&error)),
            };
            left -= 1;
            pause = (pause * 2).min(MAX_PAUSE);
            tokio::time::sleep(wait).await;
            self.retried.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Retries {
    /// Returns the delay that the server requests before a retry, if it is short enough.
    fn wait_for(&self, response: &Response<Incoming>) -> Option<Duration> {
        if !matches!(response.status().as_u16(), 429 | 503) {
            return None;
        }
        let wait = retry_after(response.headers())?;
        (wait <= self.max_wait).then_some(wait.max(FIRST_PAUSE))
    }
}

/// Headers that belong to a connection or to a body.
const RESERVED: &str = "accept-encoding connection content-encoding content-length content-type expect host keep-alive te trailer transfer-encoding upgrade";

/// Checks further headers. Errors do not quote the values, which may be secrets.
fn further(headers: &[(String, String)]) -> Result<HeaderMap, ConfigError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let invalid = |why: &str| ConfigError(format!("the header `{name}` {why}"));
        let known = HeaderName::try_from(name.as_str());
        let known = known.map_err(|_| invalid("has an invalid name"))?;
        if RESERVED.split(' ').any(|reserved| known == reserved) {
            return Err(invalid("cannot be set; the gateway sets it itself"));
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| invalid("has a value with characters that are not allowed"))?;
        value.set_sensitive(true);
        map.insert(known, value);
    }
    Ok(map)
}

/// Checks a base URL. It has no query, which could contain a key that an answer quotes.
fn base(url: &str) -> Result<String, String> {
    let (base, query) = base_url(url)?;
    let uri: Uri = base.parse().map_err(|error| format!("{base}: {error}"))?;
    if query.is_some() {
        return Err(format!(
            "{base}: the base URL of a model server cannot contain `?` here; put keys in `key_env` or `headers`"
        ));
    }
    if uri.scheme_str() == Some("https") {
        check_certificates().map_err(|error| error.to_string())?;
    }
    Ok(base.to_owned())
}
