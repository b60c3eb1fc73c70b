//! The displays of a run or conversation.
//!
//! A run shows its calls and results on a terminal; otherwise only its results go to standard output, and its calls to standard
//! error. A conversation writes only the answer to standard output and everything else to standard error. Text is known to be the answer only when the reply has ended, because calls may
//! follow it. So it is held back until then, unless both outputs are the same terminal or the model has no tools.

use std::collections::VecDeque;
use std::future::pending;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use plaincall::{CallResult, RunEvent};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::environment::Environment;
use crate::options::Color;
use crate::output::is_quiet;
use crate::status::Failure;
use crate::terminal::answer::AnswerText;
use crate::terminal::event::{Display, UiEvent};
use crate::terminal::glyphs::Glyphs;
use crate::terminal::live::Live;
use crate::terminal::plain::Plain;
use crate::terminal::printer::{self, Printer, Target, post};
use crate::terminal::prompter::Prompter;
use crate::terminal::record::Record;
use crate::terminal::transcript::{DisplayOptions, ReplyText};
use crate::terminal::tty::Size;

/// The tick interval of a display that draws in place.
const FRAME: Duration = Duration::from_millis(40);

/// The tick interval of a display that prints lines to a terminal.
const SLOW_FRAME: Duration = Duration::from_millis(500);

/// How many rows of an output are shown: on a display that draws in place, and on one that prints lines.
const ROWS_LIVE: usize = 12;
const ROWS_PLAIN: usize = 40;

/// How many results are stored for `/show`.
const MAX_RESULTS: usize = 100;

/// A display of nothing, for `--quiet`.
struct Silent;

impl Display for Silent {
    fn handle(&mut self, _: UiEvent, _: &mut String) {}
}

/// The kind of output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// A run, or its events as JSON.
    Run {
        is_record: bool,
        /// Whether outputs are shown in full.
        is_full: bool,
        /// Whether the reply is typed on the terminal, where it is already visible. Drawing would interfere with
        /// typing.
        is_typed: bool,
    },
    /// Answers, or events as JSON instead.
    Answers {
        is_record: bool,
        /// Whether the first lines of results are shown.
        is_verbose: bool,
        /// Whether the model has tools.
        has_tools: bool,
        /// Whether the answer must match a schema. Then standard output has nothing else, not even on a terminal.
        has_schema: bool,
    },
}

impl Content {
    fn display_options(
        self,
        glyphs: &'static Glyphs,
        has_color: bool,
        is_live: bool,
        is_shared: bool,
    ) -> DisplayOptions {
        let (text, is_verbose, summary) = match self {
            Self::Run { is_full, .. } if is_live => {
                let rows = (!is_full).then_some(ROWS_LIVE);
                (ReplyText::Streamed, false, Some(rows))
            }
            Self::Run { is_full, .. } => {
                let rows = (!is_full).then_some(ROWS_PLAIN);
                (ReplyText::Nothing, false, Some(rows))
            }
            Self::Answers { is_verbose, .. } if is_shared => {
                (ReplyText::Streamed, is_verbose, None)
            }
            Self::Answers { is_verbose, .. } => (ReplyText::ExceptAnswer, is_verbose, None),
        };
        DisplayOptions {
            glyphs,
            has_color,
            text,
            is_verbose,
            summary,
            shows_starts: summary.is_some(),
        }
    }
}

/// The displays of a run or conversation, and its prompter.
#[derive(Debug)]
pub(crate) struct Displays {
    /// Shows everything but the answer.
    pub(crate) events: Sender<UiEvent>,
    printer: Printer,
    /// Shows the answer or the JSON events on standard output, if `events` does not.
    output: Option<(Sender<UiEvent>, Printer)>,
    pub(crate) prompter: Arc<Prompter>,
    pub(crate) is_live: bool,
    /// The last results, newest last.
    results: VecDeque<CallResult>,
    frame: Option<Duration>,
}

