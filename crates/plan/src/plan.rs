//! The state machine: its inputs and the queue of actions.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::NONE;
use crate::action::{Action, Because, Link, RejectReason};
use crate::edges::{Edge, EdgeList, Edges};
use crate::ids::Ids;
use crate::judge::Reply;
use crate::news::News;
use crate::plan_error::PlanError;
use crate::policy::{Limits, Order, Tool, ToolIndex};
use crate::sequence::Sequence;
use crate::slots::Slots;
use crate::state::{CallIndex, Counts, Outcome, State, Status};

/// The calls of one conversation, and what may happen to them next (`spec/running.md`).
///
/// Inputs that do not fit are refused with a [`PlanError`] and change nothing. After every input take actions
/// with [`Plan::next_action`] until there is none.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    limits: Limits,
    pub(crate) turns: Vec<Turn>,
    pub(crate) turn_open: bool,
    /// The open turn was cancelled: calls that still appear in it are cancelled too.
    pub(crate) turn_cancelled: bool,
    pub(crate) calls: Vec<Call>,
    pub(crate) edges: Edges,
    pub(crate) ids: Ids,
    /// Ids that calls of the open turn name and that no call had at that time.
    wanted: Vec<u32>,
    pub(crate) slots: Slots,
    pub(crate) sequence: Sequence,
    /// What has happened to calls and has not been told to their dependents. Empty between inputs.
    pub(crate) news: VecDeque<News>,
    pub(crate) actions: VecDeque<Action>,
    counts: Counts,
    /// The calls that were cut off while they ran, and wait for somebody's word.
    pub(crate) aside: BTreeSet<u32>,
    /// The calls before this one were there at the last cancellation: they have ended or been asked to stop.
    pub(crate) called_off: u32,
}

/// One reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) first: u32,
    pub(crate) order: Order,
    /// With `stop_on_error`: the first call in order of writing that did not end `ok`, or [`NONE`].
    pub(crate) stopped_by: u32,
}

#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; there is one of these for every call"
)]
pub(crate) struct Call {
    pub(crate) name: u32,
    pub(crate) turn: u32,
    /// Known when the call is complete; [`NONE`] before.
    pub(crate) tool: u32,
    pub(crate) state: State,
    /// It can be part of no cycle and needs no unknown id: it is complete and so are, transitively, all calls
    /// it depends on. An ended call is grounded too.
    pub(crate) grounded: bool,
    /// It waits for the end of its turn.
    pub(crate) deferred: bool,
    /// It has been started at least once.
    pub(crate) started: bool,
    /// The reply does not write it: it has no place in the order of writing.
    pub(crate) submitted: bool,
    /// Its own edges, as a range.
    pub(crate) edges: (u32, u32),
    /// The edges that lead to it.
    pub(crate) dependents: EdgeList,
    /// Dependencies that have not ended, plus one while calls written before it hold it back, plus one while
    /// it waits for the end of its turn.
    pub(crate) pending: u32,
    /// Dependencies that are not grounded.
    pub(crate) ungrounded: u32,
    /// The first dependency that did not end well, or [`NONE`].
    pub(crate) failed: u32,
    /// Why it was skipped.
    pub(crate) because: Option<Because>,
}

impl Plan {
    /// An empty conversation.
    pub fn new(limits: Limits) -> Self {
        let mut plan = Self {
            limits,
            ..Self::default()
        };
        plan.slots.limit = limits.concurrent;
        plan
    }

    /// Registers a tool; at any time, and before the first call of it is complete.
    ///
    /// Beyond 2^32 - 1 tools the index is one that `complete` refuses.
    pub fn add_tool(&mut self, tool: Tool) -> ToolIndex {
        ToolIndex(self.slots.add_tool(tool).unwrap_or(NONE))
    }

    /// Sets how many calls a turn may hold, from now on.
    pub fn limit_calls_per_turn(&mut self, most: Option<u32>) {
        self.limits.calls_per_turn = most;
    }

