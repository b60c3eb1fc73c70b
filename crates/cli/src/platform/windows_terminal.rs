//! The console.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};

use crate::terminal::tty::Size;

/// The maximum length of a line, in bytes.
const MAX_LINE: usize = 4096;

/// The longest delay until a cancelled question releases the console.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Returns the columns and rows of the console of standard output.
pub(crate) fn size_of_output() -> Option<(usize, usize)> {
    let (columns, rows) = size().ok()?;
    Some((columns.into(), rows.into()))
}

/// Returns the columns and rows of the console of standard error, which is the same.
pub(crate) fn size_of_errors() -> Option<(usize, usize)> {
    size_of_output()
}

/// Returns whether the console interprets escape sequences, and makes it do so.
pub(crate) fn has_escape_sequences() -> bool {
    crossterm::ansi_support::supports_ansi()
}

/// The console of the process. Text goes to standard error or output, whichever is the console: both convert it from UTF-8.
#[derive(Debug)]
pub(crate) struct Tty {
    is_error: bool,
}

impl Tty {
    /// Opens the console. Fails if there is none.
    pub(crate) fn open() -> Result<Self, &'static str> {
        let is_error = io::stderr().is_terminal();
        let is_shown = is_error || io::stdout().is_terminal();
        let input = File::options().read(true).write(true).open("CONIN$");
        if is_shown && input.is_ok() {
            Ok(Self { is_error })
        } else {
            Err("no terminal is available")
        }
    }

    pub(crate) fn size(&self) -> Size {
        Size::new(size_of_output())
    }

    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        if self.is_error {
            io::stderr().write_all(text.as_bytes())
        } else {
            let mut output = io::stdout();
            output.write_all(text.as_bytes())?;
            output.flush()
        }
    }

    /// Prompts for a line. Discards earlier input, which cannot be an answer. Ctrl-C is an error. Blocks.
    pub(crate) fn prompt(&self, question: &str) -> io::Result<String> {
        enable_raw_mode()?;
        let line = self.ask(question, || true);
        disable_raw_mode()?;
        line?.ok_or_else(|| ErrorKind::Interrupted.into())
    }

    /// Prompts for a line in raw mode. Returns none if the question was cancelled, or after Ctrl-C.
    fn ask(&self, question: &str, is_active: impl Fn() -> bool) -> io::Result<Option<String>> {
        discard()?;
        self.write(question)?;
        let mut line = String::new();
        while is_active() {
            let Some(key) = next_key()? else { continue };
            match key.code {
                KeyCode::Null => return Ok(None),
                KeyCode::Enter => {
                    self.write("\r\n")?;
                    return Ok(Some(line));
                }
                KeyCode::Backspace if line.pop().is_some() => self.write("\u{8} \u{8}")?,
                KeyCode::Char(c) if line.len() < MAX_LINE && !c.is_control() => {
                    line.push(c);
                    self.write(c.encode_utf8(&mut [0; 4]))?;
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Restores the mode of the console when the value is dropped.
    pub(crate) fn save_mode(self) -> io::Result<SavedMode> {
        Ok(SavedMode { tty: self })
    }

    /// Starts reading single keys without echo. Reading stops when `is_active` is false.
    pub(crate) fn into_keys(self, is_active: Arc<AtomicBool>) -> io::Result<Keys> {
        let saved = self.save_mode()?;
        enable_raw_mode()?;
        Ok(Keys { saved, is_active })
    }
}

/// Discards the input so far, except Ctrl-C.
fn discard() -> io::Result<()> {
    while poll(Duration::ZERO)? {
        let _ = key_of(&read()?);
    }
    Ok(())
}

/// Returns the next key that is pressed, if it is soon.
fn next_key() -> io::Result<Option<KeyEvent>> {
    if !poll(POLL_INTERVAL)? {
        return Ok(None);
    }
    Ok(key_of(&read()?))
}

/// Returns the key that an event presses. Ctrl-C, which is not a signal in raw mode, is reported as one, and is `Null`. Other keys with
/// Ctrl or Alt are not answers; both together write characters of some keyboards.
fn key_of(event: &Event) -> Option<KeyEvent> {
    let mut key = event.as_key_event()?;
    let [control, alt] = [KeyModifiers::CONTROL, KeyModifiers::ALT];
    let [control, alt] = [control, alt].map(|one| key.modifiers.contains(one));
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if control && key.code == KeyCode::Char('c') {
        crate::platform::signals::press_ctrl_c();
        key.code = KeyCode::Null;
        return Some(key);
    }
    (control == alt).then_some(key)
}

/// A console whose usual mode, for lines, is restored on drop.
#[derive(Debug)]
pub(crate) struct SavedMode {
    pub(crate) tty: Tty,
}

impl Drop for SavedMode {
    fn drop(&mut self) {
        // The console may be gone.
        let _ = disable_raw_mode();
    }
}

/// A console in a mode that delivers single keys.
#[derive(Debug)]
pub(crate) struct Keys {
    saved: SavedMode,
    is_active: Arc<AtomicBool>,
}

impl Keys {
    /// Writes text. Discards earlier input, which cannot be an answer to it.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        discard()?;
        self.saved.tty.write(text)
    }

    fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Waits for one of the accepted keys. Returns none if the question was cancelled. Pasted text is ignored.
    pub(crate) fn read_key(&self, accepted: &[u8]) -> io::Result<Option<u8>> {
        while self.is_active() {
            let code = next_key()?.map(|key| key.code);
            let byte = match code {
                Some(KeyCode::Enter) => Some(b'\n'),
                Some(KeyCode::Char(c)) => u8::try_from(c).ok(),
                _ => None,
            };
            // Characters that arrive together are pasted.
            let mut is_alone = true;
            while code.is_some() && poll(Duration::ZERO)? {
                is_alone &= key_of(&read()?).is_none();
            }
            let answer = byte.filter(|byte| is_alone && accepted.contains(byte));
            if answer.is_some() {
                return Ok(answer);
            }
        }
        Ok(None)
    }

    /// Prompts for a line. Returns none if the question was cancelled.
    pub(crate) fn prompt(&self, question: &str) -> io::Result<Option<String>> {
        self.saved.tty.ask(question, || self.is_active())
    }
}
