//! What a record tells: turns, their transcripts, and what became of each call. It is what `plaincall show` prints, and
//! as JSON it is the data of the page.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use plaincall::{
    Admission, Appeared, ArgumentTexts, Because, Cancel, Dialect, DirectoryBegin, Effect, Policy,
    RunEvent, Status, Stop, Told, ToolBegin,
};
use serde::{Serialize, Serializer};

use crate::report::transcript::{self, Delta, Segment};
use crate::terminal::call_table::CallTable;
use crate::terminal::critical::critical;

/// All that a record tells.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Story {
    pub(crate) begin: Option<Begin>,
    pub(crate) turns: Vec<Turn>,
    pub(crate) calls: Vec<Call>,
    /// When the run was taken up again.
    #[serde(serialize_with = "all_milliseconds")]
    pub(crate) resumed: Vec<Duration>,
    /// When the last thing happened that stands in the record.
    #[serde(rename = "end_ms", serialize_with = "milliseconds")]
    pub(crate) end: Duration,
    /// What is wrong with the record itself, in sentences.
    pub(crate) problems: Vec<String>,
}

/// What holds for the whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Begin {
    pub(crate) version: u32,
    pub(crate) plaincall: String,
    pub(crate) began_unix_ms: u64,
    pub(crate) policy: Policy,
    pub(crate) tools: BTreeMap<String, ToolBegin>,
    pub(crate) current_directory: Option<String>,
    pub(crate) directory: Option<DirectoryBegin>,
}

/// One reply, and when it was what.
#[derive(Debug, Serialize)]
pub(crate) struct Turn {
    /// Its number, from 0.
    pub(crate) number: u32,
    #[serde(rename = "opened_ms", serialize_with = "milliseconds")]
    pub(crate) opened: Duration,
    /// When the reply was over.
    #[serde(rename = "over_ms", serialize_with = "maybe_milliseconds")]
    pub(crate) over: Option<Duration>,
    pub(crate) stop: Option<Stop>,
    /// When all its calls had ended.
    #[serde(rename = "ended_ms", serialize_with = "maybe_milliseconds")]
    pub(crate) ended: Option<Duration>,
    pub(crate) cancel: Option<Cancel>,
    /// What the model was told before it, but for results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) told: Vec<Told>,
    /// The number of its first call.
    pub(crate) first_call: u32,
    /// The reply: text, and calls in their places.
    pub(crate) segments: Vec<Segment>,
    /// Whether the calls stand where they were written; otherwise they stand where they were noticed.
    pub(crate) is_exact: bool,
    #[serde(skip)]
    pub(crate) table: CallTable,
    #[serde(skip)]
    deltas: Vec<Delta>,
}

/// One call, from its header to its end.
#[derive(Debug, Serialize)]
pub(crate) struct Call {
    /// Its place in order of appearance, from 0.
    pub(crate) number: u32,
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    /// The place of its turn, from 0.
    pub(crate) turn: usize,
    pub(crate) effect: Option<Effect>,
    pub(crate) dependencies: Vec<Dependency>,
    /// The call as it was written, if it never was complete; else its arguments say it.
    pub(crate) source: Option<String>,
    /// Its arguments as they were written.
    #[serde(serialize_with = "pairs")]
    pub(crate) arguments: Option<ArgumentTexts>,
    /// Why only the gate itself could let it run: the end of a sentence that begins with "this call".
    pub(crate) held: Option<String>,
    pub(crate) admission: Option<Admission>,
    /// The arguments with which it ran, if somebody changed them.
    #[serde(serialize_with = "pairs")]
    pub(crate) edited: Option<ArgumentTexts>,
    pub(crate) attempts: Vec<Attempt>,
    /// How it ended; nothing if the record does not say.
    #[serde(serialize_with = "status_name")]
    pub(crate) status: Option<Status>,
    pub(crate) output: Option<Arc<str>>,
    pub(crate) error: Option<Arc<str>>,
    pub(crate) note: Option<Arc<str>>,
    pub(crate) because: Option<Because>,
    /// Where it stood when the record ended, if it has no end.
    pub(crate) open: Option<Open>,
    #[serde(rename = "appeared_ms", serialize_with = "milliseconds")]
    pub(crate) appeared: Duration,
    #[serde(rename = "complete_ms", serialize_with = "maybe_milliseconds")]
    pub(crate) complete: Option<Duration>,
    #[serde(rename = "ready_ms", serialize_with = "maybe_milliseconds")]
    pub(crate) ready: Option<Duration>,
    #[serde(rename = "ended_ms", serialize_with = "maybe_milliseconds")]
    pub(crate) ended: Option<Duration>,
    /// Whether it is one of those that decided how long the turn took.
    pub(crate) is_critical: bool,
}

