//! The task that runs the calls of a run.
//!
//! It sleeps until a piece of the reply has been read, a gate has decided, a tool has ended, a time is over or the log
//! has been written; then it tells the [`RunState`] and does what that says. Nothing is polled. It lives until the run
//! is dropped and all that was running has ended.
//!
//! With a log, what is told to anybody is written down first: events and results wait in the outbox until their line
//! is safe, and a tool that may change something waits until the line of its start is.

mod calls;
mod outbox;

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::pending;
use std::hash::RandomState;
use std::sync::Arc;

use plaincall_call::{ReplyItem, Stop};
use plaincall_plan::CallIndex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::{self, AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

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
use crate::work::{Ended, Transform, in_words};

pub(crate) enum Message {
    Listen(Listener),
    /// Something that goes on to the run state as it is.
    Input(Input),
    Open {
        /// Where the spans of its calls belong.
        parent: Parent,
        /// How many calls it may hold, if it has a limit of its own.
        calls: Option<u32>,
    },
    /// A call is submitted. Its result is sent when it has ended.
    Submit(Input, oneshot::Sender<CallResult>),
    /// The result of a call is wanted that was submitted before the run was taken up again.
    Submitted {
        call: u32,
        reply: oneshot::Sender<CallResult>,
    },
    /// The reply is over. The results are sent when all its calls have ended.
    Over {
        stop: Stop,
        read: Vec<ReplyItem<'static>>,
        reply: oneshot::Sender<TurnResults>,
    },
    /// The results of the last turn are wanted, whose reply was over when the run was taken up again.
    Collect(oneshot::Sender<TurnResults>),
    /// The turn was dropped before its results were there.
    Abandon,
    Cancel,
    /// Somebody wants to know when all that came before has been taken, and little waits for the log.
    CatchUp(oneshot::Sender<()>),
}

pub(crate) struct DriverConfig {
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) transform: Option<Arc<Transform>>,
    pub(crate) shared: Arc<RunContext>,
    pub(crate) recorder: Option<Recorder>,
    /// The first event of the run.
    pub(crate) begin: Arc<RunBegin>,
    /// Where the spans of the present turn's calls belong; at first those of the calls that are taken up again.
    pub(crate) parent: Parent,
    /// Whether calls are called off that had not ended when the run was cut off.
    pub(crate) cancels_unfinished: bool,
}

pub(crate) struct Driver {
    config: DriverConfig,
    run_state: RunState,
    begun: Instant,
    listeners: Listeners,
    /// What waits until the line of this number is safe.
    outbox: VecDeque<(u64, PendingDelivery)>,
    /// The number of the last line.
    last_line: u64,
    /// Events that are not written down before the conversation goes on: somebody may still say what became of a call.
    held_back: Vec<RunEvent>,
    /// The calls of which nobody knows what became.
    unsettled: HashSet<u32>,
    /// What is known already and waits for its turn. Each is given alone, so that a log can be read again.
    decided: VecDeque<Input>,
    /// The tools of which all calls may run.
    always: HashSet<Arc<str>>,
    tasks: JoinSet<Done>,
    /// What each task does, for those that panic.
    doing: HashMap<task::Id, (CallIndex, Doing)>,
    running: HashMap<CallIndex, Running>,
    /// The tasks of calls that are not running: they are asked about, or wait to be tried again.
    waiting: HashMap<CallIndex, AbortHandle>,
    /// The calls that were cut off by a crash, of which somebody has said that nobody knows what became of them. They end
    /// last in their turn: what follows from their end is not written down, and must not change what is.
    unknown: Vec<(CallIndex, Option<BoxError>)>,
    /// The calls that were cut off by a crash, and about which somebody is asked.
    settling: HashSet<CallIndex>,
    /// How many bytes of results have been passed on to calls that depend on others.
    passed_on: usize,
    /// The calls before this one were there when the run was taken up again from its log.
    taken_up: usize,
    /// Who waits for the results of a turn.
    replies: HashMap<usize, oneshot::Sender<TurnResults>>,
    /// Who waits for the results of submitted calls.
    submitters: HashMap<CallIndex, oneshot::Sender<CallResult>>,
    /// When the time of the present turn is over.
    deadline: Option<Instant>,
    /// Who waits until little waits for the log.
    catching_up: Vec<oneshot::Sender<()>>,
    /// For how long a call waits before it is tried again.
    chances: (RandomState, u64),
}

