//! Queries.

use std::collections::BTreeSet;
use std::sync::Arc;

use plaincall_plan::{CallIndex, CallView, Order, State};
use plaincall_tool::{Arguments, Effect};

use super::{Call, RunState, TurnState};
use crate::context::DependencyResult;
use crate::policy::Policy;
use crate::result::{CallResult, Status, TurnResults};
use crate::tool::Tool;
use crate::tool_policy::Dependents;
use crate::whole_results::WholeResults;

impl RunState {
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn state(&self, call: CallIndex) -> Option<State> {
        self.plan.call(call).map(CallView::state)
    }

    pub(crate) fn call(&self, call: CallIndex) -> Option<&Call> {
        self.calls.get(call.index())
    }

    pub(super) fn calls_in(&self, state: State) -> Vec<CallIndex> {
        let calls = self.plan.calls().filter(|call| call.state() == state);
        calls.map(CallView::index).collect()
    }

    pub(crate) fn tool(&self, call: CallIndex) -> Option<&Tool> {
        let tool = self.calls.get(call.index())?.tool?;
        <[Tool]>::get(&self.toolbox, tool)
    }

    pub(crate) fn writes(&self, call: CallIndex) -> bool {
        (self.tool(call)).is_some_and(|tool| tool.spec.effect == Effect::Write)
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
        let is_once = (self.tool(call)).is_some_and(|tool| tool.policy.retry.is_none());
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

    /// Returns the results of a turn, in order of appearance of its calls.
    pub(super) fn results(&self, turn: usize) -> impl Iterator<Item = &CallResult> {
        let next = self.turns.get(turn + 1);
        let end = next.map_or(self.calls.len(), |next| next.first);
        let first = self.turns.get(turn).map_or(end, |turn| turn.first);
        let calls = self.calls.get(first..end).unwrap_or_default();
        calls.iter().filter_map(|call| call.result.as_ref())
    }

    /// Returns the results of a turn for the model, without those of submitted calls.
    pub(crate) fn turn_results(&self, turn: usize, whole: &WholeResults) -> TurnResults {
        let is_submitted = |result: &&CallResult| {
            self.calls
                .get(result.call as usize)
                .is_some_and(|one| one.is_submitted)
        };
        let results = self.results(turn).filter(|result| !is_submitted(result));
        TurnResults {
            results: results.map(|result| whole.for_model(result)).collect(),
            is_last: self.finisher.is_some(),
            log_failure: self.log_failed.clone(),
        }
    }

    /// Returns the number of the last turn, and whether it has closed.
    pub(crate) fn last_turn(&self) -> Option<(usize, bool)> {
        let last = self.turns.last()?;
        Some((self.turns.len() - 1, last.state == TurnState::Closed))
    }

    pub(crate) fn is_open(&self) -> bool {
        (self.turns.last()).is_some_and(|turn| turn.state == TurnState::Open)
    }

    pub(crate) fn appeared(&self) -> usize {
        self.calls.len()
    }

    /// Returns the indices of the calls of replies, in order of appearance.
    pub(crate) fn written(&self) -> Vec<u32> {
        self.written.iter().map(|call| call.get()).collect()
    }

    /// Returns the calls that ended as unknown, and whose outcome may still be found out.
    pub(crate) fn unresolved(&self) -> &BTreeSet<u32> {
        &self.unresolved
    }

    pub(crate) fn has_unended(&self) -> bool {
        self.plan.counts().unended() > 0
    }

    /// Returns whether the call was cancelled. Its tool may still be running.
    pub(crate) fn is_cancelled(&self, call: CallIndex) -> bool {
        let entry = self.calls.get(call.index());
        call.index() < self.cancelled_before || entry.is_some_and(|call| call.cancelled.is_some())
    }

    /// Returns the calls that have not ended.
    pub(crate) fn unended(&self) -> Vec<CallIndex> {
        if !self.has_unended() {
            return Vec::new();
        }
        let calls = self.calls.iter().zip(0..);
        let unended = calls.filter(|(call, _)| call.result.is_none());
        unended.map(|(_, place)| CallIndex::new(place)).collect()
    }

    /// Returns whether the call was set aside, and its outcome is not known yet.
    pub(crate) fn is_aside(&self, call: CallIndex) -> bool {
        let is_aside = self.call(call).is_some_and(|entry| entry.is_aside);
        is_aside && self.state(call) == Some(State::BackOff)
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
}
