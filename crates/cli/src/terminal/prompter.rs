//! Asks the user at the terminal, one question at a time. The display pauses while a question is open.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use tokio::sync::mpsc::Sender;
use tokio::sync::{Mutex, MutexGuard, Semaphore, oneshot};

use crate::terminal::event::UiEvent;
use crate::terminal::line::Line;
use crate::terminal::palette::{ASKING, PLAIN};
use crate::terminal::question::{Answer, MORE, prompt};
use crate::terminal::tty::{Keys, Tty};

pub(crate) struct Prompter {
    /// The display, if it writes on a terminal.
    display: Option<Sender<UiEvent>>,
    has_color: bool,
    /// Closed as soon as questions may be asked: when all earlier events are shown.
    is_waiting: Semaphore,
    /// The tools of which all calls may run. It is locked while a question is open.
    allowed: Mutex<HashSet<Arc<str>>>,
    /// Cancels all, if there is something to cancel.
    quit: StdMutex<Option<Quit>>,
    /// The thread that reads keys.
    reader: StdMutex<Option<JoinHandle<()>>>,
}

type Quit = Box<dyn FnOnce() + Send>;

impl fmt::Debug for Prompter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Prompter")
    }
}

#[derive(Debug)]
pub(crate) struct Question {
    /// The id of the call that it is about; empty if it is about none.
    pub(crate) id: Arc<str>,
    pub(crate) pages: Vec<Vec<Line>>,
    pub(crate) words: &'static str,
    pub(crate) answers: Vec<&'static Answer>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) key: u8,
    /// The text typed with it, if any.
    pub(crate) text: Option<String>,
}

/// Keeps the display from writing until it is dropped.
#[derive(Debug)]
pub(crate) struct Pause {
    back: Option<mpsc::Sender<()>>,
    display: Sender<UiEvent>,
}

impl Drop for Pause {
    fn drop(&mut self) {
        drop(self.back.take());
        // If it has no room, the display has something else to wake up for.
        let _ = self.display.try_send(UiEvent::Tick);
    }
}

/// Dropping it cancels the question.
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Prompter {
    /// `display` is the one that writes on a terminal, if there is one.
    pub(crate) fn new(display: Option<Sender<UiEvent>>, has_color: bool) -> Self {
        Self {
            display,
            has_color,
            is_waiting: Semaphore::new(0),
            allowed: Mutex::default(),
            quit: StdMutex::default(),
            reader: StdMutex::default(),
        }
    }

    /// Sets the action of `[q]uit`.
    pub(crate) fn set_quit(&self, quit: impl FnOnce() + Send + 'static) {
        *lock(&self.quit) = Some(Box::new(quit));
    }

    /// Lets questions be put from now on.
    pub(crate) fn open(&self) {
        self.is_waiting.close();
    }

    /// Cancels all. Returns whether there was something.
    pub(crate) fn quit(&self) -> bool {
        let quit = lock(&self.quit).take();
        quit.map(|quit| quit()).is_some()
    }

    /// Waits until no thread reads from the terminal any more and it is as it was. A tenth of a second at most.
    pub(crate) fn close(&self) {
        if let Some(reader) = lock(&self.reader).take() {
            let _ = reader.join();
        }
    }

    /// Waits until no other question is open. What is returned keeps others away, and holds the tools of which all
    /// calls may run.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        // It has no permits to give; it fails when it is closed.
        let _ = self.is_waiting.acquire().await;
        self.allowed.lock().await
    }

    /// Makes the display pause, so that something else can use the terminal until what is returned is dropped.
    pub(crate) async fn pause(&self) -> Option<Pause> {
        let display = self.display.clone()?;
        let (back, is_back) = mpsc::channel();
        let (notify, is_paused) = oneshot::channel();
        display
            .send(UiEvent::Pause { notify, is_back })
            .await
            .ok()?;
        is_paused.await.ok()?;
        Some(Pause {
            back: Some(back),
            display,
        })
    }

    /// Puts the question on this terminal and returns what answers it.
    pub(crate) async fn ask(&self, question: Question, terminal: Tty) -> io::Result<Reply> {
        // The previous question has an answer or stops within a tenth of a second, and then releases the terminal.
        self.close();
        let _pause = self.pause().await;
        let wanted = Wanted(Arc::new(AtomicBool::new(true)));
        let keys = terminal.into_keys(Arc::clone(&wanted.0))?;
        let (sender, answer) = oneshot::channel();
        let has_color = self.has_color;
        let wait = move || {
            let answer = question.put(&keys, has_color);
            drop(keys);
            // The call may have ended meanwhile.
            let _ = sender.send(answer);
        };
        let reader = thread::Builder::new().name("keys".to_owned()).spawn(wait)?;
        *lock(&self.reader) = Some(reader);
        answer.await.map_err(|_| ErrorKind::UnexpectedEof)?
    }
}

impl Question {
    /// Shows page after page until there is an answer. Nothing that was typed before a page answers it.
    fn put(&self, keys: &Keys, has_color: bool) -> io::Result<Reply> {
        let mut page = 0;
        let key = loop {
            let lines = self.pages.get(page).map(Vec::as_slice).unwrap_or_default();
            if let [only] = self.answers.as_slice()
                && only.asks.is_some()
            {
                // What is typed is the answer.
                keys.write(&written(lines, has_color))?;
                break only.key;
            }
            let (prompt, wanted) = prompt(self.words, &self.answers, page, self.pages.len());
            keys.write(&written(&[lines, &[prompt]].concat(), has_color))?;
            let key = keys.wait_for(&wanted)?.ok_or(ErrorKind::Interrupted)?;
            if key != MORE {
                break key;
            }
            page += 1;
        };
        let answer = self.answers.iter().find(|answer| answer.key == key);
        let mut text = None;
        if let Some(words) = answer.and_then(|answer| answer.asks) {
            let question = Line::of(ASKING, &format!("? {words}  "));
            let question = written(&[question], has_color);
            let line = keys.line(question.trim_end_matches('\n'))?;
            let line = line.ok_or(ErrorKind::Interrupted)?;
            text = Some(line.trim().to_owned()).filter(|text| !text.is_empty());
        }
        if let Some(outcome) = answer.map(|answer| answer.outcome)
            && !self.id.is_empty()
        {
            let mut line = Line::of(PLAIN, &format!("{} {outcome}", self.id));
            if let Some(text) = &text {
                line.push(PLAIN, &format!(": {text}"));
            }
            keys.write(&written(&[line], false))?;
        }
        Ok(Reply { key, text })
    }
}

fn written(lines: &[Line], has_color: bool) -> String {
    let mut text = String::new();
    for line in lines {
        line.write(&mut text, has_color);
        text.push('\n');
    }
    text
}

fn lock<T>(mutex: &StdMutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is behind it is whole at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