/// What is kept until the log is written.
enum PendingDelivery {
    Listener(Listener),
    Event(RunEvent),
    Results(oneshot::Sender<TurnResults>, TurnResults),
    Result(oneshot::Sender<CallResult>, Box<CallResult>),
}

struct Running {
    cancellation: CancellationToken,
    /// It was called off. The token alone does not say that: it is set too when the tool's own time is over.
    was_stopped: bool,
    /// It is stopped because the time of its turn is over.
    is_overtime: bool,
}

impl Running {
    fn stop(&mut self) {
        self.was_stopped = true;
        self.cancellation.cancel();
    }
}

enum Done {
    Asked(Result<Decision, BoxError>),
    Settled(Result<Recovery, BoxError>),
    Worked(Ended),
    Rested,
}

#[derive(Clone, Copy)]
enum Doing {
    Asking,
    Settling,
    Working,
    Resting,
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
            unsettled: HashSet::new(),
            decided: VecDeque::new(),
            always: HashSet::new(),
            tasks: JoinSet::new(),
            doing: HashMap::new(),
            running: HashMap::new(),
            waiting: HashMap::new(),
            unknown: Vec::new(),
            settling: HashSet::new(),
            passed_on: 0,
            taken_up: 0,
            replies: HashMap::new(),
            submitters: HashMap::new(),
            deadline: None,
            catching_up: Vec::new(),
            chances: (RandomState::new(), 0),
        }
    }

    /// Runs until the run is dropped. With `replayed` it first takes up what the log says.
    pub(crate) async fn run(
        mut self,
        mut inbox: UnboundedReceiver<Message>,
        replayed: Option<Replayed>,
    ) {
        self.hear();
        match replayed {
            Some(replayed) => {
                // Whoever listens from the beginning hears what is done now.
                let mut early = Vec::new();
                while let Ok(message) = inbox.try_recv() {
                    match message {
                        Message::Listen(_) => self.take(message),
                        other => early.push(other),
                    }
                }
                self.take_up(replayed);
                for message in early {
                    self.settle_down();
                    self.take(message);
                }
            }
            None if self.config.recorder.is_some() => {
                self.publish(RunEvent::Run(Box::new((*self.config.begin).clone())));
            }
            None => {}
        }
        let mut is_open = true;
        loop {
            self.settle_down();
            self.let_catch_up();
            let is_writing = self.config.recorder.as_ref().is_some_and(Recorder::is_busy);
            tokio::select! {
                biased;
                progress = progress(&mut self.config.recorder), if is_writing => self.written(progress),
                Some(joined) = self.tasks.join_next_with_id() => self.joined(joined),
                () = sleep_until(self.deadline.unwrap_or(self.begun)), if self.deadline.is_some() => self.run_out_of_time(),
                message = inbox.recv(), if is_open => {
                    if let Some(message) = message {
                        self.take(message);
                    } else {
                        // The run was dropped: what still runs is called off.
                        is_open = false;
                        // A turn that was forgotten instead of dropped never closes.
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
        // If somebody may still say what became of a call, the run can be taken up once more.
        if is_written
            && self.unsettled.is_empty()
            && let Some(directory) = &self.config.shared.directory
        {
            directory.let_go();
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Listen(listener) => {
                self.listen(listener);
            }
            Message::Open { parent, calls } => {
                self.give_up_questions();
                self.write_what_was_held_back();
                self.config.parent = parent;
                let time = self.run_state.policy.turn_timeout;
                self.deadline = time.and_then(|time| Instant::now().checked_add(time));
                self.give(Input::Open { calls });
                if let Some(error) = self.log_failure() {
                    self.give(cancel_without_log(&error));
                }
            }
            Message::Input(input) => {
                if matches!(input, Input::Message { .. }) {
                    // What is told comes after the turn before.
                    self.give_up_questions();
                    self.write_what_was_held_back();
                }
                self.give(input);
            }
            Message::Submit(input, reply) => {
                if let Ok(place) = u32::try_from(self.run_state.appeared()) {
                    self.submitters.insert(CallIndex::new(place), reply);
                }
                self.give(input);
            }
            Message::Submitted { call, reply } => {
                let call = CallIndex::new(call);
                self.submitters.insert(call, reply);
                if (self.run_state.call(call)).is_some_and(|entry| entry.result.is_some()) {
                    self.hand_out_one(call);
                }
            }
            Message::Over { stop, read, reply } => {
                if let Some((turn, _)) = self.run_state.last_turn() {
                    self.replies.insert(turn, reply);
                }
                self.give(Input::Over { stop, read });
            }
            Message::Collect(reply) => match self.run_state.last_turn() {
                Some((turn, true)) => self.hand_out(turn, reply),
                Some((turn, false)) => {
                    self.replies.insert(turn, reply);
                }
                // Nobody answers; whoever waits hears that.
                None => {}
            },
            Message::Abandon => {
                self.cancel("the turn was dropped");
                self.give(Input::Over {
                    stop: Stop::Broken,
                    read: Vec::new(),
                });
            }
            Message::Cancel => self.cancel("the run was cancelled"),
            Message::CatchUp(reply) => self.catching_up.push(reply),
        }
    }

    /// Gives what is known already, one after the other.
    fn settle_down(&mut self) {
        loop {
            while let Some(input) = self.decided.pop_front() {
                self.give(input);
            }
            if !self.give_up_waiting() {
                return;
            }
        }
    }

    /// Tells the run state what happened, and does what it says.
    fn give(&mut self, input: Input) {
        self.run_state.take(input, self.begun.elapsed());
        self.carry_out();
    }

    fn carry_out(&mut self) {
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
                Command::Deliver(call) => self.hand_out_one(call),
                Command::Close(turn) => {
                    if self.run_state.last_turn() == Some((turn, true)) {
                        self.deadline = None;
                        // Otherwise the turn's span would stay open until the next turn.
                        self.config.parent = Parent::none();
                    }
                    if let Some(reply) = self.replies.remove(&turn) {
                        self.hand_out(turn, reply);
                    }
                }
            }
        }
    }

    fn cancel(&mut self, reason: &str) {
        let reason = reason.into();
        self.call_off(Input::Cancel {
            reason,
            timed_out: false,
        });
    }

    /// Stops all tools, also those that were let run when the log failed. Questions about calls that were cut off by a
    /// crash stay open: that they are called off does not say what became of them.
    fn call_off(&mut self, cancel: Input) {
        for running in self.running.values_mut() {
            running.stop();
        }
        if self.held_back.is_empty() || self.run_state.opened().is_some() {
            self.give(cancel);
        }
        self.give_up_questions();
    }

    /// Nobody says any more what became of the calls that a crash has cut off.
    fn give_up_questions(&mut self) {
        self.leave_unknown_open();
        for call in std::mem::take(&mut self.settling) {
            if let Some(task) = self.waiting.remove(&call) {
                task.abort();
            }
            self.leave_open(call, None);
        }
    }

    fn run_out_of_time(&mut self) {
        self.deadline = None;
        for running in self.running.values_mut() {
            // What is being stopped already ends as what it was stopped for.
            running.is_overtime = !running.was_stopped;
        }
        let time = self.run_state.policy.turn_timeout.unwrap_or_default();
        self.call_off(Input::Cancel {
            reason: format!("the turn exceeded its time limit of {}", in_words(time)).into(),
            timed_out: true,
        });
    }

    /// Settles whether anybody wants to know what happens.
    fn hear(&mut self) {
        self.run_state.is_heard = self.config.recorder.is_some() || !self.listeners.is_empty();
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
