//! One run from its first byte to its end: the reply is fed, the display told, signals heeded.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use plaincall::{CallResult, Run, Stop, Toolbox, TurnResults};
use plaincall_call::{CallError, Limits, MissingEnd, ReplyCheck, ReplyReader, ToolSet, Unclosed};
use tokio::sync::mpsc::{Sender, unbounded_channel};

use crate::environment::Environment;
use crate::options::Color;
use crate::picture::glyphs::{ASCII, Glyphs, UNICODE};
use crate::picture::summary::Form;
use crate::run::RunOptions;
use crate::run::approval::Approval;
use crate::run::beginning::Beginning;
use crate::run::desk::Desk;
use crate::run::fragments::Fragments;
use crate::run::interrupts::{Interrupt, Interrupts};
use crate::run::live::Live;
use crate::run::news::{Display, News};
use crate::run::past::{CutOff, Past};
use crate::run::plain::Plain;
use crate::run::printer::{self, Printer, Target};
use crate::run::record::Record;
use crate::run::reply::{Ending, Reply};
use crate::run::stopping::Stopping;
use crate::run::telling::{Forwarding, all_told, tick};
use crate::run::terminal::Size;
use crate::run::word;
use crate::status::{Failure, Outcome, Status, complain, remark, tell_removed};
use crate::text::findings::near_misses_outside_calls;

/// How many rows of an output are shown: on a terminal, and in a pipe.
const ROWS_ON_TERMINAL: usize = 12;
const ROWS_IN_PIPE: usize = 40;

/// What a run needs around it: the display, and who is asked.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) gate: Approval,
    news: Sender<News>,
    printer: Printer,
    is_live: bool,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// All calls have ended, and all has been said.
    Settled(Status),
    /// All is to end at once.
    AtOnce(Leftover),
}

/// What is put in order when the calls are gone.
#[derive(Debug)]
pub(crate) struct Leftover {
    status: Status,
    desk: Arc<Desk>,
    printer: Printer,
}

impl Leftover {
    /// Gives the terminal back as it was.
    pub(crate) fn clear(self) -> Status {
        self.desk.close();
        // The display may still hear from the desk.
        drop(self.desk);
        self.printer.finish_soon();
        self.status
    }
}

/// Where a run is shown, and how.
struct Screen {
    display: Box<dyn Display>,
    is_live: bool,
    is_terminal: bool,
}

impl Screen {
    /// The display of a run that began at this moment. `is_typed` is whether the reply is typed on the terminal.
    fn new(
        options: &RunOptions,
        color: Color,
        environment: &Environment,
        begun: Instant,
        is_typed: bool,
    ) -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let is_live =
            is_terminal && !is_typed && !options.json && environment.has_capable_terminal();
        let has_color = match color.choice() {
            anstream::ColorChoice::Auto => {
                anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never
            }
            choice => choice != anstream::ColorChoice::Never,
        };
        let glyphs: &'static Glyphs = if is_live && environment.has_unicode() {
            &UNICODE
        } else {
            &ASCII
        };
        let rows = |rows| (!options.full).then_some(rows);
        let display: Box<dyn Display> = if options.json {
            Box::new(Record::new(is_terminal))
        } else if is_live {
            let measure = Box::new(Size::of_standard_output);
            Box::new(Live::new(
                begun,
                glyphs,
                has_color,
                rows(ROWS_ON_TERMINAL),
                measure,
            ))
        } else {
            let form = Form {
                width: is_terminal.then(|| Size::of_standard_output().columns),
                rows: rows(ROWS_IN_PIPE),
            };
            Box::new(Plain::new(begun, glyphs, has_color, form))
        };
        Self {
            display,
            is_live,
            is_terminal,
        }
    }
}

/// Shows the results of a run that is over.
pub(crate) async fn show(
    options: &RunOptions,
    color: Color,
    environment: &Environment,
    past: Past,
) -> Outcome {
    let begun = Instant::now();
    let begun = begun.checked_sub(past.at()).unwrap_or(begun);
    let screen = Screen::new(options, color, environment, begun, true);
    let is_good = past
        .end()
        .is_some_and(|end| end.counts.ok == end.counts.total());
    let (news, mut printer) = printer::start(screen.display, Target::Output)?;
    for event in past.events {
        let _ = news.send(News::Event(event)).await;
    }
    let _ = news.send(News::Over).await;
    match printer.finish().await {
        Some(failure) => Err(failure),
        None if is_good => Ok(Status::Good),
        None => Ok(Status::Wrong),
    }
}

impl Stage {
    pub(crate) fn new(
        options: &RunOptions,
        color: Color,
        environment: &Environment,
        beginning: &Beginning,
        toolbox: Toolbox,
    ) -> Result<Self, Failure> {
        // A reply that is typed is on the screen already, and typing and drawing would get in each other's way.
        let is_typed = beginning.reads_standard_input() && io::stdin().is_terminal();
        let begun = Instant::now();
        let begun = begun.checked_sub(beginning.past.at()).unwrap_or(begun);
        let screen = Screen::new(options, color, environment, begun, is_typed);
        let (news, printer) = printer::start(screen.display, Target::Output)?;
        let desk = Desk::new(
            news.clone(),
            screen.is_live,
            screen.is_terminal,
            environment,
        );
        Ok(Self {
            gate: Approval::new(beginning, toolbox, Arc::new(desk)),
            news,
            printer,
            is_live: screen.is_live,
        })
    }

