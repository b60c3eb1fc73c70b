//! The log of a run: its events as JSON lines that survive a crash (`spec/log.md`).

mod error;
#[cfg(feature = "tokio")]
mod file;
mod line;
mod record;
#[cfg(feature = "tokio")]
mod recorder;
#[cfg(feature = "tokio")]
mod storage;

pub use error::LogError;
#[cfg(feature = "tokio")]
pub use file::Log;
pub use line::{LOG_VERSION, LineEncoder};
pub use record::{Record, TornTail, read_log};
#[cfg(feature = "tokio")]
pub(crate) use recorder::{Durability, Progress, Recorder};
#[cfg(feature = "tokio")]
pub use storage::Storage;
