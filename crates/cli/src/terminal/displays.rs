//! What is shown where, and who is asked: the displays of a run or of a conversation, and the prompter.
//!
//! A run shows its calls and their results on the standard output. Of a conversation the answer alone goes to the standard
//! output, all else to the standard error. What a reply will be is known at its end: text before calls is not the answer.
//! So the text is held back until that is known, unless both are the same terminal, where people read along, or there are
//! no tools, so that all text is the answer.

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
use crate::status::Failure;
use crate::terminal::answer::AnswerText;
use crate::terminal::event::{Display, UiEvent};
use crate::terminal::glyphs::Glyphs;
use crate::terminal::live::Live;
use crate::terminal::plain::Plain;
use crate::terminal::printer::{self, Printer, Target, post};
use crate::terminal::prompter::Prompter;
use crate::terminal::record::Record;
use crate::terminal::transcript::{Look, TextShown};
use crate::terminal::tty::Size;

/// The tick interval of a display that draws.
const FRAME: Duration = Duration::from_millis(40);

/// The tick interval of a display that does not draw on a terminal.
const SELDOM: Duration = Duration::from_millis(500);

/// How many rows of an output are shown: where a display draws, and in lines.
const ROWS_LIVE: usize = 12;
const ROWS_PLAIN: usize = 40;

/// How many results are kept to be shown again.
const KEPT: usize = 100;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// A run, or its record.
    Run {
        is_record: bool,
        /// Whether outputs are shown whole.
        is_full: bool,
        /// Whether the reply is typed on the terminal: it is on the screen already, and typing and drawing would get in
        /// each other's way.
        is_typed: bool,
    },
    /// Answers, or the record in their place.
    Answers {
        is_record: bool,
        /// Whether the beginnings of results are shown.
        is_verbose: bool,
        /// Whether the model can call anything.
        has_tools: bool,
    },
}

