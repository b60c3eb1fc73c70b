//! The task that runs the calls of a run.
//!
//! It waits until a part of the reply arrives, a gate decides, a tool ends, a time limit is reached or the log was written.
//! Then it gives an input to the [`RunState`], which decides everything, and carries out the commands that it returns. It ends
//! when the run was dropped and all its tools have ended.
//!
//! With a log, everything is logged before it leaves the run: events and results wait in the outbox until their line is safe,
//! and a tool that writes waits until the line of its start is safe.

mod calls;
mod outbox;

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use plaincall_plan::CallIndex;
use plaincall_reply::{ReplyItem, Stop};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::{self, AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::attempt::{Ended, Transform};
use crate::context::RunContext;
use crate::event::{RunBegin, RunEvent};
use crate::gate::{Decision, Gate, Recovery};
use crate::log::{Progress, Recorder};
use crate::observers::{Listener, Listeners};
use crate::replay::Replayed;
use crate::result::{CallResult, TurnResults};
use crate::run_state::{Command, RunState};
use crate::tool_error::BoxError;
use crate::trace::Parent;
pub(crate) use calls::panic_text;

pub(crate) enum Message {
    Listen(Listener),
    /// An input for the run state, with parts of the reply.
    Event(RunEvent, Vec<ReplyItem<'static>>),
    /// Begins a turn, with the parent of the spans of its calls.
    BeginTurn(RunEvent, Parent),
    /// Submits a call. Its result is sent when it has ended.
    Submit(RunEvent, oneshot::Sender<CallResult>),
    /// Requests the result of a call that was submitted before the run was resumed.
    Submitted {
        call: u32,
        reply: oneshot::Sender<CallResult>,
    },
    /// Ends the reply, with the parts that its end completes. The results are sent when all calls of the turn have ended.
    EndReply(
        RunEvent,
        Vec<ReplyItem<'static>>,
        oneshot::Sender<TurnResults>,
    ),
    /// Requests the results of the last turn.
    Collect(oneshot::Sender<TurnResults>),
    /// The turn was dropped before it returned its results.
    Abandon(Vec<ReplyItem<'static>>),
    Cancel,
    /// Requests a reply when all earlier messages were handled and the backlog of the log is small.
    CatchUp(oneshot::Sender<()>),
}

pub(crate) struct DriverConfig {
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) transform: Option<Arc<Transform>>,
    pub(crate) shared: Arc<RunContext>,
    pub(crate) recorder: Option<Recorder>,
    /// The first event of the run.
    pub(crate) begin: Arc<RunBegin>,
    /// The parent of the spans of the current turn; before the first turn, of the calls of a resumed run.
    pub(crate) parent: Parent,
    /// Whether the unfinished calls of a resumed run are cancelled.
    pub(crate) cancels_unfinished: bool,
}

pub(crate) struct Driver {
    config: DriverConfig,
    run_state: RunState,
    begun: Instant,
    listeners: Listeners,
    /// Deliveries, each with the number of the line that must be safe before it.
    outbox: VecDeque<(u64, PendingDelivery)>,
    /// The number of the last line.
    last_line: u64,
    /// Events that are logged only when the conversation continues, because the outcome of a call may still be found out.
    held_back: Vec<RunEvent>,
    tasks: JoinSet<Done>,
    /// The call of each task, in case it panics.
    doing: HashMap<task::Id, (CallIndex, Panicked)>,
    running: HashMap<CallIndex, CancellationToken>,
    /// The tasks of calls that wait for an answer of the gate.
    waiting: HashMap<CallIndex, AbortHandle>,
    /// The channels for the results of turns.
    replies: HashMap<usize, oneshot::Sender<TurnResults>>,
    /// The channels for the results of submitted calls.
    submitters: HashMap<CallIndex, oneshot::Sender<CallResult>>,
    /// The channels of pending `CatchUp` messages.
    catching_up: Vec<oneshot::Sender<()>>,
}

/// A delivery that waits until the log is written.
enum PendingDelivery {
    Listener(Listener),
    Event(RunEvent),
    Results(oneshot::Sender<TurnResults>, TurnResults),
    Result(oneshot::Sender<CallResult>, Box<CallResult>),
}

/// The meaning of a panic with this text.
type Panicked = fn(String) -> Done;

enum Done {
    Decided(Result<Decision, BoxError>),
    Recovered(Result<Recovery, BoxError>),
    ToolEnded(Ended),
    ToolPanicked(String),
}

impl Driver {
    pub(crate) fn new(config: DriverConfig, mut run_state: RunState) -> Self {
        run_state.has_gate = config.gate.is_some();
        run_state.jitter = u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or_default();
        Self {
            config,
            run_state,
            begun: Instant::now(),
            listeners: Listeners::default(),
            outbox: VecDeque::new(),
            last_line: 0,
            held_back: Vec::new(),
            tasks: JoinSet::new(),
            doing: HashMap::new(),
            running: HashMap::new(),
            waiting: HashMap::new(),
            replies: HashMap::new(),
            submitters: HashMap::new(),
            catching_up: Vec::new(),
        }
    }

    /// Runs until the run is dropped. With `replayed`, it first resumes the run from its log.
    pub(crate) async fn run(
        mut self,
        mut inbox: UnboundedReceiver<Message>,
        replayed: Option<Replayed>,
    ) {
        self.update_is_observed();
        match replayed {
            Some(replayed) => {
                // Subscribers that exist already get the events of resuming.
                let mut early = Vec::new();
                while let Ok(message) = inbox.try_recv() {
                    match message {
                        Message::Listen(_) => self.handle(message),
                        other => early.push(other),
                    }
                }
                self.resume(replayed);
                for message in early {
                    self.run_commands();
                    self.handle(message);
                }
            }
            None if self.config.recorder.is_some() => {
                self.publish(RunEvent::Run(Box::new((*self.config.begin).clone())));
            }
            None => {}
        }
        let mut is_open = true;
        loop {
            self.run_commands();
            self.answer_catch_ups();
            let timeout = self.run_state.poll_timeout();
            let timeout = timeout.and_then(|time| self.begun.checked_add(time));
            let is_writing = self.config.recorder.as_ref().is_some_and(Recorder::is_busy);
            tokio::select! {
                biased;
                progress = progress(&mut self.config.recorder), if is_writing => self.written(progress),
                Some(joined) = self.tasks.join_next_with_id() => self.joined(joined),
                () = sleep_until(timeout.unwrap_or(self.begun)), if timeout.is_some() => {
                    self.run_state.handle_timeout(self.begun.elapsed());
                }
                message = inbox.recv(), if is_open => {
                    if let Some(message) = message {
                        self.handle(message);
                    } else {
                        is_open = false;
                        self.run_state.drop_run(self.begun.elapsed());
                    }
                }
                else => break,
            }
        }
        let is_written = match &mut self.config.recorder {
            Some(recorder) => recorder.finish().await.is_ok(),
            None => true,
        };
        // If the outcome of a call may still be found out, the run can be resumed, and keeps its directory.
        if is_written
            && self.run_state.unresolved().is_empty()
            && let Some(directory) = &self.config.shared.directory
        {
            directory.release();
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Listen(listener) => self.listen(listener),
            Message::BeginTurn(event, parent) => {
                self.config.parent = parent;
                self.apply(event, Vec::new());
            }
            Message::Event(event, items) => self.apply(event, items),
            Message::Submit(event, reply) => {
                let place = self.run_state.appeared();
                self.apply(event, Vec::new());
                // Otherwise the plan is full, and the sender is dropped.
                if let Ok(call) = u32::try_from(place)
                    && self.run_state.appeared() > place
                {
                    self.submitters.insert(CallIndex::new(call), reply);
                }
            }
            Message::Submitted { call, reply } => {
                let call = CallIndex::new(call);
                self.submitters.insert(call, reply);
                if (self.run_state.call(call)).is_some_and(|entry| entry.result.is_some()) {
                    self.send_result(call);
                }
            }
            Message::EndReply(event, items, reply) => {
                if let Some((turn, _)) = self.run_state.last_turn() {
                    self.replies.insert(turn, reply);
                }
                self.apply(event, items);
            }
            Message::Collect(reply) => match self.run_state.last_turn() {
                Some((turn, true)) => self.send_results(turn, reply),
                Some((turn, false)) => {
                    self.replies.insert(turn, reply);
                }
                // The sender is dropped, so the receiver gets an error.
                None => {}
            },
            Message::Abandon(items) => {
                self.cancel("the turn was dropped");
                self.apply(RunEvent::reply_end(Stop::Broken, None), items);
            }
            Message::Cancel => self.cancel("the run was cancelled"),
            Message::CatchUp(reply) => self.catching_up.push(reply),
        }
    }

    fn apply(&mut self, event: RunEvent, items: Vec<ReplyItem<'static>>) {
        self.run_state.apply(event, items, self.begun.elapsed());
    }

    fn cancel(&mut self, reason: &str) {
        self.run_state.cancel_run(reason, self.begun.elapsed());
    }

    /// Publishes the events of the run state and carries out its commands.
    fn run_commands(&mut self) {
        loop {
            if self.run_state.unresolved().is_empty() {
                self.write_held_back();
            }
            for event in std::mem::take(&mut self.run_state.events) {
                self.publish(event);
            }
            let Some(command) = self.run_state.commands.pop_front() else {
                return;
            };
            match command {
                Command::Ask { request, .. } => self.ask(request),
                Command::Recover(request) => self.recover(request),
                Command::Start(call) => self.start(call),
                Command::Stop(call) => {
                    if let Some(cancellation) = self.running.get(&call) {
                        cancellation.cancel();
                    }
                }
                // The state has the time.
                Command::Wait(..) => {}
                Command::Forget(call) => {
                    if let Some(task) = self.waiting.remove(&call) {
                        task.abort();
                    }
                }
                Command::Deliver(call) => self.send_result(call),
                Command::Close(turn) => {
                    if self.run_state.last_turn() == Some((turn, true)) {
                        // Otherwise the turn's span would stay open until the next turn.
                        self.config.parent = Parent::none();
                    }
                    if let Some(reply) = self.replies.remove(&turn) {
                        self.send_results(turn, reply);
                    }
                }
            }
        }
    }

    /// Updates whether the run state must produce events.
    fn update_is_observed(&mut self) {
        self.run_state.is_observed = self.config.recorder.is_some() || !self.listeners.is_empty();
    }
}

async fn progress(recorder: &mut Option<Recorder>) -> Progress {
    match recorder {
        Some(recorder) => recorder.progress().await,
        None => pending().await,
    }
}
