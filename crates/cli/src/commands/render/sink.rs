//! Where rendered text goes.

use anstyle::Style;
use serde::Serialize;

use crate::output::Output;
use crate::picture::line::Line;
use crate::status::Failure;

/// Standard output, or with `--stats` the table of sizes.
pub(super) struct Sink<'o> {
    output: &'o mut Output,
    sizes: &'o mut Option<Sizes>,
}

impl<'o> Sink<'o> {
    pub(super) fn new(output: &'o mut Output, sizes: &'o mut Option<Sizes>) -> Self {
        Self { output, sizes }
    }

    /// A piece of text for the model, and what it is called in the table. On a terminal it can be seen and does nothing.
    pub(super) fn piece(&mut self, label: &str, text: &[u8]) -> Result<(), Failure> {
        if let Some(sizes) = self.sizes {
            sizes.begin(label);
            sizes.count(text);
            return Ok(());
        }
        self.output.bytes(text)
    }

    /// A line for the reader, which is no part of what the model is told.
    pub(super) fn heading(&mut self, text: &str) -> Result<(), Failure> {
        if self.sizes.is_some() {
            return Ok(());
        }
        let mut line = String::new();
        Line::of(Style::new(), text).write(&mut line, false);
        self.output.text(format_args!("--- {line}\n"))
    }

    /// Ends a line for the reader, whose end is no part of what the model is told.
    pub(super) fn end_line(&mut self) -> Result<(), Failure> {
        match self.sizes {
            Some(_) => Ok(()),
            None => self.output.bytes(b"\n"),
        }
    }

    /// A value on a line of its own, the text in it that counts, and what that is called in the table.
    pub(super) fn json_piece(
        &mut self,
        label: &str,
        value: &impl Serialize,
        text: &str,
    ) -> Result<(), Failure> {
        if let Some(sizes) = self.sizes {
            sizes.begin(label);
        }
        self.json_line(value, text)
    }

    /// A value on a line of its own, and the text in it that counts as a part of the last piece.
    pub(super) fn json_line(&mut self, value: &impl Serialize, text: &str) -> Result<(), Failure> {
        match self.sizes {
            Some(sizes) => {
                sizes.count(text.as_bytes());
                Ok(())
            }
            None => self.output.json_line(value),
        }
    }

    /// Hands on what has been written.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.output.flush()
    }
}

/// The sizes of what was rendered.
#[derive(Default)]
pub(crate) struct Sizes {
    rows: Vec<Row>,
}

struct Row {
    label: Line,
    characters: usize,
    bytes: usize,
}

impl Row {
    fn new(label: &str) -> Self {
        Self {
            label: Line::of(Style::new(), label),
            characters: 0,
            bytes: 0,
        }
    }
}

impl Sizes {
    /// Begins a row.
    fn begin(&mut self, label: &str) {
        self.rows.push(Row::new(label));
    }

    /// Counts a text in the last row.
    fn count(&mut self, text: &[u8]) {
        if let Some(row) = self.rows.last_mut() {
            row.characters += String::from_utf8_lossy(text).chars().count();
            row.bytes += text.len();
        }
    }

    /// Prints a table, with the sum where there is more than one row.
    pub(super) fn print(mut self, output: &mut Output) -> Result<(), Failure> {
        if self.rows.len() != 1 {
            let mut sum = Row::new("all");
            for row in &self.rows {
                sum.characters += row.characters;
                sum.bytes += row.bytes;
            }
            self.rows.push(sum);
        }
        let width = |of: fn(&Row) -> usize| self.rows.iter().map(of).max().unwrap_or(0);
        let of_labels = width(|row| row.label.width());
        let of_characters = width(|row| row.characters.to_string().len()).max("characters".len());
        let of_bytes = width(|row| row.bytes.to_string().len()).max("bytes".len());
        output.text(format_args!(
            "{:of_labels$}  {:>of_characters$}  {:>of_bytes$}\n",
            "", "characters", "bytes"
        ))?;
        for row in &self.rows {
            let mut line = row.label.clone();
            line.pad_to(of_labels + 2);
            let numbers = format!(
                "{:>of_characters$}  {:>of_bytes$}",
                row.characters, row.bytes
            );
            line.push(Style::new(), &numbers);
            let mut text = String::new();
            line.write(&mut text, false);
            output.text(format_args!("{text}\n"))?;
        }
        Ok(())
    }
}
