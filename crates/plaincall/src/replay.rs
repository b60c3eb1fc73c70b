//! Replays a log to resume its run (`spec/log.md`, "Resuming a run").
//!
//! Some events of a log are inputs: text, decisions, ends of tools. The replay applies them to the run state in order. All
//! other events must follow from them. If they do not, the log was written with other tools or settings, and the run cannot
//! be resumed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use plaincall_plan::{CallIndex, Status};
use plaincall_reply::{ReplyItem, ReplyReader, Stop};

use crate::call_arguments::ArgumentTexts;
use crate::event::{Resumed, RunBegin, RunEvent};
use crate::held::HeldReason;
use crate::result::CallResult;
use crate::run_error::ResumeError;
use crate::run_state::{RunState, is_for_run};
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
        let starts = self.starts();
        let unstarted = starts.filter(|start| !self.maybe_started.contains(start));
        unstarted.map(|(call, _)| call).collect()
    }

    fn starts(&self) -> impl Iterator<Item = (u32, u32)> {
        self.pending.iter().filter_map(|event| match event {
            RunEvent::Start(started) => Some((started.call, started.attempt)),
            _ => None,
        })
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
#[derive(Clone, Debug, Default)]
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
    let (mut open, mut ended) = (HashMap::<u32, Recorded>::new(), HashMap::new());
    for event in history {
        match event {
            RunEvent::Waiting(event) => {
                open.entry(event.call).or_default().arguments = Some(event.arguments.clone());
            }
            RunEvent::Ready(event) => {
                open.entry(event.call)
                    .or_default()
                    .held
                    .clone_from(&event.held);
            }
            RunEvent::Result(result) => {
                let mut call = open.remove(&result.call).unwrap_or_default();
                call.has_changed = has_changed(&result.name);
                let is_rejected = result.status == Status::Rejected;
                call.rejected = result.error.clone().filter(|_| is_rejected);
                ended.insert(result.call, call);
            }
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
    let recorded = ended_calls(history, is_other);
    for event in history {
        if let RunEvent::Call(call) = event
            && !recorded.contains_key(&call.call)
            && last.contains_key(&*call.name)
        {
            check_tool(last, toolbox, &call.name)?;
        }
    }
    run_state.begin_replay(recorded);
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
    if has_changed {
        for call in run_state.unended() {
            if let Some(entry) = run_state.tool(call).and(run_state.call(call)) {
                check_tool(last, toolbox, &entry.name)?;
            }
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
    for (event, line) in history.iter().zip(1..) {
        replay
            .replay(event)
            .map_err(|what| ResumeError { line, what })?;
    }
    replay.run_state.end_replay();
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
        let mut items = Vec::new();
        match event {
            RunEvent::Run(_) => return Ok(()),
            RunEvent::Resumed(resumed) => {
                self.resume(resumed);
                return resumed.call.map_or(Ok(()), |_| self.expect(event));
            }
            RunEvent::DamagedEnd(_) => {
                self.count_as_started();
                return Ok(());
            }
            RunEvent::LogFailed(_) | RunEvent::Lagged(_) => {
                return Err("such an event is never in a log".to_owned());
            }
            RunEvent::Turn(_) => {
                self.reader.begin_reply();
                self.replayed.last_turn = Some(Unfinished::default());
            }
            RunEvent::Text(delta) => {
                let bytes = delta.source.as_bytes();
                let read = self.reader.feed(bytes).filter(is_for_run);
                items.extend(read.map(ReplyItem::into_owned));
                if self.is_whole {
                    items.extend(self.reader.end_line());
                }
                if let Some(last) = &mut self.replayed.last_turn {
                    last.text.extend_from_slice(bytes);
                }
            }
            RunEvent::ReplyEnd(end) => {
                items = self.reader.finish(end.stop).items;
                if let Some(last) = &mut self.replayed.last_turn {
                    last.stop = Some(end.stop);
                }
            }
            RunEvent::Call(call) if call.submitted.is_some() => {
                if let Some(last) = &mut self.replayed.last_turn {
                    last.submitted.push((call.call, Arc::clone(&call.name)));
                }
            }
            RunEvent::Result(result) => self.replayed.results.push(result.clone()),
            _ => {}
        }
        // The state ignores events that follow from others.
        self.run_state.apply(event.clone(), items, event.at());
        self.take_events();
        self.expect(event)
    }

    /// Notes that all calls were interrupted, or sets the only one aside. From here on, the settings of the tools may be others.
    fn resume(&mut self, resumed: &Resumed) {
        if let Some((toolbox, called)) = self.tools.filter(|_| !resumed.tools.is_empty()) {
            let recorded = toolbox.as_recorded(&resumed.tools, called);
            self.run_state.set_tools(Arc::new(recorded));
        }
        match resumed.call {
            // If an earlier resume did not get this far, this one begins again.
            None => self.resumed = Some((self.replayed.unstarted(), resumed.at)),
            Some(call) => {
                self.run_state.interrupt(CallIndex::new(call), resumed.at);
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
        let starts = self.replayed.starts();
        let is_write = |call: u32| {
            let call = CallIndex::new(call);
            self.run_state.tool(call).is_none() || self.run_state.writes(call)
        };
        let writes: Vec<_> = starts.filter(|(call, _)| is_write(*call)).collect();
        self.replayed.maybe_started.extend(writes);
    }

    fn take_events(&mut self) {
        let events = std::mem::take(&mut self.run_state.events);
        self.replayed.pending.extend(events);
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
    if discriminant(event) != discriminant(recorded) || event.call() != recorded.call() {
        return false;
    }
    if let (RunEvent::Result(event), RunEvent::Result(recorded)) = (event, recorded) {
        return event.status == recorded.status;
    }
    let mut event = event.clone();
    event.set_at(recorded.at());
    event == *recorded
}

fn describe(event: &RunEvent) -> String {
    let number = event.call().map_or(0, |call| u64::from(call) + 1);
    let of = |id: &str, what: &str| format!("call {number} (`{id}`) {what}");
    match event {
        RunEvent::Examples(_) => "the model reads examples".to_owned(),
        RunEvent::Untrusted(received) => format!(
            "the model receives text {} (`{}`)",
            received.number, received.name
        ),
        RunEvent::Message(_) => "the model receives a message".to_owned(),
        RunEvent::Turn(turn) => format!("turn {} starts", u64::from(turn.turn) + 1),
        RunEvent::Text(_) => "a part of the reply arrives".to_owned(),
        RunEvent::Call(event) => of(&event.id, "appears"),
        RunEvent::Waiting(event) => of(&event.id, "is complete, with these arguments"),
        RunEvent::Ready(event) => match &event.held {
            Some(held) => of(&event.id, &format!("is ready and {held}")),
            None => of(&event.id, "is ready"),
        },
        RunEvent::Retry(event) => of(&event.id, "is retried"),
        RunEvent::Admitted(event) => of(&event.id, "is admitted"),
        RunEvent::Start(event) => of(&event.id, "is started"),
        RunEvent::SubagentText(event) => of(&event.id, "writes"),
        RunEvent::BackOff(event) => of(&event.id, "backs off"),
        RunEvent::Result(event) => of(&event.id, &format!("ends as {}", event.status)),
        RunEvent::ReplyEnd(_) => "the reply ends".to_owned(),
        RunEvent::Cancel(cancel) if cancel.call.is_none() => "all calls are cancelled".to_owned(),
        RunEvent::Cancel(_) => format!("call {number} is cancelled"),
        RunEvent::TurnEnd(_) => "the turn ends".to_owned(),
        _ => "an event".to_owned(),
    }
}
