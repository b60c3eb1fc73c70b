//! The controlling terminal.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetpgrp, tcgetwinsize, tcsetattr,
};

use crate::terminal::tty::Size;

/// The maximum length of a line, in bytes.
const MAX_LINE: usize = 4096;

/// The longest delay until a cancelled question releases the terminal.
const POLL_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Returns the columns and rows of the terminal on standard output.
pub(crate) fn size_of_output() -> Option<(usize, usize)> {
    size_of(io::stdout())
}

/// Returns the columns and rows of the terminal on standard error.
pub(crate) fn size_of_errors() -> Option<(usize, usize)> {
    size_of(io::stderr())
}

fn size_of(terminal: impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(terminal).ok()?;
    Some((size.ws_col.into(), size.ws_row.into()))
}

/// The controlling terminal of the process, independent of its standard input and output.
#[derive(Debug)]
pub(crate) struct Tty {
    file: File,
}

impl Tty {
    /// Opens the terminal. Fails if there is none, or if the process runs in the background.
    pub(crate) fn open() -> Result<Self, &'static str> {
        let file = File::options().read(true).write(true).open("/dev/tty");
        let file = file.map_err(|_| "no terminal is available")?;
        match tcgetpgrp(&file) {
            Ok(group) if group == getpgrp() => Ok(Self { file }),
            _ => Err("the command runs in the background"),
        }
    }

    pub(crate) fn size(&self) -> Size {
        Size::new(size_of(&self.file))
    }

    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        (&self.file).write_all(text.as_bytes())
    }

    /// Prompts for a line. Discards earlier input, which cannot be an answer. Blocks.
    pub(crate) fn prompt(&self, question: &str) -> io::Result<String> {
        tcflush(&self.file, QueueSelector::IFlush)?;
        self.write(question)?;
        self.read_line()
    }

    /// Reads a line from a terminal in canonical mode.
    fn read_line(&self) -> io::Result<String> {
        let mut bytes = [0; MAX_LINE];
        let count = loop {
            match (&self.file).read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let line = bytes.get(..count).unwrap_or_default();
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    /// Saves the mode of the terminal.
    pub(crate) fn save_mode(self) -> io::Result<SavedMode> {
        let original = tcgetattr(&self.file)?;
        Ok(SavedMode {
            tty: self,
            original,
        })
    }

    /// Starts reading single keys without echo. Reading stops when `is_active` is false.
    pub(crate) fn into_keys(self, is_active: Arc<AtomicBool>) -> io::Result<Keys> {
        let saved = self.save_mode()?;
        let mut modes = saved.original.clone();
        // Ctrl-C and other signal keys still work.
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        // A read returns after 0.1 seconds, so that cancellation is noticed.
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(&saved.tty.file, OptionalActions::Now, &modes)?;
        Ok(Keys { saved, is_active })
    }
}

/// A terminal with its original mode, which is restored on drop.
#[derive(Debug)]
pub(crate) struct SavedMode {
    pub(crate) tty: Tty,
    original: Termios,
}

impl Drop for SavedMode {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = tcsetattr(&self.tty.file, OptionalActions::Now, &self.original);
    }
}

/// A terminal in a mode that delivers single keys.
#[derive(Debug)]
pub(crate) struct Keys {
    saved: SavedMode,
    is_active: Arc<AtomicBool>,
}

impl Keys {
    /// Writes text. Discards earlier input, which cannot be an answer to it.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        tcflush(&self.saved.tty.file, QueueSelector::IFlush)?;
        self.saved.tty.write(text)
    }

    fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Waits for one of the accepted keys. Returns none if the question was cancelled.
    ///
    /// Characters that arrive together, such as arrow keys and pasted text, are ignored.
    pub(crate) fn read_key(&self, accepted: &[u8]) -> io::Result<Option<u8>> {
        let mut bytes = [0; 64];
        while self.is_active() {
            match (&self.saved.tty.file).read(&mut bytes) {
                Ok(1) if accepted.contains(&bytes[0]) => return Ok(Some(bytes[0])),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Prompts for a line, which the terminal echoes and edits. Returns none if the question was cancelled. No keys can
    /// be read after that.
    pub(crate) fn prompt(&self, question: &str) -> io::Result<Option<String>> {
        let tty = &self.saved.tty;
        let mut modes = self.saved.original.clone();
        modes.local_modes |= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHOE;
        tcsetattr(&tty.file, OptionalActions::Now, &modes)?;
        self.write(question)?;
        while self.is_active() {
            let mut readable = [PollFd::new(&tty.file, PollFlags::IN)];
            match poll(&mut readable, Some(&POLL_INTERVAL)) {
                Ok(1..) => return tty.read_line().map(Some),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // An incomplete line must not answer the next question.
        tcflush(&tty.file, QueueSelector::IFlush)?;
        Ok(None)
    }
}
