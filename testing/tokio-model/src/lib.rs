//! The part of tokio that the runner uses, so that a scheduler can try interleavings of it.
//!
//! The crate `plaincall-interleave` compiles the source of `plaincall` with this crate in the place of tokio. Tasks are
//! those of the crate `shuttle`: one runs at a time, and at every operation that another task could see the scheduler
//! may let any other task continue. It detects deadlocks.
//!
//! - Tasks ([`task`]) are counted; a test ends only when all of them have ([`interleave`]). They may panic, be aborted
//!   and have ids, as tokio's.
//! - Channels ([`sync`]) are tokio's own with a scheduling point before each operation. They know nothing of runtimes.
//! - Time ([`time`]) does not pass on its own. A clock jumps to the next deadline whenever the scheduler lets it: a
//!   timeout may come at any moment, early or late, but always in order of the deadlines.
//! - Processes and signals are tokio's and do not work here.
//!
//! Less than the real thing: memory is sequentially consistent, and cancellation tokens, locks and atomics of others
//! have no scheduling points of their own.
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::new_without_default,
    clippy::unwrap_used,
    reason = "tests; the names are tokio's"
)]

mod clock;
pub mod runtime;
pub mod sync;
pub mod task;
pub mod thread;
pub mod time;

pub use clock::interleave;
pub use task::spawn;
pub use tokio::{io, join, process, select, signal};

use shuttle::sync::atomic::{AtomicBool, Ordering};

/// A scheduling point: any other task may continue before this one.
pub fn step() {
    AtomicBool::new(false).load(Ordering::SeqCst);
}

/// A number below `end`, chosen by the scheduler, so that a schedule that failed can be replayed.
pub fn choose(end: usize) -> usize {
    use shuttle::rand::Rng as _;
    shuttle::rand::thread_rng().gen_range(0..end)
}
