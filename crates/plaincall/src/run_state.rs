//! The state of a conversation, without clock, tasks or I/O.
//!
//! Each [`Input`] changes the state, and produces events for subscribers and the log, and [`Command`]s for the driver. Nothing
//! else changes the state. So applying the inputs of a log in order restores it (`spec/log.md`, "Resuming a run").

mod completing;
mod decisions;
mod endings;
mod input;
mod queries;
mod untrusted_texts;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{
    Arguments, Bound, CallError, Effect, ReplyItem, Stop, ToolLookup as _, Untrusted,
};
use plaincall_plan::{Action, CallIndex, Limits, Order, Plan, Reply, State, ToolIndex};
use plaincall_syntax::Syntax;

use crate::call_arguments::SubmittedArguments;
use crate::event::{
    Admission, AdmittedBy, Appeared, Author, BackOff, CallRef, Delta, Message, ReplyEnd, RunEvent,
    Started, SubagentText, TurnBegin,
};
use crate::held::HeldReason;
use crate::policy::{self, Policy, Writes};
use crate::replay::Recorded;
use crate::result::{CallResult, Status, Times};
use crate::tool_policy::Dependents;
use crate::toolbox::Toolbox;
use crate::usage::Usage;
pub(crate) use decisions::{Approval, Recovered};
pub(crate) use input::{Input, is_for_run};
pub(crate) use untrusted_texts::{SharedGuard, UntrustedTexts};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Decide whether the call may run.
    Ask(CallIndex),
    Start(CallIndex),
    Stop(CallIndex),
    /// Stop waiting for a decision about the call or for its retry.
    Forget(CallIndex),
    /// Send the results of the turn.
    Close(usize),
    /// Send the result of the submitted call.
    Deliver(CallIndex),
}

#[derive(Debug)]
pub(crate) struct RunState {
    plan: Plan,
    toolbox: Arc<Toolbox>,
    pub(crate) policy: Policy,
    /// The indices of the tools in the plan, in the order of the toolbox.
    numbers: Vec<ToolIndex>,
    calls: Vec<Call>,
    /// The calls of replies, in order of appearance.
    written: Vec<CallIndex>,
    /// The calls that tools have submitted, by their parent calls.
    children: BTreeMap<CallIndex, Vec<CallIndex>>,
    turns: Vec<Turn>,
    /// `None` if echoes are not held.
    untrusted: Option<UntrustedTexts>,
    /// The reason why the current turn was cancelled, possibly before its first call.
    cancelled: Option<Arc<str>>,
    /// Whether the last cancellation was a timeout of the turn.
    pub(crate) turn_timed_out: bool,
    /// All calls with a smaller index were cancelled.
    cancelled_before: usize,
    /// The tools whose calls are all approved.
    always: HashSet<Arc<str>>,
    /// The total size of dependency results that calls got, in bytes.
    counted_dependency_bytes: usize,
    /// The call that finished the run.
    pub(crate) finisher: Option<CallIndex>,
    /// The calls that ended in the log that is replayed, by index.
    pub(crate) recorded: HashMap<u32, Recorded>,
    /// Whether events are needed.
    pub(crate) is_observed: bool,
    pub(crate) events: Vec<RunEvent>,
    pub(crate) commands: VecDeque<Command>,
}

#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    dependencies: Arc<[String]>,
    pub(crate) turn: usize,
    /// The index of its tool in the toolbox, once the call is complete.
    tool: Option<usize>,
    /// The arguments, until the last start of the call, to save memory.
    arguments: Option<Arc<Arguments>>,
    /// The reason, if the call is held.
    pub(crate) held: Option<HeldReason>,
    times: Times,
    pub(crate) attempts: u32,
    note: Option<Arc<str>>,
    error: Option<Arc<CallError>>,
    /// The untrusted text that its tool observed, until the call has its result.
    untrusted: Option<Arc<Untrusted<'static>>>,
    /// The end of the delay, if the call backs off.
    pub(crate) retry_at: Duration,
    /// Whether the call was interrupted and its outcome is unknown.
    is_aside: bool,
    pub(crate) is_submitted: bool,
    /// The call whose tool has submitted it.
    pub(crate) parent: Option<u32>,
    /// The reason, if this call was cancelled on its own.
    pub(crate) cancelled: Option<Arc<str>>,
    pub(crate) result: Option<CallResult>,
}

