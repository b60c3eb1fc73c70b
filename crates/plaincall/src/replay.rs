//! Resuming a run: its log is read like a score (`spec/log.md`, "Taking a run up again").
//!
//! Of the events in a log some came from outside: text, decisions, ends of tools. They are given to the run state again,
//! in their order. All others followed from these, and must follow again; otherwise the log was written with other
//! tools or settings, and nothing can be concluded from it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Arguments, Effect, Limits, ReplyItem, ReplyReader, Stop};
use plaincall_plan::{CallIndex, Outcome, State, Status};

use crate::call_arguments::{ArgumentTexts, SubmittedArguments, bind_pairs};
use crate::event::{Admission, Appeared, RunBegin, RunEvent};
use crate::result::CallResult;
use crate::run_error::ResumeError;
use crate::run_state::{Input, RunState, is_for_run};
use crate::tool_policy::ToolBegin;
use crate::toolbox::Toolbox;
use crate::work::Ended;

/// The part of a reply that was read before the run was cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// What was read, byte for byte.
    pub text: Vec<u8>,
    /// How the reply ended, if it was over.
    pub stop: Option<Stop>,
    /// Whether all calls of the turn have ended too.
    pub(crate) has_ended: bool,
    /// The calls that were submitted in the turn, with their names.
    pub(crate) submitted: Vec<(u32, Arc<str>)>,
}

/// What a log says beside the state of the calls.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// When the last event happened.
    pub(crate) at: Duration,
    /// The tools of which all calls may run.
    pub(crate) always: HashSet<Arc<str>>,
    /// What followed and was not written down any more.
    pub(crate) untold: VecDeque<RunEvent>,
    /// Those of them that are starts, by call and attempt, and may have been written down in a line that is damaged.
    damaged: HashSet<(u32, u32)>,
    pub(crate) whole: Vec<CallResult>,
    pub(crate) last_turn: Option<Unfinished>,
}

impl Replayed {
    /// The calls whose start has followed, and was not written down any more: their tools were not started.
    pub(crate) fn fresh(&self) -> HashSet<u32> {
        let starts = self.untold.iter().filter_map(|event| match event {
            RunEvent::Start(started) => Some((started.call, started.attempt)),
            _ => None,
        });
        let unstarted = starts.filter(|start| !self.damaged.contains(start));
        unstarted.map(|(call, _)| call).collect()
    }
}

/// The first event of a log.
pub(crate) fn beginning(history: &[RunEvent]) -> Result<&RunBegin, ResumeError> {
    match history.first() {
        Some(RunEvent::Run(begin)) => Ok(begin),
        _ => Err(ResumeError {
            line: 1,
            what: "it does not start with the event `run`".to_owned(),
        }),
    }
}

/// Holds the tools of a log against those that there are now.
pub(crate) fn check_tools(begin: &RunBegin, toolbox: &Toolbox) -> Result<(), ResumeError> {
    for (name, recorded) in &begin.tools {
        let what = match toolbox.get(name) {
            None => format!("the tool `{name}` no longer exists"),
            Some(tool) if !is_same(&tool.begin(), recorded) => {
                format!("the tool `{name}` has changed")
            }
            Some(_) => continue,
        };
        return Err(ResumeError { line: 1, what });
    }
    Ok(())
}

/// Whether two definitions are written in the same way.
fn is_same(now: &ToolBegin, recorded: &ToolBegin) -> bool {
    let written = |tool| serde_json::to_value(tool).ok();
    written(now) == written(recorded)
}

/// Brings a new run state and a new reader to where the log ends.
pub(crate) fn replay(
    history: &[RunEvent],
    run_state: &mut RunState,
    reader: &mut ReplyReader<Arc<Toolbox>>,
) -> Result<Replayed, ResumeError> {
    let mut replay = Replay {
        run_state,
        reader,
        replayed: Replayed::default(),
    };
    replay.run_state.is_heard = true;
    for (event, line) in history.iter().zip(1..) {
        replay
            .take(event)
            .map_err(|what| ResumeError { line, what })?;
    }
    // What was to be done is seen by where the calls stand.
    replay.run_state.commands.clear();
    let mut replayed = replay.replayed;
    if let Some(last) = &mut replayed.last_turn {
        last.has_ended = replay
            .run_state
            .last_turn()
            .is_some_and(|(_, is_closed)| is_closed);
    }
    Ok(replayed)
}

