//! The state machine: its inputs and the queue of actions.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::NONE;
use crate::action::{Action, Because, Link, RejectReason};
use crate::edges::{Edge, EdgeList, Edges};
use crate::ids::Ids;
use crate::plan_error::PlanError;
use crate::policy::{Limits, Order, Tool, ToolIndex};
use crate::propagation::Change;
use crate::sequence::Sequence;
use crate::slots::Slots;
use crate::state::{CallIndex, Counts, Outcome, State, Status};
use crate::turn_end::Reply;

/// The calls of one conversation and their states (`spec/running.md`).
///
/// An invalid input returns a [`PlanError`] and changes nothing. After every input, take actions with [`Plan::next_action`]
/// until it returns `None`.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    limits: Limits,
    pub(crate) turns: Vec<Turn>,
    pub(crate) turn_open: bool,
    /// Whether the open turn was cancelled. Then calls that appear later in it are cancelled too.
    pub(crate) turn_cancelled: bool,
    pub(crate) calls: Vec<Call>,
    pub(crate) edges: Edges,
    pub(crate) ids: Ids,
    /// Dependencies of calls of the open turn whose ids no call had at that time.
    wanted: Vec<u32>,
    pub(crate) slots: Slots,
    pub(crate) sequence: Sequence,
    /// Changes that were not propagated yet. Empty between inputs.
    pub(crate) changes: VecDeque<Change>,
    pub(crate) actions: VecDeque<Action>,
    counts: Counts,
    /// The interrupted calls, whose outcome is unknown.
    pub(crate) aside: BTreeSet<u32>,
    /// All calls with a smaller index were cancelled: they have ended or were asked to stop.
    pub(crate) cancelled_before: u32,
}

/// One reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) first: u32,
    pub(crate) order: Order,
    /// With `stop_on_error`: the first call, in written order, that did not succeed, or [`NONE`].
    pub(crate) stopped_by: u32,
    /// The number of calls that tools submitted.
    nested: u32,
}

/// The origin of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Reply,
    Program,
    /// The tool of a running call.
    Tool,
}

#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "the flags are independent of each other"
)]
pub(crate) struct Call {
    pub(crate) name: u32,
    pub(crate) turn: u32,
    /// [`NONE`] until the call is complete.
    pub(crate) tool: u32,
    pub(crate) state: State,
    /// Whether the call cannot be part of a cycle or depend on an unknown id: it has ended, or it is complete and all its
    /// dependencies are grounded.
    pub(crate) grounded: bool,
    /// Whether the call waits for the end of its turn.
    pub(crate) deferred: bool,
    /// Whether the call was started at least once.
    pub(crate) started: bool,
    /// Whether the call was submitted, so it is not part of the written order.
    pub(crate) submitted: bool,
    /// The range of its dependencies.
    pub(crate) edges: (u32, u32),
    /// The edges to it.
    pub(crate) dependents: EdgeList,
    /// The number of dependencies that have not ended, plus one while it waits for calls written before it, plus one while
    /// it waits for the end of its turn.
    pub(crate) pending: u32,
    /// The number of dependencies that are not grounded.
    pub(crate) ungrounded: u32,
    /// The first dependency that did not succeed, or [`NONE`].
    pub(crate) failed: u32,
    /// The cause, if it was skipped.
    pub(crate) because: Option<Because>,
}

impl Plan {
    /// Creates a plan without calls.
    pub fn new(limits: Limits) -> Self {
        let mut plan = Self {
            limits,
            ..Self::default()
        };
        plan.slots.limit = limits.concurrent;
        plan
    }

    /// Registers a tool, at any time before the first call of it is complete.
    ///
    /// After 2^32 - 1 tools, it returns an index for which `complete` returns an error.
    pub fn add_tool(&mut self, tool: Tool) -> ToolIndex {
        ToolIndex(self.slots.add_tool(tool).unwrap_or(NONE))
    }

    /// Sets the limit of calls in a turn from now on.
    pub fn limit_calls_per_turn(&mut self, most: Option<u32>) {
        self.limits.calls_per_turn = most;
    }

