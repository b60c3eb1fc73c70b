//! Plays a conversation against the plan and checks every step: what comes out, and what does not.

use plaincall_plan::{
    Action, Because, CallIndex, Link, Order, Outcome, Plan, RejectReason, State, Status, ToolIndex,
};
use plaincall_testkit::plan_oracle::{Call, Fate, Oracle};

use crate::scenario::{Piece, Random, Scenario};

pub(crate) struct Driver<'a> {
    pub(crate) plan: Plan,
    scenario: &'a Scenario,
    random: &'a mut Random,
    /// What the dependencies of each call mean, by the oracle.
    meanings: Vec<Vec<Option<usize>>>,
    calls: Vec<&'a Call>,
    turn_of: Vec<usize>,
    orders: Vec<Order>,
    tools: Vec<ToolIndex>,
    /// Where each call that has appeared stands, by what has come out.
    states: Vec<State>,
    /// The calls that have appeared and not ended, brought up to date after each input.
    live: Vec<usize>,
    because: Vec<Option<Because>>,
    /// When each call started or was denied, and when it ended.
    left: Vec<Option<usize>>,
    ended: Vec<usize>,
    /// Calls whose text was complete when nothing had ended them yet.
    completed: Vec<usize>,
    next_piece: usize,
    turn_is_open: bool,
    turn_is_cancelled: bool,
    is_cancelling: bool,
    clock: usize,
    stops: Vec<usize>,
    pub(crate) cancelled: Vec<usize>,
    pub(crate) reasons: [u32; 8],
    pub(crate) refused: u32,
    pub(crate) held_by_slots: u32,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(scenario: &'a Scenario, random: &'a mut Random) -> Self {
        let mut plan = Plan::new(scenario.limits);
        let tools = scenario.tools.iter().map(|tool| plan.add_tool(*tool));
        let tools = tools.collect();
        let turns = scenario.conversation.turns.iter().enumerate();
        let turn_of = turns.flat_map(|(turn, reply)| vec![turn; reply.1.len()]);
        let count = scenario.calls().count();
        let oracle = Oracle::new(&scenario.conversation);
        Self {
            plan,
            random,
            meanings: (0..count).map(|call| oracle.meanings(call)).collect(),
            calls: scenario.calls().collect(),
            turn_of: turn_of.collect(),
            orders: scenario
                .conversation
                .turns
                .iter()
                .map(|turn| turn.0)
                .collect(),
            scenario,
            tools,
            states: Vec::new(),
            live: Vec::new(),
            because: vec![None; count],
            left: vec![None; count],
            ended: vec![usize::MAX; count],
            completed: Vec::new(),
            next_piece: 0,
            turn_is_open: false,
            turn_is_cancelled: false,
            is_cancelling: false,
            clock: 0,
            stops: Vec::new(),
            cancelled: Vec::new(),
            reasons: [0; 8],
            refused: 0,
            held_by_slots: 0,
        }
    }

    /// Plays to the end. The order of what happens is random.
    pub(crate) fn play(&mut self) {
        loop {
            if self.scenario.cancel_at == Some(self.next_piece)
                && self.stops.is_empty()
                && self.cancelled.is_empty()
            {
                self.cancel();
            }
            let is_open =
                |call: &usize| matches!(self.states[*call], State::Ready | State::Running);
            let open: Vec<usize> = self.live.iter().copied().filter(is_open).collect();
            let text_left = self.next_piece < self.scenario.pieces.len();
            if text_left && (open.is_empty() || self.random.percent(self.scenario.text_first)) {
                self.read_on();
            } else if open.is_empty() {
                break;
            } else {
                let call = self.random.pick(&open);
                self.answer(call);
            }
            self.drain();
            if self.random.percent(20) {
                self.misuse();
            }
        }
        assert_eq!(self.plan.counts().unended(), 0, "calls are left");
        assert_eq!(self.states.len(), self.calls.len());
        for (view, state) in self.plan.calls().zip(&self.states) {
            assert_eq!(view.state(), *state, "call {}", view.index());
        }
        for &call in &self.completed {
            self.compare_binding(call);
        }
    }

    pub(crate) fn statuses(&self) -> Vec<Status> {
        self.states
            .iter()
            .filter_map(|state| state.status())
            .collect()
    }

    /// When each call started or was denied, and when it ended.
    pub(crate) fn moments(&self) -> Vec<(Option<usize>, usize)> {
        self.left
            .iter()
            .copied()
            .zip(self.ended.iter().copied())
            .collect()
    }

    fn read_on(&mut self) {
        let piece = self.scenario.pieces[self.next_piece];
        self.next_piece += 1;
        match piece {
            Piece::BeginTurn(order) => {
                self.plan.begin_turn(order).unwrap();
                self.turn_is_open = true;
                self.turn_is_cancelled = false;
            }
            Piece::EndTurn => {
                self.turn_is_open = false;
                self.plan.end_turn().unwrap();
            }
            Piece::Header(call) => {
                let index = self.plan.declare(self.calls[call].id).unwrap();
                assert_eq!(index.index(), call);
                self.states.push(State::Writing);
                self.live.push(call);
                if self.turn_is_cancelled {
                    self.drain();
                    assert_eq!(self.states[call], State::Ended(Status::Cancelled));
                }
            }
            Piece::Rest(call) => {
                let has_ended = self.states[call] != State::Writing;
                let result = if self.calls[call].fate == Fate::Wrong {
                    self.plan.reject(at(call), "wrong")
                } else {
                    let tool = self.tools[self.scenario.tool_of[call]];
                    if !has_ended {
                        self.states[call] = State::Waiting;
                    }
                    self.plan
                        .complete(at(call), tool, &self.calls[call].dependencies)
                };
                assert_eq!(result.is_err(), has_ended, "{call}: {result:?}");
                if !has_ended && self.calls[call].fate != Fate::Wrong {
                    self.completed.push(call);
                    self.compare_binding(call);
                }
            }
        }
    }

    /// The gate answers, or the tool ends.
    fn answer(&mut self, call: usize) {
        self.clock += 1;
        if self.states[call] == State::Ready {
            if self.calls[call].fate == Fate::Denied {
                self.left[call] = Some(self.clock);
                self.plan.deny(at(call), "denied").unwrap();
            } else {
                self.plan.admit(at(call)).unwrap();
                self.states[call] = State::Admitted;
            }
        } else {
            let Fate::Ends(outcome) = self.calls[call].fate else {
                panic!("call {call} must not run");
            };
            self.plan.ended(at(call), outcome).unwrap();
            self.end(call, outcome.into());
        }
    }

    fn cancel(&mut self) {
        self.plan.cancel_all();
        self.is_cancelling = true;
        self.turn_is_cancelled = self.turn_is_open;
        let running = |call: &usize| self.states[*call] == State::Running;
        let running: Vec<usize> = (0..self.states.len()).filter(running).collect();
        let unstarted = self
            .states
            .iter()
            .filter(|state| state.is_unstarted())
            .count();
        self.drain_with(|driver, action| match action {
            Action::Stop(call) => {
                assert_eq!(driver.states[call.index()], State::Running);
                driver.stops.push(call.index());
            }
            other => driver.take(other),
        });
        self.is_cancelling = false;
        assert_eq!(self.stops, running, "running calls are asked to stop");
        assert_eq!(self.cancelled.len(), unstarted, "the others are cancelled");
    }

    fn end(&mut self, call: usize, status: Status) {
        assert_eq!(self.states[call].status(), None, "call {call} ends twice");
        self.states[call] = State::Ended(status);
        self.clock += 1;
        self.ended[call] = self.clock;
    }

    fn drain(&mut self) {
        self.drain_with(Self::take);
    }

    /// Takes all actions; then nothing may wait that could go on.
    fn drain_with(&mut self, take: impl Fn(&mut Self, Action)) {
        while let Some(action) = self.plan.next_action() {
            take(self, action);
        }
        for call in self.live.clone() {
            let view = self.plan.call(at(call)).unwrap();
            assert_eq!(view.state(), self.states[call], "call {call}");
            match self.states[call] {
                State::Waiting => assert!(self.must_wait(call), "call {call} could go on"),
                State::Admitted => {
                    assert!(!self.may_start(call), "call {call} could start");
                    self.held_by_slots += 1;
                }
                _ => {}
            }
        }
        let states = &self.states;
        self.live.retain(|&call| states[call].status().is_none());
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Ready(call) => {
                let call = call.index();
                assert_eq!(self.states[call], State::Waiting, "ready: call {call}");
                let all_ok = self
                    .targets(call)
                    .all(|target| self.is_ended(target, Status::Ok));
                assert!(
                    all_ok,
                    "call {call} is ready before its dependencies are ok"
                );
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
                self.left[call] = Some(self.clock);
            }
            Action::Skip { call, because } => self.take_skip(call.index(), because),
            Action::Reject { call, reason } => self.take_reject(call.index(), &reason),
            Action::Cancel(call) => {
                assert!(self.is_cancelling || self.turn_is_cancelled);
                assert!(self.states[call.index()].is_unstarted());
                self.cancelled.push(call.index());
                self.end(call.index(), Status::Cancelled);
            }
            Action::Stop(call) => panic!("nobody has asked to stop call {call}"),
        }
    }

    fn take_skip(&mut self, call: usize, because: Because) {
        let state = self.states[call];
        assert!(
            state.is_unstarted() && state != State::Writing,
            "skip: call {call}"
        );
        let direct = because.direct.index();
        let status = self.states[direct].status();
        assert!(
            status.is_some_and(|status| status != Status::Ok),
            "call {call} for {direct}"
        );
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
            RejectReason::Cycle { ring } => {
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
            RejectReason::Wrong(_) => {
                assert_eq!(fate, Fate::Wrong);
                6
            }
            RejectReason::Denied(_) => {
                assert_eq!((fate, self.states[call]), (Fate::Denied, State::Ready));
                7
            }
            other => panic!("an unknown reason: {other}"),
        };
        assert!(!reason.to_string().is_empty());
        self.reasons[kind] += 1;
        self.end(call, Status::Rejected);
    }

    /// What the call depends on; `None` for an id that no call has so far.
    fn targets(&self, call: usize) -> impl Iterator<Item = Option<usize>> {
        let meanings = self.meanings[call].iter();
        meanings.map(|target| target.filter(|&target| target < self.states.len()))
    }

    fn compare_binding(&self, call: usize) {
        let view = self.plan.call(at(call)).unwrap();
        if self.calls[call].dependencies.contains(&self.calls[call].id) {
            return;
        }
        let mut named = Vec::new();
        for (id, target) in self.calls[call].dependencies.iter().zip(self.targets(call)) {
            if !named.contains(&(*id, target)) {
                named.push((*id, target));
            }
        }
        let bound = view.dependencies();
        let bound: Vec<_> = bound
            .map(|to| (to.id, to.call.map(CallIndex::index)))
            .collect();
        assert_eq!(bound, named, "call {call}");
    }

    fn is_ended(&self, call: Option<usize>, status: Status) -> bool {
        call.is_some_and(|call| self.states[call] == State::Ended(status))
    }

    fn is_held_by_order(&self, call: usize) -> bool {
        let sequential = |call: usize| self.orders[self.turn_of[call]] != Order::Graph;
        let reads = |call: usize| {
            self.states[call] != State::Writing
                && self.scenario.tools[self.scenario.tool_of[call]].read
        };
        sequential(call)
            && (0..call).any(|earlier| {
                sequential(earlier)
                    && self.states[earlier].status().is_none()
                    && !(reads(earlier) && reads(call))
            })
    }

    /// Whether a waiting call has a reason to wait.
    fn must_wait(&self, call: usize) -> bool {
        let failed = |target: Option<usize>| {
            target.is_some_and(|target| {
                self.states[target]
                    .status()
                    .is_some_and(|status| status != Status::Ok)
            })
        };
        if self.targets(call).any(failed) {
            return !self.is_in_order(call);
        }
        let all_ok = self
            .targets(call)
            .all(|target| self.is_ended(target, Status::Ok));
        !all_ok || self.is_held_by_order(call)
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
    fn may_start(&self, call: usize) -> bool {
        if self.states[call] != State::Admitted {
            return false;
        }
        let tool = |call: usize| self.scenario.tools[self.scenario.tool_of[call]];
        let live = self.live.iter().copied();
        let in_state = |state: State| live.clone().filter(move |&at| self.states[at] == state);
        let running = in_state(State::Running).count();
        let same_tool =
            |other: &usize| self.scenario.tool_of[*other] == self.scenario.tool_of[call];
        let of_tool = in_state(State::Running).filter(same_tool).count();
        let within = |limit: Option<std::num::NonZeroU32>, count: usize| {
            limit.is_none_or(|limit| count < limit.get() as usize)
        };
        within(self.scenario.limits.concurrent, running)
            && within(tool(call).max_concurrent, of_tool)
            && !(tool(call).exclusive && running > 0)
            && !in_state(State::Running).any(|other| tool(other).exclusive)
            && !in_state(State::Admitted).any(|other| other < call && tool(other).exclusive)
    }

    /// An input that does not fit: it must be refused and change nothing.
    fn misuse(&mut self) {
        let call = self.random.below(self.states.len() + 2);
        let state = self.states.get(call).copied();
        let tool = self.tools[0];
        let (before, plan) = (self.plan.counts(), &mut self.plan);
        let result = match self.random.below(7) {
            0 if state != Some(State::Ready) => plan.admit(at(call)),
            1 if state != Some(State::Ready) => plan.deny(at(call), "misuse"),
            2 if state != Some(State::Running) => plan.ended(at(call), Outcome::Ok),
            3 if state != Some(State::Writing) => plan.complete(at(call), tool, ["a", "b"]),
            4 if !state.is_some_and(State::is_unstarted) => plan.reject(at(call), "misuse"),
            5 if self.turn_is_open => plan.begin_turn(Order::Graph),
            6 if !self.turn_is_open => plan.end_turn().and(plan.declare("misuse").map(|_| ())),
            _ => return,
        };
        assert!(result.is_err(), "call {call} in {state:?}");
        assert_eq!(plan.next_action(), None);
        assert_eq!(plan.counts(), before);
        self.refused += 1;
    }
}

fn at(call: usize) -> CallIndex {
    CallIndex::new(u32::try_from(call).unwrap())
}
