//! Delivers events and results: at once, or with a log, as soon as they are logged.

use std::sync::Arc;

use plaincall_plan::{CallIndex, Status};
use tokio::sync::oneshot;

use super::{Driver, PendingDelivery};
use crate::event::{LogFailed, RunEvent};
use crate::log::{Durability, Progress, Recorder};
use crate::observers::Listener;
use crate::result::TurnResults;

/// The backlog of the log, in bytes, above which [`Turn::caught_up`](crate::Turn::caught_up) waits.
const LOG_BACKLOG: usize = 1 << 20;

impl Driver {
    /// Logs an event and sends it to the subscribers.
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

    /// Delivers something as soon as all lines so far are safe.
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

    /// Adds a subscriber, as soon as the first line is safe.
    pub(super) fn listen(&mut self, listener: Listener) {
        let recorder = self.config.recorder.as_ref();
        if recorder.is_some_and(|one| one.failed().is_none() && one.written() == 0) {
            let listener = PendingDelivery::Listener(listener);
            self.outbox.push_back((self.last_line, listener));
        } else {
            self.add_listener(listener);
        }
    }

    /// Adds a subscriber and sends it the first event of the run. If the log failed before this event was logged, the subscriber
    /// gets the failure first.
    fn add_listener(&mut self, listener: Listener) {
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
        self.update_is_observed();
    }

    fn deliver(&mut self, what: PendingDelivery) {
        match what {
            PendingDelivery::Listener(listener) => self.add_listener(listener),
            PendingDelivery::Event(event) => self.listeners.send(event),
            PendingDelivery::Results(reply, results) => {
                let _ = reply.send(results);
            }
            PendingDelivery::Result(reply, result) => {
                let _ = reply.send(*result);
            }
        }
    }

    /// Returns how durable an event must be before it is delivered: starts and results of tools that write, and ends of
    /// turns, must be synced.
    fn durability(&self, event: &RunEvent) -> Durability {
        let is_write = |call: u32| self.run_state.writes(CallIndex::new(call));
        match event {
            RunEvent::Run(_) | RunEvent::TurnEnd(_) => Durability::Synced,
            RunEvent::Start(started) if is_write(started.call) => Durability::Synced,
            RunEvent::Result(result) if is_write(result.call) => Durability::Synced,
            _ => Durability::Written,
        }
    }

    /// Handles the progress or failure of the log.
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
            Progress::Failed(failure) => {
                // The remaining deliveries are not in the log, so they come after the failure.
                let (error, at) = (Arc::clone(&failure), self.begun.elapsed());
                let failed = RunEvent::LogFailed(LogFailed { error, at });
                self.listeners.send(failed.clone());
                while let Some((_, mut what)) = self.outbox.pop_front() {
                    if let PendingDelivery::Results(_, results) = &mut what {
                        results.log_failure = Some(Arc::clone(&failure));
                    }
                    self.deliver(what);
                }
                self.apply(failed, Vec::new());
            }
        }
    }

    pub(super) fn log_failure(&self) -> Option<Arc<str>> {
        self.config.recorder.as_ref()?.failed()
    }

    /// Returns whether an event must not be logged yet, because it follows from a call with unknown outcome. When the run is
    /// resumed, the outcome may be found out.
    fn is_held_back(&self, event: &RunEvent) -> bool {
        match event {
            RunEvent::Result(result) => {
                let root = result.because.as_ref().map(|because| because.root.call);
                let own = (result.status == Status::Unknown).then_some(result.call);
                let mut causes = root.into_iter().chain(own);
                causes.any(|call| self.run_state.unresolved().contains(&call))
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

    /// Logs the events that were held back, because the conversation continues and unknown outcomes stay unknown.
    pub(super) fn write_held_back(&mut self) {
        for event in std::mem::take(&mut self.held_back) {
            self.write_down(&event);
        }
    }

    /// Sends the results of a closed turn.
    pub(super) fn send_results(&mut self, turn: usize, reply: oneshot::Sender<TurnResults>) {
        let whole = &self.config.shared.whole_results;
        let results = self.run_state.turn_results(turn, whole);
        self.send(PendingDelivery::Results(reply, results));
    }

    /// Sends the result of a submitted call that has ended, if the program waits for it.
    pub(super) fn send_result(&mut self, call: CallIndex) {
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

    /// Answers pending `CatchUp` messages, if the backlog of the log is small.
    pub(super) fn answer_catch_ups(&mut self) {
        let backlog = self.config.recorder.as_ref().map_or(0, Recorder::buffered);
        if backlog < LOG_BACKLOG {
            for reply in self.catching_up.drain(..) {
                let _ = reply.send(());
            }
        }
    }
}
