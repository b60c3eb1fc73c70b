//! One run from its first byte to its end: the reply is fed, the display told, signals heeded.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plaincall::{
    CallResult, Canceller, Run, RunEvent, RunEvents, Stop, Toolbox, Turn, TurnResults,
};
use plaincall_call::{NotRun, Syntax};
use tokio::sync::mpsc::Sender;
use tokio::time::{MissedTickBehavior, interval};

use crate::arguments::Color;
use crate::environment::Environment;
use crate::run::RunOptions;
use crate::run::approval::{Approval, Desk};
use crate::run::fragments::Fragments;
use crate::run::glyphs::{ASCII, Glyphs, UNICODE};
use crate::run::interrupts::{Interrupt, Interrupts};
use crate::run::live::Live;
use crate::run::news::{Display, News};
use crate::run::plain::Plain;
use crate::run::printer::{self, Printer};
use crate::run::record::Record;
use crate::run::reply::{Ending, Reply};
use crate::run::summary::Form;
use crate::run::terminal::Size;
use crate::status::{Failure, Status, remark};

/// How often the display is drawn anew.
const FRAME: Duration = Duration::from_millis(40);

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

impl Stage {
    pub(crate) fn new(
        options: &RunOptions,
        color: Color,
        environment: &Environment,
        toolbox: Toolbox,
    ) -> Result<Self, Failure> {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        // A reply that is typed is on the screen already, and typing and drawing would get in each other's way.
        let is_typed = options.is_from_standard_input() && io::stdin().is_terminal();
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
        let begun = Instant::now();
        let display: Box<dyn Display> = if options.json {
            Box::new(Record)
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
        let (news, printer) = printer::start(display)?;
        let desk = Desk::new(toolbox, news.clone(), is_live);
        Ok(Self {
            gate: Approval {
                yes: options.yes,
                desk: Arc::new(desk),
            },
            news,
            printer,
            is_live,
        })
    }

    /// Runs the reply's calls to their end, or to the second signal.
    pub(crate) async fn play(
        self,
        mut run: Run,
        mut reply: Reply,
        options: &RunOptions,
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
        gate.desk.set_canceller(run.canceller());
        let fragments = Arc::new(Fragments::default());
        let events = tokio::spawn(forward_events(run.events(), news.clone()));
        let ticks = is_live.then(|| tokio::spawn(tick(Arc::clone(&fragments), news.clone())));
        let mut turn = run.turn();
        if is_live {
            let fragments = Arc::clone(&fragments);
            turn = turn.watch(move |event| fragments.add(event));
        }
        let fed = async || fragments.pass_on(&news).await;
        let ending = stopping
            .until_first(reply.feed(&mut turn, options.pace, fed))
            .await;
        post(&news, News::ReplyOver(Instant::now()));
        let stop = match &ending {
            Some(Ending::Clean) if reply.is_file || options.complete => Stop::Natural,
            _ => Stop::Broken,
        };
        let is_unsure = matches!(ending, Some(Ending::Clean)) && stop == Stop::Broken;
        let results = stopping.finish(turn, stop).await;
        let is_cut_off =
            |results: &TurnResults| results.iter().any(|one| was_cut_off(one, options));
        let may_be_whole = is_unsure && !options.json && results.as_ref().is_some_and(is_cut_off);
        if let Some(ticks) = ticks {
            ticks.abort();
        }
        let said = if results.is_some() {
            let last = async {
                fragments.pass_on(&news).await;
                // All events have been told when the end of the turn has.
                let _ = events.await;
                let _ = news.send(News::Over).await;
                // What tools have left there is lost, unless it was asked for.
                let loses_files = options.run_directory.is_none()
                    && !options.json
                    && run.directory().is_some_and(holds_something);
                let closed = run.close().await;
                (printer.finish().await, closed.err(), loses_files)
            };
            // Whoever does not wait for a standard output that stands still can say so.
            tokio::select! {
                said = last => Some(said),
                interrupt = stopping.interrupts.next() => {
                    stopping.first.get_or_insert(interrupt);
                    None
                }
            }
        } else {
            None
        };
        let status = match (stopping.first, results) {
            (Some(interrupt), _) => Status::Interrupted(interrupt.status()),
            (None, Some(results)) if results.all_ok() => Status::Good,
            (None, _) => Status::Wrong,
        };
        let Some(said) = said else {
            return Ok(Ended::AtOnce(Leftover {
                status,
                desk: gate.desk,
                printer,
            }));
        };
        gate.desk.close();
        let (failure, not_removed, loses_files) = said;
        if let Some(error) = not_removed {
            remark(&error);
        } else if loses_files {
            remark(
                "the run's directory was removed with the files in it; `--run-directory DIR` keeps it",
            );
        }
        if may_be_whole {
            remark(
                "the reply came through a pipe, which may have broken; if it is whole, `--complete` runs a call at its end that is not closed",
            );
        }
        match (status, ending, failure) {
            (Status::Interrupted(_), ..) => Ok(Ended::Settled(status)),
            (_, Some(Ending::Failed(failure)), _) | (_, _, Some(failure)) => Err(failure),
            (_, _, None) => Ok(Ended::Settled(status)),
        }
    }
}

fn holds_something(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some())
}