struct Replay<'r> {
    run_state: &'r mut RunState,
    reader: &'r mut ReplyReader<Arc<Toolbox>>,
    replayed: Replayed,
}

impl Replay<'_> {
    fn take(&mut self, event: &RunEvent) -> Result<(), String> {
        self.replayed.at = self.replayed.at.max(event.at());
        self.check_order(event)?;
        match event {
            RunEvent::Run(_) => return Ok(()),
            RunEvent::Resumed(resumed) => {
                let fresh = self.replayed.fresh();
                self.run_state.set_aside(&fresh, resumed.at);
                self.replayed
                    .untold
                    .extend(std::mem::take(&mut self.run_state.events));
                return Ok(());
            }
            RunEvent::DamagedEnd(_) => {
                self.count_as_started();
                return Ok(());
            }
            RunEvent::LogFailed(_) | RunEvent::Lagged(_) => {
                return Err("such an event is never in a log".to_owned());
            }
            RunEvent::Untrusted(heard) => {
                let (name, text) = (Arc::clone(&heard.name), heard.text.clone());
                self.give(Input::Untrusted { name, text }, heard.at);
            }
            RunEvent::Message(told) => {
                let (author, text) = (told.author, Arc::clone(&told.text));
                self.give(Input::Message { author, text }, told.at);
            }
            RunEvent::Turn(turn) => {
                self.reader.begin_reply();
                self.replayed.last_turn = Some(Unfinished::default());
                let calls = turn.calls;
                self.give(Input::Open { calls }, turn.at);
            }
            RunEvent::Text(delta) => {
                let bytes = delta.source.as_bytes();
                let items = self.reader.feed(bytes).filter(is_for_run);
                let read = items.map(ReplyItem::into_owned).collect();
                if let Some(last) = &mut self.replayed.last_turn {
                    last.text.extend_from_slice(bytes);
                }
                let source = Some(delta.source.clone());
                self.give(Input::Text { source, read }, delta.at);
            }
            RunEvent::ReplyEnd(over) => {
                let read = self.reader.finish(over.stop).items;
                if let Some(last) = &mut self.replayed.last_turn {
                    last.stop = Some(over.stop);
                }
                let stop = over.stop;
                self.give(Input::Over { stop, read }, over.at);
            }
            RunEvent::Admitted(admission) => self.admit(admission)?,
            RunEvent::BackOff(back_off) => {
                let call = CallIndex::new(back_off.call);
                let (error, wait) = (Arc::clone(&back_off.error), back_off.wait);
                self.give(Input::BackOff { call, error, wait }, back_off.at);
            }
            RunEvent::Retry(moment) => {
                let call = CallIndex::new(moment.call);
                self.give(Input::Retry { call }, moment.at);
            }
            RunEvent::Cancel(cancel) => {
                let (reason, timed_out) = (Arc::clone(&cancel.reason), cancel.timed_out);
                let input = match cancel.call.map(CallIndex::new) {
                    Some(call) => Input::CancelCall { call, reason },
                    None => Input::Cancel { reason, timed_out },
                };
                self.give(input, cancel.at);
            }
            RunEvent::Result(result) => {
                self.end(result);
                self.expect(event)?;
                self.run_state.restore(result);
                self.replayed.whole.push(result.clone());
                return Ok(());
            }
            RunEvent::Call(call) => {
                if let Some(arguments) = &call.submitted {
                    self.submit(call, arguments);
                }
            }
            RunEvent::Waiting(_)
            | RunEvent::Ready(_)
            | RunEvent::Start(_)
            | RunEvent::TurnEnd(_) => {}
        }
        self.expect(event)
    }

    /// What was said about a call from outside comes after all that had followed for it: nobody denies a call of which
    /// the log does not say that it was ready.
    fn check_order(&self, event: &RunEvent) -> Result<(), String> {
        let is_input = matches!(
            event,
            RunEvent::Admitted(_) | RunEvent::BackOff(_) | RunEvent::Retry(_) | RunEvent::Result(_)
        );
        if !is_input {
            return Ok(());
        }
        // What has followed for one call is told in its order, so the first is what comes next. To look for more would
        // go through all of it for every event.
        let mut untold = self.replayed.untold.iter();
        match untold.find(|untold| untold.call() == event.call()) {
            Some(next) if !fits(next, event) => Err(format!(
                "{}, but the next event must be that {}",
                told(event),
                told(next)
            )),
            _ => Ok(()),
        }
    }

    /// Each call of a tool that writes whose start would come next may have been started, and the line that said so is
    /// damaged.
    fn count_as_started(&mut self) {
        let starts = self.replayed.untold.iter().filter_map(|event| match event {
            RunEvent::Start(started) => Some((started.call, started.attempt)),
            _ => None,
        });
        let writes = starts.filter(|(call, _)| {
            let tool = self.run_state.tool(CallIndex::new(*call));
            tool.is_none_or(|tool| tool.spec.effect == Effect::Write)
        });
        self.replayed.damaged.extend(writes);
    }

    fn give(&mut self, input: Input, at: Duration) {
        self.run_state.take(input, at);
        self.replayed
            .untold
            .extend(std::mem::take(&mut self.run_state.events));
    }

    fn submit(&mut self, call: &Appeared, arguments: &Arc<SubmittedArguments>) {
        if let Some(last) = &mut self.replayed.last_turn {
            last.submitted.push((call.call, Arc::clone(&call.name)));
        }
        let input = Input::Submit {
            name: Arc::clone(&call.name),
            arguments: Arc::clone(arguments),
            parent: call.parent,
        };
        self.give(input, call.at);
    }

    fn admit(&mut self, admission: &Admission) -> Result<(), String> {
        let call = CallIndex::new(admission.call);
        let arguments = match &admission.arguments {
            Some(texts) => Some(Arc::new(self.bind(call, texts)?)),
            None => None,
        };
        if let Some(entry) = self.run_state.call(call).filter(|_| admission.always) {
            self.replayed.always.insert(Arc::clone(&entry.name));
        }
        let input = Input::Admit {
            call,
            by: admission.by,
            always: admission.always,
            arguments,
        };
        self.give(input, admission.at);
        Ok(())
    }

    fn bind(&self, call: CallIndex, texts: &ArgumentTexts) -> Result<Arguments, String> {
        let tool = self
            .run_state
            .tool(call)
            .ok_or("the call is not complete")?;
        // Somebody's own arguments, which the limits of a call are not about.
        bind_pairs(&tool.spec, &texts.0, &Limits::default())
    }

    /// The end of a call, if it does not follow from something else.
    fn end(&mut self, result: &CallResult) {
        let call = CallIndex::new(result.call);
        let outcome = match result.status {
            Status::Ok => Some(Outcome::Ok),
            Status::Error => Some(Outcome::Error),
            Status::Cancelled => Some(Outcome::Cancelled),
            Status::Unknown => Some(Outcome::Unknown),
            Status::Skipped | Status::Rejected => None,
        };
        let at = result.times.ended;
        match (self.run_state.state(call), outcome) {
            (Some(State::Running | State::BackOff), Some(outcome)) => {
                let ended = Ended {
                    outcome,
                    output: result.output.clone(),
                    error: result.error.as_deref().map(str::to_owned),
                    note: result.note.clone(),
                    untrusted: result.untrusted.clone(),
                };
                self.give(Input::Ended { call, ended }, at);
            }
            (Some(State::Ready), None) if result.status == Status::Rejected => {
                let reason = result.error.as_deref().unwrap_or_default().to_owned();
                self.give(Input::Deny { call, reason }, at);
            }
            _ => {}
        }
    }

    /// What the log says must be what has followed.
    fn expect(&mut self, recorded: &RunEvent) -> Result<(), String> {
        let place = self
            .replayed
            .untold
            .iter()
            .position(|event| fits(event, recorded));
        match place {
            Some(place) => {
                self.replayed.untold.remove(place);
                Ok(())
            }
            None => Err(format!(
                "{}, which does not follow from the events before",
                told(recorded)
            )),
        }
    }
}

