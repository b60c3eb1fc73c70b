//! The state of each call, from the events of a run.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use plaincall::{CallResult, RunEvent, result::Times};

use crate::terminal::event::UiEvent;

/// How much of the arguments of a call is kept to be shown, in characters.
const KEPT: usize = 400;

/// All calls of a run, of one of its turns or of a question, in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct CallTable {
    /// The number of the first call, if it is known; those before belong to earlier turns.
    first_call: Option<u32>,
    /// When what is shown begins, from the beginning of the run.
    from: Duration,
    /// The time of the last event, from the beginning of the run.
    last: Duration,
    calls: Vec<Call>,
    /// The first call of each id: that is the one which a dependency means.
    first: HashMap<Arc<str>, usize>,
    /// When the reply was over, from the beginning of the run.
    reply_end: Option<Duration>,
}

#[derive(Debug, Default)]
pub(crate) struct Call {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) dependencies: Arc<[String]>,
    pub(crate) state: State,
    /// When it reached each state, as far as it did.
    pub(crate) times: Times,
    /// The arguments with their names, as far as they are shown; a body has no name.
    pub(crate) arguments: Vec<(Option<Arc<str>>, String)>,
}

#[derive(Debug, Default)]
pub(crate) enum State {
    #[default]
    Writing,
    /// It waits for its dependencies or for its place in the order of writing.
    Waiting,
    /// It waits for a slot, or for an answer whether it may run.
    Ready,
    /// It has failed and will be started again.
    BackingOff,
    /// It runs since this time, from the beginning of the run.
    Running(Duration),
    Ended(Box<CallResult>),
}

impl CallTable {
    /// An empty table for a turn that was opened at this time from the beginning of the run, after so many calls of
    /// earlier turns.
    pub(crate) fn of_turn(from: Duration, first_call: u32) -> Self {
        Self {
            first_call: Some(first_call),
            from,
            ..Self::default()
        }
    }

    /// Takes note of an event that is about a call.
    pub(crate) fn take(&mut self, event: &UiEvent) {
        match event {
            UiEvent::Call { call, id, name } => {
                self.begin(*call, id, name);
            }
            UiEvent::Value {
                call,
                pointer,
                text,
            } => {
                if let Some(call) = self.call_mut(*call) {
                    call.add_value(pointer.as_ref(), text);
                }
            }
            UiEvent::Run(event) => self.take_run_event(event),
            UiEvent::TurnBegin(_) => self.reply_end = None,
            _ => {}
        }
    }

    /// The call of this number, which may be new.
    fn begin(&mut self, call: u32, id: &Arc<str>, name: &Arc<str>) -> Option<&mut Call> {
        self.first_call.get_or_insert(call);
        if self.place(call) == self.calls.len() {
            self.calls.push(Call {
                id: Arc::clone(id),
                name: Arc::clone(name),
                ..Call::default()
            });
        }
        self.call_mut(call)
    }

    /// Takes note of an event of the run.
    pub(crate) fn take_run_event(&mut self, event: &RunEvent) {
        self.last = self.last.max(event.at());
        if let RunEvent::Call(appeared) = event {
            let id = &appeared.id;
            if let Some(call) = self.begin(appeared.call, id, &appeared.name) {
                // The text alone does not say which id a call without one gets.
                call.id = Arc::clone(id);
                call.dependencies = Arc::clone(&appeared.dependencies);
                call.times.appeared = appeared.at;
                let place = self.place(appeared.call);
                self.first.entry(Arc::clone(id)).or_insert(place);
            }
        } else if let RunEvent::ReplyEnd(over) = event {
            self.reply_end = Some(over.at);
        } else if let Some(call) = event.call().and_then(|call| self.call_mut(call)) {
            call.take(event);
        }
    }

    /// The place of the call with this number in the table.
    fn place(&self, call: u32) -> usize {
        let place = self.first_call.and_then(|first| call.checked_sub(first));
        place.map_or(usize::MAX, |place| place as usize)
    }

    fn call_mut(&mut self, call: u32) -> Option<&mut Call> {
        let place = self.place(call);
        self.calls.get_mut(place)
    }

    pub(crate) fn call(&self, call: u32) -> Option<&Call> {
        self.calls.get(self.place(call))
    }

    /// When what is shown begins, from the beginning of the run.
    pub(crate) fn from(&self) -> Duration {
        self.from
    }

    /// The end of the displayed time: the last call, the reply, or the last event if a call never ended.
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

    /// The call that a dependency means, as far as it has appeared.
    pub(crate) fn meant_by(&self, id: &str) -> Option<(usize, &Call)> {
        let index = *self.first.get(id)?;
        Some((index, self.calls.get(index)?))
    }

    /// The ids of the dependencies that have not ended.
    pub(crate) fn open_dependencies<'a>(&'a self, call: &'a Call) -> impl Iterator<Item = &'a str> {
        let is_open = |call: Option<(_, &Call)>| call.is_none_or(|(_, it)| it.result().is_none());
        let ids = call.dependencies.iter().map(String::as_str);
        ids.filter(move |id| is_open(self.meant_by(id)))
    }

    /// The calls that have not ended.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.result().is_none())
    }
}

impl Call {
    pub(crate) fn result(&self) -> Option<&CallResult> {
        match &self.state {
            State::Ended(result) => Some(result),
            _ => None,
        }
    }

    /// How long it ran, if it was started and has ended.
    pub(crate) fn running_time(&self) -> Option<Duration> {
        let times = self.result()?.times;
        Some(times.ended.saturating_sub(times.started?))
    }

    fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Waiting(moment) => {
                self.state = State::Waiting;
                self.times.complete = Some(moment.at);
            }
            RunEvent::Ready(_) | RunEvent::Retry(_) => self.state = State::Ready,
            RunEvent::Start(moment) => {
                self.state = State::Running(moment.at);
                self.times.started = Some(moment.at);
            }
            RunEvent::BackOff(_) => self.state = State::BackingOff,
            RunEvent::Result(result) => {
                // In a log, the line of a result has only its end.
                self.times = Times {
                    appeared: self.times.appeared,
                    complete: self.times.complete.or(result.times.complete),
                    started: self.times.started.or(result.times.started),
                    ended: result.times.ended,
                };
                self.state = State::Ended(Box::new(CallResult {
                    times: self.times,
                    ..result.clone()
                }));
            }
            _ => {}
        }
    }

    fn add_value(&mut self, pointer: Option<&Arc<str>>, text: &str) {
        let lengths = self.arguments.iter().map(|(_, text)| text.chars().count());
        let kept: usize = lengths.sum();
        if kept >= KEPT {
            return;
        }
        let last = self.arguments.last();
        if last.is_none_or(|(last, _)| last.as_ref() != pointer) {
            self.arguments.push((pointer.cloned(), String::new()));
        }
        if let Some((_, value)) = self.arguments.last_mut() {
            value.extend(text.chars().take(KEPT - kept));
        }
    }
}
