//! Requests.

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
use crate::response::{HttpResponse, Waits, within};

/// How long a connection is kept that nobody needs. Widely used servers close theirs after five seconds, and a request
/// that is sent in that moment is lost.
const KEPT: Duration = Duration::from_secs(4);
/// A proxy cannot reach what only this machine can.
const NEVER_BY_PROXY: &str = "localhost,127.0.0.0/8,::1";

/// How connections are made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpSettings {
    /// How long a connection may take to come about, TLS and all. Default: 10 seconds.
    pub connect: Duration,
    /// Through which proxies. Default: none.
    pub proxy: Option<Proxy>,
    /// To which addresses a name may lead; addresses that are written as such are not looked at. Default: all.
    pub allow: Option<fn(IpAddr) -> bool>,
    /// How many bytes a connection may hold before they are wanted, which is also the longest head of a response. At
    /// least 8 KiB. Default: about 400 KiB.
    pub buffer: Option<usize>,
    /// How many connections to one server are kept that nobody needs. Default: all.
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

/// Proxies, as the environment variables `http_proxy`, `https_proxy` and `no_proxy` name them. `localhost` and the
/// addresses of this machine are never asked for through one.
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

    fn matcher(&self) -> Result<Matcher, HttpError> {
        let of = |url: &Option<String>, kind: &str| {
            let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
            match url {
                None => return Ok(String::new()),
                Some(url) if url.parse().is_ok_and(|uri| is_http(&uri)) => return Ok(url.clone()),
                Some(_) => {}
            }
            // What stands there may hold a password: it is not repeated.
            let words =
                format!("the proxy for {kind} is no address such as http://proxy.example:3128");
            Err(HttpError::new(HttpErrorKind::Settings, words))
        };
        let matcher = Matcher::builder()
            .http(of(&self.http, "http")?)
            .https(of(&self.https, "https")?)
            .no(format!("{NEVER_BY_PROXY},{}", self.except));
        Ok(matcher.build())
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

/// Sends requests and keeps connections. A clone shares them.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    proxies: Option<Arc<Matcher>>,
}

impl HttpClient {
    /// A client with these settings.
    ///
    /// # Errors
    /// The address of a proxy is none, or TLS cannot be used.
    pub fn new(settings: &HttpSettings) -> Result<Self, HttpError> {
        let proxies = settings.proxy.as_ref().map(Proxy::matcher).transpose()?;
        let proxies = proxies.map(Arc::new);
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
        Ok(Self { client, proxies })
    }

    /// Sends a request, and waits for the head of the response. Dropping the future closes the connection.
    ///
    /// # Errors
    /// No connection came about, or no head in time. A status that is none of success is no error.
    pub async fn send(
        &self,
        request: Request<Bytes>,
        waits: Waits,
    ) -> Result<HttpResponse, HttpError> {
        let asked = Instant::now();
        let first = waits.first.min(waits.whole);
        let what = "has not begun to answer";
        let response = within(first, what, None, first, self.request(request)).await??;
        Ok(HttpResponse::begun(response, waits, asked))
    }

    /// Sends a request, and waits for the head of the response as long as it takes.
    ///
    /// # Errors
    /// No connection came about, or it broke.
    pub async fn request(&self, request: Request<Bytes>) -> Result<Response<Incoming>, HttpError> {
        let mut request = request.map(Full::new);
        if let Some(proxies) = &self.proxies
            && request.uri().scheme() == Some(&Scheme::HTTP)
            && let Some(proxy) = proxies.intercept(request.uri())
            && let Some(value) = proxy.basic_auth()
        {
            let headers = request.headers_mut();
            headers.insert(PROXY_AUTHORIZATION, value.clone());
        }
        let sent = self.client.request(request).await;
        sent.map_err(|error| HttpError::sending(&error))
    }
}