/// Whether an event is the one of the log. Times and the words of messages may differ.
fn fits(event: &RunEvent, recorded: &RunEvent) -> bool {
    match (event, recorded) {
        (RunEvent::Untrusted(a), RunEvent::Untrusted(b)) => {
            a.number == b.number && a.name == b.name && a.text == b.text
        }
        (RunEvent::Message(a), RunEvent::Message(b)) => a.author == b.author && a.text == b.text,
        (RunEvent::Turn(a), RunEvent::Turn(b)) => a.turn == b.turn && a.calls == b.calls,
        (RunEvent::Text(a), RunEvent::Text(b)) => a.source == b.source,
        (RunEvent::Call(a), RunEvent::Call(b)) => {
            a.call == b.call
                && (&a.id, &a.name, &a.dependencies) == (&b.id, &b.name, &b.dependencies)
                && (&a.submitted, a.parent) == (&b.submitted, b.parent)
        }
        (RunEvent::Waiting(a), RunEvent::Waiting(b)) => {
            a.call == b.call && a.arguments == b.arguments
        }
        (RunEvent::Ready(a), RunEvent::Ready(b)) => a.call == b.call && a.held == b.held,
        (RunEvent::Retry(a), RunEvent::Retry(b)) => a.call == b.call,
        (RunEvent::Admitted(a), RunEvent::Admitted(b)) => {
            a.call == b.call && a.arguments == b.arguments
        }
        (RunEvent::Start(a), RunEvent::Start(b)) => a.call == b.call && a.attempt == b.attempt,
        (RunEvent::BackOff(a), RunEvent::BackOff(b)) => a.call == b.call,
        (RunEvent::Result(a), RunEvent::Result(b)) => a.call == b.call && a.status == b.status,
        (RunEvent::Cancel(a), RunEvent::Cancel(b)) => a.call == b.call && a.reason == b.reason,
        (RunEvent::ReplyEnd(a), RunEvent::ReplyEnd(b)) => a.stop == b.stop,
        (RunEvent::TurnEnd(a), RunEvent::TurnEnd(b)) => a.turn == b.turn && a.counts == b.counts,
        _ => false,
    }
}