    /// Begins a turn. Calls of earlier turns may still be running.
    ///
    /// # Errors
    /// [`PlanError::TurnOpen`].
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
        });
        Ok(())
    }

    /// Sets what orders the calls of the open turn, before the first of them appears.
    pub fn order_turn(&mut self, order: Order) {
        if let Some(turn) = self.turns.last_mut().filter(|_| self.turn_open) {
            turn.order = order;
        }
    }

    /// A call has appeared: its header has been seen. Ids are compared byte by byte.
    ///
    /// A duplicate id and a call over the limit are rejected here, and in a cancelled turn the call is
    /// cancelled; `complete` and `reject` then answer [`PlanError::NotNow`], which can be ignored.
    ///
    /// # Errors
    /// [`PlanError::NoTurn`], [`PlanError::Full`].
    pub fn declare(&mut self, id: &str) -> Result<CallIndex, PlanError> {
        self.appear(id, false)
    }

    /// A call has come that the reply does not write (`spec/running.md`, "Submitted calls"): no id means it, and it
    /// waits neither for calls written before it nor for the end of the turn.
    ///
    /// # Errors
    /// As [`declare`](Self::declare).
    pub fn submit(&mut self) -> Result<CallIndex, PlanError> {
        self.appear("", true)
    }

    fn appear(&mut self, id: &str, submitted: bool) -> Result<CallIndex, PlanError> {
        if !self.turn_open {
            return Err(PlanError::NoTurn);
        }
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
                dependents = self.adopt(name, call);
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
            self.turn_down(call, RejectReason::DuplicateId { id, first });
        } else if let Some(limit) = self.limits.calls_per_turn {
            if self.turn_first(turn).saturating_add(limit) <= call {
                self.turn_down(call, RejectReason::TooManyCalls { limit });
            }
        }
        self.settle();
        Ok(CallIndex(call))
    }

    /// The call's text is complete: binds its dependencies (`spec/running.md`, "What an id means").
    ///
    /// An id that is named twice counts once. A self dependency is rejected here; in sequential order an
    /// unknown id too, since no later call could come to its help.
    ///
    /// # Errors
    /// [`PlanError::UnknownCall`], [`PlanError::UnknownTool`], [`PlanError::Full`], and [`PlanError::NotNow`] unless
    /// the call is being written.
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
        let edges = self.enter_edges(call, dependencies)?;
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
            self.turn_down(call, RejectReason::SelfDependency { id });
        } else if sequential && !self.missing_ids(edges).is_empty() {
            let ids = self.missing_ids(edges);
            self.turn_down(call, RejectReason::UnknownIds { ids });
        } else {
            self.wait_for(call, edges);
            self.reconsider(call);
            self.stop_if_stopped(call);
        }
        self.settle();
        Ok(())
    }

    /// The caller found the call wrong: an unknown tool, wrong arguments, cut off. The reason comes out again
    /// with the [`Action::Reject`].
    ///
    /// # Errors
    /// [`PlanError::UnknownCall`], and [`PlanError::NotNow`] if the call has started or ended.
    pub fn reject(&mut self, call: CallIndex, reason: impl Into<String>) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let entry = self.in_state(call, State::is_unstarted)?;
        if entry.started {
            return Err(PlanError::NotNow(entry.state));
        }
        self.turn_down(call, RejectReason::Wrong(reason.into()));
        self.settle();
        Ok(())
    }

    /// The reply is over: judges unknown ids and cycles, then releases the calls that wait for the end of the
    /// turn, or rejects them if the reply broke off. A call that is still being written is rejected.
    ///
    /// # Errors
    /// [`PlanError::NoTurn`].
    pub fn end_turn(&mut self, reply: Reply) -> Result<(), PlanError> {
        if !self.turn_open {
            return Err(PlanError::NoTurn);
        }
        self.turn_open = false;
        self.judge();
        self.end_deferral(reply);
        for name in self.wanted.drain(..) {
            if let Some(wanted) = self.ids.wanted(name) {
                *wanted = EdgeList::EMPTY;
            }
        }
        Ok(())
    }

    /// The gate lets a ready call pass; it starts when there is a slot for it.
    ///
    /// # Errors
    /// [`PlanError::UnknownCall`], and [`PlanError::NotNow`] unless the call is ready.
    pub fn admit(&mut self, call: CallIndex) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let tool = self.in_state(call, |state| state == State::Ready)?.tool;
        self.set_state(call, State::Admitted);
        self.slots.queue(call, tool);
        Ok(())
    }

    /// The gate denies a ready call. The reason comes out again with the [`Action::Reject`].
    ///
    /// # Errors
    /// [`PlanError::UnknownCall`], and [`PlanError::NotNow`] unless the call is ready.
    pub fn deny(&mut self, call: CallIndex, reason: impl Into<String>) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        self.in_state(call, |state| state == State::Ready)?;
        self.turn_down(call, RejectReason::Denied(reason.into()));
        self.settle();
        Ok(())
    }

    /// A running call has ended, and its slot is free; or a call is not tried again after all.
    ///
    /// # Errors
    /// [`PlanError::UnknownCall`], and [`PlanError::NotNow`] unless the call is running or backing off.
    pub fn ended(&mut self, call: CallIndex, outcome: Outcome) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let has_run = |state| matches!(state, State::Running | State::BackOff);
        let entry = *self.in_state(call, has_run)?;
        if entry.state == State::Running {
            self.slots.release(entry.tool);
        }
        self.finish(call, outcome.into());
        self.settle();
        Ok(())
    }

    /// The next action, or `None` if there is nothing to do until the next input.
    ///
    /// A call takes its slot and is `running` from the moment its [`Action::Start`] is handed out.
    pub fn next_action(&mut self) -> Option<Action> {
        while let Some(action) = self.actions.pop_front() {
            // A call that became ready may have been skipped or cancelled before anyone asked.
            match action {
                Action::Ready(CallIndex(call)) if self.state(call) != Some(State::Ready) => {}
                action => return Some(action),
            }
        }
        // Starts are decided last and one by one, so that none of them is ever out of date.
        let call = self.slots.start()?;
        self.set_state(call, State::Running);
        if let Some(entry) = self.calls.get_mut(call as usize) {
            entry.started = true;
        }
        Some(Action::Start(CallIndex(call)))
    }

    /// How many calls stand where.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// The steps that inputs are made of.
