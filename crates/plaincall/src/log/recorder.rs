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

/// How far the log has come.
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
    /// The lines of the next batch.
    buffer: Vec<u8>,
    /// Whether a line of the next batch has to be synced.
    must_sync: bool,
    /// Whether lines have been written that are not known to be synced.
    unsynced: bool,
    batch: Option<Batch>,
    failed: Option<Arc<str>>,
    /// What the barriers see.
    state: watch::Sender<State>,
}

/// A batch on its way.
struct Batch {
    task: JoinHandle<Stored>,
    bytes: usize,
    /// All lines below this number are safe when it has arrived.
    next: u64,
    sync: bool,
}

/// What comes back from the thread that wrote a batch.
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
            failed: None,
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
            if let Some(error) = &self.failed {
                return Err(Arc::clone(error));
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

    /// Why the log cannot be written any more, if it cannot.
    pub(crate) fn failed(&self) -> Option<&Arc<str>> {
        self.failed.as_ref()
    }

    /// A handle to wait for lines with.
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

    /// Sends the buffer on its way.
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
        self.failed = Some(Arc::clone(error));
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

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::future::Future;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::sync::{Mutex, MutexGuard};
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use super::*;
    use crate::event::Delta;
    use crate::log::{LogError, read_log};
    use crate::source::Source;

    const BEGIN: &str = r#"{"event":"run","version":1,"plaincall":"0.1.0","began_unix_ms":0,"policy":{
        "concurrent":1,"block_order":"graph","emoji_order":"graph","gate_timeout_ms":1,"writes":"at_once",
        "result_limit":1},"tools":{}}"#;

    fn text(text: &str) -> RunEvent {
        RunEvent::Text(Delta {
            source: Source::Text(text.into()),
            at: Duration::ZERO,
        })
    }

    /// The events of a small log, and how durable each has to be.
    fn script() -> Vec<(RunEvent, Durability)> {
        let mut script = vec![(serde_json::from_str(BEGIN).unwrap(), Durability::Written)];
        for number in 1..12 {
            let durability = if number % 3 == 0 {
                Durability::Synced
            } else {
                Durability::Written
            };
            script.push((text(&"x".repeat(number)), durability));
        }
        script
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Operation {
        Write,
        Flush,
        Sync,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Fault {
        Error(io::ErrorKind),
        /// A few bytes go through and the next write fails.
        Half,
        /// A write says that it has taken no bytes.
        Nothing,
        /// A write says that it has taken more bytes than it was given.
        TooMany,
        Panic,
        /// No failure.
        Interrupted,
    }

    /// A disk that has one fault, and what of the log is where.
    #[derive(Default)]
    struct Disk {
        /// The operation that fails: its kind, its number among those of its kind, and how.
        fault: Option<(Operation, usize, Fault)>,
        /// How many bytes it takes at once.
        at_once: Option<usize>,
        counts: [usize; 3],
        has_failed: bool,
        /// Operations after the one that failed.
        after_failure: usize,
        /// Gone if the process ends.
        process: Vec<u8>,
        /// Gone if the power goes.
        system: Vec<u8>,
        kept: Vec<u8>,
    }

    impl Disk {
        fn fault(&mut self, operation: Operation) -> Option<Fault> {
            if self.has_failed {
                self.after_failure += 1;
            }
            let count = &mut self.counts[operation as usize];
            *count += 1;
            let (kind, number, fault) = self.fault?;
            let is_now = kind == operation && number + 1 == *count;
            self.has_failed |= is_now && !matches!(fault, Fault::Interrupted | Fault::Half);
            is_now.then_some(fault)
        }

        fn all_of_it(&self) -> Vec<u8> {
            [&*self.system, &*self.process].concat()
        }
    }

    #[derive(Clone, Default)]
    struct FaultyDisk(Arc<Mutex<Disk>>);

    impl FaultyDisk {
        fn look(&self) -> MutexGuard<'_, Disk> {
            self.0
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        }

        fn step(&self, operation: Operation) -> io::Result<()> {
            let fault = self.look().fault(operation);
            match fault {
                None => Ok(()),
                Some(Fault::Error(kind)) => Err(kind.into()),
                Some(Fault::Interrupted) => Err(io::ErrorKind::Interrupted.into()),
                Some(Fault::Panic) => panic!("the disk is on fire"),
                Some(Fault::Half | Fault::Nothing | Fault::TooMany) => unreachable!(),
            }
        }
    }

    impl Storage for FaultyDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut disk = self.look();
            let fault = disk.fault(Operation::Write);
            let count = match fault {
                Some(Fault::Nothing) => return Ok(0),
                Some(Fault::TooMany) => return Ok(bytes.len() + 1),
                Some(Fault::Half) => {
                    let next = disk.counts[Operation::Write as usize];
                    disk.fault = Some((
                        Operation::Write,
                        next,
                        Fault::Error(io::ErrorKind::StorageFull),
                    ));
                    bytes.len().div_ceil(2)
                }
                Some(Fault::Error(kind)) => return Err(kind.into()),
                Some(Fault::Interrupted) => return Err(io::ErrorKind::Interrupted.into()),
                Some(Fault::Panic) => panic!("the disk is on fire"),
                None => disk.at_once.unwrap_or(usize::MAX).min(bytes.len()),
            };
            disk.process.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.step(Operation::Flush)?;
            let disk = &mut *self.look();
            disk.system.append(&mut disk.process);
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            self.step(Operation::Sync)?;
            let disk = &mut *self.look();
            disk.kept.clone_from(&disk.system);
            Ok(())
        }
    }

    fn run<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(future)
    }

    /// Polls the future once and drops it.
    fn poll_once<F: Future>(future: F) -> Option<F::Output> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// How many whole lines there are, all of which have to be those of the script.
    fn whole_lines(bytes: &[u8]) -> usize {
        match read_log(bytes) {
            Err(LogError::Empty) => 0,
            Err(error) => panic!("{error}"),
            Ok(record) => {
                let written = script().into_iter().map(|(event, _)| event);
                assert!(
                    written
                        .take(record.events.len())
                        .eq(record.events.iter().cloned())
                );
                record.events.len()
            }
        }
    }

    /// What was said to be safe is where it has to be.
    fn check_promise(disk: &FaultyDisk, safe: u64) {
        let disk = disk.look();
        let safe = usize::try_from(safe).unwrap();
        assert!(whole_lines(&disk.system) >= safe);
        let synced = script()
            .iter()
            .take(safe)
            .rposition(|(_, durability)| *durability == Durability::Synced);
        assert!(whole_lines(&disk.kept) >= synced.map_or(0, |last| last + 1));
    }

    /// Writes the script to a disk, with batches of one line, of several, and with futures that are dropped. Returns
    /// whether all of it was written.
    async fn write_script(disk: &FaultyDisk) -> bool {
        let mut recorder = Recorder::new(Log::to(disk.clone()));
        let barrier = recorder.barrier();
        let early = tokio::spawn(async move { barrier.reached(11).await });
        let mut promised = 0;
        let mut failure = None;
        for (number, (event, durability)) in script().iter().enumerate() {
            let number = u64::try_from(number).unwrap();
            let line = recorder.record(event, *durability);
            assert!(line == number || failure.is_some() && line >= promised);
            if number % 3 == 1 {
                continue;
            }
            for _ in 0..number % 5 {
                match poll_once(recorder.progress()) {
                    Some(Progress::Safe(safe)) => promised = safe,
                    Some(Progress::Failed(error)) => failure = Some(error),
                    None => {}
                }
            }
            if number % 2 == 0 && failure.is_none() && recorder.buffered() > 0 {
                match recorder.progress().await {
                    Progress::Safe(safe) => promised = safe,
                    Progress::Failed(error) => failure = Some(error),
                }
            }
            assert_eq!(recorder.written(), promised);
            assert_eq!(recorder.failed(), failure.as_ref());
            check_promise(disk, promised);
        }
        let end = recorder.finish().await;
        let promised = recorder.written();
        check_promise(disk, promised);
        let barrier = recorder.barrier();
        for number in 0..12 {
            assert_eq!(
                barrier.reached(number).await.is_ok(),
                number < promised,
                "{number}"
            );
        }
        let early_end = if promised > 11 { Ok(()) } else { end.clone() };
        assert_eq!(early.await.unwrap(), early_end);
        assert_eq!(recorder.failed(), end.as_ref().err());
        assert_eq!(recorder.finish().await, end);

        // Nothing is written after a failure, whatever is recorded.
        let before = disk.look().all_of_it();
        if end.is_err() {
            assert_eq!(recorder.buffered(), 0);
            let is_held = Arc::strong_count(&disk.0) == 2;
            let is_panic = matches!(disk.look().fault, Some((_, _, Fault::Panic)));
            assert!(is_held || is_panic, "another run could take the log");
            recorder.record(&text("late"), Durability::Synced);
            assert_eq!(recorder.buffered(), 0);
            assert_eq!(poll_once(recorder.progress()), None);
            drop(recorder);
            let disk = disk.look();
            assert_eq!((disk.after_failure, disk.all_of_it()), (0, before));
            whole_lines(&disk.all_of_it());
        } else {
            assert_eq!(promised, 12);
            let disk = disk.look();
            assert_eq!((whole_lines(&disk.kept), &disk.kept), (12, &before));
        }
        end.is_ok()
    }

    /// The fault strikes every operation of the kind once. Returns how many there are.
    fn check(operation: Operation, fault: Fault, at_once: Option<usize>) -> usize {
        let mut number = 0;
        loop {
            let disk = FaultyDisk::default();
            disk.look().fault = Some((operation, number, fault));
            disk.look().at_once = at_once;
            let is_whole = run(write_script(&disk));
            let has_struck = disk.look().counts[operation as usize] > number;
            assert_eq!(
                is_whole,
                !has_struck || fault == Fault::Interrupted,
                "{operation:?} {number} {fault:?}"
            );
            if !has_struck {
                return number;
            }
            number += 1;
        }
    }

    #[test]
    fn every_operation_may_fail() {
        for fault in [
            Fault::Error(io::ErrorKind::StorageFull),
            Fault::Error(io::ErrorKind::Other),
            Fault::Interrupted,
            Fault::Panic,
        ] {
            for operation in [Operation::Write, Operation::Flush, Operation::Sync] {
                assert!(check(operation, fault, None) >= 2, "{operation:?}");
            }
        }
        for fault in [Fault::Half, Fault::Nothing, Fault::TooMany] {
            assert!(check(Operation::Write, fault, None) >= 3);
        }
    }

    #[test]
    fn every_byte_may_be_the_last() {
        let bytes = check(
            Operation::Write,
            Fault::Error(io::ErrorKind::StorageFull),
            Some(1),
        );
        assert!(bytes > 700, "{bytes}");
        for fault in [Fault::Interrupted, Fault::Nothing, Fault::TooMany] {
            assert!(check(Operation::Write, fault, Some(13)) > 50);
        }
    }

    /// A storage that begins a write when it is told to.
    struct Gated {
        disk: FaultyDisk,
        gate: mpsc::Receiver<()>,
    }

    impl Storage for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.gate.recv().map_err(io::Error::other)?;
            self.disk.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.disk.flush()
        }

        fn sync(&mut self) -> io::Result<()> {
            self.disk.sync()
        }
    }

    #[test]
    fn lines_gather_while_a_batch_is_on_its_way() {
        run(async {
            let disk = FaultyDisk::default();
            let (open, gate) = mpsc::channel();
            let mut recorder = Recorder::new(Log::to(Gated {
                disk: disk.clone(),
                gate,
            }));
            assert_eq!(poll_once(recorder.progress()), None);
            let mut script = script().into_iter();
            let (event, durability) = script.next().unwrap();
            recorder.record(&event, durability);
            let first = recorder.buffered();
            assert_eq!(poll_once(recorder.progress()), None);
            for (event, durability) in script {
                recorder.record(&event, durability);
                assert_eq!(poll_once(recorder.progress()), None);
            }
            let all = recorder.buffered();
            let barrier = recorder.barrier();
            let waiting = tokio::spawn(async move {
                (barrier.reached(0).await, barrier.clone().reached(11).await)
            });

            open.send(()).unwrap();
            assert_eq!(recorder.progress().await, Progress::Safe(1));
            assert_eq!((recorder.written(), recorder.buffered()), (1, all - first));
            open.send(()).unwrap();
            assert_eq!(recorder.progress().await, Progress::Safe(12));
            assert_eq!((recorder.written(), recorder.buffered()), (12, 0));
            assert_eq!(waiting.await.unwrap(), (Ok(()), Ok(())));
            assert_eq!(poll_once(recorder.progress()), None);
            let counts = disk.look().counts;
            assert_eq!(counts, [2, 2, 1], "writes, flushes, syncs");
            assert_eq!(whole_lines(&disk.look().kept), 12);
        });
    }

    #[test]
    fn the_end_is_synced_once() {
        run(async {
            let disk = FaultyDisk::default();
            let mut recorder = Recorder::new(Log::to(disk.clone()));
            assert_eq!(recorder.finish().await, Ok(()));
            assert_eq!(disk.look().counts, [0, 0, 0]);
            let (event, durability) = script().swap_remove(0);
            assert_eq!(durability, Durability::Written);
            recorder.record(&event, durability);
            assert_eq!(recorder.progress().await, Progress::Safe(1));
            assert_eq!(disk.look().counts, [1, 1, 0]);
            assert_eq!(recorder.finish().await, Ok(()));
            assert_eq!(recorder.finish().await, Ok(()));
            assert_eq!(disk.look().counts, [1, 2, 1]);
            assert_eq!(whole_lines(&disk.look().kept), 1);
        });
    }

    #[test]
    fn only_what_has_to_be_synced_is_synced() {
        run(async {
            let disk = FaultyDisk::default();
            let mut recorder = Recorder::new(Log::to(disk.clone()));
            let mut syncs = 0;
            for (event, durability) in script() {
                recorder.record(&event, durability);
                recorder.progress().await;
                syncs += usize::from(durability == Durability::Synced);
                assert_eq!(disk.look().counts[Operation::Sync as usize], syncs);
            }
            assert_eq!(syncs, 3);
        });
    }

    #[test]
    fn a_barrier_outlives_the_recorder() {
        run(async {
            let mut recorder = Recorder::new(Log::to(FaultyDisk::default()));
            for (event, durability) in script().into_iter().take(2) {
                recorder.record(&event, durability);
                if recorder.written() == 0 {
                    recorder.progress().await;
                }
            }
            let barrier = recorder.barrier();
            let waiting = barrier.clone();
            let waiting = tokio::spawn(async move { waiting.reached(1).await });
            tokio::task::yield_now().await;
            drop(recorder);
            let gone = Err("the run has ended before its log was written".into());
            assert_eq!(waiting.await.unwrap(), gone);
            assert_eq!(barrier.reached(1).await, gone);
            assert_eq!(barrier.reached(0).await, Ok(()));
        });
    }

    #[test]
    fn a_log_goes_on_where_it_was_torn() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.jsonl");
        let script = script();
        run(async {
            for (index, (event, durability)) in script.iter().enumerate() {
                let log = if index == 0 {
                    Log::create(&path).unwrap()
                } else {
                    Log::resume(&path).unwrap()
                };
                assert_eq!(log.history().len(), index);
                assert_eq!(log.torn().is_some(), index > 0);
                let mut recorder = Recorder::new(log);
                assert_eq!(recorder.written(), u64::try_from(index).unwrap());
                recorder.record(event, *durability);
                assert!(matches!(Log::resume(&path), Err(LogError::InUse { .. })));
                recorder.finish().await.unwrap();
                drop(recorder);
                let bytes = fs::read(&path).unwrap();
                assert_eq!(whole_lines(&bytes), index + 1);
                fs::write(&path, [&*bytes, b"{\"n\":99"].concat()).unwrap();
            }
        });
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_told_by_its_own_words() {
        run(async {
            let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
            let mut recorder = Recorder::new(Log::to(full));
            let (event, durability) = script().swap_remove(0);
            recorder.record(&event, durability);
            let Progress::Failed(error) = recorder.progress().await else {
                panic!("it was written");
            };
            assert!(error.contains("No space left"), "{error}");
            assert_eq!(recorder.finish().await, Err(error));
        });
    }
}
