//! The trace of a run from its log: turns, replies and the outcome of each call. `plaincall show` prints it, and its
//! JSON is the data of the HTML page. Times are milliseconds since the beginning of the run.

use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use plaincall::{
    Dialect, Effect, RunEvent, Status, Stop,
    events::{Admission, Appeared, Cancel, Message, RunBegin, SubmittedArguments, Usage},
    result::Because,
};
use serde::{Serialize, Serializer};

use crate::call_table::CallTable;
use crate::critical::critical_path;
use crate::planned::Planned;
pub use crate::transcript::Segment;

use crate::transcript::{self, Delta};

/// The trace of a run.
#[derive(Debug, Default, Serialize)]
pub struct Trace {
    /// The beginning of the log.
    pub begin: Option<RunBegin>,
    /// The turns.
    pub turns: Vec<Turn>,
    /// The calls of all turns, in order of appearance.
    pub calls: Vec<Call>,
    /// When the run was resumed.
    pub resumed: Vec<u64>,
    /// The tokens of all replies whose tokens are known.
    pub usage: Option<Usage>,
    /// The time of the last event.
    pub end_ms: u64,
    /// Problems of the log itself.
    pub problems: Vec<String>,
}

/// Arguments by JSON Pointer. Serialized as a list, because a JSON object does not keep duplicate pointers and their
/// order.
type Pairs = Vec<(String, String)>;

/// A turn: one reply and its calls.
#[derive(Debug, Default, Serialize)]
pub struct Turn {
    /// The number of the turn, from 0.
    pub number: u32,
    /// When the turn began.
    pub opened_ms: u64,
    /// When the reply was complete.
    pub over_ms: Option<u64>,
    /// How the reply ended.
    pub stop: Option<Stop>,
    /// The tokens of the reply.
    pub usage: Option<Usage>,
    /// When the last call had ended.
    pub ended_ms: Option<u64>,
    /// The cancellation of all calls.
    pub cancel: Option<Cancel>,
    /// The messages before the reply, without results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// The number of the first call.
    pub first_call: u32,
    /// The reply: text and calls.
    pub segments: Vec<Segment>,
    /// Whether the calls are at their exact positions in the text, rather than where they were detected.
    pub is_exact: bool,
    /// The calls as the terminal shows them.
    #[serde(skip)]
    pub table: CallTable,
    #[serde(skip)]
    pub(crate) deltas: Vec<Delta>,
}

/// A call.
#[derive(Debug, Default, Serialize)]
pub struct Call {
    /// The number of the call in order of appearance, from 0.
    pub number: u32,
    /// The id.
    pub id: Arc<str>,
    /// The name of the tool.
    pub name: Arc<str>,
    /// The index of the turn, from 0.
    pub turn: usize,
    /// The effect of the tool.
    pub effect: Option<Effect>,
    /// The dependencies, in order.
    pub dependencies: Vec<Dependency>,
    /// The call that submitted it.
    pub parent: Option<u32>,
    /// The replies of a subagent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<SubagentReply>,
    /// Whether the last of them has not ended.
    #[serde(skip)]
    pub(crate) is_replying: bool,
    /// Whether its tool only waits for calls that it submits.
    #[serde(skip)]
    pub(crate) delegates: bool,
    /// The source of a call that was never completed, or its arguments as JSON if it was submitted.
    pub source: Option<String>,
    /// The arguments of a completed call.
    pub arguments: Option<Pairs>,
    /// Why the call needed approval: a phrase that follows "this call".
    pub held: Option<String>,
    /// The approval.
    pub admission: Option<Admission>,
    /// The arguments after an approval changed them.
    pub edited: Option<Pairs>,
    /// The attempts to run it.
    pub attempts: Vec<Attempt>,
    /// The status. None if the log does not contain it.
    #[serde(serialize_with = "status_name")]
    pub status: Option<Status>,
    /// The fate of a call of a reply that has not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<Planned>,
    /// The output.
    pub output: Option<Arc<str>>,
    /// The error.
    pub error: Option<Arc<str>>,
    /// A note of the tool or of the run.
    pub note: Option<Arc<str>>,
    /// The call whose failure skipped it.
    pub because: Option<Because>,
    /// The state of a call that has not ended.
    pub open: Option<Open>,
    /// When it began in the text.
    pub appeared_ms: u64,
    /// When its text was complete.
    pub complete_ms: Option<u64>,
    /// When it could be admitted.
    pub ready_ms: Option<u64>,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// Whether the call is on the critical path of the turn.
    pub is_critical: bool,
    /// The previous call on the critical path, whose end let this one start: a dependency, or a call that freed a slot.
    pub critical_cause: Option<u32>,
    /// The last state before the end.
    #[serde(skip)]
    pub(crate) state: CallState,
}

