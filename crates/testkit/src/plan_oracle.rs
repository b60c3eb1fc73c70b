//! How the calls of a conversation must end: the plain and slow reading of `spec/running.md`.
//!
//! It looks at the whole conversation at once and knows neither time nor slots. The one thing that depends
//! on time, whether a call was past its waiting before another one ended, it asks for.

use plaincall_plan::{Order, Outcome, Status};

/// Several replies and the limit on their calls.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// How many calls a turn may hold.
    pub calls_per_turn: Option<u32>,
    /// The replies: what orders their calls, and the calls as written.
    pub turns: Vec<(Order, Vec<Call>)>,
}

/// One call and what will become of it if nothing else comes first.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its id.
    pub id: &'static str,
    /// The ids it depends on.
    pub dependencies: Vec<&'static str>,
    /// What will become of it.
    pub fate: Fate,
}

/// What becomes of a call if nothing else comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is wrong, or still being written when the turn ends.
    Wrong,
    /// The gate denies it.
    Denied,
    /// It runs and ends so.
    Ends(Outcome),
    /// The run was cancelled before it started. This comes before all else.
    Cancelled,
}

struct Written<'a> {
    turn: usize,
    place_in_turn: usize,
    order: Order,
    call: &'a Call,
}

/// The conversation as one list of calls.
pub struct Oracle<'a>(Vec<Written<'a>>, Option<u32>);

impl<'a> Oracle<'a> {
    /// Reads a conversation.
    pub fn new(conversation: &'a Conversation) -> Self {
        let mut all = Vec::new();
        for (turn, &(order, ref calls)) in conversation.turns.iter().enumerate() {
            all.extend(
                calls
                    .iter()
                    .enumerate()
                    .map(|(place_in_turn, call)| Written {
                        turn,
                        place_in_turn,
                        order,
                        call,
                    }),
            );
        }
        Self(all, conversation.calls_per_turn)
    }

    /// "What an id means" for a call; the call itself for its own id.
    pub fn meaning(&self, call: usize, id: &str) -> Option<usize> {
        let Written { turn, order, .. } = self.0[call];
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

    /// What the dependencies of a call mean.
    pub fn meanings(&self, call: usize) -> Vec<Option<usize>> {
        let ids = self.0[call].call.dependencies.iter();
        ids.map(|id| self.meaning(call, id)).collect()
    }

    /// "What rejects a call", but for what is judged at the end of the turn or by the gate.
    fn is_rejected_by_itself(&self, call: usize) -> bool {
        let this = &self.0[call];
        let is_same = |at: &Written| at.turn == this.turn && at.call.id == this.call.id;
        let meanings = self.meanings(call);
        self.0[..call].iter().any(is_same)
            || self
                .1
                .is_some_and(|limit| this.place_in_turn >= limit as usize)
            || this.call.fate == Fate::Wrong
            || meanings.contains(&Some(call))
            || (this.order != Order::Graph && meanings.contains(&None))
    }

    /// The end status of every call. `beside(a, b)`: call `a` had started or been denied before `b` ended.
    pub fn statuses(&self, beside: &dyn Fn(usize, usize) -> bool) -> Vec<Status> {
        let all = 0..self.0.len();
        let at_once = all.clone().map(|call| match self.0[call].call.fate {
            Fate::Cancelled => Some(Status::Cancelled),
            _ => self.is_rejected_by_itself(call).then_some(Status::Rejected),
        });
        let mut statuses: Vec<Option<Status>> = at_once.collect();

        // "Judged at the end of the turn", among the calls that are left.
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

        // "Skipping" and "Order of writing", again and again until all is decided.
        while statuses.contains(&None) {
            for &call in &left {
                statuses[call] = statuses[call].or_else(|| self.decide(call, &statuses, beside));
            }
        }
        statuses.into_iter().flatten().collect()
    }

    /// The status of a call without a fault, once that of all calls it hangs on is known.
    fn decide(
        &self,
        call: usize,
        statuses: &[Option<Status>],
        beside: &dyn Fn(usize, usize) -> bool,
    ) -> Option<Status> {
        let this = &self.0[call];
        let stops = this.order
            == Order::Sequential {
                stop_on_error: true,
            };
        let before = (0..call).filter(|&at| stops && self.0[at].turn == this.turn);
        let before = before.filter(|&at| !beside(call, at));
        let mut decides = self.meanings(call).into_iter().flatten().chain(before);
        match decides.find(|&at| statuses[at] != Some(Status::Ok)) {
            Some(at) => statuses[at].map(|_| Status::Skipped),
            None => match this.call.fate {
                Fate::Ends(outcome) => Some(outcome.into()),
                Fate::Wrong | Fate::Denied | Fate::Cancelled => Some(Status::Rejected),
            },
        }
    }
}
