//! Runs for engines that journal their inputs, such as Restate.
//!
//! A [`Run`](crate::Run) has tasks and a log on one machine. A [`DurableRun`] has neither, and no clock: it takes inputs, each
//! with its time, and returns [`Step`]s and events. The same inputs in the same order give the same steps and events, so an
//! engine journals the inputs, and replays them on another machine after a crash. A [`ToolRunner`] runs the tool of a call,
//! on any machine. `spec/running.md` applies as it does to a run, and the events are those of its log.
//!
//! Each tool runs on its own, so tools that submit calls, `read_result` and `{directory:run}` are not supported.

mod answer;
mod settings;
mod tool_runner;

use std::sync::Arc;
use std::time::Duration;

use plaincall_plan::{CallIndex, State};
use plaincall_prompt::few_shot::ShownCall;
use plaincall_reply::{ReplyItem, ReplyReader, Stop, Untrusted};
use plaincall_tool::Effect;
use serde::{Deserialize, Serialize};

use crate::call_arguments::ArgumentTexts;
use crate::context::DependencyResult;
use crate::event::{Author, Delta, Message, RunEvent, ShownExamples, TurnBegin};
use crate::gate::{Decision, Recovery};
use crate::received::Received;
use crate::request::Request;
use crate::result::TurnResults;
use crate::run_state::{Command, RunState, is_for_run};
use crate::source::Source;
use crate::tool_error::BoxError;
use crate::toolbox::Toolbox;
use crate::usage::Usage;
pub use answer::Answer;
pub use settings::{DurableSettings, Unsupported};
pub use tool_runner::{CallEnd, ToolRunner};

/// The state of a run for an engine.
///
/// After every input, carry out the steps of [`next_step`](Self::next_step) until it returns `None`, and record the events of
/// [`take_events`](Self::take_events). Times are those since the start of the run; an earlier time than that of the input
/// before counts as that one. Inputs about calls that have ended have no effect.
#[derive(Debug)]
pub struct DurableRun {
    run_state: RunState,
    reader: ReplyReader<Arc<Toolbox>>,
    received: Received,
    began_unix_ms: u64,
    at: Duration,
}

/// The next task of the engine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Decide whether the call may run, or ask a person, then call [`DurableRun::decide`].
    Ask {
        /// The call.
        request: Box<Request>,
        /// Whether a rule requires that a person decides.
        must_ask: bool,
    },
    /// Run the tool with a [`ToolRunner`], then call [`DurableRun::end_call`]; or [`DurableRun::interrupt`] if it may have
    /// started and its end is lost.
    Start(Box<CallStart>),
    /// Stop the tool of the running call with this index. Its end still follows.
    Stop(u32),
    /// Call [`DurableRun::retry`] after a delay.
    Wait {
        /// The index of the call.
        call: u32,
        /// The delay.
        delay: Duration,
    },
    /// Stop waiting for an answer about the call with this index, or for its delay: it has ended.
    Forget(u32),
    /// Ask a person about the outcome of the interrupted call, then call [`DurableRun::recover`].
    Recover(Box<Request>),
    /// The turn has ended; [`DurableRun::results`] returns its results.
    TurnEnd,
}

/// A call to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallStart {
    /// The index of the call in order of appearance, from 0, unique in the run.
    pub call: u32,
    /// Its id.
    pub id: Arc<str>,
    /// The name of its tool.
    pub name: Arc<str>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The effect of the tool.
    pub effect: Effect,
    /// The arguments.
    pub arguments: ArgumentTexts,
    /// The results of its dependencies.
    pub dependencies: Vec<DependencyResult>,
}

impl DurableRun {
    /// Records an untrusted text that the model receives. See [`Run::observe_untrusted`](crate::Run::observe_untrusted).
    pub fn observe_untrusted(&mut self, name: &str, text: &Untrusted<'_>, at: Duration) {
        if let Some(received) = self.received.untrusted(name, text) {
            self.apply(received, at);
        }
    }

    /// Records the calls of examples. See [`Run::observe_examples`](crate::Run::observe_examples).
    pub fn observe_examples(&mut self, calls: Arc<[ShownCall]>, at: Duration) {
        self.apply(RunEvent::Examples(ShownExamples { calls, at }), at);
    }

    /// Records a message to the model. One of the user continues a run that a tool has finished.
    pub fn message(&mut self, author: Author, text: impl Into<Arc<str>>, at: Duration) {
        let text = text.into();
        self.apply(RunEvent::Message(Message { author, text, at }), at);
    }