    /// Runs the reply's calls to their end, or to the second signal.
    pub(crate) async fn play(
        self,
        mut run: Run,
        mut reply: Reply,
        options: &RunOptions,
        mut beginning: Beginning,
        interrupts: &mut Interrupts,
    ) -> Result<Ended, Failure> {
        let Self {
            gate,
            news,
            mut printer,
            is_live,
        } = self;
        let mut stopping = Stopping {
            interrupts,
            first: None,
            canceller: run.canceller(),
            news: news.clone(),
        };
        let canceller = run.canceller();
        gate.desk.set_quit(move || canceller.cancel());
        gate.set_directories(run.directories());
        let cut_off = beginning.past.cut_off();
        let fragments = Arc::new(Fragments::default());
        if is_live {
            read_again(&beginning, &fragments);
        }
        let (told, wishes) = unbounded_channel();
        let forwarding = Forwarding {
            past: mem::take(&mut beginning.past.events),
            events: run.events(),
            fragments: Arc::clone(&fragments),
            wishes,
            news: news.clone(),
            desk: Arc::clone(&gate.desk),
        };
        let events = tokio::spawn(forwarding.go());
        let ticks = is_live.then(|| tokio::spawn(tick(Arc::clone(&fragments), news.clone())));
        beginning.tell_heard(&mut run);
        let mut turn = run.go_on();
        if is_live {
            let fragments = Arc::clone(&fragments);
            turn = turn.watch(move |item| fragments.add(item));
        }
        // Reading waits for whoever shows what happens, so that nothing is missed; the calls do not.
        let fed = async || {
            fragments.pass_on(&news).await;
            all_told(&told).await;
        };
        let reading = async {
            all_told(&told).await;
            reply.feed(&mut turn, options.pace, fed).await
        };
        let ending = stopping.until_first(reading).await;
        let stop = match &ending {
            Some(Ending::Clean) => beginning.stop(reply.is_file),
            _ => Stop::Broken,
        };
        let results = stopping.finish(turn, stop).await;
        if let Some(ticks) = ticks {
            ticks.abort();
        }
        drop(told);
        let last = async {
            fragments.pass_on(&news).await;
            // All events have been told when the end of the turn has.
            let missed = events.await.unwrap_or_default();
            let _ = news.send(News::Over).await;
            let closed = run.close().await;
            let failure = printer.finish().await.or_else(|| missed_events(missed));
            (failure, closed)
        };
        // Whoever does not wait for a standard output that stands still can say so.
        let said = tokio::select! {
            said = last, if results.is_some() => Some(said),
            interrupt = stopping.interrupts.next(), if results.is_some() => {
                stopping.first.get_or_insert(interrupt);
                None
            }
            else => None,
        };
        let status = status(stopping.first, results.as_ref());
        let (Some((failure, closed)), Some(results)) = (said, results) else {
            return Ok(Ended::AtOnce(Leftover {
                status,
                desk: gate.desk,
                printer,
            }));
        };
        gate.desk.close();
        tell_removed(closed, "`--run-directory DIR` keeps it");
        if matches!(ending, Some(Ending::Clean)) && !options.json {
            tell_truncated(stop, &beginning, &results);
        }
        tell_near_misses(options, &reply, &beginning);
        tell_what_is_wrong(options, &results, &cut_off);
        match (status, ending, failure) {
            (Status::Interrupted(_), ..) => Ok(Ended::Settled(status)),
            (_, Some(Ending::Failed(failure)), _) | (_, _, Some(failure)) => Err(failure),
            (_, _, None) => Ok(Ended::Settled(status)),
        }
    }
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
    if results.iter().any(was_cut_off) {
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
    cut_off: &BTreeMap<u32, CutOff>,
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
        .filter_map(|result| cut_off.get(&result.call))
        .map(word::name)
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
fn was_cut_off(result: &CallResult) -> bool {
    let error = result.call_error.as_deref();
    matches!(
        error,
        Some(CallError::NotClosed {
            why: MissingEnd::Truncated,
            ..
        })
    )
}

/// Reads again what was read before the run was cut off, for people who see it.
fn read_again(beginning: &Beginning, fragments: &Fragments) {
    let dialect = &beginning.dialect;
    // The run has read it with the same dialect, so it can be read.
    let check = ReplyCheck::new(dialect, Unclosed::Reject);
    let reader = check.and_then(|check| {
        ReplyReader::new(dialect, ToolSet::default(), check, Limits::for_running())
    });
    if let Ok(mut reader) = reader {
        for item in reader.feed(&beginning.past.text()) {
            fragments.add(&item);
        }
    }
}
