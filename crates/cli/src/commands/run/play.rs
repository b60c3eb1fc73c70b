//! The event loop of a run: feeds the reply, updates the display and handles signals.

use std::collections::{BTreeMap, VecDeque};
use std::mem::take;
use std::time::{Duration, Instant};

use plaincall::{CallResult, Run, RunEvent, Stop, TurnEvent, TurnResults};
use plaincall_reply::{CallError, MissingEnd, ReplyCheck, ReplyItem, ReplyReader, Unclosed};
use plaincall_report::diagnostics::near_misses_outside_calls;
use plaincall_tool::{Limits, ToolSet};
use tokio::time::{self, sleep_until, timeout};

use crate::commands::run::RunOptions;
use crate::commands::run::beginning::Beginning;
use crate::commands::run::recovery;
use crate::commands::run::reply::Reply;
use crate::environment::Environment;
use crate::history::{History, Interrupted};
use crate::options::Color;
use crate::status::{Failure, Outcome, Status, print_error, print_note, report_removed_files};
use crate::terminal::displays::{Content, Displays};
use crate::terminal::event::UiEvent;
use crate::terminal::interrupts::{Interrupt, Interrupts};
use crate::terminal::printer::post;
use crate::text::input::stop_at_end;

/// How long a display that blocks delays the end of an interrupted run.
const DISPLAY_GRACE: Duration = Duration::from_secs(2);

/// The maximum length of the part of a reply that is read after it has too many calls, in bytes.
const AFTER_CALLS: usize = 64 << 10;

/// A piece of the reply, or the reason why there is none.
type Piece = Result<Vec<u8>, Failure>;

/// How a run ended.
pub(super) enum Ended {
    /// All calls have ended and were reported.
    Finished(Status),
    /// Aborted. The displays close after the calls are gone.
    Aborted(Status, Displays),
}

/// Why reading the reply stopped.
enum Ending {
    /// The end of the reply.
    Clean,
    /// A read error.
    Failed(Failure),
    Interrupted,
}

/// State collected from the events of the turn.
#[derive(Default)]
struct Received {
    is_resumed: bool,
    /// The number of lost events.
    missed: u64,
    /// Whether the turn has ended.
    is_complete: bool,
    may_ask: bool,
    /// The number of calls that have begun.
    calls: u32,
    /// The length of what was read after too many calls, in bytes.
    surplus: usize,
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
                if let RunEvent::Call(appeared) = &event {
                    self.calls = appeared.call.saturating_add(1);
                }
                self.may_ask = true;
                waiting.push_back(UiEvent::Run(Box::new(event)));
            }
            _ => {}
        }
    }

    /// Returns the next piece of the reply, or an error if too much follows the calls that may run.
    fn within(&mut self, piece: Option<Piece>, max_calls: Option<u32>) -> Option<Piece> {
        let Some(max) = max_calls.filter(|max| self.calls > *max) else {
            return piece;
        };
        let piece = piece?;
        self.surplus += piece.as_ref().map_or(0, Vec::len);
        if self.surplus <= AFTER_CALLS {
            return Some(piece);
        }
        Some(Err(Failure::Runtime(format!(
            "the reply has more than {max} calls, so the rest was not read; to run more, set `calls_per_turn` in the tools file"
        ))))
    }
}

/// Creates the displays of a run. `is_typed` is whether the reply is typed on the terminal.
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
    let started = now.checked_sub(history.at()).unwrap_or(now);
    Displays::new(content, started, color, environment)
}

/// Shows the results of a run that has ended.
pub(super) async fn show(
    options: &RunOptions,
    color: Color,
    environment: &Environment,
    history: History,
) -> Outcome {
    let mut displays = displays(options, color, environment, &history, true)?;
    let end = history.end();
    let all_ok = end.is_some_and(|end| end.counts.ok == end.counts.total());
    for event in history.events {
        displays.show(UiEvent::Run(Box::new(event))).await;
    }
    match displays.close().await {
        Some(failure) => Err(failure),
        None if all_ok => Ok(Status::Success),
        None => Ok(Status::Failed),
    }
}

/// Runs the calls of the reply until they end or a second signal arrives.
///
/// A slow display pauses the reading of the reply, but neither calls nor signals.
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
    let (display, max_calls) = (displays.events.clone(), beginning.policy.calls_per_turn);
    // After an interrupt, how long the display may take for its next event.
    let mut deadline = None;
    let mut is_blocked = false;
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
                deadline = after(DISPLAY_GRACE);
                canceller.cancel();
                post(&display, UiEvent::Stopping);
                if is_last {
                    return Ok(Ended::Aborted(status(first, None), displays));
                }
                ending.get_or_insert(Ending::Interrupted);
                turn.end(Stop::Broken);
            }
            place = display.reserve(), if !waiting.is_empty() => {
                let event = waiting.pop_front();
                // The run continues without a display.
                if let (Ok(place), Some(event)) = (place, event) {
                    place.send(event);
                }
                deadline = deadline.and_then(|_| after(DISPLAY_GRACE));
                // The start of a resumed run is shown before any question.
                if received.may_ask && waiting.is_empty() {
                    displays.prompter.open();
                }
            }
            () = sleep_until(deadline.unwrap_or_else(time::Instant::now)), if deadline.is_some() && !waiting.is_empty() => {
                is_blocked = true;
                waiting.clear();
            }
            event = turn.next(), if waiting.is_empty() => match event {
                None => break,
                Some(event) => {
                    received.take(event, displays.is_live, &mut waiting);
                    if is_blocked {
                        waiting.clear();
                    }
                }
            },
            () = ticks.next() => displays.tick(),
            piece = reply.next(), if ending.is_none() && waiting.is_empty() => match received.within(piece, max_calls) {
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
    let written = match close(&mut displays, run, interrupts, first).await {
        Ok(written) => written,
        Err(interrupt) => {
            let status = status(first.or(Some(interrupt)), Some(&results));
            return Ok(Ended::Aborted(status, displays));
        }
    };
    let status = status(first, Some(&results));
    if !options.json {
        if matches!(ending, Some(Ending::Clean)) {
            report_truncation(at_end, &beginning, &results);
        }
        report_near_misses(&reply, &beginning);
    }
    report_problems(options, &results, &interrupted);
    let missing = || missed_events(received.missed, received.is_complete);
    outcome(status, ending, written.or_else(missing)).map(Ended::Finished)
}