    /// Runs a turn: takes the whole text of the next reply of the model, and returns what is in it. The turn ends with
    /// [`Step::TurnEnd`]. `calls` is the number of calls that it may have.
    pub fn turn(
        &mut self,
        reply: &str,
        stop: Stop,
        usage: Option<Usage>,
        calls: Option<u32>,
        at: Duration,
    ) -> Vec<ReplyItem<'static>> {
        self.reader.begin_reply();
        let turn = 0;
        self.apply(RunEvent::Turn(TurnBegin { turn, calls, at }), at);
        let mut all: Vec<_> = (self.reader.feed(reply.as_bytes()))
            .map(ReplyItem::into_owned)
            .collect();
        // The end of the reply ends its last line, and none of its calls has started.
        all.extend(self.reader.end_line());
        let for_run = |items: &[ReplyItem<'static>]| {
            let items = items.iter().filter(|item| is_for_run(item));
            items.cloned().collect()
        };
        let items = for_run(&all);
        let last = self.reader.finish(stop).items;
        if !reply.is_empty() {
            let source = Source::Text(reply.into());
            let delta = RunEvent::Text(Delta { source, at });
            self.run_state.apply(delta, items, self.at);
        }
        (self.run_state).apply(RunEvent::reply_end(stop, usage), for_run(&last), self.at);
        all.extend(last);
        all
    }

    /// Returns the index in the run of a call, given its index among those of replies.
    pub fn call_of(&self, item_index: usize) -> Option<u32> {
        self.run_state.call_of(item_index).map(CallIndex::get)
    }

    /// Answers a [`Step::Ask`].
    pub fn decide(&mut self, call: u32, decision: Result<Decision, BoxError>, at: Duration) {
        let at = self.pass(at);
        self.run_state.decide(CallIndex::new(call), decision, at);
    }

    /// Reports the end of a started call.
    pub fn end_call(&mut self, call: u32, end: CallEnd, at: Duration) {
        let at = self.pass(at);
        self.run_state.end_tool(CallIndex::new(call), end.0, at);
    }

    /// Reports that a call was interrupted after its tool may have started. A tool that writes does not start again: a person
    /// is asked for the outcome ([`Step::Recover`]). Other tools start again, at most five times; then the call ends as
    /// `error`.
    pub fn interrupt(&mut self, call: u32, at: Duration) {
        let at = self.pass(at);
        self.run_state.interrupt(CallIndex::new(call), at);
    }

    /// Answers a [`Step::Recover`]. After [`Recovery::Unknown`] or an error, the call ends as `unknown`.
    pub fn recover(&mut self, call: u32, recovery: Result<Recovery, BoxError>, at: Duration) {
        let at = self.pass(at);
        self.run_state.recover(CallIndex::new(call), recovery, at);
    }

    /// Starts a call again after a [`Step::Wait`].
    pub fn retry(&mut self, call: u32, at: Duration) {
        let at = self.pass(at);
        self.run_state.retry(CallIndex::new(call), at);
    }

    /// Cancels all calls of the turn. `reason` is the start of a sentence that continues with "before the call was started".
    /// The turn stays open until each [`Step::Recover`] is answered.
    pub fn cancel(&mut self, reason: &str, at: Duration) {
        self.apply(RunEvent::cancel(None, reason), at);
    }

    /// Cancels all calls, because the turn reached the [time limit](crate::Policy::turn_timeout) of the policy.
    /// No effect if it already did, or is over. The turn stays open until each [`Step::Recover`] is answered.
    pub fn time_out(&mut self, at: Duration) {
        let at = self.pass(at);
        self.run_state.time_out(at);
    }

    /// Returns the next step.
    pub fn next_step(&mut self) -> Option<Step> {
        loop {
            let step = match self.run_state.commands.pop_front()? {
                Command::Ask { request, must_ask } => Step::Ask { request, must_ask },
                Command::Start(call) => match self.call_start(call) {
                    Some(start) => Step::Start(start.into()),
                    None => continue,
                },
                Command::Stop(call) => Step::Stop(call.get()),
                Command::Wait(call, delay) => {
                    let call = call.get();
                    Step::Wait { call, delay }
                }
                Command::Recover(request) => Step::Recover(request),
                Command::Forget(call) => Step::Forget(call.get()),
                Command::Close(_) => Step::TurnEnd,
                // No call is submitted.
                Command::Deliver(_) => continue,
            };
            return Some(step);
        }
    }

    fn call_start(&self, call: CallIndex) -> Option<CallStart> {
        let state = &self.run_state;
        let (entry, tool) = state.call(call).zip(state.tool(call))?;
        (state.state(call) == Some(State::Running)).then(|| CallStart {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            attempt: entry.attempts,
            effect: tool.spec().effect,
            // An interrupted call that is started again needs them again, so they stay in the state.
            arguments: (&*state.arguments(call)).into(),
            dependencies: state.dependency_results(call),
        })
    }

    /// Returns the events since the last call of this function, in order.
    pub fn take_events(&mut self) -> Vec<RunEvent> {
        std::mem::take(&mut self.run_state.events)
    }

    /// Returns the time of the last input.
    pub fn at(&self) -> Duration {
        self.at
    }

    /// Returns the time since the start of the run at a time in milliseconds since 1970 (UTC).
    pub fn since_start(&self, unix_ms: u64) -> Duration {
        Duration::from_millis(unix_ms.saturating_sub(self.began_unix_ms))
    }

    /// Returns the policy of the run.
    pub fn policy(&self) -> &crate::Policy {
        self.run_state.policy()
    }

    /// Returns the untrusted texts and results that the model has received.
    pub fn received(&self) -> &Received {
        &self.received
    }

    /// Returns the results of the last turn for the model.
    pub fn results(&self) -> TurnResults {
        let turn = self.run_state.last_turn().map_or(0, |(turn, _)| turn);
        self.run_state
            .turn_results(turn, &self.received.whole_results)
    }

    fn apply(&mut self, event: RunEvent, at: Duration) {
        let at = self.pass(at);
        self.run_state.apply(event, Vec::new(), at);
    }

    /// Lets time pass until an input.
    fn pass(&mut self, at: Duration) -> Duration {
        self.at = self.at.max(at);
        self.at
    }
}
