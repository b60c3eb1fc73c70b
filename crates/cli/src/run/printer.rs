//! The thread that writes what is shown.
//!
//! Writing can take any time: a terminal may be stopped, a pipe may have a slow reader. It happens on a thread of its
//! own, so that no call waits for it, and no tool runs longer than it may.

use std::io::{self, ErrorKind, IsTerminal};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::run::news::{Display, News};
use crate::status::Failure;
use crate::visible::guarded;

/// How much news may wait; then the reading of the reply waits, not the calls.
const WAITING: usize = 64;

/// How long the display has to leave the terminal in order when all is to end at once.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Where it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To the standard output.
    Output,
    /// To the standard error.
    Error,
}

/// The thread.
#[derive(Debug)]
pub(crate) struct Printer {
    done: oneshot::Receiver<Option<Failure>>,
}

/// Starts the thread.
pub(crate) fn start(
    display: Box<dyn Display>,
    target: Target,
) -> Result<(Sender<News>, Printer), Failure> {
    let (sender, receiver) = channel(WAITING);
    let (tell, done) = oneshot::channel();
    thread::Builder::new()
        .name("display".to_owned())
        .spawn(move || {
            // Nobody listens when all is to end at once.
            let _ = tell.send(print(display, receiver, target));
        })
        .map_err(|error| Failure::Broken(format!("cannot start a thread: {error}")))?;
    Ok((sender, Printer { done }))
}

impl Printer {
    /// Waits until all has been written. Returns what went wrong; that nobody reads any more is not wrong.
    pub(crate) async fn finish(&mut self) -> Option<Failure> {
        (&mut self.done).await.unwrap_or_default()
    }

    /// Waits until the terminal is in order, a moment at most, when there is no runtime any more.
    pub(crate) fn finish_soon(self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        if let Ok(runtime) = runtime {
            // A standard output that stands still is left as it is.
            let _ = runtime.block_on(async { timeout(AT_ONCE, self.done).await });
        }
    }
}

fn print(
    mut display: Box<dyn Display>,
    mut news: Receiver<News>,
    target: Target,
) -> Option<Failure> {
    let mut out = String::new();
    let mut failure = None;
    let mut can_write = true;
    let mut is_over = false;
    while !is_over {
        out.clear();
        match news.blocking_recv() {
            Some(News::Over) => {
                is_over = true;
                display.take(News::Over, &mut out);
            }
            Some(News::Written(tell)) => {
                let _ = tell.send(());
            }
            Some(News::Quiet { is_quiet, is_back }) => {
                display.be_quiet(&mut out);
                let written = write(&out, target);
                out.clear();
                can_write &= written.is_ok();
                let _ = is_quiet.send(());
                // Whoever says it says it by going away, too.
                let _ = is_back.recv();
                display.come_back(&mut out);
            }
            Some(news) => display.take(news, &mut out),
            None => {
                is_over = true;
                display.abandon(&mut out);
            }
        }
        if can_write && let Err(error) = write(&out, target) {
            // The calls go on: what they do is worth more than what is said about it.
            can_write = false;
            if error.kind() != ErrorKind::BrokenPipe {
                failure = Some(Failure::output(&error));
            }
        }
    }
    failure
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
