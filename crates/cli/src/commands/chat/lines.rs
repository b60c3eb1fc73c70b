//! The input lines of a conversation, from a line editor or a pipe. A separate thread reads them, and only on request.

use std::cell::{Cell, RefCell};
use std::fs::DirBuilder;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::mem::take;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Behavior, Config, Context, Editor, Helper};
use tokio::sync::mpsc;

use crate::status::{Failure, remark};
use crate::terminal::tty::{Kept, Tty};

/// The file with the lines of earlier conversations, in the directory of Plaincall's state.
const HISTORY: &str = "history";
/// How many lines it holds.
const KEPT: usize = 1000;
const PROMPT: &str = "> ";
const PROMPT_AGAIN: &str = ". ";
/// The maximum length of a message with its continued lines, in bytes.
const LONGEST: usize = 16 << 20;

/// A line.
pub(super) enum Line {
    Text(String),
    /// There are no more.
    End,
}

/// Where lines come from.
pub(super) struct Lines {
    wanted: Sender<()>,
    read: mpsc::Receiver<io::Result<Line>>,
    /// Whether one is being read already.
    is_reading: bool,
    /// The terminal as it was before anything was edited on it.
    terminal: Option<Kept>,
    is_typed: bool,
}

impl Lines {
    /// Opens the terminal, or the pipe. `state` is where the history is kept.
    pub(super) fn open(state: Option<&Path>) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::Broken(format!("cannot read from the terminal: {error}"))
        };
        let is_typed = io::stdin().is_terminal();
        let (wanted, is_wanted) = channel();
        // One line is read at a time.
        let (sender, read) = mpsc::channel(1);
        let mut terminal = None;
        let thread = thread::Builder::new().name("lines".to_owned());
        let started = if is_typed {
            let controlling = Tty::open().map_err(|reason| failed(&reason))?;
            terminal = Some(controlling.kept().map_err(|error| failed(&error))?);
            let mut typed = Typed::open(state).map_err(|error| failed(&error))?;
            thread.spawn(move || serve(&is_wanted, &sender, || typed.line()))
        } else {
            let stdin = io::stdin();
            thread.spawn(move || serve(&is_wanted, &sender, || piped(&mut stdin.lock())))
        };
        started.map_err(|error| failed(&error))?;
        Ok(Self {
            wanted,
            read,
            is_reading: false,
            terminal,
            is_typed,
        })
    }

    /// Whether the lines are typed.
    pub(super) fn is_typed(&self) -> bool {
        self.is_typed
    }

    /// The next line. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<Line, Failure> {
        if !self.is_reading {
            self.is_reading = true;
            // Without a receiver there is no line either.
            let _ = self.wanted.send(());
        }
        let line = self.read.recv().await;
        self.is_reading = false;
        match line {
            None => Ok(Line::End),
            Some(line) => {
                line.map_err(|error| Failure::Broken(format!("cannot read a line: {error}")))
            }
        }
    }

    /// Gives the terminal back as it was, also while a line is edited.
    pub(super) fn close(self) {
        drop(self.terminal);
    }
}