#[derive(Debug)]
struct Turn {
    first: usize,
    unended: usize,
    state: TurnState,
    opened: Duration,
    /// The order, once the turn has a call.
    order: Option<Order>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnState {
    /// Calls may still appear.
    Open,
    /// The reply has ended. Calls may still run.
    ReplyEnded,
    /// All its calls have ended.
    Closed,
}

fn plan_order(order: policy::Order) -> Order {
    match order {
        policy::Order::Graph => Order::Graph,
        order => Order::Sequential {
            stop_on_error: order == policy::Order::StopOnError,
        },
    }
}

/// Returns the id of a submitted call. No call can depend on it.
pub(crate) fn submitted_id(call: u32) -> String {
    format!("submitted_{call}")
}

impl RunState {
    pub(crate) fn new(
        toolbox: Arc<Toolbox>,
        policy: Policy,
        untrusted: Option<UntrustedTexts>,
    ) -> Self {
        let mut limits = Limits::default();
        limits.concurrent = NonZeroU32::new(policy.concurrent);
        limits.calls_per_turn = policy.calls_per_turn;
        let mut state = Self {
            plan: Plan::new(limits),
            toolbox: Arc::default(),
            policy,
            numbers: Vec::new(),
            calls: Vec::new(),
            written: Vec::new(),
            children: BTreeMap::new(),
            turns: Vec::new(),
            untrusted,
            cancelled: None,
            turn_timed_out: false,
            cancelled_before: 0,
            always: HashSet::new(),
            counted_dependency_bytes: 0,
            finisher: None,
            recorded: HashMap::new(),
            is_observed: false,
            events: Vec::new(),
            commands: VecDeque::new(),
        };
        state.set_tools(toolbox);
        state
    }

    /// Sets the tools of later calls. Tools that exist before and after have the same places.
    pub(crate) fn set_tools(&mut self, toolbox: Arc<Toolbox>) {
        let writes = self.policy.writes;
        let numbers = toolbox.iter().map(|tool| {
            let mut properties = plaincall_plan::Tool::default();
            properties.max_concurrent = tool.policy.max_concurrent;
            properties.exclusive = tool.policy.exclusive;
            properties.delegates = tool.policy.delegates;
            properties.read = tool.spec.effect == Effect::Read;
            properties.deferred =
                tool.spec.effect == Effect::Write && writes == Writes::AtEndOfTurn;
            properties.tolerated = tool.policy.dependents != Dependents::Skip;
            self.plan.add_tool(properties)
        });
        self.numbers = numbers.collect();
        self.toolbox = toolbox;
    }

    /// Applies an input at a time since the start of the run.
    pub(crate) fn apply(&mut self, input: Input, at: Duration) {
        // The plan returns errors for inputs that come too late, such as the end of a cancelled call. They can be ignored.
        match input {
            Input::Examples(calls) => self.observe_examples(calls, at),
            Input::Untrusted { name, text } => self.observe_untrusted(name, text, at),
            Input::Message { author, text } => {
                if author == Author::User {
                    // A new question of the user continues a finished run.
                    self.finisher = None;
                    self.observe_message(&text);
                }
                self.emit(|| RunEvent::Message(Message { author, text, at }));
            }
            Input::BeginTurn { calls } => self.begin_turn(calls, at),
            Input::Text { source, items } => {
                if let Some(source) = source {
                    self.emit(|| RunEvent::Text(Delta { source, at }));
                }
                self.process_items(items, at);
            }
            Input::EndReply { stop, usage, items } => self.end_reply(stop, usage, items, at),
            Input::Submit {
                name,
                arguments,
                parent,
            } => self.submit(&name, arguments, parent, at),
            Input::Admit {
                call,
                by,
                reason,
                always,
                arguments,
            } => self.admit(call, by, reason, always, arguments, at),
            Input::Deny { call, reason } => {
                let _ = self.plan.deny(call, reason);
            }
            Input::Ended { call, ended } => self.ended(call, ended, at),
            Input::SubagentText {
                call,
                text,
                stop,
                usage,
            } => {
                if self.state(call) == Some(State::Running) {
                    self.emit_for(call, at, |CallRef { call, id, name, at }| {
                        RunEvent::SubagentText(SubagentText {
                            call,
                            id,
                            name,
                            text,
                            stop,
                            usage,
                            at,
                        })
                    });
                }
            }
            Input::BackOff { call, error, wait } => self.back_off(call, error, wait, at),
            Input::Retry { call } => {
                // An interrupted call still holds its slot.
                if self.state(call) == Some(State::Running) {
                    let _ = self.plan.back_off(call);
                }
                if self.plan.retry(call).is_ok() {
                    self.emit_for(call, at, RunEvent::Retry);
                }
            }
            Input::Cancel { reason, timed_out } => self.cancel(reason, timed_out, at),
            Input::CancelCall { call, reason } => self.cancel_call(call, reason, at),
        }
        self.run_actions(at);
    }

