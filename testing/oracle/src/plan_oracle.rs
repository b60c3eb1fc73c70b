//! How the calls of a conversation must end: the plain and slow reading of `spec/running.md`.
//!
//! It looks at the whole conversation at once and knows neither time nor slots, neither gates nor attempts.
//! The two things that depend on time it asks for: [`Moments`].

use plaincall_plan::{Order, Outcome, Reply, Status};

/// Several replies and the limit on their calls.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// How many calls a turn may hold.
    pub calls_per_turn: Option<u32>,
    /// The replies.
    pub turns: Vec<Turn>,
}

/// One reply.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The order of its calls.
    pub order: Order,
    /// Whether the reply was truncated.
    pub reply: Reply,
    /// The calls as written.
    pub calls: Vec<Call>,
}

/// One call and what will become of it if nothing else comes first.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its id.
    pub id: &'static str,
    /// The ids it depends on.
    pub dependencies: Vec<&'static str>,
    /// It waits for the end of its turn.
    pub deferred: bool,
    /// Its failure is tolerated.
    pub tolerated: bool,
    /// Its future outcome.
    pub fate: Fate,
}

/// The outcome of a call if nothing else comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is wrong, or still being written when the turn ends.
    Wrong,
    /// The gate denies it.
    Denied,
    /// It runs, at last, and ends so.
    Ends(Outcome),
    /// It was cancelled while it was not running. This comes before all else.
    Cancelled,
}

/// The first event.
pub trait Moments {
    /// Whether call `a` had started for the first time, or been denied, before call `b` ended.
    fn had_left(&self, a: usize, b: usize) -> bool;

    /// Whether the call had ended before the end of the reply was known.
    fn had_ended(&self, call: usize, turn: usize) -> bool;
}

struct OracleCall<'a> {
    turn: usize,
    place_in_turn: usize,
    order: Order,
    reply: Reply,
    call: &'a Call,
}

/// The conversation as one list of calls.
pub struct Oracle<'a>(Vec<OracleCall<'a>>, Option<u32>);

impl<'a> Oracle<'a> {
    /// Reads a conversation.
    pub fn new(conversation: &'a Conversation) -> Self {
        let mut all = Vec::new();
        for (turn, reply) in conversation.turns.iter().enumerate() {
            let calls = reply.calls.iter().enumerate();
            all.extend(calls.map(|(place_in_turn, call)| OracleCall {
                turn,
                place_in_turn,
                order: reply.order,
                reply: reply.reply,
                call,
            }));
        }
        Self(all, conversation.calls_per_turn)
    }

    /// "What an id means" for a call; the call itself for its own id.
    pub fn meaning(&self, call: usize, id: &str) -> Option<usize> {
        let OracleCall { turn, order, .. } = self.0[call];
        let first_of = |turn| {
            self.0
                .iter()
                .position(|at| at.turn == turn && at.call.id == id)
        };
        let here = first_of(turn);
        let earlier = (0..turn).rev().find_map(first_of);
        if self.0[call].call.id == id {
            Some(call)
        } else if here.is_some_and(|here| here < call) {
            here
        } else if earlier.is_some() || order != Order::Graph {
            earlier
        } else {
            here
        }
    }

    /// Resolves the dependencies of a call.
    pub fn meanings(&self, call: usize) -> Vec<Option<usize>> {
        let ids = self.0[call].call.dependencies.iter();
        ids.map(|id| self.meaning(call, id)).collect()
    }

    /// "What rejects a call", but for what is judged at the end of the turn or by the gate.
    fn is_rejected_alone(&self, call: usize) -> bool {
        let this = &self.0[call];
        let is_same = |at: &OracleCall| at.turn == this.turn && at.call.id == this.call.id;
        let meanings = self.meanings(call);
        self.0[..call].iter().any(is_same)
            || self
                .1
                .is_some_and(|limit| this.place_in_turn >= limit as usize)
            || this.call.fate == Fate::Wrong
            || meanings.contains(&Some(call))
            || (this.order != Order::Graph && meanings.contains(&None))
    }

