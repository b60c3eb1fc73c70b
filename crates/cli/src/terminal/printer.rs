//! The thread that writes to an output.
//!
//! Writing may block: a terminal may be stopped, a pipe may have a slow reader. On its own thread, it delays neither
//! calls nor their timeouts.

use std::io::{self, ErrorKind, IsTerminal};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError::{Closed, Full};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::sanitize::sanitize_styled;
use crate::status::Failure;
use crate::terminal::event::{Display, UiEvent};

/// The maximum number of queued events. If the queue is full, reading of the reply pauses, but calls continue.
const MAX_QUEUED: usize = 64;

/// The maximum size of text that is held while something else uses the terminal.
const MAX_HELD: usize = 1 << 20;

/// How long an immediate exit waits for the display to clean up.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// The output to write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Output,
    Error,
    /// Standard error, and standard output for the summary at the end.
    ErrorThenOutput,
}

/// A running printer.
#[derive(Debug)]
pub(crate) struct Printer {
    done: oneshot::Receiver<Option<Failure>>,
}

/// Starts the thread.
pub(crate) fn start(
    display: Box<dyn Display>,
    target: Target,
) -> Result<(Sender<UiEvent>, Printer), Failure> {
    let (sender, receiver) = channel(MAX_QUEUED);
    let (notify, done) = oneshot::channel();
    thread::Builder::new()
        .name("display".to_owned())
        .spawn(move || {
            // After an abort, the receiver is gone.
            let _ = notify.send(print(display, receiver, target));
        })
        .map_err(|error| Failure::Runtime(format!("cannot start a thread: {error}")))?;
    Ok((sender, Printer { done }))
}

/// Sends an event without waiting. A closed display does not stop the run.
pub(crate) fn post(events: &Sender<UiEvent>, event: UiEvent) {
    match events.try_send(event) {
        Ok(()) | Err(Closed(_)) => {}
        Err(Full(event)) => {
            let events = events.clone();
            tokio::spawn(async move {
                let _ = events.send(event).await;
            });
        }
    }
}

impl Printer {
    /// Waits until everything is written. Returns the error, if any; a closed output is not an error.
    pub(crate) async fn finish(&mut self) -> Option<Failure> {
        (&mut self.done).await.unwrap_or_default()
    }

    /// Waits briefly until the display has cleaned up. Works outside a runtime.
    pub(crate) fn finish_briefly(self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        if let Ok(runtime) = runtime {
            // A blocked output is left as it is.
            let _ = runtime.block_on(async { timeout(EXIT_TIMEOUT, self.done).await });
        }
    }
}

fn print(
    mut display: Box<dyn Display>,
    mut events: Receiver<UiEvent>,
    target: Target,
) -> Option<Failure> {
    let mut out = String::new();
    let mut failure = None;
    let mut can_write = true;
    let mut paused: Option<mpsc::Receiver<()>> = None;
    let mut has_ended = false;
    while !has_ended {
        let event = events.blocking_recv();
        let must_wait = out.len() > MAX_HELD || matches!(event, None | Some(UiEvent::End));
        if paused
            .take_if(|is_back| has_pause_ended(is_back, must_wait))
            .is_some()
        {
            display.resume(&mut out);
        }
        let mut is_paused = None;
        match event {
            Some(UiEvent::Flush(notify)) => {
                let _ = notify.send(());
            }
            Some(UiEvent::Pause { notify, is_back }) => {
                display.pause(&mut out);
                is_paused = Some((notify, is_back));
            }
            // Ticks only redraw, which a paused display does not need.
            Some(UiEvent::Tick) if paused.is_some() => {}
            Some(event) => {
                has_ended = matches!(event, UiEvent::End);
                display.handle(event, &mut out);
            }
            None => {
                has_ended = true;
                display.abandon(&mut out);
            }
        }
        if paused.is_some() {
            continue;
        }
        // A closed standard error does not prevent the summary.
        let is_progress = target == Target::ErrorThenOutput && !has_ended;
        if can_write
            && let Err(error) = write(&out, target, has_ended)
            && !is_progress
        {
            // Calls continue without a display.
            can_write = false;
            if error.kind() != ErrorKind::BrokenPipe {
                failure = Some(Failure::output(&error));
            }
        }
        out.clear();
        if let Some((notify, is_back)) = is_paused {
            let _ = notify.send(());
            paused = Some(is_back);
        }
    }
    failure
}

/// Returns whether the pause has ended. If `must_wait`, waits for its end.
fn has_pause_ended(is_back: &mpsc::Receiver<()>, must_wait: bool) -> bool {
    if must_wait {
        let _ = is_back.recv();
        return true;
    }
    is_back.try_recv() != Err(TryRecvError::Empty)
}

fn write(text: &str, target: Target, has_ended: bool) -> io::Result<()> {
    fn write_all(mut output: impl io::Write + IsTerminal, text: &str) -> io::Result<()> {
        if output.is_terminal() {
            output.write_all(sanitize_styled(text).as_bytes())?;
        } else {
            output.write_all(text.as_bytes())?;
        }
        output.flush()
    }
    if text.is_empty() {
        return Ok(());
    }
    match target {
        Target::ErrorThenOutput if has_ended => write_all(io::stdout().lock(), text),
        Target::Output => write_all(io::stdout().lock(), text),
        Target::Error | Target::ErrorThenOutput => write_all(io::stderr().lock(), text),
    }
}
