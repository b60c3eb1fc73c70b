//! The thread that writes what is shown.
//!
//! Writing can take any time: a terminal may be stopped, a pipe may have a slow reader. It happens on a thread of its
//! own, so that no call waits for it, and no tool runs longer than it may.

use std::io::{self, ErrorKind, IsTerminal};
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError::{Closed, Full};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::status::Failure;
use crate::terminal::event::{Display, UiEvent};
use crate::visible::guarded;

/// How many events may wait; then the reading of the reply waits, not the calls.
const WAITING: usize = 64;

/// How much may wait to be written while something else uses the terminal, in bytes.
const HELD: usize = 1 << 20;

/// How long the display has to leave the terminal in order when all is to end at once.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Where it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Output,
    Error,
}

#[derive(Debug)]
pub(crate) struct Printer {
    done: oneshot::Receiver<Option<Failure>>,
}

pub(crate) fn start(
    display: Box<dyn Display>,
    target: Target,
) -> Result<(Sender<UiEvent>, Printer), Failure> {
    let (sender, receiver) = channel(WAITING);
    let (notify, done) = oneshot::channel();
    thread::Builder::new()
        .name("display".to_owned())
        .spawn(move || {
            // There is no receiver after an abort.
            let _ = notify.send(print(display, receiver, target));
        })
        .map_err(|error| Failure::Broken(format!("cannot start a thread: {error}")))?;
    Ok((sender, Printer { done }))
}

/// Sends an event without waiting for the display. One that has gone is no reason to stop.
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

    /// Waits until the terminal is in order, a moment at most, when there is no runtime any more.
    pub(crate) fn finish_soon(self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        if let Ok(runtime) = runtime {
            // A blocked standard output is left as it is.
            let _ = runtime.block_on(async { timeout(AT_ONCE, self.done).await });
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
    let mut is_over = false;
    while !is_over {
        let event = events.blocking_recv();
        let must = out.len() > HELD || matches!(event, None | Some(UiEvent::Over));
        if paused
            .take_if(|is_back| is_over_now(is_back, must))
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
            // What is drawn in place would only be drawn again.
            Some(UiEvent::Tick) if paused.is_some() => {}
            Some(event) => {
                is_over = matches!(event, UiEvent::Over);
                display.take(event, &mut out);
            }
            None => {
                is_over = true;
                display.abandon(&mut out);
            }
        }
        if paused.is_some() {
            continue;
        }
        if can_write && let Err(error) = write(&out, target) {
            // The calls continue: they matter more than their display.
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

/// Whether nothing else uses the terminal any more. `must` waits until it is so.
fn is_over_now(is_back: &mpsc::Receiver<()>, must: bool) -> bool {
    if must {
        let _ = is_back.recv();
        return true;
    }
    is_back.try_recv() != Err(TryRecvError::Empty)
}

fn write(text: &str, target: Target) -> io::Result<()> {
    fn all(mut to: impl io::Write + IsTerminal, text: &str) -> io::Result<()> {
        if to.is_terminal() {
            to.write_all(guarded(text).as_bytes())?;
        } else {
            to.write_all(text.as_bytes())?;
        }
        to.flush()
    }
    if text.is_empty() {
        return Ok(());
    }
    match target {
        Target::Output => all(io::stdout().lock(), text),
        Target::Error => all(io::stderr().lock(), text),
    }
}