impl Plan {
    pub(crate) fn next_call(&self) -> u32 {
        u32::try_from(self.calls.len()).unwrap_or(NONE)
    }

    pub(crate) fn state(&self, call: u32) -> Option<State> {
        self.calls.get(call as usize).map(|entry| entry.state)
    }

    /// The call, if it stands where the input belongs.
    pub(crate) fn in_state(
        &self,
        call: u32,
        fits: impl FnOnce(State) -> bool,
    ) -> Result<&Call, PlanError> {
        let entry = self
            .calls
            .get(call as usize)
            .ok_or(PlanError::UnknownCall)?;
        if fits(entry.state) {
            Ok(entry)
        } else {
            Err(PlanError::NotNow(entry.state))
        }
    }

    pub(crate) fn set_state(&mut self, call: u32, state: State) {
        if let Some(entry) = self.calls.get_mut(call as usize) {
            *self.counts.of(entry.state) -= 1;
            *self.counts.of(state) += 1;
            entry.state = state;
        }
    }

    /// Gives a call that has not ended its end status.
    pub(crate) fn finish(&mut self, call: u32, status: Status) {
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
        let well = self.ended_well(call);
        self.news.push_back(News::Ended {
            call,
            well,
            grounds,
        });
    }

    /// Whether those that wait for the call go on: it has ended `ok`, or with an `error` that its tool is
    /// allowed (`spec/running.md`, "Failures that are tolerated").
    pub(crate) fn ended_well(&self, call: u32) -> bool {
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

    pub(crate) fn turn_down(&mut self, call: u32, reason: RejectReason) {
        self.finish(call, Status::Rejected);
        let call = CallIndex(call);
        self.actions.push_back(Action::Reject { call, reason });
    }

    /// Skips a call because of another one that has ended.
    pub(crate) fn skip(&mut self, call: u32, link: Link, direct: u32) {
        let cause = self.calls.get(direct as usize).and_then(|c| c.because);
        let direct = CallIndex(direct);
        let because = Because {
            link,
            direct,
            root: cause.map_or(direct, |because| because.root),
        };
        self.finish(call, Status::Skipped);
        if let Some(entry) = self.calls.get_mut(call as usize) {
            entry.because = Some(because);
        }
        let call = CallIndex(call);
        self.actions.push_back(Action::Skip { call, because });
    }

    pub(crate) fn id_text(&self, name: u32) -> Arc<str> {
        self.ids.text(name).into()
    }

    /// Binds the edges that have waited for the id to the call that has just appeared.
    fn adopt(&mut self, name: u32, call: u32) -> EdgeList {
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

    /// Enters a call's dependencies, each once, bound as far as their ids have appeared.
    fn enter_edges<I>(&mut self, call: u32, dependencies: I) -> Result<(u32, u32), PlanError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let first = self.edges.len();
        let turn = last_index(&self.turns);
        let sequential = self.is_sequential(turn);
        for id in dependencies {
            let name = self.ids.number(id.as_ref());
            // The edges that were entered stay behind, in no list and no call's range.
            let name = name.filter(|_| self.edges.len() < NONE);
            let name = name.ok_or(PlanError::Full)?;
            if self.ids.mention(name, call) {
                let target = self.ids.meaning(name, call, turn);
                // In order of writing nothing later can be meant, even if it has appeared already.
                let later = sequential && target > call;
                let target = if later { NONE } else { target };
                self.edges.push(name, call, target);
            }
        }
        Ok((first, self.edges.len()))
    }

    /// Puts the call's edges where they will be told of what they wait for.
    fn wait_for(&mut self, call: u32, edges: (u32, u32)) {
        let (mut pending, mut ungrounded, mut failed) = (0, 0, NONE);
        for place in edges.0..edges.1 {
            let Some(edge) = self.edges.get(place) else {
                continue;
            };
            let well = self.ended_well(edge.target);
            if let Some(target) = self.calls.get_mut(edge.target as usize) {
                match target.state {
                    State::Ended(_) if !well && failed == NONE => failed = edge.target,
                    State::Ended(_) => {}
                    _ => {
                        pending += 1;
                        ungrounded += u32::from(!target.grounded);
                        self.edges.append(&mut target.dependents, place);
                    }
                }
            } else if let Some(wanted) = self.ids.wanted(edge.name) {
                pending += 1;
                ungrounded += 1;
                self.edges.append(wanted, place);
                self.wanted.push(edge.name);
            }
        }
        if let Some(entry) = self.calls.get_mut(call as usize) {
            entry.pending += pending;
            entry.ungrounded = ungrounded;
            entry.failed = failed;
        }
    }

    /// The ids among a call's dependencies that no call has.
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

/// The index of the last element; [`NONE`] for no element or too many.
pub(crate) fn last_index<T>(table: &[T]) -> u32 {
    let last = table.len().checked_sub(1);
    last.and_then(|last| u32::try_from(last).ok())
        .unwrap_or(NONE)
}
