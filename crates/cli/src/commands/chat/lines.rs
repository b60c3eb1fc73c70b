//! Input lines of a conversation, from a line editor or a pipe. A separate thread reads one line per request.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead as _, IsTerminal as _};
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use plaincall::private;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Behavior, Config, Context, Editor, Helper};
use tokio::sync::mpsc;

use crate::status::{Failure, print_note};
use crate::terminal::tty::{SavedMode, Tty};

/// The history file in the state directory.
const HISTORY: &str = "history";
/// The maximum number of lines in the history.
const MAX_HISTORY: usize = 1000;
const PROMPT: &str = "> ";
const CONTINUATION_PROMPT: &str = ". ";
/// The maximum length of a message with its continued lines, in bytes.
const MAX_MESSAGE: usize = 16 << 20;

/// A line of input.
pub(super) enum Line {
    Text(String),
    /// The end of input.
    End,
}

/// A reader of lines.
pub(super) struct Lines {
    requests: Sender<()>,
    read: mpsc::Receiver<io::Result<Line>>,
    /// Whether the thread is reading a line.
    is_reading: bool,
    /// The initial terminal mode, restored at the end.
    terminal: Option<SavedMode>,
    is_typed: bool,
}

impl Lines {
    /// Opens the terminal or the pipe. The history is saved in the directory `state`.
    pub(super) fn open(state: Option<&Path>) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::Runtime(format!("cannot read from the terminal: {error}"))
        };
        let is_typed = io::stdin().is_terminal();
        let (requests, received) = channel();
        // One line is read per request.
        let (sender, read) = mpsc::channel(1);
        let mut terminal = None;
        let thread = thread::Builder::new().name("lines".to_owned());
        let started = if is_typed {
            let controlling = Tty::open().map_err(|reason| failed(&reason))?;
            terminal = Some(controlling.save_mode().map_err(|error| failed(&error))?);
            let mut editor = LineEditor::open(state).map_err(|error| failed(&error))?;
            thread.spawn(move || read_lines(&received, &sender, || editor.line()))
        } else {
            let stdin = io::stdin();
            thread.spawn(move || read_lines(&received, &sender, || read_piped(&mut stdin.lock())))
        };
        started.map_err(|error| failed(&error))?;
        Ok(Self {
            requests,
            read,
            is_reading: false,
            terminal,
            is_typed,
        })
    }

    /// Returns whether standard input is a terminal.
    pub(super) fn is_typed(&self) -> bool {
        self.is_typed
    }

    /// Returns the next line. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Line, Failure> {
        if !self.is_reading {
            self.is_reading = true;
            // If the thread has ended, `recv` returns none.
            let _ = self.requests.send(());
        }
        let line = self.read.recv().await;
        self.is_reading = false;
        match line {
            None => Ok(Line::End),
            Some(line) => {
                line.map_err(|error| Failure::Runtime(format!("cannot read a line: {error}")))
            }
        }
    }

    /// Restores the terminal mode, even while a line is edited.
    pub(super) fn close(self) {
        drop(self.terminal);
    }
}

/// Reads a line for each request.
fn read_lines(
    received: &Receiver<()>,
    lines: &mpsc::Sender<io::Result<Line>>,
    mut next: impl FnMut() -> io::Result<Line>,
) {
    while received.recv().is_ok() {
        let line = next();
        let is_last = !matches!(line, Ok(Line::Text(_)));
        if lines.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

/// Reads a message from a pipe.
fn read_piped(stdin: &mut io::StdinLock<'_>) -> io::Result<Line> {
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
        check_length(&text)?;
    }
}

/// Returns the text before the backslash at the end of a continued line.
fn continued(text: &str) -> Option<&str> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    line.strip_suffix('\r').unwrap_or(line).strip_suffix('\\')
}

/// Checks the length of a message.
fn check_length(text: &str) -> io::Result<()> {
    if text.len() > MAX_MESSAGE {
        return Err(io::Error::other("the message is longer than 16 MiB"));
    }
    Ok(())
}

/// A line editor on a terminal.
struct LineEditor {
    editor: Editor<LineRecorder, FileHistory>,
    history: Option<PathBuf>,
}

