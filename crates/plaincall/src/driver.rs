//! The task that owns the plan and the running tools.
//!
//! It sleeps until a call has been read, a gate has decided, or a tool has ended; then it tells the plan and does what
//! the plan says. Nothing is polled. It lives until the run is dropped and all that was running has ended.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use plaincall_call::Arguments;
use plaincall_plan::{Action, CallIndex, CallView, Order, Plan, RejectReason, Status, ToolIndex};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, DependencyResult, Surroundings};
use crate::event::{Appeared, Listeners, Moment, RunEvent, TurnEnd};
use crate::gate::{Decision, Gate, ReadOnly, Request};
use crate::result::{Because, CallResult, Cause, Link, Times, TurnResults};
use crate::tool::BoxError;
use crate::toolbox::Toolbox;
use crate::work::{Ended, Work};

/// What the driver is told. Calls are numbered by the order of their `Appear`.
pub(crate) enum Message {
    Listen(Listener),
    /// A turn was opened. Nothing is known of its order before its first call, or its end.
    Open,
    Begin(Order),
    Appear {
        id: Arc<str>,
        name: Arc<str>,
        dependencies: Arc<[String]>,
    },
    Complete {
        call: u32,
        tool: usize,
        arguments: Arc<Arguments>,
    },
    Reject {
        call: u32,
        reason: String,
    },
    /// The reply is over. The results are sent when all its calls have ended.
    End(oneshot::Sender<TurnResults>),
    /// The turn was dropped before its reply was over.
    Abandon,
    Cancel,
}

/// Somebody who wants to hear of events.
pub(crate) type Listener = tokio::sync::mpsc::UnboundedSender<RunEvent>;

pub(crate) struct Driver {
    plan: Plan,
    toolbox: Arc<Toolbox>,
    /// The tools' numbers in the plan, in the order of the toolbox.
    numbers: Vec<ToolIndex>,
    gate: Option<Arc<dyn Gate>>,
    surroundings: Arc<Surroundings>,
    begun: Instant,
    listeners: Listeners,
    calls: Vec<Call>,
    turns: Vec<Turn>,
    /// Whether the present turn was cancelled, perhaps before its first call.
    is_cancelled: bool,
    tasks: JoinSet<Done>,
    /// What each task does, for those that panic.
    doing: HashMap<task::Id, (CallIndex, Doing)>,
}

struct Call {
    id: Arc<str>,
    name: Arc<str>,
    dependencies: Arc<[String]>,
    turn: usize,
    tool: usize,
    /// Set from the end of its text until it is started, so that they do not stay in memory.
    arguments: Option<Arc<Arguments>>,
    times: Times,
    /// Set while the tool is running.
    cancellation: Option<CancellationToken>,
    /// Set while the gate is deciding.
    asking: Option<AbortHandle>,
    result: Option<CallResult>,
}

struct Turn {
    first: usize,
    unended: usize,
    stage: Stage,
    reply: Option<oneshot::Sender<TurnResults>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Calls may still appear.
    Open,
    /// The reply is over; calls may still run.
    Over,
    /// The results have been handed out.
    Closed,
}

/// What a task did.
enum Done {
    Asked(Result<Decision, BoxError>),
    Worked(Ended),
}

#[derive(Clone, Copy)]
enum Doing {
    Asking,
    Working,
}

impl Driver {
    pub(crate) fn new(
        mut plan: Plan,
        toolbox: Arc<Toolbox>,
        gate: Option<Arc<dyn Gate>>,
        surroundings: Arc<Surroundings>,
    ) -> Self {
        let numbers = toolbox
            .iter()
            .map(|tool| {
                plan.add_tool(plaincall_plan::Tool {
                    max_concurrent: tool.max_concurrent,
                    exclusive: tool.exclusive,
                    read: tool.spec.effect == plaincall_call::Effect::Read,
                })
            })
            .collect();
        Self {
            plan,
            toolbox,
            numbers,
            gate,
            surroundings,
            begun: Instant::now(),
            listeners: Listeners::default(),
            calls: Vec::new(),
            turns: Vec::new(),
            is_cancelled: false,
            tasks: JoinSet::new(),
            doing: HashMap::new(),
        }
    }