    /// Begins a turn. Calls of earlier turns may still be running.
    ///
    /// # Errors
    /// Returns [`PlanError::TurnOpen`].
    pub fn begin_turn(&mut self, order: Order) -> Result<(), PlanError> {
        if self.turn_open {
            return Err(PlanError::TurnOpen);
        }
        self.turn_open = true;
        self.turn_cancelled = false;
        self.turns.push(Turn {
            first: self.next_call(),
            order,
            stopped_by: NONE,
            nested: 0,
        });
        Ok(())
    }

    /// Sets the order of the calls of the open turn, before its first call appears.
    pub fn order_turn(&mut self, order: Order) {
        if let Some(turn) = self.turns.last_mut().filter(|_| self.turn_open) {
            turn.order = order;
        }
    }

    /// Adds a call whose header was parsed. Ids are compared byte by byte.
    ///
    /// A call with a duplicate id or over the limit is rejected at once, and in a cancelled turn the call is cancelled. Then
    /// `complete` and `reject` return [`PlanError::InvalidState`], which you can ignore.
    ///
    /// # Errors
    /// Returns [`PlanError::NoTurn`] or [`PlanError::Full`].
    pub fn declare(&mut self, id: &str) -> Result<CallIndex, PlanError> {
        self.add_call(id, Origin::Reply)
    }

    /// Adds a call that is not part of the reply (`spec/running.md`, "Submitted calls"). It has no id, and waits neither for
    /// calls written before it nor for the end of the turn.
    ///
    /// # Errors
    /// Same as [`declare`](Self::declare).
    pub fn submit(&mut self) -> Result<CallIndex, PlanError> {
        self.add_call("", Origin::Program)
    }

    /// Like [`submit`](Self::submit), for a call that the tool of a running call makes. The reply may have ended, and the call
    /// does not count toward the limit of calls in a turn.
    ///
    /// # Errors
    /// Returns [`PlanError::Full`].
    pub fn submit_nested(&mut self) -> Result<CallIndex, PlanError> {
        self.add_call("", Origin::Tool)
    }

    fn add_call(&mut self, id: &str, origin: Origin) -> Result<CallIndex, PlanError> {
        if !self.turn_open && origin != Origin::Tool {
            return Err(PlanError::NoTurn);
        }
        let submitted = origin != Origin::Reply;
        let call = self.next_call();
        let turn = last_index(&self.turns);
        if call == NONE || turn == NONE {
            return Err(PlanError::Full);
        }
        let name = self.ids.number(id).ok_or(PlanError::Full)?;
        let (mut claim, mut dependents) = (Ok(()), EdgeList::EMPTY);
        if !submitted {
            claim = self.ids.claim(name, call, turn);
            if claim.is_ok() {
                dependents = self.bind_waiting(name, call);
            }
        }
        let edges = self.edges.len();
        self.calls.push(Call {
            name,
            turn,
            tool: NONE,
            state: State::Writing,
            grounded: false,
            deferred: false,
            started: false,
            submitted,
            edges: (edges, edges),
            dependents,
            pending: 0,
            ungrounded: 0,
            failed: NONE,
            because: None,
        });
        self.counts.writing += 1;
        if self.is_sequential(turn) && !submitted {
            self.sequence.calls.push(call);
        }
        if self.turn_cancelled {
            self.cancel(call);
        } else if let Err(first) = claim {
            let first = CallIndex(first);
            let id = self.id_text(name);
            self.reject_call(call, RejectReason::DuplicateId { id, first });
        } else if origin == Origin::Tool {
            if let Some(turn) = self.turns.last_mut() {
                turn.nested += 1;
            }
        } else if let Some(limit) = self.limits.calls_per_turn {
            let nested = self.turns.last().map_or(0, |turn| turn.nested);
            let first = self.turn_first(turn).saturating_add(nested);
            if first.saturating_add(limit) <= call {
                self.reject_call(call, RejectReason::TooManyCalls { limit });
            }
        }
        self.propagate();
        Ok(CallIndex(call))
    }

