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

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Effect, ReplyItem, ReplyReader, Stop};
use plaincall_plan::{CallIndex, Outcome, State};
use serde::{Deserialize, Serialize};

use crate::attempt::Ended;
use crate::call_arguments::ArgumentTexts;
use crate::context::DependencyResult;
use crate::event::{Author, Resumed, RunEvent};
use crate::gate::{Decision, Recovery};
use crate::request::Request;
use crate::result::{CallResult, TurnResults};
use crate::rules::Rules;
use crate::run_state::{Approval, Command, Input, Recovered, RunState, is_for_run};
use crate::source::Source;
use crate::tool_error::BoxError;
use crate::toolbox::Toolbox;
use crate::usage::Usage;
use crate::whole_results::WholeResults;
pub use answer::Answer;
pub use settings::{DurableSettings, Unsupported};
pub use tool_runner::{CallEnd, ToolRunner};

/// How often a call that does not write starts again after it was interrupted.
const RESTARTS: u32 = 5;

/// The state of a run for an engine.
///
/// After every input, carry out the steps of [`next_step`](Self::next_step) until it returns `None`, and record the events of
/// [`take_events`](Self::take_events). Times are those since the start of the run; an earlier time than that of the input
/// before counts as that one. Inputs about calls that have ended have no effect.
#[derive(Debug)]
pub struct DurableRun {
    run_state: RunState,
    reader: ReplyReader<Arc<Toolbox>>,
    rules: Rules,
    whole_results: WholeResults,
    began_unix_ms: u64,
    at: Duration,
    /// Inputs that were decided. They are applied one by one, as a replay of the log applies them.
    decided: VecDeque<Input>,
    /// Interrupted calls whose outcome is unknown. They end last in their turn.
    unknown: Vec<(CallIndex, Option<BoxError>)>,
    /// How often each call started again after it was interrupted.
    restarts: BTreeMap<CallIndex, u32>,
    steps: VecDeque<Step>,
    events: Vec<RunEvent>,
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
    /// Stop waiting for a decision about the call with this index, or for its delay: it has ended.
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
    fn new(
        settings: &DurableSettings,
        run_state: RunState,
        reader: ReplyReader<Arc<Toolbox>>,
    ) -> Self {
        Self {
            whole_results: WholeResults::new(run_state.policy.result_limit, false),
            run_state,
            reader,
            rules: settings.rules.clone(),
            began_unix_ms: 0,
            at: Duration::ZERO,
            decided: VecDeque::new(),
            unknown: Vec::new(),
            restarts: BTreeMap::new(),
            steps: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// Records a message of the user to the model.
    pub fn message(&mut self, text: impl Into<Arc<str>>, at: Duration) {
        let (author, text) = (Author::User, text.into());
        self.apply(Input::Message { author, text }, at);
    }

    /// Runs a turn: takes the whole text of the next reply of the model, and returns its text outside calls. The turn ends
    /// with [`Step::TurnEnd`].
    pub fn turn(&mut self, reply: &str, stop: Stop, usage: Option<Usage>, at: Duration) -> String {
        self.reader.begin_reply();
        self.apply(Input::BeginTurn { calls: None }, at);
        let mut text = String::new();
        let mut for_run = |item: &ReplyItem<'_>| {
            if let ReplyItem::Text(part) = item {
                text.push_str(part);
            }
            is_for_run(item)
        };
        let items = self.reader.feed(reply.as_bytes());
        let items = items.filter(&mut for_run).map(ReplyItem::into_owned);
        let mut items: Vec<_> = items.collect();
        // The end of the reply ends its last line, and none of its calls has started.
        items.extend(self.reader.end_line());
        let mut last = self.reader.finish(stop).items;
        last.retain(for_run);
        if !reply.is_empty() {
            let source = Some(Source::Text(reply.into()));
            self.apply(Input::Text { source, items }, at);
        }
        let items = last;
        self.apply(Input::EndReply { stop, usage, items }, at);
        text
    }

    /// Answers a [`Step::Ask`].
    pub fn decide(&mut self, call: u32, decision: Result<Decision, BoxError>, at: Duration) {
        let call = CallIndex::new(call);
        if let Some(input) = self.run_state.decided(call, decision, &self.rules) {
            self.apply(input, at);
        }
    }

    /// Reports the end of a started call.
    pub fn end_call(&mut self, call: u32, end: CallEnd, at: Duration) {
        let (call, mut ended) = (CallIndex::new(call), end.0);
        let is_cancelled = self.run_state.is_cancelled(call);
        self.run_state
            .explain_cancellation(call, self.run_state.turn_timed_out, &mut ended);
        // Calls that fail together do not retry together.
        let chance = || f64::from(call.get().wrapping_mul(0x9E37_79B9)) / f64::from(u32::MAX);
        if ended.outcome == Outcome::Error
            && !is_cancelled
            && let Some(wait) = self.run_state.wait_before_retry(call, chance)
        {
            let error = ended.error.unwrap_or_default().into();
            self.apply(Input::BackOff { call, error, wait }, at);
            let (call, delay) = (call.get(), wait);
            return self.steps.push_back(Step::Wait { call, delay });
        }
        self.apply(Input::Ended { call, ended }, at);
    }

    /// Reports that a call was interrupted after its tool may have started. A tool that writes does not start again: a person
    /// is asked for the outcome ([`Step::Recover`]). Other tools start again, at most five times; then the call ends as
    /// `error`.
    pub fn interrupt(&mut self, call: u32, at: Duration) {
        let index = call;
        let call = CallIndex::new(index);
        if self.run_state.state(call) != Some(State::Running) {
            return;
        }
        self.at = self.at.max(at);
        self.events.push(RunEvent::Resumed(Resumed {
            call: Some(index),
            ..Resumed::everything(self.at)
        }));
        if self.run_state.set_aside_one(call) {
            let request = self.run_state.request(call).map(Box::new);
            self.steps.extend(request.map(Step::Recover));
            self.run_state.run_actions(self.at);
            self.carry_on();
        } else if self.run_state.is_cancelled(call) {
            let ended = self.run_state.cancelled_end(call);
            self.apply(Input::Ended { call, ended }, at);
        } else if self.may_restart(call) {
            self.apply(Input::Retry { call }, at);
        } else {
            let times = RESTARTS + 1;
            let error =
                format!("the call was interrupted {times} times, so it does not start again");
            let ended = Ended::failed(error);
            self.apply(Input::Ended { call, ended }, at);
        }
    }

    /// Counts a restart of an interrupted call, and returns whether it is within the limit.
    fn may_restart(&mut self, call: CallIndex) -> bool {
        let restarts = self.restarts.entry(call).or_default();
        *restarts += 1;
        *restarts <= RESTARTS
    }

    /// Answers a [`Step::Recover`]. After [`Recovery::Unknown`] or an error, the call ends as `unknown`.
    pub fn recover(&mut self, call: u32, recovery: Result<Recovery, BoxError>, at: Duration) {
        let call = CallIndex::new(call);
        let is_answered = self.unknown.iter().any(|(one, _)| *one == call);
        if is_answered || !self.run_state.is_aside(call) {
            return;
        }
        match self.run_state.recovered(call, recovery) {
            Recovered::Decided(input) => self.apply(input, at),
            Recovered::Unknown(error) => {
                self.at = self.at.max(at);
                self.unknown.push((call, error));
                self.carry_on();
            }
        }
    }

    /// Starts a call again after a [`Step::Wait`].
    pub fn retry(&mut self, call: u32, at: Duration) {
        let call = CallIndex::new(call);
        self.apply(Input::Retry { call }, at);
    }

    /// Cancels all calls of the turn. `reason` is the start of a sentence that continues with "before the call was started".
    pub fn cancel(&mut self, reason: &str, at: Duration) {
        let (reason, timed_out) = (reason.into(), false);
        self.apply(Input::Cancel { reason, timed_out }, at);
    }

    /// Cancels all calls, because the turn reached the [time limit](crate::Policy::turn_timeout) of the policy.
    /// No effect if it already did.
    pub fn time_out(&mut self, at: Duration) {
        if self.run_state.turn_timed_out {
            return;
        }
        let time = self.run_state.policy.turn_timeout.unwrap_or_default();
        let time = plaincall_plan::format_duration(time);
        let reason = format!("the turn exceeded its time limit of {time}").into();
        let timed_out = true;
        self.apply(Input::Cancel { reason, timed_out }, at);
    }

    /// Returns the next step.
    pub fn next_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Returns the events since the last call of this function, in order.
    pub fn take_events(&mut self) -> Vec<RunEvent> {
        std::mem::take(&mut self.events)
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
        &self.run_state.policy
    }

    /// Truncates a complete result, from an event, for the model. The results of a turn are already truncated.
    pub fn for_model(&self, result: &CallResult) -> CallResult {
        self.whole_results.for_model(result)
    }

    /// Returns the results of the last turn for the model.
    pub fn results(&self) -> TurnResults {
        let turn = self.run_state.last_turn().map_or(0, |(turn, _)| turn);
        let results = self.run_state.results(turn);
        TurnResults {
            results: results
                .map(|result| self.whole_results.for_model(result))
                .collect(),
            is_last: self.run_state.finisher.is_some(),
            log_failure: None,
        }
    }

    fn apply(&mut self, input: Input, at: Duration) {
        self.at = self.at.max(at);
        self.run_state.apply(input, self.at);
        self.carry_on();
    }

    /// Carries out the commands of the run state, and what is decided without the engine.
    fn carry_on(&mut self) {
        loop {
            self.events.append(&mut self.run_state.events);
            if let Some(command) = self.run_state.commands.pop_front() {
                self.carry_out(command);
            } else if let Some(input) = self.decided.pop_front() {
                self.run_state.apply(input, self.at);
            } else if let Some((call, error)) = self.next_unknown() {
                let ended = Ended::unknown(error.as_ref());
                self.run_state.apply(Input::Ended { call, ended }, self.at);
            } else {
                return;
            }
        }
    }

    /// Returns an interrupted call with unknown outcome, if nothing else of the turn is pending.
    fn next_unknown(&mut self) -> Option<(CallIndex, Option<BoxError>)> {
        let is_idle = self.run_state.active() == self.unknown.len() && !self.run_state.is_open();
        (is_idle && !self.unknown.is_empty()).then(|| self.unknown.remove(0))
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Ask(call) => match self.run_state.approval(call, &self.rules) {
                Some(Approval::Decided(input)) => self.decided.push_back(input),
                Some(Approval::Gate { request, must_ask }) => {
                    self.steps.push_back(Step::Ask { request, must_ask });
                }
                None => {}
            },
            Command::Start(call) => {
                let start = self.run_state.call_start(call).map(Box::new);
                self.steps.extend(start.map(Step::Start));
            }
            Command::Stop(call) => self.steps.push_back(Step::Stop(call.get())),
            Command::Close(_) => self.steps.push_back(Step::TurnEnd),
            Command::Forget(call) => self.steps.push_back(Step::Forget(call.get())),
            // No call is submitted.
            Command::Deliver(_) => {}
        }
    }
}

impl RunState {
    fn call_start(&mut self, call: CallIndex) -> Option<CallStart> {
        let dependencies = self.dependency_results(call);
        // An interrupted call that is started again needs its arguments again.
        let arguments = (&*self.arguments(call)).into();
        let (entry, tool) = self.call(call).zip(self.tool(call))?;
        Some(CallStart {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            attempt: entry.attempts,
            effect: tool.spec().effect,
            arguments,
            dependencies,
        })
    }
}