    pub(crate) async fn run(mut self, mut inbox: UnboundedReceiver<Message>) {
        let mut is_open = true;
        loop {
            self.act();
            tokio::select! {
                biased;
                Some(joined) = self.tasks.join_next_with_id() => self.joined(joined),
                message = inbox.recv(), if is_open => {
                    is_open = message.is_some();
                    // The run was dropped: what still runs is called off.
                    self.take(message.unwrap_or(Message::Cancel));
                }
                else => return,
            }
        }
    }

    fn take(&mut self, message: Message) {
        // The plan refuses what comes too late, for instance a call of a turn that was cancelled; that is right.
        match message {
            Message::Listen(listener) => self.listeners.add(listener),
            Message::Open => {
                self.is_cancelled = false;
                // A turn that was forgotten instead of dropped.
                if self
                    .turns
                    .last()
                    .is_some_and(|turn| turn.stage == Stage::Open)
                {
                    self.abandon();
                }
            }
            Message::Begin(order) => {
                let _ = self.plan.begin_turn(order);
                if self.is_cancelled {
                    self.plan.cancel_all();
                }
                self.turns.push(Turn {
                    first: self.calls.len(),
                    unended: 0,
                    stage: Stage::Open,
                    reply: None,
                });
            }
            Message::Appear {
                id,
                name,
                dependencies,
            } => self.appear(id, name, dependencies),
            Message::Complete {
                call,
                tool,
                arguments,
            } => self.complete(call, tool, arguments),
            Message::Reject { call, reason } => {
                let _ = self.plan.reject(CallIndex::new(call), reason);
            }
            Message::End(reply) => self.end_turn(Some(reply)),
            Message::Abandon => self.abandon(),
            Message::Cancel => {
                self.is_cancelled = true;
                self.plan.cancel_all();
            }
        }
    }

    fn appear(&mut self, id: Arc<str>, name: Arc<str>, dependencies: Arc<[String]>) {
        let at = self.begun.elapsed();
        let Ok(call) = self.plan.declare(&id) else {
            return;
        };
        if let Some(turn) = self.turns.last_mut() {
            turn.unended += 1;
        }
        self.listeners.tell(|| {
            RunEvent::Call(Appeared {
                call: call.get(),
                id: Arc::clone(&id),
                name: Arc::clone(&name),
                dependencies: Arc::clone(&dependencies),
                at,
            })
        });
        self.calls.push(Call {
            id,
            name,
            dependencies,
            turn: self.turns.len().saturating_sub(1),
            tool: 0,
            arguments: None,
            times: Times {
                appeared: at,
                ..Times::default()
            },
            cancellation: None,
            asking: None,
            result: None,
        });
    }

    fn complete(&mut self, call: u32, tool: usize, arguments: Arc<Arguments>) {
        let index = CallIndex::new(call);
        let Some((entry, number)) = self
            .calls
            .get_mut(index.index())
            .zip(self.numbers.get(tool))
        else {
            return;
        };
        // One that has ended already, for instance over the limit of calls, keeps no arguments in memory.
        let completed = self.plan.complete(index, *number, &*entry.dependencies);
        if completed.is_ok() {
            entry.times.complete = Some(self.begun.elapsed());
            entry.tool = tool;
            entry.arguments = Some(arguments);
            self.tell(index, RunEvent::Waiting);
        }
    }

    fn end_turn(&mut self, reply: Option<oneshot::Sender<TurnResults>>) {
        let _ = self.plan.end_turn();
        if let Some(turn) = self
            .turns
            .last_mut()
            .filter(|turn| turn.stage != Stage::Closed)
        {
            turn.stage = Stage::Over;
            turn.reply = reply;
        }
        self.act();
        self.close_turn(self.turns.len().saturating_sub(1));
    }

    fn abandon(&mut self) {
        self.plan.cancel_all();
        self.end_turn(None);
    }

    /// Does what the plan says.
    fn act(&mut self) {
        while let Some(action) = self.plan.next_action() {
            match action {
                Action::Ready(call) => self.ask(call),
                Action::Start(call) => self.start(call),
                Action::Skip { call, because } => self.skip(call, because),
                Action::Reject { call, reason } => self.reject(call, &reason),
                Action::Cancel(call) => {
                    let error = "the run was cancelled before the call was started".to_owned();
                    self.unstarted(call, Status::Cancelled, error, None);
                }
                Action::Stop(call) => {
                    let entry = self.calls.get(call.index());
                    if let Some(token) = entry.and_then(|entry| entry.cancellation.as_ref()) {
                        token.cancel();
                    }
                }
            }
        }
    }

