//! The state of each call, from the events of a run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use plaincall::{CallResult, RunEvent, result::Times};

/// How much of a call's arguments is stored for display, in characters.
const MAX_STORED: usize = 400;

/// The calls of a run, a turn or a question, in order of appearance.
#[derive(Debug, Default)]
pub struct CallTable {
    /// The number of the first call, if known. Earlier calls belong to earlier turns.
    first_call: Option<u32>,
    /// The start of the displayed time, since the beginning of the run.
    from: Duration,
    /// The time of the last event, from the beginning of the run.
    last: Duration,
    calls: Vec<Call>,
    /// The first call with each id, which dependencies refer to.
    first: HashMap<Arc<str>, usize>,
    /// When the reply ended, since the beginning of the run.
    reply_end: Option<Duration>,
    /// Whether a call was submitted by another.
    is_nested: bool,
}

/// A call and its state.
#[derive(Debug, Default)]
pub struct Call {
    /// The id.
    pub id: Arc<str>,
    /// The name of the tool.
    pub name: Arc<str>,
    /// The ids that it depends on.
    pub dependencies: Arc<[String]>,
    /// The index of the call that submitted it, in this table.
    parent: Option<usize>,
    /// The number of calls above it.
    pub depth: usize,
    /// The calls above it, each followed by `/`.
    pub path: String,
    /// Its state.
    pub state: State,
    /// The times of the states that the call has reached.
    pub times: Times,
    /// Names and values of the arguments, truncated for display. A body has no name.
    pub arguments: Vec<(Option<Arc<str>>, String)>,
}

/// The state of a call.
#[derive(Debug, Default)]
pub enum State {
    /// Its text is still arriving.
    #[default]
    Writing,
    /// Waiting for dependencies or for earlier calls in the order of the text.
    Waiting,
    /// Waiting for a slot or for approval.
    Ready,
    /// Failed; will be retried.
    BackingOff,
    /// Running since this time after the beginning of the run.
    Running(Duration),
    /// Ended, with this result.
    Ended(Box<CallResult>),
}

impl CallTable {
    /// Creates an empty table for a turn that started `from` after the beginning of the run. `first_call` is the number
    /// of calls in earlier turns.
    pub fn of_turn(from: Duration, first_call: u32) -> Self {
        Self {
            first_call: Some(first_call),
            from,
            ..Self::default()
        }
    }

    /// Begins the next reply.
    pub fn begin_reply(&mut self) {
        self.reply_end = None;
    }

    /// Adds a piece of an argument to a call. Without a pointer, it belongs to the line or body of an emoji call.
    pub fn add_value(&mut self, call: u32, pointer: Option<&Arc<str>>, text: &str) {
        if let Some(call) = self.call_mut(call) {
            call.add_value(pointer, text);
        }
    }

    /// Returns the call with this number. Adds it if it is the next one.
    pub fn begin(&mut self, call: u32, id: &Arc<str>, name: &Arc<str>) -> Option<&mut Call> {
        self.first_call.get_or_insert(call);
        if self.index(call) == self.calls.len() {
            self.calls.push(Call {
                id: Arc::clone(id),
                name: Arc::clone(name),
                ..Call::default()
            });
        }
        self.call_mut(call)
    }

    /// Applies an event of the run.
    pub fn apply_run_event(&mut self, event: &RunEvent) {
        self.last = self.last.max(event.at());
        if let RunEvent::Call(appeared) = event {
            let id = &appeared.id;
            let parent = appeared.parent.map(|parent| self.index(parent));
            let above = parent.and_then(|parent| self.calls.get(parent));
            let (parent, depth) = (
                parent.filter(|_| above.is_some()),
                above.map(|it| it.depth + 1),
            );
            let path = above.map(|it| format!("{}{}/", it.path, it.own_id().unwrap_or(&it.name)));
            self.is_nested |= parent.is_some();
            if let Some(call) = self.begin(appeared.call, id, &appeared.name) {
                // The parsed text does not contain generated ids.
                call.id = Arc::clone(id);
                call.parent = parent;
                call.depth = depth.unwrap_or_default();
                call.path = path.unwrap_or_default();
                call.dependencies = Arc::clone(&appeared.dependencies);
                call.times.appeared = appeared.at;
                let index = self.index(appeared.call);
                self.first.entry(Arc::clone(id)).or_insert(index);
            }
        } else if let RunEvent::ReplyEnd(end) = event {
            self.reply_end = Some(end.at);
        } else if let Some(call) = event.call().and_then(|call| self.call_mut(call)) {
            call.apply(event);
        }
    }

    /// Returns the index of the call with this number.
    fn index(&self, call: u32) -> usize {
        let index = self.first_call.and_then(|first| call.checked_sub(first));
        index.map_or(usize::MAX, |index| index as usize)
    }

    fn call_mut(&mut self, call: u32) -> Option<&mut Call> {
        let index = self.index(call);
        self.calls.get_mut(index)
    }

