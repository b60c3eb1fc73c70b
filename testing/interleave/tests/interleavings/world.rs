//! One execution as the tools, the observer and the disk see it, and its invariants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use interleaved::{Context, Observer, RunEvent, TurnResults, events::AdmittedBy, log::read_log};

use crate::disk::{Disk, Fate};

/// How many calls may run at the same time.
pub(crate) const CONCURRENT: usize = 2;

/// The tool whose calls run alone.
pub(crate) const ALONE: &str = "alone";
/// The tool of which one call runs at a time.
pub(crate) const SINGLE: &str = "single";
/// The tool that changes something.
pub(crate) const WRITE: &str = "write";

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) log: Option<Fate>,
    pub(crate) disk: Arc<Mutex<Disk>>,
    /// The tools that run, by call.
    running: Arc<Mutex<BTreeMap<u32, String>>>,
    /// The calls whose tool has returned.
    returned: Arc<Mutex<BTreeSet<String>>>,
    events: Arc<Mutex<Vec<RunEvent>>>,
}

/// A tool is running as long as this lives.
pub(crate) struct Running {
    world: World,
    call: u32,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.world.running.lock().unwrap().remove(&self.call);
    }
}

impl World {
    pub(crate) fn new(log: Option<Fate>) -> Self {
        Self {
            log,
            disk: Arc::default(),
            running: Arc::default(),
            returned: Arc::default(),
            events: Arc::default(),
        }
    }

    /// The same world for the run that resumes from the log of this one. Its log is a file, without observers.
    pub(crate) fn again(&self) -> Self {
        Self {
            log: None,
            ..self.clone()
        }
    }