    /// Asks the gate about a call that is ready.
    fn ask(&mut self, call: CallIndex) {
        self.tell(call, RunEvent::Ready);
        let Some(entry) = self.calls.get_mut(call.index()) else {
            return;
        };
        let effect = self.toolbox.at(entry.tool).map(|tool| tool.spec.effect);
        let request = Request {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            effect: effect.unwrap_or_default(),
            arguments: entry.arguments.clone().unwrap_or_default(),
        };
        let Some(gate) = &self.gate else {
            let decision = ReadOnly::decision(&request);
            return self.decide(call, Ok(decision));
        };
        let gate = Arc::clone(gate);
        let asking = async move { Done::Asked(gate.decide(&request).await) };
        let handle = self.tasks.spawn(asking);
        self.doing.insert(handle.id(), (call, Doing::Asking));
        entry.asking = Some(handle);
    }

    fn decide(&mut self, call: CallIndex, decision: Result<Decision, BoxError>) {
        let answer = match decision {
            Ok(Decision::Allow) => self.plan.admit(call),
            Ok(Decision::Deny { reason }) => self.plan.deny(call, reason),
            Err(error) => self.plan.deny(
                call,
                format!("nobody could decide whether this call may run, so it may not: {error}"),
            ),
        };
        // A call that was cancelled meanwhile needs no decision any more.
        let _ = answer;
    }

    fn start(&mut self, call: CallIndex) {
        let started = Instant::now();
        let dependencies = self.dependency_results(call);
        let surroundings = Arc::clone(&self.surroundings);
        let Some(entry) = self.calls.get_mut(call.index()) else {
            return;
        };
        let Some(tool) = self.toolbox.at(entry.tool) else {
            return;
        };
        let cancellation = CancellationToken::new();
        entry.cancellation = Some(cancellation.clone());
        entry.times.started = Some(started.duration_since(self.begun));
        let context = Context {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            // A child of it: what the tool does with it concerns the tool alone.
            cancellation: cancellation.child_token(),
            dependencies,
            grace: tool.grace,
            surroundings,
        };
        let arguments = entry.arguments.take().unwrap_or_default();
        let work = Work::new(tool, arguments, context);
        let working = async move { Done::Worked(work.run(started, cancellation).await) };
        let handle = self.tasks.spawn(working);
        self.doing.insert(handle.id(), (call, Doing::Working));
        self.tell(call, RunEvent::Start);
    }

    fn dependency_results(&self, call: CallIndex) -> Vec<DependencyResult> {
        let view = self.plan.call(call);
        let dependencies = view.into_iter().flat_map(CallView::dependencies);
        let results = dependencies.filter_map(|dependency| {
            let entry = self.calls.get(dependency.call?.index())?;
            let result = entry.result.as_ref()?;
            Some(DependencyResult {
                id: Arc::clone(&entry.id),
                name: Arc::clone(&entry.name),
                status: result.status,
                output: result.output.clone().unwrap_or_default(),
            })
        });
        results.collect()
    }

