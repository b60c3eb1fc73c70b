//! The calls of a conversation: what happened to them, and what is to be done next. No clock, no tasks, no I/O.
//!
//! It takes [`Input`]s one after another. Each changes the plan; what follows from it at once comes out as events, for
//! those who listen and for the log, and as [`Command`]s, for the driver. Nothing else changes it. So the inputs of a
//! log, given again in their order, bring it back to where it was (`spec/log.md`, "Resuming a run").

mod endings;
mod input;
mod queries;
mod untrusted_texts;

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{
    Arguments, Bound, CallError, Effect, ReplyItem, Stop, SuspectMarker, ToolLookup as _, Untrusted,
};
use plaincall_plan::{Action, CallIndex, Limits, Order, Plan, Reply, State, ToolIndex};
use plaincall_syntax::Syntax;

use crate::call_arguments::SubmittedArguments;
use crate::event::{
    Admission, AdmittedBy, Appeared, Author, BackOff, CallRef, Completed, Delta, Message, ReplyEnd,
    RunEvent, Started, TurnBegin,
};
use crate::held::HeldReason;
use crate::policy::{self, Policy, Writes};
use crate::result::{CallResult, Status, Times};
use crate::tool_policy::Dependents;
use crate::toolbox::Toolbox;
pub(crate) use input::{Input, is_for_run};
pub(crate) use untrusted_texts::UntrustedTexts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Find out whether the call may run.
    Ask(CallIndex),
    Start(CallIndex),
    Stop(CallIndex),
    /// Nobody has to decide about it any more, and it will not be tried again.
    Forget(CallIndex),
    Close(usize),
    /// Hand out the result of this call, which was submitted.
    Deliver(CallIndex),
}

#[derive(Debug)]
pub(crate) struct RunState {
    plan: Plan,
    toolbox: Arc<Toolbox>,
    pub(crate) policy: Policy,
    /// The tools' numbers in the plan, in the order of the toolbox.
    numbers: Vec<ToolIndex>,
    calls: Vec<Call>,
    /// The calls of replies, in order of appearance.
    written: Vec<CallIndex>,
    /// The calls that tools of others have submitted, by those.
    children: BTreeMap<CallIndex, Vec<CallIndex>>,
    turns: Vec<Turn>,
    /// `None` if echoes are nothing special.
    untrusted: Option<UntrustedTexts>,
    /// Why the present turn was called off, perhaps before its first call.
    cancelled: Option<Arc<str>>,
    /// Whether the last cancellation came because the time of the turn was over.
    pub(crate) is_overtime: bool,
    /// The calls before this one were there at the last cancellation.
    called_off: usize,
    pub(crate) finisher: Option<CallIndex>,
    pub(crate) is_heard: bool,
    pub(crate) events: Vec<RunEvent>,
    pub(crate) commands: VecDeque<Command>,
}

#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    dependencies: Arc<[String]>,
    pub(crate) turn: usize,
    /// Its place in the toolbox, once it is complete.
    tool: Option<usize>,
    /// Set from the end of its text until it is started for the last time, so that they do not stay in memory.
    arguments: Option<Arc<Arguments>>,
    /// Why only the gate can let it run.
    pub(crate) held: Option<HeldReason>,
    times: Times,
    pub(crate) attempts: u32,
    note: Option<Arc<str>>,
    error: Option<Arc<CallError>>,
    /// What its tool has read from outside, until it has its result.
    untrusted: Option<Arc<Untrusted<'static>>>,
    /// When its wait is over, if it backs off.
    pub(crate) retry_at: Duration,
    /// A crash has cut it off, and it waits for somebody's word.
    is_aside: bool,
    /// No reply holds it.
    pub(crate) is_submitted: bool,
    /// The call whose tool has submitted it.
    pub(crate) parent: Option<u32>,
    /// Why it alone was called off.
    pub(crate) cancelled: Option<Arc<str>>,
    pub(crate) result: Option<CallResult>,
}

