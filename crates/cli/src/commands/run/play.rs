//! The main loop of a run: feeds the reply, updates the display and handles signals.

use std::collections::{BTreeMap, VecDeque};
use std::mem::take;
use std::time::Instant;

use plaincall::{CallResult, Run, RunEvent, Stop, TurnEvent, TurnResults};
use plaincall_call::{
    CallError, Limits, MissingEnd, ReplyCheck, ReplyItem, ReplyReader, ToolSet, Unclosed,
};

use crate::commands::run::RunOptions;
use crate::commands::run::beginning::Beginning;
use crate::commands::run::recovery;
use crate::commands::run::reply::Reply;
use crate::environment::Environment;
use crate::history::{History, Interrupted};
use crate::options::Color;
use crate::status::{Failure, Outcome, Status, complain, remark, report_removed_files};
use crate::terminal::displays::{Content, Displays};
use crate::terminal::event::UiEvent;
use crate::terminal::interrupts::{Interrupt, Interrupts};
use crate::terminal::printer::post;
use crate::text::findings::near_misses_outside_calls;
use crate::text::input::stop_at_end;

/// How a run ended.
pub(super) enum Ended {
    /// All calls have ended and were reported.
    Settled(Status),
    /// Aborted. The displays close after the calls are gone.
    AtOnce(Status, Displays),
}

/// Why reading the reply ended.
enum Ending {
    /// It came to its end.
    Clean,
    /// It could not be read on.
    Failed(Failure),
    Interrupted,
}

/// What the loop knows from the events of the turn.
#[derive(Default)]
struct Received {
    is_resumed: bool,
    /// How many events were lost.
    missed: u64,
    /// Whether the turn has ended.
    is_complete: bool,
    may_ask: bool,
}

impl Received {
    /// Handles an event, and adds what the display shows of it to `waiting`.
    fn take(&mut self, event: TurnEvent, is_live: bool, waiting: &mut VecDeque<UiEvent>) {
        match event {
            TurnEvent::Reply(item) if is_live => shown(item, waiting),
            TurnEvent::Run(RunEvent::Lagged(lost)) => self.missed += lost.count,
            // The history already has the start of a resumed run.
            TurnEvent::Run(RunEvent::Run(_)) if self.is_resumed => {}
            TurnEvent::Run(event) => {
                self.is_complete |= matches!(event, RunEvent::TurnEnd(_));
                self.may_ask = true;
                waiting.push_back(UiEvent::Run(Box::new(event)));
            }
            _ => {}
        }
    }
}

/// The displays of a run. `is_typed` is whether the reply is typed on the terminal.
pub(super) fn displays(
    options: &RunOptions,
    color: Color,
    environment: &Environment,
    history: &History,
    is_typed: bool,
) -> Result<Displays, Failure> {
    let content = Content::Run {
        is_record: options.json,
        is_full: options.full,
        is_typed,
    };
    let now = Instant::now();
    let begun = now.checked_sub(history.at()).unwrap_or(now);
    Displays::new(content, begun, color, environment)
}

/// Shows the results of a run that is over.
pub(super) async fn show(
    options: &RunOptions,
    color: Color,
    environment: &Environment,
    history: History,
) -> Outcome {
    let mut displays = displays(options, color, environment, &history, true)?;
    let end = history.end();
    let is_good = end.is_some_and(|end| end.counts.ok == end.counts.total());
    for event in history.events {
        displays.show(UiEvent::Run(Box::new(event))).await;
    }
    match displays.close().await {
        Some(failure) => Err(failure),
        None if is_good => Ok(Status::Good),
        None => Ok(Status::Wrong),
    }
}

