//! Random runs with interrupted calls: every beginning of the record can be resumed.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use plaincall::durable::{CallEnd, DurableRun, DurableSettings, Step};
use plaincall::events::Author;
use plaincall::log::LineEncoder;
use plaincall::policy::Retry;
use plaincall::{
    Decision, Effect, Log, Policy, Recovery, Run, RunEvent, Status, Stop, Tool, Toolbox,
};
use plaincall_oracle::arbitrary_texts::Random;
use serde_json::{Value, json};

fn tools() -> Toolbox {
    let tool = |name| Tool::new(name, |(): (), _| async { Ok(String::new()) });
    let retry = Retry::attempts(2).waits(Duration::from_millis(1), Duration::from_millis(1));
    let tools = [
        tool("read").effect(Effect::Read),
        tool("write"),
        tool("alone").exclusive(),
        tool("two").max_concurrent(2),
        tool("retried").effect(Effect::Idempotent).retry(retry),
    ];
    Toolbox::new(tools).expect("tools")
}

/// Returns the reply of a turn. Its calls may depend on those of the turn before.
fn reply(random: &mut Random, turn: usize) -> String {
    let tools = ["read", "write", "write", "alone", "two", "two", "retried"];
    let mut reply = String::new();
    for number in 0..=random.below(9) {
        let tool = tools[random.below(tools.len())];
        let after = if number > 0 && random.one_in(3) {
            format!("t{turn}c{}", random.below(number))
        } else if turn > 0 && random.one_in(4) {
            format!("t{}c0", turn - 1)
        } else {
            String::new()
        };
        let _ = write!(
            reply,
            "!!!GADGET_START:{tool}:t{turn}c{number}:{after}\n!!!GADGET_END\n"
        );
    }
    reply
}

/// An engine that gives inputs in a random order.
struct Engine {
    run: DurableRun,
    events: Vec<RunEvent>,
    /// The numbers of events after each input.
    complete: Vec<usize>,
    running: Vec<(u32, u32)>,
    asked: Vec<u32>,
    lost: Vec<u32>,
    waiting: VecDeque<u32>,
    has_ended: bool,
}

impl Engine {
    fn carry_out(&mut self) {
        self.events.extend(self.run.take_events());
        while let Some(step) = self.run.next_step() {
            match step {
                Step::Ask { request, .. } => self.asked.push(request.call),
                Step::Start(start) => self.running.push((start.call, start.attempt)),
                Step::Wait { call, .. } => self.waiting.push_back(call),
                Step::Recover(request) => self.lost.push(request.call),
                Step::TurnEnd => self.has_ended = true,
                Step::Forget(call) => {
                    self.asked.retain(|one| *one != call);
                    self.waiting.retain(|one| *one != call);
                }
                _ => {}
            }
        }
        self.events.extend(self.run.take_events());
        self.complete.push(self.events.len());
    }

    fn input(&mut self, random: &mut Random) {
        let at = self.run.at() + Duration::from_millis(1);
        match random.below(16) {
            0 if random.one_in(3) => self.run.cancel("the test cancelled it", at),
            1 if random.one_in(3) => self.run.time_out(at),
            2..4 if !self.lost.is_empty() => {
                let call = self.lost.remove(random.below(self.lost.len()));
                let output = String::new();
                let recovery = match random.below(3) {
                    0 => Recovery::Unknown,
                    1 => Recovery::RunAgain,
                    _ => Recovery::Done { output },
                };
                self.run.recover(call, Ok(recovery), at);
            }
            4..9 if !self.asked.is_empty() => {
                let call = self.asked.remove(random.below(self.asked.len()));
                let decision = if random.one_in(6) {
                    Decision::deny("no")
                } else {
                    Decision::Allow
                };
                self.run.decide(call, Ok(decision), at);
            }
            9..10 if !self.waiting.is_empty() => {
                let call = self.waiting.pop_front().expect("a call");
                self.run.retry(call, at);
            }
            10.. if !self.running.is_empty() => {
                let (call, _) = self.running.remove(random.below(self.running.len()));
                if random.one_in(2) {
                    self.run.interrupt(call, at);
                } else {
                    self.run.end_call(call, end(random.one_in(5)), at);
                }
            }
            _ => return,
        }
        self.carry_out();
    }
}

/// The end of a call, as an engine would have journaled it.
fn end(is_error: bool) -> CallEnd {
    let end = if is_error {
        json!({ "outcome": "error", "error": "it failed" })
    } else {
        json!({ "outcome": "ok", "output": "done" })
    };
    serde_json::from_value(end).expect("an end")
}

fn lines(events: &[RunEvent]) -> String {
    let mut encoder = LineEncoder::default();
    let lines = events.iter().map(|event| encoder.next_line(event));
    lines.collect()
}