#[derive(Debug)]
struct Turn {
    first: usize,
    unended: usize,
    stage: Stage,
    opened: Duration,
    /// Known from its first call on.
    order: Option<Order>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Calls may still appear.
    Open,
    /// The reply is over; calls may still run.
    Over,
    /// All its calls have ended.
    Closed,
}

fn in_plan(order: policy::Order) -> Order {
    match order {
        policy::Order::Graph => Order::Graph,
        policy::Order::Sequential | policy::Order::StopOnError => Order::Sequential {
            stop_on_error: order == policy::Order::StopOnError,
        },
    }
}

/// The id of a submitted call. No call can name it as a dependency.
pub(crate) fn submitted_id(call: u32) -> String {
    format!("submitted_{call}")
}

impl RunState {
    pub(crate) fn new(
        toolbox: Arc<Toolbox>,
        policy: Policy,
        untrusted: Option<UntrustedTexts>,
    ) -> Self {
        let mut plan = Plan::new(Limits {
            concurrent: NonZeroU32::new(policy.concurrent),
            calls_per_turn: policy.calls_per_turn,
        });
        let numbers = toolbox
            .iter()
            .map(|tool| {
                plan.add_tool(plaincall_plan::Tool {
                    max_concurrent: tool.policy.max_concurrent,
                    exclusive: tool.policy.exclusive,
                    read: tool.spec.effect == Effect::Read,
                    deferred: tool.spec.effect == Effect::Write
                        && policy.writes == Writes::AtEndOfTurn,
                    tolerated: tool.policy.dependents != Dependents::Skip,
                })
            })
            .collect();
        Self {
            plan,
            toolbox,
            policy,
            numbers,
            calls: Vec::new(),
            written: Vec::new(),
            children: BTreeMap::new(),
            turns: Vec::new(),
            untrusted,
            cancelled: None,
            is_overtime: false,
            called_off: 0,
            finisher: None,
            is_heard: false,
            events: Vec::new(),
            commands: VecDeque::new(),
        }
    }

    /// Takes what happened, `at` so long after the beginning of the run.
    pub(crate) fn take(&mut self, input: Input, at: Duration) {
        // The plan refuses what comes too late, for instance the end of a call that was called off; that is right.
        match input {
            Input::Untrusted { name, text } => self.hear(name, text, at),
            Input::Message { author, text } => {
                if author == Author::User {
                    // What was finished was the work on an earlier question.
                    self.finisher = None;
                }
                self.tell(|| RunEvent::Message(Message { author, text, at }));
            }
            Input::Open { calls } => self.open(calls, at),
            Input::Text { source, read } => {
                if let Some(source) = source {
                    self.tell(|| RunEvent::Text(Delta { source, at }));
                }
                self.read(read, at);
            }
            Input::Over { stop, read } => self.over(stop, read, at),
            Input::Submit {
                name,
                arguments,
                parent,
            } => self.submit(&name, arguments, parent, at),
            Input::Admit {
                call,
                by,
                always,
                arguments,
            } => self.admit(call, by, always, arguments, at),
            Input::Deny { call, reason } => {
                let _ = self.plan.deny(call, reason);
            }
            Input::Ended { call, ended } => self.ended(call, ended, at),
            Input::BackOff { call, error, wait } => self.back_off(call, error, wait, at),
            Input::Retry { call } => {
                // A call that a crash has cut off still holds its slot.
                if self.state(call) == Some(State::Running) {
                    let _ = self.plan.back_off(call);
                }
                if self.plan.retry(call).is_ok() {
                    self.tell_of(call, at, RunEvent::Retry);
                }
            }
            Input::Cancel { reason, timed_out } => self.cancel(reason, timed_out, at),
            Input::CancelCall { call, reason } => self.cancel_call(call, reason, at),
        }
        self.act(at);
    }