impl Displays {
    /// Starts the displays of a run or conversation that began at `started`.
    pub(crate) fn new(
        content: Content,
        started: Instant,
        color: Color,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let is_shared = match content {
            Content::Run { .. } => true,
            Content::Answers {
                is_record,
                has_schema,
                ..
            } => {
                !is_record
                    && !has_schema
                    && !is_quiet()
                    && stdout.is_terminal()
                    && stderr.is_terminal()
            }
        };
        let (target, is_terminal, choice, measure) = if is_shared {
            let choice = AutoStream::choice(&stdout);
            let measure: fn() -> Size = Size::of_standard_output;
            let target = match content {
                Content::Run { is_record, .. } if !is_record && !stdout.is_terminal() => {
                    Target::ErrorThenOutput
                }
                _ => Target::Output,
            };
            (target, stdout.is_terminal(), choice, measure)
        } else {
            let choice = AutoStream::choice(&stderr);
            let measure: fn() -> Size = Size::of_standard_error;
            (Target::Error, stderr.is_terminal(), choice, measure)
        };
        let can_draw = match content {
            Content::Run {
                is_record,
                is_typed,
                ..
            } => !is_record && !is_typed,
            // A reader of the pipe may write to the same terminal, so nothing is drawn while text may be piped.
            Content::Answers {
                is_record,
                has_tools,
                ..
            } => is_shared || (!is_record && has_tools && !stdout.is_terminal()),
        };
        let is_capable = is_terminal && environment.has_capable_terminal();
        // Without colors, no escape sequences are used.
        let is_live = can_draw
            && is_capable
            && !is_quiet()
            && environment.get("NO_COLOR").is_none()
            && color != Color::Never;
        let choice = match color.choice() {
            ColorChoice::Auto => choice,
            choice => choice,
        };
        let has_color = choice != ColorChoice::Never;
        let glyphs = Glyphs::new(is_capable && environment.has_unicode());
        let mut display_options = content.display_options(glyphs, has_color, is_live, is_shared);
        display_options.shows_starts |= is_terminal;
        let record = || -> Box<dyn Display> { Box::new(Record::new(stdout.is_terminal())) };
        let display: Box<dyn Display> = match content {
            Content::Run { is_record, .. } if is_record => record(),
            _ if is_live => Box::new(Live::new(display_options, started, measure)),
            _ if is_quiet() && !is_shared => Box::new(Silent),
            _ => Box::new(Plain::new(display_options, is_terminal.then_some(measure))),
        };
        let output: Option<Box<dyn Display>> = match content {
            Content::Answers { is_record, .. } if is_record => Some(record()),
            Content::Answers {
                has_tools,
                has_schema,
                ..
            } if !is_shared => {
                let is_streamed = !has_tools && !has_schema;
                Some(Box::new(AnswerText::new(is_streamed, stdout.is_terminal())))
            }
            _ => None,
        };
        let (events, printer) = printer::start(display, target)?;
        let output = output
            .map(|display| printer::start(display, Target::Output))
            .transpose()?;
        let is_on_terminal =
            is_terminal || target == Target::ErrorThenOutput && stderr.is_terminal();
        let shown = is_on_terminal.then(|| events.clone());
        Ok(Self {
            events,
            printer,
            output,
            prompter: Arc::new(Prompter::new(shown, is_live && has_color)),
            is_live,
            results: VecDeque::new(),
            frame: is_terminal.then_some(if is_live { FRAME } else { SLOW_FRAME }),
        })
    }

    /// Shows an event. Waits while the display is behind.
    pub(crate) async fn show(&mut self, event: UiEvent) {
        if let UiEvent::Run(event) = &event
            && let RunEvent::Result(result) = &**event
        {
            if self.results.len() == MAX_RESULTS {
                self.results.pop_front();
            }
            self.results.push_back(result.clone());
        }
        if let Some((output, _)) = &self.output {
            // A closed output does not stop the run.
            let _ = match &event {
                UiEvent::Run(event) => output.send(UiEvent::Run(event.clone())).await,
                UiEvent::Text(text) => output.send(UiEvent::Text(text.clone())).await,
                _ => Ok(()),
            };
        }
        let _ = self.events.send(event).await;
    }

    /// Returns a result, counted from the last one, which is 1.
    pub(crate) fn result(&self, back: usize) -> Option<&CallResult> {
        let index = self.results.len().checked_sub(back)?;
        self.results.get(index)
    }

    /// Returns whether the drawing must be cleared before the answer is written to another output.
    pub(crate) fn draws_besides_answer(&self) -> bool {
        self.is_live && self.output.is_some()
    }

    /// Waits until all events so far are written.
    pub(crate) async fn caught_up(&self) {
        let output = self.output.as_ref().map(|(output, _)| output);
        for events in output.into_iter().chain([&self.events]) {
            let (notify, is_written) = oneshot::channel();
            if events.send(UiEvent::Flush(notify)).await.is_ok() {
                let _ = is_written.await;
            }
        }
    }

    /// Writes the answer if it is not visible yet. `is_new` is false if it was the text of a reply.
    pub(crate) async fn answer(&self, text: &str, is_new: bool) {
        let display = match &self.output {
            Some((output, _)) => output,
            None if is_new => &self.events,
            None => return,
        };
        let _ = display.send(UiEvent::Answer(text.to_owned())).await;
    }

    /// Reports that the question was abandoned.
    pub(crate) fn abandon(&self) {
        post(&self.events, UiEvent::Abandoned);
        if let Some((output, _)) = &self.output {
            post(output, UiEvent::Abandoned);
        }
    }

    pub(crate) fn ticks(&self) -> Ticks {
        Ticks(self.frame.map(|frame| {
            let mut ticks = interval(frame);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        }))
    }

    /// Sends a tick to the display, unless its queue is full.
    pub(crate) fn tick(&self) {
        let _ = self.events.try_send(UiEvent::Tick);
    }

    /// Ends the displays and waits until everything is written. Returns the first error.
    pub(crate) async fn close(&mut self) -> Option<Failure> {
        let _ = self.events.send(UiEvent::End).await;
        let shown = self.printer.finish().await;
        self.prompter.close();
        let written = match &mut self.output {
            Some((output, printer)) => {
                let _ = output.send(UiEvent::End).await;
                printer.finish().await
            }
            None => None,
        };
        written.or(shown)
    }

    /// Restores the terminal, with a short timeout.
    pub(crate) fn close_now(self) {
        self.prompter.close();
        // The displays end when all their senders are dropped.
        drop(self.prompter);
        drop(self.events);
        self.printer.finish_briefly();
        if let Some((output, printer)) = self.output {
            drop(output);
            printer.finish_briefly();
        }
    }
}

/// The ticks of a display, if it needs any.
pub(crate) struct Ticks(Option<Interval>);

impl Ticks {
    /// Waits for the next tick. Never returns without ticks.
    pub(crate) async fn next(&mut self) {
        match &mut self.0 {
            Some(ticks) => drop(ticks.tick().await),
            None => pending().await,
        }
    }
}