/// An id that a call names, and what it means.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Dependency {
    pub(crate) id: String,
    pub(crate) call: Option<u32>,
}

/// One start of a call.
#[derive(Debug, Serialize)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    #[serde(rename = "started_ms", serialize_with = "milliseconds")]
    pub(crate) started: Duration,
    #[serde(rename = "ended_ms", serialize_with = "maybe_milliseconds")]
    pub(crate) ended: Option<Duration>,
    /// Why it was not the last one.
    pub(crate) error: Option<Arc<str>>,
    /// How long the call was to wait after it.
    #[serde(rename = "wait_ms", serialize_with = "maybe_milliseconds")]
    pub(crate) wait: Option<Duration>,
    /// Whether the run was broken off while it ran.
    pub(crate) is_cut_off: bool,
}

/// A call without an end.
#[derive(Debug, Serialize)]
pub(crate) struct Open {
    pub(crate) stage: Stage,
    /// What taking up the run again does about it: the end of a sentence.
    pub(crate) resume: &'static str,
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    Writing,
    Waiting,
    Ready,
    Admitted,
    Running,
    BackOff,
}

impl Stage {
    /// The end of the sentence "cut off".
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::Writing => "while it was being written",
            Self::Waiting => "while it waited for other calls",
            Self::Ready => "before anybody had decided whether it may run",
            Self::Admitted => "while it waited for a slot",
            Self::Running => "while it ran",
            Self::BackOff => "while it waited for another attempt",
        }
    }
}

/// What taking up the run again does about a call without an end.
fn resume(stage: Stage, effect: Option<Effect>, is_called_off: bool) -> &'static str {
    let is_unsure =
        stage == Stage::Running && !matches!(effect, Some(Effect::Read | Effect::Idempotent));
    if is_called_off && !is_unsure {
        return "starts nothing more, since all calls were called off: it ends cancelled";
    }
    match (stage, effect) {
        (Stage::Running, Some(Effect::Read)) => "runs it again: its tool changes nothing",
        (Stage::Running, Some(Effect::Idempotent)) => {
            "runs it again: doing it twice is the same as doing it once"
        }
        (Stage::Running, _) => {
            "does not run it again by itself, since it may have done its work: a person says what became of it, or it ends unknown"
        }
        (Stage::Writing, _) => "runs it if the rest of its text is at hand",
        (Stage::Waiting, _) => "goes on waiting",
        (Stage::Ready, _) => "asks whether it may run",
        (Stage::Admitted, _) => "starts it",
        (Stage::BackOff, _) => "starts it again at once",
    }
}

impl Story {
    /// The story of these events, with the reply read as the run read it.
    pub(crate) fn of(events: &[RunEvent], dialect: &Dialect) -> Self {
        let mut teller = Teller::default();
        for event in events {
            teller.take(event);
        }
        teller.finish(dialect)
    }

    /// The calls of a turn.
    pub(crate) fn calls_of(&self, turn: usize) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(move |call| call.turn == turn)
    }
}

/// Events on their way to a story.
#[derive(Debug, Default)]
struct Teller {
    story: Story,
    /// Where each call stands.
    stages: Vec<Stage>,
    /// What the model was told since the last turn was opened.
    told: Vec<Told>,
}

