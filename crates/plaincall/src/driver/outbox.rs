//! What is told to others, and when: at once, or with a log as soon as it is written.

use std::sync::Arc;

use plaincall_call::Effect;
use plaincall_plan::{CallIndex, Status};
use tokio::sync::oneshot;

use super::{Driver, PendingDelivery, cancel_without_log};
use crate::event::{LogFailed, RunEvent};
use crate::log::{Durability, Progress, Recorder};
use crate::observers::Listener;
use crate::result::{CallResult, TurnResults};

/// How many bytes may wait for the log before whoever feeds the run is asked to wait.
const LOG_BACKLOG: usize = 1 << 20;

impl Driver {
    /// Writes an event down and tells it to those who listen.
    pub(super) fn publish(&mut self, event: RunEvent) {
        if self.is_held_back(&event) {
            self.held_back.push(event.clone());
        } else {
            self.write_down(&event);
        }
        self.send(PendingDelivery::Event(event));
    }

    fn write_down(&mut self, event: &RunEvent) {
        let durability = self.durability(event);
        let recorder = self.config.recorder.as_mut();
        if let Some(recorder) = recorder.filter(|one| one.failed().is_none()) {
            self.last_line = recorder.record(event, durability);
        }
    }

    /// Sends something as soon as all that was recorded so far is safe.
    fn send(&mut self, what: PendingDelivery) {
        if matches!(what, PendingDelivery::Event(_)) && !self.has_listeners() {
            return;
        }
        match &self.config.recorder {
            Some(recorder)
                if recorder.failed().is_none() && recorder.written() <= self.last_line =>
            {
                self.outbox.push_back((self.last_line, what));
            }
            _ => self.deliver(what),
        }
    }

    fn has_listeners(&self) -> bool {
        let is_listener =
            |(_, what): &(u64, PendingDelivery)| matches!(what, PendingDelivery::Listener(_));
        !self.listeners.is_empty() || self.outbox.iter().any(is_listener)
    }

    /// Adds somebody who listens, as soon as the first line is safe.
    pub(super) fn listen(&mut self, listener: Listener) {
        let recorder = self.config.recorder.as_ref();
        if recorder.is_some_and(|one| one.failed().is_none() && one.written() == 0) {
            let listener = PendingDelivery::Listener(listener);
            self.outbox.push_back((self.last_line, listener));
        } else {
            self.add(listener);
        }
    }

    /// Tells one who listens how the run began. What is not in the log comes after the news that it has failed.
    fn add(&mut self, listener: Listener) {
        let begin = RunEvent::Run(Box::new((*self.config.begin).clone()));
        let at = self.begun.elapsed();
        let failed = self.log_failure();
        let failed = failed.map(|error| RunEvent::LogFailed(LogFailed { error, at }));
        let mut already = [Some(begin), failed];
        let recorder = self.config.recorder.as_ref();
        if recorder.is_some_and(|one| one.written() == 0) {
            already.reverse();
        }
        self.listeners.add(listener, already.into_iter().flatten());
        self.hear();
    }

    fn deliver(&mut self, what: PendingDelivery) {
        match what {
            PendingDelivery::Listener(listener) => self.add(listener),
            PendingDelivery::Event(event) => self.listeners.send(event),
            PendingDelivery::Results(reply, results) => {
                let _ = reply.send(results);
            }
            PendingDelivery::Result(reply, result) => {
                let _ = reply.send(*result);
            }
        }
    }

    /// What must be on the disk before anybody hears of it: what a tool may have changed, and the end of a turn.
    fn durability(&self, event: &RunEvent) -> Durability {
        let is_write = |call: u32| {
            let tool = self.run_state.tool(CallIndex::new(call));
            tool.is_some_and(|tool| tool.spec.effect == Effect::Write)
        };
        match event {
            RunEvent::Run(_) | RunEvent::TurnEnd(_) => Durability::Synced,
            RunEvent::Start(started) if is_write(started.call) => Durability::Synced,
            RunEvent::Result(result) if is_write(result.call) => Durability::Synced,
            _ => Durability::Written,
        }
    }

