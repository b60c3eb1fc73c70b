//! The state of a conversation, without clock, tasks or I/O.
//!
//! Its inputs are the events that do not follow from others ([`RunState::apply`]), and answers, ends of tools and time
//! (`answers.rs`), which become such events here. Each input produces events for subscribers and the log, and [`Command`]s for
//! the driver. Nothing else changes what the run does: the driver only takes arguments and results out that the state needs no
//! more. So the events of a log, applied in order, restore it (`spec/log.md`, "Resuming a run").

/// An event about a call, with its id and name.
macro_rules! about {
    ($state:expr, $call:expr, $at:expr, $variant:ident($event:ident { $($field:tt)* })) => {{
        let CallRef { call, id, name, at } = $state.about($call, $at);
        RunEvent::$variant($event { call, id, name, at, $($field)* })
    }};
}

mod answers;
mod completing;
mod endings;
mod queries;
mod resuming;
mod untrusted_texts;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plaincall_plan::{Action, CallIndex, Limits, Order, Plan, Reply, State, ToolIndex};
use plaincall_reply::{Bound, CallError, ReplyItem, Stop};
use plaincall_syntax::Syntax;
use plaincall_tool::{Arguments, Effect, Limits as CallLimits, ToolLookup as _};

use crate::call_arguments::{bind_pairs, unbound};
use crate::event::{
    Admission, AdmittedBy, Appeared, Author, BackOff, CallRef, ReplyEnd, RunEvent, Started,
    TurnBegin,
};
use crate::held::HeldReason;
use crate::policy::{self, Policy, Writes};
use crate::replay::Recorded;
use crate::request::Request;
use crate::result::{CallResult, Status, Times};
use crate::rules::Rules;
use crate::tool_error::BoxError;
use crate::tool_policy::Dependents;
use crate::toolbox::Toolbox;
pub(crate) use untrusted_texts::{SharedGuard, UntrustedTexts};

#[derive(Debug)]
pub(crate) enum Command {
    /// Decide whether the call may run, or ask a person if a rule requires it.
    Ask {
        request: Box<Request>,
        must_ask: bool,
    },
    Start(CallIndex),
    Stop(CallIndex),
    /// Retry the call after this time. [`RunState::handle_timeout`] does it too.
    Wait(CallIndex, Duration),
    /// Ask for the outcome of the interrupted call.
    Recover(Box<Request>),
    /// Stop waiting for a decision about the call, for its outcome, or for its retry.
    Forget(CallIndex),
    /// Send the results of the turn.
    Close(usize),
    /// Send the result of the submitted call.
    Deliver(CallIndex),
}

