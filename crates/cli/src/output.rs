//! Standard output.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};

use serde::Serialize;

use crate::arguments::Color;
use crate::status::Failure;

/// Standard output, buffered.
pub(crate) struct Output {
    writer: BufWriter<StdoutLock<'static>>,
    /// Whether what is written for people may have colours.
    pub(crate) has_color: bool,
    /// Whether somebody may be watching.
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

    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.writer
            .write_all(bytes)
            .map_err(|error| Failure::output(&error))
    }

    /// Writes text.
    pub(crate) fn text(&mut self, text: fmt::Arguments<'_>) -> Result<(), Failure> {
        self.writer
            .write_fmt(text)
            .map_err(|error| Failure::output(&error))
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.writer, value)
            .map_err(|error| Failure::output(&error.into()))?;
        self.bytes(b"\n")
    }

    /// Hands on what has been written.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(|error| Failure::output(&error))
    }
}