    /// Completes a call: sets its tool and its dependencies (`spec/running.md`, "What an id means").
    ///
    /// Duplicate dependencies count once. A call that depends on itself is rejected at once. In sequential order, so is a
    /// call with an unknown id, because no later call can have that id.
    ///
    /// # Errors
    /// Returns [`PlanError::UnknownCall`], [`PlanError::UnknownTool`] or [`PlanError::Full`], or [`PlanError::InvalidState`] if
    /// the call is not being written.
    pub fn complete<I>(
        &mut self,
        call: CallIndex,
        tool: ToolIndex,
        dependencies: I,
    ) -> Result<(), PlanError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let CallIndex(call) = call;
        let entry = *self.in_state(call, |state| state == State::Writing)?;
        let tool_is = self.slots.tool(tool.0).ok_or(PlanError::UnknownTool)?;
        let deferred = tool_is.deferred && !entry.submitted;
        let edges = self.add_edges(call, dependencies)?;
        let sequential = self.is_sequential(entry.turn) && !entry.submitted;
        if let Some(entry) = self.calls.get_mut(call as usize) {
            entry.tool = tool.0;
            entry.edges = edges;
            entry.deferred = deferred;
            entry.pending = u32::from(sequential) + u32::from(deferred);
        }
        self.set_state(call, State::Waiting);

        let own = |edge: &Edge| edge.name == entry.name;
        if self.edges.of(edges).iter().any(own) {
            let id = self.id_text(entry.name);
            self.reject_call(call, RejectReason::SelfDependency { id });
        } else if sequential && !self.missing_ids(edges).is_empty() {
            let ids = self.missing_ids(edges);
            self.reject_call(call, RejectReason::UnknownIds { ids });
        } else {
            self.wait_for(call, edges);
            self.reconsider(call);
            self.skip_if_stopped(call);
        }
        self.propagate();
        Ok(())
    }

    /// Rejects a call that is truncated, has invalid arguments or names an unknown tool. The [`Action::Reject`] has the reason.
    ///
    /// # Errors
    /// Returns [`PlanError::UnknownCall`], or [`PlanError::InvalidState`] if the call has started or ended.
    pub fn reject(&mut self, call: CallIndex, reason: impl Into<String>) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let entry = self.in_state(call, State::is_unstarted)?;
        if entry.started {
            return Err(PlanError::InvalidState(entry.state));
        }
        self.reject_call(call, RejectReason::Invalid(reason.into()));
        self.propagate();
        Ok(())
    }

    /// Ends the turn: rejects calls that are still being written, calls with unknown ids and calls in cycles. Then releases
    /// the calls that wait for the end of the turn, or rejects them if the reply was truncated.
    ///
    /// # Errors
    /// Returns [`PlanError::NoTurn`].
    pub fn end_turn(&mut self, reply: Reply) -> Result<(), PlanError> {
        if !self.turn_open {
            return Err(PlanError::NoTurn);
        }
        self.turn_open = false;
        self.check_turn();
        self.end_deferral(reply);
        for name in self.wanted.drain(..) {
            if let Some(wanted) = self.ids.wanted(name) {
                *wanted = EdgeList::EMPTY;
            }
        }
        Ok(())
    }

    /// Approves a ready call. It starts when a slot is free.
    ///
    /// # Errors
    /// Returns [`PlanError::UnknownCall`], or [`PlanError::InvalidState`] if the call is not ready.
    pub fn admit(&mut self, call: CallIndex) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let tool = self.in_state(call, |state| state == State::Ready)?.tool;
        self.set_state(call, State::Admitted);
        self.slots.queue(call, tool);
        Ok(())
    }

    /// Denies a ready call. The [`Action::Reject`] has the reason.
    ///
    /// # Errors
    /// Returns [`PlanError::UnknownCall`], or [`PlanError::InvalidState`] if the call is not ready.
    pub fn deny(&mut self, call: CallIndex, reason: impl Into<String>) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        self.in_state(call, |state| state == State::Ready)?;
        self.reject_call(call, RejectReason::Denied(reason.into()));
        self.propagate();
        Ok(())
    }

    /// Reports that a running call has ended, which frees its slot, or that a call that backs off is not retried.
    ///
    /// # Errors
    /// Returns [`PlanError::UnknownCall`], or [`PlanError::InvalidState`] if the call is neither running nor backing off.
    pub fn finish(&mut self, call: CallIndex, outcome: Outcome) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let has_run = |state| matches!(state, State::Running | State::BackOff);
        let entry = *self.in_state(call, has_run)?;
        if entry.state == State::Running {
            self.slots.release(entry.tool);
        }
        self.end_call(call, outcome.into());
        self.propagate();
        Ok(())
    }

    /// Returns the next action, or `None` if there is nothing to do until the next input.
    ///
    /// A call is `running`, and holds a slot, as soon as this returns its [`Action::Start`].
    pub fn next_action(&mut self) -> Option<Action> {
        while let Some(action) = self.actions.pop_front() {
            // A call that became ready may have been skipped or cancelled since.
            match action {
                Action::Ready(CallIndex(call)) if self.state(call) != Some(State::Ready) => {}
                action => return Some(action),
            }
        }
        // Each start is decided when it is requested, so it cannot be outdated.
        let call = self.slots.start()?;
        self.set_state(call, State::Running);
        if let Some(entry) = self.calls.get_mut(call as usize) {
            entry.started = true;
        }
        Some(Action::Start(CallIndex(call)))
    }

    /// Returns the number of calls in each state.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

