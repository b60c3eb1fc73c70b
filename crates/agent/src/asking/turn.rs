//! One turn: a reply of the model is read, and its calls run meanwhile.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plaincall::call::{CallError, MissingEnd, ToolCall};
use plaincall::{
    CallResult, Canceller, RunEvent, RunEvents, Status, Stop, Toolbox, Turn, TurnResults,
};
use tokio::select;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::answer::AgentErrorKind;
use crate::asking::Work;
use crate::asking::reading::Reading;
use crate::asking::request::Begun;
use crate::conversation::Conversation;
use crate::event::AgentEvent;
use crate::model::{Finish, ModelError, ModelErrorKind, Piece, ReplyNext, Usage};

/// How many bytes of a reply are read before the run is waited for.
const READ_AHEAD: usize = 64 << 10;

/// The longest text of a reply, in bytes. Where a model's server goes on and on, the work ends.
const LONGEST: usize = 64 << 20;

/// A turn that has ended.
pub(super) struct Turned {
    /// What the model wrote.
    pub(super) written: String,
    /// What the reply has cost, as far as the model's server says.
    pub(super) usage: Option<Usage>,
    /// Its text outside of calls.
    pub(super) said: String,
    /// Its calls, in order of appearance.
    pub(super) calls: Vec<Arc<ToolCall>>,
    /// How they ended.
    pub(super) results: TurnResults,
    /// The tool that has finished the work, and all that it returned.
    pub(super) finished: Option<(Arc<str>, Arc<str>)>,
    /// How the reply ended.
    pub(super) finish: Finish,
    /// Why nothing can come after it, if that is so.
    pub(super) end: Option<AgentErrorKind>,
}

impl Turned {
    /// The call with this place in order of appearance, if its text came to an end.
    pub(super) fn call(&self, index: u32) -> Option<&ToolCall> {
        let found = self
            .calls
            .binary_search_by_key(&(index as usize), |call| call.index);
        self.calls.get(found.ok()?).map(|call| &**call)
    }

    /// How many calls were rejected because they have no end marker.
    pub(super) fn unclosed(&self) -> u32 {
        let is_unclosed = |one: &&CallResult| {
            let error = one.call_error.as_deref();
            let Some(CallError::NotClosed { why, .. }) = error else {
                return false;
            };
            matches!(why, MissingEnd::NoEndMarker | MissingEnd::EndedByNextCall)
        };
        let count = self.results.iter().filter(is_unclosed).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// When all is over, whatever goes on.
#[derive(Clone)]
pub(super) struct Bounds {
    pub(super) cancel: CancellationToken,
    pub(super) deadline: Instant,
}

impl Bounds {
    /// Waits until all is over, and says why.
    pub(super) async fn over(&self) -> AgentErrorKind {
        select! {
            biased;
            () = self.cancel.cancelled() => AgentErrorKind::Cancelled,
            () = sleep_until(self.deadline) => AgentErrorKind::Time,
        }
    }
}

impl Work<'_> {
    /// Lets the model write a reply and runs its calls.
    pub(super) async fn turn(&mut self, begun: Begun) -> Result<Turned, AgentErrorKind> {
        let calls_left = self.calls_left();
        let Conversation {
            run,
            events,
            written,
            opened,
            settings,
            ..
        } = &mut *self.talk;
        *opened += 1;
        let canceller = run.canceller();
        let reading = Mutex::new(Reading::default());
        let mut telling = Telling {
            out: &self.out,
            reading: &reading,
            waiting: VecDeque::new(),
            toolbox: &settings.tools,
            finished: None,
        };
        let turn = run.turn_of(calls_left);
        let mut turn = turn.watch(|item| lock(&reading).take(item));
        let mut usage = None;
        let ended = select! {
            biased;
            kind = self.bounds.over() => Err(kind),
            ended = read(begun, &mut turn, events, written, &mut usage, &mut telling) => ended,
        };
        let (finish, mut end) = match ended {
            Ok(finish) => (finish, None),
            Err(kind) => (Finish::new(Stop::Broken), Some(kind)),
        };
        if matches!(end, Some(AgentErrorKind::Cancelled | AgentErrorKind::Time)) {
            canceller.cancel();
        }
        let ending = Ending {
            bounds: &self.bounds,
            canceller,
        };
        let results = ending
            .finish(turn, finish.stop, events, &mut end, &mut telling)
            .await;
        telling.take_read();
        while let Some(event) = events.try_next() {
            telling.take(event);
        }
        telling.flush().await;
        let finished = telling.finished.take().filter(|_| results.is_last());
        let reading = reading.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (said, calls) = (reading.said, reading.calls);
        let written = std::mem::take(&mut self.talk.written);
        let added = self
            .talk
            .add_turn(written.clone(), results.iter().cloned().collect());
        added.map_err(AgentErrorKind::Dialect)?;
        Ok(Turned {
            written,
            usage,
            said,
            calls,
            results,
            finished,
            finish,
            end,
        })
    }
}

/// Reads the reply until it is over.
async fn read(
    begun: Begun,
    turn: &mut Turn<'_>,
    events: &mut RunEvents,
    written: &mut String,
    usage: &mut Option<Usage>,
    telling: &mut Telling<'_>,
) -> Result<Finish, AgentErrorKind> {
    let Begun { first, mut reply } = begun;
    let mut first = Some(Ok(first));
    let mut ahead = 0;
    loop {
        let next = async {
            match first.take() {
                Some(first) => Some(first),
                None => reply.next().await,
            }
        };
        select! {
            biased;
            Some(event) = events.next() => telling.take(event),
            next = next => match next {
                Some(Ok(ReplyNext::Piece(Piece::Text(text)))) => {
                    turn.feed(&text);
                    written.push_str(&text);
                    if written.len() > LONGEST {
                        return Err(too_long());
                    }
                    ahead += text.len();
                    telling.take_read();
                }
                Some(Ok(ReplyNext::Piece(Piece::Reasoning(text)))) => {
                    telling.waiting.push_back(AgentEvent::Reasoning(text));
                }
                Some(Ok(ReplyNext::Piece(Piece::Usage(so_far)))) => *usage = Some(so_far),
                Some(Ok(ReplyNext::Piece(Piece::Retry(told)))) => {
                    telling.waiting.push_back(AgentEvent::Retry(told));
                }
                Some(Ok(ReplyNext::Finish(finish))) => return Ok(finish),
                Some(Err(error)) => return Err(AgentErrorKind::Model(error)),
                None => return Ok(Finish::new(Stop::Broken)),
            }
        }
        telling.flush().await;
        if ahead >= READ_AHEAD {
            ahead = 0;
            let caught_up = turn.caught_up();
            caught_up.await;
        }
    }
}

fn too_long() -> AgentErrorKind {
    let message = format!("the reply has more than {} MiB", LONGEST >> 20);
    AgentErrorKind::Model(ModelError::new(ModelErrorKind::Broken, message))
}

/// How the calls of a turn are waited for.
struct Ending<'w> {
    bounds: &'w Bounds,
    canceller: Canceller,
}

