//! The actions of the plan, each checked against the actions before it.

use plaincall_oracle::plan_oracle::Fate;
use plaincall_plan::{Action, Because, Link, Order, RejectReason, Reply, State, Status};

use crate::plan::driver::{Driver, at};

impl Driver<'_> {
    pub(super) fn take(&mut self, action: Action) {
        match action {
            Action::Ready(call) => {
                let call = call.index();
                assert_eq!(self.states[call], State::Waiting, "ready: call {call}");
                assert!(
                    self.targets(call).all(|target| self.has_ended_well(target)),
                    "call {call} is ready before its dependencies have succeeded"
                );
                assert!(
                    !self.is_held_by_deferral(call),
                    "call {call} is ready before the end of its turn"
                );
                if self.tool(call).deferred {
                    assert_eq!(self.reply(call), Reply::Complete, "call {call}");
                    self.tally.released += 1;
                }
                let failed = self.targets(call).flatten();
                let tolerated = failed.filter(|&at| self.states[at] != State::Ended(Status::Ok));
                self.tally.tolerated += u32::try_from(tolerated.count()).unwrap();
                assert!(
                    !self.is_held_by_order(call),
                    "call {call} is ready before its turn"
                );
                self.states[call] = State::Ready;
            }
            Action::Start(call) => {
                let call = call.index();
                assert_eq!(self.states[call], State::Admitted, "start: call {call}");
                assert!(self.may_start(call), "call {call} must not start");
                let mut earlier = self.live.iter().filter(|&&other| other < call);
                let fair = earlier.all(|&earlier| !self.may_start(earlier));
                assert!(fair, "call {call} overtakes");
                self.states[call] = State::Running;
                self.clock += 1;
                self.left[call].get_or_insert(self.clock);
                self.tally.exclusive_starts += u32::from(self.tool(call).exclusive);
            }
            Action::Skip { call, because } => self.take_skip(call.index(), because),
            Action::Reject { call, reason } => self.take_reject(call.index(), &reason),
            Action::Cancel(call) => {
                assert!(self.is_cancelling || self.turn_is_cancelled);
                let state = self.states[call.index()];
                assert!(state.is_unstarted() || state == State::BackOff);
                self.cancelled.push(call.index());
                self.end(call.index(), Status::Cancelled);
            }
            Action::Stop(call) => panic!("no one asked to stop call {call}"),
        }
    }

    fn take_skip(&mut self, call: usize, because: Because) {
        let state = self.states[call];
        assert!(
            state.is_unstarted() && state != State::Writing,
            "skip: call {call}"
        );
        assert_eq!(self.left[call], None, "skip: call {call} has started");
        let direct = because.direct.index();
        assert!(self.has_ended_badly(direct), "call {call} for {direct}");
        match because.link {
            Link::Dependency => assert!(self.targets(call).any(|target| target == Some(direct))),
            Link::Order => {
                assert!(direct < call && self.turn_of[direct] == self.turn_of[call]);
                let order = self.orders[self.turn_of[call]];
                assert_eq!(
                    order,
                    Order::Sequential {
                        stop_on_error: true
                    }
                );
            }
        }
        let root = self.because[direct].map_or(because.direct, |further| further.root);
        assert_eq!(because.root, root, "the root of call {call}");
        assert_ne!(self.states[root.index()], State::Ended(Status::Skipped));
        self.because[call] = Some(because);
        let is_truncated = self.tool(call).deferred && self.reply(call) == Reply::Truncated;
        self.tally.deferred_and_skipped += u32::from(is_truncated);
        assert_eq!(self.plan.call(at(call)).unwrap().because(), Some(because));
        self.end(call, Status::Skipped);
    }

    fn take_reject(&mut self, call: usize, reason: &RejectReason) {
        assert!(self.states[call].is_unstarted(), "reject: call {call}");
        let fate = self.calls[call].fate;
        let kind = match reason {
            RejectReason::DuplicateId { id, first } => {
                let same = |at: &usize| {
                    self.turn_of[*at] == self.turn_of[call] && self.calls[*at].id == &**id
                };
                assert_eq!((0..call).find(same), Some(first.index()));
                0
            }
            RejectReason::TooManyCalls { limit } => {
                let before = (0..call)
                    .filter(|&at| self.turn_of[at] == self.turn_of[call])
                    .count();
                assert!(before >= *limit as usize);
                1
            }
            RejectReason::SelfDependency { id } => {
                assert!(
                    self.calls[call].id == &**id && self.calls[call].dependencies.contains(&&**id)
                );
                2
            }
            RejectReason::UnknownIds { ids } => {
                let named = self.calls[call]
                    .dependencies
                    .iter()
                    .zip(&self.meanings[call]);
                let mut missing = Vec::new();
                for (id, _) in named.filter(|named| named.1.is_none()) {
                    if !missing.contains(id) {
                        missing.push(id);
                    }
                }
                assert_eq!(ids.iter().map(|id| &**id).collect::<Vec<_>>(), missing);
                3
            }
            RejectReason::Cycle { calls: ring } => {
                let ring: Vec<usize> = ring.iter().map(|(call, _)| call.index()).collect();
                assert!(ring.contains(&call) && ring.is_sorted() && ring.len() > 1);
                for member in ring.iter().copied() {
                    let inside = self
                        .targets(member)
                        .flatten()
                        .any(|target| ring.contains(&target));
                    assert!(inside, "call {member} does not belong to the ring {ring:?}");
                }
                4
            }
            RejectReason::Unfinished => {
                assert!(self.scenario.unfinished.contains(&call));
                5
            }
            RejectReason::Invalid(_) => {
                assert_eq!(fate, Fate::Wrong);
                6
            }
            RejectReason::Denied(_) => {
                assert_eq!((fate, self.states[call]), (Fate::Denied, State::Ready));
                7
            }
            RejectReason::TruncatedReply => {
                assert!(self.tool(call).deferred && self.reply(call) == Reply::Truncated);
                assert_eq!(self.states[call], State::Waiting);
                assert!(self.is_turn_over(call), "call {call} is cut too early");
                8
            }
            other => panic!("an unknown reason: {other}"),
        };
        assert!(!reason.to_string().is_empty());
        self.tally.reasons[kind] += 1;
        self.end(call, Status::Rejected);
    }
}
