//! Questions to the user on the terminal, one at a time. The display pauses while a question is open.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use tokio::sync::mpsc::Sender;
use tokio::sync::{Mutex, MutexGuard, Semaphore, oneshot};

use crate::status::print_note;
use crate::terminal::event::UiEvent;
use crate::terminal::line::Line;
use crate::terminal::palette::{NOTICE, PLAIN};
use crate::terminal::question::{Answer, MORE, prompt};
use crate::terminal::tty::{Keys, Tty};

/// Asks questions on the terminal.
pub(crate) struct Prompter {
    /// The display, if it writes on a terminal.
    display: Option<Sender<UiEvent>>,
    has_color: bool,
    /// Closed when questions may be asked, which is after all earlier events are shown.
    is_waiting: Semaphore,
    /// The tools whose calls are all allowed. Locked while a question is open.
    allowed: Mutex<HashSet<Arc<str>>>,
    /// The notes that were written.
    noted: StdMutex<HashSet<String>>,
    /// Cancels the run, if possible.
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
    /// The id of the call, or empty for other questions.
    pub(crate) id: Arc<str>,
    pub(crate) pages: Vec<Vec<Line>>,
    pub(crate) text: &'static str,
    pub(crate) answers: Vec<&'static Answer>,
}

#[derive(Debug)]
/// The answer to a question.
pub(crate) struct Reply {
    pub(crate) key: u8,
    /// The text typed with it, if any.
    pub(crate) text: Option<String>,
}

/// Pauses the display until it is dropped.
#[derive(Debug)]
pub(crate) struct Pause {
    back: Option<mpsc::Sender<()>>,
    display: Sender<UiEvent>,
}

impl Drop for Pause {
    fn drop(&mut self) {
        drop(self.back.take());
        // If the queue is full, other events wake the display.
        let _ = self.display.try_send(UiEvent::Tick);
    }
}

/// Cancels the question when dropped.
struct ActiveGuard(Arc<AtomicBool>);

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Prompter {
    /// `display` is the display that writes to a terminal, if any.
    pub(crate) fn new(display: Option<Sender<UiEvent>>, has_color: bool) -> Self {
        Self {
            display,
            has_color,
            is_waiting: Semaphore::new(0),
            allowed: Mutex::default(),
            noted: StdMutex::default(),
            quit: StdMutex::default(),
            reader: StdMutex::default(),
        }
    }

    /// Sets the action of `[q]uit`.
    pub(crate) fn set_quit(&self, quit: impl FnOnce() + Send + 'static) {
        *lock(&self.quit) = Some(Box::new(quit));
    }

    /// Allows questions from now on.
    pub(crate) fn open(&self) {
        self.is_waiting.close();
    }

    /// Cancels the run. Returns whether there was anything to cancel.
    pub(crate) fn quit(&self) -> bool {
        let quit = lock(&self.quit).take();
        quit.map(|quit| quit()).is_some()
    }

    /// Waits until the reader thread has ended and the terminal is restored. Takes at most 0.1 seconds.
    pub(crate) fn close(&self) {
        if let Some(reader) = lock(&self.reader).take() {
            let _ = reader.join();
        }
    }

    /// Waits until no other question is open. The returned guard prevents other questions and holds the tools whose
    /// calls are all allowed.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        // The semaphore has no permits; this returns when it is closed.
        let _ = self.is_waiting.acquire().await;
        self.allowed.lock().await
    }

    /// Writes a note for the user, once.
    pub(crate) async fn note_once(&self, note: String) {
        if !lock(&self.noted).insert(note.clone()) {
            return;
        }
        match &self.display {
            Some(display) => {
                let _ = display.send(UiEvent::Note(note)).await;
            }
            None => print_note(&note),
        }
    }

    /// Pauses the display until the returned value is dropped.
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

    /// Asks a question on this terminal and returns the answer.
    pub(crate) async fn ask(&self, question: Question, terminal: Tty) -> io::Result<Reply> {
        // The previous reader thread ends within 0.1 seconds and releases the terminal.
        self.close();
        let _pause = self.pause().await;
        let active = ActiveGuard(Arc::new(AtomicBool::new(true)));
        let keys = terminal.into_keys(Arc::clone(&active.0))?;
        let (sender, answer) = oneshot::channel();
        let has_color = self.has_color;
        let wait = move || {
            let answer = question.ask(&keys, has_color);
            drop(keys);
            // The call may have ended in the meantime.
            let _ = sender.send(answer);
        };
        let reader = thread::Builder::new().name("keys".to_owned()).spawn(wait)?;
        *lock(&self.reader) = Some(reader);
        answer.await.map_err(|_| ErrorKind::UnexpectedEof)?
    }
}

impl Question {
    /// Shows the pages until a question is answered. Input typed before a page is shown is discarded.
    fn ask(&self, keys: &Keys, has_color: bool) -> io::Result<Reply> {
        let mut page = 0;
        let key = loop {
            let lines = self.pages.get(page).map(Vec::as_slice).unwrap_or_default();
            if let [only] = self.answers.as_slice()
                && only.text_prompt.is_some()
            {
                // The typed line is the answer.
                keys.write(&to_text(lines, has_color))?;
                break only.key;
            }
            let (prompt, accepted) = prompt(self.text, &self.answers, page, self.pages.len());
            keys.write(&to_text(&[lines, &[prompt]].concat(), has_color))?;
            let key = keys.read_key(&accepted)?.ok_or(ErrorKind::Interrupted)?;
            if key != MORE {
                break key;
            }
            page += 1;
        };
        let answer = self.answers.iter().find(|answer| answer.key == key);
        let mut text = None;
        if let Some(prompt_text) = answer.and_then(|answer| answer.text_prompt) {
            let question = Line::of(NOTICE, &format!("? {prompt_text}  "));
            let question = to_text(&[question], has_color);
            let line = keys.prompt(question.trim_end_matches('\n'))?;
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
            keys.write(&to_text(&[line], false))?;
        }
        Ok(Reply { key, text })
    }
}

fn to_text(lines: &[Line], has_color: bool) -> String {
    let mut text = String::new();
    for line in lines {
        line.write(&mut text, has_color);
        text.push('\n');
    }
    text
}

fn lock<T>(mutex: &StdMutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The value is consistent even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
