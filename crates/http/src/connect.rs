//! Connections: names, proxies, TLS.

use std::error::Error;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use std::vec;

use http::Uri;
use http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{self, Connected, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::{TcpStream, lookup_host};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service as _, service_fn};

use crate::client::HttpSettings;
use crate::error::{HttpError, HttpErrorKind, NotAllowed};

/// The TCP keepalive of idle connections, so that routers keep their state.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

type Addresses = vec::IntoIter<SocketAddr>;
type Tcp = HttpConnector<BoxCloneSyncService<Name, Addresses, BoxError>>;
/// TLS to the server, possibly within TLS to a proxy.
type Stream = MaybeHttpsStream<MaybeHttpsStream<TokioIo<TcpStream>>>;
pub(crate) type Connector = BoxCloneSyncService<Uri, Connection, BoxError>;

pub(crate) fn connector(
    settings: &HttpSettings,
    proxies: Option<Arc<Matcher>>,
) -> Result<Connector, HttpError> {
    let allow = settings.allow;
    let resolve = service_fn(move |name: Name| resolve(name, allow));
    let mut tcp = HttpConnector::new_with_resolver(BoxCloneSyncService::new(resolve));
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.enforce_http(false);
    let https: HttpsConnector<Tcp> = (tcp, tls()?).into();
    let within = settings.connect;
    Ok(BoxCloneSyncService::new(service_fn(move |to: Uri| {
        let connected = connect(https.clone(), proxies.clone(), to);
        async move {
            let connected = tokio::time::timeout(within, connected).await;
            connected.unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time").into())
            })
        }
    })))
}

async fn connect(
    mut https: HttpsConnector<Tcp>,
    proxies: Option<Arc<Matcher>>,
    to: Uri,
) -> Result<Connection, BoxError> {
    let proxy = proxies.and_then(|proxies| proxies.intercept(&to));
    let is_proxied = proxy.is_some() && to.scheme() == Some(&Scheme::HTTP);
    let stream = match proxy {
        None => Stream::Http(https.call(to).await?),
        Some(proxy) if is_proxied => Stream::Http(https.call(proxy.uri().clone()).await?),
        Some(proxy) => {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), https);
            if let Some(value) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(value.clone());
            }
            HttpsConnector::from((tunnel, tls()?)).call(to).await?
        }
    };
    Ok(Connection { stream, is_proxied })
}

/// Resolves a name once, so that the connection uses a checked address.
async fn resolve(name: Name, allow: Option<fn(IpAddr) -> bool>) -> Result<Addresses, BoxError> {
    let found: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
    let Some(allow) = allow else {
        return Ok(found.into_iter());
    };
    let allowed = found.iter().filter(|address| allow(address.ip()));
    let allowed: Vec<SocketAddr> = allowed.copied().collect();
    if allowed.is_empty() && !found.is_empty() {
        return Err(NotAllowed.into());
    }
    Ok(allowed.into_iter())
}

/// The TLS configuration. The certificates of the system are read once.
fn tls() -> Result<Arc<ClientConfig>, HttpError> {
    trust().0.clone().map_err(|error| {
        let words = format!("TLS is not available: {error}");
        HttpError::new(HttpErrorKind::Settings, words)
    })
}

/// Checks that the system has certificates. Without them only plain HTTP works.
///
/// # Errors
/// Returns the reason if there are none.
pub fn check_certificates() -> Result<(), HttpError> {
    tls()?;
    trust().1.clone().map_err(|error| {
        let words = format!("TLS is not available: {error}");
        HttpError::new(HttpErrorKind::Settings, words)
    })
}

type Trust = (Result<Arc<ClientConfig>, String>, Result<(), String>);

/// The configuration, and why no certificate is trusted.
fn trust() -> &'static Trust {
    static READ: OnceLock<Trust> = OnceLock::new();
    READ.get_or_init(|| {
        let message = |error: &dyn Error| error.to_string();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = match builder.with_safe_default_protocol_versions() {
            Ok(builder) => builder,
            Err(error) => return (Err(message(&error)), Ok(())),
        };
        let (builder, known) = match builder.clone().with_platform_verifier() {
            Ok(builder) => (builder, Ok(())),
            // No certificate is trusted; plain HTTP still works.
            Err(error) => (
                builder.with_root_certificates(RootCertStore::empty()),
                Err(message(&error)),
            ),
        };
        (Ok(Arc::new(builder.with_no_client_auth())), known)
    })
}

/// A connection, and whether it goes to a proxy that needs absolute URLs.
pub(crate) struct Connection {
    stream: Stream,
    is_proxied: bool,
}

impl connect::Connection for Connection {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_proxied)
    }
}

impl Read for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
