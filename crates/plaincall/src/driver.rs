//! The task that runs the calls of a run.
//!
//! It waits until a part of the reply arrives, a gate decides, a tool ends, a time limit is reached or the log was written.
//! Then it gives an input to the [`RunState`] and carries out the commands that it returns. It ends when the run was dropped
//! and all its tools have ended.
//!
//! With a log, everything is logged before it leaves the run: events and results wait in the outbox until their line is safe,
//! and a tool that writes waits until the line of its start is safe.

mod calls;
mod outbox;

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::pending;
use std::hash::RandomState;
use std::sync::Arc;

use plaincall_call::{ReplyItem, Stop};
use plaincall_plan::{CallIndex, format_duration};
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
use crate::run_state::{Command, Input, RunState};
use crate::tool_error::BoxError;
use crate::trace::Parent;
use crate::usage::Usage;
pub(crate) use calls::panic_text;

pub(crate) enum Message {
    Listen(Listener),
    /// An input for the run state.
    Input(Input),
    BeginTurn {
        /// The parent of the spans of its calls.
        parent: Parent,
        /// The limit of calls of the turn, if it has its own.
        calls: Option<u32>,
    },
    /// Submits a call. Its result is sent when it has ended.
    Submit(Input, oneshot::Sender<CallResult>),
    /// Requests the result of a call that was submitted before the run was resumed.
    Submitted {
        call: u32,
        reply: oneshot::Sender<CallResult>,
    },
    /// Ends the reply. The results are sent when all calls of the turn have ended.
    EndReply {
        stop: Stop,
        usage: Option<Usage>,
        items: Vec<ReplyItem<'static>>,
        reply: oneshot::Sender<TurnResults>,
    },
    /// Requests the results of the last turn.
    Collect(oneshot::Sender<TurnResults>),
    /// The turn was dropped before it returned its results.
    Abandon,
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
    /// The calls whose outcome is unknown and may still be found out.
    unresolved: HashSet<u32>,
    /// Inputs that were decided. They are applied one by one, so that a replay of the log applies them in the same order.
    decided: VecDeque<Input>,
    tasks: JoinSet<Done>,
    /// The purpose of each task, in case it panics.
    doing: HashMap<task::Id, (CallIndex, Doing)>,
    running: HashMap<CallIndex, Running>,
    /// The tasks of calls that are not running: they wait for a decision of the gate or for a retry.
    waiting: HashMap<CallIndex, AbortHandle>,
    /// Interrupted calls whose outcome is unknown. They end last in their turn: the events that follow from their end are
    /// held back, and must not change those that are logged.
    unknown: Vec<(CallIndex, Option<BoxError>)>,
    /// Interrupted calls for which the gate is asked about the outcome.
    recovering: HashSet<CallIndex>,
    /// The calls with a smaller index were restored from the log.
    restored_calls: usize,
    /// The channels for the results of turns.
    replies: HashMap<usize, oneshot::Sender<TurnResults>>,
    /// The channels for the results of submitted calls.
    submitters: HashMap<CallIndex, oneshot::Sender<CallResult>>,
    /// The deadline of the current turn.
    deadline: Option<Instant>,
    /// The channels of pending `CatchUp` messages.
    catching_up: Vec<oneshot::Sender<()>>,
    /// The jitter of retry delays: a hasher and the number of values drawn.
    jitter: (RandomState, u64),
}

/// A delivery that waits until the log is written.
enum PendingDelivery {
    Listener(Listener),
    Event(RunEvent),
    Results(oneshot::Sender<TurnResults>, TurnResults),
    Result(oneshot::Sender<CallResult>, Box<CallResult>),
}

struct Running {
    cancellation: CancellationToken,
    /// Whether the call was cancelled. The token is also cancelled when the tool times out.
    was_cancelled: bool,
    /// Whether the turn is stopped because its turn timed out.
    turn_timed_out: bool,
}

impl Running {
    fn stop(&mut self) {
        self.was_cancelled = true;
        self.cancellation.cancel();
    }
}

enum Done {
    Decided(Result<Decision, BoxError>),
    Recovered(Result<Recovery, BoxError>),
    ToolEnded(Ended),
    RetryDue,
}

#[derive(Clone, Copy)]
enum Doing {
    Deciding,
    Recovering,
    Running,
    Waiting,
}

