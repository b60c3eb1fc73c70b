//! How this crate goes to servers: one way for models, MCP servers and pages.
//!
//! - TLS is that of `rustls` with `ring`; whom to trust is what the system says. On a system without certificates plain
//!   HTTP works, and every certificate is refused.
//! - The environment is never read: no proxy is used unless [`HttpSettings::proxy`] names one.
//! - Redirects are not followed unless who asks follows them: a key must not go to a place that nobody named.
//! - Every wait has an end, and every body a longest length. The head of an answer is bounded by `hyper`: about 400 KiB,
//!   100 headers.
#![cfg_attr(
    not(all(feature = "builtin", feature = "http", feature = "mcp")),
    allow(dead_code, reason = "each feature uses a part of it")
)]

use std::error::Error;
use std::fmt::{self, Write as _};
use std::future::Future;
use std::io;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, ClientBuilder, NoProxy, RequestBuilder, Response, Url, redirect};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::time::Instant;

/// How long a connection is kept that nobody needs. Widely used servers close theirs after five seconds, and a request
/// that is sent in that very moment is lost.
const KEPT: Duration = Duration::from_secs(4);
/// A proxy cannot reach what only this machine can.
const NEVER_BY_PROXY: &str = "localhost,127.0.0.0/8,::1";
/// How long is waited for the body of an error: the status is known already.
const ERROR_TIME: Duration = Duration::from_secs(2);
/// How much of such a body is read, in bytes.
const ERROR_BYTES: usize = 64 << 10;

/// How connections are made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpSettings {
    /// How long a connection may take to come about, TLS and all. By default 10 seconds.
    pub connect: Duration,
    /// Through which proxies; by default none.
    pub proxy: Option<Proxy>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            proxy: None,
        }
    }
}

/// Proxies, as the environment variables `http_proxy`, `https_proxy` and `no_proxy` name them. What this machine alone
/// can reach (`localhost` and its addresses) is never asked for through one.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proxy {
    /// For addresses with `http:`.
    pub http: Option<String>,
    /// For addresses with `https:`.
    pub https: Option<String>,
    /// Names, addresses and networks that are asked without, separated by commas; `*` for all.
    pub except: String,
}

impl Proxy {
    /// One proxy for everything.
    pub fn all(url: impl Into<String>) -> Self {
        let url = url.into();
        Self {
            http: Some(url.clone()),
            https: Some(url),
            except: String::new(),
        }
    }
}

impl fmt::Debug for Proxy {
    /// Without the addresses, which may hold passwords.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Proxy")
            .field("http", &self.http.is_some())
            .field("https", &self.https.is_some())
            .field("except", &self.except)
            .finish()
    }
}

impl HttpSettings {
    /// A client with these settings, which follows no redirects.
    ///
    /// # Errors
    /// The address of a proxy is none.
    pub(crate) fn client(&self) -> Result<Client, HttpError> {
        self.builder()?
            .build()
            .map_err(|error| HttpError::settings(&error))
    }

    /// What makes such a client, for who wants to settle more.
    ///
    /// # Errors
    /// The address of a proxy is none.
    pub(crate) fn builder(&self) -> Result<ClientBuilder, HttpError> {
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls()?)
            .connect_timeout(self.connect)
            .pool_idle_timeout(KEPT)
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy();
        if let Some(proxy) = &self.proxy {
            let except = NoProxy::from_string(&format!("{NEVER_BY_PROXY},{}", proxy.except));
            let kinds: [(_, &str, MakeProxy); 2] = [
                (&proxy.http, "http", |url| reqwest::Proxy::http(url)),
                (&proxy.https, "https", |url| reqwest::Proxy::https(url)),
            ];
            for (url, kind, make) in kinds {
                let Some(url) = url else { continue };
                // What stands there may hold a password: it is not said again.
                let wrong = || {
                    HttpError::new(
                        HttpErrorKind::Settings,
                        format!(
                            "the proxy for {kind} is no address such as http://proxy.example:3128"
                        ),
                    )
                };
                let url = Url::parse(url).map_err(|_| wrong())?;
                if !matches!(url.scheme(), "http" | "https") {
                    return Err(wrong());
                }
                let made = make(url).map_err(|_| wrong())?;
                builder = builder.proxy(made.no_proxy(except.clone()));
            }
        }
        Ok(builder)
    }
}