impl Ending<'_> {
    /// Ends the reply and waits for its calls. If the time is over meanwhile, they are called off, and end; also those
    /// of a reply that broke off.
    async fn finish(
        &self,
        turn: Turn<'_>,
        stop: Stop,
        events: &mut RunEvents,
        end: &mut Option<AgentErrorKind>,
        telling: &mut Telling<'_>,
    ) -> TurnResults {
        let mut results = pin!(turn.finish(stop));
        let mut is_over = matches!(end, Some(AgentErrorKind::Cancelled | AgentErrorKind::Time));
        loop {
            select! {
                biased;
                kind = self.bounds.over(), if !is_over => {
                    is_over = true;
                    self.canceller.cancel();
                    end.get_or_insert(kind);
                }
                Some(event) = events.next() => {
                    telling.take(event);
                    telling.flush().await;
                }
                results = &mut results => return results,
            }
        }
    }
}

/// Tells what happens to whoever watches.
struct Telling<'w> {
    out: &'w Sender<AgentEvent>,
    reading: &'w Mutex<Reading>,
    waiting: VecDeque<AgentEvent>,
    toolbox: &'w Toolbox,
    /// The tool that has finished the work, and its output before it was cut for the model.
    finished: Option<(Arc<str>, Arc<str>)>,
}

impl Telling<'_> {
    /// Takes what was read. It comes before what came of it.
    fn take_read(&mut self) {
        let mut reading = lock(self.reading);
        self.waiting.append(&mut reading.events);
    }

    fn take(&mut self, event: RunEvent) {
        self.take_read();
        if let RunEvent::Result(result) = &event {
            let tool = self.toolbox.get(&result.name);
            if result.status == Status::Ok && tool.is_some_and(|tool| tool.policy().finishes) {
                let output = result.output.clone().unwrap_or_default();
                self.finished = Some((Arc::clone(&result.name), output));
            }
        }
        self.waiting.push_back(AgentEvent::Run(Box::new(event)));
    }

    /// Sends what waits. What was not sent when its future is dropped is sent the next time.
    async fn flush(&mut self) {
        while !self.waiting.is_empty() {
            // It fails only if nobody listens any more, and then nobody polls this either.
            let Ok(place) = self.out.reserve().await else {
                return;
            };
            if let Some(event) = self.waiting.pop_front() {
                place.send(event);
            }
        }
    }
}

fn lock(reading: &Mutex<Reading>) -> MutexGuard<'_, Reading> {
    reading.lock().unwrap_or_else(PoisonError::into_inner)
}
