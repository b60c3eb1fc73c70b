//! Interrupted calls (`spec/log.md`, "Resuming a run").

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use plaincall_plan::{CallIndex, State};

use super::{Command, RunState};
use crate::attempt::Ended;
use crate::event::{Resumed, RunEvent};
use crate::replay::{Recorded, Replayed};

/// How often a call that does not write starts again after it alone was interrupted.
const RESTARTS: u32 = 5;

impl RunState {
    /// Before a replay: decisions do not follow from its inputs, because they are in the log. `recorded` are the calls that ended
    /// in it, if their tools may differ from those of the log.
    pub(crate) fn begin_replay(&mut self, recorded: HashMap<u32, Recorded>) {
        self.recorded = recorded;
        self.is_live = false;
        self.is_observed = true;
    }

    pub(crate) fn end_replay(&mut self) {
        // They are derived from the states of the calls.
        self.commands.clear();
        self.recorded = HashMap::new();
        self.restored_calls = self.calls.len();
        self.is_live = true;
    }

    /// Continues after a replay: everything that was running was interrupted. With `cancels`, calls that have not ended are
    /// cancelled.
    pub(crate) fn resume(&mut self, replayed: Replayed, cancels: bool, at: Duration) {
        let unstarted = replayed.unstarted();
        self.emit(RunEvent::Resumed(Resumed {
            call: None,
            tools: replayed.changed_tools,
            at,
        }));
        self.events.extend(replayed.pending);
        let continuing = self.continuing(&unstarted);
        let ready = self.calls_in(State::Ready);
        let reason = "the conversation was interrupted";
        if cancels && continuing.is_empty() {
            self.input(RunEvent::cancel(None, reason), Vec::new(), at);
        } else if cancels {
            self.cancel_each(self.unended(), &continuing, reason, at);
        }
        let children = self.children.values().flatten().copied().collect();
        let reason = "its parent call was interrupted";
        self.cancel_each(children, &continuing, reason, at);
        for call in ready {
            if self.state(call) == Some(State::Ready) {
                self.ask(call, at);
            }
        }
        let were_waiting = self.calls_in(State::BackOff);
        let were_running = self.set_aside(&unstarted, at);
        for call in were_running {
            if self.is_aside(call) {
                self.ask_outcome(call, at);
            } else if self.is_cancelled(call) {
                let event = self.cancelled_end(call);
                self.decided.push_back(event);
            } else if unstarted.contains(&call.get()) {
                self.start(call);
            } else {
                let event = RunEvent::Retry(self.about(call, at));
                self.decided.push_back(event);
            }
        }
        for call in were_waiting {
            if self.is_aside(call) {
                self.ask_outcome(call, at);
            }
        }
        self.settle(at);
    }

    fn cancel_each(
        &mut self,
        calls: Vec<CallIndex>,
        continuing: &[u32],
        reason: &str,
        at: Duration,
    ) {
        for call in calls.into_iter().map(CallIndex::get) {
            if !continuing.contains(&call) {
                self.input(RunEvent::cancel(Some(call), reason), Vec::new(), at);
            }
        }
    }

    fn ask_outcome(&mut self, call: CallIndex, at: Duration) {
        if let Some(request) = self.request(call) {
            self.wait_for_answer(call, at);
            self.commands.push_back(Command::Recover(request.into()));
        }
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

    /// Sets aside the interrupted calls of tools that write, unless they delegate. Their outcome is unknown, and they hold no
    /// slot. The tools of the calls in `unstarted` were not started, so these calls start normally. Returns all calls that were running.
    pub(crate) fn set_aside(&mut self, unstarted: &HashSet<u32>, at: Duration) -> Vec<CallIndex> {
        let running = self.calls_in(State::Running);
        for call in &running {
            let delegates = (self.tool(*call)).is_some_and(|tool| tool.policy.delegates);
            if !unstarted.contains(&call.get()) && !delegates {
                self.set_aside_one(*call);
            }
        }
        self.run_actions(at);
        running
    }

    /// Sets an interrupted call aside, if its tool writes.
    fn set_aside_one(&mut self, call: CallIndex) {
        let writes = self.tool(call).is_none() || self.writes(call);
        if let Some(entry) = self.calls.get_mut(call.index())
            && writes
            && self.plan.set_aside(call).is_ok()
        {
            entry.is_aside = true;
        }
    }

    /// Handles that one call was interrupted, and the others continue. A call that does not write starts again, at most five
    /// times.
    pub(crate) fn interrupt(&mut self, call: CallIndex, at: Duration) {
        if self.state(call) != Some(State::Running) {
            return;
        }
        self.emit(RunEvent::Resumed(Resumed {
            call: Some(call.get()),
            tools: BTreeMap::new(),
            at,
        }));
        self.set_aside_one(call);
        let is_aside = self.is_aside(call);
        let Some(entry) = self.calls.get_mut(call.index()) else {
            return;
        };
        entry.restarts += u32::from(!is_aside);
        let restarts = entry.restarts;
        if !self.is_live {
            // What was decided is in the log.
        } else if is_aside {
            self.ask_outcome(call, at);
        } else {
            let event = if self.is_cancelled(call) {
                self.cancelled_end(call)
            } else if restarts <= RESTARTS {
                RunEvent::Retry(self.about(call, at))
            } else {
                let error = format!(
                    "the call was interrupted {restarts} times, so it does not start again"
                );
                self.end_of(call, Ended::failed(error))
            };
            self.decided.push_back(event);
        }
        self.run_actions(at);
        self.settle(at);
    }
}