/// Reads a line whenever one is wanted.
fn serve(
    is_wanted: &Receiver<()>,
    lines: &mpsc::Sender<io::Result<Line>>,
    mut next: impl FnMut() -> io::Result<Line>,
) {
    while is_wanted.recv().is_ok() {
        let line = next();
        let is_last = !matches!(line, Ok(Line::Text(_)));
        if lines.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

/// A line from a pipe.
fn piped(stdin: &mut io::StdinLock<'_>) -> io::Result<Line> {
    let mut text = String::new();
    loop {
        let mut line = Vec::new();
        if stdin.read_until(b'\n', &mut line)? == 0 {
            return Ok(if text.is_empty() {
                Line::End
            } else {
                Line::Text(text)
            });
        }
        text.push_str(&String::from_utf8_lossy(&line));
        let Some(front) = continued(&text) else {
            let end = text.trim_end_matches(['\n', '\r']).len();
            text.truncate(end);
            return Ok(Line::Text(text));
        };
        let end = front.len();
        text.truncate(end);
        text.push('\n');
        refuse_longer(&text)?;
    }
}

/// Returns the text before the backslash at the end of a continued line.
fn continued(text: &str) -> Option<&str> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    line.strip_suffix('\r').unwrap_or(line).strip_suffix('\\')
}

fn refuse_longer(text: &str) -> io::Result<()> {
    if text.len() > LONGEST {
        return Err(io::Error::other("the text is too long"));
    }
    Ok(())
}

/// A terminal on which lines are edited.
struct Typed {
    editor: Editor<Watcher, FileHistory>,
    history: Option<PathBuf>,
}

/// Sees what is on the line: the editor does not return what a Ctrl-C has cleared or an error has interrupted.
#[derive(Debug, Default)]
struct Watcher {
    line: RefCell<String>,
    cursor: Cell<usize>,
}

impl Hinter for Watcher {
    type Hint = String;

    fn hint(&self, line: &str, cursor: usize, _: &Context<'_>) -> Option<String> {
        line.clone_into(&mut self.line.borrow_mut());
        self.cursor.set(cursor);
        None
    }
}

impl Completer for Watcher {
    type Candidate = String;
}

impl Highlighter for Watcher {}
impl Validator for Watcher {}
impl Helper for Watcher {}

impl Typed {
    fn open(state: Option<&Path>) -> Result<Self, ReadlineError> {
        let config = Config::builder()
            .max_history_size(KEPT)?
            .history_ignore_space(true)
            .auto_add_history(false)
            // The standard output may be a file.
            .behavior(Behavior::PreferTerm)
            .build();
        let history = FileHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history)?;
        editor.set_helper(Some(Watcher::default()));
        let history = state.map(|state| state.join(HISTORY));
        if let Some(file) = &history {
            // Without one there is nothing to remember yet.
            let _ = editor.load_history(file);
        }
        Ok(Self { editor, history })
    }

    /// Whether the line, or a line that it continues, has text.
    fn has_text(&self, before: &str) -> bool {
        let watcher = self.editor.helper();
        !before.is_empty() || watcher.is_some_and(|watcher| !watcher.line.borrow().is_empty())
    }

    /// The text before and after the cursor when an invalid UTF-8 byte arrived, which U+FFFD replaces.
    fn interrupted_line(&self) -> (String, String) {
        let Some(watcher) = self.editor.helper() else {
            return (String::new(), String::new());
        };
        let line = watcher.line.borrow();
        let (before, behind) = line
            .split_at_checked(watcher.cursor.get())
            .unwrap_or((line.as_str(), ""));
        let mut before = before.to_owned();
        before.push(char::REPLACEMENT_CHARACTER);
        (before, behind.to_owned())
    }

    /// Reads a line and its continuations. Ctrl-C clears the line; on an empty line the second one ends the input.
    fn line(&mut self) -> io::Result<Line> {
        let mut text = String::new();
        let mut was_interrupted = false;
        let mut initial = (String::new(), String::new());
        loop {
            let prompt = if text.is_empty() {
                PROMPT
            } else {
                PROMPT_AGAIN
            };
            let (before, behind) = take(&mut initial);
            match self
                .editor
                .readline_with_initial(prompt, (&before, &behind))
            {
                Ok(line) => {
                    was_interrupted = false;
                    text.push_str(&line);
                    if let Some(front) = continued(&text) {
                        let end = front.len();
                        text.truncate(end);
                        text.push('\n');
                        refuse_longer(&text)?;
                        continue;
                    }
                    self.remember(&text);
                    return Ok(Line::Text(text));
                }
                Err(ReadlineError::Interrupted) if self.has_text(&text) => {
                    was_interrupted = false;
                    text.clear();
                }
                Err(ReadlineError::Interrupted) if was_interrupted => return Ok(Line::End),
                Err(ReadlineError::Interrupted) => {
                    was_interrupted = true;
                    remark("Ctrl-C again, or Ctrl-D, ends");
                }
                Err(ReadlineError::Eof) => return Ok(Line::End),
                // A terminal with another encoding sends bytes that are not UTF-8.
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    was_interrupted = false;
                    initial = self.interrupted_line();
                }
                Err(ReadlineError::Io(error)) => return Err(error),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    fn remember(&mut self, text: &str) {
        // A line that begins with a blank is not kept in the history.
        if !matches!(self.editor.add_history_entry(text), Ok(true)) {
            return;
        }
        if let Some(file) = &self.history {
            if let Some(folder) = file.parent() {
                let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            }
            // A history that cannot be kept is no reason to stop.
            let _ = self.editor.append_history(file);
        }
    }
}
