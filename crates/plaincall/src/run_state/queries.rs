//! Queries of the driver, and the restoring of interrupted calls.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Arguments, Effect};
use plaincall_plan::{CallIndex, CallView, Order, State};

use super::{Call, RunState, TurnState};
use crate::context::DependencyResult;
use crate::result::{CallResult, Status, Times};
use crate::tool::Tool;
use crate::tool_policy::Dependents;

impl RunState {
    pub(crate) fn state(&self, call: CallIndex) -> Option<State> {
        self.plan.call(call).map(CallView::state)
    }

    pub(crate) fn call(&self, call: CallIndex) -> Option<&Call> {
        self.calls.get(call.index())
    }

    pub(crate) fn calls_in(&self, state: State) -> Vec<CallIndex> {
        let calls = self.plan.calls().filter(|call| call.state() == state);
        calls.map(CallView::index).collect()
    }

    pub(crate) fn tool(&self, call: CallIndex) -> Option<&Tool> {
        let tool = self.calls.get(call.index())?.tool?;
        <[Tool]>::get(&self.toolbox, tool)
    }

    /// Returns the arguments of a complete call.
    pub(crate) fn arguments(&self, call: CallIndex) -> Arc<Arguments> {
        let entry = self.calls.get(call.index());
        entry
            .and_then(|entry| entry.arguments.clone())
            .unwrap_or_default()
    }

    /// Returns the arguments to start a call with. They stay in memory only if it may start again.
    pub(crate) fn arguments_for_start(&mut self, call: CallIndex) -> Arc<Arguments> {
        let is_once = self
            .tool(call)
            .is_some_and(|tool| tool.policy.retry.is_none());
        let arguments = self.arguments(call);
        if let Some(entry) = self.calls.get_mut(call.index()).filter(|_| is_once) {
            entry.arguments = None;
        }
        arguments
    }

    pub(crate) fn dependency_results(&self, call: CallIndex) -> Vec<DependencyResult> {
        let view = self.plan.call(call);
        let dependencies = view.into_iter().flat_map(CallView::dependencies);
        let results = dependencies.filter_map(|dependency| {
            let index = dependency.call?;
            let entry = self.calls.get(index.index())?;
            let result = entry.result.as_ref()?;
            let fallback = match &self.tool(index)?.policy.dependents {
                Dependents::Fallback(text) if result.status != Status::Ok => {
                    Some(Arc::from(text.as_str()))
                }
                _ => None,
            };
            Some(DependencyResult {
                id: Arc::clone(&entry.id),
                name: Arc::clone(&entry.name),
                status: result.status,
                output: fallback
                    .or_else(|| result.output.clone())
                    .unwrap_or_default(),
                error: result.error.clone(),
            })
        });
        results.collect()
    }

    /// Returns the size of the results that a call gets from its dependencies, in bytes.
    pub(crate) fn dependency_bytes(&self, call: CallIndex) -> usize {
        let results = self.dependency_results(call);
        results.iter().map(DependencyResult::bytes).sum()
    }

    /// Counts the results that all started calls of a log got from their dependencies.
    pub(crate) fn count_restored(&mut self) {
        let calls = self.calls.iter().zip(0..);
        let started = calls.filter(|(call, _)| call.times.started.is_some());
        self.counted_dependency_bytes = started
            .map(|(_, place)| self.dependency_bytes(CallIndex::new(place)))
            .fold(0, usize::saturating_add);
    }

    /// Returns the results of a turn, in order of appearance of its calls.
    pub(crate) fn results(&self, turn: usize) -> impl Iterator<Item = &CallResult> {
        let next = self.turns.get(turn + 1);
        let end = next.map_or(self.calls.len(), |next| next.first);
        let first = self.turns.get(turn).map_or(end, |turn| turn.first);
        let calls = self.calls.get(first..end).unwrap_or_default();
        calls.iter().filter_map(|call| call.result.as_ref())
    }

    /// Returns the number of the last turn, and whether it has closed.
    pub(crate) fn last_turn(&self) -> Option<(usize, bool)> {
        let last = self.turns.last()?;
        Some((self.turns.len() - 1, last.state == TurnState::Closed))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.turns
            .last()
            .is_some_and(|turn| turn.state == TurnState::Open)
    }

    pub(crate) fn appeared(&self) -> usize {
        self.calls.len()
    }

    /// Returns the indices of the calls of replies, in order of appearance.
    pub(crate) fn written(&self) -> Vec<u32> {
        self.written.iter().map(|call| call.get()).collect()
    }

    pub(crate) fn has_unended(&self) -> bool {
        self.plan.counts().unended() > 0
    }

    /// Returns whether the call was cancelled. Its tool may still be running.
    pub(crate) fn is_cancelled(&self, call: CallIndex) -> bool {
        let entry = self.calls.get(call.index());
        call.index() < self.cancelled_before || entry.is_some_and(|call| call.cancelled.is_some())
    }

    /// Returns the submitted calls that have not ended and whose parent was running when the run was interrupted.
    pub(crate) fn children(&self) -> Vec<CallIndex> {
        self.children.values().flatten().copied().collect()
    }

