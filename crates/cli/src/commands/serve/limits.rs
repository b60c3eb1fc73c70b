//! How much `plaincall serve` takes, and how long it waits.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use plaincall_config::{Size, Time, TimeOrZero};
use plaincall_gateway::{ServerLimits, Timeouts};

/// How much is taken.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitOptions {
    /// The longest body of a request.
    #[arg(long, value_name = "SIZE", default_value = "32MiB")]
    max_body: Size,

    /// How many requests are answered at one time; more get the status 503. Clients may have twice as many connections.
    #[arg(long, value_name = "N", default_value = "4096", value_parser = from_to(1, 1_000_000))]
    pub(super) max_requests: u32,

    /// How long all bodies together may be that are still needed: until the model's server has them, or where a reply may
    /// be repaired until its end. Further requests get the status 503.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    max_bodies: Size,

    /// How often a request is sent again that the model's server did not accept: it could not be reached, or answered 429 or
    /// 503 with a time to wait.
    #[arg(long, value_name = "N", default_value = "2", value_parser = from_to(0, 10))]
    pub(super) retries: u32,
}

/// How long is waited.
#[derive(Args, Debug)]
#[command(next_help_heading = "Times")]
pub(crate) struct TimeOptions {
    /// The longest wait before a request is sent again; if the model's server asks for more, the client gets its answer.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(super) retry_wait: TimeOrZero,

    /// How long a connection is kept on which no other request comes.
    #[arg(long, value_name = "TIME", default_value = "75s")]
    connection_idle_timeout: Time,

    /// How long the body of a request may take.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    body_timeout: Time,

    /// How long connecting to the model's server may take.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    connect_timeout: Time,

    /// How long the model's server may take until it begins to answer.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    first_byte_timeout: Time,

    /// How long it may be silent while it answers, and how long a client may take to read a piece.
    #[arg(long, value_name = "TIME", default_value = "5m")]
    idle_timeout: Time,

    /// How long the client of a stream waits until it gets a comment, so that nothing between closes the connection.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    keep_alive: Time,

    /// How long after SIGTERM requests are still taken, while `/ready` says 503, so that load balancers notice.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(super) drain_delay: TimeOrZero,

    /// How long it then waits for requests that are being answered.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    drain_timeout: TimeOrZero,
}

/// A whole number from `least` to `most`.
pub(super) fn from_to(least: u64, most: u64) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(least..=most)
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
