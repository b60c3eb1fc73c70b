//! A log that fails at its first, second, … operation: nothing that is not logged runs or is delivered, and every subscriber
//! gets the failure.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use plaincall::{
    AllowAll, Context, Effect, Log, Run, RunEvent, Stop, Tool, Toolbox, TurnResults,
    log::{LineEncoder, Storage, read_log},
    policy::Retry,
};
use tokio::time::sleep;

use crate::runs::scene::{Milliseconds, written};

/// The failure of one operation of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// No space is left.
    Full,
    /// Half of a write succeeds, and the next operation fails.
    Half,
    /// A write returns 0 bytes.
    Nothing,
    /// A write returns more bytes than it got.
    TooMany,
    Panic,
    /// A signal, which is not a failure.
    Interrupted,
}

impl Fault {
    /// The error in the log.
    fn error(self) -> &'static str {
        match self {
            Self::Full | Self::Half | Self::Interrupted => "no space left",
            Self::Nothing | Self::TooMany => "bytes were written",
            Self::Panic => "the thread that writes the log was stopped",
        }
    }
}

/// A disk with one failure.
#[derive(Clone)]
struct Disk(Arc<Mutex<State>>);

struct State {
    /// The number of the failing operation, and its failure.
    fault: (usize, Fault),
    /// The maximum number of bytes per write.
    at_once: usize,
    operations: usize,
    syncs: usize,
    has_failed: bool,
    used_after_failure: bool,
    /// The bytes that were written, and are lost with the process.
    bytes: Vec<u8>,
    /// The number of bytes that the system has.
    flushed: usize,
    /// The number of bytes that survive a power failure.
    synced: usize,
    /// Calls that were started although their start was not on the disk.
    untraced: Vec<String>,
    starts: BTreeMap<u32, u32>,
}

impl Disk {
    fn new(fault: (usize, Fault), at_once: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            fault,
            at_once,
            operations: 0,
            syncs: 0,
            has_failed: false,
            used_after_failure: false,
            bytes: Vec::new(),
            flushed: 0,
            synced: 0,
            untraced: Vec::new(),
            starts: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Starts an operation. Returns its failure, if any.
    fn operate(&self, is_write: bool) -> io::Result<(MutexGuard<'_, State>, Option<Fault>)> {
        let mut state = self.state();
        state.used_after_failure |= state.has_failed;
        state.operations += 1;
        let (at, fault) = state.fault;
        if state.operations != at + 1 {
            return Ok((state, None));
        }
        let is_of_writes = matches!(fault, Fault::Half | Fault::Nothing | Fault::TooMany);
        if is_of_writes && !is_write {
            return Ok((state, None));
        }
        state.has_failed = !matches!(fault, Fault::Half | Fault::Interrupted);
        match fault {
            Fault::Full => Err(io::Error::new(io::ErrorKind::StorageFull, "no space left")),
            Fault::Interrupted => Err(io::ErrorKind::Interrupted.into()),
            Fault::Panic => {
                drop(state);
                panic!("the disk is on fire")
            }
            Fault::Half | Fault::Nothing | Fault::TooMany => Ok((state, Some(fault))),
        }
    }
}

impl Storage for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (mut state, fault) = self.operate(true)?;
        let count = match fault {
            Some(Fault::Nothing) => return Ok(0),
            Some(Fault::TooMany) => return Ok(bytes.len() + 1),
            Some(_) => {
                state.fault = (state.operations, Fault::Full);
                bytes.len().div_ceil(2)
            }
            None => bytes.len().min(state.at_once),
        };
        state.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        let (mut state, _) = self.operate(false)?;
        state.flushed = state.bytes.len();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let (mut state, _) = self.operate(false)?;
        state.synced = state.flushed;
        state.syncs += 1;
        Ok(())
    }
}

/// A tool that inspects the disk when it is started.
fn tool(name: &'static str, effect: Effect, disk: &Disk) -> Tool {
    let disk = disk.clone();
    Tool::new(name, move |Milliseconds { ms }, context: Context| {
        let mut state = disk.state();
        *state.starts.entry(context.call()).or_default() += 1;
        let attempt = state.starts[&context.call()];
        let line = format!(
            "\"event\":\"start\",\"call\":{},\"id\":\"{}\",\"name\":\"{name}\",\"attempt\":{attempt},",
            context.call(),
            context.id()
        );
        let synced = String::from_utf8_lossy(&state.bytes[..state.synced]).into_owned();
        if effect == Effect::Write && !synced.contains(&line) {
            state.untraced.push(context.id().to_owned());
        }
        async move {
            sleep(Duration::from_millis(ms)).await;
            match name {
                "flaky" => Err("not now".into()),
                _ => Ok("done".to_owned()),
            }
        }
    })
    .effect(effect)
}

const SCENES: [&str; 2] = [
    "a=send,10 b=look,5 c=send,3<b d=flaky,1 e=nothing f=send,2<a g=look,1<d",
    "h=send,1 i=look,5<a",
];

/// Runs turns of these scenes on a disk.
async fn play(disk: &Disk, scenes: &[&str]) -> (Vec<TurnResults>, Vec<RunEvent>) {
    let tools = [
        tool("look", Effect::Read, disk),
        tool("send", Effect::Write, disk),
        tool("flaky", Effect::Read, disk).retry(Retry::attempts(3)),
    ];
    let builder = Run::builder(Toolbox::new(tools).unwrap()).gate(AllowAll);
    let mut run = builder.log(Log::to(disk.clone())).build().unwrap();
    let mut events = run.events();
    let mut turns = Vec::new();
    for scene in scenes {
        let mut turn = run.turn();
        for piece in written(scene, false) {
            turn.feed(piece);
            turn.caught_up().await;
            sleep(Duration::from_millis(2)).await;
        }
        turns.push(turn.finish(Stop::Natural).await);
    }
    let is_lost = disk.state().has_failed && disk.state().fault.1 == Fault::Panic;
    let is_held = Arc::strong_count(&disk.0) == 5;
    assert!(is_held || is_lost, "another run could take the log");
    run.close().await.unwrap();
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event);
    }
    (turns, all)
}