    /// Returns the interrupted calls that only waited for calls that they had submitted, so they can start again. Calls in
    /// `unstarted` had not started.
    pub(crate) fn continuing(&self, unstarted: &HashSet<u32>) -> Vec<u32> {
        let mut continuing = Vec::new();
        // A parent has a smaller index.
        for call in self.calls_in(State::Running) {
            let parent = self.call(call).and_then(|entry| entry.parent);
            if self.tool(call).is_some_and(|tool| tool.policy.delegates)
                && !self.is_cancelled(call)
                && !unstarted.contains(&call.get())
                && parent.is_none_or(|parent| continuing.contains(&parent))
            {
                continuing.push(call.get());
            }
        }
        continuing
    }

    /// Returns the calls that have not ended.
    pub(crate) fn unended(&self) -> Vec<CallIndex> {
        let calls = self.calls.iter().zip(0..);
        let unended = calls.filter(|(call, _)| call.result.is_none());
        unended.map(|(_, place)| CallIndex::new(place)).collect()
    }

    /// Returns the start of the current turn, if it has not closed.
    pub(crate) fn opened(&self) -> Option<Duration> {
        let last = self.turns.last()?;
        (last.state != TurnState::Closed).then_some(last.opened)
    }

    /// Sets aside the interrupted calls of tools that write, unless they delegate. Their outcome is unknown, and they hold no slot. The tools of the
    /// calls in `unstarted` were not started, so these calls start normally.
    pub(crate) fn set_aside(&mut self, unstarted: &HashSet<u32>, at: Duration) {
        for call in self.calls_in(State::Running) {
            let writes = self
                .tool(call)
                .is_none_or(|tool| tool.spec.effect == Effect::Write && !tool.policy.delegates);
            if unstarted.contains(&call.get()) || !writes {
                continue;
            }
            if let Some(entry) = self.calls.get_mut(call.index())
                && self.plan.set_aside(call).is_ok()
            {
                entry.is_aside = true;
            }
        }
        self.run_actions(at);
    }

    /// Sets aside one interrupted call, if its tool writes. Returns whether it did.
    pub(crate) fn set_aside_one(&mut self, call: CallIndex) -> bool {
        let writes = self
            .tool(call)
            .is_none_or(|tool| tool.spec.effect == Effect::Write);
        let is_aside = writes && self.plan.set_aside(call).is_ok();
        if let Some(entry) = self.calls.get_mut(call.index()) {
            entry.is_aside |= is_aside;
        }
        is_aside
    }

    /// Returns the number of calls that something is decided about, that run, or that back off.
    pub(crate) fn active(&self) -> usize {
        let counts = self.plan.counts();
        let active = counts.ready + counts.admitted + counts.running + counts.back_off;
        usize::try_from(active).unwrap_or(usize::MAX)
    }

    /// Returns whether the call was set aside, and its outcome is not known yet.
    pub(crate) fn is_aside(&self, call: CallIndex) -> bool {
        let is_aside = self.call(call).is_some_and(|entry| entry.is_aside);
        is_aside && self.state(call) == Some(State::BackOff)
    }

    /// Returns the calls that were set aside.
    pub(crate) fn calls_aside(&self) -> HashSet<CallIndex> {
        let calls = self.calls.iter().zip(0..);
        let aside = calls.filter(|(call, _)| call.is_aside && call.result.is_none());
        aside.map(|(_, place)| CallIndex::new(place)).collect()
    }

    /// Returns whether calls written after this one continue when it ends, with any status. Then its status can no longer be
    /// changed. Written order spans turns, so they may be calls of later turns.
    pub(crate) fn is_followed(&self, call: CallIndex) -> bool {
        let Some((place, turn)) = self
            .calls
            .get(call.index())
            .filter(|entry| !entry.is_submitted)
            .and_then(|entry| Some((entry.turn, self.turns.get(entry.turn)?)))
        else {
            return false;
        };
        let Some(Order::Sequential { stop_on_error }) = turn.order else {
            return false;
        };
        let own_continue = !stop_on_error && !self.is_cancelled(call);
        if own_continue && turn.state == TurnState::Open {
            return true;
        }
        let later = self.calls.iter().skip(call.index() + 1);
        let is_open = |later: &&Call| later.result.is_none() && !later.is_submitted;
        later.filter(is_open).any(|later| {
            if later.turn == place {
                return own_continue;
            }
            let order = self.turns.get(later.turn).and_then(|turn| turn.order);
            matches!(order, Some(Order::Sequential { .. }))
        })
    }

    /// Replaces the result of a call with the one from the log.
    pub(crate) fn restore(&mut self, recorded: &CallResult) {
        let Some(entry) = self.calls.get_mut(recorded.call as usize) else {
            return;
        };
        let times = Times {
            ended: recorded.times.ended,
            ..entry.times
        };
        entry.times = times;
        entry.result = Some(CallResult {
            times,
            call_error: entry.result.take().and_then(|result| result.call_error),
            ..recorded.clone()
        });
    }
}