    /// The end status of every call.
    pub fn statuses(&self, moments: &dyn Moments) -> Vec<Status> {
        let all = 0..self.0.len();
        let at_once = all.clone().map(|call| match self.0[call].call.fate {
            Fate::Cancelled => Some(Status::Cancelled),
            _ => self.is_rejected_alone(call).then_some(Status::Rejected),
        });
        let mut statuses: Vec<Option<Status>> = at_once.collect();

        // "Checks at the end of the turn", among the calls that are left.
        let left: Vec<usize> = all.filter(|&call| statuses[call].is_none()).collect();
        for &call in &left {
            let (mut reached, mut queue) = (Vec::new(), vec![call]);
            while let Some(from) = queue.pop() {
                for target in self.meanings(from).into_iter().flatten() {
                    if left.contains(&target) && !reached.contains(&target) {
                        reached.push(target);
                        queue.push(target);
                    }
                }
            }
            if reached.contains(&call) || self.meanings(call).contains(&None) {
                statuses[call] = Some(Status::Rejected);
            }
        }

        // "Skipping", "Written order" and "Calls that wait for the end of the turn", again and again until
        // all is decided.
        let faults = statuses.clone();
        let mut decided = Decided {
            oracle: self,
            moments,
            faults,
            statuses,
        };
        while decided.statuses.contains(&None) {
            for &call in &left {
                if decided.statuses[call].is_none() {
                    decided.statuses[call] = decided.decide(call);
                }
            }
        }
        decided.statuses.into_iter().flatten().collect()
    }
}

/// The statuses that are known so far.
struct Decided<'a> {
    oracle: &'a Oracle<'a>,
    moments: &'a dyn Moments,
    /// Those of calls that were cancelled or rejected for their own error.
    faults: Vec<Option<Status>>,
    statuses: Vec<Option<Status>>,
}

impl Decided<'_> {
    /// The calls that skip this one if they do not succeed.
    fn hangs_on(&self, call: usize) -> Vec<usize> {
        let all = &self.oracle.0;
        let this = &all[call];
        let stops = this.order
            == Order::Sequential {
                stop_on_error: true,
            };
        let before = (0..call).filter(|&at| stops && all[at].turn == this.turn);
        let before = before.filter(|&at| !self.moments.had_left(call, at));
        let dependencies = self.oracle.meanings(call).into_iter().flatten();
        dependencies.chain(before).collect()
    }

    /// Returns whether a call succeeded, if its end is known.
    fn well(&self, call: usize) -> Option<bool> {
        let tolerated = self.oracle.0[call].call.tolerated;
        self.statuses[call].map(|status| match status {
            Status::Ok => true,
            Status::Error => tolerated,
            _ => false,
        })
    }

    /// The status of a call without a fault, once that of all calls it hangs on is known.
    fn decide(&self, call: usize) -> Option<Status> {
        let this = &self.oracle.0[call];
        if this.call.deferred && this.reply == Reply::Truncated {
            let skipped = self.is_skipped_before_the_cut(call, this.turn)?;
            return Some(if skipped {
                Status::Skipped
            } else {
                Status::Rejected
            });
        }
        for at in self.hangs_on(call) {
            if !self.well(at)? {
                return Some(Status::Skipped);
            }
        }
        Some(match this.call.fate {
            Fate::Ends(outcome) => outcome.into(),
            Fate::Wrong | Fate::Denied | Fate::Cancelled => Status::Rejected,
        })
    }

    /// Whether a call that this one hangs on had failed when the reply was truncated and what shows at the end of
    /// the turn had been judged.
    fn is_skipped_before_the_cut(&self, call: usize, turn: usize) -> Option<bool> {
        for at in self.hangs_on(call) {
            if self.had_ended_by_the_cut(at, turn)? && !self.well(at)? {
                return Some(true);
            }
        }
        Some(false)
    }

    fn had_ended_by_the_cut(&self, call: usize, turn: usize) -> Option<bool> {
        if self.moments.had_ended(call, turn) {
            return Some(true);
        }
        if self.oracle.0[call].turn != turn || self.faults[call] == Some(Status::Cancelled) {
            return Some(false);
        }
        if self.faults[call].is_some() {
            return Some(true);
        }
        match self.statuses[call]? {
            Status::Skipped => self.is_skipped_before_the_cut(call, turn),
            _ => Some(false),
        }
    }
}
