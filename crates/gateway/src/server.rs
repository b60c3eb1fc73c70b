//! The server around the core.

mod auth;
mod body_filter;
mod chat;
mod config;
mod filtered_body;
mod forward;
mod forwarded_headers;
mod local;
mod metrics;
mod origins;
mod passthrough;
mod pipe;
mod preflight;
pub(crate) mod replay;
mod report;
mod request;
mod response;
mod serve;
mod socket;
mod upstream;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use axum::routing::{get, post};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::error::GatewayError;
use crate::key::Fresh;
use crate::server::auth::Keys;
pub use crate::server::config::{ConfigError, GatewayConfig, Retries, ServerLimits, Timeouts};
pub use crate::server::local::{Answered, LocalModel};
use crate::server::metrics::Metrics;
pub use crate::server::report::{Contents, Observer, Report};
pub use crate::server::upstream::Upstream;
use crate::server::upstream::{Connection, HttpServer};
use crate::tool_cache::ToolCache;

/// How many long bodies are dealt with at one time. What is made of one may take a hundred megabytes.
const LONG_BODIES: usize = 2;

const CHAT: &str = "/v1/chat/completions";

pub(crate) struct Shared {
    config: GatewayConfig,
    keys: Keys,
    fresh: Fresh,
    connection: Connection,
    metrics: Metrics,
    offers: ToolCache,
    /// One for each request that can be answered at one time.
    places: Arc<Semaphore>,
    /// One for each byte that bodies of requests may have together.
    body_limits: Arc<Semaphore>,
    /// Turns of long bodies, which each keep a thread busy.
    long_bodies: Arc<Semaphore>,
    is_draining: AtomicBool,
    /// Whether what has not been answered will not be any more.
    is_over: watch::Sender<bool>,
}

/// What a log says of a request that no path of the gateway has: nothing of its own.
const WRONG_ADDRESS: &str = "unknown path or method";

/// The gateway: requests in, answers out.
///
/// It needs no socket of its own. [`serve`](Self::serve) listens on one; [`router`](Self::router) is for a program that
/// serves other things too; [`answer`](Self::answer) answers one request. All clones are the same gateway.
///
/// ```
/// use axum::body::{Body, Bytes, to_bytes};
/// use axum::http::{Request, Response};
/// use plaincall_gateway::{Gateway, GatewayConfig, Secret, Upstream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A model in this process, which always says the same. `Upstream::Http` is one that is elsewhere.
/// let model = async |_: Request<Bytes>| {
///     let call = r#"{"choices":[{"message":{"role":"assistant","content":"!!!GADGET_START:now\n!!!GADGET_END"},"finish_reason":"stop"}]}"#;
///     let answer = Response::builder().header("content-type", "application/json");
///     Ok(answer.body(Body::from(call))?)
/// };
/// let gateway = Gateway::new(GatewayConfig::new(Upstream::local(model), Secret::random()?))?;
///
/// let body = r#"{"messages":[{"role":"user","content":"What time is it?"}],"tools":[{"type":"function","function":{"name":"now"}}]}"#;
/// let response = gateway.answer(Request::post("/v1/chat/completions").body(Body::from(body))?).await;
/// let answer = to_bytes(response.into_body(), 1 << 20).await?;
/// let answer: serde_json::Value = serde_json::from_slice(&answer)?;
/// assert_eq!(answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "now");
///
/// // As a part of a server of one's own.
/// let router: axum::Router = axum::Router::new().nest("/models", gateway.router());
/// # drop(router);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
    router: Router,
}

impl Gateway {
    /// A gateway that serves so. Nothing is asked of the model server yet.
    ///
    /// # Errors
    /// Says what of the configuration cannot work.
    pub fn new(config: GatewayConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let is_over = watch::Sender::new(false);
        let fresh = Fresh::new()
            .map_err(|error| ConfigError(format!("no random numbers from the system: {error}")))?;
        let shared = Arc::new(Shared {
            keys: Keys::new(&config.keys, &config.origins, fresh.seed()),
            fresh,
            connection: Connection::new(&config, is_over.subscribe())?,
            metrics: Metrics::default(),
            offers: ToolCache::new(),
            places: Arc::new(Semaphore::new(config.limits.concurrent)),
            body_limits: Arc::new(Semaphore::new(config.limits.bodies)),
            long_bodies: Arc::new(Semaphore::new(LONG_BODIES)),
            is_draining: AtomicBool::new(false),
            is_over,
            config,
        });
        let router = Router::new()
            .route(CHAT, post(chat::chat))
            .merge(passthrough::routes())
            .route("/health", get(|| async { "ok\n" }))
            .route("/ready", get(ready))
            .route("/metrics", get(metrics))
            .method_not_allowed_fallback(no_such_method)
            .fallback(no_such_route)
            .with_state(Arc::clone(&shared));
        // Pages in browsers can read only what says so, errors too.
        let router = match origins::layer(&shared.config.origins) {
            Some(layer) => router.layer(layer),
            None => router,
        };
        Ok(Self { shared, router })
    }