/// A reply in the conversation that a call runs.
#[derive(Debug, Default, Serialize)]
pub struct SubagentReply {
    /// The text.
    pub text: String,
    /// Its tokens.
    pub usage: Option<Usage>,
}

/// A dependency: an id and the call that it refers to.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// The id.
    pub id: String,
    /// The number of the call, if there is one with this id.
    pub call: Option<u32>,
}

/// An attempt to run a call.
#[derive(Debug, Default, Serialize)]
pub struct Attempt {
    /// The number of the attempt, from 1.
    pub number: u32,
    /// When it started.
    pub started_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// The error, if a retry followed.
    pub error: Option<Arc<str>>,
    /// The delay before the retry.
    pub wait_ms: Option<u64>,
    /// Whether the attempt was interrupted with the run.
    pub is_interrupted: bool,
}

/// A call without an end.
#[derive(Debug, Serialize)]
pub struct Open {
    /// Its last state.
    pub state: CallState,
    /// The effect of `--resume` on it: a phrase that follows "`--resume`".
    pub resume: &'static str,
}

/// The state of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// Its text was arriving.
    #[default]
    Writing,
    /// It waited for other calls.
    Waiting,
    /// It waited for approval.
    Ready,
    /// It waited for a slot.
    Admitted,
    /// It ran.
    Running,
    /// It waited for a retry.
    BackOff,
}

impl CallState {
    /// Returns a phrase that follows "interrupted".
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Writing => "while it was being written",
            Self::Waiting => "while it waited for other calls",
            Self::Ready => "while it waited for approval",
            Self::Admitted => "while it waited for a slot",
            Self::Running => "while it ran",
            Self::BackOff => "while it waited for a retry",
        }
    }
}

/// Returns what `--resume` does with a call without an end.
fn resume(call: &Call, is_cancelled: bool) -> &'static str {
    let (state, effect) = (call.state, call.effect);
    if call.delegates && state == CallState::Running && !is_cancelled {
        return "continues it; its calls that ended do not run again";
    }
    let is_unknown =
        state == CallState::Running && !matches!(effect, Some(Effect::Read | Effect::Idempotent));
    if is_cancelled && !is_unknown {
        return "does not start it, because all calls were cancelled; it ends as cancelled";
    }
    match (state, effect) {
        (CallState::Running, Some(Effect::Read)) => "runs it again, because its tool only reads",
        (CallState::Running, Some(Effect::Idempotent)) => {
            "runs it again, because its tool is idempotent"
        }
        (CallState::Running, _) => {
            "does not run it again automatically, because it may have completed; without an answer from you, it ends as unknown"
        }
        (CallState::Writing, _) => "runs it if the rest of its text is available",
        (CallState::Waiting, _) => "keeps waiting",
        (CallState::Ready, _) => "asks for approval",
        (CallState::Admitted, _) => "starts it",
        (CallState::BackOff, _) => "starts it again at once",
    }
}

impl Trace {
    /// Returns the trace of the events of a log, whose replies are in this dialect.
    pub fn of(events: &[RunEvent], dialect: &Dialect) -> Self {
        let mut trace = Self::default();
        // The messages since the start of the last turn.
        let mut messages = Vec::new();
        for event in events {
            trace.apply(event, &mut messages);
        }
        trace.finish(dialect);
        trace
    }