impl Driver {
    pub(crate) fn new(config: DriverConfig, run_state: RunState) -> Self {
        Self {
            config,
            run_state,
            begun: Instant::now(),
            listeners: Listeners::default(),
            outbox: VecDeque::new(),
            last_line: 0,
            held_back: Vec::new(),
            unresolved: HashSet::new(),
            decided: VecDeque::new(),
            tasks: JoinSet::new(),
            doing: HashMap::new(),
            running: HashMap::new(),
            waiting: HashMap::new(),
            unknown: Vec::new(),
            recovering: HashSet::new(),
            restored_calls: 0,
            replies: HashMap::new(),
            submitters: HashMap::new(),
            deadline: None,
            catching_up: Vec::new(),
            jitter: (RandomState::new(), 0),
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
                    self.apply_decided();
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
            self.apply_decided();
            self.answer_catch_ups();
            let is_writing = self.config.recorder.as_ref().is_some_and(Recorder::is_busy);
            tokio::select! {
                biased;
                progress = progress(&mut self.config.recorder), if is_writing => self.written(progress),
                Some(joined) = self.tasks.join_next_with_id() => self.joined(joined),
                () = sleep_until(self.deadline.unwrap_or(self.begun)), if self.deadline.is_some() => self.time_out_turn(),
                message = inbox.recv(), if is_open => {
                    if let Some(message) = message {
                        self.handle(message);
                    } else {
                        // The run was dropped, so its calls are cancelled.
                        is_open = false;
                        // A turn whose destructor did not run never closes.
                        self.deadline = None;
                        if self.run_state.has_unended() {
                            self.cancel("the run was dropped");
                        }
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
            && self.unresolved.is_empty()
            && let Some(directory) = &self.config.shared.directory
        {
            directory.release();
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Listen(listener) => {
                self.listen(listener);
            }
            Message::BeginTurn { parent, calls } => {
                self.abandon_recoveries();
                self.write_held_back();
                self.config.parent = parent;
                let time = self.run_state.policy.turn_timeout;
                self.deadline = time.and_then(|time| Instant::now().checked_add(time));
                self.apply(Input::BeginTurn { calls });
                if let Some(error) = self.log_failure() {
                    self.apply(cancel_without_log(&error));
                }
            }
            Message::Input(input) => {
                if matches!(input, Input::Message { .. }) {
                    // The message comes after the previous turn.
                    self.abandon_recoveries();
                    self.write_held_back();
                }
                self.apply(input);
            }
            Message::Submit(input, reply) => {
                if let Ok(place) = u32::try_from(self.run_state.appeared()) {
                    self.submitters.insert(CallIndex::new(place), reply);
                }
                self.apply(input);
            }
            Message::Submitted { call, reply } => {
                let call = CallIndex::new(call);
                self.submitters.insert(call, reply);
                if (self.run_state.call(call)).is_some_and(|entry| entry.result.is_some()) {
                    self.send_result(call);
                }
            }
            Message::EndReply {
                stop,
                usage,
                items,
                reply,
            } => {
                if let Some((turn, _)) = self.run_state.last_turn() {
                    self.replies.insert(turn, reply);
                }
                self.apply(Input::EndReply { stop, usage, items });
            }
            Message::Collect(reply) => match self.run_state.last_turn() {
                Some((turn, true)) => self.send_results(turn, reply),
                Some((turn, false)) => {
                    self.replies.insert(turn, reply);
                }
                // The sender is dropped, so the receiver gets an error.
                None => {}
            },
            Message::Abandon => {
                self.cancel("the turn was dropped");
                self.apply(Input::EndReply {
                    stop: Stop::Broken,
                    usage: None,
                    items: Vec::new(),
                });
            }
            Message::Cancel => self.cancel("the run was cancelled"),
            Message::CatchUp(reply) => self.catching_up.push(reply),
        }
    }

    /// Applies the inputs that were decided, one by one, until there is none.
    fn apply_decided(&mut self) {
        loop {
            while let Some(input) = self.decided.pop_front() {
                self.apply(input);
            }
            if !self.end_unknown_if_idle() {
                return;
            }
        }
    }

    /// Applies an input to the run state and carries out the resulting commands.
    fn apply(&mut self, input: Input) {
        self.run_state.apply(input, self.begun.elapsed());
        self.run_commands();
    }

    fn run_commands(&mut self) {
        for event in std::mem::take(&mut self.run_state.events) {
            self.publish(event);
        }
        while let Some(command) = self.run_state.commands.pop_front() {
            match command {
                Command::Ask(call) => self.ask(call),
                Command::Start(call) => self.start(call),
                Command::Stop(call) => self.stop(call),
                Command::Forget(call) => {
                    if let Some(task) = self.waiting.remove(&call) {
                        task.abort();
                    }
                }
                Command::Deliver(call) => self.send_result(call),
                Command::Close(turn) => {
                    if self.run_state.last_turn() == Some((turn, true)) {
                        self.deadline = None;
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

    fn cancel(&mut self, reason: &str) {
        let reason = reason.into();
        self.cancel_with(Input::Cancel {
            reason,
            timed_out: false,
        });
    }

    /// Stops all tools, also those that may continue after the log failed. The outcome of interrupted calls stays unknown,
    /// because a cancellation does not determine it.
    fn cancel_with(&mut self, cancel: Input) {
        for running in self.running.values_mut() {
            running.stop();
        }
        if self.held_back.is_empty() || self.run_state.opened().is_some() {
            self.apply(cancel);
        }
        self.abandon_recoveries();
    }

    /// Ends all interrupted calls as `unknown`, without waiting for the gate.
    fn abandon_recoveries(&mut self) {
        self.end_unknown();
        for call in std::mem::take(&mut self.recovering) {
            if let Some(task) = self.waiting.remove(&call) {
                task.abort();
            }
            self.end_as_unknown(call, None);
        }
    }

    fn time_out_turn(&mut self) {
        self.deadline = None;
        for running in self.running.values_mut() {
            // A call that was stopped already ends as cancelled.
            running.turn_timed_out = !running.was_cancelled;
        }
        let time = self.run_state.policy.turn_timeout.unwrap_or_default();
        self.cancel_with(Input::Cancel {
            reason: format!(
                "the turn exceeded its time limit of {}",
                format_duration(time)
            )
            .into(),
            timed_out: true,
        });
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

fn cancel_without_log(error: &str) -> Input {
    Input::Cancel {
        reason: format!("the log could not be written ({error})").into(),
        timed_out: false,
    }
}
