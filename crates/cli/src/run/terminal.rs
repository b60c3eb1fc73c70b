//! The terminal: its size, and single keys from it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetpgrp, tcgetwinsize, tcsetattr,
};

/// How large a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Size {
    /// What terminals had for a long time; for those that do not say.
    const USUAL: Self = Self {
        columns: 80,
        rows: 24,
    };

    /// The size of the terminal that the standard output is.
    pub(crate) fn of_standard_output() -> Self {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Self {
                columns: size.ws_col.into(),
                rows: size.ws_row.into(),
            },
            _ => Self::USUAL,
        }
    }
}

/// The terminal that the process belongs to, whatever its standard input and output are.
#[derive(Debug)]
pub(crate) struct Controlling {
    file: File,
}

impl Controlling {
    /// Opens it.
    ///
    /// # Errors
    /// There is none, or it belongs to another process now: who runs in the background cannot ask.
    pub(crate) fn open() -> Result<Self, &'static str> {
        let file = File::options().read(true).write(true).open("/dev/tty");
        let file = file.map_err(|_| "there is no terminal to ask on")?;
        match tcgetpgrp(&file) {
            Ok(group) if group == getpgrp() => Ok(Self { file }),
            _ => Err("the command runs in the background and cannot ask on the terminal"),
        }
    }

    /// Writes a text for the person who sits there.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        (&self.file).write_all(text.as_bytes())
    }

    /// Begins to read keys one by one, without showing them. What has been typed before is thrown away: it cannot be
    /// the answer to a question that was not there yet.
    pub(crate) fn into_keys(self, is_wanted: Arc<AtomicBool>) -> io::Result<Keys> {
        let before = tcgetattr(&self.file)?;
        let mut modes = before.clone();
        // Ctrl-C and its like stay what they are.
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        // A read returns after a tenth of a second without a key, so that one that nobody waits for any more ends.
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(&self.file, OptionalActions::Now, &modes)?;
        let keys = Keys {
            terminal: self,
            before,
            is_wanted,
        };
        tcflush(&keys.terminal.file, QueueSelector::IFlush)?;
        Ok(keys)
    }
}

/// Keys from the terminal. Dropping it gives the terminal back as it was.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) terminal: Controlling,
    before: Termios,
    is_wanted: Arc<AtomicBool>,
}

impl Keys {
    /// Waits for a key that is one of these characters; `None` if nobody wants it any more.
    ///
    /// What comes with other characters at the same time, as arrow keys and pasted text do, is no such key.
    pub(crate) fn wait_for(&self, wanted: &[u8]) -> io::Result<Option<u8>> {
        let mut bytes = [0; 64];
        while self.is_wanted.load(Ordering::Relaxed) {
            match (&self.terminal.file).read(&mut bytes) {
                Ok(1) => {
                    let [key, ..] = bytes;
                    if wanted.contains(&key) {
                        return Ok(Some(key));
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A terminal that is gone needs no order.
        let _ = tcsetattr(&self.terminal.file, OptionalActions::Now, &self.before);
    }
}
