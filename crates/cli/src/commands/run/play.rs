//! One run from its first byte to its end: the reply is fed, the display is told, signals are heeded.

use std::collections::BTreeMap;
use std::mem::take;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use plaincall::{CallResult, Run, Stop, Turn, TurnResults};
use plaincall_call::{CallError, Limits, MissingEnd, ReplyCheck, ReplyReader, ToolSet, Unclosed};
use tokio::sync::mpsc::unbounded_channel;

use crate::commands::run::RunOptions;
use crate::commands::run::beginning::Beginning;
use crate::commands::run::fragments::Fragments;
use crate::commands::run::recovery;
use crate::commands::run::reply::{Ending, Reply};
use crate::commands::run::telling::{Forwarding, all_told};
use crate::environment::Environment;
use crate::history::{History, Interrupted};
use crate::options::Color;
use crate::status::{Failure, Outcome, Status, complain, remark, tell_removed};
use crate::terminal::displays::{Content, Displays};
use crate::terminal::event::UiEvent;
use crate::terminal::interrupts::{Interrupt, Interrupts};
use crate::terminal::printer::post;
use crate::text::findings::near_misses_outside_calls;

/// How a run ended.
pub(super) enum Ended {
    /// All calls have ended, and all has been said.
    Settled(Status),
    /// All is to end at once; the displays are left when the calls are gone.
    AtOnce(Status, Displays),
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
pub(super) async fn play(
    mut displays: Displays,
    mut run: Run,
    mut reply: Reply,
    options: &RunOptions,
    mut beginning: Beginning,
    interrupts: &mut Interrupts,
) -> Result<Ended, Failure> {
    let canceller = run.canceller();
    displays.prompter.set_quit(move || canceller.cancel());
    let canceller = run.canceller();
    let display = displays.events.clone();
    let mut first: Option<Interrupt> = None;
    let heed = |interrupt| {
        canceller.cancel();
        post(&display, UiEvent::Stopping);
        Some(interrupt)
    };
    let interrupted = beginning.history.interrupted();
    let fragments = Arc::new(Fragments::default());
    if displays.is_live {
        read_again(&beginning, &fragments);
    }
    let (told, wishes) = unbounded_channel();
    let forwarding = Forwarding {
        history: take(&mut beginning.history.events),
        events: run.events(),
        fragments: Arc::clone(&fragments),
        wishes,
        display: display.clone(),
        prompter: Arc::clone(&displays.prompter),
    };
    let events = tokio::spawn(forwarding.go());
    let ticks = tokio::spawn({
        let (mut ticks, display) = (displays.ticks(), display.clone());
        let fragments = Arc::clone(&fragments);
        async move {
            loop {
                ticks.next().await;
                fragments.pass_on(&display).await;
                // A display that is behind has no use for one more frame.
                let _ = display.try_send(UiEvent::Tick);
            }
        }
    });
    beginning.tell_heard(&mut run);
    if displays.is_live {
        run.listen();
    }
    let mut turn = run.go_on();
    // Reading waits for whoever shows what happens, so that nothing is missed; the calls do not.
    let fed = async |turn: &mut Turn<'_>| {
        fragments.take(turn);
        fragments.pass_on(&display).await;
        all_told(&told).await;
    };
    let reading = async {
        all_told(&told).await;
        reply.feed(&mut turn, options.pace, fed).await
    };
    let ending = tokio::select! {
        ending = reading => Some(ending),
        interrupt = interrupts.next() => {
            first = heed(interrupt);
            None
        }
    };
    let stop = match &ending {
        Some(Ending::Clean) => beginning.stop(reply.is_file),
        _ => Stop::Broken,
    };
    turn.end(stop);
    fragments.take(&mut turn);
    let results = finish(turn, stop, &mut first, interrupts, heed).await;
    ticks.abort();
    drop(told);
    let last = async {
        fragments.pass_on(&display).await;
        // All events have been passed on when the end of the turn has.
        let missed = events.await.unwrap_or_default();
        let failure = displays.close().await.or_else(|| missed_events(missed));
        (failure, run.close().await)
    };
    // Whoever does not wait for a standard output that stands still can say so.
    let closed = tokio::select! {
        closed = last, if results.is_some() => Some(closed),
        interrupt = interrupts.next(), if results.is_some() => {
            first.get_or_insert(interrupt);
            None
        }
        else => None,
    };
    let status = status(first, results.as_ref());
    let (Some((failure, closed)), Some(results)) = (closed, results) else {
        return Ok(Ended::AtOnce(status, displays));
    };
    tell_removed(closed, "`--run-directory DIR` keeps it");
    if matches!(ending, Some(Ending::Clean)) && !options.json {
        tell_truncated(stop, &beginning, &results);
    }
    tell_near_misses(options, &reply, &beginning);
    tell_what_is_wrong(options, &results, &interrupted);
    match (status, ending, failure) {
        (Status::Interrupted(_), ..) => Ok(Ended::Settled(status)),
        (_, Some(Ending::Failed(failure)), _) | (_, _, Some(failure)) => Err(failure),
        (_, _, None) => Ok(Ended::Settled(status)),
    }
}