fn settings(random: &mut Random) -> DurableSettings {
    let policy = Policy::default().concurrent([0, 1, 2, 2, 3][random.below(5)]);
    let policy = policy.turn_timeout(Some(Duration::from_mins(1)));
    let settings = DurableSettings::new(tools()).expect("supported tools");
    settings.policy(policy)
}

struct Recorded {
    settings: DurableSettings,
    run: DurableRun,
    events: Vec<RunEvent>,
    /// The numbers of events after each input.
    complete: Vec<usize>,
}

/// Runs up to three turns with random inputs.
fn record(seed: u64) -> Recorded {
    let random = &mut Random::new(seed);
    let settings = settings(random);
    let run = settings.start(settings.begin(Value::Null)).expect("a run");
    let mut engine = Engine {
        run,
        events: Vec::new(),
        complete: Vec::new(),
        running: Vec::new(),
        asked: Vec::new(),
        lost: Vec::new(),
        waiting: VecDeque::new(),
        has_ended: false,
    };
    for turn in 0..=random.below(3) {
        let at = engine.run.at();
        if turn > 0 && random.one_in(2) {
            engine.run.message(Author::User, "Continue.", at);
        }
        engine.has_ended = false;
        let reply = reply(random, turn);
        engine.run.turn(&reply, Stop::Natural, None, None, at);
        engine.carry_out();
        for _ in 0..10_000 {
            if !engine.has_ended {
                engine.input(random);
            }
        }
        let is_over = engine.has_ended && engine.asked.is_empty();
        assert!(is_over, "seed {seed}: {}", lines(&engine.events));
    }
    Recorded {
        settings,
        run: engine.run,
        events: engine.events,
        complete: engine.complete,
    }
}

#[test]
fn every_beginning_of_a_record_can_be_resumed() {
    for seed in 0..20 {
        let Recorded {
            settings,
            events,
            complete,
            ..
        } = record(seed);
        for length in 1..=events.len() {
            let mut events = events[..length].to_vec();
            let resumed = settings.resume(&events);
            let mut run = resumed.unwrap_or_else(|error| {
                panic!("seed {seed}, {length}: {error}\n{}", lines(&events))
            });
            let added = run.take_events();
            // Nothing follows from complete inputs but what was recorded.
            let next = added.get(1);
            assert!(
                !complete.contains(&length)
                    || next.is_none_or(|event| matches!(event, RunEvent::Cancel(_))),
                "seed {seed}, {length}: {next:?}\n{}",
                lines(&events)
            );
            events.extend(added);
            assert!(run.next_step().is_none());
            // Every call that started has an end, and what was added follows from it.
            for event in &events {
                if let RunEvent::Start(start) = event {
                    let ends = |event: &RunEvent| matches!(event, RunEvent::Result(end) if end.call == start.call);
                    assert!(
                        events.iter().any(ends),
                        "seed {seed}, {length}: {start:?}\n{}",
                        lines(&events)
                    );
                }
            }
            let mut again = settings.resume(&events).unwrap_or_else(|error| {
                panic!("seed {seed}, {length}: {error}\n{}", lines(&events))
            });
            assert!(again.take_events().is_empty(), "seed {seed}, {length}");
            // It takes time.
            if length % 8 == 0 {
                check_same(&run, &again, seed);
            }
        }
    }
}

/// Checks that two runs are in the same state, except for what differs only until the next turn: the calls whose outcome may
/// still be found out, and the number of calls that a log restored.
fn check_same(run: &DurableRun, other: &DurableRun, seed: u64) {
    let state = |run: &DurableRun| {
        let text = format!("{run:#?}");
        let (before, rest) = text.split_once(" unresolved: ").expect("the field");
        let (_, after) = rest.split_once(" log_failed: ").expect("the field");
        let text = format!("{before}{after}");
        let all = entries(&mut text.lines(), false).0;
        assert_eq!(all.lines().count(), text.lines().count());
        all
    };
    let (run, other) = (state(run), state(other));
    let lines = run.lines().zip(other.lines());
    let different: Vec<_> = lines.filter(|(one, other)| one != other).collect();
    assert!(run == other, "seed {seed}: {different:#?}");
}

/// Returns the lines of what is in brackets, and the line that closes them. Hash tables have no order, so the entries of maps and
/// sets are sorted.
fn entries<'t>(lines: &mut std::str::Lines<'t>, is_map: bool) -> (String, &'t str) {
    let mut entries = Vec::new();
    let mut end = "";
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with(['}', ']', ')']) {
            end = line;
            break;
        }
        let mut entry = format!("{line}\n");
        let mut last = line;
        while last.ends_with(['{', '[', '(']) {
            let is_map = last.ends_with(": {") || last.trim() == "{";
            let (inner, closing) = self::entries(lines, is_map);
            entry.push_str(&inner);
            entry.push_str(closing);
            entry.push('\n');
            last = closing;
        }
        entries.push(entry);
    }
    if is_map {
        entries.sort();
    }
    (entries.concat(), end)
}

