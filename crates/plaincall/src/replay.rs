//! Replays a log to resume its run (`spec/log.md`, "Resuming a run").
//!
//! Some events of a log are inputs: text, decisions, ends of tools. The replay applies them to the run state in order. All
//! other events must follow from them. If they do not, the log was written with other tools or settings, and the run cannot
//! be resumed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Arguments, Effect, Limits, ReplyItem, ReplyReader, Stop};
use plaincall_plan::{CallIndex, Outcome, State, Status};

use crate::attempt::Ended;
use crate::call_arguments::{ArgumentTexts, SubmittedArguments, bind_pairs};
use crate::event::{Admission, Appeared, Resumed, RunBegin, RunEvent};
use crate::held::HeldReason;
use crate::result::CallResult;
use crate::run_error::ResumeError;
use crate::run_state::{Input, RunState, is_for_run};
use crate::tool::Tool;
use crate::tool_policy::ToolBegin;
use crate::toolbox::Toolbox;

/// The part of a reply that arrived before the run was interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// The bytes that arrived.
    pub text: Vec<u8>,
    /// How the reply ended, if it had ended.
    pub stop: Option<Stop>,
    /// Whether all calls of the turn have ended too.
    pub(crate) has_ended: bool,
    /// The interrupted calls of tools that [delegate](crate::Tool::delegates). They start again.
    pub continuing: Vec<u32>,
    /// The calls that were submitted in the turn, with their names.
    pub(crate) submitted: Vec<(u32, Arc<str>)>,
}

/// The result of a replay, beside the run state.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// The time of the last event.
    pub(crate) at: Duration,
    /// The events that follow from the log and are not in it.
    pub(crate) pending: VecDeque<RunEvent>,
    /// The starts among them, by call and attempt, that a damaged line may have contained.
    maybe_started: HashSet<(u32, u32)>,
    /// All results, complete.
    pub(crate) results: Vec<CallResult>,
    pub(crate) last_turn: Option<Unfinished>,
    /// The settings of all tools, if any differs from those that the log has last.
    pub(crate) changed_tools: BTreeMap<String, ToolBegin>,
}

impl Replayed {
    /// Returns the calls whose start follows from the log and is not in it, so their tools were not started.
    pub(crate) fn unstarted(&self) -> HashSet<u32> {
        let starts = self.pending.iter().filter_map(|event| match event {
            RunEvent::Start(started) => Some((started.call, started.attempt)),
            _ => None,
        });
        let unstarted = starts.filter(|start| !self.maybe_started.contains(start));
        unstarted.map(|(call, _)| call).collect()
    }
}

/// Returns the first event of a log.
pub(crate) fn beginning(history: &[RunEvent]) -> Result<&RunBegin, ResumeError> {
    match history.first() {
        Some(RunEvent::Run(begin)) => Ok(begin),
        _ => Err(ResumeError {
            line: 1,
            what: "it does not start with the event `run`".to_owned(),
        }),
    }
}

/// Checks that the tools of a log still exist and have not changed.
pub(crate) fn check_tools(
    recorded: &BTreeMap<String, ToolBegin>,
    toolbox: &Toolbox,
) -> Result<(), ResumeError> {
    let mut names = recorded.keys();
    names.try_for_each(|name| check_tool(recorded, toolbox, name))
}

fn check_tool(
    recorded: &BTreeMap<String, ToolBegin>,
    toolbox: &Toolbox,
    name: &str,
) -> Result<(), ResumeError> {
    let what = match (toolbox.get(name), recorded.get(name)) {
        (None, _) => format!("the tool `{name}` no longer exists"),
        (Some(tool), Some(recorded)) if !is_same(&tool.begin(), recorded) => {
            format!("the tool `{name}` has changed")
        }
        _ => return Ok(()),
    };
    Err(ResumeError { line: 1, what })
}

/// Returns whether two definitions have the same JSON.
fn is_same(now: &ToolBegin, recorded: &ToolBegin) -> bool {
    let written = |tool| serde_json::to_value(tool).ok();
    written(now) == written(recorded)
}