/// Waits for the results. With the second signal, or one that is urgent, there are none.
async fn finish(
    turn: Turn<'_>,
    stop: Stop,
    first: &mut Option<Interrupt>,
    interrupts: &mut Interrupts,
    heed: impl Fn(Interrupt) -> Option<Interrupt>,
) -> Option<TurnResults> {
    let mut running = pin!(turn.finish(stop));
    while !first.is_some_and(Interrupt::is_urgent) {
        tokio::select! {
            results = &mut running => return Some(results),
            interrupt = interrupts.next() => {
                if first.is_some() {
                    break;
                }
                *first = heed(interrupt);
            }
        }
    }
    None
}

/// What the exit status says.
fn status(interrupt: Option<Interrupt>, results: Option<&TurnResults>) -> Status {
    match (interrupt, results) {
        (Some(interrupt), _) => Status::Interrupted(interrupt.status()),
        (None, Some(results)) if results.all_ok() && results.log_failure().is_none() => {
            Status::Good
        }
        (None, _) => Status::Wrong,
    }
}

/// Says that a reply may be truncated, if that rejected a call of it.
fn tell_truncated(stop: Stop, beginning: &Beginning, results: &TurnResults) {
    let origin = match stop {
        Stop::Broken if beginning.reply.is_some() => "came through a pipe",
        Stop::EndOfFile => "is a file",
        _ => return,
    };
    if results.iter().any(was_truncated) {
        remark(&format!(
            "the reply {origin} and may be truncated; if it is complete, `--complete` runs a call that the end of the text closes",
        ));
    }
}

/// Names what looks like a call or a marker outside the calls of the reply.
fn tell_near_misses(options: &RunOptions, reply: &Reply, beginning: &Beginning) {
    if !options.json {
        let text = String::from_utf8_lossy(&reply.fed);
        for note in near_misses_outside_calls(&text, &beginning.dialect) {
            remark(&note);
        }
    }
}

/// Says what the results alone do not say, or not clearly enough.
fn tell_what_is_wrong(
    options: &RunOptions,
    results: &TurnResults,
    interrupted: &BTreeMap<u32, Interrupted>,
) {
    if let Some(error) = results.log_failure() {
        let rest = if options.json {
            ""
        } else {
            ", and the log does not hold all that is said here"
        };
        complain(&format!(
            "the log could not be written any more: {error}; nothing was started after that{rest}"
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
            "nobody knows what became of {}: cut off while running, and the tool may have changed something. Look, and take the run up again: `plaincall run --resume {}` asks on a terminal; or say it with `--again ID`, `--done ID` or `--not-done ID`",
            open.join(", "),
            log.display()
        ));
    }
}

fn missed_events(count: u64) -> Option<Failure> {
    (count > 0).then(|| {
        Failure::Broken(format!(
            "more happened at once than could be shown, and at least {count} of the events are missing in what is shown; the run itself missed nothing"
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

/// Reads again what was read before the run was interrupted, for people who see it.
fn read_again(beginning: &Beginning, fragments: &Fragments) {
    let dialect = &beginning.dialect;
    // The run has read it with the same dialect, so it can be read.
    let check = ReplyCheck::new(dialect, Unclosed::Reject);
    let reader = check.and_then(|check| {
        ReplyReader::new(dialect, ToolSet::default(), check, Limits::for_running())
    });
    if let Ok(mut reader) = reader {
        for item in reader.feed(&beginning.history.text()) {
            fragments.add(&item);
        }
    }
}
