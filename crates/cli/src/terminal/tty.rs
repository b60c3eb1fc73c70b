//! The terminal: its size, and keys and lines from it.

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

/// How long a line may be, in bytes.
const LONGEST_LINE: usize = 4096;

/// The longest delay until a cancelled question releases the terminal.
const STEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Size {
    /// The size of the terminal that the standard output is.
    pub(crate) fn of_standard_output() -> Self {
        Self::of(io::stdout())
    }

    /// The size of the terminal that the standard error is.
    pub(crate) fn of_standard_error() -> Self {
        Self::of(io::stderr())
    }

    fn of(terminal: impl AsFd) -> Self {
        let size = tcgetwinsize(terminal).ok();
        let size = size.map(|size| (size.ws_col.into(), size.ws_row.into()));
        // For terminals that do not say.
        let (columns, rows) = size.filter(|(x, y)| *x > 0 && *y > 0).unwrap_or((80, 24));
        Self { columns, rows }
    }
}

/// The controlling terminal of the process, independent of its standard input and output.
#[derive(Debug)]
pub(crate) struct Tty {
    file: File,
}

impl Tty {
    /// Opens it.
    ///
    /// # Errors
    /// There is none, or it belongs to another process now: who runs in the background cannot ask.
    pub(crate) fn open() -> Result<Self, &'static str> {
        let file = File::options().read(true).write(true).open("/dev/tty");
        let file = file.map_err(|_| "no terminal is available")?;
        match tcgetpgrp(&file) {
            Ok(group) if group == getpgrp() => Ok(Self { file }),
            _ => Err("the command runs in the background"),
        }
    }

    pub(crate) fn size(&self) -> Size {
        Size::of(&self.file)
    }

    /// Writes a text for the person who sits there.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        (&self.file).write_all(text.as_bytes())
    }

    /// Asks for a line. What has been typed before is thrown away: it cannot be the answer to a question that was not there
    /// yet. It waits for as long as it takes, so no async code calls it.
    pub(crate) fn line(&self, question: &str) -> io::Result<String> {
        tcflush(&self.file, QueueSelector::IFlush)?;
        self.write(question)?;
        self.read_line()
    }

    /// A terminal gives one line at a time.
    fn read_line(&self) -> io::Result<String> {
        let mut bytes = [0; LONGEST_LINE];
        let count = loop {
            match (&self.file).read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let line = bytes.get(..count).unwrap_or_default();
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    /// Remembers how the terminal is.
    pub(crate) fn kept(self) -> io::Result<Kept> {
        let before = tcgetattr(&self.file)?;
        Ok(Kept { tty: self, before })
    }

    /// Begins to read keys one by one, without showing them.
    pub(crate) fn into_keys(self, is_wanted: Arc<AtomicBool>) -> io::Result<Keys> {
        let kept = self.kept()?;
        let mut modes = kept.before.clone();
        // Ctrl-C and its like stay what they are.
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        // A read returns after a tenth of a second without a key, so that a cancelled one ends.
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(&kept.tty.file, OptionalActions::Now, &modes)?;
        Ok(Keys { kept, is_wanted })
    }
}

/// A terminal and how it was. Dropping it gives the terminal back as it was.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) tty: Tty,
    before: Termios,
}

impl Drop for Kept {
    fn drop(&mut self) {
        // A terminal that is gone needs no order.
        let _ = tcsetattr(&self.tty.file, OptionalActions::Now, &self.before);
    }
}

#[derive(Debug)]
pub(crate) struct Keys {
    kept: Kept,
    is_wanted: Arc<AtomicBool>,
}

impl Keys {
    /// Writes a text. What has been typed before cannot be the answer to it.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        tcflush(&self.kept.tty.file, QueueSelector::IFlush)?;
        self.kept.tty.write(text)
    }

    fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Waits for one of these keys; `None` if the question was cancelled.
    ///
    /// What comes with other characters at the same time, as arrow keys and pasted text do, is no such key.
    pub(crate) fn wait_for(&self, wanted: &[u8]) -> io::Result<Option<u8>> {
        let mut bytes = [0; 64];
        while self.is_wanted() {
            match (&self.kept.tty.file).read(&mut bytes) {
                Ok(1) if wanted.contains(&bytes[0]) => return Ok(Some(bytes[0])),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Asks for a line, which the terminal itself shows and edits; `None` if the question was cancelled. No keys can be
    /// waited for after that.
    pub(crate) fn line(&self, question: &str) -> io::Result<Option<String>> {
        let tty = &self.kept.tty;
        let mut modes = self.kept.before.clone();
        modes.local_modes |= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHOE;
        tcsetattr(&tty.file, OptionalActions::Now, &modes)?;
        self.write(question)?;
        while self.is_wanted() {
            let mut readable = [PollFd::new(&tty.file, PollFlags::IN)];
            match poll(&mut readable, Some(&STEP)) {
                Ok(1..) => return tty.read_line().map(Some),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Half a line is no answer to what is asked next.
        tcflush(&tty.file, QueueSelector::IFlush)?;
        Ok(None)
    }
}
