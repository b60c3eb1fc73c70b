//! Plays a conversation against the plan and checks every step: what comes out, and what does not.

use plaincall_oracle::plan_oracle::{Call, Fate, Moments, Oracle};
use plaincall_plan::{
    Action, Because, CallIndex, Order, Outcome, Plan, PlanError, Reply, State, Status, ToolIndex,
};

use plaincall_oracle::arbitrary_texts::Random;

use crate::plan::scenario::{Piece, Scenario};
use crate::plan::tally::Tally;

/// One conversation being played. What it records it has from the actions that came out, not from the plan.
pub(crate) struct Driver<'a> {
    pub(crate) plan: Plan,
    pub(super) scenario: &'a Scenario,
    random: &'a mut Random,
    /// The targets of the dependencies of each call, by the oracle.
    pub(super) meanings: Vec<Vec<Option<usize>>>,
    pub(super) calls: Vec<&'a Call>,
    pub(super) turn_of: Vec<usize>,
    pub(super) orders: Vec<Order>,
    tools: Vec<ToolIndex>,
    /// The state of each known call, derived from the actions.
    pub(super) states: Vec<State>,
    /// The calls that have appeared and not ended, brought up to date after each input.
    pub(super) live: Vec<usize>,
    pub(super) because: Vec<Option<Because>>,
    /// When each call first started or was denied, and when it ended.
    pub(super) left: Vec<Option<usize>>,
    ended: Vec<usize>,
    /// When each reply was over.
    over: Vec<usize>,
    /// How often each call will still fail and be retried.
    failures: Vec<usize>,
    /// Calls that were asked to stop.
    stopped: Vec<bool>,
    /// Calls whose text was complete when nothing had ended them yet.
    completed: Vec<usize>,
    next_piece: usize,
    pub(super) turn_is_open: bool,
    pub(super) turn_is_cancelled: bool,
    pub(super) is_cancelling: bool,
    next_cancel: usize,
    steps: usize,
    pub(super) clock: usize,
    stops: Vec<usize>,
    pub(crate) cancelled: Vec<usize>,
    pub(crate) timed_out: Vec<usize>,
    pub(crate) tally: Tally,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(scenario: &'a Scenario, random: &'a mut Random) -> Self {
        let mut plan = Plan::new(scenario.limits);
        let tools = scenario.tools.iter().map(|tool| plan.add_tool(*tool));
        let tools = tools.collect();
        let turns = scenario.conversation.turns.iter().enumerate();
        let turn_of = turns.flat_map(|(turn, reply)| vec![turn; reply.calls.len()]);
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
                .map(|turn| turn.order)
                .collect(),
            scenario,
            tools,
            states: Vec::new(),
            live: Vec::new(),
            because: vec![None; count],
            left: vec![None; count],
            ended: vec![usize::MAX; count],
            over: Vec::new(),
            failures: scenario.failures.clone(),
            stopped: vec![false; count],
            completed: Vec::new(),
            next_piece: 0,
            turn_is_open: false,
            turn_is_cancelled: false,
            is_cancelling: false,
            next_cancel: 0,
            steps: 0,
            clock: 0,
            stops: Vec::new(),
            cancelled: Vec::new(),
            timed_out: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Plays to the end. The order of what happens is random.
    pub(crate) fn play(&mut self) {
        loop {
            while let Some(cancel) = self.scenario.cancels.get(self.next_cancel)
                && cancel.at <= self.steps
            {
                self.next_cancel += 1;
                self.cancel();
                if cancel.is_timeout {
                    self.run_out_of_time();
                }
            }
            self.steps += 1;
            let is_open = |call: &usize| {
                let state = self.states[*call];
                matches!(state, State::Ready | State::Running | State::BackOff)
            };
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

    fn read_on(&mut self) {
        let piece = self.scenario.pieces[self.next_piece];
        self.next_piece += 1;
        match piece {
            Piece::BeginTurn(order) => {
                self.plan.begin_turn(order).unwrap();
                self.turn_is_open = true;
                self.turn_is_cancelled = false;
            }
            Piece::EndTurn(reply) => {
                self.turn_is_open = false;
                self.clock += 1;
                self.over.push(self.clock);
                self.plan.end_turn(reply).unwrap();
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

    /// The gate answers, the tool fails or ends, or the time of waiting is over.
    fn answer(&mut self, call: usize) {
        self.clock += 1;
        let state = self.states[call];
        match state {
            State::Ready => {
                self.tally.late_answers += u32::from(self.is_turn_over(call));
                if self.calls[call].fate == Fate::Denied {
                    self.left[call] = Some(self.clock);
                    self.plan.deny(at(call), "denied").unwrap();
                } else {
                    self.plan.admit(at(call)).unwrap();
                    self.states[call] = State::Admitted;
                }
            }
            State::Running if self.failures[call] > 0 => self.back_off(call),
            State::Running => self.finish(call),
            State::BackOff if self.is_abandoned(call) => {
                self.tally.abandoned += 1;
                self.finish(call);
            }
            State::BackOff => {
                self.plan.retry(at(call)).unwrap();
                self.states[call] = State::Admitted;
                self.tally.retries += 1;
            }
            state => panic!("call {call} waits for no answer: {state:?}"),
        }
    }

    pub(super) fn is_turn_over(&self, call: usize) -> bool {
        self.turn_of[call] < self.over.len()
    }

    fn back_off(&mut self, call: usize) {
        self.failures[call] -= 1;
        let result = self.plan.back_off(at(call));
        if self.stopped[call] {
            assert_eq!(result, Err(PlanError::InvalidState(State::Running)));
            self.tally.refused += 1;
        } else {
            result.unwrap();
            self.states[call] = State::BackOff;
        }
    }

    /// Only a call that ends badly is abandoned, and only sometimes.
    fn is_abandoned(&mut self, call: usize) -> bool {
        self.calls[call].fate != Fate::Ends(Outcome::Ok) && self.random.percent(30)
    }

    fn finish(&mut self, call: usize) {
        let Fate::Ends(outcome) = self.calls[call].fate else {
            panic!("call {call} must not run");
        };
        self.plan.finish(at(call), outcome).unwrap();
        self.end(call, outcome.into());
    }

    /// Cancels everything.
    fn cancel(&mut self) {
        let (running, others): (Vec<usize>, Vec<usize>) = self
            .live
            .iter()
            .partition(|call| self.states[**call] == State::Running);
        let asked_for_the_first_time = |call: &usize| !self.stopped[*call];
        let running: Vec<usize> = running
            .into_iter()
            .filter(asked_for_the_first_time)
            .collect();
        let in_back_off = |call: &&usize| self.states[**call] == State::BackOff;
        self.tally.cancelled_in_back_off +=
            u32::try_from(others.iter().filter(in_back_off).count()).unwrap();
        self.plan.cancel_all();
        self.turn_is_cancelled = self.turn_is_open;
        self.is_cancelling = true;
        self.stops.clear();
        let before = self.cancelled.len();
        self.drain_with(|driver, action| match action {
            Action::Stop(call) => {
                assert_eq!(driver.states[call.index()], State::Running);
                driver.stopped[call.index()] = true;
                driver.stops.push(call.index());
            }
            other => driver.take(other),
        });
        self.is_cancelling = false;
        assert_eq!(self.stops, running, "running calls are asked to stop");
        assert_eq!(self.cancelled[before..], others, "the others are cancelled");
    }

    /// The calls that were just asked to stop have ended because their time was over.
    fn run_out_of_time(&mut self) {
        for call in std::mem::take(&mut self.stops) {
            self.plan.finish(at(call), Outcome::Error).unwrap();
            self.end(call, Status::Error);
            self.timed_out.push(call);
            self.tally.timed_out += 1;
            self.drain();
        }
    }

    pub(super) fn end(&mut self, call: usize, status: Status) {
        assert_eq!(self.states[call].status(), None, "call {call} ends twice");
        self.states[call] = State::Ended(status);
        self.clock += 1;
        self.ended[call] = self.clock;
    }

    fn drain(&mut self) {
        self.drain_with(Self::take);
    }

    /// Takes all actions; then nothing may wait that could continue.
    fn drain_with(&mut self, take: impl Fn(&mut Self, Action)) {
        while let Some(action) = self.plan.next_action() {
            take(self, action);
            self.check_slots();
        }
        self.check_slots();
        self.check_counts();
        for call in self.live.clone() {
            let view = self.plan.call(at(call)).unwrap();
            assert_eq!(view.state(), self.states[call], "call {call}");
            match self.states[call] {
                State::Waiting => {
                    assert!(self.must_wait(call), "call {call} could continue");
                    self.tally.held_by_deferral += u32::from(self.is_held_by_deferral(call));
                }
                State::Admitted => {
                    assert!(!self.may_start(call), "call {call} could start");
                    self.tally.held_by_slots += 1;
                }
                _ => {}
            }
        }
        let states = &self.states;
        self.live.retain(|&call| states[call].status().is_none());
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

    /// An input that does not fit: it must be refused and change nothing.
    fn misuse(&mut self) {
        let call = self.random.below(self.states.len() + 2);
        let state = self.states.get(call).copied();
        let tool = self.tools[0];
        let has_run = self.left.get(call).is_some_and(Option::is_some);
        let (before, plan) = (self.plan.counts(), &mut self.plan);
        let result = match self.random.below(9) {
            0 if state != Some(State::Ready) => plan.admit(at(call)),
            1 if state != Some(State::Ready) => plan.deny(at(call), "misuse"),
            2 if !matches!(state, Some(State::Running | State::BackOff)) => {
                plan.finish(at(call), Outcome::Ok)
            }
            3 if state != Some(State::Writing) => plan.complete(at(call), tool, ["a", "b"]),
            4 if has_run || !state.is_some_and(State::is_unstarted) => {
                plan.reject(at(call), "misuse")
            }
            5 if self.turn_is_open => plan.begin_turn(Order::Graph),
            6 if !self.turn_is_open => plan
                .end_turn(Reply::Complete)
                .and(plan.declare("misuse").map(|_| ())),
            7 if state != Some(State::Running) => plan.back_off(at(call)),
            8 if state != Some(State::BackOff) => plan.retry(at(call)),
            _ => return,
        };
        assert!(result.is_err(), "call {call} in {state:?}");
        assert_eq!(plan.next_action(), None);
        assert_eq!(plan.counts(), before);
        self.tally.refused += 1;
    }
}

impl Moments for Driver<'_> {
    fn had_left(&self, a: usize, b: usize) -> bool {
        self.left[a].is_some_and(|left| left < self.ended[b])
    }

    fn had_ended(&self, call: usize, turn: usize) -> bool {
        self.ended[call] < self.over[turn]
    }
}

pub(super) fn at(call: usize) -> CallIndex {
    CallIndex::new(u32::try_from(call).unwrap())
}
