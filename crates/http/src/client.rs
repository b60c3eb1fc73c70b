//! The client.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::PROXY_AUTHORIZATION;
use http::uri::Scheme;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::Instant;

use crate::connect::{Connector, connector};
use crate::error::{HttpError, HttpErrorKind};
use crate::response::{HttpResponse, Waits};

/// How long idle connections are kept. Many servers close theirs after five seconds, and a request sent at that moment is
/// lost.
const KEPT: Duration = Duration::from_secs(4);
/// A proxy cannot reach loopback addresses.
const NEVER_BY_PROXY: &str = "localhost,127.0.0.0/8,::1";

/// Settings of connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpSettings {
    /// The timeout of connecting, including TLS. Default: 10 seconds.
    pub connect: Duration,
    /// The proxies. Default: none.
    pub proxy: Option<Proxy>,
    /// A filter of the addresses that a host name resolves to. Literal addresses are not filtered. Default: all.
    pub allow: Option<fn(IpAddr) -> bool>,
    /// The size of the read buffer, which also limits the headers of a response. At least 8 KiB. Default: about 400 KiB.
    pub buffer: Option<usize>,
    /// The most idle connections per server. Default: no limit.
    pub kept: usize,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            proxy: None,
            allow: None,
            buffer: None,
            kept: usize::MAX,
        }
    }
}

/// Proxies, like the environment variables `http_proxy`, `https_proxy` and `no_proxy`. Loopback addresses never use one.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proxy {
    /// The proxy for `http:` URLs.
    pub http: Option<String>,
    /// The proxy for `https:` URLs.
    pub https: Option<String>,
    /// Names, addresses and networks without a proxy, separated by commas; `*` for all.
    pub except: String,
}

impl Proxy {
    /// Creates one proxy for all URLs.
    pub fn all(url: impl Into<String>) -> Self {
        let url = url.into();
        Self {
            http: Some(url.clone()),
            https: Some(url),
            except: String::new(),
        }
    }

    /// Returns which requests use a proxy, and the schemes whose proxy has an unusable address.
    fn matcher(&self) -> (Matcher, [bool; 2]) {
        let http = self.http.as_deref().map(usable);
        let https = self.https.as_deref().map(usable);
        let unusable = [&http, &https].map(|url| matches!(url, Some(None)));
        // Requests that need a proxy are rejected before they reach this address.
        let url = |url: Option<Option<String>>| match url {
            None => String::new(),
            Some(url) => url.unwrap_or_else(|| "http://proxy.invalid".to_owned()),
        };
        let matcher = Matcher::builder()
            .http(url(http))
            .https(url(https))
            .no(format!("{NEVER_BY_PROXY},{}", self.except));
        (matcher.build(), unusable)
    }
}

/// Returns the URL of a proxy. As for other programs, the scheme may be missing.
fn usable(url: &str) -> Option<String> {
    let url = if url.contains("://") {
        url.to_owned()
    } else {
        format!("http://{url}")
    };
    let is_http =
        |uri: Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    url.parse().is_ok_and(is_http).then_some(url)
}

impl fmt::Debug for Proxy {
    /// Omits the URLs, which may contain passwords.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Proxy")
            .field("http", &self.http.is_some())
            .field("https", &self.https.is_some())
            .field("except", &self.except)
            .finish()
    }
}

/// An HTTP client with a connection pool. Clones share it.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    proxies: Option<Arc<Matcher>>,
    /// Whether the proxies for `http:` and `https:` have unusable addresses.
    unusable: [bool; 2],
}

impl HttpClient {
    /// Creates a client.
    ///
    /// # Errors
    /// Returns an error if TLS is not available.
    pub fn new(settings: &HttpSettings) -> Result<Self, HttpError> {
        let (proxies, unusable) = settings.proxy.as_ref().map(Proxy::matcher).unzip();
        let (proxies, unusable) = (proxies.map(Arc::new), unusable.unwrap_or_default());
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT)
            .pool_max_idle_per_host(settings.kept);
        if let Some(bytes) = settings.buffer {
            builder.http1_max_buf_size(bytes);
        }
        let client = builder.build(connector(settings, proxies.clone())?);
        Ok(Self {
            client,
            proxies,
            unusable,
        })
    }

    /// Sends a request and waits for the headers of the response. Dropping the future closes the connection.
    ///
    /// # Errors
    /// Returns an error if connecting fails or the headers do not arrive in time. An error status is not an error.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        waits: Waits,
    ) -> Result<HttpResponse, HttpError> {
        let asked = Instant::now();
        let first = waits.first.min(waits.whole);
        let response = tokio::time::timeout(first, self.request(request)).await;
        let late = |_| HttpError::late("has not started to respond", first);
        let response = response.map_err(late)??;
        Ok(HttpResponse::begun(response, waits, asked))
    }

    /// Sends a request and waits for the headers of the response without a timeout.
    ///
    /// # Errors
    /// Returns an error if the connection fails, or the request needs a proxy whose URL is invalid.
    pub async fn request(&self, request: Request<Bytes>) -> Result<Response<Incoming>, HttpError> {
        let mut request = request.map(Full::new);
        let proxies = self.proxies.as_ref();
        let proxy = proxies.and_then(|proxies| proxies.intercept(request.uri()));
        let is_http = request.uri().scheme() == Some(&Scheme::HTTP);
        let [http, https] = self.unusable;
        if proxy.is_some() && if is_http { http } else { https } {
            // The URL may contain a password, so the message does not repeat it.
            let kind = if is_http { "http" } else { "https" };
            let words = format!(
                "the proxy for {kind} is invalid; expected an address such as http://proxy.example:3128"
            );
            return Err(HttpError::new(HttpErrorKind::Settings, words));
        }
        if is_http
            && let Some(proxy) = proxy
            && let Some(value) = proxy.basic_auth()
        {
            let headers = request.headers_mut();
            headers.insert(PROXY_AUTHORIZATION, value.clone());
        }
        let sent = self.client.request(request).await;
        sent.map_err(|error| HttpError::sending(&error))
    }
}