/// The outcome of a call that ended, as a log has it. It does not depend on the tool.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// The arguments, if the call was complete and valid.
    pub(crate) arguments: Option<ArgumentTexts>,
    pub(crate) held: Option<HeldReason>,
    /// Whether its tool has changed or is gone.
    pub(crate) has_changed: bool,
    /// The reason, if the call was rejected.
    pub(crate) rejected: Option<Arc<str>>,
}

/// Returns the calls of a log that ended.
fn ended_calls(history: &[RunEvent], has_changed: impl Fn(&str) -> bool) -> HashMap<u32, Recorded> {
    let mut ended = HashMap::new();
    for event in history {
        if let RunEvent::Result(result) = event {
            let is_rejected = result.status == Status::Rejected;
            let rejected = result.error.clone().filter(|_| is_rejected);
            ended.insert(
                result.call,
                Recorded {
                    arguments: None,
                    held: None,
                    has_changed: has_changed(&result.name),
                    rejected,
                },
            );
        }
    }
    for event in history {
        let Some(recorded) = event.call().and_then(|call| ended.get_mut(&call)) else {
            continue;
        };
        match event {
            RunEvent::Waiting(event) => recorded.arguments = Some(event.arguments.clone()),
            RunEvent::Ready(event) => recorded.held.clone_from(&event.held),
            _ => {}
        }
    }
    ended
}

/// Restores the run state and the reader as [`replay`] does, with tools that may have changed or are gone since. Only calls that
/// have not ended need their tools.
pub(crate) fn replay_with(
    toolbox: &Arc<Toolbox>,
    history: &[RunEvent],
    run_state: &mut RunState,
    reader: &mut ReplyReader<Arc<Toolbox>>,
) -> Result<Replayed, ResumeError> {
    let begin = beginning(history)?;
    let called = history.iter().filter_map(|event| match event {
        RunEvent::Waiting(event) => Some(Arc::clone(&event.name)),
        _ => None,
    });
    let called: BTreeSet<Arc<str>> = called.collect();
    let is_gone = |name: &Arc<str>| toolbox.get(name).is_none();
    let resumed = history.iter().filter_map(|event| match event {
        RunEvent::Resumed(resumed) => Some(&resumed.tools),
        _ => None,
    });
    let later: Vec<_> = resumed.filter(|tools| !tools.is_empty()).collect();
    let last = later.last().copied().unwrap_or(&begin.tools);
    let has_changed = !later.is_empty()
        || check_tools(&begin.tools, toolbox).is_err()
        || called.iter().any(is_gone);
    if has_changed {
        run_state.set_tools(Arc::new(toolbox.as_recorded(&begin.tools, &called)));
    }
    let is_other = |name: &str| {
        let mut all = later.iter().copied().chain([&begin.tools]);
        all.any(|recorded| check_tool(recorded, toolbox, name).is_err())
    };
    run_state.recorded = ended_calls(history, is_other);
    for event in history {
        if let RunEvent::Call(call) = event
            && !run_state.recorded.contains_key(&call.call)
            && last.contains_key(&*call.name)
        {
            check_tool(last, toolbox, &call.name)?;
        }
    }
    let tools = Some((&**toolbox, &called));
    let mut replayed = replay(history, false, run_state, reader, tools)?;
    let is_new = |tool: &Tool| {
        let recorded = last.get(tool.name());
        recorded.is_none_or(|recorded| !is_same(&tool.begin(), recorded))
    };
    if toolbox.iter().any(is_new) {
        let now = toolbox.iter();
        let now = now.map(|tool| (tool.name().to_owned(), tool.begin()));
        replayed.changed_tools = now.collect();
    }
    run_state.recorded = HashMap::new();
    if has_changed {
        for call in run_state.unended() {
            let entry = run_state
                .call(call)
                .filter(|_| run_state.tool(call).is_some());
            let name = entry.map(|entry| Arc::clone(&entry.name));
            name.map_or(Ok(()), |name| check_tool(last, toolbox, &name))?;
        }
        run_state.set_tools(Arc::clone(toolbox));
    }
    Ok(replayed)
}

