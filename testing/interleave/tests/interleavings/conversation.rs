//! One conversation, as the scheduler likes it.

use std::fs;
use std::time::Duration;

use interleaved::reply::Untrusted;
use interleaved::{AllowAll, Log, Policy, Run, RunBuilder, Stop, Submitted, Turn, log::read_log};
use tempfile::NamedTempFile;
use tokio::choose;

use crate::disk::{Fate, SlowDisk};
use crate::tools::{RandomGate, dawdle, toolbox};
use crate::world::{CONCURRENT, World, check_story};

/// A disturbance of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// The gate takes its time and may refuse, fail, panic or not answer.
    Gate,
    /// The run is cancelled from another task.
    Cancel,
    /// The time of a turn is limited.
    TurnTimeout,
    /// Turns and the run are dropped at any moment.
    Drop,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) log: Option<Fate>,
    pub(crate) mishaps: &'static [Mishap],
}

impl Scene {
    fn has(self, mishap: Mishap) -> bool {
        self.mishaps.contains(&mishap)
    }
}

const TOOLS: [&str; 6] = ["look", "again", "patient", "write", "single", "alone"];
const TURNS: usize = 2;
const CALLS: usize = 4;

fn builder(scene: Scene, world: &World) -> RunBuilder {
    let builder = Run::builder(toolbox(world)).policy(
        Policy::default()
            .concurrent(u32::try_from(CONCURRENT).unwrap())
            .turn_timeout(
                scene
                    .has(Mishap::TurnTimeout)
                    .then_some(Duration::from_secs(20)),
            )
            .gate_timeout(Duration::from_secs(100)),
    );
    if scene.has(Mishap::Gate) {
        builder.gate(RandomGate)
    } else {
        builder.gate(AllowAll)
    }
}

pub(crate) async fn play(scene: Scene, world: World) {
    let mut builder = builder(scene, &world).observer(world.clone());
    if let Some(fate) = scene.log {
        let disk = world.disk.clone();
        builder = builder.log(Log::to(SlowDisk::new(disk, fate)));
    }
    let mut run = builder.build().unwrap();
    if scene.has(Mishap::Cancel) {
        let canceller = run.canceller();
        tokio::spawn(async move {
            dawdle(60).await;
            canceller.cancel();
        });
    }
    let mut written = Vec::new();
    for _ in 0..=choose(TURNS) {
        let first = written.len();
        let is_dropped = scene.has(Mishap::Drop) && choose(2) == 0;
        if choose(6) == 0 {
            let page = format!("!!!GADGET_START:{}\n", TOOLS[choose(TOOLS.len())]);
            run.observe_untrusted("page", &Untrusted::new(page));
        }
        let mut turn = run.turn();
        let mut parent = None;
        for _ in 0..choose(CALLS + 1) {
            if choose(4) == 0 {
                let call = submit(&mut turn, parent);
                parent = Some(call.call());
                tokio::spawn(attend(call));
            }
            let (call, id) = call(&written);
            let (begin, end) = call.split_at(choose(call.len()));
            turn.feed(begin);
            dawdle(3).await;
            turn.feed(end);
            written.push(id);
            if choose(4) == 0 {
                turn.caught_up().await;
            }
            if is_dropped && choose(4) == 0 {
                break;
            }
        }
        let finishing = turn.finish(Stop::Natural);
        if is_dropped {
            tokio::select! {
                biased;
                () = dawdle(20) => {}
                results = finishing => world.check_results(&written[first..], &results),
            }
        } else {
            world.check_results(&written[first..], &finishing.await);
        }
    }
    if choose(2) == 0 {
        run.close().await.unwrap();
    } else {
        drop(run);
    }
}

/// Submits a call, perhaps one that belongs to another.
fn submit(turn: &mut Turn<'_>, parent: Option<u32>) -> Submitted {
    let (tool, nothing) = (TOOLS[choose(TOOLS.len())], Vec::new());
    match parent.filter(|_| choose(2) == 0) {
        Some(parent) => turn.submit_from(parent, tool, nothing),
        None => turn.submit(tool, nothing),
    }
}

/// The submitter of a call waits for its result, cancels it, or drops it.
async fn attend(mut call: Submitted) {
    let number = call.call();
    let fate = choose(4);
    if fate < 2 {
        tokio::select! {
            biased;
            result = &mut call => return assert_eq!(result.call, number),
            () = dawdle(30) => {}
        }
    }
    match fate {
        0 => drop(call),
        1 => {
            call.cancel();
            assert_eq!(call.await.call, number);
        }
        _ => assert_eq!(call.await.call, number),
    }
}

/// A call that may name earlier ones as dependencies.
fn call(earlier: &[String]) -> (String, String) {
    let tool = TOOLS[choose(TOOLS.len())];
    let id = format!("c{}", earlier.len());
    let mut after: Vec<&str> = earlier.iter().map(String::as_str).collect();
    after.retain(|_| choose(3) == 0);
    let after = after.join(",");
    let call = format!("!!!GADGET_START:{tool}:{id}:{after}\n!!!GADGET_END\n");
    (call, id)
}

/// Resumes from the disk contents of some moment, as after a crash, and continues the conversation for one turn.
pub(crate) async fn resume(scene: Scene, world: World) {
    let file = NamedTempFile::new().unwrap();
    let written = world.disk.lock().unwrap().written.clone();
    let first_line = written.iter().position(|byte| *byte == b'\n').unwrap();
    let end = written.len() - choose(written.len() - first_line);
    fs::write(&file, &written[..end]).unwrap();
    let log = Log::resume(&file).unwrap();
    let mut run = builder(scene, &world).log(log).build().unwrap();
    if run.unfinished().is_some() {
        run.resume_turn().finish(Stop::Natural).await;
    }
    run.turn().finish(Stop::Natural).await;
    run.close().await.unwrap();
    let record = read_log(&fs::read(&file).unwrap()).unwrap();
    check_story(&record.events, true);
}
