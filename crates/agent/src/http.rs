//! How this crate goes to servers: one way for models, MCP servers and pages.
//!
//! - TLS is that of `rustls` with `ring`; whom to trust is what the system says. On a system without certificates plain
//!   HTTP works, and every certificate is refused.
//! - The environment is never read: no proxy is used unless [`HttpSettings::proxy`] names one.
//! - Redirects are not followed unless who asks follows them: a key must not go to a place that nobody named.
//! - Every wait has an end, and every body that is read here a longest length, also that of a stream. The head of
//!   an answer is bounded by `hyper`: about 400 KiB, 100 headers.

#[cfg(any(feature = "builtin", feature = "http"))]
mod answer;

use std::error::Error;
use std::fmt::{self, Write as _};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::{Client, ClientBuilder, NoProxy, Url, redirect};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

#[cfg(any(feature = "builtin", feature = "http"))]
pub use answer::Waits;
#[cfg(any(feature = "builtin", feature = "http"))]
pub(crate) use answer::{Answer, send};

/// How long a connection is kept that nobody needs. Widely used servers close theirs after five seconds, and a request
/// that is sent in that very moment is lost.
const KEPT: Duration = Duration::from_secs(4);
/// A proxy cannot reach what only this machine can.
const NEVER_BY_PROXY: &str = "localhost,127.0.0.0/8,::1";

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
    #[cfg(feature = "http")]
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
    #[cfg(any(feature = "builtin", feature = "http"))]
    Connect,
    /// A machine answers, and nothing listens there.
    #[cfg(any(feature = "builtin", feature = "http"))]
    NobodyListens,
    /// Something did not come in time.
    #[cfg(any(feature = "builtin", feature = "http"))]
    Timeout,
    /// The connection broke.
    #[cfg(any(feature = "builtin", feature = "http"))]
    Broken,
    /// The body is too long.
    #[cfg(any(feature = "builtin", feature = "http"))]
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
    #[cfg(any(feature = "builtin", feature = "http"))]
    pub(crate) fn settings(error: &reqwest::Error) -> Self {
        Self::new(
            HttpErrorKind::Settings,
            format!("no connections can be made: {}", causes(error)),
        )
    }

    /// The error in words, of a server that is called so: `the model's server at http://…`.
    pub(crate) fn told(&self, server: &str) -> String {
        if self.kind == HttpErrorKind::Settings {
            self.words.clone()
        } else {
            format!("{server} {}", self.words)
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
            let made = settings.builder();
            assert_eq!(made.is_ok(), is_good, "{url}");
            let told = format!(
                "{settings:?} {:?}",
                made.err().map(|error| error.to_string())
            );
            assert!(!told.contains("word"), "{told}");
        }
    }
}