impl Teller {
    fn take(&mut self, event: &RunEvent) {
        self.story.end = self.story.end.max(event.at());
        if let RunEvent::Turn(turn) = event {
            self.open_turn(turn.turn, turn.at);
        }
        match event {
            RunEvent::Told(told) => {
                self.told.push(told.clone());
                return;
            }
            RunEvent::Run(run) => {
                self.story.begin = Some(Begin {
                    version: run.version,
                    plaincall: run.plaincall.clone(),
                    began_unix_ms: run.began_unix_ms,
                    policy: run.policy,
                    tools: run.tools.clone(),
                    current_directory: run.current_directory.clone(),
                    directory: run.directory.clone(),
                });
                return;
            }
            RunEvent::Resumed(resumed) => {
                self.story.resumed.push(resumed.at);
                self.cut_off_attempts();
                return;
            }
            RunEvent::DamagedEnd(damaged) => {
                self.story.problems.push(format!(
                    "{} damaged bytes may have been the start of a call that writes; it counts as started",
                    damaged.bytes
                ));
                return;
            }
            RunEvent::End(end) => {
                // A turn that was left may end after the next one has begun.
                if let Some(turn) = self
                    .story
                    .turns
                    .iter_mut()
                    .find(|turn| turn.number == end.turn)
                {
                    turn.ended = Some(end.at);
                }
                return;
            }
            RunEvent::Turn(_)
            | RunEvent::Heard(_)
            | RunEvent::LogFailed(_)
            | RunEvent::Missed(_) => return,
            _ => {}
        }
        let turn = self.turn();
        turn.table.take_run_event(event);
        match event {
            RunEvent::Text(delta) => turn.deltas.push(Delta::Source(delta.source.clone())),
            RunEvent::Call(appeared) => {
                turn.deltas.push(Delta::Call(Arc::new(appeared.clone())));
                self.appear(appeared);
            }
            RunEvent::Cancel(cancel) => turn.cancel = Some(cancel.clone()),
            RunEvent::Over(over) => {
                turn.over = Some(over.at);
                turn.stop = Some(over.stop);
            }
            event => self.about_call(event),
        }
    }

    /// The turn that is open. A record that is damaged may lack its beginning.
    fn turn(&mut self) -> &mut Turn {
        if self.story.turns.is_empty() {
            self.open_turn(0, Duration::ZERO);
        }
        let last = self.story.turns.len().saturating_sub(1);
        #[allow(
            clippy::indexing_slicing,
            reason = "there is a turn, if need be since just now"
        )]
        &mut self.story.turns[last]
    }

    fn open_turn(&mut self, number: u32, opened: Duration) {
        let first_call = u32::try_from(self.story.calls.len()).unwrap_or(u32::MAX);
        self.story.turns.push(Turn {
            number,
            opened,
            over: None,
            stop: None,
            ended: None,
            cancel: None,
            told: std::mem::take(&mut self.told),
            first_call,
            segments: Vec::new(),
            is_exact: false,
            table: CallTable::of_turn(opened, first_call),
            deltas: Vec::new(),
        });
    }

    fn appear(&mut self, appeared: &Appeared) {
        let tools = self.story.begin.as_ref().map(|begin| &begin.tools);
        let tool = tools.and_then(|tools| tools.get(&*appeared.name));
        self.story.calls.push(Call {
            number: u32::try_from(self.story.calls.len()).unwrap_or(u32::MAX),
            id: Arc::clone(&appeared.id),
            name: Arc::clone(&appeared.name),
            turn: self.story.turns.len().saturating_sub(1),
            effect: tool.map(|tool| tool.effect),
            dependencies: appeared
                .dependencies
                .iter()
                .map(|id| Dependency {
                    id: id.clone(),
                    call: None,
                })
                .collect(),
            source: None,
            arguments: None,
            held: None,
            admission: None,
            edited: None,
            attempts: Vec::new(),
            status: None,
            output: None,
            error: None,
            note: None,
            because: None,
            open: None,
            appeared: appeared.at,
            complete: None,
            ready: None,
            ended: None,
            is_critical: false,
        });
        self.stages.push(Stage::Writing);
    }

    /// Takes what happened to a call.
    fn about_call(&mut self, event: &RunEvent) {
        let Some(place) = event.call().map(|call| call as usize) else {
            return;
        };
        let (Some(call), Some(stage)) =
            (self.story.calls.get_mut(place), self.stages.get_mut(place))
        else {
            return;
        };
        match event {
            RunEvent::Waiting(waiting) => {
                call.complete = Some(waiting.at);
                call.arguments = Some(waiting.arguments.clone());
                *stage = Stage::Waiting;
            }
            RunEvent::Ready(ready) => {
                call.ready = Some(ready.at);
                call.held = ready.held.as_ref().map(ToString::to_string);
                *stage = Stage::Ready;
            }
            RunEvent::Admitted(admission) => {
                call.edited.clone_from(&admission.arguments);
                call.admission = Some(Admission {
                    arguments: None,
                    ..admission.clone()
                });
                *stage = Stage::Admitted;
            }
            RunEvent::Start(start) => {
                call.attempts.push(Attempt {
                    number: start.attempt,
                    started: start.at,
                    ended: None,
                    error: None,
                    wait: None,
                    is_cut_off: false,
                });
                *stage = Stage::Running;
            }
            RunEvent::BackOff(back_off) => {
                if let Some(attempt) = call.attempts.last_mut() {
                    attempt.ended = Some(back_off.at);
                    attempt.error = Some(Arc::clone(&back_off.error));
                    attempt.wait = Some(back_off.wait);
                }
                *stage = Stage::BackOff;
            }
            RunEvent::Retry(_) => {
                // What is started again without having failed was cut off.
                if let Some(attempt) = call.attempts.last_mut() {
                    attempt.is_cut_off |= attempt.ended.is_none();
                }
                *stage = Stage::BackOff;
            }
            RunEvent::Result(result) => {
                let last = call.attempts.last_mut();
                if let Some(attempt) = last.filter(|it| it.ended.is_none() && !it.is_cut_off) {
                    attempt.ended = Some(result.times.ended);
                }
                call.status = Some(result.status);
                call.output.clone_from(&result.output);
                call.error.clone_from(&result.error);
                call.note.clone_from(&result.note);
                call.because.clone_from(&result.because);
                call.ended = Some(result.times.ended);
            }
            _ => {}
        }
    }

    /// What ran was broken off.
    fn cut_off_attempts(&mut self) {
        let open = self
            .story
            .calls
            .iter_mut()
            .filter(|call| call.status.is_none());
        for attempt in open.flat_map(|call| &mut call.attempts) {
            attempt.is_cut_off |= attempt.ended.is_none();
        }
    }

    fn finish(mut self, dialect: &Dialect) -> Story {
        self.cut_off_attempts();
        let Self {
            mut story, stages, ..
        } = self;
        for turn in &mut story.turns {
            let deltas = std::mem::take(&mut turn.deltas);
            let read = transcript::read(&deltas, turn.first_call, dialect);
            turn.segments = read.segments;
            turn.is_exact = read.is_exact;
            let numbers = turn.first_call as usize..;
            for (call, source) in story.calls.iter_mut().skip(numbers.start).zip(read.sources) {
                call.source = call.arguments.is_none().then_some(source);
            }
            let calls = story.calls.iter_mut().skip(numbers.start);
            for (call, is_critical) in calls.zip(critical(&turn.table)) {
                call.is_critical = is_critical;
            }
        }
        for (call, stage) in story.calls.iter_mut().zip(stages) {
            if call.status.is_none() {
                let turn = story.turns.get(call.turn);
                let is_called_off = turn.is_some_and(|turn| turn.cancel.is_some());
                call.open = Some(Open {
                    stage,
                    resume: resume(stage, call.effect, is_called_off),
                });
            }
        }
        settle_dependencies(&mut story);
        story
    }
}

