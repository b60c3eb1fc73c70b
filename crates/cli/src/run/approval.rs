//! Who decides whether a tool that may change something runs: `--yes`, or a person at the terminal.

use std::collections::HashSet;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::thread::{self, JoinHandle};

use plaincall::{BoxError, Canceller, Decision, Effect, Gate, GateFuture, Request, Toolbox};
use tokio::sync::mpsc::Sender;
use tokio::sync::{Mutex, oneshot};

use crate::run::news::News;
use crate::run::question::{self, ANSWERS};
use crate::run::terminal::{Controlling, Keys};

/// The gate of a run.
#[derive(Clone, Debug)]
pub(crate) struct Approval {
    /// All may run, whatever they do.
    pub(crate) yes: bool,
    pub(crate) desk: Arc<Desk>,
}

impl Gate for Approval {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            match request.effect {
                Effect::Read | Effect::Idempotent => Ok(Decision::Allow),
                Effect::Write if self.yes => Ok(Decision::Allow),
                Effect::Write => self.desk.ask(request).await,
            }
        })
    }
}

/// Where questions are asked, one after another.
#[derive(Debug)]
pub(crate) struct Desk {
    toolbox: Toolbox,
    news: Sender<News>,
    /// Whether the display shows the questions; otherwise they are written on the terminal directly.
    is_shown: bool,
    /// The tools of which all calls may run. It is locked while a question is open.
    allowed: Mutex<HashSet<Arc<str>>>,
    /// Set when there is a run to call off.
    canceller: StdMutex<Option<Canceller>>,
    /// The thread that reads keys.
    reader: StdMutex<Option<JoinHandle<()>>>,
}

/// Someone who waits for a key. Dropping it says that nobody waits any more.
struct Wish {
    is_wanted: Arc<AtomicBool>,
    news: Sender<News>,
    call: u32,
    is_answered: bool,
}

impl Drop for Wish {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Relaxed);
        if !self.is_answered {
            // The question goes away with the call it was about. If the display is too busy to hear it, it sees
            // the call's end all the same.
            let _ = self.news.try_send(News::Answered {
                call: self.call,
                answer: None,
            });
        }
    }
}

impl Desk {
    pub(crate) fn new(toolbox: Toolbox, news: Sender<News>, is_shown: bool) -> Self {
        Self {
            toolbox,
            news,
            is_shown,
            allowed: Mutex::default(),
            canceller: StdMutex::default(),
            reader: StdMutex::default(),
        }
    }

    /// Says which run is called off when somebody quits.
    pub(crate) fn set_canceller(&self, canceller: Canceller) {
        *lock(&self.canceller) = Some(canceller);
    }

    /// Waits until no thread reads from the terminal any more and it is as it was. A tenth of a second at most.
    pub(crate) fn close(&self) {
        if let Some(reader) = lock(&self.reader).take() {
            let _ = reader.join();
        }
    }

    async fn ask(&self, request: &Request) -> Result<Decision, BoxError> {
        // One question at a time.
        let mut allowed = self.allowed.lock().await;
        if allowed.contains(&request.name) {
            return Ok(Decision::Allow);
        }
        let terminal = match Controlling::open() {
            Ok(terminal) => terminal,
            Err(reason) => return Ok(Decision::deny(nobody_to_ask(request, reason))),
        };
        let key = self.question(request, terminal).await?;
        match key {
            b'y' => Ok(Decision::Allow),
            b'a' => {
                allowed.insert(Arc::clone(&request.name));
                Ok(Decision::Allow)
            }
            b'q' => {
                let canceller = lock(&self.canceller).take();
                if let Some(canceller) = canceller {
                    canceller.cancel();
                    // The call ends as cancelled, and so do those whose questions wait behind this one.
                    pending::<()>().await;
                }
                Ok(Decision::deny("the run was called off"))
            }
            _ => Ok(Decision::deny("the user did not allow this call")),
        }
    }

    /// Puts the question and returns the key that answers it.
    async fn question(&self, request: &Request, terminal: Controlling) -> io::Result<u8> {
        let lines = question::lines(request, self.toolbox.get(&request.name));
        let prompt = question::prompt();
        let mut wish = Wish {
            is_wanted: Arc::new(AtomicBool::new(true)),
            news: self.news.clone(),
            call: request.call,
            is_answered: false,
        };
        // Whoever asked before has an answer, or gives up within a tenth of a second, and gives the terminal back.
        self.close();
        let keys = terminal.into_keys(Arc::clone(&wish.is_wanted))?;
        if !self.is_shown {
            let mut text = String::new();
            for line in lines.iter().chain([&prompt]) {
                line.write(&mut text, false);
                text.push('\n');
            }
            keys.terminal.write(&text)?;
        }
        let asking = News::Asking {
            call: request.call,
            lines,
            prompt,
        };
        // A display that is gone shows nothing, and then nobody should answer.
        self.news
            .send(asking)
            .await
            .map_err(|_| io::ErrorKind::BrokenPipe)?;
        let (tell, answer) = oneshot::channel();
        let wait = move || {
            let answer = wait_for_answer(&keys);
            drop(keys);
            // The call may have ended meanwhile.
            let _ = tell.send(answer);
        };
        let reader = thread::Builder::new().name("keys".to_owned()).spawn(wait)?;
        *lock(&self.reader) = Some(reader);
        let key = answer.await.map_err(|_| io::ErrorKind::UnexpectedEof)??;
        let answer = ANSWERS
            .iter()
            .find(|answer| answer.key == key)
            .map(|answer| answer.outcome);
        wish.is_answered = true;
        let _ = self
            .news
            .send(News::Answered {
                call: request.call,
                answer,
            })
            .await;
        if !self.is_shown
            && let (Some(answer), Ok(terminal)) = (answer, Controlling::open())
        {
            let _ = terminal.write(&format!("{} {answer}\n", request.id));
        }
        Ok(key)
    }
}

fn wait_for_answer(keys: &Keys) -> io::Result<u8> {
    let wanted: Vec<u8> = ANSWERS.iter().map(|answer| answer.key).collect();
    keys.wait_for(&wanted)?
        .ok_or_else(|| io::ErrorKind::Interrupted.into())
}

fn nobody_to_ask(request: &Request, reason: &str) -> String {
    format!(
        "the tool `{}` may change something, and {reason}; `--yes` lets such tools run without asking",
        request.name
    )
}

fn lock<T>(mutex: &StdMutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is behind it is whole at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
