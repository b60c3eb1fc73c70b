//! Writes a log in the background. Lines collect in a buffer while a batch is being written.

use std::future::pending;
use std::io;
use std::mem;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use super::file::Log;
use super::line::LineEncoder;
use super::storage::{Storage, store};
use crate::event::RunEvent;

/// A larger buffer, in bytes, is not reused for the next batch.
const KEPT_BUFFER: usize = 1024 * 1024;

/// The durability that a line needs before it counts as safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A crash of this process.
    Written,
    /// A power failure.
    Synced,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All lines with smaller numbers are safe.
    Safe(u64),
    /// The log cannot be written, with the error. Reported once.
    Failed(Arc<str>),
}

/// Writes the lines of one log, for the driver of the run.
///
/// `record` never waits for a batch. A failure is final: lines that are not safe are dropped, and nothing is written after
/// them, so only the last line can be incomplete.
pub(crate) struct Recorder {
    /// `None` while a batch is being written. It stays after a failure, so that no other run can lock the log before this
    /// run has ended.
    storage: Option<Box<dyn Storage>>,
    encoder: LineEncoder,
    buffer: Vec<u8>,
    /// Whether a line of the next batch must be synced.
    must_sync: bool,
    /// Whether lines were written that may not be synced.
    unsynced: bool,
    batch: Option<Batch>,
    /// The state that barriers observe.
    state: watch::Sender<State>,
}

struct Batch {
    task: JoinHandle<Stored>,
    bytes: usize,
    /// All lines with smaller numbers are safe when the batch is written.
    next: u64,
    sync: bool,
}

struct Stored {
    storage: Box<dyn Storage>,
    buffer: Vec<u8>,
    result: io::Result<()>,
}

#[derive(Default)]
struct State {
    safe: u64,
    failed: Option<Arc<str>>,
}

/// Waits for a line. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Barrier {
    state: watch::Receiver<State>,
}

impl Recorder {
    /// Continues a log at its end.
    pub(crate) fn new(log: Log) -> Self {
        let lines = u64::try_from(log.history.len()).unwrap_or(u64::MAX);
        Self {
            storage: Some(log.storage),
            encoder: LineEncoder::from_number(lines),
            buffer: Vec::new(),
            must_sync: false,
            unsynced: false,
            batch: None,
            state: watch::Sender::new(State {
                safe: lines,
                failed: None,
            }),
        }
    }

    /// Adds the line of an event to the next batch and returns its number. After a failure, it does nothing and returns a
    /// number that is never safe.
    pub(crate) fn record(&mut self, event: &RunEvent, durability: Durability) -> u64 {
        let number = self.encoder.next_number();
        if self.failed().is_none() {
            match self.encoder.append(event, &mut self.buffer) {
                Ok(()) => self.must_sync |= durability == Durability::Synced,
                Err(error) => self.fail(&Arc::from(error.to_string())),
            }
        }
        number
    }

    /// Writes recorded lines, and returns when a batch is written. Never returns if there is nothing to write. Cancel safe.
    pub(crate) async fn progress(&mut self) -> Progress {
        if self.batch.is_none() && !self.buffer.is_empty() {
            self.send(self.must_sync);
        }
        self.arrival().await
    }

    /// Writes and syncs all recorded lines.
    ///
    /// # Errors
    /// Returns an error if the log fails or has failed before.
    pub(crate) async fn finish(&mut self) -> Result<(), Arc<str>> {
        loop {
            if let Some(error) = self.failed() {
                return Err(error);
            }
            if self.batch.is_none() {
                if self.buffer.is_empty() && !self.unsynced {
                    return Ok(());
                }
                self.send(true);
            }
            self.arrival().await;
        }
    }

    /// Returns the number below which all lines are safe.
    pub(crate) fn written(&self) -> u64 {
        self.state.borrow().safe
    }

    pub(crate) fn failed(&self) -> Option<Arc<str>> {
        self.state.borrow().failed.clone()
    }

    pub(crate) fn barrier(&self) -> Barrier {
        Barrier {
            state: self.state.subscribe(),
        }
    }

    /// Returns whether there are lines that are not safe yet.
    pub(crate) fn is_busy(&self) -> bool {
        self.batch.is_some() || (self.failed().is_none() && !self.buffer.is_empty())
    }

    /// Returns the size of the lines that are not safe yet, in bytes.
    pub(crate) fn buffered(&self) -> usize {
        self.buffer.len() + self.batch.as_ref().map_or(0, |batch| batch.bytes)
    }

    fn send(&mut self, sync: bool) {
        let Some(mut storage) = self.storage.take() else {
            return;
        };
        let buffer = mem::take(&mut self.buffer);
        self.must_sync = false;
        self.batch = Some(Batch {
            bytes: buffer.len(),
            next: self.encoder.next_number(),
            sync,
            task: spawn_blocking(move || Stored {
                result: store(storage.as_mut(), &buffer, sync),
                storage,
                buffer,
            }),
        });
    }

    /// Waits for the current batch. Cancel safe.
    async fn arrival(&mut self) -> Progress {
        let Some(batch) = &mut self.batch else {
            return pending().await;
        };
        let stored = (&mut batch.task).await;
        let (next, sync) = (batch.next, batch.sync);
        self.batch = None;
        self.arrived(stored, next, sync)
    }

    fn arrived(&mut self, stored: Result<Stored, JoinError>, next: u64, sync: bool) -> Progress {
        let result = match stored {
            Ok(stored) => {
                self.storage = Some(stored.storage);
                self.keep(stored.buffer);
                stored.result.map_err(|error| error.to_string())
            }
            Err(_) => Err("the thread that writes the log was stopped".to_owned()),
        };
        match result {
            Ok(()) => {
                self.unsynced = !sync;
                self.state.send_modify(|state| state.safe = next);
                Progress::Safe(next)
            }
            Err(error) => {
                let error = Arc::from(error);
                self.fail(&error);
                Progress::Failed(error)
            }
        }
    }

    fn fail(&mut self, error: &Arc<str>) {
        self.buffer = Vec::new();
        self.state
            .send_modify(|state| state.failed = Some(Arc::clone(error)));
    }

    /// Reuses the memory of a batch, if nothing was recorded since.
    fn keep(&mut self, mut buffer: Vec<u8>) {
        if self.buffer.capacity() == 0 && buffer.capacity() <= KEPT_BUFFER {
            buffer.clear();
            self.buffer = buffer;
        }
    }
}

impl Barrier {
    /// Waits until the line with this number is safe.
    ///
    /// # Errors
    /// Returns an error if the log has failed.
    pub(crate) async fn reached(&self, number: u64) -> Result<(), Arc<str>> {
        let mut state = self.state.clone();
        let decided = |state: &State| state.safe > number || state.failed.is_some();
        match state.wait_for(decided).await {
            Ok(state) if state.safe > number => Ok(()),
            Ok(state) => Err(state
                .failed
                .clone()
                .unwrap_or_else(|| "the log has failed".into())),
            Err(_) => Err("the run has ended before its log was written".into()),
        }
    }
}