    /// Answers its paths, `/v1/chat/completions` and the others, below a path of a program that serves others too.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Answers one request, on a runtime of tokio. When the answer's body is dropped, what was asked for it is dropped too.
    pub async fn answer(&self, request: Request<Body>) -> Response {
        let answered = TowerToHyperService::new(self.router.clone()).call(request);
        let Ok(response) = answered.await;
        response
    }

    /// Says on `/ready` from now on that no more requests are welcome. Those that come are answered all the same, and the
    /// connection is closed behind the answer.
    pub fn drain(&self) {
        self.shared.is_draining.store(true, Ordering::Relaxed);
    }

    /// What speaks against the model server, in a sentence: it is asked for its models, and may not be there, want a key,
    /// or have another address. Takes ten seconds at most. A server that answers may still be the wrong one.
    pub async fn preflight(&self) -> Option<String> {
        self.shared.preflight().await
    }

    /// How many requests are being answered; each until the body of its answer has been taken or dropped.
    pub fn active(&self) -> usize {
        self.shared.active()
    }

    /// Serves until `shutdown` completes; then takes no more connections, and waits for requests that are being answered.
    /// What has no answer when the time for that is over ends with an error; gives the number of such requests.
    ///
    /// When this ends or is dropped, all its connections are closed. To let others hear of it before no more connections are
    /// taken, call [`drain`](Self::drain) a while before.
    ///
    /// # Errors
    /// A [`ConfigError`] if other machines can reach the listener, clients need no key, and the gateway is not
    /// [`allow_public_without_keys`](GatewayConfig::allow_public_without_keys); and what the system says if it does not know where the listener is.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<usize> {
        let is_safe = self.shared.config.check_address(listener.local_addr()?);
        is_safe.map_err(|error| io::Error::new(io::ErrorKind::PermissionDenied, error))?;
        let paths = TowerToHyperService::new(self.router.clone());
        Ok(serve::serve(&self, paths, listener, shutdown).await)
    }
}

impl Shared {
    fn active(&self) -> usize {
        let limit = self.config.limits.concurrent;
        limit.saturating_sub(self.places.available_permits())
    }

    fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    if shared.is_draining() {
        response::text(503, "draining\n")
    } else {
        response::text(200, "ready\n")
    }
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let retries = shared.connection.server().map_or(0, HttpServer::retried);
    response::metrics(&shared.metrics.text(shared.active(), retries))
}

async fn no_such_route(shared: State<Arc<Shared>>, request: Request<Body>) -> Response {
    let words = match nearest(request.uri().path()) {
        Some(meant) => {
            format!("; did you mean {meant}? The client's base URL must end with a single /v1")
        }
        None => String::new(),
    };
    reject(&shared, 404, request, &words).await
}

async fn no_such_method(shared: State<Arc<Shared>>, request: Request<Body>) -> Response {
    reject(&shared, 405, request, "; this path has another method").await
}

/// The path that is meant where `/v1` is missing, or stands there twice.
fn nearest(path: &str) -> Option<String> {
    let behind = path.strip_prefix("/v1/v1/").or(path.strip_prefix('/'))?;
    let meant = format!("/v1/{behind}");
    (meant == CHAT || passthrough::is_forwarded(&meant)).then_some(meant)
}

async fn reject(
    shared: &Arc<Shared>,
    status: u16,
    request: Request<Body>,
    words: &str,
) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let paths = passthrough::paths();
    let message = format!(
        "unknown endpoint {method} {path}{words}. The gateway serves POST {CHAT}, GET /health, /ready and /metrics, and forwards {paths}"
    );
    let error = GatewayError::invalid_request(message, None).status(status);
    request::reject_unknown_path(shared, request, &error.log(WRONG_ADDRESS)).await
}