/// Finds for each dependency the call that it means (`spec/running.md`): an earlier call of the turn, else the latest of
/// an earlier turn, else the first later one of the turn.
fn settle_dependencies(story: &mut Story) {
    let mut calls_of: HashMap<Arc<str>, Vec<(usize, u32)>> = HashMap::new();
    for call in &story.calls {
        let calls = calls_of.entry(Arc::clone(&call.id)).or_default();
        calls.push((call.turn, call.number));
    }
    for call in &mut story.calls {
        for dependency in &mut call.dependencies {
            let own = dependency.id == *call.id;
            let calls = calls_of.get(dependency.id.as_str());
            let calls = calls.map(Vec::as_slice).unwrap_or_default();
            let of_turn = || calls.iter().filter(|(turn, _)| *turn == call.turn);
            let earlier_turn = || calls.iter().rfind(|(turn, _)| *turn < call.turn);
            let meant = of_turn()
                .find(|(_, number)| *number < call.number || own)
                .or_else(earlier_turn)
                .or_else(|| of_turn().next());
            dependency.call = meant.map(|(_, number)| *number);
        }
    }
}

fn whole(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn milliseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(whole(*time))
}

#[allow(clippy::ref_option, reason = "the form that serde asks for")]
fn maybe_milliseconds<S: Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(whole).serialize(serializer)
}

fn all_milliseconds<S: Serializer>(times: &[Duration], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(times.iter().map(|time| whole(*time)))
}

#[allow(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
fn status_name<S: Serializer>(status: &Option<Status>, serializer: S) -> Result<S::Ok, S::Error> {
    status.map(Status::as_str).serialize(serializer)
}

/// Arguments as a list: an object could not keep two values of one pointer apart, nor their order in every reader.
#[allow(clippy::ref_option, reason = "the form that serde asks for")]
fn pairs<S: Serializer>(
    arguments: &Option<ArgumentTexts>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    arguments.as_ref().map(|it| &it.0).serialize(serializer)
}