fn told(event: &RunEvent) -> String {
    let of = |call: u32, id: &str, what: &str| format!("call {call} (`{id}`) {what}");
    match event {
        RunEvent::Untrusted(heard) => format!(
            "the model receives text {} (`{}`)",
            heard.number, heard.name
        ),
        RunEvent::Message(_) => "the model receives a message".to_owned(),
        RunEvent::Turn(turn) => format!("turn {} begins", turn.turn),
        RunEvent::Text(_) => "a piece of the reply arrives".to_owned(),
        RunEvent::Call(event) => of(event.call, &event.id, "appears"),
        RunEvent::Waiting(event) => of(event.call, &event.id, "is complete, with these arguments"),
        RunEvent::Ready(event) => match &event.held {
            Some(held) => of(event.call, &event.id, &format!("is ready and {held}")),
            None => of(event.call, &event.id, "is ready"),
        },
        RunEvent::Retry(event) => of(event.call, &event.id, "is tried again"),
        RunEvent::Admitted(event) => of(event.call, &event.id, "is admitted"),
        RunEvent::Start(event) => of(event.call, &event.id, "is started"),
        RunEvent::BackOff(event) => of(event.call, &event.id, "waits to be tried again"),
        RunEvent::Result(event) => of(event.call, &event.id, &format!("ends as {}", event.status)),
        RunEvent::ReplyEnd(_) => "the reply ends".to_owned(),
        RunEvent::Cancel(cancel) => match cancel.call {
            Some(call) => format!("call {call} is cancelled"),
            None => "all calls are cancelled".to_owned(),
        },
        RunEvent::TurnEnd(_) => "the turn ends".to_owned(),
        _ => "an event".to_owned(),
    }
}
