//! Runs scenes, truncates and resumes their logs, and checks the common properties.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use plaincall::reply::Untrusted;
use plaincall::{
    CallResult, Effect, Log, Recovery, RunEvent, Status, TurnResults,
    log::{LogError, read_log},
};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::resume::scene::{Same, Scene, Seen};

/// The results of the calls, by index.
pub(crate) type Ends = BTreeMap<u32, String>;

/// A call as `id status output | error | note`.
fn shown(result: &CallResult) -> String {
    let or_nothing = |text: &Option<std::sync::Arc<str>>| text.as_deref().unwrap_or("").to_owned();
    format!(
        "{} {} {} | {} | {}",
        result.id,
        result.status,
        or_nothing(&result.output),
        or_nothing(&result.error),
        or_nothing(&result.note)
    )
}

/// Runs the rest of the scene.
pub(crate) async fn play(scene: &Scene, log: Log, recovery: Recovery) -> (Seen, Ends) {
    let seen = Seen::default();
    let history = log.history();
    let is_turn = |event: &RunEvent| matches!(event, RunEvent::Turn(_));
    let turns = history.iter().filter(|event| is_turn(event)).count();
    let last = history.iter().rposition(is_turn).unwrap_or(0);
    let was_cancelled = history[last..]
        .iter()
        .any(|event| matches!(event, RunEvent::Cancel(_)));
    let mut run = scene.builder(&seen, log, recovery).build().unwrap();
    let unfinished = run.unfinished().cloned();
    let first = turns - usize::from(unfinished.is_some());
    let mut ends = Ends::new();
    for (number, reply) in scene.replies.iter().enumerate().skip(first) {
        let again = unfinished.as_ref().filter(|_| number == first);
        let read = again.map_or(0, |again| again.text.len());
        // Texts received before a turn precede it in the log.
        for (name, text) in reply.untrusted.iter().filter(|_| again.is_none()) {
            run.observe_untrusted(name, &Untrusted::new(text.as_str()));
        }
        let mut turn = if again.is_some() {
            run.resume_turn()
        } else {
            run.turn()
        };
        let mut place = 0;
        for (piece_number, piece) in reply.pieces.iter().enumerate() {
            let skipped = read.saturating_sub(place).min(piece.len());
            place += piece.len();
            if skipped < piece.len() {
                turn.feed(&piece[skipped..]);
                turn.caught_up().await;
                sleep(Duration::from_millis(2)).await;
            }
            let is_cancelled = again.is_some() && was_cancelled;
            if reply.cancel_after == Some(piece_number) && !is_cancelled {
                turn.cancel();
                turn.caught_up().await;
            }
        }
        let results: TurnResults = turn.finish(reply.stop).await;
        for result in &results {
            let before = ends.insert(result.call, shown(result));
            assert!(before.is_none(), "{result:?}");
        }
    }
    run.close().await.unwrap();
    (seen, ends)
}

/// Returns the events of one call in a log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoggedCall {
    is_write: bool,
    starts: u32,
    admitted: bool,
    pub(crate) ends: u32,
    status: Option<Status>,
}

impl LoggedCall {
    pub(crate) fn is_interrupted_write(self) -> bool {
        self.is_write && self.starts > 0 && self.ends == 0
    }
}

pub(crate) fn logged(log: &[u8]) -> BTreeMap<u32, LoggedCall> {
    let record = read_log(log).unwrap();
    let mut calls: BTreeMap<u32, LoggedCall> = BTreeMap::new();
    let mut effects = BTreeMap::new();
    for event in &record.events {
        if let RunEvent::Run(begin) = event {
            effects.clone_from(&begin.tools);
        }
        if let RunEvent::DamagedEnd(_) = event {
            for call in calls.values_mut().filter(|call| call.starts == 0) {
                call.starts += u32::from(call.admitted && call.is_write);
            }
        }
        let Some(call) = event.call() else { continue };
        let call = calls.entry(call).or_default();
        match event {
            RunEvent::Call(event) => {
                let effect = effects.get(&*event.name).map(|tool| tool.effect);
                call.is_write = effect == Some(Effect::Write);
            }
            RunEvent::Start(_) => call.starts += 1,
            RunEvent::Retry(_) if call.is_write => call.starts = 0,
            RunEvent::Admitted(_) => call.admitted = true,
            RunEvent::Result(result) => {
                call.ends += 1;
                call.status = Some(result.status);
            }
            _ => {}
        }
    }
    calls
}

/// Runs the scene once and returns its log.
pub(crate) async fn reference(scene: &Scene, path: &Path) -> (Vec<u8>, Ends) {
    let log = Log::create(path).unwrap();
    let (_, ends) = play(scene, log, Recovery::Unknown).await;
    let whole = fs::read(path).unwrap();
    let logged = logged(&whole);
    assert_eq!(logged.len(), ends.len());
    assert!(logged.values().all(|call| call.ends == 1), "{logged:?}");
    (whole, ends)
}

