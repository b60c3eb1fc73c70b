//! A model's server, asked over HTTP.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
use axum::http::uri::Scheme;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service as _, service_fn};

use crate::refusal::Refusal;
use crate::server::config::{ConfigError, GatewayConfig, Retries, can_be_shown};

/// How long is waited until a connection is tried again: this, then twice as long, and so on.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest of these waits.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How many bytes a connection reads on before they are wanted: the fewest that `hyper` can be held to. The head of an
/// answer must fit in it too.
const CONNECTION_BUFFER: usize = 8 << 10;
/// How long a connection is kept that nobody needs. Widely used servers close theirs after five seconds, and a request
/// that is sent in that very moment is lost.
const KEPT: Duration = Duration::from_secs(4);

type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;

/// A server that speaks the `OpenAI` API.
pub(super) struct HttpServer {
    client: Client<Connector, Body>,
    /// The beginning of its addresses, without a slash at the end.
    base: String,
    key: Option<HeaderValue>,
    retries: Retries,
    /// How often a request was sent again.
    retried: AtomicU64,
}

impl HttpServer {
    pub(super) fn new(
        url: &str,
        key: Option<&str>,
        config: &GatewayConfig,
    ) -> Result<Self, ConfigError> {
        let base = base(url).map_err(ConfigError)?;
        let bearer = |key: &str| {
            let header = can_be_shown(key).then(|| HeaderValue::from_str(&format!("Bearer {key}")));
            header.and_then(Result::ok)
        };
        if key.is_some_and(|key| bearer(key).is_none()) {
            let message =
                "the key of the model's server is empty, or has characters that no header can hold";
            return Err(ConfigError(message.to_owned()));
        }
        let mut key = key.and_then(bearer);
        if let Some(key) = &mut key {
            key.set_sensitive(true);
        }
        let connector = connector(&base, config.timeouts.connect)
            .map_err(|error| ConfigError(format!("TLS cannot be used: {error}")))?;
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT)
            .pool_max_idle_per_host(config.limits.concurrent)
            .http1_max_buf_size(CONNECTION_BUFFER)
            .build(connector);
        Ok(Self {
            client,
            base,
            key,
            retries: config.retries,
            retried: AtomicU64::new(0),
        })
    }

    /// How often a request was sent again.
    pub(super) fn retried(&self) -> u64 {
        self.retried.load(Ordering::Relaxed)
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Asks, and waits for the head of the answer.
    ///
    /// What the server has not taken up is sent again: if no connection came about, and if it has said that it is busy
    /// and when to come again. `hyper` does the same with a connection that was closed before anything was written to it.
    /// A request that has been sent is not sent again, since the server may be working on it.
    pub(super) async fn ask(
        &self,
        method: &Method,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Refusal> {
        if let Some(key) = &self.key {
            headers.insert(AUTHORIZATION, key.clone());
        }
        let address: Uri = format!("{}{path}", self.base)
            .parse()
            .map_err(|_| Refusal::request("the path of the request cannot be an address", None))?;
        let mut pause = FIRST_PAUSE;
        let mut left = self.retries.most;
        loop {
            let mut request = Request::new(Body::from(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = address.clone();
            *request.headers_mut() = headers.clone();
            let wait = match self.client.request(request).await {
                Ok(response) => match self.retries.wait_for(&response) {
                    Some(wait) if left > 0 => wait,
                    _ => return Ok(response),
                },
                Err(error) if error.is_connect() && left > 0 => pause,
                Err(error) => return Err(failed(&error)),
            };
            left -= 1;
            pause = (pause * 2).min(LONGEST_PAUSE);
            tokio::time::sleep(wait).await;
            self.retried.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Retries {
    /// How long the server wants to be left alone before it takes up the request, if that can be waited for.
    fn wait_for(&self, response: &Response<Incoming>) -> Option<Duration> {
        if !matches!(response.status().as_u16(), 429 | 503) {
            return None;
        }
        let seconds: f64 = response
            .headers()
            .get(RETRY_AFTER)?
            .to_str()
            .ok()?
            .trim()
            .parse()
            .ok()?;
        let wait = Duration::try_from_secs_f64(seconds).ok()?;
        (wait <= self.longest_wait).then_some(wait.max(FIRST_PAUSE))
    }
}

/// The beginning of the addresses of a server, without a slash at the end.
fn base(url: &str) -> Result<String, String> {
    // What stands there is not said again: it may be a password.
    let behind_scheme = url.split_once("://").map_or(url, |(_, behind)| behind);
    let host = behind_scheme.split(['/', '?', '#']).next();
    if host.is_some_and(|host| host.contains('@')) {
        return Err("the address of the model's server has a name or a password in it, which everybody could read in the list of processes; keys are given apart from it".to_owned());
    }
    if behind_scheme == url && !url.is_empty() && !url.starts_with('/') {
        return Err(format!(
            "{url}: an address begins with http:// or https://; did you mean http://{url}?"
        ));
    }
    let uri: Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
    let is_http = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
    if !uri.scheme().is_some_and(is_http) || uri.authority().is_none() {
        return Err(format!(
            "{url}: an address that begins with http:// or https:// is needed, such as http://localhost:11434/v1"
        ));
    }
    if uri.query().is_some() || url.contains('#') {
        return Err(format!(
            "{url}: an address without `?` and `#` is needed; paths such as /chat/completions are put behind it"
        ));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// What makes connections to this address, each within this time, TLS and all.
fn connector(base: &str, within: Duration) -> io::Result<Connector> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    let provider = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new();
    let builder = if base.starts_with("http://") {
        // Nobody need be trusted, and a system without certificates will do.
        let tls = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(RootCertStore::empty());
        builder.with_tls_config(tls.with_no_client_auth())
    } else {
        builder.with_provider_and_platform_verifier(provider)?
    };
    let https: HttpsConnector<HttpConnector> =
        builder.https_or_http().enable_http1().wrap_connector(tcp);
    let connect = service_fn(move |address: Uri| {
        let mut https = https.clone();
        async move {
            let connected = tokio::time::timeout(within, https.call(address)).await;
            connected.unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time").into())
            })
        }
    });
    Ok(BoxCloneSyncService::new(connect))
}

/// Why there is no answer.
fn failed(error: &ClientError) -> Refusal {
    let causes = causes(error);
    if error.is_connect() {
        return Refusal::upstream(format!("the model's server cannot be reached: {causes}"));
    }
    Refusal::upstream(format!(
        "the connection to the model's server broke: {causes}"
    ))
}

/// An error with all its causes, but not itself: it may hold the address, and that a secret.
pub(super) fn causes(error: &dyn Error) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = in_words(error);
        // Some repeat what their cause says.
        if !text.ends_with(&said) {
            let colon = if text.is_empty() { "" } else { ": " };
            let _ = write!(text, "{colon}{said}");
        }
        cause = error.source();
    }
    if text.is_empty() {
        "something went wrong".to_owned()
    } else {
        text
    }
}

/// One error in words. What is wrong with a certificate is told by names that only programmers know.
fn in_words(error: &(dyn Error + 'static)) -> String {
    let mut inner = error;
    // It is packed more than once, and what is packed so is not told as a cause.
    while let Some(packed) = inner
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        inner = packed;
    }
    match inner.downcast_ref() {
        Some(rustls::Error::InvalidCertificate(wrong)) => certificate(wrong).to_owned(),
        _ => error.to_string(),
    }
}

fn certificate(wrong: &CertificateError) -> &'static str {
    use CertificateError as Wrong;
    match wrong {
        Wrong::Expired | Wrong::ExpiredContext { .. } => "its certificate has expired",
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => "its certificate is not valid yet",
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => {
            "its certificate is for another name"
        }
        Wrong::Revoked => "its certificate was revoked",
        Wrong::UnknownIssuer => "its certificate is signed by nobody whom this system trusts",
        _ => "its certificate cannot be trusted; it may have signed itself",
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use rustls::CertificateError;

    use super::{base, causes};

    /// An error whose cause is another.
    #[derive(Debug)]
    struct Because(io::Error);

    impl std::fmt::Display for Because {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("it failed")
        }
    }

    impl std::error::Error for Because {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn why_it_failed() {
        let certificate = |wrong| io::Error::other(rustls::Error::InvalidCertificate(wrong));
        for (error, expected) in [
            (
                certificate(CertificateError::Expired),
                "its certificate has expired",
            ),
            (
                certificate(CertificateError::UnknownIssuer),
                "nobody whom this system trusts",
            ),
            (
                certificate(CertificateError::BadEncoding),
                "cannot be trusted",
            ),
            (
                io::Error::other(certificate(CertificateError::NotValidForName)),
                "for another name",
            ),
            (io::Error::other("cut"), "cut"),
        ] {
            let told = causes(&Because(error));
            assert!(told.contains(expected), "{told}");
            assert!(!told.contains("it failed"), "{told}");
        }
    }

    #[test]
    fn addresses() {
        let table = [
            ("http://localhost:11434/v1", Ok("http://localhost:11434/v1")),
            (
                "http://localhost:11434/v1/",
                Ok("http://localhost:11434/v1"),
            ),
            ("https://api.example", Ok("https://api.example")),
            (
                "https://api.example/openai/v1//",
                Ok("https://api.example/openai/v1"),
            ),
            ("http://[::1]:8000/v1", Ok("http://[::1]:8000/v1")),
            (
                "localhost:11434",
                Err("did you mean http://localhost:11434?"),
            ),
            (
                "localhost:11434/v1",
                Err("did you mean http://localhost:11434/v1?"),
            ),
            ("api.example/v1", Err("did you mean http://api.example/v1?")),
            ("name:word@a/v1", Err("a name or a password")),
            ("/v1", Err("begins with http://")),
            ("ftp://a/v1", Err("begins with http://")),
            ("a b", Err("a b: ")),
            ("", Err(": ")),
            ("http://", Err("http://: ")),
            ("http://a/v1?key=x", Err("without `?`")),
            ("http://a/v1#x", Err("without `?`")),
            ("http://name:word@a/v1", Err("a name or a password")),
            ("https://name@a", Err("a name or a password")),
        ];
        for (url, expected) in table {
            match (base(url), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(words)) => {
                    assert!(
                        found.contains(words) && !found.contains("word@"),
                        "{url}: {found}"
                    );
                }
                (found, _) => panic!("{url}: {found:?}"),
            }
        }
    }
}
