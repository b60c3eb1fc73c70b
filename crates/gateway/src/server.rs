//! The server around the core.

mod access;
mod answer;
mod chat;
mod metrics;
mod models;
mod pipe;
pub(crate) mod replay;
mod report;
mod upstream;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use plaincall_wire::sse;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::key::Secret;
use crate::offers::Offers;
use crate::refusal::Refusal;
use crate::server::access::Keys;
use crate::server::metrics::Metrics;
use crate::server::replay::Replay;
pub use crate::server::report::{Observe, Report};
use crate::server::upstream::Connection;
use crate::settings::ModelSettings;

/// How long the server waits when it cannot take a connection, before it tries again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where the model is.
#[derive(Clone, Debug)]
pub enum Upstream {
    /// A server that speaks the `OpenAI` API.
    Http {
        /// The beginning of its addresses, up to `/v1`.
        url: String,
        /// The key that it wants. Without one it gets that of the client, if the gateway asks for none itself.
        key: Option<String>,
    },
    /// Recorded replies.
    Replay(Replay),
}

/// How the gateway serves.
#[derive(Clone)]
pub struct GatewayConfig {
    /// Where the model is.
    pub upstream: Upstream,
    /// What is set for models by their names.
    pub models: Vec<(String, ModelSettings)>,
    /// What is set for all others.
    pub other_models: ModelSettings,
    /// The secret that keys of markers are derived from: the same in all instances.
    pub secret: Secret,
    /// The keys of clients; if there are none, nobody is asked for one.
    pub keys: Vec<String>,
    /// How much is taken.
    pub limits: ServerLimits,
    /// How long is waited.
    pub timeouts: Timeouts,
    /// Who hears of each request.
    pub observe: Arc<dyn Observe>,
}

/// How much the server takes.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of a request's head; also how much is held for a client that reads slowly.
    pub head: usize,
    /// Requests at one time; more are refused with the status 503.
    pub concurrent: usize,
    /// Bytes of an answer that is not streamed.
    pub answer: usize,
    /// Bytes of a line and of an event of a stream of the model's server.
    pub stream: sse::Limits,
}

/// How long the server waits.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the head of a request.
    pub head: Duration,
    /// For the body of a request, whole.
    pub body: Duration,
    /// For a connection to the model's server.
    pub connect: Duration,
    /// For the beginning of its answer.
    pub first_byte: Duration,
    /// For each piece of its answer, and for the client to read one.
    pub idle: Duration,
    /// Until the client of a stream hears that it is not forgotten.
    pub keep_alive: Duration,
    /// For requests that are being answered when the server is to end.
    pub drain: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body: 32 << 20,
            head: 64 << 10,
            concurrent: 4096,
            answer: 64 << 20,
            stream: sse::Limits::default(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            head: seconds(10),
            body: seconds(60),
            connect: seconds(10),
            first_byte: seconds(600),
            idle: seconds(300),
            keep_alive: seconds(15),
            drain: seconds(30),
        }
    }
}

impl GatewayConfig {
    /// A gateway before this server, all else as it usually is.
    pub fn new(upstream: Upstream, secret: Secret) -> Self {
        Self {
            upstream,
            models: Vec::new(),
            other_models: ModelSettings::default(),
            secret,
            keys: Vec::new(),
            limits: ServerLimits::default(),
            timeouts: Timeouts::default(),
            observe: Arc::new(|_: &Report| {}),
        }
    }

    /// Whether it is safe to listen here: beyond the own machine only clients with a key are served.
    ///
    /// # Errors
    /// Says what to do.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), String> {
        if address.ip().is_loopback() || !self.keys.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{address} can be reached from other machines, and anybody there could use the model: give keys for clients, or listen on 127.0.0.1"
        ))
    }

    fn settings(&self, model: &str) -> &ModelSettings {
        let named = self.models.iter().find(|(name, _)| name == model);
        named.map_or(&self.other_models, |(_, settings)| settings)
    }
}

/// What all requests share. Nothing of a conversation is in it.
pub(crate) struct Shared {
    config: GatewayConfig,
    keys: Keys,
    connection: Connection,
    metrics: Metrics,
    offers: Offers,
    places: Arc<Semaphore>,
    is_draining: AtomicBool,
}

/// Serves until `shutdown` completes; then takes no more connections, and waits for requests that are being answered.
///
/// # Errors
/// Says why it could not begin: settings of a model that cannot work, an address of the model's server that is none.
pub async fn serve(
    listener: TcpListener,
    config: GatewayConfig,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    for (name, settings) in &config.models {
        settings
            .check()
            .map_err(|error| io::Error::other(format!("the model {name}: {error}")))?;
    }
    config.other_models.check().map_err(io::Error::other)?;
    let connection = Connection::new(&config).map_err(io::Error::other)?;
    let shared = Arc::new(Shared {
        keys: Keys::new(&config.keys)?,
        connection,
        metrics: Metrics::default(),
        offers: Offers::new(),
        places: Arc::new(Semaphore::new(config.limits.concurrent)),
        is_draining: AtomicBool::new(false),
        config,
    });
    let router = Router::new()
        .route("/v1/chat/completions", post(chat::chat))
        .route("/v1/models", get(models::models))
        .route("/health", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .fallback(no_such_route)
        .with_state(Arc::clone(&shared));

    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(shared.config.timeouts.head)
        .max_buf_size(shared.config.limits.head);
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        let Ok((stream, _)) = accepted else {
            // Too many files, or a client that has gone again: neither ends the server.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let watched = graceful.watch(connection);
        // What goes wrong with one connection is its own matter.
        tokio::spawn(async move { drop(watched.await) });
    }
    drop(listener);
    shared.is_draining.store(true, Ordering::Relaxed);
    let drain = shared.config.timeouts.drain;
    let _ = tokio::time::timeout(drain, graceful.shutdown()).await;
    Ok(())
}

/// Whether new requests are welcome.
async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    if shared.is_draining.load(Ordering::Relaxed) {
        answer::text(503, "draining\n")
    } else {
        answer::text(200, "ready\n")
    }
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let limit = shared.config.limits.concurrent;
    let active = limit.saturating_sub(shared.places.available_permits());
    answer::text(200, &shared.metrics.text(active))
}

async fn no_such_route(request: axum::extract::Request) -> Response {
    let mut refusal = Refusal::request(
        format!(
            "there is no {} {}: the gateway serves POST /v1/chat/completions and GET /v1/models",
            request.method(),
            request.uri().path()
        ),
        None,
    );
    refusal.status = 404;
    answer::refused(&refusal)
}
