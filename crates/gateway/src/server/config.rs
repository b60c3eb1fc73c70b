//! The configuration of the gateway.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use plaincall_wire::sse;
use tokio::sync::Semaphore;

use crate::key::Secret;
use crate::server::key_limits::KeyLimits;
use crate::server::origins;
use crate::server::report::{Observer, Report};
use crate::server::upstream::Upstream;
use crate::settings::ModelSettings;
use plaincall_config::for_name;

/// The range for the limit of request heads: the minimum of `hyper`, and the most that keeps the buffers for a slow client below
/// 64 KiB.
const HEADS: RangeInclusive<usize> = 8 << 10..=24 << 10;

/// The configuration of a [`Gateway`](crate::Gateway). Create it with [`new`](Self::new), then set its fields.
#[derive(Clone)]
#[non_exhaustive]
pub struct GatewayConfig {
    /// The model server, or a model in this process.
    pub upstream: Upstream,
    /// Other model servers for models by name, with the rules of `models`. They never get the keys of clients.
    pub upstreams: Vec<(String, Upstream)>,
    /// Settings for models by name. `*` matches any characters. A name without `*` takes precedence, then the one with the
    /// most other characters.
    pub models: Vec<(String, ModelSettings)>,
    /// Settings for all other models.
    pub other_models: ModelSettings,
    /// The secret from which marker keys are derived. Use the same in all instances.
    pub secret: Secret,
    /// The keys of clients. If empty, clients need no key.
    pub keys: Vec<String>,
    /// Limits of each key.
    pub key_limits: KeyLimits,
    /// Limits of single keys. They replace `key_limits`.
    pub limits_by_key: Vec<(String, KeyLimits)>,
    /// Size and concurrency limits.
    pub limits: ServerLimits,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Retries of requests to the model server.
    pub retries: Retries,
    /// The origins whose pages may use the gateway from a browser, such as `https://chat.example`; `*` is any origin. If clients
    /// need no key, requests from all other origins are rejected.
    pub origins: Vec<String>,
    /// Allows [`Gateway::serve`] to listen on addresses that other machines can reach although clients need no key, and to
    /// respond to requests for any host.
    ///
    /// [`Gateway::serve`]: crate::Gateway::serve
    pub allow_public_without_keys: bool,
    /// Whether reports contain the conversation.
    pub report_contents: bool,
    /// Receives a report about each request.
    pub observer: Arc<dyn Observer>,
}

pub(super) fn is_valid_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// An error in a [`GatewayConfig`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(super) String);

/// Size and concurrency limits of the server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ServerLimits {
    /// The maximum size of a request body, in bytes. Default: 32 MiB.
    pub body: usize,
    /// The maximum size of a request head, and of the write buffer for a slow client, in bytes. Between 8 and 24 KiB.
    /// Default: 16 KiB.
    pub head: usize,
    /// The maximum number of concurrent requests; further requests get 503. Default: 4096.
    pub concurrent: usize,
    /// The maximum number of client connections. A further one closes the connection that has waited longest for a request, or
    /// waits if all have requests in progress. Default: 8192.
    pub connections: usize,
    /// The maximum total size of request bodies not yet forwarded, in bytes; further requests get 503. Parsing a body takes
    /// several times its size. Default: 1 GiB.
    pub bodies: usize,
    /// The maximum size of an answer that is not streamed, in bytes. Default: 64 MiB.
    pub answer: usize,
    /// The maximum sizes of a line and an event in the model server's stream.
    pub stream: sse::Limits,
}

/// The timeouts of the server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Timeouts {
    /// For the head of a request, from its first byte; for the first request, from the connection. Default: 10 s.
    pub head: Duration,
    /// For the next request on a connection. Default: 75 s.
    pub connection_idle: Duration,
    /// For the entire body of a request. Default: 60 s.
    pub body: Duration,
    /// For connecting to the model server. Default: 10 s.
    pub connect: Duration,
    /// For the start of the model server's answer. Default: 600 s.
    pub first_byte: Duration,
    /// For each piece of the answer, and for the client to read one; then the connection is closed. Default: 300 s.
    pub idle: Duration,
    /// The interval of keep-alive messages in a stream. Default: 15 s.
    pub keep_alive: Duration,
    /// For active requests during shutdown. Default: 30 s.
    pub drain: Duration,
}

