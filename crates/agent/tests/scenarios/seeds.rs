//! Random conversations with a random model and a stopped clock.

mod model;
mod nested;
mod reading;
mod sessions;
mod settings;
mod tools;
mod world;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use plaincall_agent::plaincall::RunEvent;
use plaincall_agent::{AgentError, AgentErrorKind, AgentLimits, Answer, Conversation};
use plaincall_testkit::cases::cases;
use tokio::runtime::{Builder, Handle};
use tokio::time::{Instant, sleep, timeout};

use self::nested::Nested;
use self::reading::check_messages;
use self::settings::{agent, limits};
use self::tools::{ATTEMPTS, GRACE};
use self::world::World;
use crate::scenarios::changed::Changes;
use crate::scenarios::order::{Counts, Order};

/// The time limit for a question.
const LONGEST: Duration = Duration::from_secs(20);

/// The totals of all random conversations.
#[derive(Debug, Default)]
struct Tally {
    questions: usize,
    answers: usize,
    errors: BTreeMap<String, usize>,
    dropped: usize,
    requests: usize,
    calls: usize,
    conversations: usize,
    /// Conversations in which subagents called tools, and these calls.
    delegating: usize,
    nested: usize,
    /// Requests of subagents, and calls that were reported to them.
    nested_requests: usize,
    nested_reported: usize,
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
            "{} conversations, {} with calls of subagents, {} questions: {} answers, {errors} errors of {} kinds, {} dropped; {} requests, {} of subagents, {} calls, {} of subagents, {} of these reported to them, {} starts of tools",
            self.conversations,
            self.delegating,
            self.questions,
            self.answers,
            self.errors.len(),
            self.dropped,
            self.requests,
            self.nested_requests,
            self.calls,
            self.nested,
            self.nested_reported,
            self.starts
        )
    }
}

/// The outcome of a question; `None` if it was dropped before.
type Ended = Option<Result<Answer, AgentError>>;

#[test]
fn random_conversations() {
    crate::scenarios::expect_panics();
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
    assert!(
        tally.delegating * 10 >= tally.conversations || tally.conversations < 100,
        "subagents call few tools"
    );
    assert!(
        tally.nested_reported * 4 >= tally.nested || tally.conversations < 100,
        "few calls are reported to subagents"
    );
    assert!(failed.is_empty(), "{failed:?}");
}

async fn conversation(seed: u64, tally: &mut Tally) {
    let world = World::new(seed, false);
    let limits = limits(&world);
    let mut talk = agent(&world, limits, &Changes::default())
        .conversation()
        .unwrap();
    world.set_dialect(talk.dialect());
    let mut events = talk.events();
    let mut order = Order::default();
    let mut results = Vec::new();
    let mut nested = Nested::default();
    let mut is_whole = true;
    let mut any_dropped = false;
    for number in 0..=world.below(3) {
        let question = question(&world, number);
        let start = Instant::now();
        let (before, begun) = (order.counts(), world.begun());
        order.waited = Duration::ZERO;
        let ended = ask(&world, &mut talk, &question, &mut order).await;
        let took = start.elapsed();
        // The clock of the runtime has whole milliseconds.
        let most = limits.time + GRACE + order.waited + Duration::from_millis(20);
        assert!(took <= most, "{took:?} of {most:?}: {ended:?}");
        let progress = order.counts().since(before);
        check_progress(&ended, limits, progress, world.begun() - begun);
        tally.add(&ended);
        if ended.is_none() && world.one_in(8) {
            // Everything is dropped in the middle.
            drop(talk);
            settle().await;
            check_nothing_is_left(&world, 0);
            return;
        }
        // The results of a dropped turn are reported with the next.
        let has_turn = order.counts().since(before).turns > 0;
        is_whole = ended.is_some() && (!any_dropped || has_turn);
        any_dropped |= ended.is_none();
        world.mark(is_interrupted(&ended));
        // No part of it still runs.
        settle().await;
        // A conversation has one task.
        check_nothing_is_left(&world, 1);
        while let Some(event) = events.try_next() {
            nested.take(&event);
            match event {
                RunEvent::Result(result) => results.push(result),
                RunEvent::Lagged(missed) => panic!("{} events are lost", missed.count),
                _ => {}
            }
        }
    }
    results.sort_by_key(|result| result.call);
    for (place, result) in results.iter().enumerate() {
        assert_eq!(result.call as usize, place, "each call ends once");
    }
    results.retain(|result| !nested.calls.contains(&result.call));
    check_messages(&world, &talk, &results, is_whole);
    tally.nested_reported += nested.check(&world.nested());
    world.check_starts(ATTEMPTS);
    let asked = world.asked().len();
    assert!(
        any_dropped || asked <= order.counts().requests,
        "{asked} requests"
    );
    tally.requests += asked;
    tally.nested_requests += world.nested().iter().map(Vec::len).sum::<usize>();
    tally.calls += results.len() + nested.calls.len();
    tally.nested += nested.calls.len();
    tally.conversations += 1;
    tally.delegating += usize::from(!nested.calls.is_empty());
    tally.starts += world.all_starts();
    drop(talk);
    settle().await;
    check_nothing_is_left(&world, 0);
}

