//! Where the calls stand: what the driver asks, and what it does to calls that a crash has cut off.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Arguments, Effect};
use plaincall_plan::{CallIndex, CallView, Order, State};

use super::{Call, RunState, Stage};
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

    /// What a complete call wants to run with.
    pub(crate) fn arguments(&self, call: CallIndex) -> Arc<Arguments> {
        let entry = self.calls.get(call.index());
        entry
            .and_then(|entry| entry.arguments.clone())
            .unwrap_or_default()
    }

    /// What a call is started with. They are kept only if it may be started again.
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

    /// How many bytes the calls that a call depends on pass on to it.
    pub(crate) fn passed_on(&self, call: CallIndex) -> usize {
        let results = self.dependency_results(call);
        results.iter().map(DependencyResult::bytes).sum()
    }

    /// How many bytes have been passed on to the calls that were started.
    pub(crate) fn passed_on_so_far(&self) -> usize {
        let calls = self.calls.iter().zip(0..);
        let started = calls.filter(|(call, _)| call.times.started.is_some());
        started
            .map(|(_, place)| self.passed_on(CallIndex::new(place)))
            .fold(0, usize::saturating_add)
    }

    /// The results of a turn, in order of appearance of its calls.
    pub(crate) fn results(&self, turn: usize) -> impl Iterator<Item = &CallResult> {
        let next = self.turns.get(turn + 1);
        let end = next.map_or(self.calls.len(), |next| next.first);
        let first = self.turns.get(turn).map_or(end, |turn| turn.first);
        let calls = self.calls.get(first..end).unwrap_or_default();
        calls.iter().filter_map(|call| call.result.as_ref())
    }

    /// The number of the last turn, and whether it has closed.
    pub(crate) fn last_turn(&self) -> Option<(usize, bool)> {
        let last = self.turns.last()?;
        Some((self.turns.len() - 1, last.stage == Stage::Closed))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.turns
            .last()
            .is_some_and(|turn| turn.stage == Stage::Open)
    }

    pub(crate) fn appeared(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn has_unended(&self) -> bool {
        self.plan.counts().unended() > 0
    }

    /// Whether the call was called off. If it has been started, its tool may take its time to end all the same.
    pub(crate) fn is_called_off(&self, call: CallIndex) -> bool {
        let entry = self.calls.get(call.index());
        call.index() < self.called_off || entry.is_some_and(|call| call.cancelled.is_some())
    }

    /// The calls that have not ended and belong to a call that was running when the run was cut off.
    pub(crate) fn children(&self) -> Vec<CallIndex> {
        self.children.values().flatten().copied().collect()
    }

    /// When the present turn was opened, if it has not closed.
    pub(crate) fn opened(&self) -> Option<Duration> {
        let last = self.turns.last()?;
        (last.stage != Stage::Closed).then_some(last.opened)
    }

    /// Lets the calls of tools that write, which a crash has cut off, wait for somebody's word without a slot. Calls
    /// that are in `fresh` are about to be started.
    pub(crate) fn set_aside(&mut self, fresh: &HashSet<u32>, at: Duration) {
        for call in self.calls_in(State::Running) {
            let effect = self.tool(call).map(|tool| tool.spec.effect);
            if fresh.contains(&call.get()) || effect.unwrap_or_default() != Effect::Write {
                continue;
            }
            if let Some(entry) = self.calls.get_mut(call.index())
                && self.plan.set_aside(call).is_ok()
            {
                entry.is_aside = true;
            }
        }
        self.act(at);
    }

    /// The calls that wait for somebody's word.
    pub(crate) fn calls_aside(&self) -> HashSet<CallIndex> {
        let calls = self.calls.iter().zip(0..);
        let aside = calls.filter(|(call, _)| call.is_aside && call.result.is_none());
        aside.map(|(_, place)| CallIndex::new(place)).collect()
    }

    /// Whether calls written after this one go on when it has ended, whatever its status: then what it ended as can not
    /// be changed any more. The order of writing counts over the ends of turns, so they may be calls of later turns.
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
        let own_go_on = !stop_on_error && !self.is_called_off(call);
        if own_go_on && turn.stage == Stage::Open {
            return true;
        }
        let later = self.calls.iter().skip(call.index() + 1);
        let is_open = |later: &&Call| later.result.is_none() && !later.is_submitted;
        later.filter(is_open).any(|later| {
            if later.turn == place {
                return own_go_on;
            }
            let order = self.turns.get(later.turn).and_then(|turn| turn.order);
            matches!(order, Some(Order::Sequential { .. }))
        })
    }

    /// Takes the words of the log for how a call ended.
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
