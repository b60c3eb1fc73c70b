//! How the gateway serves, and what can be wrong with that.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use plaincall_wire::sse;
use tokio::sync::Semaphore;

use crate::key::Secret;
use crate::server::origins;
use crate::server::report::{Observer, Report};
use crate::server::upstream::Upstream;
use crate::settings::ModelSettings;

/// How many bytes a request's head can be held to: no fewer than `hyper` takes, and so many that what is held for a client
/// that reads slowly stays below 64 KiB.
const HEADS: RangeInclusive<usize> = 8 << 10..=24 << 10;

/// How the gateway serves. [`new`](Self::new) makes one; then its fields are set.
#[derive(Clone)]
#[non_exhaustive]
pub struct GatewayConfig {
    /// Where the model is.
    pub upstream: Upstream,
    /// What is set for models by their names, in which `*` stands for any characters. Of several that fit, one without `*`
    /// counts, else the one with the most characters besides.
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
    /// When a request is sent again to the model server.
    pub retries: Retries,
    /// Pages of these origins may ask from a browser, such as `https://chat.example`; `*` is every origin. Without a key
    /// for clients, pages of all others are refused.
    pub origins: Vec<String>,
    /// Whether [`Gateway::serve`] may listen where other machines can reach it although nobody is asked for a key.
    ///
    /// [`Gateway::serve`]: crate::Gateway::serve
    pub allow_public_without_keys: bool,
    /// Whether reports hold what was said.
    pub report_contents: bool,
    /// Who hears of each request.
    pub observer: Arc<dyn Observer>,
}

pub(super) fn is_valid_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What of a configuration cannot work, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub(super) String);

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for ConfigError {}

/// How much the server takes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of a request's head. As much is held for a client that reads slowly, so that both are limited to 24 KiB.
    pub head: usize,
    /// Requests at one time; more are refused with the status 503.
    pub concurrent: usize,
    /// Connections of clients at one time; more are not accepted until one ends.
    pub connections: usize,
    /// Bytes of all bodies of requests together that the model server does not have yet; more are refused with the
    /// status 503. What is made of a body takes several times its length.
    pub bodies: usize,
    /// Bytes of an answer that is not streamed.
    pub answer: usize,
    /// Bytes of a line and of an event of a stream of the model server.
    pub stream: sse::Limits,
}

/// How long the server waits.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Timeouts {
    /// For the head of a request, from its first byte; of the first request of a connection, from the connection.
    pub head: Duration,
    /// For the next request of a connection.
    pub connection_idle: Duration,
    /// For the body of a request, whole.
    pub body: Duration,
    /// For a connection to the model server.
    pub connect: Duration,
    /// For the beginning of its answer.
    pub first_byte: Duration,
    /// For each piece of its answer, and for the client to read one: of a client that reads nothing for so long, the
    /// connection is closed.
    pub idle: Duration,
    /// Until the client of a stream hears that it is not forgotten.
    pub keep_alive: Duration,
    /// For requests that are being answered when the server is to end.
    pub drain: Duration,
}

/// When a request is sent again to the model server: only if it has not taken it up.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Retries {
    /// How often a request is sent again at most.
    pub max_retries: u32,
    /// How long the server may ask to wait (`Retry-After` with a status of 429 or 503). If it asks for more, the client
    /// hears it.
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
            retries: Retries::default(),
            origins: Vec::new(),
            allow_public_without_keys: false,
            report_contents: false,
            observer: Arc::new(|_: &Report| {}),
        }
    }

    /// Whether it may listen here: beyond this machine it serves only clients with a key, unless it is
    /// [`allow_public_without_keys`](Self::allow_public_without_keys). [`Gateway::serve`](crate::Gateway::serve) asks this; a program that serves the
    /// router itself should.
    ///
    /// # Errors
    /// If anybody there could use the model.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), ConfigError> {
        if address.ip().is_loopback() || !self.keys.is_empty() || self.allow_public_without_keys {
            return Ok(());
        }
        Err(ConfigError(format!(
            "{address} is reachable from other machines and clients need no key: set client keys, or listen on 127.0.0.1"
        )))
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |message: String| Err(ConfigError(message));
        let mut names = HashSet::new();
        for (name, settings) in &self.models {
            if !names.insert(name) {
                return wrong(format!("duplicate settings for the model `{name}`"));
            }
            if let Err(error) = settings.check() {
                return wrong(format!("the model {name}: {error}"));
            }
        }
        if let Err(error) = self.other_models.check() {
            return wrong(error.to_string());
        }
        for origin in &self.origins {
            origins::check(origin).map_err(ConfigError)?;
        }
        if !self.keys.iter().all(|key| is_valid_key(key)) {
            return wrong(
                "a client key is empty or contains characters that are not allowed in a header"
                    .to_owned(),
            );
        }
        let limits = &self.limits;
        if !HEADS.contains(&limits.head) {
            let (head, least, most) = (limits.head, HEADS.start(), HEADS.end());
            return wrong(format!(
                "the limit for request heads is {head} bytes; it must be between {least} and {most}"
            ));
        }
        let counts = [
            (limits.concurrent, "requests"),
            (limits.connections, "connections"),
        ];
        for (count, what) in counts {
            if !(1..=Semaphore::MAX_PERMITS).contains(&count) {
                return wrong(format!(
                    "the limit of {count} concurrent {what} is out of range"
                ));
            }
        }
        if !(limits.body..=Semaphore::MAX_PERMITS).contains(&limits.bodies) {
            let (body, bodies) = (limits.body, limits.bodies);
            return wrong(format!(
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
                return wrong(format!("the timeout for {what} must not be 0"));
            }
        }
        Ok(())
    }

    /// Whether the model server gets the key that the client shows: if it is meant for nobody else, and the gateway has
    /// none of its own.
    pub(super) fn forwards_client_keys(&self) -> bool {
        self.keys.is_empty() && self.upstream.key().is_none()
    }

    /// The settings of the model of this name.
    pub fn settings_for(&self, model: &str) -> &ModelSettings {
        let weight = |name: &str| {
            if name.contains('*') {
                name.chars().filter(|c| *c != '*').count()
            } else {
                usize::MAX
            }
        };
        // Of several with the same weight, the first counts.
        let fitting = self
            .models
            .iter()
            .rev()
            .filter(|(name, _)| fits(name, model));
        let best = fitting.max_by_key(|(name, _)| weight(name));
        best.map_or(&self.other_models, |(_, settings)| settings)
    }
}

/// Whether a name fits a pattern. The time is linear in the product of both lengths.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(begin) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    // The first place of a part leaves the most for those behind it.
    for part in parts {
        let Some((_, after)) = name.split_once(part) else {
            return false;
        };
        name = after;
    }
    name.ends_with(end)
}
