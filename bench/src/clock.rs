//! The processor time of this thread.

use std::time::Duration;

/// Returns the processor time of this thread. It excludes the time of other programs on a shared machine.
#[cfg(unix)]
pub(crate) fn now() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Returns the time since the first call. This replaces the processor time where the system does not report it.
#[cfg(not(unix))]
pub(crate) fn now() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