    fn apply(&mut self, event: &RunEvent, messages: &mut Vec<Message>) {
        self.end_ms = self.end_ms.max(ms(event.at()));
        match event {
            RunEvent::Turn(turn) => return self.open_turn(turn.turn, turn.at, take(messages)),
            RunEvent::Message(message) => return messages.push(message.clone()),
            RunEvent::Run(run) => {
                let mut begin = RunBegin::clone(run);
                begin.note = serde_json::Value::Null;
                self.begin = Some(begin);
                return;
            }
            RunEvent::Resumed(resumed) => {
                if resumed.call.is_none() {
                    self.resumed.push(ms(resumed.at));
                }
                return self.interrupt_attempts(resumed.call);
            }
            RunEvent::DamagedEnd(damaged) => {
                self.problems.push(format!(
                    "{} damaged bytes may be the start of a call of a tool that writes; it counts as started",
                    damaged.bytes
                ));
                return;
            }
            RunEvent::TurnEnd(end) => {
                // An abandoned turn may end after the next one has started.
                let mut turns = self.turns.iter_mut();
                if let Some(turn) = turns.find(|turn| turn.number == end.turn) {
                    turn.ended_ms = Some(ms(end.at));
                }
                return;
            }
            RunEvent::Examples(_)
            | RunEvent::Untrusted(_)
            | RunEvent::LogFailed(_)
            | RunEvent::Lagged(_) => return,
            _ => {}
        }
        // A damaged log may lack the start of a turn.
        if self.turns.is_empty() {
            self.open_turn(0, Duration::ZERO, take(messages));
        }
        let Some(turn) = self.turns.last_mut() else {
            return;
        };
        turn.table.apply_run_event(event);
        match event {
            RunEvent::Text(delta) => turn.deltas.push(Delta::Source(delta.source.clone())),
            RunEvent::Call(appeared) => {
                if appeared.submitted.is_none() {
                    turn.deltas.push(Delta::Call(Box::new(appeared.clone())));
                }
                self.add_call(appeared);
            }
            RunEvent::Cancel(cancel) if cancel.call.is_none() => {
                turn.cancel = Some(cancel.clone());
            }
            RunEvent::ReplyEnd(end) => {
                turn.over_ms = Some(ms(end.at));
                turn.stop = Some(end.stop);
                turn.usage = end.usage;
                self.count(end.usage);
            }
            event => {
                if let RunEvent::SubagentText(part) = event {
                    self.count(part.usage);
                }
                let index = event.call().map(|call| call as usize);
                if let Some(call) = index.and_then(|index| self.calls.get_mut(index)) {
                    call.apply(event);
                }
            }
        }
    }

    fn open_turn(&mut self, number: u32, opened: Duration, messages: Vec<Message>) {
        let first_call = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        self.turns.push(Turn {
            number,
            opened_ms: ms(opened),
            messages,
            first_call,
            table: CallTable::of_turn(opened, first_call),
            ..Turn::default()
        });
    }

    fn count(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().add(usage);
        }
    }

    fn add_call(&mut self, appeared: &Appeared) {
        let tools = self.begin.as_ref().map(|begin| &begin.tools);
        let tool = tools.and_then(|tools| tools.get(&*appeared.name));
        let ids = appeared.dependencies.iter().cloned();
        self.calls.push(Call {
            number: u32::try_from(self.calls.len()).unwrap_or(u32::MAX),
            id: Arc::clone(&appeared.id),
            name: Arc::clone(&appeared.name),
            turn: self.turns.len().saturating_sub(1),
            effect: tool.map(|tool| tool.effect),
            delegates: tool.is_some_and(|tool| tool.policy.delegates),
            dependencies: ids.map(|id| Dependency { id, call: None }).collect(),
            parent: appeared.parent,
            source: appeared.submitted.as_deref().map(json),
            appeared_ms: ms(appeared.at),
            ..Call::default()
        });
    }

    /// Marks the running attempts as interrupted: of one call, or of all.
    fn interrupt_attempts(&mut self, only: Option<u32>) {
        let open = self
            .calls
            .iter_mut()
            .filter(|call| call.status.is_none() && only.is_none_or(|only| only == call.number));
        for attempt in open.flat_map(|call| &mut call.attempts) {
            attempt.is_interrupted |= attempt.ended_ms.is_none();
        }
    }

    fn finish(&mut self, dialect: &Dialect) {
        self.interrupt_attempts(None);
        for turn in &mut self.turns {
            let read = transcript::read(&take(&mut turn.deltas), dialect);
            turn.segments = read.segments;
            turn.is_exact = read.is_exact;
            let first = turn.first_call as usize;
            for (number, source) in read.sources {
                if let Some(call) = self.calls.get_mut(number as usize) {
                    call.source = call.arguments.is_none().then_some(source);
                }
            }
            let mut cause = None;
            for index in critical_path(&turn.table) {
                if let Some(call) = self.calls.get_mut(first.saturating_add(index)) {
                    call.is_critical = true;
                    call.critical_cause = cause.replace(call.number);
                }
            }
        }
        for call in self.calls.iter_mut().filter(|call| call.status.is_none()) {
            let turn = self.turns.get(call.turn);
            let is_cancelled = turn.is_some_and(|turn| turn.cancel.is_some());
            call.open = Some(Open {
                state: call.state,
                resume: resume(call, is_cancelled),
            });
        }
        self.resolve_dependencies();
    }
}

