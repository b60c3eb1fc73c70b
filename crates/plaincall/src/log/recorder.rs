//! Writes a log beside a run that goes on: lines gather while one batch is on its way to the disk.

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

/// A buffer that has grown larger than this, in bytes, is not kept for the next batch.
const KEPT_BUFFER: usize = 1024 * 1024;

/// What a line has to outlive before anybody may act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The end of this process.
    Written,
    /// A loss of power.
    Synced,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All lines below this number are as safe as was asked for.
    Safe(u64),
    /// It cannot be written any more, and why. Told once.
    Failed(Arc<str>),
}

/// Writes the lines of one log. It belongs to the one task that drives the run.
///
/// A batch on its way is never waited for by `record`, and a failure is final: what was not safe by then is dropped,
/// and nothing is written after it, so a half-written line can only be the last.
pub(crate) struct Recorder {
    /// Absent while a batch is on its way. It stays after a failure, so that no other run takes the log before this one
    /// has ended.
    storage: Option<Box<dyn Storage>>,
    encoder: LineEncoder,
    buffer: Vec<u8>,
    /// Whether a line of the next batch has to be synced.
    must_sync: bool,
    /// Whether lines have been written that are not known to be synced.
    unsynced: bool,
    batch: Option<Batch>,
    /// What the barriers see.
    state: watch::Sender<State>,
}

struct Batch {
    task: JoinHandle<Stored>,
    bytes: usize,
    /// All lines below this number are safe when it has arrived.
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

/// Lets others wait for a line. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Barrier {
    state: watch::Receiver<State>,
}

impl Recorder {
    /// Goes on where the log ends.
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

    /// Appends the event's line to the next batch and returns the line's number. After a failure it does nothing; the
    /// number is then one that will never be safe.
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

    /// Sees to it that what was recorded gets written, and returns when a batch has arrived. Waits for ever if there
    /// is nothing to write. Nothing is lost if the future is dropped.
    pub(crate) async fn progress(&mut self) -> Progress {
        if self.batch.is_none() && !self.buffer.is_empty() {
            self.send(self.must_sync);
        }
        self.arrival().await
    }

    /// Writes and syncs everything that was recorded.
    ///
    /// # Errors
    /// If the log has failed, now or before.
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

    /// All lines below this number are as safe as was asked for.
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

    /// Whether anything was recorded that is not safe yet.
    pub(crate) fn is_busy(&self) -> bool {
        self.batch.is_some() || (self.failed().is_none() && !self.buffer.is_empty())
    }

    /// How many bytes have been recorded and are not safe yet.
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

    /// Waits for the batch that is on its way. The batch stays here until it has arrived, so a dropped future loses
    /// nothing.
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

    /// Uses the memory of a batch again, if nothing has been recorded since.
    fn keep(&mut self, mut buffer: Vec<u8>) {
        if self.buffer.capacity() == 0 && buffer.capacity() <= KEPT_BUFFER {
            buffer.clear();
            self.buffer = buffer;
        }
    }
}

impl Barrier {
    /// Returns when the line of this number is as safe as was asked for.
    ///
    /// # Errors
    /// If it will never be: why the log has failed.
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
