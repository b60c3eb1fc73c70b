//! Where each call of a run stands, from what the run has told.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plaincall::{CallResult, RunEvent, Times};

use crate::run::news::About;

/// All calls of a run, or of one of its turns, in order of appearance.
#[derive(Debug)]
pub(crate) struct Board {
    begun: Instant,
    /// The number of the first call; those before belong to earlier turns.
    first_call: u32,
    /// When what is shown begins, from the beginning of the run.
    from: Duration,
    /// When the last thing happened that the board has heard of, from the beginning of the run.
    last: Duration,
    calls: Vec<Call>,
    /// The first call of each id: that is the one which a dependency means.
    first: HashMap<Arc<str>, usize>,
    /// When the reply was over, from the beginning of the run.
    reply_end: Option<Duration>,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) dependencies: Arc<[String]>,
    pub(crate) state: State,
    /// When it reached the stations of its life, as far as it did.
    pub(crate) times: Times,
}

/// Where a call stands.
#[derive(Debug)]
pub(crate) enum State {
    /// Its text is still arriving.
    Writing,
    /// It waits for its dependencies or for its place in the order of writing.
    Waiting,
    /// It waits for a slot, if nobody has to be asked.
    Ready,
    /// Somebody is being asked whether it may run.
    Asking,
    /// Somebody is being asked what became of it.
    AskingFate,
    /// It has failed and will be started again.
    Resting,
    /// It runs since this time, from the beginning of the run.
    Running(Duration),
    /// It has ended.
    Ended(Box<CallResult>),
}

impl Board {
    /// An empty board for a run that began at this moment.
    pub(crate) fn new(begun: Instant) -> Self {
        Self {
            begun,
            first_call: 0,
            from: Duration::ZERO,
            last: Duration::ZERO,
            calls: Vec::new(),
            first: HashMap::new(),
            reply_end: None,
        }
    }

    /// An empty board for a turn that was opened at this time from the beginning of the run, after so many calls of
    /// earlier turns.
    pub(crate) fn of_turn(from: Duration, first_call: u32) -> Self {
        Self {
            first_call,
            from,
            ..Self::new(Instant::now())
        }
    }

    /// Takes note of what has happened.
    pub(crate) fn take(&mut self, event: &RunEvent) {
        self.last = self.last.max(event.at());
        match event {
            RunEvent::Call(appeared) => {
                self.first
                    .entry(Arc::clone(&appeared.id))
                    .or_insert(self.calls.len());
                self.calls.push(Call {
                    id: Arc::clone(&appeared.id),
                    name: Arc::clone(&appeared.name),
                    dependencies: Arc::clone(&appeared.dependencies),
                    state: State::Writing,
                    times: Times {
                        appeared: appeared.at,
                        ..Times::default()
                    },
                });
            }
            RunEvent::Waiting(moment) => {
                if let Some(call) = self.call_mut(moment.call) {
                    call.state = State::Waiting;
                    call.times.complete = Some(moment.at);
                }
            }
            RunEvent::Ready(_) | RunEvent::Retry(_) => {
                if let Some(call) = event.call().and_then(|call| self.call_mut(call)) {
                    call.state = State::Ready;
                }
            }
            RunEvent::Start(moment) => {
                if let Some(call) = self.call_mut(moment.call) {
                    call.state = State::Running(moment.at);
                    call.times.started = Some(moment.at);
                }
            }
            RunEvent::BackOff(back_off) => {
                if let Some(call) = self.call_mut(back_off.call) {
                    call.state = State::Resting;
                }
            }
            RunEvent::Over(over) => self.reply_end = Some(over.at),
            RunEvent::Result(result) => {
                if let Some(call) = self.call_mut(result.call) {
                    // In a record only its end stands in the line of a result.
                    call.times = Times {
                        appeared: call.times.appeared,
                        complete: call.times.complete.or(result.times.complete),
                        started: call.times.started.or(result.times.started),
                        ended: result.times.ended,
                    };
                    call.state = State::Ended(Box::new(CallResult {
                        times: call.times,
                        ..result.clone()
                    }));
                }
            }
            // What says nothing about a single call.
            _ => {}
        }
    }

    fn call_mut(&mut self, call: u32) -> Option<&mut Call> {
        let index = call.checked_sub(self.first_call)?;
        self.calls.get_mut(index as usize)
    }

    /// Notes that somebody is asked about the call.
    pub(crate) fn ask(&mut self, call: u32, about: About) {
        if let Some(call) = self.call_mut(call) {
            match (about, &call.state) {
                (About::Permission, State::Ready) => call.state = State::Asking,
                (About::Fate, State::Running(_)) => call.state = State::AskingFate,
                _ => {}
            }
        }
    }

