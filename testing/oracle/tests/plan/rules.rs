//! The rules of `spec/running.md` about one state: which calls must wait, and which may start.

use std::num::NonZeroU32;

use plaincall_plan::{Order, Reply, State, Status, Tool};

use crate::plan::driver::Driver;

impl Driver<'_> {
    /// The calls that this call depends on; `None` for an id that no call has so far.
    pub(super) fn targets(&self, call: usize) -> impl Iterator<Item = Option<usize>> {
        let meanings = self.meanings[call].iter();
        meanings.map(|target| target.filter(|&target| target < self.states.len()))
    }

    pub(super) fn tool(&self, call: usize) -> Tool {
        self.scenario.tools[self.scenario.tool_of[call]]
    }

    /// How the reply that contains the call ends.
    pub(super) fn reply(&self, call: usize) -> Reply {
        self.scenario.conversation.turns[self.turn_of[call]].reply
    }

    pub(super) fn has_ended_well(&self, call: Option<usize>) -> bool {
        call.is_some_and(|call| {
            let tolerated = self.tool(call).tolerated;
            match self.states[call] {
                State::Ended(Status::Ok) => true,
                State::Ended(Status::Error) => tolerated,
                _ => false,
            }
        })
    }

    pub(super) fn has_ended_badly(&self, call: usize) -> bool {
        self.states[call].status().is_some() && !self.has_ended_well(Some(call))
    }

    /// Whether the call waits for the end of its turn.
    pub(super) fn is_held_by_deferral(&self, call: usize) -> bool {
        self.tool(call).deferred && !self.is_turn_over(call)
    }

    pub(super) fn is_held_by_order(&self, call: usize) -> bool {
        let sequential = |call: usize| self.orders[self.turn_of[call]] != Order::Graph;
        let reads = |call: usize| self.states[call] != State::Writing && self.tool(call).read;
        sequential(call)
            && (0..call).any(|earlier| {
                sequential(earlier)
                    && self.states[earlier].status().is_none()
                    && !(reads(earlier) && reads(call))
            })
    }

    /// Whether a waiting call has a reason to wait.
    pub(super) fn must_wait(&self, call: usize) -> bool {
        if self
            .targets(call)
            .flatten()
            .any(|at| self.has_ended_badly(at))
        {
            return !self.is_in_order(call);
        }
        let all_well = self.targets(call).all(|target| self.has_ended_well(target));
        !all_well || self.is_held_by_order(call) || self.is_held_by_deferral(call)
    }

    /// Whether a call can no longer turn out to be part of a cycle or to lack an id: all that it leads to is
    /// complete, and it does not lead to a ring.
    fn is_in_order(&self, call: usize) -> bool {
        self.leads_only_to_ends(call, &mut Vec::new())
    }

    fn leads_only_to_ends(&self, call: usize, path: &mut Vec<usize>) -> bool {
        if self.states[call].status().is_some() {
            return true;
        }
        if self.states[call] == State::Writing || path.contains(&call) {
            return false;
        }
        path.push(call);
        let all = self
            .targets(call)
            .all(|target| target.is_some_and(|target| self.leads_only_to_ends(target, path)));
        path.pop();
        all
    }

    /// Whether an admitted call may start, by the limits alone.
    pub(super) fn may_start(&self, call: usize) -> bool {
        if self.states[call] != State::Admitted {
            return false;
        }
        let tool = |call: usize| self.tool(call);
        let live = self.live.iter().copied();
        let in_state = |state: State| live.clone().filter(move |&at| self.states[at] == state);
        let running = in_state(State::Running).count();
        let same_tool =
            |other: &usize| self.scenario.tool_of[*other] == self.scenario.tool_of[call];
        let of_tool = in_state(State::Running).filter(same_tool).count();
        let within = |limit: Option<NonZeroU32>, count: usize| {
            limit.is_none_or(|limit| count < limit.get() as usize)
        };
        within(self.scenario.limits.concurrent, running)
            && within(tool(call).max_concurrent, of_tool)
            && !(tool(call).exclusive && running > 0)
            && !in_state(State::Running).any(|other| tool(other).exclusive)
            && !in_state(State::Admitted).any(|other| other < call && tool(other).exclusive)
    }

    /// Checks the invariants after each step: no more calls run than the limits allow, and an exclusive call runs alone.
    pub(super) fn check_slots(&self) {
        let is_running = |call: &usize| self.states[*call] == State::Running;
        let live = self.live.iter().copied();
        let running: Vec<usize> = live.filter(is_running).collect();
        let within = |limit: Option<NonZeroU32>, count: usize| {
            limit.is_none_or(|limit| count <= limit.get() as usize)
        };
        assert!(within(self.scenario.limits.concurrent, running.len()));
        for (number, tool) in self.scenario.tools.iter().enumerate() {
            let of_tool = running.iter();
            let of_tool = of_tool.filter(|&&call| self.scenario.tool_of[call] == number);
            let count = of_tool.count();
            assert!(within(tool.max_concurrent, count), "{count} of {number}");
            let alone = !tool.exclusive || count == 0 || running.len() == 1;
            assert!(alone, "an exclusive call runs beside others: {running:?}");
        }
    }

    /// Checks the invariants after all actions: the plan counts its own actions correctly.
    pub(super) fn check_counts(&self) {
        let in_state = |state: State| {
            let live = self.live.iter();
            live.filter(|&&call| self.states[call] == state).count()
        };
        let counts = self.plan.counts();
        assert_eq!(counts.running as usize, in_state(State::Running));
        assert_eq!(counts.back_off as usize, in_state(State::BackOff));
        assert_eq!(counts.admitted as usize, in_state(State::Admitted));
        let all = (counts.ended.total() + counts.unended()) as usize;
        assert_eq!(all, self.states.len());
    }
}
