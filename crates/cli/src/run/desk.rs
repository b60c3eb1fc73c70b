//! Where questions are asked, one after another, and answered: at the terminal itself.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::mpsc::Sender;
use tokio::sync::{Mutex, MutexGuard, Semaphore, oneshot};

use crate::environment::Environment;
use crate::picture::line::Line;
use crate::picture::palette::{ASKING, PLAIN};
use crate::run::news::{About, News};
use crate::run::question::{Answer, MORE, accepted, prompt};
use crate::run::terminal::{Controlling, Keys, Typed};

/// The desk.
#[derive(Debug)]
pub(crate) struct Desk {
    news: Sender<News>,
    /// Whether the display shows the questions; otherwise they are written on the terminal directly.
    is_shown: bool,
    /// Whether the display writes on a terminal, so that it has to be quiet while an editor is there.
    is_on_terminal: bool,
    pub(crate) editor: Option<OsString>,
    pub(crate) temporary_directory: PathBuf,
    /// Closed as soon as questions may be put: when all that was before is shown.
    is_waiting: Semaphore,
    /// The tools of which all calls may run. It is locked while a question is open.
    allowed: Mutex<HashSet<Arc<str>>>,
    /// Calls all off, if there is something to call off.
    quit: StdMutex<Option<Quit>>,
    /// The thread that reads keys.
    reader: StdMutex<Option<JoinHandle<()>>>,
}

/// What calls all off.
struct Quit(Box<dyn FnOnce() + Send>);

impl fmt::Debug for Quit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Quit")
    }
}

/// A question.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) call: u32,
    pub(crate) id: Arc<str>,
    pub(crate) about: About,
    /// What a person has to know, page after page.
    pub(crate) pages: Vec<Vec<Line>>,
    /// What is asked.
    pub(crate) words: &'static str,
    /// What they can answer.
    pub(crate) answers: Vec<&'static Answer>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) key: u8,
    /// What was typed to it, if it was anything.
    pub(crate) text: Option<String>,
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
    pub(crate) fn new(
        news: Sender<News>,
        is_shown: bool,
        is_on_terminal: bool,
        environment: &Environment,
    ) -> Self {
        let editor = environment
            .get("VISUAL")
            .or_else(|| environment.get("EDITOR"));
        Self {
            news,
            is_shown,
            is_on_terminal,
            editor: editor.map(Into::into),
            temporary_directory: environment.temporary_directory(),
            is_waiting: Semaphore::new(0),
            allowed: Mutex::default(),
            quit: StdMutex::default(),
            reader: StdMutex::default(),
        }
    }

    /// Says what calls all off when somebody quits.
    pub(crate) fn set_quit(&self, quit: impl FnOnce() + Send + 'static) {
        *lock(&self.quit) = Some(Quit(Box::new(quit)));
    }

    /// Lets questions be put from now on.
    pub(crate) fn open(&self) {
        self.is_waiting.close();
    }

    /// Calls all off. Whether there was something.
    pub(crate) fn quit(&self) -> bool {
        let Some(Quit(quit)) = lock(&self.quit).take() else {
            return false;
        };
        quit();
        true
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

    /// Makes the display be quiet, so that something else can use the terminal until what is returned is dropped.
    pub(crate) async fn quiet(&self) -> Option<std::sync::mpsc::Sender<()>> {
        if !self.is_on_terminal {
            return None;
        }
        let (back, is_back) = std::sync::mpsc::channel();
        let (tell, is_quiet) = oneshot::channel();
        let quiet = News::Quiet {
            is_quiet: tell,
            is_back,
        };
        self.news.send(quiet).await.ok()?;
        is_quiet.await.ok()?;
        Some(back)
    }

    /// Puts the question on this terminal and returns what answers it.
    pub(crate) async fn ask(
        &self,
        question: &Question,
        terminal: Controlling,
    ) -> io::Result<Reply> {
        let pages = question.pages.len();
        let prompt = prompt(question.words, &question.answers, 0, pages);
        let first = question.pages.first().cloned().unwrap_or_default();
        let mut wish = Wish {
            is_wanted: Arc::new(AtomicBool::new(true)),
            news: self.news.clone(),
            call: question.call,
            is_answered: false,
        };
        // Whoever asked before has an answer, or gives up within a tenth of a second, and gives the terminal back.
        self.close();
        let keys = terminal.into_keys(Arc::clone(&wish.is_wanted))?;
        let asking = News::Asking {
            call: question.call,
            about: question.about,
            lines: first.clone(),
            prompt: prompt.clone(),
        };
        // A display that is gone shows nothing, and then nobody should answer.
        self.news
            .send(asking)
            .await
            .map_err(|_| ErrorKind::BrokenPipe)?;
        if !self.is_shown {
            if self.is_on_terminal {
                // What stands on the terminal ends its line first.
                let (tell, is_told) = oneshot::channel();
                let _ = self.news.send(News::Written(tell)).await;
                let _ = is_told.await;
            }
            keys.terminal.write(&written(&first, &prompt))?;
        }
        let (tell, answer) = oneshot::channel();
        let conversation = Conversation {
            call: question.call,
            words: question.words,
            answers: question.answers.clone(),
            pages: question.pages.clone(),
            news: self.is_shown.then(|| self.news.clone()),
        };
        let wait = move || {
            let answer = conversation.hold(&keys);
            drop(keys);
            // The call may have ended meanwhile.
            let _ = tell.send(answer);
        };
        let reader = thread::Builder::new().name("keys".to_owned()).spawn(wait)?;
        *lock(&self.reader) = Some(reader);
        let reply = answer.await.map_err(|_| ErrorKind::UnexpectedEof)??;
        let outcome = outcome(question, &reply);
        wish.is_answered = true;
        let _ = self
            .news
            .send(News::Answered {
                call: question.call,
                answer: outcome.clone(),
            })
            .await;
        if !self.is_shown
            && let (Some(outcome), Ok(terminal)) = (outcome, Controlling::open())
        {
            let mut text = String::new();
            Line::of(PLAIN, &format!("{} {outcome}", question.id)).write(&mut text, false);
            text.push('\n');
            let _ = terminal.write(&text);
        }
        Ok(reply)
    }
}