/// Returns whether the line of an event must survive a power failure before the event is delivered.
fn must_be_synced(event: &RunEvent) -> bool {
    match event {
        RunEvent::Run(_) | RunEvent::TurnEnd(_) => true,
        RunEvent::Start(started) => &*started.name == "send",
        RunEvent::Result(result) => &*result.name == "send",
        _ => false,
    }
}

/// Runs the scenes with a failure of this operation. Returns whether there is such an operation.
async fn check(at: usize, fault: Fault, at_once: usize) -> bool {
    let disk = Disk::new((at, fault), at_once);
    let (turns, events) = play(&disk, &SCENES).await;
    let state = disk.state();
    let place = format!("{fault:?} {at}");
    assert!(!state.used_after_failure, "{place}");
    assert_eq!(state.untraced, [""; 0], "{place}");
    let is_failure = |event: &&RunEvent| matches!(event, RunEvent::LogFailed(_));
    let mut lines = LineEncoder::default();
    let (mut logged, mut to_sync) = (String::new(), 0);
    for event in events.iter().take_while(|event| !is_failure(event)) {
        logged.push_str(&lines.next_line(event));
        if must_be_synced(event) {
            to_sync = logged.len();
        }
    }
    let flushed = &state.bytes[..state.flushed];
    assert!(flushed.starts_with(logged.as_bytes()), "{place}: {logged}");
    assert!(to_sync <= state.synced, "{place}: {logged}");
    let mut ends = BTreeMap::new();
    let mut failed_at = None;
    for event in &events {
        match event {
            RunEvent::Result(result) => {
                let is_first = ends.insert(result.call, result.status).is_none();
                assert!(is_first, "{place}");
            }
            RunEvent::LogFailed(failed) => {
                assert_eq!(failed_at, None, "{place}");
                assert!(failed.error.contains(fault.error()), "{place}");
                failed_at = Some(failed.at);
            }
            RunEvent::Start(started) => {
                let is_late = failed_at.is_some_and(|at| started.at > at);
                assert!(!is_late, "{place}: {event:?}");
            }
            _ => {}
        }
    }
    assert_eq!(ends.len(), 9, "{place}");
    let results: Vec<_> = turns.iter().flat_map(|turn| turn.iter()).collect();
    assert_eq!(results.len(), 9, "{place}");
    for result in results {
        assert_eq!(ends.get(&result.call), Some(&result.status), "{place}");
    }
    // The disk contains a log, possibly with a torn end.
    if state.bytes.contains(&b'\n') {
        read_log(&state.bytes).unwrap();
    }
    let has_failed = failed_at.is_some();
    if !state.has_failed {
        assert!(!has_failed, "{place}");
        assert_eq!(state.synced, state.bytes.len());
        for turn in &turns {
            assert_eq!(turn.log_failure(), None);
        }
        assert_eq!(turns[1].counts().ok, 2);
        return state.operations > at;
    }
    // The last operations belong to the end of the run, after the last event.
    let failure = turns[1].log_failure();
    assert_eq!(has_failed, failure.is_some(), "{place}: {events:?}");
    assert!(failure.is_none_or(|error| error.contains(fault.error())));
    if turns[0].log_failure().is_some() {
        assert_eq!(turns[1].counts().cancelled, 2, "{place}: {turns:?}");
    }
    true
}

#[tokio::test(start_paused = true)]
async fn every_operation_may_fail() {
    for fault in [
        Fault::Full,
        Fault::Half,
        Fault::Nothing,
        Fault::TooMany,
        Fault::Panic,
        Fault::Interrupted,
    ] {
        let mut at = 0;
        while check(at, fault, 700).await {
            at += 1;
        }
        assert!(at > 20, "{fault:?} {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_few_bytes_may_be_the_last() {
    for at in 0..400 {
        assert!(check(at, Fault::Full, 13).await);
    }
}

/// Only the start of a call that may write, and the start and end of a turn, cause a sync.
#[tokio::test(start_paused = true)]
async fn syncs_only_where_needed() {
    for (scenes, syncs) in [
        (&[""][..], 2),
        (&["a=look,5 b=look,5<a"], 2),
        (&["a=send,5"], 3),
        (&["a=send,5", "b=look,5"], 4),
    ] {
        let disk = Disk::new((usize::MAX - 1, Fault::Full), usize::MAX);
        let (_, events) = play(&disk, scenes).await;
        let state = disk.state();
        assert_eq!(state.syncs, syncs, "{scenes:?}");
        let mut lines = LineEncoder::default();
        let all: String = events.iter().map(|event| lines.next_line(event)).collect();
        assert_eq!(state.bytes[..state.synced], *all.as_bytes());
    }
}

#[tokio::test(start_paused = true)]
#[cfg(target_os = "linux")]
async fn a_full_disk_is_reported_with_its_message() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let log = Log::to(DevFull(full.unwrap()));
    let builder = Run::builder(Toolbox::default()).log(log);
    let mut run = builder.build().unwrap();
    let results = run.turn().finish(Stop::Natural).await;
    let error = results.log_failure().unwrap();
    assert!(error.contains("No space left"), "{error}");
}

struct DevFull(std::fs::File);

impl Storage for DevFull {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(&mut self.0, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}