    /// A tool starts: it may, and all that it needs is done.
    pub(crate) fn start(&self, context: &Context) -> Running {
        {
            let mut running = self.running.lock().unwrap();
            let before = running.insert(context.call(), context.name().to_owned());
            assert_eq!(before, None, "{} runs twice", context.id());
            assert!(running.len() <= CONCURRENT, "too many run: {running:?}");
            let of = |name: &str| running.values().filter(|one| *one == name).count();
            assert!(of(SINGLE) <= 1, "two of one tool: {running:?}");
            assert!(
                of(ALONE) == 0 || running.len() == 1,
                "not alone: {running:?}"
            );
        }
        let returned = self.returned.lock().unwrap();
        for dependency in context.dependencies() {
            assert!(returned.contains(&*dependency.id), "{}", dependency.id);
        }
        if self.log.is_some() && context.name() == WRITE {
            let disk = self.disk.lock().unwrap();
            let (start, id) = (r#""event":"start""#, format!(r#""id":"{}""#, context.id()));
            let text = str::from_utf8(disk.synced()).unwrap();
            let mut lines = text.lines();
            let is_safe = lines.any(|line| line.contains(start) && line.contains(&id));
            assert!(is_safe, "{} starts before its line is safe", context.id());
        }
        Running {
            world: self.clone(),
            call: context.call(),
        }
    }

    pub(crate) fn returns(&self, context: &Context) {
        self.returned
            .lock()
            .unwrap()
            .insert(context.id().to_owned());
    }

    /// The results of a turn: one for each call, in their order.
    pub(crate) fn check_results(&self, written: &[String], results: &TurnResults) {
        let ids: Vec<&str> = results.iter().map(|result| &*result.id).collect();
        assert_eq!(ids, written);
        let has_failed = self.disk.lock().unwrap().has_failed;
        assert!(results.log_failure().is_none() || has_failed);
    }

    /// Checks the invariants after all tasks have ended.
    pub(crate) fn check_end(&self) {
        assert!(self.running.lock().unwrap().is_empty(), "a tool still runs");
        let events = self.events.lock().unwrap();
        check_story(&events, true);
        if self.log.is_some() {
            let disk = self.disk.lock().unwrap();
            if disk.has_failed && !disk.has_a_line() {
                return;
            }
            let record = read_log(&disk.written).unwrap();
            check_story(&record.events, !disk.has_failed);
            if !disk.has_failed {
                assert!(record.torn.is_none());
                assert_eq!(
                    disk.synced,
                    disk.written.len(),
                    "not all of the log is safe"
                );
                assert_eq!(
                    record.events.len(),
                    events.len(),
                    "some events are not in the log"
                );
            }
        }
    }

    /// Checks that a reported event was logged before.
    fn check_logged(&self, event: &RunEvent, count: usize) {
        let disk = self.disk.lock().unwrap();
        // The beginning of the run is known.
        if self.log.is_none() || disk.has_failed || count < 2 {
            return;
        }
        let must_last = match event {
            RunEvent::Start(started) => &*started.name == WRITE,
            RunEvent::Result(result) => &*result.name == WRITE && result.times.started.is_some(),
            RunEvent::TurnEnd(_) => true,
            _ => false,
        };
        let safe = if must_last {
            disk.synced()
        } else {
            disk.flushed()
        };
        let lines = safe.split(|byte| *byte == b'\n').count() - 1;
        assert!(lines >= count, "reported before it was durable: {event:?}");
    }
}

impl Observer for World {
    fn observe(&mut self, event: &RunEvent) {
        let count = {
            let mut events = self.events.lock().unwrap();
            events.push(event.clone());
            events.len()
        };
        self.check_logged(event, count);
    }
}

/// The events of a turn.
#[derive(Default)]
struct Turn {
    calls: usize,
    open: BTreeSet<u32>,
    has_ended: bool,
}

/// Every call that appears has one result and nothing after it; a turn ends once, after the results of its calls; an echo
/// starts only after the gate itself has let it pass. A turn that was dropped may end after the next one has begun, or has
/// ended. Events after a failure of the log are not in it; whether a tool then starts, `World::start` sees.
pub(crate) fn check_story(events: &[RunEvent], is_whole: bool) {
    let mut turns: Vec<Turn> = Vec::new();
    let mut turn_of = BTreeMap::new();
    let mut held = BTreeSet::new();
    for event in events {
        let story = || format!("{event:?} in {events:#?}");
        match event {
            RunEvent::Turn(_) => turns.push(Turn::default()),
            RunEvent::Call(appeared) => {
                let turn = turns.last_mut().unwrap();
                turn.calls += 1;
                turn.open.insert(appeared.call);
                let before = turn_of.insert(appeared.call, turns.len() - 1);
                assert_eq!(before, None, "appears twice: {}", story());
            }
            RunEvent::Ready(ready) if ready.held.is_some() => {
                held.insert(ready.call);
            }
            RunEvent::Admitted(admission) if admission.by == AdmittedBy::Gate => {
                held.remove(&admission.call);
            }
            RunEvent::Start(started) => {
                assert!(!held.contains(&started.call), "not asked: {}", story());
                let turn = &turns[turn_of[&started.call]];
                assert!(turn.open.contains(&started.call), "too late: {}", story());
            }
            RunEvent::Result(result) => {
                let turn = &mut turns[turn_of[&result.call]];
                assert!(turn.open.remove(&result.call), "two results: {}", story());
            }
            RunEvent::TurnEnd(end) => {
                let counts = end.counts;
                let count = counts.ok + counts.error + counts.skipped;
                let count = count + counts.rejected + counts.cancelled + counts.unknown;
                let turn = turns.iter_mut().find(|turn| {
                    let is_done = turn.open.is_empty() && !turn.has_ended;
                    is_done && turn.calls == usize::try_from(count).unwrap()
                });
                let Some(turn) = turn else {
                    panic!("ends too early: {}", story());
                };
                turn.has_ended = true;
            }
            RunEvent::Lagged(_) => panic!("an observer that is fast has missed something"),
            _ => {}
        }
    }
    if is_whole {
        let is_over = turns.iter().all(|turn| turn.has_ended);
        assert!(is_over, "a turn has no end: {events:#?}");
    }
}
