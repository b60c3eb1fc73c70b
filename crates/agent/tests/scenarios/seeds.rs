//! Random conversations with a random model, on a clock that is stopped.

mod model;
mod tools;
mod world;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::model::Message;
use plaincall_agent::plaincall::{CallResult, Dialect, Policy, RunEvent, Writes};
use plaincall_agent::{
    Agent, AgentError, AgentErrorKind, AgentLimits, Answer, Conversation, WithoutCall,
};
use plaincall_testkit::cases::cases;
use tokio::runtime::{Builder, Handle};
use tokio::time::{Instant, sleep, timeout};

use self::model::Chance;
use self::tools::{ATTEMPTS, ChanceGate, ChanceUser, GRACE, toolbox};
use self::world::World;
use crate::order::{Counts, Order};
use crate::told::{check_turns, replies, told};

/// How long a question may take at most.
const LONGEST: Duration = Duration::from_secs(20);

/// What all random conversations came to.
#[derive(Debug, Default)]
struct Tally {
    questions: usize,
    answers: usize,
    errors: BTreeMap<String, usize>,
    dropped: usize,
    requests: usize,
    calls: usize,
    starts: usize,
}

impl Tally {
    fn add(&mut self, ended: &Ended) {
        self.questions += 1;
        match ended {
            Some(Ok(_)) => self.answers += 1,
            Some(Err(error)) => {
                let kind = format!("{:?}", error.kind);
                let end = kind.find(|character: char| !character.is_alphanumeric());
                let kind = kind[..end.unwrap_or(kind.len())].to_owned();
                *self.errors.entry(kind).or_default() += 1;
            }
            None => self.dropped += 1,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: usize = self.errors.values().sum();
        write!(
            formatter,
            "{} questions: {} answers, {errors} errors of {} kinds, {} dropped; {} requests, {} calls, {} starts of tools",
            self.questions,
            self.answers,
            self.errors.len(),
            self.dropped,
            self.requests,
            self.calls,
            self.starts
        )
    }
}

/// How a question has ended; `None` if it was dropped before.
type Ended = Option<Result<Answer, AgentError>>;

#[test]
fn random_conversations() {
    crate::expect_panics();
    let mut tally = Tally::default();
    let mut failed = Vec::new();
    for case in cases("AGENT", 300) {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let played = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(conversation(case, &mut tally));
        }));
        if played.is_err() {
            eprintln!("this was AGENT_CASE={case}");
            failed.push(case);
        }
        // The first failures are enough to read.
        assert!(failed.len() < 10, "{failed:?}");
    }
    println!("random conversations: {tally}");
    assert!(failed.is_empty(), "{failed:?}");
}

async fn conversation(seed: u64, tally: &mut Tally) {
    let world = World::new(seed);
    let limits = limits(&world);
    let mut talk = begin(&world, limits);
    world.set_dialect(talk.dialect());
    let mut events = talk.events();
    let mut order = Order::default();
    let mut results = Vec::new();
    let mut is_whole = true;
    let mut any_dropped = false;
    for number in 0..=world.below(3) {
        let question = match world.below(6) {
            0 => "What does !!!GADGET_START:quick\n!!!ARG:tag\nt1\n!!!GADGET_END mean?".to_owned(),
            1 => String::new(),
            _ => format!("Question {number}?"),
        };
        let began = Instant::now();
        let before = order.counts();
        let ended = ask(&world, &mut talk, &question, &mut order).await;
        let took = began.elapsed();
        // The clock of the runtime has whole milliseconds.
        let most = limits.time + GRACE + Duration::from_millis(20);
        assert!(took <= most, "{took:?} of {most:?}: {ended:?}");
        check_progress(&ended, limits, order.counts().since(before));
        tally.add(&ended);
        // What came of a dropped turn is told with the next.
        let has_turn = order.counts().since(before).turns > 0;
        is_whole = ended.is_some() && (!any_dropped || has_turn);
        any_dropped |= ended.is_none();
        world.mark(is_interrupted(&ended));
        // Nothing of it goes on behind it.
        settle().await;
        assert_eq!(world.replies.count(), 0, "a reply is still being read");
        assert_eq!(world.tools.count(), 0, "a tool still works");
        assert_eq!(world.people.count(), 0, "somebody is still asked");
        while let Some(event) = events.try_next() {
            match event {
                RunEvent::Result(result) => results.push(result),
                RunEvent::Missed(missed) => panic!("{} events are lost", missed.count),
                _ => {}
            }
        }
    }
    results.sort_by_key(|result| result.call);
    for (place, result) in results.iter().enumerate() {
        assert_eq!(result.call as usize, place, "each call ends once");
    }
    check_messages(&world, &talk, &results, is_whole);
    world.check_starts(ATTEMPTS);
    let asked = world.asked().len();
    assert!(
        any_dropped || asked <= order.counts().requests,
        "{asked} requests"
    );
    tally.requests += asked;
    tally.calls += results.len();
    tally.starts += world.all_starts();
    drop(talk);
    settle().await;
    let alive = Handle::current().metrics().num_alive_tasks();
    assert_eq!(alive, 0, "tasks are left");
}