type MakeProxy = fn(Url) -> reqwest::Result<reqwest::Proxy>;

/// How connections are secured. Whom the system trusts is read once: there are hundreds, and every client wants them.
fn tls() -> Result<ClientConfig, HttpError> {
    static READ: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read.clone());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = || {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        builder
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                HttpError::new(
                    HttpErrorKind::Settings,
                    format!("TLS cannot be used: {error}"),
                )
            })
    };
    match versions()?.with_platform_verifier() {
        Ok(builder) => Ok(READ.get_or_init(|| builder.with_no_client_auth()).clone()),
        // Nobody is trusted, and what needs no trust still works.
        Err(_) => Ok(versions()?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()),
    }
}

/// How long is waited for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// For its head.
    pub first: Duration,
    /// For each piece of its body.
    pub idle: Duration,
    /// For all of it, from the moment of asking.
    pub whole: Duration,
}

impl Default for Waits {
    /// A minute for the head and for each piece, five for all.
    fn default() -> Self {
        Self {
            first: Duration::from_mins(1),
            idle: Duration::from_mins(1),
            whole: Duration::from_mins(5),
        }
    }
}

impl Waits {
    /// The same time for all.
    pub(crate) const fn all(time: Duration) -> Self {
        Self {
            first: time,
            idle: time,
            whole: time,
        }
    }
}

/// An answer whose head has come.
pub(crate) struct Answer {
    response: Response,
    idle: Duration,
    whole: Duration,
    deadline: Option<Instant>,
}

/// Sends a request, and waits for the head of the answer. Dropping the future, or the answer, closes the connection.
///
/// # Errors
/// No connection came about, or no head in time. A status that is none of success is no error.
pub(crate) async fn send(request: RequestBuilder, waits: Waits) -> Result<Answer, HttpError> {
    // A time so far away that no clock shows it is none.
    let deadline = Instant::now().checked_add(waits.whole);
    let first = waits.first.min(waits.whole);
    let sent = within(
        first,
        deadline,
        waits.whole,
        "has not begun to answer",
        request.send(),
    )
    .await?;
    Ok(Answer {
        response: sent.map_err(|error| HttpError::sending(&error))?,
        idle: waits.idle,
        whole: waits.whole,
        deadline,
    })
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// What kind of body it has, in small letters; empty if that is not said.
    pub(crate) fn content_type(&self) -> String {
        let value = self.headers().get(CONTENT_TYPE);
        let text = value.and_then(|value| value.to_str().ok());
        text.unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Where it came from, after redirects.
    pub(crate) fn url(&self) -> &Url {
        self.response.url()
    }

    /// The next piece of the body. Dropping the future loses nothing.
    ///
    /// # Errors
    /// Nothing came in time, or the connection broke.
    pub(crate) async fn piece(
        &mut self,
    ) -> Result<Option<impl Deref<Target = [u8]> + use<>>, HttpError> {
        let chunk = self.response.chunk();
        let piece = within(
            self.idle,
            self.deadline,
            self.whole,
            "has fallen silent",
            chunk,
        )
        .await?;
        piece.map_err(|error| HttpError::reading(&error))
    }

    /// The whole body.
    ///
    /// # Errors
    /// It is longer than this many bytes, or did not come in time, or the connection broke.
    pub(crate) async fn body(&mut self, most: usize) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await? {
            if body.len() + piece.len() > most {
                return Err(HttpError::new(
                    HttpErrorKind::TooLong,
                    format!("has answered with more than {most} bytes"),
                ));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// The beginning of the body of an error, as far as it comes soon.
    pub(crate) async fn error_body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        let gathered = async {
            while body.len() < ERROR_BYTES
                && let Ok(Some(piece)) = self.piece().await
            {
                body.extend_from_slice(&piece);
            }
        };
        // What has come is enough.
        let _ = tokio::time::timeout(ERROR_TIME, gathered).await;
        body.truncate(ERROR_BYTES);
        body
    }
}

/// Waits this long at most, and not beyond the deadline of the whole.
async fn within<F: Future>(
    wait: Duration,
    deadline: Option<Instant>,
    whole: Duration,
    what: &str,
    future: F,
) -> Result<F::Output, HttpError> {
    let waited = tokio::time::timeout(wait, future);
    let waited = match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, waited).await,
        None => Ok(waited.await),
    };
    let late = |what: &str, time: Duration| {
        HttpError::new(
            HttpErrorKind::Timeout,
            format!("{what} for {}", seconds(time)),
        )
    };
    match waited {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(_)) => Err(late(what, wait)),
        Err(_) => Err(late("has not finished its answer", whole)),
    }
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        _ if time < Duration::from_secs(2) => format!("{} ms", time.as_millis()),
        seconds => format!("{seconds} seconds"),
    }
}

