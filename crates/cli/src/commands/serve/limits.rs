//! The limits and timeouts of the gateway.

use std::num::NonZeroU32;

use plaincall_config::settings::Serve;
use plaincall_gateway::GatewayConfig;
use plaincall_gateway::server::KeyLimits;

/// Sets the limits and timeouts that stay until a restart. What is not set keeps its default.
pub(super) fn apply(config: &mut GatewayConfig, serve: &Serve) {
    fn set<T>(target: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *target = value;
        }
    }
    let requests = serve.max_requests.map(|most| most.get() as usize);
    let limits = &mut config.limits;
    set(&mut limits.body, serve.max_body.map(|size| size.0));
    set(&mut limits.bodies, serve.max_bodies.map(|size| size.0));
    set(&mut limits.concurrent, requests);
    limits.connections = limits.concurrent.saturating_mul(2);
    let retries = &mut config.retries;
    set(&mut retries.max_retries, serve.retries);
    set(&mut retries.max_wait, serve.retry_wait.map(|time| time.0));
    let times = &mut config.timeouts;
    for (timeout, time) in [
        (&mut times.connection_idle, serve.connection_idle_timeout),
        (&mut times.body, serve.body_timeout),
        (&mut times.connect, serve.connect_timeout),
        (&mut times.first_byte, serve.first_byte_timeout),
        (&mut times.idle, serve.idle_timeout),
        (&mut times.keep_alive, serve.keep_alive),
    ] {
        set(timeout, time.map(|time| time.0));
    }
    set(&mut times.drain, serve.drain_timeout.map(|time| time.0));
}

/// Returns the limits of client keys without their own.
pub(super) fn of_keys(serve: &Serve) -> KeyLimits {
    let mut limits = KeyLimits::default();
    limits.concurrent = serve.key_requests.map(NonZeroU32::get);
    limits.per_minute = serve.key_rate.map(NonZeroU32::get);
    limits
}