impl Content {
    fn look(
        self,
        glyphs: &'static Glyphs,
        has_color: bool,
        is_live: bool,
        is_shared: bool,
    ) -> Look {
        let (text, is_verbose, summary) = match self {
            Self::Run { is_full, .. } if is_live => {
                let rows = (!is_full).then_some(ROWS_LIVE);
                (TextShown::AtOnce, false, Some(rows))
            }
            Self::Run { is_full, .. } => {
                let rows = (!is_full).then_some(ROWS_PLAIN);
                (TextShown::Nothing, false, Some(rows))
            }
            Self::Answers { is_verbose, .. } if is_shared => (TextShown::AtOnce, is_verbose, None),
            Self::Answers { is_verbose, .. } => (TextShown::WithoutAnswer, is_verbose, None),
        };
        Look {
            glyphs,
            has_color,
            text,
            is_verbose,
            summary,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Displays {
    /// Shows everything but the answer.
    pub(crate) events: Sender<UiEvent>,
    printer: Printer,
    /// Shows the answer or the record, if the other display does not.
    output: Option<(Sender<UiEvent>, Printer)>,
    pub(crate) prompter: Arc<Prompter>,
    pub(crate) is_live: bool,
    /// The last results, the newest at the end.
    results: VecDeque<CallResult>,
    frame: Option<Duration>,
}

impl Displays {
    /// Starts the displays of a run or conversation that began at this moment.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn new(
        content: Content,
        begun: Instant,
        color: Color,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let is_shared = match content {
            Content::Run { .. } => true,
            Content::Answers { is_record, .. } => {
                !is_record && stdout.is_terminal() && stderr.is_terminal()
            }
        };
        let (target, is_terminal, choice, measure) = if is_shared {
            let choice = AutoStream::choice(&stdout);
            let measure: fn() -> Size = Size::of_standard_output;
            (Target::Output, stdout.is_terminal(), choice, measure)
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
            // What is written to a pipe may end up on the same terminal: while it is, nothing is drawn there.
            Content::Answers {
                is_record,
                has_tools,
                ..
            } => is_shared || (!is_record && has_tools && !stdout.is_terminal()),
        };
        let is_capable = is_terminal && environment.has_capable_terminal();
        // Without colors there are no escape sequences at all.
        let is_live = can_draw
            && is_capable
            && environment.get("NO_COLOR").is_none()
            && color != Color::Never;
        let choice = match color.choice() {
            ColorChoice::Auto => choice,
            choice => choice,
        };
        let has_color = choice != ColorChoice::Never;
        let glyphs = Glyphs::new(is_capable && environment.has_unicode());
        let look = content.look(glyphs, has_color, is_live, is_shared);
        let record = || -> Box<dyn Display> { Box::new(Record::new(stdout.is_terminal())) };
        let display: Box<dyn Display> = match content {
            Content::Run { is_record, .. } if is_record => record(),
            _ if is_live => Box::new(Live::new(look, begun, measure)),
            _ => Box::new(Plain::new(look, is_terminal.then_some(measure))),
        };
        let output: Option<Box<dyn Display>> = match content {
            Content::Answers { is_record, .. } if is_record => Some(record()),
            Content::Answers { has_tools, .. } if !is_shared => {
                Some(Box::new(AnswerText::new(!has_tools, stdout.is_terminal())))
            }
            _ => None,
        };
        let (events, printer) = printer::start(display, target)?;
        let output = output
            .map(|display| printer::start(display, Target::Output))
            .transpose()?;
        let shown = is_terminal.then(|| events.clone());
        Ok(Self {
            events,
            printer,
            output,
            prompter: Arc::new(Prompter::new(shown, is_live && has_color)),
            is_live,
            results: VecDeque::new(),
            frame: is_terminal.then_some(if is_live { FRAME } else { SELDOM }),
        })
    }

    /// Shows an event, and waits while it is not written fast enough.
    pub(crate) async fn show(&mut self, event: UiEvent) {
        if let UiEvent::Run(event) = &event
            && let RunEvent::Result(result) = &**event
        {
            if self.results.len() == KEPT {
                self.results.pop_front();
            }
            self.results.push_back(result.clone());
        }
        if let Some((output, _)) = &self.output {
            // One that has gone is no reason to stop.
            let _ = match &event {
                UiEvent::Run(event) => output.send(UiEvent::Run(event.clone())).await,
                UiEvent::Text(text) => output.send(UiEvent::Text(text.clone())).await,
                _ => Ok(()),
            };
        }
        let _ = self.events.send(event).await;
    }

    /// A result that has come, counted from the last one, which is 1.
    pub(crate) fn result(&self, back: usize) -> Option<&CallResult> {
        let place = self.results.len().checked_sub(back)?;
        self.results.get(place)
    }

    /// Whether what is drawn has to go before the answer is written elsewhere.
    pub(crate) fn draws_beside_the_answer(&self) -> bool {
        self.is_live && self.output.is_some()
    }

    /// Waits until all is written that was shown.
    pub(crate) async fn caught_up(&self) {
        let output = self.output.as_ref().map(|(output, _)| output);
        for events in output.into_iter().chain([&self.events]) {
            let (notify, is_written) = oneshot::channel();
            if events.send(UiEvent::Flush(notify)).await.is_ok() {
                let _ = is_written.await;
            }
        }
    }

    /// Writes the answer, if it is not seen already. `is_new` is whether it was no text of a reply.
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

    /// Sends the display a tick. A display that is behind does not need one.
    pub(crate) fn tick(&self) {
        let _ = self.events.try_send(UiEvent::Tick);
    }

    /// Ends the displays and waits until all is written. Returns what went wrong with it.
    pub(crate) async fn close(&mut self) -> Option<Failure> {
        let _ = self.events.send(UiEvent::Over).await;
        let shown = self.printer.finish().await;
        self.prompter.close();
        let written = match &mut self.output {
            Some((output, printer)) => {
                let _ = output.send(UiEvent::Over).await;
                printer.finish().await
            }
            None => None,
        };
        written.or(shown)
    }

    /// Gives the terminal back as it was, a moment at most.
    pub(crate) fn leave(self) {
        self.prompter.close();
        // The displays end when all their senders are dropped.
        drop(self.prompter);
        drop(self.events);
        self.printer.finish_soon();
        if let Some((output, printer)) = self.output {
            drop(output);
            printer.finish_soon();
        }
    }
}

/// Moments at which something is drawn.
pub(crate) struct Ticks(Option<Interval>);

impl Ticks {
    /// Waits for the next one, if there are any.
    pub(crate) async fn next(&mut self) {
        match &mut self.0 {
            Some(ticks) => drop(ticks.tick().await),
            None => pending().await,
        }
    }
}
