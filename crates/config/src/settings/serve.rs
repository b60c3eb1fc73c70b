//! The settings of `plaincall serve`.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FilePath;
use crate::{Size, SocketAddress, Time, TimeOrZero};

/// The highest limit of a key or of the whole gateway.
pub const MAX_REQUESTS: u32 = 1_000_000;
/// The highest number of retries.
const MAX_RETRIES: u32 = 10;
const DEFAULT_MAX_BODY: Size = Size(32 << 20);

/// The gateway, `plaincall serve`. What is not set has the default of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Serve {
    /// The address to listen on. Port 0 selects a free port. `serve -- COMMAND` uses any free port instead. Default:
    /// `"127.0.0.1:8080"`; if a model server uses this port, the first free one up to 8099.
    pub listen: Option<SocketAddress>,

    /// The names of the tables `[models.NAME]` to serve. `*` matches any characters. Default: all.
    pub models: Option<Vec<String>>,

    /// A file with client keys, one per line, each with at least 16 characters. `requests=N` and `rate=N` after a key replace
    /// `key_requests` and `key_rate` for this key. A line that begins with `#` is a comment. Default: the variable `PLAINCALL_KEYS`
    /// (keys separated by commas), else clients need no key.
    pub keys_file: Option<FilePath>,

    /// The maximum number of concurrent requests of each client key. Further requests get status 429. Default: no limit.
    #[schemars(range(max = 1_000_000))]
    pub key_requests: Option<NonZeroU32>,

    /// The maximum number of requests of each client key per minute. A key can use them all at once; after
    /// that, one becomes free every `60 / key_rate` seconds.
    /// Further requests get status 429. Default: no limit.
    #[schemars(range(max = 1_000_000))]
    pub key_rate: Option<NonZeroU32>,

    /// Whether other machines can connect without a key, under any host name. Default: `false`.
    pub open: Option<bool>,

    /// Origins whose web pages can use the gateway, such as `"https://chat.example"`; `"*"` is any origin. Default: none.
    pub cors: Vec<String>,

    /// A file with the secret that marker keys are derived from, with at least 16 bytes. Use the same secret on all gateways
    /// behind one address. Default: the variable `PLAINCALL_SECRET`, else a random secret at each start.
    pub secret_file: Option<FilePath>,

    /// The maximum size of a request body. Default: 32 MiB.
    pub max_body: Option<Size>,

    /// The maximum number of concurrent requests. Further requests get status 503. At most twice as many connections are
    /// accepted. Default: 4096.
    #[schemars(range(max = 1_000_000))]
    pub max_requests: Option<NonZeroU32>,

    /// The maximum total size of the request bodies in memory. A body stays in memory until the model server has it or, if the
    /// reply may need repair, until the reply ends. Further requests get status 503. Default: 1 GiB.
    pub max_bodies: Option<Size>,

    /// How many times to retry a request that the model server did not accept because it was unreachable, or returned 429 or
    /// 503 with a `Retry-After` header. Default: 2.
    #[schemars(range(max = 10))]
    pub retries: Option<u32>,

    /// The longest wait before a retry. If the model server asks for a longer one, its response goes to the client. Default: 5
    /// seconds.
    pub retry_wait: Option<TimeOrZero>,

    /// How long to keep an idle client connection open. Default: 75 seconds.
    pub connection_idle_timeout: Option<Time>,

    /// The time limit for receiving a request body. Default: 60 seconds.
    pub body_timeout: Option<Time>,

    /// The time limit for connecting to a model server. Default: 10 seconds.
    pub connect_timeout: Option<Time>,

    /// The time limit until the model server starts to respond. Default: 10 minutes.
    pub first_byte_timeout: Option<Time>,

    /// How long the model server may pause within a response, and how long a client may pause reading one. Default: 5 minutes.
    pub idle_timeout: Option<Time>,

    /// How long a stream may be idle before a keep-alive event is sent, so that proxies keep the connection open. Default: 15
    /// seconds.
    pub keep_alive: Option<Time>,

    /// How long to accept requests after SIGTERM, while `/ready` returns 503, so that load balancers notice. Default: 5 seconds.
    pub drain_delay: Option<TimeOrZero>,

    /// How long to wait after that for requests in progress. Default: 30 seconds.
    pub drain_timeout: Option<TimeOrZero>,
}

impl Serve {
    /// Returns the first key whose value makes no sense, and a message with the fix.
    pub(super) fn problem(&self) -> Option<(&'static str, String)> {
        let most = [
            (
                "key_requests",
                self.key_requests.map(NonZeroU32::get),
                MAX_REQUESTS,
            ),
            ("key_rate", self.key_rate.map(NonZeroU32::get), MAX_REQUESTS),
            (
                "max_requests",
                self.max_requests.map(NonZeroU32::get),
                MAX_REQUESTS,
            ),
            ("retries", self.retries, MAX_RETRIES),
        ];
        let above = most
            .into_iter()
            .find(|(_, value, most)| *value > Some(*most));
        if let Some((key, _, most)) = above {
            return Some((key, format!("`{key}` must be at most {most}")));
        }
        let body = self.max_body.unwrap_or(DEFAULT_MAX_BODY).0;
        let bodies = self.max_bodies.filter(|bodies| bodies.0 < body)?.0;
        let message =
            format!("`max_bodies` is {bodies} bytes; it must be at least `max_body`, {body} bytes");
        Some(("max_bodies", message))
    }

    /// Returns whether a running gateway cannot change from these settings to others.
    pub fn needs_restart(&self, other: &Self) -> bool {
        let fixed = |serve: &Self| Self {
            models: None,
            keys_file: None,
            key_requests: None,
            key_rate: None,
            ..serve.clone()
        };
        fixed(self) != fixed(other)
    }
}