/// Returns a folder in memory if there is one: thousands of logs are written, and the speed of the disk does not
/// matter.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// Returns the positions between the lines of a log, except the beginning.
pub(crate) fn edges(log: &[u8]) -> Vec<usize> {
    let places = (1..).zip(log);
    let ends = places.filter(|(_, byte)| **byte == b'\n');
    ends.map(|(place, _)| place).collect()
}

pub(crate) fn words() -> [Recovery; 4] {
    [
        Recovery::Done {
            output: "found".to_owned(),
        },
        Recovery::NotDone {
            reason: "it was not".to_owned(),
        },
        Recovery::RunAgain,
        Recovery::Unknown,
    ]
}

/// Truncates the log of the scene between its lines, and resumes it with every answer about interrupted calls.
pub(crate) async fn check_cuts(scene: &Scene) -> Ends {
    let directory = folder();
    let (whole, expected) = reference(scene, &directory.path().join("whole")).await;
    let path = directory.path().join("cut");
    for cut in edges(&whole) {
        check_cut(scene, &whole[..cut], &path, &expected).await;
    }
    expected
}

pub(crate) async fn check_cut(scene: &Scene, log: &[u8], path: &Path, expected: &Ends) {
    let _ = fs::remove_file(path);
    fs::write(path, log).unwrap();
    let before = match Log::resume(path) {
        Ok(_) => fs::read(path).unwrap(),
        Err(LogError::Empty) => return,
        Err(error) => panic!("cut at {}: {error}", log.len()),
    };
    let logged_before = logged(&before);
    let is_interrupted = logged_before
        .values()
        .any(|call| call.is_interrupted_write());
    for word in words() {
        if !is_interrupted && word != Recovery::Unknown {
            continue;
        }
        let at = format!("cut at {} with {word:?}", log.len());
        fs::write(path, &before).unwrap();
        let (seen, ends) = play(scene, Log::resume(path).unwrap(), word.clone()).await;
        check_starts(&logged_before, &seen, &word, &at);
        for (call, end) in ends.iter().filter(|_| !is_interrupted) {
            let output = |end: &str| end.split(" | ").next().unwrap().to_owned();
            match scene.same {
                Same::Ends => assert_eq!(end, &expected[call], "{at}"),
                Same::Outputs => assert_eq!(output(end), output(&expected[call]), "{at}"),
                Same::Nothing => {}
            }
        }
        let logged_after = logged(&fs::read(path).unwrap());
        assert_eq!(logged_after.len(), expected.len(), "{at}");
        // The log has no result for a call with unknown outcome, nor for calls that were skipped because of it.
        let is_open = logged_after
            .values()
            .any(|call| call.is_interrupted_write());
        let is_asked_in_vain = word == Recovery::Unknown
            || logged_after.iter().any(|(call, logged)| {
                logged.is_interrupted_write() && !seen.settled().contains(call)
            });
        assert!(!is_open || is_asked_in_vain, "{at}");
        for (call, logged) in &logged_after {
            let is_logged = logged.ends == 1 || (is_open && logged.ends == 0);
            assert!(is_logged, "{at}: call {call}, {logged:?}");
        }
        check_again(scene, path, &logged_after, &at).await;
    }
}

/// Completed work is not repeated.
fn check_starts(logged: &BTreeMap<u32, LoggedCall>, seen: &Seen, word: &Recovery, at: &str) {
    for (call, logged) in logged {
        let starts = seen.starts(*call);
        let most = match logged {
            logged if logged.ends > 0 => 0,
            logged if logged.is_interrupted_write() => u32::from(*word == Recovery::RunAgain),
            logged if logged.is_write => 1,
            _ => 3,
        };
        assert!(
            starts <= most,
            "{at}: call {call} was started {starts} times"
        );
        let is_asked = seen.asked().contains(call);
        assert!(
            !is_asked || !(logged.admitted || logged.ends > 0),
            "{at}: call {call}"
        );
        let is_settled = seen.settled().contains(call);
        assert!(
            !is_settled || logged.is_interrupted_write(),
            "{at}: call {call}"
        );
    }
}

/// The log is complete. Resuming it once more runs nothing, except for calls whose outcome was unknown.
async fn check_again(
    scene: &Scene,
    path: &Path,
    logged_before: &BTreeMap<u32, LoggedCall>,
    at: &str,
) {
    let log = fs::read(path).unwrap();
    assert!(read_log(&log).unwrap().torn.is_none(), "{at}");
    let open: Vec<u32> = logged_before
        .iter()
        .filter(|(_, call)| call.is_interrupted_write())
        .map(|(call, _)| *call)
        .collect();
    let mut word = words()[0].clone();
    if open.is_empty() {
        word = Recovery::Unknown;
    }
    let log = Log::resume(path).unwrap_or_else(|error| panic!("{at}: {error}"));
    let (seen, _) = play(scene, log, word).await;
    assert_eq!(seen.settled(), open, "{at}");
    if open.is_empty() {
        assert_eq!(seen.all_starts(), 0, "{at}");
    }
    let logged = logged(&fs::read(path).unwrap());
    for (call, logged) in &logged {
        assert_eq!(logged.ends, 1, "{at}: call {call}");
        if open.contains(call) {
            assert_eq!(logged.status, Some(Status::Ok), "{at}: call {call}");
        }
    }
}
