//! Where an answer goes, and what else is shown of it.
//!
//! The answer alone goes to the standard output, all else to the standard error. What a reply will be is known at its end:
//! text before calls is none of the answer. So the text is held back until that is known, unless both are the same
//! terminal, where people read along, or there are no tools, so that all text is the answer.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plaincall::{CallResult, RunEvent};
use plaincall_agent::{AgentEvent, Answer};
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use crate::environment::Environment;
use crate::options::Color;
use crate::picture::glyphs::{ASCII, Glyphs, UNICODE};
use crate::run::desk::Desk;
use crate::run::news::{Display, News};
use crate::run::printer::{self, Printer, Target};
use crate::run::record::Record;
use crate::run::terminal::Size;
use crate::status::Failure;
use crate::talk::live::Live;
use crate::talk::plain::Plain;
use crate::talk::verbatim::Verbatim;

/// How often what is drawn is drawn anew.
const FRAME: Duration = Duration::from_millis(40);

/// How often it is looked whether something has to be said of the time.
const SELDOM: Duration = Duration::from_millis(500);

/// What is wanted on the standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Answer,
    Record,
}

/// How many results are kept to be shown again.
const KEPT: usize = 100;

/// Who writes what, and who is asked.
pub(crate) struct Stage {
    /// Everything but the answer.
    news: Sender<News>,
    printer: Printer,
    /// The answer or the record, if it is not seen anyway.
    output: Option<(Sender<News>, Printer)>,
    pub(crate) desk: Arc<Desk>,
    is_live: bool,
    /// The last results, the newest at the end.
    results: Mutex<VecDeque<CallResult>>,
    /// How often the display hears that time has passed, if somebody sits there.
    pub(crate) frame: Option<Duration>,
}

impl Stage {
    /// `has_tools` is whether the model can call anything.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn new(
        shown: Shown,
        is_verbose: bool,
        has_tools: bool,
        color: Color,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let is_shared = shown == Shown::Answer && stdout.is_terminal() && stderr.is_terminal();
        let target = if is_shared {
            Target::Output
        } else {
            Target::Error
        };
        let is_terminal = stderr.is_terminal();
        // What is written to a pipe may end up on the same terminal: while it is, nothing is drawn there.
        let is_alone = is_shared || (shown == Shown::Answer && has_tools && !stdout.is_terminal());
        // Whoever wants no colours wants no sequences at all.
        let is_live = is_terminal
            && is_alone
            && environment.has_capable_terminal()
            && environment.get("NO_COLOR").is_none()
            && color != Color::Never;
        let has_color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => anstream::AutoStream::choice(&stderr) != anstream::ColorChoice::Never,
        };
        let glyphs: &'static Glyphs = if is_terminal && environment.has_unicode() {
            &UNICODE
        } else {
            &ASCII
        };
        let display: Box<dyn Display> = if is_live {
            let measure: Box<dyn Fn() -> Size + Send> = if is_shared {
                Box::new(Size::of_standard_output)
            } else {
                Box::new(Size::of_standard_error)
            };
            Box::new(Live::new(
                glyphs,
                has_color,
                is_shared,
                is_verbose,
                Instant::now(),
                measure,
            ))
        } else {
            Box::new(Plain::new(glyphs, has_color, is_shared, is_terminal).verbose(is_verbose))
        };
        let (news, printer) = printer::start(display, target)?;
        let output: Option<Box<dyn Display>> = match shown {
            Shown::Record => Some(Box::new(Record::new(io::stdout().is_terminal()))),
            Shown::Answer if is_shared => None,
            Shown::Answer => Some(Box::new(Verbatim::new(!has_tools, stdout.is_terminal()))),
        };
        let output = output
            .map(|display| printer::start(display, Target::Output))
            .transpose()?;
        let desk = Desk::new(news.clone(), is_live, is_terminal, environment);
        desk.open();
        Ok(Self {
            news,
            printer,
            output,
            desk: Arc::new(desk),
            is_live,
            results: Mutex::default(),
            frame: match (is_live, is_terminal) {
                (true, _) => Some(FRAME),
                (false, true) => Some(SELDOM),
                (false, false) => None,
            },
        })
    }

    /// Tells what happens, and waits while nobody keeps up with writing it.
    pub(crate) async fn tell(&self, event: AgentEvent) {
        if let AgentEvent::Run(event) = &event
            && let RunEvent::Result(result) = &**event
        {
            let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
            if results.len() == KEPT {
                results.pop_front();
            }
            results.push_back(CallResult::clone(result));
        }
        if let Some((output, _)) = &self.output {
            let news = match &event {
                AgentEvent::Run(event) => Some(News::Event(RunEvent::clone(event))),
                AgentEvent::Text(_) => Some(News::Agent(Box::new(event.clone()))),
                _ => None,
            };
            if let Some(news) = news {
                // One that has gone is no reason to stop.
                let _ = output.send(news).await;
            }
        }
        let _ = self.news.send(News::Agent(Box::new(event))).await;
    }

    /// A result that has come, counted from the last one, which is 1.
    pub(crate) fn result(&self, back: usize) -> Option<CallResult> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let place = results.len().checked_sub(back)?;
        results.get(place).cloned()
    }

    /// Whether what is drawn has to go before the answer is written elsewhere.
    pub(crate) fn draws_beside_the_answer(&self) -> bool {
        self.is_live && self.output.is_some()
    }

    /// Waits until all is written that was told.
    pub(crate) async fn caught_up(&self) {
        let output = self.output.as_ref().map(|(output, _)| output);
        for news in output.into_iter().chain([&self.news]) {
            let (tell, is_told) = oneshot::channel();
            if news.send(News::Written(tell)).await.is_ok() {
                let _ = is_told.await;
            }
        }
    }

    /// Shows something else.
    pub(crate) async fn show(&self, news: News) {
        let _ = self.news.send(news).await;
    }

    /// Writes the answer, if it is not seen already.
    pub(crate) async fn answer(&self, answer: &Answer) {
        let sender = match &self.output {
            Some((output, _)) => output,
            // What a tool has answered was not written while it came.
            None if answer.finished_by.is_some() => &self.news,
            None => return,
        };
        let _ = sender.send(News::Answer(answer.text.clone())).await;
    }

    /// A display that is behind has no use for one more frame.
    pub(crate) fn tick(&self) {
        let _ = self.news.try_send(News::Tick);
    }

    /// The signal that all is called off.
    pub(crate) fn stopping(&self) {
        crate::run::telling::post(&self.news, News::Stopping);
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn left(&self) {
        crate::run::telling::post(&self.news, News::Left);
        if let Some((output, _)) = &self.output {
            crate::run::telling::post(output, News::Left);
        }
    }

    /// Waits until all is written. What went wrong with the answer's writing.
    pub(crate) async fn close(mut self) -> Option<Failure> {
        let _ = self.news.send(News::Over).await;
        let shown = self.printer.finish().await;
        self.desk.close();
        let written = match self.output {
            Some((output, mut printer)) => {
                let _ = output.send(News::Over).await;
                printer.finish().await
            }
            None => None,
        };
        written.or(shown)
    }

    /// Gives the terminal back as it was, a moment at most.
    pub(crate) fn leave(self) {
        self.desk.close();
        drop(self.desk);
        drop(self.news);
        self.printer.finish_soon();
        if let Some((output, printer)) = self.output {
            drop(output);
            printer.finish_soon();
        }
    }
}