/// Why there is no answer, or only a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpError {
    pub(crate) kind: HttpErrorKind,
    /// What the server, which is named before it, has done.
    words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpErrorKind {
    /// The settings cannot work. Its words are a sentence without a subject before it.
    Settings,
    /// No connection came about.
    Connect,
    /// Something did not come in time.
    Timeout,
    /// The connection broke.
    Broken,
    /// The body is too long.
    TooLong,
}

impl HttpError {
    fn new(kind: HttpErrorKind, words: impl Into<String>) -> Self {
        Self {
            kind,
            words: words.into(),
        }
    }

    /// No client could be made.
    pub(crate) fn settings(error: &reqwest::Error) -> Self {
        Self::new(
            HttpErrorKind::Settings,
            format!("no connections can be made: {}", causes(error)),
        )
    }

    fn sending(error: &reqwest::Error) -> Self {
        let causes = causes(error);
        if error.is_connect() {
            return Self::new(
                HttpErrorKind::Connect,
                format!("cannot be reached: {causes}"),
            );
        }
        if error.is_builder() || error.is_redirect() {
            return Self::new(HttpErrorKind::Broken, format!("cannot be asked: {causes}"));
        }
        Self::new(
            HttpErrorKind::Broken,
            format!("has closed the connection: {causes}"),
        )
    }

    fn reading(error: &reqwest::Error) -> Self {
        Self::new(
            HttpErrorKind::Broken,
            format!("has broken off its answer: {}", causes(error)),
        )
    }

    /// The error in words, of a server that is called so: `the model's server at http://…`.
    pub(crate) fn told(&self, server: &str) -> String {
        match self.kind {
            HttpErrorKind::Settings => self.words.clone(),
            _ => format!("{server} {}", self.words),
        }
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.told("the server"))
    }
}

impl Error for HttpError {}

/// An error with all its causes, but not itself: it may hold the address, and that a secret.
pub(crate) fn causes(error: &dyn Error) -> String {
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
    use super::*;

    /// An error whose cause is another.
    #[derive(Debug)]
    struct Because(io::Error);

    impl fmt::Display for Because {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("it failed")
        }
    }

    impl Error for Because {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
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
                "its certificate is signed by nobody whom this system trusts",
            ),
            (
                io::Error::other(certificate(CertificateError::NotValidForName)),
                "its certificate is for another name",
            ),
            (
                certificate(CertificateError::BadEncoding),
                "its certificate cannot be trusted; it may have signed itself",
            ),
            (io::Error::other("cut"), "cut"),
        ] {
            assert_eq!(causes(&Because(error)), expected);
        }
    }

    #[test]
    fn proxies() {
        let secret = "http://name:word@proxy.example:3128";
        for (url, is_good) in [
            (secret, true),
            ("https://proxy.example", true),
            ("proxy.example", false),
            ("proxy.example:3128", false),
            ("socks5://name:word@proxy.example", false),
            ("", false),
        ] {
            let settings = HttpSettings {
                proxy: Some(Proxy::all(url)),
                ..HttpSettings::default()
            };
            let made = settings.client();
            assert_eq!(made.is_ok(), is_good, "{url}");
            let told = format!("{settings:?} {:?}", made.map_err(|error| error.to_string()));
            assert!(!told.contains("word"), "{told}");
        }
    }
}
