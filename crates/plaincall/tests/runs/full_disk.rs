//! A log that fails at its first, second, … operation: nothing is done without a trace, and everybody hears of it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use plaincall::{
    AllowAll, Context, Effect, LineEncoder, Log, Retry, Run, RunEvent, Stop, Storage, Tool,
    Toolbox, TurnResults, read_log,
};
use tokio::time::sleep;

use crate::runs::scene::{Milliseconds, written};

/// A disk that is full after so many operations.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    operations: usize,
    /// The number of the first operation that fails.
    full_at: usize,
    has_failed: bool,
    bytes: Vec<u8>,
    synced: usize,
    /// What was started although its start was not on the disk.
    untraced: Vec<String>,
    starts: BTreeMap<u32, u32>,
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn operate(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        assert!(
            !state.has_failed,
            "a log that has failed is not used any more"
        );
        state.operations += 1;
        state.has_failed = state.operations > state.full_at;
        if state.has_failed {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left"));
        }
        Ok(state)
    }
}

impl Storage for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.operate()?;
        let count = bytes.len().min(700);
        state.bytes.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.operate().map(drop)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.operate()?;
        state.synced = state.bytes.len();
        Ok(())
    }
}

/// A tool that looks at the disk when it is started.
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

/// Plays two turns on a disk that is full after so many operations.
async fn play(full_at: usize) -> (Disk, [TurnResults; 2], Vec<RunEvent>) {
    let disk = Disk::default();
    disk.state().full_at = full_at;
    let tools = [
        tool("look", Effect::Read, &disk),
        tool("send", Effect::Write, &disk),
        tool("flaky", Effect::Read, &disk).retry(Retry::attempts(3)),
    ];
    let builder = Run::builder(Toolbox::new(tools).unwrap()).gate(AllowAll);
    let mut run = builder.log(Log::to(disk.clone())).build().unwrap();
    let mut events = run.events();
    let mut turns = Vec::new();
    for scene in [
        "a=send,10 b=look,5 c=send,3<b d=flaky,1 e=nothing f=send,2<a g=look,1<d",
        "h=send,1 i=look,5<a",
    ] {
        let mut turn = run.turn();
        for piece in written(scene, false) {
            turn.feed(piece);
            turn.caught_up().await;
            sleep(Duration::from_millis(2)).await;
        }
        turns.push(turn.finish(Stop::Natural).await);
    }
    run.close().await.unwrap();
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event);
    }
    (disk, turns.try_into().unwrap(), all)
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fills_up_at_every_operation() {
    for full_at in 0.. {
        let (disk, turns, events) = play(full_at).await;
        let state = disk.state();
        assert_eq!(state.untraced, [""; 0], "{full_at}");
        let mut ends = BTreeMap::new();
        let mut failed_at = None;
        let is_failure = |event: &&RunEvent| matches!(event, RunEvent::LogFailed(_));
        let told = events.iter().take_while(|event| !is_failure(event));
        let mut lines = LineEncoder::default();
        let told: String = told.map(|event| lines.next_line(event)).collect();
        assert!(
            state.bytes.starts_with(told.as_bytes()),
            "{full_at}: {told}"
        );
        for event in &events {
            match event {
                RunEvent::Result(result) => {
                    assert!(
                        ends.insert(result.call, result.status).is_none(),
                        "{full_at}"
                    );
                }
                RunEvent::LogFailed(failed) => {
                    assert_eq!(failed_at, None, "{full_at}");
                    assert_eq!(&*failed.error, "no space left");
                    failed_at = Some(failed.at);
                }
                RunEvent::Start(started) => {
                    let is_late = failed_at.is_some_and(|at| started.at > at);
                    assert!(!is_late, "{full_at}: {event:?}");
                }
                _ => {}
            }
        }
        assert_eq!(ends.len(), 9, "{full_at}");
        let results: Vec<_> = turns.iter().flat_map(TurnResults::iter).collect();
        assert_eq!(results.len(), 9, "{full_at}");
        for result in results {
            assert_eq!(ends.get(&result.call), Some(&result.status), "{full_at}");
        }
        // What is on the disk is a log, perhaps with a torn end.
        if state.bytes.contains(&b'\n') {
            read_log(&state.bytes).unwrap();
        }
        let has_failed = failed_at.is_some();
        if !state.has_failed {
            assert!(!has_failed && full_at > 20, "{full_at}");
            for turn in &turns {
                assert_eq!(turn.log_failure(), None);
            }
            assert_eq!(turns[1].counts().ok, 2);
            break;
        }
        // The last operations belong to the end of the run, when nobody hears of it any more.
        assert_eq!(
            has_failed,
            turns[1].log_failure().is_some(),
            "{full_at}: {events:?}"
        );
        if has_failed {
            assert_eq!(turns[1].log_failure(), Some("no space left"), "{full_at}");
        }
        if turns[0].log_failure().is_some() {
            assert_eq!(turns[1].counts().cancelled, 2, "{full_at}: {turns:?}");
        }
    }
}