/// Runs the reply's calls to their end, or to the second signal.
///
/// A display that does not keep up stops the reading of the reply, but neither the calls nor the signals.
pub(super) async fn play(
    mut displays: Displays,
    mut run: Run,
    mut reply: Reply,
    options: &RunOptions,
    mut beginning: Beginning,
    interrupts: &mut Interrupts,
) -> Result<Ended, Failure> {
    let (canceller, quit) = (run.canceller(), run.canceller());
    displays.prompter.set_quit(move || quit.cancel());
    let interrupted = beginning.history.interrupted();
    let is_resumed = !beginning.history.events.is_empty();
    // The events that the display has not received yet.
    let mut waiting = before(&mut beginning, displays.is_live);
    if !is_resumed {
        displays.prompter.open();
    }
    run.listen();
    beginning.report_untrusted(&mut run);
    let mut turn = run.resume_turn();
    let mut ticks = displays.ticks();
    let mut first: Option<Interrupt> = None;
    let at_end = stop_at_end(beginning.complete, reply.is_file);
    let mut ending = None;
    let mut received = Received {
        is_resumed,
        ..Received::default()
    };
    let display = displays.events.clone();
    loop {
        tokio::select! {
            biased;
            interrupt = interrupts.next() => {
                // A display that blocks may hold back the end of the turn.
                while !waiting.is_empty() && let Some(event) = turn.try_next() {
                    received.take(event, displays.is_live, &mut waiting);
                }
                let is_last = first.is_some() || received.is_complete || interrupt.is_urgent();
                first.get_or_insert(interrupt);
                canceller.cancel();
                post(&display, UiEvent::Stopping);
                if is_last {
                    return Ok(Ended::AtOnce(status(first, None), displays));
                }
                ending.get_or_insert(Ending::Interrupted);
                turn.end(Stop::Broken);
            }
            place = display.reserve(), if !waiting.is_empty() => {
                let event = waiting.pop_front();
                // A display that has gone is no reason to stop.
                if let (Ok(place), Some(event)) = (place, event) {
                    place.send(event);
                }
                // That the run was resumed is shown before anything is asked.
                if received.may_ask && waiting.is_empty() {
                    displays.prompter.open();
                }
            }
            event = turn.next(), if waiting.is_empty() => match event {
                None => break,
                Some(event) => received.take(event, displays.is_live, &mut waiting),
            },
            () = ticks.next() => displays.tick(),
            piece = reply.next(), if ending.is_none() && waiting.is_empty() => match piece {
                Some(Ok(piece)) => {
                    turn.feed(&piece);
                    reply.fed(piece, &turn);
                }
                Some(Err(failure)) => {
                    ending = Some(Ending::Failed(failure));
                    turn.end(Stop::Broken);
                }
                None => {
                    ending = Some(Ending::Clean);
                    turn.end(at_end);
                }
            }
        }
    }
    let results = turn.finish(Stop::Broken).await;
    let written = match close(&mut displays, run, interrupts).await {
        Ok(written) => written,
        Err(interrupt) => {
            let status = status(first.or(Some(interrupt)), Some(&results));
            return Ok(Ended::AtOnce(status, displays));
        }
    };
    let status = status(first, Some(&results));
    if !options.json {
        if matches!(ending, Some(Ending::Clean)) {
            report_truncation(at_end, &beginning, &results);
        }
        let text = String::from_utf8_lossy(&reply.fed);
        let notes = near_misses_outside_calls(&text, &beginning.dialect);
        notes.iter().for_each(remark);
    }
    report_problems(options, &results, &interrupted);
    let missing = || missed_events(received.missed, received.is_complete);
    match (status, ending, written.or_else(missing)) {
        (Status::Interrupted(_), ..) => Ok(Ended::Settled(status)),
        (_, Some(Ending::Failed(failure)), _) | (_, _, Some(failure)) => Err(failure),
        (_, _, None) => Ok(Ended::Settled(status)),
    }
}

/// Ends the displays and the run, unless a signal comes first: a standard output may stand still. Returns what went wrong
/// with the displays.
async fn close(
    displays: &mut Displays,
    run: Run,
    interrupts: &mut Interrupts,
) -> Result<Option<Failure>, Interrupt> {
    let last = async { (displays.close().await, run.close().await) };
    tokio::select! {
        (written, closed) = last => {
            report_removed_files(closed, "to keep files, use `--run-directory DIR`");
            Ok(written)
        }
        interrupt = interrupts.next() => Err(interrupt),
    }
}

fn status(interrupt: Option<Interrupt>, results: Option<&TurnResults>) -> Status {
    match (interrupt, results) {
        (Some(interrupt), _) => Status::Interrupted(interrupt.status()),
        (None, Some(results)) if results.all_ok() && results.log_failure().is_none() => {
            Status::Good
        }
        (None, _) => Status::Wrong,
    }
}

