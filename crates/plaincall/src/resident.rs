//! A program that stays while others talk to it over its standard input and output.

use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::capture::{Tail, drain};
use crate::invocation::ending;
use crate::process::{Group, Program};

/// How long is waited for the last words of a program that is gone. Only a process that has left the group can hold them.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A program in a process group of its own. Dropping it kills the group.
///
/// What it writes to its standard error is read all the time, and the end of it kept.
#[derive(Debug)]
pub struct BackgroundProcess {
    group: Group,
    words: Arc<Mutex<Tail>>,
    /// Reads the standard error; it ends when the pipe is closed.
    listening: JoinSet<()>,
}

/// How a resident program ended.
#[derive(Clone, Debug)]
pub struct ProcessExit {
    /// In words that go behind its name.
    pub how: String,
    /// Whether it ended only when it was asked to.
    pub was_asked: bool,
    /// The end of what it wrote to its standard error.
    pub words: String,
}

impl BackgroundProcess {
    /// Starts the program. Of its standard error so many bytes are kept.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(
        program: &Program,
        kept: usize,
    ) -> io::Result<(Self, Option<ChildStdin>, Option<ChildStdout>)> {
        let mut group = Group::start(program)?;
        let (stdin, stdout, stderr) = group.pipes();
        let words = Arc::new(Mutex::new(Tail::new(kept)));
        let heard = Arc::clone(&words);
        let mut listening = JoinSet::new();
        listening.spawn(drain(stderr, move |bytes| {
            let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.take(bytes);
        }));
        let resident = Self {
            group,
            words,
            listening,
        };
        Ok((resident, stdin, stdout))
    }

    /// The end of what it has written to its standard error so far.
    pub fn words(&self) -> String {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.clone().into_text()
    }

    /// Waits until it has ended. If it has not within `patience`, its group is asked to end, and after `grace` killed.
    /// Nothing of the group is left then.
    ///
    /// # Errors
    /// If the system refuses to tell how it ended.
    pub async fn end(mut self, patience: Duration, grace: Duration) -> io::Result<ProcessExit> {
        let changes = signal(SignalKind::child())?;
        let stop = CancellationToken::new();
        let closed = pin!(async {});
        let ended = self.group.supervise(closed, changes, &stop, grace);
        let asked = async {
            sleep(patience).await;
            stop.cancel();
            std::future::pending::<bool>().await
        };
        let was_asked = tokio::select! {
            was_asked = ended => was_asked,
            was_asked = asked => was_asked,
        };
        let status = self.group.reap().await?;
        // What is lost then was written by a process that nobody can wait for.
        let _ = timeout(LAST_WORDS, self.listening.join_next_with_id()).await;
        Ok(ProcessExit {
            how: ending(status),
            was_asked,
            words: self.words(),
        })
    }
}