    fn begin_turn(&mut self, calls: Option<u32>, at: Duration) {
        self.turn_timed_out = false;
        if let Some(turn) = self.turns.last()
            && turn.state == TurnState::Open
        {
            // The destructor of the turn did not run.
            self.cancel("the turn was abandoned".into(), false, at);
            self.run_actions(at);
            self.end_reply(Stop::Broken, None, Vec::new(), at);
            self.run_actions(at);
        }
        self.observe_results();
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
            state: TurnState::Open,
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
        self.emit(|| RunEvent::Turn(TurnBegin { turn, calls, at }));
    }

    fn set_order(&mut self, order: Order) {
        if let Some(turn) = self.turns.last_mut().filter(|turn| turn.order.is_none()) {
            turn.order = Some(order);
            self.plan.order_turn(order);
        }
    }

    fn process_items(&mut self, items: Vec<ReplyItem<'static>>, at: Duration) {
        for item in items {
            match item {
                ReplyItem::CallStart(started) => {
                    self.set_order(plan_order(match started.syntax {
                        Syntax::Block => self.policy.block_order,
                        Syntax::Emoji => self.policy.emoji_order,
                    }));
                    let id = started.id.as_str().into();
                    self.declare(
                        id,
                        started.name.as_str().into(),
                        started.dependencies.as_slice().into(),
                        at,
                    );
                }
                ReplyItem::Call(read) => {
                    let index = self.written_call(read.call.index);
                    let bound = read.bound();
                    let today = bound.as_ref().ok().map(|bound| &bound.arguments);
                    if self.restored(index, today, at) {
                        self.run_actions(at);
                        continue;
                    }
                    match bound {
                        Ok(Bound {
                            tool,
                            arguments,
                            held,
                            ..
                        }) => {
                            let echo = self.echo_of(|guard| guard.echo_of(&read.call));
                            self.complete(index, tool, &arguments, echo, held, at);
                        }
                        Err(error) => {
                            let mention = self.mention_of(index).map(|text| text.not_repaired());
                            self.reject_invalid(index, error.into(), mention);
                        }
                    }
                }
                ReplyItem::MaybeReasoning { from, error } => {
                    let error = Arc::new(error);
                    // In reverse, so that none is skipped because of another.
                    for place in (from..self.written.len()).rev() {
                        self.reject_invalid(self.written_call(place), Arc::clone(&error), None);
                    }
                }
                _ => {}
            }
            self.run_actions(at);
        }
    }