impl Plan {
    pub(crate) fn next_call(&self) -> u32 {
        u32::try_from(self.calls.len()).unwrap_or(NONE)
    }

    pub(crate) fn state(&self, call: u32) -> Option<State> {
        self.calls.get(call as usize).map(|entry| entry.state)
    }

    /// Returns the call if its state is valid for the input.
    pub(crate) fn in_state(
        &self,
        call: u32,
        is_valid: impl FnOnce(State) -> bool,
    ) -> Result<&Call, PlanError> {
        let entry = self
            .calls
            .get(call as usize)
            .ok_or(PlanError::UnknownCall)?;
        if is_valid(entry.state) {
            Ok(entry)
        } else {
            Err(PlanError::InvalidState(entry.state))
        }
    }

    pub(crate) fn set_state(&mut self, call: u32, state: State) {
        if let Some(entry) = self.calls.get_mut(call as usize) {
            *self.counts.of(entry.state) -= 1;
            *self.counts.of(state) += 1;
            entry.state = state;
        }
    }

    /// Ends a call that has not ended.
    pub(crate) fn end_call(&mut self, call: u32, status: Status) {
        let Some(entry) = self.calls.get_mut(call as usize) else {
            return;
        };
        let grounds = !entry.grounded;
        entry.grounded = true;
        let before = entry.state;
        let tool = entry.tool;
        self.set_state(call, State::Ended(status));
        if before == State::Admitted {
            self.slots.withdraw(call, tool);
        }
        let succeeded = self.has_succeeded(call);
        self.changes.push_back(Change::Ended {
            call,
            succeeded,
            grounds,
        });
    }

    /// Returns whether the call has ended and its dependents can run: it ended `ok`, or with an `error` that its tool tolerates
    /// (`spec/running.md`, "Failures that are tolerated").
    pub(crate) fn has_succeeded(&self, call: u32) -> bool {
        let entry = self.calls.get(call as usize);
        entry.is_some_and(|entry| match entry.state {
            State::Ended(Status::Ok) => true,
            State::Ended(Status::Error) => self.tool_is(entry, |tool| tool.tolerated),
            _ => false,
        })
    }

    pub(crate) fn tool_is(&self, entry: &Call, property: impl FnOnce(Tool) -> bool) -> bool {
        self.slots.tool(entry.tool).is_some_and(property)
    }

    pub(crate) fn reject_call(&mut self, call: u32, reason: RejectReason) {
        self.end_call(call, Status::Rejected);
        let call = CallIndex(call);
        self.actions.push_back(Action::Reject { call, reason });
    }

