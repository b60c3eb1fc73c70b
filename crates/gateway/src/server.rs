//! The server around the core.
//!
//! [`Gateway`] responds to requests; [`Gateway::serve`] listens on a socket. This module has the parts of its configuration and
//! reports that few programs name.

mod auth;
mod body;
mod body_filter;
mod chat;
mod config;
mod constrained;
mod count_tokens;
mod endpoint;
mod filtered_body;
mod forward;
mod forwarded_headers;
mod host;
mod key_limits;
mod local;
mod long_reads;
mod metrics;
mod models;
mod ollama;
mod origins;
mod passthrough;
mod preflight;
mod produced_body;
mod replay;
mod report;
mod request;
mod response;
mod serve;
mod socket;
mod upstream;
mod waiting;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::thread::available_parallelism;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, ORIGIN};
use http::{HeaderValue, Method, Request};
use hyper::body::{Body as HttpBody, Incoming};
use plaincall_wire::paths::VERSION;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use crate::adapter::Adapter;
use crate::api::ClientApi;
use crate::error::GatewayError;
use crate::key::Fresh;
use crate::server::auth::Keys;
pub use crate::server::body::Body;
use crate::server::body::{BoxError, Response};
use crate::server::body_filter::{RedactedKeys, redacted_keys};
pub use crate::server::config::{ConfigError, GatewayConfig, Retries, ServerLimits, Timeouts};
use crate::server::endpoint::{Endpoint, api_of_unknown};
pub use crate::server::key_limits::KeyLimits;
pub use crate::server::local::{LocalModel, ResponseFuture};
use crate::server::long_reads::LongReads;
use crate::server::metrics::Metrics;
pub use crate::server::origins::check as check_origin;
pub use crate::server::replay::Replay;
pub use crate::server::report::{Contents, Observer, Report};
use crate::server::upstream::Routes;
pub use crate::server::upstream::Upstream;
pub use plaincall_wire::ReplayError;

/// The number of long bodies that are read at the same time. Each may take a hundred megabytes.
const LONG_BODIES: usize = 2;

/// The settings that apply to a request until it ends, even if [`Gateway::reload`] replaces them meanwhile.
pub(crate) struct Shared {
    config: GatewayConfig,
    keys: Keys,
    routes: Routes,
    adapter: Adapter,
    /// The keys and secrets for the model servers, which no client may get.
    own_keys: RedactedKeys,
    process: Arc<Process>,
}

/// The state that does not depend on the settings.
pub(crate) struct Process {
    fresh: Fresh,
    metrics: Metrics,
    /// One permit for each concurrent request.
    requests: Arc<Semaphore>,
    /// One permit for each byte of all request bodies.
    body_limits: Arc<Semaphore>,
    long_bodies: LongReads,
    long_replies: LongReads,
    is_draining: AtomicBool,
    /// Cancels active requests.
    stop: CancellationToken,
}

/// The log message for unknown paths, which quotes nothing of the request.
const WRONG_ADDRESS: &str = "unknown path or method";

/// A proxy that adds tool calling to a model.
///
/// [`serve`](Self::serve) listens on a socket. [`handle`](Self::handle) responds to one request without a socket. As a
/// [`tower_service::Service`], a gateway can also be part of another server, for example with `axum::Router::nest_service`. Clones
/// share everything.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::{BodyExt, Full};
/// use plaincall_gateway::{Body, Gateway, GatewayConfig, Secret, Upstream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// // A model in this process. For a model server, use `Upstream::http`.
/// let model = async |_: Request<Bytes>| {
///     let reply = r#"{"choices":[{"message":{"role":"assistant","content":"!!!GADGET_START:now\n!!!GADGET_END"},"finish_reason":"stop"}]}"#;
///     let response = Response::builder().header("content-type", "application/json");
///     Ok(response.body(Body::from(reply))?)
/// };
/// let gateway = Gateway::new(GatewayConfig::new(Upstream::local(model), Secret::random()?))?;
///
/// let body = r#"{"messages":[{"role":"user","content":"What time is it?"}],"tools":[{"type":"function","function":{"name":"now"}}]}"#;
/// let request = Request::post("/v1/chat/completions").body(Full::from(body))?;
/// let response = gateway.handle(request).await.into_body().collect().await?.to_bytes();
/// let response: serde_json::Value = serde_json::from_slice(&response)?;
/// assert_eq!(response["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "now");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway {
    current: Arc<RwLock<Arc<Shared>>>,
}

impl Gateway {
    /// Creates a gateway. Sends nothing to the model server yet.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid, or if the system gives no thread or no random numbers.
    pub fn new(config: GatewayConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let fresh = Fresh::new()
            .map_err(|error| ConfigError(format!("no random numbers from the system: {error}")))?;
        let no_thread = |error| ConfigError(format!("cannot start a thread: {error}"));
        let half = available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
        let process = Arc::new(Process {
            fresh,
            metrics: Metrics::default(),
            requests: Arc::new(Semaphore::new(config.limits.concurrent)),
            body_limits: Arc::new(Semaphore::new(config.limits.bodies)),
            long_bodies: LongReads::start(LONG_BODIES).map_err(no_thread)?,
            long_replies: LongReads::start(half).map_err(no_thread)?,
            is_draining: AtomicBool::new(false),
            stop: CancellationToken::new(),
        });
        let shared = Shared::new(config, process, None)?;
        Ok(Self {
            current: Arc::new(RwLock::new(Arc::new(shared))),
        })
    }