impl Call {
    fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Waiting(waiting) => {
                self.complete_ms = Some(ms(waiting.at));
                self.arguments = Some(waiting.arguments.0.clone());
                self.source = None;
                self.state = CallState::Waiting;
            }
            RunEvent::Ready(ready) => {
                self.ready_ms = Some(ms(ready.at));
                self.held = ready.held.as_ref().map(ToString::to_string);
                self.state = CallState::Ready;
            }
            RunEvent::Admitted(admission) => {
                self.edited = admission.arguments.as_ref().map(|it| it.0.clone());
                let mut admission = admission.clone();
                admission.arguments = None;
                self.admission = Some(admission);
                self.state = CallState::Admitted;
            }
            RunEvent::Start(start) => {
                self.is_replying = false;
                self.attempts.push(Attempt {
                    number: start.attempt,
                    started_ms: ms(start.at),
                    ..Attempt::default()
                });
                self.state = CallState::Running;
            }
            RunEvent::SubagentText(part) => {
                if !self.is_replying {
                    self.replies.push(SubagentReply::default());
                }
                if let Some(reply) = self.replies.last_mut() {
                    reply.text.push_str(&part.text);
                    reply.usage = part.usage;
                }
                self.is_replying = part.stop.is_none();
            }
            RunEvent::BackOff(back_off) => {
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.ended_ms = Some(ms(back_off.at));
                    attempt.error = Some(Arc::clone(&back_off.error));
                    attempt.wait_ms = Some(ms(back_off.wait));
                }
                self.state = CallState::BackOff;
            }
            RunEvent::Retry(_) => {
                // A call that starts again without a failure was interrupted.
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.is_interrupted |= attempt.ended_ms.is_none();
                }
                self.state = CallState::BackOff;
            }
            RunEvent::Result(result) => {
                let ended = Some(ms(result.times.ended));
                let last = self.attempts.last_mut();
                if let Some(attempt) = last.filter(|it| it.ended_ms.is_none() && !it.is_interrupted)
                {
                    attempt.ended_ms = ended;
                }
                self.status = Some(result.status);
                self.output.clone_from(&result.output);
                self.error.clone_from(&result.error);
                self.note.clone_from(&result.note);
                self.because.clone_from(&result.because);
                self.ended_ms = ended;
            }
            _ => {}
        }
    }
}

impl Trace {
    /// Resolves dependencies (`spec/running.md`): to an earlier call of the turn, else to the latest call of an earlier
    /// turn, else to the first later call of the turn.
    pub(crate) fn resolve_dependencies(&mut self) {
        let mut calls_of: HashMap<Arc<str>, Vec<(usize, u32)>> = HashMap::new();
        for call in &self.calls {
            let calls = calls_of.entry(Arc::clone(&call.id)).or_default();
            calls.push((call.turn, call.number));
        }
        for call in &mut self.calls {
            for dependency in &mut call.dependencies {
                let is_own_id = dependency.id == *call.id;
                let calls = calls_of.get(dependency.id.as_str());
                let calls = calls.map(Vec::as_slice).unwrap_or_default();
                let in_turn = || calls.iter().filter(|(turn, _)| *turn == call.turn);
                let in_earlier_turn = || calls.iter().rfind(|(turn, _)| *turn < call.turn);
                let target = in_turn()
                    .find(|(_, number)| *number < call.number || is_own_id)
                    .or_else(in_earlier_turn)
                    .or_else(|| in_turn().next());
                dependency.call = target.map(|(_, number)| *number);
            }
        }
    }
}

fn json(arguments: &SubmittedArguments) -> String {
    let json = match arguments {
        SubmittedArguments::Json(json) => serde_json::to_string_pretty(json),
        SubmittedArguments::Texts(texts) => serde_json::to_string_pretty(texts),
        _ => return String::new(),
    };
    json.unwrap_or_default()
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[allow(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires this signature"
)]
fn status_name<S: Serializer>(status: &Option<Status>, serializer: S) -> Result<S::Ok, S::Error> {
    status.map(Status::name).serialize(serializer)
}