    /// A task has ended.
    fn joined(&mut self, joined: Result<(task::Id, Done), JoinError>) {
        let id = match &joined {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some((call, doing)) = self.doing.remove(&id) else {
            return;
        };
        match (joined, doing) {
            (Ok((_, Done::Worked(ended))), _) => self.ended(call, ended),
            (Ok((_, Done::Asked(decision))), _) => self.decide(call, decision),
            (Err(error), Doing::Working) => self.ended(call, Ended::panicked(&panic_text(error))),
            (Err(error), Doing::Asking) if error.is_panic() => {
                self.decide(call, Err(panic_text(error).into()));
            }
            // Nobody waits for the answer any more.
            (Err(_), Doing::Asking) => {}
        }
    }

    /// A call that was started has ended.
    fn ended(&mut self, call: CallIndex, ended: Ended) {
        let Ended {
            outcome,
            output,
            error,
        } = ended;
        let output = output.map(Arc::from);
        self.record(call, outcome.into(), output, error, None);
        let _ = self.plan.ended(call, outcome);
        self.close_turn_of(call);
    }

    fn skip(&mut self, call: CallIndex, because: plaincall_plan::Because) {
        let cause = |index: CallIndex| Cause {
            call: index.get(),
            id: self.id(index),
        };
        let because = Because {
            link: because.link,
            direct: cause(because.direct),
            root: cause(because.root),
        };
        let status = self.calls.get(because.direct.call as usize);
        let status = status
            .and_then(|entry| entry.result.as_ref())
            .map(|result| result.status);
        let ended = match status {
            Some(Status::Error) => "failed",
            Some(Status::Skipped) => "was skipped",
            Some(Status::Rejected) => "was rejected",
            Some(Status::Cancelled) => "was cancelled",
            _ => "did not succeed",
        };
        let id = &because.direct.id;
        let mut error = match because.link {
            Link::Dependency => format!("not run, because it depends on `{id}`, which {ended}"),
            Link::Order => format!("not run, because `{id}`, written before it, {ended}"),
        };
        if because.root != because.direct {
            let _ = write!(error, "; it began with `{}`", because.root.id);
        }
        self.unstarted(call, Status::Skipped, error, Some(because));
    }

    fn reject(&mut self, call: CallIndex, reason: &RejectReason) {
        self.unstarted(call, Status::Rejected, reason.to_string(), None);
    }

    /// A call has ended that was never started.
    fn unstarted(
        &mut self,
        call: CallIndex,
        status: Status,
        error: String,
        because: Option<Because>,
    ) {
        self.record(call, status, None, Some(error), because);
        self.close_turn_of(call);
    }

    fn record(
        &mut self,
        call: CallIndex,
        status: Status,
        output: Option<Arc<str>>,
        error: Option<String>,
        because: Option<Because>,
    ) {
        let Some(entry) = self.calls.get_mut(call.index()) else {
            return;
        };
        if let Some(asking) = entry.asking.take() {
            asking.abort();
        }
        entry.cancellation = None;
        entry.arguments = None;
        entry.times.ended = self.begun.elapsed();
        let result = CallResult {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            status,
            output,
            error: error.map(Arc::from),
            because,
            times: entry.times,
        };
        self.listeners.tell(|| RunEvent::Result(result.clone()));
        entry.result = Some(result);
        let turn = entry.turn;
        if let Some(turn) = self.turns.get_mut(turn) {
            turn.unended = turn.unended.saturating_sub(1);
        }
    }

    fn close_turn_of(&mut self, call: CallIndex) {
        if let Some(turn) = self.calls.get(call.index()).map(|entry| entry.turn) {
            self.close_turn(turn);
        }
    }

    /// Hands out the results of a turn whose reply is over and whose calls have all ended.
    fn close_turn(&mut self, turn: usize) {
        let end = self
            .turns
            .get(turn + 1)
            .map_or(self.calls.len(), |next| next.first);
        let Some(turn) = self.turns.get_mut(turn) else {
            return;
        };
        if turn.stage != Stage::Over || turn.unended > 0 {
            return;
        }
        turn.stage = Stage::Closed;
        let calls = self.calls.get(turn.first..end).unwrap_or_default();
        let results = TurnResults {
            results: calls
                .iter()
                .filter_map(|call| call.result.clone())
                .collect(),
        };
        let counts = results.counts();
        let at = self.begun.elapsed();
        self.listeners
            .tell(|| RunEvent::End(TurnEnd { counts, at }));
        if let Some(reply) = turn.reply.take() {
            let _ = reply.send(results);
        }
    }

    fn tell(&mut self, call: CallIndex, event: impl FnOnce(Moment) -> RunEvent) {
        let at = self.begun.elapsed();
        if let Some(entry) = self.calls.get(call.index()) {
            self.listeners.tell(|| {
                event(Moment {
                    call: call.get(),
                    id: Arc::clone(&entry.id),
                    name: Arc::clone(&entry.name),
                    at,
                })
            });
        }
    }

    fn id(&self, call: CallIndex) -> Arc<str> {
        let entry = self.calls.get(call.index());
        entry.map_or_else(|| "".into(), |entry| Arc::clone(&entry.id))
    }
}

/// What a panic said.
fn panic_text(error: JoinError) -> String {
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