fn outcome(status: Status, ending: Option<Ending>, unwritten: Option<Failure>) -> Outcome {
    match (status, ending, unwritten) {
        (Status::Interrupted(_), ..) => Ok(status),
        (_, Some(Ending::Failed(failure)), _) | (_, _, Some(failure)) => Err(failure),
        (_, _, None) => Ok(status),
    }
}

fn after(duration: Duration) -> Option<time::Instant> {
    time::Instant::now().checked_add(duration)
}

fn report_near_misses(reply: &Reply, beginning: &Beginning) {
    let text = String::from_utf8_lossy(&reply.fed);
    let notes = near_misses_outside_calls(&text, &beginning.dialect);
    notes.iter().for_each(print_note);
}

/// Closes the displays and the run. Returns the error of the displays.
///
/// # Errors
/// Returns the signal, if the standard output blocks and a signal arrives or has arrived.
async fn close(
    displays: &mut Displays,
    run: Run,
    interrupts: &mut Interrupts,
    first: Option<Interrupt>,
) -> Result<Option<Failure>, Interrupt> {
    let last = async {
        let written = match first {
            None => Ok(displays.close().await),
            Some(interrupt) => {
                let written = timeout(DISPLAY_GRACE, displays.close()).await;
                written.map_err(|_| interrupt)
            }
        };
        (written, run.close().await)
    };
    tokio::select! {
        (written, closed) = last => {
            report_removed_files(closed, "to keep files, use `--run-directory DIR`");
            written
        }
        interrupt = interrupts.next() => Err(interrupt),
    }
}

fn status(interrupt: Option<Interrupt>, results: Option<&TurnResults>) -> Status {
    match (interrupt, results) {
        (Some(interrupt), _) => Status::Interrupted(interrupt.status()),
        (None, Some(results)) if results.all_ok() && results.log_failure().is_none() => {
            Status::Success
        }
        (None, _) => Status::Failed,
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
        print_note(&format!(
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
        print_error(&format!(
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
        print_error(&format!(
            "the outcome of {} is unknown: the call was interrupted, and its tool may have changed something. Check what happened, then resume with `plaincall run --resume {}`, which asks on the terminal, or pass `--again ID`, `--done ID` or `--not-done ID`",
            open.join(", "),
            log.display()
        ));
    }
}

/// Returns an error if events are missing from the display. Without the end of the turn, at least one is missing.
fn missed_events(count: u64, is_complete: bool) -> Option<Failure> {
    let count = count.max(u64::from(!is_complete));
    (count > 0).then(|| {
        Failure::Runtime(format!(
            "the display could not keep up: at least {count} events are not shown; the run itself is not affected"
        ))
    })
}

/// Returns whether a call was rejected because the text may be truncated inside it.
fn was_truncated(result: &CallResult) -> bool {
    let error = result.call_error.as_deref();
    matches!(
        error,
        Some(CallError::NotClosed {
            why: MissingEnd::EndOfFile | MissingEnd::MaybeTruncated,
            ..
        })
    )
}

/// Returns the events before the interruption; for a live display, also the reply so far.
fn before(beginning: &mut Beginning, is_live: bool) -> VecDeque<UiEvent> {
    let mut events = VecDeque::new();
    let dialect = &beginning.dialect;
    let reader = ReplyCheck::new(dialect, Unclosed::Reject).and_then(|check| {
        ReplyReader::new(dialect, ToolSet::default(), check, Limits::for_running())
    });
    // The run has already used this dialect, so it is valid.
    if let (true, Ok(mut reader)) = (is_live, reader) {
        for item in reader.feed(&beginning.history.text()) {
            shown(item, &mut events);
        }
    }
    let history = take(&mut beginning.history.events).into_iter();
    events.extend(history.map(|event| UiEvent::Run(Box::new(event))));
    events
}

/// Adds a parsed part of the reply as events for the display.
fn shown(item: ReplyItem<'_>, events: &mut VecDeque<UiEvent>) {
    let number = |call: usize| u32::try_from(call).unwrap_or(u32::MAX);
    match item {
        ReplyItem::Text(text) => events.push_back(UiEvent::Text(text.into_owned())),
        ReplyItem::Reasoning(text) => events.push_back(UiEvent::Reasoning(text.into_owned())),
        ReplyItem::CallStart(started) => {
            let call = number(started.index);
            let (id, name) = (started.id.as_str().into(), started.name.as_str().into());
            events.push_back(UiEvent::Call { call, id, name });
            let line = started.raw_args.as_ref().filter(|line| !line.is_empty());
            events.extend(line.map(|text| UiEvent::Value {
                call,
                pointer: None,
                text: text.clone(),
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