    /// The log has come further, or has failed.
    pub(super) fn written(&mut self, progress: Progress) {
        match progress {
            Progress::Safe(below) => {
                while let Some((line, _)) = self.outbox.front()
                    && *line < below
                    && let Some((_, what)) = self.outbox.pop_front()
                {
                    self.deliver(what);
                }
            }
            Progress::Failed(error) => {
                // What comes after it is not in the log.
                let at = self.begun.elapsed();
                let failed = LogFailed {
                    error: Arc::clone(&error),
                    at,
                };
                self.listeners.send(RunEvent::LogFailed(failed));
                while let Some((_, mut what)) = self.outbox.pop_front() {
                    if let PendingDelivery::Results(_, results) = &mut what {
                        results.log_failure = Some(Arc::clone(&error));
                    }
                    self.deliver(what);
                }
                self.give(cancel_without_log(&error));
            }
        }
    }

    pub(super) fn log_failure(&self) -> Option<Arc<str>> {
        self.config.recorder.as_ref()?.failed()
    }

    /// Whether an event is not to be written down yet: nobody knows what became of a call, and somebody may say so when
    /// the run is taken up once more.
    fn is_held_back(&self, event: &RunEvent) -> bool {
        if self.unsettled.is_empty() {
            return false;
        }
        match event {
            RunEvent::Result(result) => {
                let because = result.because.as_ref();
                let hangs_on_it =
                    because.is_some_and(|one| self.unsettled.contains(&one.root.call));
                hangs_on_it
                    || (result.status == Status::Unknown && self.unsettled.contains(&result.call))
            }
            RunEvent::TurnEnd(end) => {
                let turn_of = |event: &RunEvent| {
                    let call = self.run_state.call(CallIndex::new(event.call()?))?;
                    u32::try_from(call.turn).ok()
                };
                self.held_back
                    .iter()
                    .any(|event| turn_of(event) == Some(end.turn))
            }
            _ => false,
        }
    }

    /// The conversation goes on; what nobody knew stays unknown.
    pub(super) fn write_what_was_held_back(&mut self) {
        self.unsettled.clear();
        for event in std::mem::take(&mut self.held_back) {
            self.write_down(&event);
        }
    }

    /// Hands out the results of a turn that has closed.
    pub(super) fn hand_out(&mut self, turn: usize, reply: oneshot::Sender<TurnResults>) {
        let whole = &self.config.shared.whole_results;
        let results = TurnResults {
            results: self
                .run_state
                .results(turn)
                .filter(|result| !self.is_submitted(result))
                .map(|result| whole.for_model(result))
                .collect(),
            is_last: self.run_state.finisher.is_some(),
            log_failure: self.log_failure(),
        };
        self.send(PendingDelivery::Results(reply, results));
    }

    fn is_submitted(&self, result: &CallResult) -> bool {
        let entry = self.run_state.call(CallIndex::new(result.call));
        entry.is_some_and(|entry| entry.is_submitted)
    }

    /// Hands out the result of a submitted call that has ended, if somebody waits for it.
    pub(super) fn hand_out_one(&mut self, call: CallIndex) {
        let Some(reply) = self.submitters.remove(&call) else {
            return;
        };
        let is_child = (self.run_state.call(call)).is_some_and(|entry| entry.parent.is_some());
        if let Some(mut result) = self.run_state.take_result(call) {
            if !is_child {
                result = self.config.shared.whole_results.for_model(&result);
            }
            self.send(PendingDelivery::Result(reply, Box::new(result)));
        }
    }

    /// Answers those who wait until little waits for the log.
    pub(super) fn let_catch_up(&mut self) {
        let backlog = self.config.recorder.as_ref().map_or(0, Recorder::buffered);
        if backlog < LOG_BACKLOG {
            for reply in self.catching_up.drain(..) {
                let _ = reply.send(());
            }
        }
    }
}