    /// Replaces the model servers, the settings of models, and the keys of clients and their limits. Everything else stays as
    /// it is, also the secret. Requests in progress end with the settings with which they began; model servers that do not
    /// change keep their connections and counters.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid, or has no client keys although the current one has some. Nothing
    /// changes then.
    pub fn reload(&self, config: GatewayConfig) -> Result<(), ConfigError> {
        let before = self.shared();
        let config = GatewayConfig {
            upstream: config.upstream,
            upstreams: config.upstreams,
            models: config.models,
            other_models: config.other_models,
            keys: config.keys,
            key_limits: config.key_limits,
            limits_by_key: config.limits_by_key,
            ..before.config.clone()
        };
        config.check()?;
        if config.keys.is_empty() && !before.config.keys.is_empty() {
            let message = "the reloaded files contain no client keys; restart the gateway to run without keys";
            return Err(ConfigError(message.to_owned()));
        }
        let shared = Shared::new(config, Arc::clone(&before.process), Some(&before))?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(shared);
        Ok(())
    }

    /// Returns the current settings.
    fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Responds to one request. Requires a tokio runtime. Dropping the response's body cancels the request to the model server.
    ///
    /// Does not check the host that the request names, unlike [`serve`](Self::serve).
    pub async fn handle<B>(&self, request: Request<B>) -> http::Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let shared = self.shared();
        shared.respond(request.map(Body::new), Ok(())).await
    }

    /// Responds to a request that arrived over a socket of [`serve`](Self::serve).
    async fn handle_from_socket(&self, request: Request<Incoming>) -> Response {
        let shared = self.shared();
        let only_local = shared.keys.is_open() && !shared.config.allow_public_without_keys;
        let checked = host::check(&request, only_local);
        shared.respond(request.map(Body::new), checked).await
    }

    /// Reports "draining" on `/ready` from now on. Requests are still accepted, and their connections are closed after the
    /// response.
    pub fn drain(&self) {
        self.shared()
            .process
            .is_draining
            .store(true, Ordering::Relaxed);
    }

    /// Requests the model list of each model server and returns a message for each that fails: no connection, a missing key or
    /// a wrong URL. Takes at most ten seconds. A server that answers may still be the wrong one.
    pub async fn preflight(&self) -> Vec<String> {
        self.shared().preflight().await
    }

    /// Returns the number of active requests. A request is active until the body of its response has been read or dropped.
    pub fn active(&self) -> usize {
        self.shared().active()
    }

    /// Serves until `shutdown` completes, then stops accepting connections and waits for active requests. Requests that exceed
    /// the drain timeout end with an error; returns their number.
    ///
    /// When this future completes or is dropped, all its connections are closed. To let load balancers react before the listener
    /// closes, call [`drain`](Self::drain) some time before `shutdown`.
    ///
    /// # Errors
    /// Returns a [`ConfigError`] if other machines can reach the listener and clients need no key, unless
    /// [`allow_public_without_keys`](GatewayConfig::allow_public_without_keys) is set. Returns an error of the system if the
    /// listener's address is unknown.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<usize> {
        let is_safe = self.shared().config.check_address(listener.local_addr()?);
        is_safe.map_err(|error| io::Error::new(io::ErrorKind::PermissionDenied, error))?;
        Ok(serve::serve(&self, listener, shutdown).await)
    }
}

impl<B> Service<Request<B>> for Gateway
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let gateway = self.clone();
        Box::pin(async move { Ok(gateway.handle(request).await) })
    }
}

impl Shared {
    /// Creates the settings. Model servers and keys that were in the settings before keep their state.
    fn new(
        config: GatewayConfig,
        process: Arc<Process>,
        before: Option<&Self>,
    ) -> Result<Self, ConfigError> {
        let routes = before.map(|before| &before.routes);
        let keys = before.map(|before| &before.keys);
        let upstreams = config.upstreams.iter().map(|(_, upstream)| upstream);
        let upstreams = upstreams.chain([&config.upstream]);
        Ok(Self {
            own_keys: redacted_keys(upstreams.flat_map(Upstream::secrets)),
            keys: Keys::new(&config, keys, process.fresh.seed()),
            routes: Routes::new(&config, &process.stop, routes)?,
            adapter: Adapter::new(config.secret.clone(), config.other_models.clone())
                .models(config.models.clone())
                .stream_limits(config.limits.stream),
            process,
            config,
        })
    }