/// Records the edited line, because the editor does not return it after Ctrl-C or an error.
#[derive(Debug, Default)]
struct LineRecorder {
    line: RefCell<String>,
    cursor: Cell<usize>,
}

impl Hinter for LineRecorder {
    type Hint = String;

    fn hint(&self, line: &str, cursor: usize, _: &Context<'_>) -> Option<String> {
        line.clone_into(&mut self.line.borrow_mut());
        self.cursor.set(cursor);
        None
    }
}

impl Completer for LineRecorder {
    type Candidate = String;
}

impl Highlighter for LineRecorder {}
impl Validator for LineRecorder {}
impl Helper for LineRecorder {}

impl LineEditor {
    fn open(state: Option<&Path>) -> Result<Self, ReadlineError> {
        let config = Config::builder()
            .max_history_size(MAX_HISTORY)?
            .history_ignore_space(true)
            .auto_add_history(false)
            // Standard output may be redirected.
            .behavior(Behavior::PreferTerm)
            .build();
        let history = FileHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history)?;
        editor.set_helper(Some(LineRecorder::default()));
        let history = state.map(|state| state.join(HISTORY));
        if let Some(file) = &history {
            // The file may not exist yet.
            let _ = editor.load_history(file);
        }
        Ok(Self { editor, history })
    }

    /// Returns whether the message has text.
    fn has_text(&self, before: &str) -> bool {
        let recorder = self.editor.helper();
        !before.is_empty() || recorder.is_some_and(|recorder| !recorder.line.borrow().is_empty())
    }

    /// Returns the text before and after the cursor when an invalid UTF-8 byte arrived; U+FFFD replaces the byte.
    fn interrupted_line(&self) -> (String, String) {
        let Some(recorder) = self.editor.helper() else {
            return (String::new(), String::new());
        };
        let line = recorder.line.borrow();
        let (before, after) = line
            .split_at_checked(recorder.cursor.get())
            .unwrap_or((line.as_str(), ""));
        let mut before = before.to_owned();
        before.push(char::REPLACEMENT_CHARACTER);
        (before, after.to_owned())
    }

    /// Reads a message with its continuations. Ctrl-C clears it; a second Ctrl-C in a row on an empty line ends input.
    fn line(&mut self) -> io::Result<Line> {
        let mut text = String::new();
        let mut was_interrupted = false;
        let mut initial = (String::new(), String::new());
        loop {
            let prompt = if text.is_empty() {
                PROMPT
            } else {
                CONTINUATION_PROMPT
            };
            let (before, after) = take(&mut initial);
            match self.editor.readline_with_initial(prompt, (&before, &after)) {
                Ok(line) => {
                    was_interrupted = false;
                    text.push_str(&line);
                    if let Some(front) = continued(&text) {
                        let end = front.len();
                        text.truncate(end);
                        text.push('\n');
                        check_length(&text)?;
                        continue;
                    }
                    self.add_to_history(&text);
                    return Ok(Line::Text(text));
                }
                Err(ReadlineError::Interrupted) if self.has_text(&text) => {
                    was_interrupted = false;
                    text.clear();
                }
                Err(ReadlineError::Interrupted) if was_interrupted => return Ok(Line::End),
                Err(ReadlineError::Interrupted) => {
                    was_interrupted = true;
                    print_note("press Ctrl-C again or Ctrl-D to exit");
                }
                Err(ReadlineError::Eof) => return Ok(Line::End),
                // A terminal with another encoding sends invalid UTF-8.
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    was_interrupted = false;
                    initial = self.interrupted_line();
                }
                Err(ReadlineError::Io(error)) => return Err(error),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Adds a message to the history.
    fn add_to_history(&mut self, text: &str) {
        // Lines that begin with a blank are not saved.
        if !matches!(self.editor.add_history_entry(text), Ok(true)) {
            return;
        }
        if let Some(file) = &self.history {
            if let Some(directory) = file.parent() {
                let _ = private::create_directory(directory);
            }
            // Chatting continues if the history cannot be saved.
            let _ = self.editor.append_history(file);
        }
    }
}