/// Restores the run state and the reader at the end of the log. `is_whole` means that each text of it is a whole reply.
pub(crate) fn replay(
    history: &[RunEvent],
    is_whole: bool,
    run_state: &mut RunState,
    reader: &mut ReplyReader<Arc<Toolbox>>,
    tools: Option<(&Toolbox, &BTreeSet<Arc<str>>)>,
) -> Result<Replayed, ResumeError> {
    let mut replay = Replay {
        tools,
        run_state,
        reader,
        is_whole,
        replayed: Replayed::default(),
        resumed: None,
    };
    replay.run_state.is_observed = true;
    for (event, line) in history.iter().zip(1..) {
        replay
            .replay(event)
            .map_err(|what| ResumeError { line, what })?;
    }
    // The driver derives its commands from the states of the calls.
    replay.run_state.commands.clear();
    let mut replayed = replay.replayed;
    let unstarted = replayed.unstarted();
    if let Some(last) = &mut replayed.last_turn {
        last.continuing = replay.run_state.continuing(&unstarted);
        last.has_ended = replay
            .run_state
            .last_turn()
            .is_some_and(|(_, is_closed)| is_closed);
    }
    Ok(replayed)
}

struct Replay<'r> {
    /// The tools of the resumed run, and the names of those that were called, if they may differ from those of the log.
    tools: Option<(&'r Toolbox, &'r BTreeSet<Arc<str>>)>,
    run_state: &'r mut RunState,
    reader: &'r mut ReplyReader<Arc<Toolbox>>,
    is_whole: bool,
    replayed: Replayed,
    /// After the run was resumed, until its interrupted calls are set aside: the calls that had not started, and the time.
    resumed: Option<(HashSet<u32>, Duration)>,
}