/// The state after inputs is the state that a replay of their events restores.
#[test]
fn a_replay_restores_the_state() {
    for seed in 0..100 {
        let Recorded {
            settings,
            mut run,
            events,
            ..
        } = record(seed);
        let restored = settings.resume(&events).expect("a run");
        assert!(run.next_step().is_none());
        check_same(&run, &restored, seed);
    }
}

/// Also by a run on one machine.
#[tokio::test]
async fn a_run_resumes_from_every_beginning_of_a_record() {
    let directory = tempfile::tempdir().expect("a directory");
    for seed in 0..8 {
        let events = record(seed).events;
        for length in 1..=events.len() {
            let path = directory.path().join(format!("{seed}-{length}"));
            let text = lines(&events[..length]);
            std::fs::write(&path, &text).expect("a file");
            let log = Log::resume(&path).expect("a log");
            let run = Run::builder(tools()).log(log).build();
            let mut run =
                run.unwrap_or_else(|error| panic!("seed {seed}, {length}: {error}\n{text}"));
            let results = run.resume_turn().finish(Stop::Natural).await;
            let is_turn = |event: &RunEvent| matches!(event, RunEvent::Turn(_));
            let mut last_turn = events[..length].rsplit(is_turn);
            let mut last_turn = last_turn.next().unwrap_or_default().iter();
            if last_turn.any(|event| matches!(event, RunEvent::Start(_))) {
                assert!(results.iter().any(|one| one.status != Status::Rejected));
            }
        }
    }
}

#[test]
fn one_interrupted_write_frees_only_its_own_slot() {
    let settings = DurableSettings::new(tools()).expect("supported tools");
    let settings = settings.policy(Policy::default().concurrent(2));
    let mut run = settings.start(settings.begin(Value::Null)).expect("a run");
    let mut events = Vec::new();
    let reply = "!!!GADGET_START:write\n!!!GADGET_END\n".repeat(4);
    run.turn(&reply, Stop::Natural, None, None, Duration::ZERO);
    let mut started = Vec::new();
    let mut carry_out = |run: &mut DurableRun| {
        while let Some(step) = run.next_step() {
            match step {
                Step::Ask { request, .. } => {
                    run.decide(request.call, Ok(Decision::Allow), Duration::ZERO);
                }
                Step::Start(start) => started.push(start.call),
                _ => {}
            }
        }
        started.clone()
    };
    assert_eq!(carry_out(&mut run), [0, 1]);
    run.interrupt(1, Duration::ZERO);
    // A stale retry starts neither a running write nor an interrupted one.
    run.retry(0, Duration::ZERO);
    run.retry(1, Duration::ZERO);
    assert_eq!(carry_out(&mut run), [0, 1, 2]);
    // It comes too late.
    run.interrupt(1, Duration::ZERO);
    events.extend(run.take_events());
    let resumed = events.iter().filter_map(|event| match event {
        RunEvent::Resumed(resumed) => resumed.call,
        _ => None,
    });
    assert_eq!(resumed.collect::<Vec<_>>(), [1]);
    // The last call is cancelled before it starts, although an interrupted one holds no slot.
    run.cancel("the test cancelled it", Duration::ZERO);
    run.end_call(0, end(false), Duration::ZERO);
    run.end_call(2, end(false), Duration::ZERO);
    run.recover(1, Ok(Recovery::Unknown), Duration::ZERO);
    events.extend(run.take_events());
    let mut run = settings.resume(&events).expect("a run");
    assert!(run.take_events().is_empty());
    let results = run.results();
    let statuses: Vec<Status> = results.iter().map(|result| result.status).collect();
    let expected = [Status::Ok, Status::Unknown, Status::Ok, Status::Cancelled];
    assert_eq!(statuses, expected);
}

#[test]
fn a_read_that_is_always_interrupted_ends() {
    let settings = DurableSettings::new(tools()).expect("supported tools");
    let mut run = settings.start(settings.begin(Value::Null)).expect("a run");
    let reply = "!!!GADGET_START:read\n!!!GADGET_END\n";
    run.turn(reply, Stop::Natural, None, None, Duration::ZERO);
    let mut starts = 0;
    while let Some(step) = run.next_step() {
        match step {
            Step::Ask { request, .. } => {
                run.decide(request.call, Ok(Decision::Allow), Duration::ZERO);
            }
            Step::Start(start) => {
                starts += 1;
                run.interrupt(start.call, Duration::ZERO);
            }
            _ => {}
        }
    }
    let results = run.results();
    let error = results.first().and_then(|result| result.error.as_deref());
    assert_eq!(
        (starts, error),
        (
            6,
            Some("the call was interrupted 6 times, so it does not start again")
        )
    );
    assert!(settings.resume(&run.take_events()).is_ok());
}