/// Asserts that nothing is active, and that this many tasks are alive.
fn check_nothing_is_left(world: &World, tasks: usize) {
    assert_eq!(world.replies.count(), 0, "a reply is still being read");
    assert_eq!(world.tools.count(), 0, "a tool still works");
    assert_eq!(world.people.count(), 0, "a user is still asked");
    let alive = Handle::current().metrics().num_alive_tasks();
    assert_eq!(alive, tasks, "tasks that are alive");
}

fn question(world: &World, number: usize) -> String {
    match world.below(6) {
        0 => "What does !!!GADGET_START:quick\n!!!ARG:tag\nt1\n!!!GADGET_END mean?".to_owned(),
        1 => String::new(),
        _ => format!("Question {number}?"),
    }
}

/// Waits until everything has stopped.
async fn settle() {
    sleep(GRACE + Duration::from_millis(50)).await;
}

/// Asserts that the figures of a question match its events, and are within its limits. `begun` is the number of replies of
/// subagents that have begun; for some of them there is no event.
fn check_progress(ended: &Ended, limits: AgentLimits, seen: Counts, begun: usize) {
    let progress = match ended {
        None => return,
        Some(Ok(answer)) => answer.progress,
        Some(Err(error)) => *error.progress,
    };
    // A subagent that is stopped may not have read the beginning of its last reply.
    let least = seen.turns + seen.replies.saturating_sub(seen.stopped);
    let turns = least..=seen.turns + begun;
    assert!(
        turns.contains(&(progress.turns as usize)),
        "{progress:?}, and not {turns:?} turns"
    );
    assert!(progress.turns <= limits.turns, "{progress:?}");
    let calls = progress.calls.total() as usize;
    if begun > 0 {
        // Calls that a subagent's own conversation rejects have no event. Calls that are written at the same time may
        // exceed the limit.
        assert!(calls >= seen.results, "{progress:?}, and not {seen:?}");
        return;
    }
    assert_eq!(seen.nested, 0, "calls of no subagent");
    assert_eq!(calls, seen.results, "calls");
    let ran = progress.calls.ok + progress.calls.error;
    assert!(ran <= limits.calls, "{progress:?}");
}

/// Asks a question; `None` if it was dropped before it had ended.
async fn ask(world: &World, talk: &mut Conversation, question: &str, order: &mut Order) -> Ended {
    // When it is cancelled or dropped: after this many events, or after a while.
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
    // An observer may be slow; the run waits for it.
    let is_slow = world.one_in(10);
    let mut asking = if world.one_in(8) {
        talk.resume()
    } else {
        talk.stream(question)
    };
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
                if is_slow && world.one_in(20) {
                    let pause = world.pause();
                    order.waited += pause;
                    sleep(pause).await;
                }
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

/// Returns whether the last reply may have an unread end.
fn is_interrupted(ended: &Ended) -> bool {
    match ended {
        None => true,
        Some(Ok(_)) => false,
        Some(Err(error)) => matches!(error.kind, AgentErrorKind::Cancelled | AgentErrorKind::Time),
    }
}
