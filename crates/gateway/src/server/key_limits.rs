//! Limits of each client key, and what counts towards limits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plaincall_wire::openai::ErrorObject;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::error::GatewayError;

/// The time for which [`KeyLimits::per_minute`] counts requests.
const MINUTE: Duration = Duration::from_mins(1);
/// The time after which a client can try again if its key has too many concurrent requests.
const SOON: Duration = Duration::from_secs(1);

/// Limits of a client key. Further requests get 429, and the time after which the client can try again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyLimits {
    /// The maximum number of concurrent requests. Default: no limit.
    pub concurrent: Option<u32>,
    /// The maximum number of requests at once, which is also the number of requests that the key regains per minute.
    /// Default: no limit.
    pub per_minute: Option<u32>,
}

/// Counts a request towards the limits, until it has ended.
pub(super) struct RequestPermit {
    pub(super) _request: OwnedSemaphorePermit,
    pub(super) _key: Option<KeyPermit>,
}

/// The use of a key. It continues when the settings are reloaded.
#[derive(Debug, Default)]
pub(super) struct KeyUse(Mutex<Uses>);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uses {
    /// The requests in progress.
    pub(super) active: u32,
    /// The requests rejected because too many were in progress.
    pub(super) over_concurrent: u64,
    /// The requests rejected because there were too many per minute.
    pub(super) over_rate: u64,
    /// When the key has regained all requests of a minute.
    full_at: Option<Instant>,
}

/// A request in progress, until it is dropped.
pub(super) struct KeyPermit(Arc<KeyUse>);

impl KeyLimits {
    pub(super) fn check(self) -> Result<(), String> {
        if [self.concurrent, self.per_minute].contains(&Some(0)) {
            return Err("a limit of a client key must not be 0".to_owned());
        }
        Ok(())
    }
}

impl KeyUse {
    // The numbers stay usable after a panic.
    fn lock(&self) -> MutexGuard<'_, Uses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request, unless it exceeds a limit.
    pub(super) fn begin(self: &Arc<Self>, limits: KeyLimits) -> Result<KeyPermit, GatewayError> {
        let mut uses = self.lock();
        if let Some(most) = limits.concurrent.filter(|most| uses.active >= *most) {
            uses.over_concurrent += 1;
            let words = format!("too many concurrent requests with this API key (at most {most})");
            return Err(limited(&words, SOON));
        }
        if let Some(most) = limits.per_minute
            && let Err(wait) = uses.take(most, Instant::now())
        {
            uses.over_rate += 1;
            let words = format!("too many requests with this API key (at most {most} per minute)");
            return Err(limited(&words, wait));
        }
        uses.active += 1;
        Ok(KeyPermit(Arc::clone(self)))
    }

    pub(super) fn now(&self) -> Uses {
        *self.lock()
    }
}

impl Uses {
    /// Counts a request, or returns the time until it is possible.
    fn take(&mut self, per_minute: u32, now: Instant) -> Result<(), Duration> {
        let full_at = self.full_at.unwrap_or(now).max(now) + MINUTE / per_minute.max(1);
        let wait = full_at.saturating_duration_since(now + MINUTE);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.full_at = Some(full_at);
        Ok(())
    }
}

impl Drop for KeyPermit {
    fn drop(&mut self) {
        self.0.lock().active -= 1;
    }
}

/// Returns the error for a request over a limit. The time is rounded up to seconds.
fn limited(words: &str, wait: Duration) -> GatewayError {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let message = format!("{words}: try again in {seconds} s");
    let error = ErrorObject::new("rate_limit_error", message).code("rate_limit_exceeded");
    GatewayError::new(429, error).retry_after(seconds)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Uses;

    #[test]
    fn requests_are_regained_evenly() {
        let mut uses = Uses::default();
        let begin = Instant::now();
        for (milliseconds, per_minute, wait) in [
            (0, 3, 0),
            (0, 3, 0),
            (0, 3, 0),
            (0, 3, 20_000),
            (19_999, 3, 1),
            (20_000, 3, 0),
            (20_000, 3, 20_000),
            // Another limit applies at once, to the same uses.
            (20_000, 6, 10_000),
            (20_000, 1, 60_000),
            (39_000, 60, 0),
            (39_000, 60, 0),
            // What is not used is not saved up.
            (9_000_000, 2, 0),
            (9_000_000, 2, 0),
            (9_000_000, 2, 30_000),
        ] {
            let found = uses.take(per_minute, begin + Duration::from_millis(milliseconds));
            let found = found.err().unwrap_or_default().as_millis();
            assert_eq!(found, wait, "{milliseconds} {per_minute}");
        }
    }
}