/// Whether a call was rejected because the text may have broken off inside it.
fn was_cut_off(result: &CallResult, options: &RunOptions) -> bool {
    let Ok(dialect) = options.dialect.dialect() else {
        return false;
    };
    let is_reason = |syntax| {
        let sentence = NotRun::CutOff.sentence(&dialect.end_marker(syntax));
        result.error.as_deref() == Some(sentence.as_str())
    };
    result.status == plaincall::Status::Rejected
        && (is_reason(Syntax::Block) || is_reason(Syntax::Emoji))
}

/// What signals do to a run.
struct Stopping<'i> {
    interrupts: &'i mut Interrupts,
    first: Option<Interrupt>,
    canceller: Canceller,
    news: Sender<News>,
}

impl Stopping<'_> {
    /// Goes on until the first signal, which calls the run off; `None` after that.
    async fn until_first<T>(&mut self, what: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            result = what => Some(result),
            interrupt = self.interrupts.next() => {
                self.heed(interrupt);
                None
            }
        }
    }

    /// Waits for the results. With the second signal, or one that is urgent, there are none.
    async fn finish(&mut self, turn: Turn<'_>, stop: Stop) -> Option<TurnResults> {
        let mut running = pin!(turn.finish(stop));
        while !self.first.is_some_and(Interrupt::is_urgent) {
            tokio::select! {
                results = &mut running => return Some(results),
                interrupt = self.interrupts.next() => {
                    if self.first.is_some() {
                        break;
                    }
                    self.heed(interrupt);
                }
            }
        }
        None
    }

    fn heed(&mut self, interrupt: Interrupt) {
        self.first = Some(interrupt);
        self.canceller.cancel();
        post(&self.news, News::Stopping);
    }
}

/// Tells the display without waiting for it. One that has gone is no reason to stop.
fn post(news: &Sender<News>, what: News) {
    use tokio::sync::mpsc::error::TrySendError::{Closed, Full};
    match news.try_send(what) {
        Ok(()) | Err(Closed(_)) => {}
        Err(Full(what)) => {
            let news = news.clone();
            tokio::spawn(async move {
                let _ = news.send(what).await;
            });
        }
    }
}

async fn forward_events(mut events: RunEvents, news: Sender<News>) {
    while let Some(event) = events.next().await {
        let is_end = matches!(event, RunEvent::End(_));
        let _ = news.send(News::Event(event)).await;
        if is_end {
            break;
        }
    }
}

/// Lets the display draw what has changed, again and again.
async fn tick(fragments: Arc<Fragments>, news: Sender<News>) {
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        frames.tick().await;
        fragments.pass_on(&news).await;
        // A display that is behind has no use for one more frame.
        let _ = news.try_send(News::Tick);
    }
}