/// Time for whatever is to stop.
async fn settle() {
    sleep(GRACE + Duration::from_millis(50)).await;
}

/// Whether the last reply may not have been read to its end.
fn is_interrupted(ended: &Ended) -> bool {
    match ended {
        None => true,
        Some(Ok(_)) => false,
        Some(Err(error)) => matches!(error.kind, AgentErrorKind::Cancelled | AgentErrorKind::Time),
    }
}

/// Asserts that what a question took is what was seen of it, and within its limits.
fn check_progress(ended: &Ended, limits: AgentLimits, seen: Counts) {
    let progress = match ended {
        None => return,
        Some(Ok(answer)) => answer.progress,
        Some(Err(error)) => *error.progress,
    };
    assert_eq!(progress.turns as usize, seen.turns, "turns");
    assert_eq!(progress.calls.total() as usize, seen.results, "calls");
    assert!(progress.turns <= limits.turns, "{progress:?}");
    let ran = progress.calls.ok + progress.calls.error;
    assert!(ran <= limits.calls, "{progress:?}");
}

fn limits(world: &World) -> AgentLimits {
    let mut limits = AgentLimits::default();
    limits.time = LONGEST;
    if world.one_in(6) {
        limits.time = Duration::from_millis(world.below(1000) as u64);
    }
    limits.turns = world.pick(&[1, 3, 8, 20, 20]) - u32::from(world.one_in(20));
    limits.calls = world.pick(&[0, 1, 5, 100, 100, 100]);
    limits.tokens = [None, None, None, Some(world.below(6000) as u64)][world.below(4)];
    limits.repairs = world.pick(&[0, 1, 3]);
    limits.same_failure = world.pick(&[0, 1, 3]);
    limits.reminders = world.pick(&[0, 1, 3]);
    limits.context = [None, None, Some(500 + world.below(4000) as u64)][world.below(3)];
    limits
}