    /// Responds to a request, or rejects it if its check failed.
    async fn respond(
        self: &Arc<Self>,
        request: Request<Body>,
        checked: Result<(), GatewayError>,
    ) -> Response {
        let is_head = request.method() == Method::HEAD;
        let origins = &self.config.origins;
        let mut response = if origins.is_empty() {
            self.route(request, checked).await
        } else {
            let origin = request.headers().get(ORIGIN).cloned();
            let mut response = if request.method() == Method::OPTIONS {
                origins::preflight(request.headers())
            } else {
                self.route(request, checked).await
            };
            origins::expose(&mut response, origin.as_ref(), origins);
            response
        };
        if let Some(length) = response.body().size_hint().exact() {
            let headers = response.headers_mut();
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        if is_head {
            *response.body_mut() = Body::default();
        }
        response
    }

    async fn route(
        self: &Arc<Self>,
        request: Request<Body>,
        checked: Result<(), GatewayError>,
    ) -> Response {
        match checked {
            Ok(()) => route(self, request).await,
            Err(error) => {
                let (path, headers) = (request.uri().path(), request.headers());
                let api = Endpoint::of(path).map_or_else(
                    || api_of_unknown(path, headers),
                    |endpoint| endpoint.api(headers),
                );
                request::reject_unread(self, request, api, &error).await
            }
        }
    }

    fn active(&self) -> usize {
        let limit = self.config.limits.concurrent;
        limit.saturating_sub(self.process.requests.available_permits())
    }

    fn is_draining(&self) -> bool {
        self.process.is_draining.load(Ordering::Relaxed)
    }
}

async fn route(shared: &Arc<Shared>, request: Request<Body>) -> Response {
    let path = request.uri().path();
    let Some(endpoint) = Endpoint::of(path) else {
        // Some clients check the address this way.
        if path == "/" && request.method() == Method::HEAD {
            return response::text(200, "ok\n");
        }
        return unknown_path(shared, request).await;
    };
    let (allowed, method) = (endpoint.methods(), request.method().as_str());
    if !allowed.split(',').any(|allowed| allowed == method) {
        let hint = "; this path has another method";
        let api = endpoint.api(request.headers());
        let mut response = reject(shared, 405, api, request, hint).await;
        let allowed = HeaderValue::from_static(allowed);
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    match endpoint {
        Endpoint::Ask(api) => chat::chat(shared, api, request).await,
        Endpoint::CountTokens => count_tokens::count_tokens(shared, request).await,
        Endpoint::Models | Endpoint::Model | Endpoint::Forwarded(_) => {
            passthrough::pass(shared, endpoint, request).await
        }
        Endpoint::Ollama(path) => ollama::answer(shared, path, request).await,
        Endpoint::Ready if shared.is_draining() => response::text(503, "draining\n"),
        Endpoint::Ready => response::text(200, "ready\n"),
        Endpoint::Metrics => {
            let metrics = &shared.process.metrics;
            let keys = shared.keys.uses();
            response::metrics(&metrics.text(shared.active(), &shared.routes.counts(), keys))
        }
        Endpoint::Health => response::text(200, "ok\n"),
    }
}

async fn unknown_path(shared: &Arc<Shared>, request: Request<Body>) -> Response {
    let (path, headers) = (request.uri().path(), request.headers());
    let Some((near, endpoint)) = nearest(path) else {
        let api = api_of_unknown(path, headers);
        let hint = match api {
            ClientApi::Ollama => "; to manage models, use the model server",
            _ => "",
        };
        return reject(shared, 404, api, request, hint).await;
    };
    let api = endpoint.api(headers);
    // Clients of Anthropic's API add `/v1` to the base URL; Ollama's have none.
    let rule = match api {
        ClientApi::Ollama => "must not contain /v1",
        ClientApi::Messages if path.starts_with(REPEATED) => "must not contain /v1",
        _ => "must end with a single /v1, without a slash",
    };
    let hint = format!("; did you mean {near}? The client's base URL {rule}");
    reject(shared, 404, api, request, &hint).await
}

/// The beginning of a path if the client and its base URL both have `/v1`.
const REPEATED: &str = "/v1/v1/";

/// Returns the likely endpoint and its path if `/v1` is missing or repeated, or if there are further slashes.
fn nearest(path: &str) -> Option<(String, Endpoint)> {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let segments = segments.skip_while(|segment| *segment == "v1");
    let path: String = segments.flat_map(|segment| ["/", segment]).collect();
    // Only Ollama's paths have no version.
    let path = if path.starts_with(endpoint::OLLAMA) {
        path
    } else {
        [VERSION, &path].concat()
    };
    let endpoint = Endpoint::of(&path)?;
    Some((path, endpoint))
}

/// Responds to a request with an unknown path or method, in the format of this API.
async fn reject(
    shared: &Arc<Shared>,
    status: u16,
    api: ClientApi,
    request: Request<Body>,
    hint: &str,
) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let list = Endpoint::list();
    let message = format!("unknown endpoint {method} {path}{hint}. {list}");
    let error = GatewayError::invalid_request(message, None).status(status);
    request::reject_unread(shared, request, api, &error.log(WRONG_ADDRESS)).await
}