    fn declare(&mut self, id: Arc<str>, name: Arc<str>, dependencies: Arc<[String]>, at: Duration) {
        if let Ok(call) = self.plan.declare(&id) {
            self.written.push(call);
            self.add_call(Appeared {
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

    /// Rejects a call because of an error, with `words` instead of the message of the error if given.
    fn reject_invalid(&mut self, call: CallIndex, error: Arc<CallError>, message: Option<String>) {
        let message = message.unwrap_or_else(|| error.to_string());
        if let Some(entry) = self.calls.get_mut(call.index()) {
            entry.error = Some(error);
        }
        let _ = self.plan.reject(call, message);
    }

    /// Returns the call with this index among the calls of replies.
    fn written_call(&self, place: usize) -> CallIndex {
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
        let submitted = match parent {
            Some(_) => self.plan.submit_nested(),
            None => self.plan.submit(),
        };
        let Ok(call) = submitted else {
            return;
        };
        let bound = match self.toolbox.submittable(name) {
            None => Err(self.toolbox.unknown(name)),
            Some((place, tool)) => {
                let bound = arguments.bind(&tool.spec, &self.policy.limits);
                bound.map(|arguments| (place, Arc::new(arguments)))
            }
        };
        let is_orphan =
            parent.is_some_and(|one| self.state(CallIndex::new(one)) != Some(State::Running));
        self.add_call(Appeared {
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
        let today = bound.as_ref().ok().map(|(_, arguments)| arguments);
        match bound {
            _ if !is_orphan && self.restored(call, today, at) => {}
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

    fn add_call(&mut self, appeared: Appeared) {
        if let Some(turn) = self.turns.last_mut() {
            turn.unended += 1;
        }
        let at = appeared.at;
        self.emit(|| RunEvent::Call(appeared.clone()));
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

    fn end_reply(
        &mut self,
        stop: Stop,
        usage: Option<Usage>,
        items: Vec<ReplyItem<'static>>,
        at: Duration,
    ) {
        let number = self.turns.len().saturating_sub(1);
        if self
            .turns
            .last()
            .is_none_or(|turn| turn.state != TurnState::Open)
        {
            return;
        }
        self.emit(|| RunEvent::ReplyEnd(ReplyEnd { stop, usage, at }));
        self.process_items(items, at);
        self.set_order(Order::Graph);
        let reply = match stop {
            Stop::Natural | Stop::EndOfFile => Reply::Complete,
            Stop::Length | Stop::Broken => Reply::Truncated,
        };
        let _ = self.plan.end_turn(reply);
        if let Some(turn) = self.turns.last_mut() {
            turn.state = TurnState::ReplyEnded;
        }
        self.run_actions(at);
        self.close_turn(number, at);
    }

    fn admit(
        &mut self,
        call: CallIndex,
        by: AdmittedBy,
        reason: Option<Arc<str>>,
        always: bool,
        arguments: Option<Arc<Arguments>>,
        at: Duration,
    ) {
        // Only the gate can approve a held call.
        if by != AdmittedBy::Gate && self.call(call).is_some_and(|call| call.held.is_some()) {
            return;
        }
        // The call may have been cancelled since.
        if self.plan.admit(call).is_err() {
            return;
        }
        if let Some(entry) = self.calls.get(call.index()).filter(|_| always) {
            self.always.insert(Arc::clone(&entry.name));
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
        self.emit_for(call, at, |CallRef { call, id, name, at }| {
            RunEvent::Admitted(Admission {
                call,
                id,
                name,
                by,
                reason,
                always,
                arguments: texts,
                at,
            })
        });
    }

    fn back_off(&mut self, call: CallIndex, error: Arc<str>, wait: Duration, at: Duration) {
        if self.plan.back_off(call).is_ok() {
            if let Some(entry) = self.calls.get_mut(call.index()) {
                entry.retry_at = at.saturating_add(wait);
            }
            self.emit_for(call, at, |CallRef { call, id, name, at }| {
                RunEvent::BackOff(BackOff {
                    call,
                    id,
                    name,
                    error,
                    wait,
                    at,
                })
            });
            // After the event: the results of the children follow from it.
            self.cancel_children(call, at);
        }
    }

    pub(crate) fn run_actions(&mut self, at: Duration) {
        while let Some(action) = self.plan.next_action() {
            match action {
                Action::Ready(call) => {
                    self.emit_ready(call, at);
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
                    self.end_unstarted(call, Status::Cancelled, error, None, at);
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
        self.emit_for(call, at, |CallRef { call, id, name, at }| {
            RunEvent::Start(Started {
                call,
                id,
                name,
                attempt,
                at,
            })
        });
    }

    fn emit(&mut self, event: impl FnOnce() -> RunEvent) {
        if self.is_observed {
            self.events.push(event());
        }
    }

    fn emit_for(&mut self, call: CallIndex, at: Duration, event: impl FnOnce(CallRef) -> RunEvent) {
        if let Some(entry) = self.calls.get(call.index()).filter(|_| self.is_observed) {
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