/// What the answer means for the call, behind its id; `None` if it means nothing yet.
fn outcome(question: &Question, reply: &Reply) -> Option<String> {
    let mut answers = question.answers.iter();
    let outcome = answers.find(|answer| answer.key == reply.key)?.outcome?;
    Some(match &reply.text {
        Some(text) => format!("{outcome}: {text}"),
        None => outcome.to_owned(),
    })
}

/// What is said and heard on the terminal until there is an answer.
struct Conversation {
    call: u32,
    words: &'static str,
    answers: Vec<&'static Answer>,
    pages: Vec<Vec<Line>>,
    /// Who shows what is typed; nobody if it is written on the terminal directly.
    news: Option<Sender<News>>,
}

impl Conversation {
    fn hold(&self, keys: &Keys) -> io::Result<Reply> {
        // Where there is nothing to choose, what is typed is the answer.
        let only = match self.answers.as_slice() {
            [only] if only.asks.is_some() => Some(only.key),
            _ => None,
        };
        let mut page = 0;
        loop {
            let accepted = accepted(&self.answers, page, self.pages.len());
            let mut wanted: Vec<u8> = accepted.iter().map(|answer| answer.key).collect();
            if page + 1 < self.pages.len() {
                wanted.push(MORE);
            }
            let key = match only {
                Some(key) => key,
                None => keys.wait_for(&wanted)?.ok_or(ErrorKind::Interrupted)?,
            };
            if key == MORE && wanted.contains(&MORE) {
                page += 1;
                self.show_page(keys, page)?;
                continue;
            }
            let asks = self
                .answers
                .iter()
                .find(|answer| answer.key == key)
                .and_then(|answer| answer.asks);
            let Some(words) = asks else {
                return Ok(Reply { key, text: None });
            };
            self.show_typed(keys, words, "", "")?;
            let typed = keys.read_line(|before, now| self.show_typed(keys, words, before, now))?;
            match typed {
                Typed::Line(text) => {
                    self.end_typed(keys)?;
                    let text = text.trim().to_owned();
                    let text = Some(text).filter(|text| !text.is_empty());
                    return Ok(Reply { key, text });
                }
                Typed::Nothing => {
                    self.end_typed(keys)?;
                    if only.is_some() {
                        return Ok(Reply { key, text: None });
                    }
                    self.show(keys, &self.prompt(page))?;
                }
                Typed::Unwanted => return Err(ErrorKind::Interrupted.into()),
            }
        }
    }

    fn prompt(&self, page: usize) -> Line {
        prompt(self.words, &self.answers, page, self.pages.len())
    }

    /// Shows a page. When it returns, the page is on its way, and nothing that was typed before answers it.
    fn show_page(&self, keys: &Keys, page: usize) -> io::Result<()> {
        let lines = self.pages.get(page).cloned().unwrap_or_default();
        let prompt = self.prompt(page);
        let Some(news) = &self.news else {
            return keys.terminal.write(&written(&lines, &prompt));
        };
        let page = News::Page {
            call: self.call,
            lines,
            prompt,
        };
        // A display that is gone shows nothing, and then nobody should answer.
        news.blocking_send(page)
            .map_err(|_| ErrorKind::BrokenPipe.into())
    }

    /// Shows what is being typed: it was one text before, and is another now.
    fn show_typed(&self, keys: &Keys, words: &str, before: &str, now: &str) -> io::Result<()> {
        let mut line = Line::of(ASKING, &format!("? {words}  "));
        line.push(PLAIN, now);
        if self.news.is_some() {
            line.push(ASKING, "_");
            return self.show(keys, &line);
        }
        if let Some(added) = now.strip_prefix(before).filter(|_| !before.is_empty()) {
            let mut text = String::new();
            Line::of(PLAIN, added).write(&mut text, false);
            return keys.terminal.write(&text);
        }
        let mut text = "\r".to_owned();
        line.write(&mut text, false);
        // What was longer before is covered with blanks.
        let width = Line::of(PLAIN, before).width();
        let gone = width.saturating_sub(Line::of(PLAIN, now).width());
        text.push_str(&" ".repeat(gone));
        text.push_str(&"\u{8}".repeat(gone));
        keys.terminal.write(&text)
    }

    fn end_typed(&self, keys: &Keys) -> io::Result<()> {
        if self.news.is_none() {
            keys.terminal.write("\n")?;
        }
        Ok(())
    }

    fn show(&self, keys: &Keys, prompt: &Line) -> io::Result<()> {
        if let Some(news) = &self.news {
            // A display that is behind shows the next state.
            let _ = news.try_send(News::Prompt {
                call: self.call,
                prompt: prompt.clone(),
            });
            return Ok(());
        }
        let mut text = String::new();
        prompt.write(&mut text, false);
        text.push('\n');
        keys.terminal.write(&text)
    }
}

/// A page and its prompt, for a terminal that is written on directly.
fn written(page: &[Line], prompt: &Line) -> String {
    let mut text = String::new();
    for line in page.iter().chain([prompt]) {
        line.write(&mut text, false);
        text.push('\n');
    }
    text
}

fn lock<T>(mutex: &StdMutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is behind it is whole at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
