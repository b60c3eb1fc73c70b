//! Standard output.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::options::Color;
use crate::outcome::Failure;
use crate::sanitize::{sanitize, sanitize_json, sanitize_styled};

/// Whether only results and errors are printed.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Applies `--quiet`.
pub(crate) fn set_quiet(is_quiet: bool) {
    IS_QUIET.store(is_quiet, Ordering::Relaxed);
}

/// Returns whether `--quiet` is set: no notes and no progress, only results and errors.
pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Standard output, buffered.
pub(crate) struct Output {
    writer: BufWriter<StdoutLock<'static>>,
    /// Whether text for people may have colors.
    pub(crate) has_color: bool,
    /// Whether standard output is a terminal.
    pub(crate) is_terminal: bool,
}

impl Output {
    pub(crate) fn new(color: Color) -> Self {
        let stdout = io::stdout();
        let has_color = match color.choice() {
            anstream::ColorChoice::Auto => {
                anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never
            }
            choice => choice != anstream::ColorChoice::Never,
        };
        Self {
            has_color,
            is_terminal: stdout.is_terminal(),
            writer: BufWriter::with_capacity(64 * 1024, stdout.lock()),
        }
    }

    /// Writes external data: unchanged, but sanitized on a terminal.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.is_terminal {
            return self.write_all(sanitize(&String::from_utf8_lossy(bytes)).as_bytes());
        }
        self.write_all(bytes)
    }

    /// Writes text of this program, with its styles.
    pub(crate) fn text(&mut self, text: fmt::Arguments<'_>) -> Result<(), Failure> {
        if self.is_terminal {
            return self.write_all(sanitize_styled(&text.to_string()).as_bytes());
        }
        self.writer
            .write_fmt(text)
            .map_err(|error| Failure::output(&error))
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        if self.is_terminal {
            let line = serde_json::to_string(value);
            let line = line.map_err(|error| Failure::output(&error.into()))?;
            self.write_all(sanitize_json(&line).as_bytes())?;
        } else {
            serde_json::to_writer(&mut self.writer, value)
                .map_err(|error| Failure::output(&error.into()))?;
        }
        self.write_all(b"\n")
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.writer
            .write_all(bytes)
            .map_err(|error| Failure::output(&error))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(|error| Failure::output(&error))
    }
}

/// Writes to standard error. Write errors are ignored, because they cannot be reported anywhere else.
pub(crate) fn write_stderr(text: fmt::Arguments<'_>) {
    let _ = anstream::stderr().write_all(sanitize_styled(&text.to_string()).as_bytes());
}

/// Standard output for JSON lines, unbuffered.
pub(crate) struct JsonOutput {
    is_terminal: bool,
}

impl JsonOutput {
    pub(crate) fn new() -> Self {
        Self {
            is_terminal: io::stdout().is_terminal(),
        }
    }
}

impl Write for JsonOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_terminal {
            let text = String::from_utf8_lossy(bytes);
            io::stdout().write_all(sanitize_json(&text).as_bytes())?;
            return Ok(bytes.len());
        }
        io::stdout().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}