/// Retries of requests that the model server has not accepted.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Retries {
    /// The maximum number of retries. Default: 2.
    pub max_retries: u32,
    /// The longest accepted `Retry-After` delay (status 429 or 503); a longer one is forwarded to the client. Default: 5 s.
    pub max_wait: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            max_retries: 2,
            max_wait: Duration::from_secs(5),
        }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body: 32 << 20,
            head: 16 << 10,
            concurrent: 4096,
            connections: 8192,
            bodies: 1 << 30,
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
            connection_idle: seconds(75),
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
    /// Creates a configuration with defaults for everything else.
    pub fn new(upstream: Upstream, secret: Secret) -> Self {
        Self {
            upstream,
            upstreams: Vec::new(),
            models: Vec::new(),
            other_models: ModelSettings::default(),
            secret,
            keys: Vec::new(),
            key_limits: KeyLimits::default(),
            limits_by_key: Vec::new(),
            limits: ServerLimits::default(),
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            origins: Vec::new(),
            allow_public_without_keys: false,
            report_contents: false,
            observer: Arc::new(|_: &Report| {}),
        }
    }

    /// Checks whether the gateway may listen on this address. [`Gateway::serve`](crate::Gateway::serve) calls this; a program with
    /// its own server should too.
    ///
    /// # Errors
    /// Returns an error if other machines can reach the address and clients need no key, unless
    /// [`allow_public_without_keys`](Self::allow_public_without_keys) is set.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), ConfigError> {
        if address.ip().is_loopback() || !self.keys.is_empty() || self.allow_public_without_keys {
            return Ok(());
        }
        Err(ConfigError(format!(
            "{address} is reachable from other machines and clients need no key: set client keys, or listen on 127.0.0.1"
        )))
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let invalid = |message: String| Err(ConfigError(message));
        let mut names = HashSet::new();
        for (name, settings) in &self.models {
            if !names.insert(name) {
                return invalid(format!("duplicate settings for the model `{name}`"));
            }
            if let Err(error) = settings.check() {
                return invalid(format!("the model {name}: {error}"));
            }
        }
        if let Err(error) = self.other_models.check() {
            return invalid(error.to_string());
        }
        for origin in &self.origins {
            origins::check(origin).map_err(ConfigError)?;
        }
        if !self.keys.iter().all(|key| is_valid_key(key)) {
            return invalid(
                "a client key is empty or contains characters that are not allowed in a header"
                    .to_owned(),
            );
        }
        let by_key = self.limits_by_key.iter().map(|(_, limits)| *limits);
        for limits in by_key.chain([self.key_limits]) {
            limits.check().map_err(ConfigError)?;
        }
        if self.keys.is_empty() && self.key_limits != KeyLimits::default() {
            return invalid("limits of client keys need client keys".to_owned());
        }
        let limits = &self.limits;
        if !HEADS.contains(&limits.head) {
            let (head, least, most) = (limits.head, HEADS.start(), HEADS.end());
            return invalid(format!(
                "the limit for request heads is {head} bytes; it must be between {least} and {most}"
            ));
        }
        let counts = [
            (limits.concurrent, "requests"),
            (limits.connections, "connections"),
        ];
        for (count, what) in counts {
            if !(1..=Semaphore::MAX_PERMITS).contains(&count) {
                return invalid(format!(
                    "the limit of {count} concurrent {what} is out of range"
                ));
            }
        }
        if !(limits.body..=Semaphore::MAX_PERMITS).contains(&limits.bodies) {
            let (body, bodies) = (limits.body, limits.bodies);
            return invalid(format!(
                "the limit for all request bodies is {bodies} bytes; it must be at least the limit for one body, {body}"
            ));
        }
        let times = self.timeouts;
        for (time, what) in [
            (times.head, "the head of a request"),
            (times.connection_idle, "the next request of a connection"),
            (times.body, "the body of a request"),
            (times.connect, "connecting to the model server"),
            (times.first_byte, "the beginning of an answer"),
            (times.idle, "a piece of an answer"),
            (times.keep_alive, "keep-alive messages"),
        ] {
            if time.is_zero() {
                return invalid(format!("the timeout for {what} must not be 0"));
            }
        }
        Ok(())
    }

    pub(super) fn limits_for_key(&self, key: &str) -> KeyLimits {
        let mut by_key = self.limits_by_key.iter();
        let found = by_key.find(|(known, _)| known == key);
        found.map_or(self.key_limits, |(_, limits)| *limits)
    }

    /// Returns the settings for a model.
    pub fn settings_for(&self, model: &str) -> &ModelSettings {
        for_name(&self.models, model).unwrap_or(&self.other_models)
    }
}
