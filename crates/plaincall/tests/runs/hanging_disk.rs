//! A log whose disk does not respond for a while: calls that may write do not start, and nothing waits for them.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plaincall::{AllowAll, Effect, Log, Run, RunEvent, Status, Stop, Tool, Toolbox, log::Storage};
use tokio::time::sleep;

/// The first sync of a new log is for its beginning; the second one waits until the test lets it proceed.
struct Disk {
    syncs: u32,
    proceed: Receiver<()>,
}

impl Storage for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.syncs += 1;
        if self.syncs == 2 {
            let _ = self.proceed.recv();
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_disk_that_hangs_holds_no_call_longer_than_its_time() {
    let starts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&starts);
    let send = Tool::new("send", move |(): (), _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(String::new()) }
    });
    let send = send
        .effect(Effect::Write)
        .timeout(Duration::from_millis(50));
    let (release, proceed) = channel();
    let mut run = Run::builder(Toolbox::new([send]).unwrap())
        .gate(AllowAll)
        .log(Log::to(Disk { syncs: 0, proceed }))
        .build()
        .unwrap();
    let mut turn = run.turn();
    turn.caught_up().await;
    turn.feed("!!!GADGET_START:send:a\n!!!GADGET_END\n");
    let (results, ()) = tokio::join!(turn.finish(Stop::Natural), async {
        sleep(Duration::from_secs(1)).await;
        release.send(()).unwrap();
    });
    assert_eq!(results[0].status, Status::Cancelled);
    assert_eq!(
        results[0].error.as_deref(),
        Some(
            "the log could not be written (the disk did not respond within 50 ms), so the call was not started"
        )
    );
    assert_eq!(starts.load(Ordering::Relaxed), 0);
    run.close().await.unwrap();
}

/// A storage that starts each write when the test lets it.
struct Gated {
    lines: Arc<Mutex<Vec<usize>>>,
    proceed: Receiver<()>,
}

impl Storage for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.proceed.recv().map_err(io::Error::other)?;
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').count();
        self.lines.lock().unwrap().push(lines);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn lines_gather_while_a_batch_is_on_its_way() {
    let lines = Arc::default();
    let (open, proceed) = channel();
    let log = Log::to(Gated {
        lines: Arc::clone(&lines),
        proceed,
    });
    let builder = Run::builder(Toolbox::default()).log(log);
    let mut run = builder.build().unwrap();
    let mut events = run.events();
    let mut turn = run.turn();
    for _ in 0..20 {
        turn.feed("x");
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(*lines.lock().unwrap(), [0_usize; 0]);
    open.send(()).unwrap();
    assert!(matches!(events.next().await, Some(RunEvent::Run(_))));
    assert!(
        events.try_next().is_none(),
        "events are delivered only after they are logged"
    );
    open.send(()).unwrap();
    for _ in 0..21 {
        assert!(events.next().await.is_some());
    }
    // The first line alone, then the start of the turn and all pieces.
    assert_eq!(*lines.lock().unwrap(), [1, 21]);
    drop(turn);
    open.send(()).unwrap();
    run.close().await.unwrap();
    assert_eq!(*lines.lock().unwrap(), [1, 21, 3]);
}