impl Replay<'_> {
    fn replay(&mut self, event: &RunEvent) -> Result<(), String> {
        self.replayed.at = self.replayed.at.max(event.at());
        self.set_aside_before(event);
        self.check_order(event)?;
        match event {
            RunEvent::Run(_) => return Ok(()),
            RunEvent::Resumed(resumed) => {
                self.resume(resumed);
                return Ok(());
            }
            RunEvent::DamagedEnd(_) => {
                self.count_as_started();
                return Ok(());
            }
            RunEvent::LogFailed(_) | RunEvent::Lagged(_) => {
                return Err("such an event is never in a log".to_owned());
            }
            RunEvent::Examples(shown) => {
                self.apply(Input::Examples(Arc::clone(&shown.calls)), shown.at);
            }
            RunEvent::Untrusted(received) => {
                let (name, text) = (Arc::clone(&received.name), received.text.clone());
                self.apply(Input::Untrusted { name, text }, received.at);
            }
            RunEvent::Message(message) => {
                let (author, text) = (message.author, Arc::clone(&message.text));
                self.apply(Input::Message { author, text }, message.at);
            }
            RunEvent::Turn(turn) => {
                self.reader.begin_reply();
                self.replayed.last_turn = Some(Unfinished::default());
                let calls = turn.calls;
                self.apply(Input::BeginTurn { calls }, turn.at);
            }
            RunEvent::Text(delta) => {
                let bytes = delta.source.as_bytes();
                let items = self.reader.feed(bytes).filter(is_for_run);
                let mut items: Vec<_> = items.map(ReplyItem::into_owned).collect();
                if self.is_whole {
                    items.extend(self.reader.end_line());
                }
                if let Some(last) = &mut self.replayed.last_turn {
                    last.text.extend_from_slice(bytes);
                }
                let source = Some(delta.source.clone());
                self.apply(Input::Text { source, items }, delta.at);
            }
            RunEvent::ReplyEnd(end) => {
                let items = self.reader.finish(end.stop).items;
                if let Some(last) = &mut self.replayed.last_turn {
                    last.stop = Some(end.stop);
                }
                let (stop, usage) = (end.stop, end.usage);
                self.apply(Input::EndReply { stop, usage, items }, end.at);
            }
            RunEvent::Admitted(admission) => self.admit(admission)?,
            RunEvent::SubagentText(part) => {
                let call = CallIndex::new(part.call);
                let input = Input::SubagentText {
                    call,
                    text: Arc::clone(&part.text),
                    stop: part.stop,
                    usage: part.usage,
                };
                self.apply(input, part.at);
            }
            RunEvent::BackOff(back_off) => {
                let call = CallIndex::new(back_off.call);
                let (error, wait) = (Arc::clone(&back_off.error), back_off.wait);
                self.apply(Input::BackOff { call, error, wait }, back_off.at);
            }
            RunEvent::Retry(event) => {
                let call = CallIndex::new(event.call);
                self.apply(Input::Retry { call }, event.at);
            }
            RunEvent::Cancel(cancel) => {
                let (reason, timed_out) = (Arc::clone(&cancel.reason), cancel.timed_out);
                let input = match cancel.call.map(CallIndex::new) {
                    Some(call) => Input::CancelCall { call, reason },
                    None => Input::Cancel { reason, timed_out },
                };
                self.apply(input, cancel.at);
            }
            RunEvent::Result(result) => {
                self.end(result);
                self.expect(event)?;
                self.run_state.restore(result);
                self.replayed.results.push(result.clone());
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

    /// Notes that all calls were interrupted, or sets the only one aside. From here on, the settings of the tools may be others.
    fn resume(&mut self, resumed: &Resumed) {
        if let Some((toolbox, called)) = self.tools.filter(|_| !resumed.tools.is_empty()) {
            let recorded = toolbox.as_recorded(&resumed.tools, called);
            self.run_state.set_tools(Arc::new(recorded));
        }
        match resumed.call.map(CallIndex::new) {
            // If an earlier resume did not get this far, this one begins again.
            None => self.resumed = Some((self.replayed.unstarted(), resumed.at)),
            Some(call) => {
                self.run_state.set_aside_one(call);
                self.run_state.run_actions(resumed.at);
                self.take_events();
            }
        }
    }

    /// Sets interrupted calls aside, as soon as an event shows that the resumed run did. A resumed run first cancels calls, which
    /// must not start in the slots that become free.
    fn set_aside_before(&mut self, event: &RunEvent) {
        let is_earlier = |(..): &mut (HashSet<u32>, Duration)| {
            let mut pending = self.replayed.pending.iter();
            !matches!(event, RunEvent::Cancel(_) | RunEvent::Resumed(_))
                && !pending.any(|pending| matches(pending, event))
        };
        if let Some((unstarted, at)) = self.resumed.take_if(is_earlier) {
            self.run_state.set_aside(&unstarted, at);
            self.take_events();
        }
    }

    /// Checks that an input about a call comes after all events of the call that precede it: for example, a call is denied only
    /// after it was ready.
    fn check_order(&self, event: &RunEvent) -> Result<(), String> {
        let is_input = matches!(
            event,
            RunEvent::Admitted(_) | RunEvent::BackOff(_) | RunEvent::Retry(_) | RunEvent::Result(_)
        );
        if !is_input {
            return Ok(());
        }
        // The events of one call are in order, so only the first one matters. Checking more would be quadratic.
        let mut pending = self.replayed.pending.iter();
        match pending.find(|pending| pending.call() == event.call()) {
            Some(next) if !matches(next, event) => Err(format!(
                "{}, but the next event must be that {}",
                describe(event),
                describe(next)
            )),
            _ => Ok(()),
        }
    }

    /// Counts every call of a tool that writes as started if its start would come next, because the damaged line may have been
    /// that start.
    fn count_as_started(&mut self) {
        let starts = self
            .replayed
            .pending
            .iter()
            .filter_map(|event| match event {
                RunEvent::Start(started) => Some((started.call, started.attempt)),
                _ => None,
            });
        let writes = starts.filter(|(call, _)| {
            let tool = self.run_state.tool(CallIndex::new(*call));
            tool.is_none_or(|tool| tool.spec.effect == Effect::Write)
        });
        self.replayed.maybe_started.extend(writes);
    }

    fn apply(&mut self, input: Input, at: Duration) {
        self.run_state.apply(input, at);
        self.take_events();
    }

    fn take_events(&mut self) {
        let events = std::mem::take(&mut self.run_state.events);
        self.replayed.pending.extend(events);
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
        self.apply(input, call.at);
    }

    fn admit(&mut self, admission: &Admission) -> Result<(), String> {
        let call = CallIndex::new(admission.call);
        let arguments = match &admission.arguments {
            Some(texts) => Some(Arc::new(self.bind(call, texts)?)),
            None => None,
        };
        let input = Input::Admit {
            call,
            by: admission.by,
            reason: admission.reason.clone(),
            always: admission.always,
            arguments,
        };
        self.apply(input, admission.at);
        Ok(())
    }

    fn bind(&self, call: CallIndex, texts: &ArgumentTexts) -> Result<Arguments, String> {
        let tool = self
            .run_state
            .tool(call)
            .ok_or("the call is not complete")?;
        // A user edited these arguments, so the limits of calls do not apply.
        let bound = bind_pairs(&tool.spec, &texts.0, &Limits::default());
        bound.or_else(|error| match self.run_state.recorded.get(&call.get()) {
            Some(_) => Ok(texts.unbound()),
            None => Err(error),
        })
    }

    /// Ends or denies the call, if the result does not follow from other events.
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
                self.apply(Input::Ended { call, ended }, at);
            }
            (Some(State::Ready), None) if result.status == Status::Rejected => {
                let reason = result.error.as_deref().unwrap_or_default().to_owned();
                self.apply(Input::Deny { call, reason }, at);
            }
            _ => {}
        }
    }

    /// Checks that an event of the log follows from the inputs.
    fn expect(&mut self, recorded: &RunEvent) -> Result<(), String> {
        let position = self
            .replayed
            .pending
            .iter()
            .position(|event| matches(event, recorded));
        match position {
            Some(position) => {
                self.replayed.pending.remove(position);
                Ok(())
            }
            None => Err(format!(
                "{}, which does not follow from the events before",
                describe(recorded)
            )),
        }
    }
}

