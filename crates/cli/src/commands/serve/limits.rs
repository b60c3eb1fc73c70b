//! The limits and timeouts of `plaincall serve`.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use plaincall_config::{Size, Time, TimeOrZero};
use plaincall_gateway::server::{KeyLimits, ServerLimits, Timeouts};

use crate::keys::MAX_LIMIT;

/// The size and number limits of the server.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitOptions {
    /// The maximum size of a request body.
    #[arg(long, value_name = "SIZE", default_value = "32MiB")]
    max_body: Size,

    /// The maximum number of concurrent requests. Further requests get status 503. At most twice as
    /// many connections are accepted.
    #[arg(long, value_name = "N", default_value = "4096", value_parser = in_range(1, 1_000_000))]
    pub(super) max_requests: u32,

    /// The maximum number of concurrent requests of each client key. Further requests get status 429. Default: no limit.
    #[arg(long, value_name = "N", value_parser = in_range(1, MAX_LIMIT.into()))]
    key_requests: Option<u32>,

    /// The maximum number of requests of each client key per minute. A key can use them all at once, and regains them
    /// evenly. Further requests get status 429. Default: no limit.
    #[arg(long, value_name = "N", value_parser = in_range(1, MAX_LIMIT.into()))]
    key_rate: Option<u32>,

    /// The maximum total size of the request bodies in memory. A body stays in memory until the model server has it or,
    /// if the reply may need repair, until the reply ends. Further requests get status 503.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    max_bodies: Size,

    /// How many times to retry a request that the model server did not accept because it was unreachable, or returned
    /// 429 or 503 with a `Retry-After` header.
    #[arg(long, value_name = "N", default_value = "2", value_parser = in_range(0, 10))]
    pub(super) retries: u32,
}

/// The timeouts of the server.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Timeouts")]
pub(crate) struct TimeOptions {
    /// The longest wait before a retry. If the model server asks for a longer one, its response goes to the client.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(super) retry_wait: TimeOrZero,

    /// How long to keep an idle client connection open.
    #[arg(long, value_name = "TIME", default_value = "75s")]
    connection_idle_timeout: Time,

    /// The time limit for receiving a request body.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    body_timeout: Time,

    /// The time limit for connecting to the model server.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    connect_timeout: Time,

    /// The time limit until the model server starts to respond.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    first_byte_timeout: Time,

    /// How long the model server may pause within a response, and how long a client may pause reading one.
    #[arg(long, value_name = "TIME", default_value = "5m")]
    idle_timeout: Time,

    /// How long a stream may be idle before a keep-alive event is sent, so that proxies keep the connection open.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    keep_alive: Time,

    /// How long to accept requests after SIGTERM, while `/ready` returns 503, so that load balancers notice.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(super) drain_delay: TimeOrZero,

    /// How long to wait after that for requests in progress.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    drain_timeout: TimeOrZero,
}

/// Parses an integer from `min` to `max`.
pub(super) fn in_range(min: u64, max: u64) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(min..=max)
}

impl LimitOptions {
    pub(super) fn limits(&self) -> ServerLimits {
        let requests = usize::try_from(self.max_requests).unwrap_or(usize::MAX);
        let mut limits = ServerLimits::default();
        limits.body = self.max_body.0;
        limits.concurrent = requests;
        limits.connections = requests.saturating_mul(2);
        limits.bodies = self.max_bodies.0;
        limits
    }

    /// Returns the limits of client keys without their own.
    pub(super) fn key_limits(&self) -> KeyLimits {
        let mut limits = KeyLimits::default();
        limits.concurrent = self.key_requests;
        limits.per_minute = self.key_rate;
        limits
    }
}

impl TimeOptions {
    pub(super) fn timeouts(&self) -> Timeouts {
        let mut timeouts = Timeouts::default();
        timeouts.connection_idle = self.connection_idle_timeout.0;
        timeouts.body = self.body_timeout.0;
        timeouts.connect = self.connect_timeout.0;
        timeouts.first_byte = self.first_byte_timeout.0;
        timeouts.idle = self.idle_timeout.0;
        timeouts.keep_alive = self.keep_alive.0;
        timeouts.drain = self.drain_timeout.0;
        timeouts
    }
}
