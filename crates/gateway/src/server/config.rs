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
use crate::server::report::{Observe, Report};
use crate::server::upstream::Upstream;
use crate::settings::{ModelSettings, settings_of};

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
    /// When a request is sent again to the model's server.
    pub retries: Retries,
    /// Pages of these origins may ask from a browser, such as `https://chat.example`; `*` is every origin. Without a key
    /// for clients, pages of all others are refused.
    pub origins: Vec<String>,
    /// Whether [`Gateway::serve`] may listen where other machines can reach it although nobody is asked for a key.
    ///
    /// [`Gateway::serve`]: crate::Gateway::serve
    pub open_to_all: bool,
    /// Whether reports hold what was said.
    pub reports_contents: bool,
    /// Who hears of each request.
    pub observe: Arc<dyn Observe>,
}

/// Whether this key can stand in a header.
pub(super) fn can_be_shown(key: &str) -> bool {
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

/// Why the gateway does not listen at an address: anybody who reaches it could use the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError {
    address: SocketAddr,
}

impl AddressError {
    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address;
        write!(
            formatter,
            "{address} can be reached from other machines, and anybody there could use the model: give keys for clients, or listen on 127.0.0.1"
        )
    }
}

impl Error for AddressError {}

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
    /// Bytes of all bodies of requests together that the model's server does not have yet; more are refused with the
    /// status 503. What is made of a body takes several times its length.
    pub bodies: usize,
    /// Bytes of an answer that is not streamed.
    pub answer: usize,
    /// Bytes of a line and of an event of a stream of the model's server.
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
    /// For a connection to the model's server.
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

/// When a request is sent again to the model's server: only if it has not taken it up.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Retries {
    /// How often a request is sent again at most.
    pub most: u32,
    /// How long the server may ask to wait (`Retry-After` with a status of 429 or 503). If it asks for more, the client
    /// hears it.
    pub longest_wait: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            most: 2,
            longest_wait: Duration::from_secs(5),
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
            open_to_all: false,
            reports_contents: false,
            observe: Arc::new(|_: &Report| {}),
        }
    }

    /// Whether it may listen here: beyond the own machine only clients with a key are served, unless it is
    /// [`open_to_all`](Self::open_to_all). [`Gateway::serve`](crate::Gateway::serve) asks this; a program that serves the
    /// router itself should.
    ///
    /// # Errors
    /// If anybody there could use the model.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), AddressError> {
        if address.ip().is_loopback() || !self.keys.is_empty() || self.open_to_all {
            return Ok(());
        }
        Err(AddressError { address })
    }

    /// Whether it can work, as far as that can be known before it begins.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let mut names = HashSet::new();
        for (name, settings) in &self.models {
            if !names.insert(name) {
                return Err(ConfigError(format!("the model {name} is set twice")));
            }
            settings
                .check()
                .map_err(|error| ConfigError(format!("the model {name}: {error}")))?;
        }
        let others = self.other_models.check();
        others.map_err(|error| ConfigError(error.to_string()))?;
        for origin in &self.origins {
            origins::check(origin).map_err(ConfigError)?;
        }
        if !self.keys.iter().all(|key| can_be_shown(key)) {
            return Err(ConfigError(
                "a key of a client is empty, or has characters that no header can hold".to_owned(),
            ));
        }
        let ServerLimits {
            body,
            head,
            concurrent,
            connections,
            bodies,
            ..
        } = self.limits;
        if !HEADS.contains(&head) {
            let (least, most) = (HEADS.start(), HEADS.end());
            return Err(ConfigError(format!(
                "the head of a request may have {head} bytes: let it have from {least} to {most}"
            )));
        }
        if !(1..=Semaphore::MAX_PERMITS).contains(&concurrent) {
            let message = format!("{concurrent} requests at one time cannot be served");
            return Err(ConfigError(message));
        }
        if !(1..=Semaphore::MAX_PERMITS).contains(&connections) {
            let message = format!("{connections} connections at one time cannot be served");
            return Err(ConfigError(message));
        }
        if !(body..=Semaphore::MAX_PERMITS).contains(&bodies) {
            return Err(ConfigError(format!(
                "all requests together may have {bodies} bytes: let them have as many as the body of one may, {body}, or more"
            )));
        }
        let times = self.timeouts;
        for (time, what) in [
            (times.head, "the head of a request"),
            (times.connection_idle, "the next request of a connection"),
            (times.body, "the body of a request"),
            (times.connect, "a connection to the model's server"),
            (times.first_byte, "the beginning of an answer"),
            (times.idle, "a piece of an answer"),
            (times.keep_alive, "a sign of life"),
        ] {
            if time.is_zero() {
                let message = format!("nothing can come in no time: let {what} have some");
                return Err(ConfigError(message));
            }
        }
        Ok(())
    }

    /// Whether the model's server gets the key that the client shows: if it is meant for nobody else, and the gateway has
    /// none of its own.
    pub(super) fn passes_keys(&self) -> bool {
        self.keys.is_empty() && self.upstream.key().is_none()
    }

    pub(super) fn settings(&self, model: &str) -> &ModelSettings {
        settings_of(&self.models, model).unwrap_or(&self.other_models)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plaincall_syntax::Dialect;

    use super::GatewayConfig;
    use crate::key::Secret;
    use crate::server::{Gateway, Upstream};
    use crate::settings::ModelSettings;

    type Set<'s> = &'s dyn Fn(&mut GatewayConfig);

    #[test]
    fn what_cannot_work_is_told_before_it_begins() {
        let both = || ModelSettings {
            dialect: Dialect::auto(),
            ..ModelSettings::default()
        };
        let upstream = |url: &str, key: Option<&str>| Upstream::http(url, key.map(str::to_owned));
        let table: &[(Set<'_>, &str)] = &[
            (&|_| {}, ""),
            (&|config| config.other_models = both(), "syntax"),
            (
                &|config| config.models = vec![("m".to_owned(), both())],
                "the model m: ",
            ),
            (
                &|config| config.models = vec![("m".to_owned(), ModelSettings::default()); 2],
                "the model m is set twice",
            ),
            (
                &|config| config.upstream = upstream("ftp://a", None),
                "http://",
            ),
            (&|config| config.upstream = upstream("a b", None), "a b: "),
            (
                &|config| config.upstream = upstream("http://a", Some("a\nb")),
                "no header can hold",
            ),
            (
                &|config| config.upstream = upstream("http://a", Some("")),
                "is empty",
            ),
            (&|config| config.keys = vec![String::new()], "is empty"),
            (
                &|config| config.keys = vec!["a b".to_owned()],
                "no header can hold",
            ),
            (&|config| config.limits.head = 100, "100 bytes"),
            (&|config| config.limits.concurrent = 0, "0 requests"),
            (
                &|config| config.limits.concurrent = usize::MAX,
                "requests at one time",
            ),
            (&|config| config.limits.connections = 0, "0 connections"),
            (
                &|config| config.limits.bodies = config.limits.body - 1,
                "as the body of one may",
            ),
            (
                &|config| config.timeouts.idle = Duration::ZERO,
                "a piece of an answer",
            ),
        ];
        for (set, expected) in table {
            let mut config = GatewayConfig::new(upstream("http://a", None), Secret::new("s"));
            set(&mut config);
            let told = match Gateway::new(config) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            };
            assert!(told.contains(expected), "{told:?} holds {expected:?}");
            assert_eq!(told.is_empty(), expected.is_empty(), "{told}");
        }
    }
}