    /// Skips a call because of another call that has ended.
    pub(crate) fn skip(&mut self, call: u32, link: Link, direct: u32) {
        let cause = self.calls.get(direct as usize).and_then(|c| c.because);
        let direct = CallIndex(direct);
        let because = Because {
            link,
            direct,
            root: cause.map_or(direct, |because| because.root),
        };
        self.end_call(call, Status::Skipped);
        if let Some(entry) = self.calls.get_mut(call as usize) {
            entry.because = Some(because);
        }
        let call = CallIndex(call);
        self.actions.push_back(Action::Skip { call, because });
    }

    pub(crate) fn id_text(&self, name: u32) -> Arc<str> {
        self.ids.text(name).into()
    }

    /// Binds the edges that wait for the id to the call that has just appeared.
    fn bind_waiting(&mut self, name: u32, call: u32) -> EdgeList {
        let Some(wanted) = self.ids.wanted(name) else {
            return EdgeList::EMPTY;
        };
        let list = std::mem::replace(wanted, EdgeList::EMPTY);
        let mut cursor = list.first;
        loop {
            let edge = cursor;
            if self.edges.step(&mut cursor).is_none() {
                return list;
            }
            self.edges.bind(edge, call);
        }
    }

    /// Adds the dependencies of a call, each once. Those whose id has appeared are bound.
    fn add_edges<I>(&mut self, call: u32, dependencies: I) -> Result<(u32, u32), PlanError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let first = self.edges.len();
        let turn = last_index(&self.turns);
        let sequential = self.is_sequential(turn);
        for id in dependencies {
            let name = self.ids.number(id.as_ref());
            // On error, the edges that were added remain, but no list and no call refers to them.
            let name = name.filter(|_| self.edges.len() < NONE);
            let name = name.ok_or(PlanError::Full)?;
            if self.ids.mention(name, call) {
                let target = self.ids.meaning(name, call, turn);
                // In sequential order, an id never means a later call, even if one has appeared.
                let later = sequential && target > call;
                let target = if later { NONE } else { target };
                self.edges.push(name, call, target);
            }
        }
        Ok((first, self.edges.len()))
    }

    /// Adds the edges of a call to the lists of the calls or ids that they wait for.
    fn wait_for(&mut self, call: u32, edges: (u32, u32)) {
        let (mut pending, mut ungrounded, mut failed) = (0, 0, NONE);
        for index in edges.0..edges.1 {
            let Some(edge) = self.edges.get(index) else {
                continue;
            };
            let succeeded = self.has_succeeded(edge.target);
            if let Some(target) = self.calls.get_mut(edge.target as usize) {
                match target.state {
                    State::Ended(_) if !succeeded && failed == NONE => failed = edge.target,
                    State::Ended(_) => {}
                    _ => {
                        pending += 1;
                        ungrounded += u32::from(!target.grounded);
                        self.edges.append(&mut target.dependents, index);
                    }
                }
            } else if let Some(wanted) = self.ids.wanted(edge.name) {
                pending += 1;
                ungrounded += 1;
                self.edges.append(wanted, index);
                self.wanted.push(edge.name);
            }
        }
        if let Some(entry) = self.calls.get_mut(call as usize) {
            entry.pending += pending;
            entry.ungrounded = ungrounded;
            entry.failed = failed;
        }
    }

    /// Returns the dependencies of a call whose ids no call has.
    pub(crate) fn missing_ids(&self, edges: (u32, u32)) -> Vec<Arc<str>> {
        let missing = |edge: &&Edge| edge.target == NONE;
        let edges = self.edges.of(edges).iter().filter(missing);
        edges.map(|edge| self.id_text(edge.name)).collect()
    }

    pub(crate) fn turn_first(&self, turn: u32) -> u32 {
        let next = self.next_call();
        self.turns.get(turn as usize).map_or(next, |t| t.first)
    }
}

/// Returns the index of the last element, or [`NONE`] if there is none or it has no number.
pub(crate) fn last_index<T>(table: &[T]) -> u32 {
    let last = table.len().checked_sub(1);
    last.and_then(|last| u32::try_from(last).ok())
        .unwrap_or(NONE)
}
