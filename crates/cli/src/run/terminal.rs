//! The terminal: its size, and single keys from it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
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
        Self::of(io::stdout())
    }

    /// The size of the terminal that the standard error is.
    pub(crate) fn of_standard_error() -> Self {
        Self::of(io::stderr())
    }

    fn of(terminal: impl AsFd) -> Self {
        match tcgetwinsize(terminal) {
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

    /// How large it is.
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
        let mut bytes = [0; LONGEST_LINE];
        // A terminal gives one line at a time.
        let count = loop {
            match (&self.file).read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let line = bytes.get(..count).unwrap_or_default();
        Ok(String::from_utf8_lossy(line).into_owned())
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

/// What was typed on a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// It was ended with Enter.
    Line(String),
    /// It was left with Escape.
    Nothing,
    /// Nobody wants it any more.
    Unwanted,
}

/// How long a line may be, in bytes.
const LONGEST_LINE: usize = 4096;

/// A line that is being typed.
#[derive(Debug, Default)]
struct TypedLine {
    text: String,
    /// The beginning of a character of which the rest has not come.
    partial: Vec<u8>,
}

impl TypedLine {
    /// Takes bytes as they come from the terminal. Returns how the line ended, if it has.
    fn take(&mut self, bytes: &[u8]) -> Option<Typed> {
        const ESCAPE: u8 = 0x1b;
        match bytes {
            [ESCAPE] => return Some(Typed::Nothing),
            // A key that is no character, such as an arrow.
            [ESCAPE, ..] => return None,
            _ => {}
        }
        for &byte in bytes {
            match byte {
                b'\n' | b'\r' => return Some(Typed::Line(std::mem::take(&mut self.text))),
                0x7f | 0x08 => {
                    self.text.pop();
                }
                // Ctrl-U.
                0x15 => self.text.clear(),
                0x00..0x20 => {}
                _ => self.add(byte),
            }
        }
        None
    }

    fn add(&mut self, byte: u8) {
        self.partial.push(byte);
        match std::str::from_utf8(&self.partial) {
            Ok(character) => {
                if self.text.len() + character.len() <= LONGEST_LINE {
                    self.text.push_str(character);
                }
                self.partial.clear();
            }
            Err(error) if error.error_len().is_none() => {}
            Err(_) => self.partial.clear(),
        }
    }
}

impl Keys {
    /// Reads a line. `changed` hears of what stands there before and after each change.
    pub(crate) fn read_line(
        &self,
        changed: impl Fn(&str, &str) -> io::Result<()>,
    ) -> io::Result<Typed> {
        let mut line = TypedLine::default();
        let mut bytes = [0; 64];
        while self.is_wanted.load(Ordering::Relaxed) {
            let count = match (&self.terminal.file).read(&mut bytes) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let before = line.text.clone();
            if let Some(typed) = line.take(bytes.get(..count).unwrap_or_default()) {
                return Ok(typed);
            }
            if line.text != before {
                changed(&before, &line.text)?;
            }
        }
        Ok(Typed::Unwanted)
    }
}

/// A terminal that another program uses. Dropping it gives the terminal back as it was.
#[derive(Debug)]
pub(crate) struct HandedOver {
    terminal: Controlling,
    before: Termios,
}

impl Controlling {
    pub(crate) fn hand_over(self) -> io::Result<HandedOver> {
        let before = tcgetattr(&self.file)?;
        Ok(HandedOver {
            terminal: self,
            before,
        })
    }
}

impl HandedOver {
    /// The terminal, for the other program.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.terminal.file.try_clone()
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal.file, OptionalActions::Now, &self.before);
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A terminal that is gone needs no order.
        let _ = tcsetattr(&self.terminal.file, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::{Typed, TypedLine};

    #[test]
    fn typed_lines() {
        let line = |text: &str| Some(Typed::Line(text.to_owned()));
        let check = |pieces: &[&[u8]], expected: Option<Typed>| {
            let mut typed = TypedLine::default();
            let end = pieces.iter().find_map(|bytes| typed.take(bytes));
            assert_eq!(end, expected, "{pieces:?}");
        };
        check(&[b"a", b"b", b"\r"], line("ab"));
        check(&[b"pasted text\nmore"], line("pasted text"));
        check(&[b"ab\x7f\x7f\x7fc\n"], line("c"));
        check(&[b"ab\x15c\n"], line("c"));
        check(&[b"\xc3", b"\xbc\xff\n"], line("\u{fc}"));
        check(&[b"a", b"\x1b[A", b"\x01\n"], line("a"));
        check(&[b"a", b"\x1b"], Some(Typed::Nothing));
        check(&[b"a"], None);
        check(&[&[b'x'; 5000], b"\n"], line(&"x".repeat(4096)));
    }
}
