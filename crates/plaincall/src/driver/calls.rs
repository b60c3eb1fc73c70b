//! The actions for one call: ask the gate, start, end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use plaincall_plan::{CallIndex, format_duration};
use tokio::task::{self, JoinError};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Done, Driver, Panicked};
use crate::attempt::{Attempt, Ended};
use crate::context::Context;
use crate::gate::Recovery;
use crate::replay::Replayed;
use crate::request::Request;

impl Driver {
    /// Continues a run whose log was replayed. The time in between does not count.
    pub(super) fn resume(&mut self, replayed: Replayed) {
        let now = Instant::now();
        self.begun = now.checked_sub(replayed.at).unwrap_or(now);
        for result in &replayed.results {
            let whole = &self.config.shared.whole_results;
            whole.keep(&result.id, result.output.as_ref());
        }
        let cancels = self.config.cancels_unfinished && self.run_state.has_unended();
        self.run_state
            .resume(replayed, cancels, self.begun.elapsed());
    }

    pub(super) fn ask(&mut self, request: Box<Request>) {
        // Without a gate, the state decides.
        if let Some(gate) = self.config.gate.clone() {
            let call = CallIndex::new(request.call);
            let deciding = async move { Done::Decided(gate.decide(&request).await) };
            self.wait_for(call, deciding, |panic| Done::Decided(Err(panic.into())));
        }
    }

    /// Asks the gate about the outcome of an interrupted call of a tool that writes.
    pub(super) fn recover(&mut self, request: Box<Request>) {
        let call = CallIndex::new(request.call);
        if let Some(gate) = self.config.gate.clone() {
            let recovering = async move { Done::Recovered(gate.recover(&request).await) };
            return self.wait_for(call, recovering, |panic| Done::Recovered(Err(panic.into())));
        }
        self.run_state
            .recover(call, Ok(Recovery::Unknown), self.begun.elapsed());
    }

    fn wait_for(
        &mut self,
        call: CallIndex,
        what: impl Future<Output = Done> + Send + 'static,
        panicked: Panicked,
    ) {
        let handle = self.tasks.spawn(what);
        self.doing.insert(handle.id(), (call, panicked));
        self.waiting.insert(call, handle);
    }

    pub(super) fn start(&mut self, call: CallIndex) {
        let dependencies = self.run_state.dependency_results(call);
        let shared = Arc::clone(&self.config.shared);
        let arguments = self.run_state.arguments_for_start(call);
        let Some((entry, tool)) = self.run_state.call(call).zip(self.run_state.tool(call)) else {
            return;
        };
        let cancellation = CancellationToken::new();
        let context = Context {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            // A child token, so that the tool cannot cancel the call itself.
            cancellation: cancellation.child_token(),
            dependencies,
            grace: tool.policy.grace,
            shared,
            observed: Arc::default(),
            idempotency_key: None,
        };
        // A tool that writes starts only when its start is logged.
        let barrier = self
            .config
            .recorder
            .as_ref()
            .filter(|_| self.run_state.writes(call));
        let barrier = barrier.map(|recorder| (recorder.barrier(), self.last_line));
        let time_limit = tool.policy.timeout;
        let attempt = Attempt {
            code: tool.code.clone(),
            arguments,
            context,
            timeout: time_limit,
            transform: self.config.transform.clone(),
            parent: self.config.parent.clone(),
            number: entry.attempts,
        };
        let token = cancellation.clone();
        let mut started = Instant::now();
        let working = async move {
            if let Some((barrier, line)) = barrier {
                tokio::select! {
                    reached = barrier.reached(line) => if let Err(error) = reached {
                        return Done::ToolEnded(Ended::not_recorded(&error));
                    },
                    () = token.cancelled() => return Done::ToolEnded(Ended::not_started()),
                    // A disk that does not respond must not block the call forever.
                    () = sleep(time_limit) => {
                        let error = format!("the disk did not respond within {}", format_duration(time_limit));
                        return Done::ToolEnded(Ended::not_recorded(&error));
                    }
                }
                started = Instant::now();
            }
            Done::ToolEnded(attempt.run(started, token).await)
        };
        let handle = self.tasks.spawn(working);
        self.doing.insert(handle.id(), (call, Done::ToolPanicked));
        self.running.insert(call, cancellation);
    }

    pub(super) fn joined(&mut self, joined: Result<(task::Id, Done), JoinError>) {
        let id = match &joined {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some((call, panicked)) = self.doing.remove(&id) else {
            return;
        };
        let is_answer = self.waiting.remove(&call).is_some();
        let now = self.begun.elapsed();
        // The runtime shuts down, which does not count as an answer. Of a call that has ended, the state ignores it.
        if is_answer && joined.as_ref().is_err_and(|error| !error.is_panic()) {
            return;
        }
        match joined.map_or_else(|error| panicked(panic_text(error)), |(_, done)| done) {
            Done::ToolEnded(ended) => self.tool_ended(call, ended),
            Done::ToolPanicked(message) => {
                let ended = self.panicked(call, message);
                self.tool_ended(call, ended);
            }
            Done::Decided(decision) => self.run_state.decide(call, decision, now),
            Done::Recovered(recovery) => self.run_state.recover(call, recovery, now),
        }
    }

    /// Returns the end of a call whose tool panicked. The message is transformed like every text of a tool. If the transform
    /// panics too, the message is lost.
    fn panicked(&self, call: CallIndex, message: String) -> Ended {
        let (Some(transform), Some(entry)) = (&self.config.transform, self.run_state.call(call))
        else {
            return Ended::panicked(&message);
        };
        let changed = catch_unwind(AssertUnwindSafe(|| transform(&entry.name, message)));
        Ended::panicked(&changed.unwrap_or_else(|_| "it panicked".to_owned()))
    }

    fn tool_ended(&mut self, call: CallIndex, ended: Ended) {
        self.running.remove(&call);
        let output = ended.output.clone();
        self.run_state.end_tool(call, ended, self.begun.elapsed());
        let entry = self.run_state.call(call);
        if let Some(entry) = entry.filter(|entry| entry.result.is_some()) {
            let whole = &self.config.shared.whole_results;
            whole.keep(&entry.id, output.as_ref());
        }
    }
}

pub(crate) fn panic_text(error: JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else {
        return "it was aborted".to_owned();
    };
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "it panicked".to_owned()
    }
}