    fn open(&mut self, calls: Option<u32>, at: Duration) {
        self.is_overtime = false;
        if let Some(turn) = self.turns.last()
            && turn.stage == Stage::Open
        {
            // A turn that was forgotten instead of dropped.
            self.cancel("the turn was abandoned".into(), false, at);
            self.act(at);
            self.over(Stop::Broken, Vec::new(), at);
            self.act(at);
        }
        self.hear_results();
        self.cancelled = self.finisher.map(|call| {
            let name = self.calls.get(call.index()).map(|call| &*call.name);
            format!(
                "the run had already finished with a call of `{}`",
                name.unwrap_or_default()
            )
            .into()
        });
        let turn = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        self.turns.push(Turn {
            first: self.calls.len(),
            unended: 0,
            stage: Stage::Open,
            opened: at,
            order: None,
        });
        let limits = [self.policy.calls_per_turn, calls];
        let most = limits.into_iter().flatten().min();
        self.plan.limit_calls_per_turn(most);
        let _ = self.plan.begin_turn(Order::Graph);
        if self.cancelled.is_some() {
            self.plan.cancel_all();
        }
        self.tell(|| RunEvent::Turn(TurnBegin { turn, calls, at }));
    }

    fn begin(&mut self, order: Order) {
        if let Some(turn) = self.turns.last_mut().filter(|turn| turn.order.is_none()) {
            turn.order = Some(order);
            self.plan.order_turn(order);
        }
    }

    fn read(&mut self, read: Vec<ReplyItem<'static>>, at: Duration) {
        for item in read {
            match item {
                ReplyItem::CallStart(started) => {
                    self.begin(in_plan(match started.syntax {
                        Syntax::Block => self.policy.block_order,
                        Syntax::Emoji => self.policy.emoji_order,
                    }));
                    let id = started.id.into();
                    self.appear(id, started.name.into(), started.dependencies.into(), at);
                }
                ReplyItem::Call { call, bound } => {
                    let index = self.written(call.index);
                    match bound {
                        Ok(Bound {
                            tool,
                            arguments,
                            held,
                        }) => {
                            let echo = self.echo_of(|guard| guard.echo_of(&call));
                            self.complete(index, tool, &arguments, echo, held, at);
                        }
                        Err(error) => {
                            let mention = self.mention_of(index).map(|text| text.not_repaired());
                            self.turn_down(index, error.into(), mention);
                        }
                    }
                }
                ReplyItem::MaybeReasoning { from, error } => {
                    let error = Arc::new(error);
                    // From the last to the first, so that none is skipped because of another.
                    for place in (from..self.written.len()).rev() {
                        self.turn_down(self.written(place), Arc::clone(&error), None);
                    }
                }
                _ => {}
            }
            self.act(at);
        }
    }

    fn appear(&mut self, id: Arc<str>, name: Arc<str>, dependencies: Arc<[String]>, at: Duration) {
        if let Ok(call) = self.plan.declare(&id) {
            self.written.push(call);
            self.add(Appeared {
                call: call.get(),
                id,
                name,
                dependencies,
                submitted: None,
                parent: None,
                at,
            });
        }
    }

    /// Rejects a call for what was written, in other words than those of the error if there are any.
    fn turn_down(&mut self, call: CallIndex, error: Arc<CallError>, words: Option<String>) {
        let words = words.unwrap_or_else(|| error.to_string());
        if let Some(entry) = self.calls.get_mut(call.index()) {
            entry.error = Some(error);
        }
        let _ = self.plan.reject(call, words);
    }

    /// The call at this place of the replies.
    fn written(&self, place: usize) -> CallIndex {
        let none = CallIndex::new(u32::MAX);
        self.written.get(place).copied().unwrap_or(none)
    }