    /// Returns the call with this number.
    pub fn call(&self, call: u32) -> Option<&Call> {
        self.calls.get(self.index(call))
    }

    /// Returns the start of the displayed time, since the beginning of the run.
    pub fn from(&self) -> Duration {
        self.from
    }

    /// Returns the end of the displayed time: the end of the last call or of the reply, or the last event if a call
    /// never ended.
    pub fn to(&self) -> Duration {
        let ends = self.calls.iter().map(|call| match call.result() {
            Some(result) => result.times.ended,
            None => self.last,
        });
        let end = ends.chain(self.reply_end).max();
        end.unwrap_or_default().max(self.from)
    }

    /// Returns when the reply ended, since the beginning of the run.
    pub fn reply_end(&self) -> Option<Duration> {
        self.reply_end
    }

    /// Returns the calls in order of appearance.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Returns the indexes of the calls in the order in which they are shown: each call before those that it submitted.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.calls.len()).collect();
        if self.is_nested {
            order.sort_by_cached_key(|index| {
                let parent = |index: &usize| self.calls.get(*index)?.parent;
                let mut path: Vec<usize> = successors(Some(*index), parent).collect();
                path.reverse();
                path
            });
        }
        order
    }

    /// Returns the calls in the order in which they are shown.
    pub fn in_order(&self) -> impl Iterator<Item = &Call> {
        let order = self.order().into_iter();
        order.filter_map(|index| self.calls.get(index))
    }

    /// Returns the call that a dependency refers to, if it has appeared.
    pub fn find_dependency(&self, id: &str) -> Option<(usize, &Call)> {
        let index = *self.first.get(id)?;
        Some((index, self.calls.get(index)?))
    }

    /// Returns the ids of the dependencies that have not ended.
    pub fn open_dependencies<'a>(&'a self, call: &'a Call) -> impl Iterator<Item = &'a str> {
        let is_open = |call: Option<(_, &Call)>| call.is_none_or(|(_, it)| it.result().is_none());
        let ids = call.dependencies.iter().map(String::as_str);
        ids.filter(move |id| is_open(self.find_dependency(id)))
    }

    /// Returns the calls that have not ended.
    pub fn open(&self) -> impl Iterator<Item = &Call> {
        self.in_order().filter(|call| call.result().is_none())
    }
}

impl Call {
    /// Returns its name below the name of the call that submitted it, or the id of a call that the model wrote.
    pub fn label(&self) -> Cow<'_, str> {
        match self.depth {
            0 => (&*self.id).into(),
            depth => format!("{}{}", "  ".repeat(depth), self.name).into(),
        }
    }

    /// Returns the id, if the model set it.
    pub fn own_id(&self) -> Option<&str> {
        let prefixes = ["gadget_", "call_"].into_iter();
        let mut numbers = prefixes.filter_map(|prefix| self.id.strip_prefix(prefix));
        let is_number = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit());
        let is_automatic = self.id.is_empty() || self.depth > 0 || numbers.any(is_number);
        (!is_automatic).then_some(&*self.id)
    }

    /// Returns the result of a call that has ended.
    pub fn result(&self) -> Option<&CallResult> {
        match &self.state {
            State::Ended(result) => Some(result),
            _ => None,
        }
    }

    /// Returns how long the call ran, if it was started and has ended.
    pub fn running_time(&self) -> Option<Duration> {
        let times = self.result()?.times;
        Some(times.ended.saturating_sub(times.started?))
    }

    fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Waiting(event) => {
                self.state = State::Waiting;
                self.times.complete = Some(event.at);
                // A submitted call has no text.
                if self.depth > 0 {
                    self.arguments.clear();
                    for (name, value) in &event.arguments.0 {
                        self.add_value(Some(&name.as_str().into()), value);
                    }
                }
            }
            RunEvent::Ready(_) | RunEvent::Retry(_) => self.state = State::Ready,
            RunEvent::Start(event) => {
                self.state = State::Running(event.at);
                self.times.started = Some(event.at);
            }
            RunEvent::BackOff(_) => self.state = State::BackingOff,
            RunEvent::Result(result) => {
                // A logged result has only the end time.
                self.times.complete = self.times.complete.or(result.times.complete);
                self.times.started = self.times.started.or(result.times.started);
                self.times.ended = result.times.ended;
                let mut result = result.clone();
                result.times = self.times;
                self.state = State::Ended(Box::new(result));
            }
            _ => {}
        }
    }

    fn add_value(&mut self, pointer: Option<&Arc<str>>, text: &str) {
        let lengths = self.arguments.iter().map(|(_, text)| text.chars().count());
        let stored: usize = lengths.sum();
        if stored >= MAX_STORED {
            return;
        }
        let last = self.arguments.last();
        if last.is_none_or(|(last, _)| last.as_ref() != pointer) {
            self.arguments.push((pointer.cloned(), String::new()));
        }
        if let Some((_, value)) = self.arguments.last_mut() {
            value.extend(text.chars().take(MAX_STORED - stored));
        }
    }
}
