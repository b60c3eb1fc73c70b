//! The order of events.

use std::collections::{BTreeMap, BTreeSet};

use std::time::Duration;

use plaincall::{RunEvent, Status};
use plaincall_agent::AgentEvent;
use plaincall_agent::plaincall;

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Station {
    /// Its header was parsed.
    Written,
    /// The run has it.
    Appeared,
    Waiting,
    Ready,
    Admitted,
    Started,
    Ended,
}

/// Observes the events of a conversation, and panics at one in the wrong order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The current turn.
    turn: Option<u32>,
    /// The number of turns that have begun.
    turns: u32,
    calls: BTreeMap<u32, Station>,
    /// The calls that were parsed to their end. Some end before that.
    complete: BTreeSet<u32>,
    /// The calls of the current turn.
    open: Vec<u32>,
    /// Whether a part of the reply has arrived.
    has_begun: bool,
    /// The number of starts of each call.
    pub(crate) starts: BTreeMap<u32, u32>,
    /// Ids and names of all calls that appeared.
    pub(crate) appeared: BTreeMap<u32, (String, String)>,
    /// The calls of subagents.
    nested: BTreeSet<u32>,
    /// The subagents whose reply has begun and not ended.
    replying: BTreeSet<u32>,
    counts: Counts,
    /// How long the observer did something else.
    pub(crate) waited: Duration,
}

/// The numbers of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Turns that have ended.
    pub(crate) turns: usize,
    /// Calls that ended while the events were read.
    pub(crate) results: usize,
    /// Ends of calls of subagents.
    pub(crate) nested: usize,
    /// Replies of subagents.
    pub(crate) replies: usize,
    /// Subagents that were stopped or failed.
    pub(crate) stopped: usize,
    /// The maximum number of requests.
    pub(crate) requests: usize,
}

impl Counts {
    /// Returns the numbers of events since then.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            turns: self.turns - before.turns,
            results: self.results - before.results,
            nested: self.nested - before.nested,
            replies: self.replies - before.replies,
            stopped: self.stopped - before.stopped,
            requests: self.requests - before.requests,
        }
    }
}

impl Order {
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// A question was dropped.
    pub(crate) fn dropped(&mut self) {
        self.turn = None;
        self.open.clear();
    }

    /// Takes the next event.
    pub(crate) fn take(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::TurnBegin { turn } => {
                assert_eq!(self.turn, None, "a turn begins within another");
                // If nothing was written, the number is free again.
                let next = self.turns - u32::from(self.turns > 0 && !self.has_begun);
                assert!(*turn >= next, "turn {turn} again");
                self.turns = turn + 1;
                self.turn = Some(*turn);
                self.has_begun = false;
                self.counts.requests += 1;
            }
            AgentEvent::TurnEnd { turn, .. } => {
                assert_eq!(self.turn, Some(*turn), "what has not begun ends");
                for call in self.open.drain(..) {
                    assert_eq!(
                        self.calls[&call],
                        Station::Ended,
                        "call {call} outlives its turn"
                    );
                }
                self.turn = None;
                self.counts.turns += 1;
            }
            AgentEvent::Retry { .. } => {
                assert!(
                    self.turn.is_some() && !self.has_begun,
                    "a reply that had begun is asked for again"
                );
                self.counts.requests += 1;
            }
            AgentEvent::Text(text) | AgentEvent::Reasoning(text) => {
                assert!(!text.is_empty(), "an empty piece");
                self.within();
            }
            AgentEvent::Call { call, id, name } => {
                self.within();
                let known = self.calls.insert(*call, Station::Written);
                assert_eq!(known, None, "call {call} begins again");
                self.open.push(*call);
                self.appeared
                    .insert(*call, (id.to_string(), name.to_string()));
            }
            AgentEvent::Value { call, .. } => {
                self.within();
                assert!(
                    self.calls.contains_key(call),
                    "a value of call {call}, which has not begun"
                );
                assert!(
                    !self.complete.contains(call),
                    "a value of call {call}, which is complete"
                );
            }
            AgentEvent::Run(event) => self.take_run(event),
            AgentEvent::Message { .. } => assert_eq!(self.turn, None, "in the middle of a turn"),
            AgentEvent::Shortened { .. } => {
                assert!(
                    self.turn.is_some() && !self.has_begun,
                    "in the middle of a reply"
                );
                self.counts.requests += 1;
            }
            _ => {}
        }
    }

    /// Asserts that nothing is open.
    pub(crate) fn ended(&self) {
        assert_eq!(self.turn, None, "a turn is still open");
        assert!(self.open.is_empty());
    }

    fn within(&mut self) {
        assert!(self.turn.is_some(), "outside of a turn");
        self.has_begun = true;
    }

    fn take_run(&mut self, event: &RunEvent) {
        let station = match event {
            RunEvent::Call(call) => {
                if call.submitted.is_some() {
                    let is_new = self.calls.insert(call.call, Station::Written).is_none();
                    assert!(is_new, "call {} appears again", call.call);
                    self.open.push(call.call);
                    let named = (call.id.to_string(), call.name.to_string());
                    self.appeared.insert(call.call, named);
                    self.nested.insert(call.call);
                }
                let (id, name) = &self.appeared[&call.call];
                assert_eq!(
                    (&**id, &**name),
                    (&*call.id, &*call.name),
                    "call {}",
                    call.call
                );
                Station::Appeared
            }
            RunEvent::Waiting(call) => {
                self.complete.insert(call.call);
                Station::Waiting
            }
            RunEvent::Ready(_) => Station::Ready,
            RunEvent::Admitted(_) => Station::Admitted,
            RunEvent::Start(start) => {
                *self.starts.entry(start.call).or_default() += 1;
                Station::Started
            }
            RunEvent::SubagentText(part) => {
                assert_eq!(
                    self.calls.get(&part.call),
                    Some(&Station::Started),
                    "a text of a subagent that does not run"
                );
                let is_new = self.replying.insert(part.call);
                self.counts.replies += usize::from(is_new);
                if part.stop.is_some() {
                    self.replying.remove(&part.call);
                }
                return;
            }
            RunEvent::Result(result) => {
                self.counts.results += 1;
                self.counts.nested += usize::from(self.nested.contains(&result.call));
                let is_agent = matches!(&*result.name, "helper" | "leader");
                self.counts.stopped += usize::from(is_agent && result.status != Status::Ok);
                Station::Ended
            }
            RunEvent::Lagged(missed) => panic!("{} events are lost", missed.count),
            _ => return,
        };
        let Some(call) = event.call() else { return };
        let before = self.calls.insert(call, station);
        let may_repeat = station == Station::Started;
        assert!(
            before.is_some_and(|before| before < station || may_repeat && before == station),
            "call {call}: {station:?} after {before:?}"
        );
    }
}