/// Notes that the reply may be truncated, if a call was rejected for that reason.
fn report_truncation(stop: Stop, beginning: &Beginning, results: &TurnResults) {
    let origin = match stop {
        Stop::Broken if beginning.reply.is_some() => "came from a pipe",
        Stop::EndOfFile => "is a file",
        _ => return,
    };
    if results.iter().any(was_truncated) {
        remark(&format!(
            "the reply {origin} and may be truncated; if it is complete, use `--complete` to run its last call",
        ));
    }
}

/// Reports log failures and calls with unknown outcomes.
fn report_problems(
    options: &RunOptions,
    results: &TurnResults,
    interrupted: &BTreeMap<u32, Interrupted>,
) {
    if let Some(error) = results.log_failure() {
        let rest = if options.json {
            ""
        } else {
            ", so the log is incomplete"
        };
        complain(&format!(
            "the log could not be written: {error}; no further calls were started{rest}"
        ));
    }
    let open = results
        .iter()
        .filter(|result| result.status == plaincall::Status::Unknown);
    let open: Vec<String> = open
        .filter_map(|result| interrupted.get(&result.call))
        .map(recovery::name)
        .collect();
    if let Some(log) = options.resume.as_ref().filter(|_| !open.is_empty()) {
        complain(&format!(
            "the outcome of {} is unknown: the call was interrupted, and its tool may have changed something. Check what happened, then resume with `plaincall run --resume {}`, which asks on the terminal, or pass `--again ID`, `--done ID` or `--not-done ID`",
            open.join(", "),
            log.display()
        ));
    }
}

/// Returns an error if events are missing from the display. Without the end of the turn, at least one is.
fn missed_events(count: u64, is_complete: bool) -> Option<Failure> {
    let count = count.max(u64::from(!is_complete));
    (count > 0).then(|| {
        Failure::Broken(format!(
            "the display could not keep up: at least {count} events are not shown; the run itself is not affected"
        ))
    })
}

/// Whether a call was rejected because the text may have been truncated inside it.
fn was_truncated(result: &CallResult) -> bool {
    let error = result.call_error.as_deref();
    matches!(
        error,
        Some(CallError::NotClosed {
            why: MissingEnd::Truncated,
            ..
        })
    )
}

/// What happened before the run was interrupted; for a live display, also the reply so far.
fn before(beginning: &mut Beginning, is_live: bool) -> VecDeque<UiEvent> {
    let mut events = VecDeque::new();
    let dialect = &beginning.dialect;
    let reader = ReplyCheck::new(dialect, Unclosed::Reject).and_then(|check| {
        ReplyReader::new(dialect, ToolSet::default(), check, Limits::for_running())
    });
    // The run has read it with the same dialect, so it can be read.
    if let (true, Ok(mut reader)) = (is_live, reader) {
        for item in reader.feed(&beginning.history.text()) {
            shown(item, &mut events);
        }
    }
    let history = take(&mut beginning.history.events).into_iter();
    events.extend(history.map(|event| UiEvent::Run(Box::new(event))));
    events
}

/// Adds what was read of a reply as events of the display.
fn shown(item: ReplyItem<'_>, events: &mut VecDeque<UiEvent>) {
    let number = |call: usize| u32::try_from(call).unwrap_or(u32::MAX);
    match item {
        ReplyItem::Text(text) => events.push_back(UiEvent::Text(text.into_owned())),
        ReplyItem::Reasoning(text) => events.push_back(UiEvent::Reasoning(text.into_owned())),
        ReplyItem::CallStart(started) => {
            let call = number(started.index);
            let (id, name) = (started.id.into(), started.name.into());
            events.push_back(UiEvent::Call { call, id, name });
            let line = started.raw_args.filter(|line| !line.is_empty());
            events.extend(line.map(|text| UiEvent::Value {
                call,
                pointer: None,
                text,
            }));
        }
        ReplyItem::ArgumentDelta {
            call,
            pointer,
            text,
        } => events.push_back(UiEvent::Value {
            call: number(call),
            pointer,
            text: text.into_owned(),
        }),
        _ => {}
    }
}