/// Returns whether an event matches the one in the log. Times and error messages may differ.
fn matches(event: &RunEvent, recorded: &RunEvent) -> bool {
    match (event, recorded) {
        (RunEvent::Examples(a), RunEvent::Examples(b)) => a.calls == b.calls,
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
        (RunEvent::SubagentText(a), RunEvent::SubagentText(b)) => {
            a.call == b.call && a.text == b.text && a.stop == b.stop
        }
        (RunEvent::BackOff(a), RunEvent::BackOff(b)) => a.call == b.call,
        (RunEvent::Result(a), RunEvent::Result(b)) => a.call == b.call && a.status == b.status,
        (RunEvent::Cancel(a), RunEvent::Cancel(b)) => a.call == b.call && a.reason == b.reason,
        (RunEvent::ReplyEnd(a), RunEvent::ReplyEnd(b)) => a.stop == b.stop,
        (RunEvent::TurnEnd(a), RunEvent::TurnEnd(b)) => a.turn == b.turn && a.counts == b.counts,
        _ => false,
    }
}

fn describe(event: &RunEvent) -> String {
    let of = |call: u32, id: &str, what: &str| format!("call {call} (`{id}`) {what}");
    match event {
        RunEvent::Examples(_) => "the model reads examples".to_owned(),
        RunEvent::Untrusted(received) => format!(
            "the model receives text {} (`{}`)",
            received.number, received.name
        ),
        RunEvent::Message(_) => "the model receives a message".to_owned(),
        RunEvent::Turn(turn) => format!("turn {} starts", turn.turn),
        RunEvent::Text(_) => "a part of the reply arrives".to_owned(),
        RunEvent::Call(event) => of(event.call, &event.id, "appears"),
        RunEvent::Waiting(event) => of(event.call, &event.id, "is complete, with these arguments"),
        RunEvent::Ready(event) => match &event.held {
            Some(held) => of(event.call, &event.id, &format!("is ready and {held}")),
            None => of(event.call, &event.id, "is ready"),
        },
        RunEvent::Retry(event) => of(event.call, &event.id, "is retried"),
        RunEvent::Admitted(event) => of(event.call, &event.id, "is admitted"),
        RunEvent::Start(event) => of(event.call, &event.id, "is started"),
        RunEvent::SubagentText(event) => of(event.call, &event.id, "writes"),
        RunEvent::BackOff(event) => of(event.call, &event.id, "backs off"),
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