    fn submit(
        &mut self,
        name: &Arc<str>,
        arguments: Arc<SubmittedArguments>,
        parent: Option<u32>,
        at: Duration,
    ) {
        let Ok(call) = self.plan.submit() else {
            return;
        };
        let bound = match self.toolbox.find(name) {
            None => Err(self.toolbox.unknown(name)),
            Some((place, spec)) => {
                let bound = arguments.bind(spec, &self.policy.limits);
                bound.map(|arguments| (place, Arc::new(arguments)))
            }
        };
        let is_orphan =
            parent.is_some_and(|one| self.state(CallIndex::new(one)) != Some(State::Running));
        self.add(Appeared {
            call: call.get(),
            id: submitted_id(call.get()).into(),
            name: Arc::clone(name),
            dependencies: Arc::default(),
            submitted: Some(arguments),
            parent,
            at,
        });
        if let Some(parent) = parent.filter(|_| !is_orphan) {
            let children = self.children.entry(CallIndex::new(parent));
            children.or_default().push(call);
        }
        match bound {
            _ if is_orphan => {
                let reason = "its parent call is not running";
                let _ = self.plan.reject(call, reason);
            }
            Ok((tool, arguments)) => {
                let echo = self.echo_of(|guard| guard.echo_of_arguments(name, &arguments));
                self.complete(call, tool, &arguments, echo, None, at);
            }
            Err(reason) => {
                let _ = self.plan.reject(call, reason);
            }
        }
    }

    fn add(&mut self, appeared: Appeared) {
        if let Some(turn) = self.turns.last_mut() {
            turn.unended += 1;
        }
        let at = appeared.at;
        self.tell(|| RunEvent::Call(appeared.clone()));
        self.calls.push(Call {
            id: appeared.id,
            name: appeared.name,
            dependencies: appeared.dependencies,
            is_submitted: appeared.submitted.is_some(),
            parent: appeared.parent,
            turn: self.turns.len().saturating_sub(1),
            times: Times {
                appeared: at,
                ..Times::default()
            },
            ..Call::default()
        });
    }

    fn complete(
        &mut self,
        call: CallIndex,
        tool: usize,
        arguments: &Arc<Arguments>,
        echo: Option<HeldReason>,
        suspect: Option<SuspectMarker>,
        at: Duration,
    ) {
        let held = self.held(call, echo, suspect);
        let entry = self.calls.get_mut(call.index());
        let Some((entry, number)) = entry.zip(self.numbers.get(tool)) else {
            return;
        };
        let ids = &*entry.dependencies;
        // One that has ended already, for instance over the limit of calls, keeps no arguments in memory.
        if self.plan.complete(call, *number, ids).is_err() {
            return;
        }
        entry.times.complete = Some(at);
        entry.tool = Some(tool);
        entry.arguments = Some(Arc::clone(arguments));
        entry.held = held;
        let arguments = (&**arguments).into();
        self.tell_of(call, at, |CallRef { call, id, name, at }| {
            RunEvent::Waiting(Completed {
                call,
                id,
                name,
                arguments,
                at,
            })
        });
    }

    fn over(&mut self, stop: Stop, read: Vec<ReplyItem<'static>>, at: Duration) {
        let number = self.turns.len().saturating_sub(1);
        if self
            .turns
            .last()
            .is_none_or(|turn| turn.stage != Stage::Open)
        {
            return;
        }
        self.tell(|| RunEvent::ReplyEnd(ReplyEnd { stop, at }));
        self.read(read, at);
        self.begin(Order::Graph);
        let reply = match stop {
            Stop::Natural | Stop::EndOfFile => Reply::Whole,
            Stop::Length | Stop::Broken => Reply::Cut,
        };
        let _ = self.plan.end_turn(reply);
        if let Some(turn) = self.turns.last_mut() {
            turn.stage = Stage::Over;
        }
        self.act(at);
        self.close_turn(number, at);
    }