    /// Notes that nobody is asked about it any more.
    pub(crate) fn end_question(&mut self, call: u32) {
        if let Some(call) = self.call_mut(call)
            && matches!(call.state, State::Asking | State::AskingFate)
        {
            call.state = State::Ready;
        }
    }

    /// When what is shown begins, from the beginning of the run.
    pub(crate) fn from(&self) -> Duration {
        self.from
    }

    /// When what is shown ends: the last call, the reply, or what has been heard of last if a call never ended.
    pub(crate) fn to(&self) -> Duration {
        let ends = self.calls.iter().map(|call| match call.result() {
            Some(result) => result.times.ended,
            None => self.last,
        });
        let end = ends.chain(self.reply_end).max();
        end.unwrap_or_default().max(self.from)
    }

    /// When the reply was over, from the beginning of the run.
    pub(crate) fn reply_end(&self) -> Option<Duration> {
        self.reply_end
    }

    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The time since the beginning of the run.
    pub(crate) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The call that a dependency means, as far as it has appeared.
    pub(crate) fn meant_by(&self, id: &str) -> Option<(usize, &Call)> {
        let index = *self.first.get(id)?;
        Some((index, self.calls.get(index)?))
    }

    /// The ids of the dependencies that have not ended.
    pub(crate) fn open_dependencies<'a>(&'a self, call: &'a Call) -> impl Iterator<Item = &'a str> {
        let ids = call.dependencies.iter().map(String::as_str);
        ids.filter(|id| {
            let call = self.meant_by(id);
            call.is_none_or(|(_, call)| call.result().is_none())
        })
    }

    /// How many calls are in which state.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for call in &self.calls {
            match &call.state {
                State::Writing => counts.writing += 1,
                State::Waiting | State::Ready | State::Resting => counts.waiting += 1,
                State::Asking | State::AskingFate => counts.asking += 1,
                State::Running(_) => counts.running += 1,
                State::Ended(result) if result.status == plaincall::Status::Ok => counts.ok += 1,
                State::Ended(_) => counts.not_ok += 1,
            }
        }
        counts
    }
}

/// How many calls are in which state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) writing: usize,
    pub(crate) waiting: usize,
    pub(crate) asking: usize,
    pub(crate) running: usize,
    pub(crate) ok: usize,
    pub(crate) not_ok: usize,
}

impl Call {
    /// How it ended, if it has.
    pub(crate) fn result(&self) -> Option<&CallResult> {
        match &self.state {
            State::Ended(result) => Some(result),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::{Duration, Instant};

    use plaincall::{CallResult, RunEvent, Status, Times};

    use super::Board;

    /// A run that is over, from lines such as `b: a | 0 10 20 30`: the id, the dependencies, and when the call
    /// appeared, was complete, started and ended, in milliseconds; `-` for what never happened.
    pub(crate) fn board(text: &str, reply_end: u64) -> Board {
        let begun = Instant::now();
        let mut board = Board::new(begun);
        for (call, line) in text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .enumerate()
        {
            let (head, times) = line.split_once('|').unwrap();
            let (id, dependencies) = head.split_once(':').unwrap_or((head, ""));
            let dependencies: Vec<String> =
                dependencies.split_whitespace().map(str::to_owned).collect();
            let mut times = times
                .split_whitespace()
                .map(|time| time.parse().ok().map(Duration::from_millis));
            let appeared = times.next().flatten().unwrap();
            let (complete, started) = (times.next().flatten(), times.next().flatten());
            let result = CallResult {
                call: u32::try_from(call).unwrap(),
                id: id.trim().into(),
                name: "tool".into(),
                status: if started.is_some() {
                    Status::Ok
                } else {
                    Status::Skipped
                },
                whole_bytes: None,
                call_error: None,
                note: None,
                untrusted: None,
                output: None,
                error: None,
                because: None,
                times: Times {
                    appeared,
                    complete,
                    started,
                    ended: times.next().flatten().unwrap(),
                },
            };
            board.take(&RunEvent::Call(plaincall::Appeared {
                call: result.call,
                id: result.id.clone(),
                name: result.name.clone(),
                dependencies: dependencies.into(),
                submitted: None,
                parent: None,
                at: appeared,
            }));
            board.take(&RunEvent::Result(result));
        }
        board.take(&RunEvent::Over(plaincall::Over {
            stop: plaincall::Stop::Natural,
            at: Duration::from_millis(reply_end),
        }));
        board
    }
}