#[derive(Debug, Default)]
pub(crate) struct RunState {
    plan: Plan,
    toolbox: Arc<Toolbox>,
    policy: Policy,
    rules: Rules,
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
    /// All calls with a smaller index were cancelled.
    cancelled_before: usize,
    /// The tools whose calls are all approved.
    always: BTreeSet<Arc<str>>,
    /// The total size of dependency results that calls got, in bytes.
    counted_dependency_bytes: usize,
    /// The call that finished the run.
    finisher: Option<CallIndex>,
    /// The end of the current turn's time limit.
    deadline: Option<Duration>,
    /// When something happens to a call: its retry, or the end of the time for an answer about it.
    timers: BTreeSet<(Duration, CallIndex)>,
    /// Changes the delays of retries, so that not all runs retry at the same time.
    pub(crate) jitter: u32,
    /// Inputs that were decided. They are applied one by one, as a replay of the log applies them.
    decided: VecDeque<RunEvent>,
    /// Interrupted calls whose outcome cannot be found out. They end last in their turn, because what follows from their end
    /// may be logged later.
    unknown: Vec<(CallIndex, Option<BoxError>)>,
    /// The calls that ended as unknown and whose outcome may still be found out, when the run is resumed.
    unresolved: BTreeSet<u32>,
    /// The number of calls that a log restored.
    restored_calls: usize,
    /// The error, if the log cannot be written.
    log_failed: Option<Arc<str>>,
    /// Whether decisions follow from inputs. Those of a log that is replayed are in the log.
    is_live: bool,
    /// The calls that ended in the log that is replayed, by index.
    recorded: HashMap<u32, Recorded>,
    /// Whether there is a gate, or an engine that asks people.
    pub(crate) has_gate: bool,
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
    held: Option<HeldReason>,
    times: Times,
    pub(crate) attempts: u32,
    note: Option<Arc<str>>,
    error: Option<Arc<CallError>>,
    /// Its time in the timers.
    timer: Option<Duration>,
    /// Whether the call was interrupted and its outcome is unknown.
    is_aside: bool,
    /// How often the call started again after it alone was interrupted.
    restarts: u32,
    /// Whether the turn timed out, if the call was stopped.
    stopped: Option<bool>,
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

/// Returns whether the run state needs the item.
pub(crate) fn is_for_run(item: &ReplyItem<'_>) -> bool {
    matches!(
        item,
        ReplyItem::CallStart(_) | ReplyItem::Call(_) | ReplyItem::MaybeReasoning { .. }
    )
}

impl RunState {
    pub(crate) fn new(
        toolbox: Arc<Toolbox>,
        policy: Policy,
        rules: Rules,
        untrusted: Option<UntrustedTexts>,
    ) -> Self {
        let mut limits = Limits::default();
        limits.concurrent = NonZeroU32::new(policy.concurrent);
        limits.calls_per_turn = policy.calls_per_turn;
        let mut state = Self {
            plan: Plan::new(limits),
            policy,
            rules,
            untrusted,
            is_live: true,
            ..Self::default()
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

    /// Applies an event that does not follow from others, at a time since the start of the run, and what is decided because of
    /// it. `items` are the parts of the reply in a text, or those that its end completes. Ids, names and numbers that are not
    /// known outside are set here.
    pub(crate) fn apply(&mut self, event: RunEvent, items: Vec<ReplyItem<'static>>, at: Duration) {
        self.input(event, items, at);
        self.settle(at);
    }

    fn input(&mut self, mut event: RunEvent, items: Vec<ReplyItem<'static>>, at: Duration) {
        event.set_at(at);
        // The plan returns errors for inputs that come too late, such as the end of a cancelled call. They can be ignored.
        match event {
            RunEvent::Examples(shown) => self.observe_examples(shown),
            RunEvent::Untrusted(received) => self.observe_untrusted(received),
            RunEvent::Message(message) => {
                self.give_up_outcomes(at);
                if message.author == Author::User {
                    // A new question of the user continues a finished run.
                    self.finisher = None;
                    self.observe_message(&message.text);
                }
                self.emit(RunEvent::Message(message));
            }
            RunEvent::Turn(turn) => self.begin_turn(turn),
            RunEvent::Text(delta) => {
                // It is empty if no subscriber needs it.
                if !self.is_live || !delta.source.as_bytes().is_empty() {
                    self.emit(RunEvent::Text(delta));
                }
                self.process_items(items, at);
            }
            RunEvent::ReplyEnd(end) => self.end_reply(end, items),
            RunEvent::Call(call) => self.submit(call),
            RunEvent::Admitted(admission) => self.admit(admission),
            RunEvent::Result(result) => self.end_or_deny(result),
            RunEvent::SubagentText(mut part) => {
                let call = CallIndex::new(part.call);
                if self.state(call) == Some(State::Running) {
                    let about = self.about(call, at);
                    (part.id, part.name) = (about.id, about.name);
                    self.emit(RunEvent::SubagentText(part));
                }
            }
            RunEvent::BackOff(back_off) => self.back_off(back_off),
            RunEvent::Retry(retry) => {
                let call = CallIndex::new(retry.call);
                // An interrupted call still holds its slot.
                if self.state(call) == Some(State::Running) {
                    let _ = self.plan.back_off(call);
                }
                if self.plan.retry(call).is_ok() {
                    self.set_timer(call, None);
                    self.emit(RunEvent::Retry(retry));
                }
            }
            RunEvent::Cancel(cancel) => self.cancel(cancel),
            RunEvent::LogFailed(failed) => self.fail_log(failed.error, at),
            // These follow from others, or are not part of the run.
            _ => {}
        }
        self.run_actions(at);
    }

    fn begin_turn(&mut self, mut begin: TurnBegin) {
        let (at, calls) = (begin.at, begin.calls);
        self.give_up_outcomes(at);
        if self.is_open() {
            // The destructor of the turn did not run.
            let cancel = RunEvent::cancel(None, "the turn was abandoned");
            self.input(cancel, Vec::new(), at);
            self.input(RunEvent::reply_end(Stop::Broken, None), Vec::new(), at);
        }
        self.observe_results();
        self.cancelled = self.finisher.map(|call| {
            let name = self.about(call, at).name;
            format!("the run had already finished with a call of `{name}`").into()
        });
        begin.turn = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        self.turns.push(Turn {
            first: self.calls.len(),
            unended: 0,
            state: TurnState::Open,
            order: None,
        });
        self.deadline = (self.policy.turn_timeout).and_then(|time| at.checked_add(time));
        let limits = [self.policy.calls_per_turn, calls];
        let most = limits.into_iter().flatten().min();
        self.plan.limit_calls_per_turn(most);
        let _ = self.plan.begin_turn(Order::Graph);
        if self.cancelled.is_some() {
            self.plan.cancel_all();
        }
        self.emit(RunEvent::Turn(begin));
        if let Some(error) = self.log_failed.clone() {
            self.fail_log(error, at);
        }
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
                    if let Ok(call) = self.plan.declare(&started.id) {
                        self.written.push(call);
                        self.add_call(Appeared {
                            call: call.get(),
                            id: started.id.as_str().into(),
                            name: started.name.as_str().into(),
                            dependencies: started.dependencies.as_slice().into(),
                            submitted: None,
                            parent: None,
                            at,
                        });
                    }
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

    /// Rejects a call because of an error, with another message than that of the error if given.
    fn reject_invalid(&mut self, call: CallIndex, error: Arc<CallError>, message: Option<String>) {
        let message = message.unwrap_or_else(|| error.to_string());
        if let Some(entry) = self.calls.get_mut(call.index()) {
            entry.error = Some(error);
        }
        let _ = self.plan.reject(call, message);
    }

    /// Returns the call with this index among the calls of replies.
    pub(crate) fn call_of(&self, place: usize) -> Option<CallIndex> {
        self.written.get(place).copied()
    }

    fn written_call(&self, place: usize) -> CallIndex {
        self.call_of(place).unwrap_or(CallIndex::new(u32::MAX))
    }

    fn submit(&mut self, mut appeared: Appeared) {
        let (at, parent) = (appeared.at, appeared.parent);
        let Some(arguments) = appeared.submitted.clone() else {
            return;
        };
        let submitted = match parent {
            Some(_) => self.plan.submit_nested(),
            None => self.plan.submit(),
        };
        let Ok(call) = submitted else {
            return;
        };
        let name = Arc::clone(&appeared.name);
        let bound = match self.toolbox.submittable(&name) {
            None => Err(self.toolbox.unknown(&name)),
            Some((place, tool)) => {
                let bound = arguments.bind(&tool.spec, &self.policy.limits);
                bound.map(|arguments| (place, Arc::new(arguments)))
            }
        };
        let is_orphan =
            parent.is_some_and(|one| self.state(CallIndex::new(one)) != Some(State::Running));
        (appeared.call, appeared.id) = (call.get(), submitted_id(call.get()).into());
        self.add_call(appeared);
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
                let echo = self.echo_of(|guard| guard.echo_of_arguments(&name, &arguments));
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
        self.emit(RunEvent::Call(appeared.clone()));
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

    fn end_reply(&mut self, end: ReplyEnd, items: Vec<ReplyItem<'static>>) {
        if !self.is_open() {
            return;
        }
        let (stop, at) = (end.stop, end.at);
        self.emit(RunEvent::ReplyEnd(end));
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
        self.close_turn(self.turns.len().saturating_sub(1), at);
    }

    fn admit(&mut self, admission: Admission) {
        let call = CallIndex::new(admission.call);
        let edited = admission.arguments.as_ref();
        let edited = edited.map(|texts| self.edited(call, &texts.0)).transpose();
        let Some(entry) = self.calls.get_mut(call.index()) else {
            return;
        };
        // Only the gate can approve a held call. The call may have been cancelled since.
        let may_admit = admission.by == AdmittedBy::Gate || entry.held.is_none();
        let edited = match edited {
            Ok(edited) if may_admit && self.plan.admit(call).is_ok() => edited,
            Ok(_) => return,
            Err(reason) => {
                let _ = self.plan.deny(call, reason);
                return;
            }
        };
        if admission.always {
            self.always.insert(Arc::clone(&entry.name));
        }
        if let Some(arguments) = edited {
            let note = format!(
                "a user edited the arguments; the call ran with {}",
                arguments.to_value()
            );
            entry.note = Some(note.into());
            entry.arguments = Some(arguments);
        }
        self.set_timer(call, None);
        self.emit(RunEvent::Admitted(admission));
    }

    /// Returns edited arguments. A user edited them, so the limits of calls do not apply.
    ///
    /// # Errors
    /// Returns the reason if they are invalid, or if a rule denies the call with them. No one can override this.
    fn edited(
        &self,
        call: CallIndex,
        texts: &[(String, String)],
    ) -> Result<Arc<Arguments>, String> {
        let Some(tool) = self.tool(call) else {
            return Ok(unbound(texts).into());
        };
        match bind_pairs(&tool.spec, texts, &CallLimits::default()) {
            Err(_) if self.recorded.contains_key(&call.get()) => Ok(unbound(texts).into()),
            Err(problem) => Err(format!(
                "the arguments were edited before the call ran, and are now invalid: {problem}"
            )),
            Ok(bound) => {
                let bound = Arc::new(bound);
                // The rules may have changed since the log was written, which counts when the call starts.
                let denied = self.is_live.then(|| self.denied_by_rule(call, &bound));
                denied.flatten().map_or(Ok(bound), Err)
            }
        }
    }

    fn back_off(&mut self, back_off: BackOff) {
        let (call, wait, at) = (CallIndex::new(back_off.call), back_off.wait, back_off.at);
        if self.plan.back_off(call).is_ok() {
            self.set_timer(call, Some(at.saturating_add(wait)));
            self.commands.push_back(Command::Wait(call, wait));
            self.emit(RunEvent::BackOff(back_off));
            // After the event: the results of the children follow from it.
            self.cancel_children(call, at);
        }
    }

    fn run_actions(&mut self, at: Duration) {
        while let Some(action) = self.plan.next_action() {
            match action {
                Action::Ready(call) => self.ready(call, at),
                Action::Start(call) => {
                    if let Some(entry) = self.calls.get_mut(call.index()) {
                        entry.attempts += 1;
                        entry.is_aside = false;
                        entry.times.started = Some(at);
                        let attempt = entry.attempts;
                        self.emit(about!(self, call, at, Start(Started { attempt })));
                    }
                    if self.is_live {
                        self.start(call);
                    }
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
                // If the log failed, the tool continues: its end cannot be logged, but stopping it halfway would be worse.
                Action::Stop(_) if self.log_failed.is_some() => {}
                Action::Stop(call) => self.stop(call, false),
            }
        }
    }

    /// Stops a running call, once.
    fn stop(&mut self, call: CallIndex, timed_out: bool) {
        if let Some(entry) = self.calls.get_mut(call.index())
            && entry.stopped.is_none()
        {
            entry.stopped = Some(timed_out);
            self.commands.push_back(Command::Stop(call));
        }
    }

    /// Sets when something happens to a call.
    fn set_timer(&mut self, call: CallIndex, at: Option<Duration>) {
        if let Some(entry) = self.calls.get_mut(call.index()) {
            let before = std::mem::replace(&mut entry.timer, at);
            before.map(|before| self.timers.remove(&(before, call)));
            self.timers.extend(at.map(|at| (at, call)));
        }
    }

    fn emit(&mut self, event: RunEvent) {
        if self.is_observed {
            self.events.push(event);
        }
    }

    /// Returns what an event about a call begins with.
    fn about(&self, call: CallIndex, at: Duration) -> CallRef {
        let entry = self.calls.get(call.index());
        let (id, name) = entry.map(|entry| (&entry.id, &entry.name)).unzip();
        CallRef {
            call: call.get(),
            id: id.cloned().unwrap_or_default(),
            name: name.cloned().unwrap_or_default(),
            at,
        }
    }
}