    fn admit(
        &mut self,
        call: CallIndex,
        by: AdmittedBy,
        always: bool,
        arguments: Option<Arc<Arguments>>,
        at: Duration,
    ) {
        // Whatever the gate has not decided itself is no decision about a held call.
        if by != AdmittedBy::Gate && self.call(call).is_some_and(|call| call.held.is_some()) {
            return;
        }
        // A call that was called off meanwhile needs no decision any more.
        if self.plan.admit(call).is_err() {
            return;
        }
        let texts = arguments.as_deref().map(Into::into);
        if let Some(arguments) = arguments
            && let Some(entry) = self.calls.get_mut(call.index())
        {
            let note = format!(
                "a user edited the arguments; the call ran with {}",
                arguments.to_value()
            );
            entry.note = Some(note.into());
            entry.arguments = Some(arguments);
        }
        self.tell_of(call, at, |CallRef { call, id, name, at }| {
            RunEvent::Admitted(Admission {
                call,
                id,
                name,
                by,
                always,
                arguments: texts,
                at,
            })
        });
    }

    fn back_off(&mut self, call: CallIndex, error: Arc<str>, wait: Duration, at: Duration) {
        if self.plan.back_off(call).is_ok() {
            self.cancel_children(call, at);
            if let Some(entry) = self.calls.get_mut(call.index()) {
                entry.retry_at = at.saturating_add(wait);
            }
            self.tell_of(call, at, |CallRef { call, id, name, at }| {
                RunEvent::BackOff(BackOff {
                    call,
                    id,
                    name,
                    error,
                    wait,
                    at,
                })
            });
        }
    }

    fn act(&mut self, at: Duration) {
        while let Some(action) = self.plan.next_action() {
            match action {
                Action::Ready(call) => {
                    self.tell_ready(call, at);
                    self.commands.push_back(Command::Ask(call));
                }
                Action::Start(call) => {
                    self.started(call, at);
                    self.commands.push_back(Command::Start(call));
                }
                Action::Skip { call, because } => self.skip(call, because, at),
                Action::Reject { call, reason } => self.reject(call, &reason, at),
                Action::Cancel(call) => {
                    let entry = self.calls.get(call.index());
                    let own = entry.and_then(|call| call.cancelled.as_deref());
                    let reason = own.or(self.cancelled.as_deref());
                    let reason = reason.unwrap_or("the run was cancelled");
                    let error = if entry.is_some_and(|call| call.attempts > 0) {
                        format!("{reason} while the call waited for a retry")
                    } else {
                        format!("{reason} before the call was started")
                    };
                    self.unstarted(call, Status::Cancelled, error, None, at);
                }
                Action::Stop(call) => self.commands.push_back(Command::Stop(call)),
            }
        }
    }

    fn started(&mut self, call: CallIndex, at: Duration) {
        let Some(entry) = self.calls.get_mut(call.index()) else {
            return;
        };
        entry.attempts += 1;
        entry.is_aside = false;
        entry.times.started = Some(at);
        let attempt = entry.attempts;
        self.tell_of(call, at, |CallRef { call, id, name, at }| {
            RunEvent::Start(Started {
                call,
                id,
                name,
                attempt,
                at,
            })
        });
    }

    fn tell(&mut self, event: impl FnOnce() -> RunEvent) {
        if self.is_heard {
            self.events.push(event());
        }
    }

    fn tell_of(&mut self, call: CallIndex, at: Duration, event: impl FnOnce(CallRef) -> RunEvent) {
        if let Some(entry) = self.calls.get(call.index()).filter(|_| self.is_heard) {
            self.events.push(event(CallRef {
                call: call.get(),
                id: Arc::clone(&entry.id),
                name: Arc::clone(&entry.name),
                at,
            }));
        }
    }

    fn id(&self, call: CallIndex) -> Arc<str> {
        let entry = self.calls.get(call.index());
        entry.map_or_else(|| "".into(), |entry| Arc::clone(&entry.id))
    }
}
