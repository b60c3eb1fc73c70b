//! Counters of a model server.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters of a model server, and whether its last request was answered.
#[derive(Debug, Default)]
pub(super) struct Health {
    requests: AtomicU64,
    failures: AtomicU64,
    is_down: AtomicBool,
}

/// Counters of a model server at one time.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::server) struct UpstreamCounts {
    pub(in crate::server) requests: u64,
    pub(in crate::server) failures: u64,
    pub(in crate::server) retries: u64,
    /// Whether the last request got no answer.
    pub(in crate::server) is_down: bool,
}

impl Health {
    /// Counts a request with the status of its answer, or without an answer.
    pub(super) fn add(&self, status: Option<u16>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if status.is_none_or(|status| status >= 500) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.is_down.store(status.is_none(), Ordering::Relaxed);
    }

    pub(super) fn counts(&self, retries: u64) -> UpstreamCounts {
        UpstreamCounts {
            requests: self.requests.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            retries,
            is_down: self.is_down.load(Ordering::Relaxed),
        }
    }
}

impl AddAssign for UpstreamCounts {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.failures += other.failures;
        self.retries += other.retries;
        self.is_down |= other.is_down;
    }
}