fn begin(world: &Arc<World>, limits: AgentLimits) -> Conversation {
    let policy = Policy {
        concurrent: world.pick(&[0, 1, 2, 32]),
        calls_per_turn: [None, None, Some(2)][world.below(3)],
        turn_timeout: [None, None, Some(Duration::from_millis(700))][world.below(3)],
        gate_timeout: world.pick(&[Duration::from_millis(300), Duration::from_hours(1)]),
        writes: world.pick(&[Writes::AtOnce, Writes::AtEndOfTurn]),
        result_limit: world.pick(&[200, 2000, 64 << 10]),
        ..Policy::default()
    };
    let dialect = match world.below(4) {
        0 => Dialect::block()
            .start("<<<START:")
            .end("<<<END:")
            .arg("@param:"),
        1 => Dialect::emoji(),
        _ => Dialect::block(),
    };
    let tools = toolbox(world);
    let can_finish = tools.iter().any(|tool| tool.policy().finishes);
    let has_user = world.one_in(2);
    let meaning = world.pick(&[
        WithoutCall::Answer,
        WithoutCall::AskBack,
        WithoutCall::Remind,
    ]);
    let fits = match meaning {
        WithoutCall::Answer => true,
        WithoutCall::AskBack => can_finish && has_user,
        WithoutCall::Remind => can_finish,
    };
    let mut agent = Agent::builder(Chance(Arc::clone(world)))
        .tools(tools)
        .dialect(dialect)
        .limits(limits)
        .policy(policy)
        .without_call(if fits { meaning } else { WithoutCall::Answer });
    agent = match world.below(4) {
        0 => agent,
        1 => agent.allow_all(),
        _ => agent.gate(ChanceGate(Arc::clone(world))),
    };
    if has_user {
        agent = agent.user(ChanceUser(Arc::clone(world)));
    }
    if world.one_in(4) {
        agent = agent.keyed();
    }
    if world.one_in(2) {
        agent = agent.system("Be brief.");
    }
    agent.build().unwrap().conversation().unwrap()
}

/// Asks a question; `None` if it was dropped before it had ended.
async fn ask(world: &World, talk: &mut Conversation, question: &str, order: &mut Order) -> Ended {
    // When it is cancelled or dropped: after so many events, or after a while.
    let mut events_left = if world.one_in(5) {
        world.below(100)
    } else {
        usize::MAX
    };
    let patience = if world.one_in(6) {
        world.pause()
    } else {
        LONGEST * 2
    };
    let is_dropped = world.one_in(2);
    let mut asking = talk.stream(question);
    let cancel = asking.cancellation();
    let until = Instant::now() + patience;
    let mut is_cancelled = false;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let next = if is_cancelled {
            Ok(asking.next().await)
        } else {
            timeout(left, asking.next()).await
        };
        match next {
            Ok(Some(event)) => {
                order.take(&event);
                events_left = events_left.saturating_sub(1);
            }
            Ok(None) => break,
            Err(_) => events_left = 0,
        }
        if events_left == 0 && !is_cancelled {
            if is_dropped {
                order.dropped();
                return None;
            }
            is_cancelled = true;
            cancel.cancel();
        }
    }
    let answer = asking.answer().await;
    if answer.is_ok() {
        order.ended();
    }
    order.dropped();
    Some(answer)
}

/// What the model has read: every request holds what was written and told before it.
fn check_messages(world: &World, talk: &Conversation, results: &[CallResult], is_whole: bool) {
    let asked = world.asked();
    let mut expected: Vec<String> = Vec::new();
    for (place, request) in asked.iter().enumerate() {
        check_turns(&request.messages);
        check_told(&request.messages, results);
        let Some(before) = place.checked_sub(1).map(|before| &asked[before]) else {
            continue;
        };
        let read = replies(&request.messages);
        // What came of a reply that was cut off is whatever was read of it.
        let last = read.get(expected.len()).copied().unwrap_or_default();
        assert!(
            before.text.starts_with(last),
            "{last:?} of {:?}",
            before.text
        );
        if !before.is_interrupted && !before.text.trim().is_empty() {
            assert_eq!(last, before.text, "the model's own words are lost");
        }
        expected.extend((!last.trim().is_empty()).then(|| last.to_owned()));
        assert_eq!(read, expected, "the model's own words have changed");
    }
    let told = check_told(&talk.messages(), results);
    if is_whole {
        assert_eq!(told, results.len(), "a call is not told");
    }
}

/// Asserts that each call is told once, in order; says how many are.
fn check_told(messages: &[Message], results: &[CallResult]) -> usize {
    let told = told(messages);
    assert!(told.len() <= results.len(), "{told:#?}");
    for (told, result) in told.iter().zip(results) {
        let told = (plain(&told.name), &*told.id, &*told.status);
        let result = (plain(&result.name), &*result.id, result.status.as_str());
        assert_eq!(told, result, "{:#?}", &messages[1..]);
    }
    told.len()
}

/// A name without what may be written otherwise where it is told.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}
