//! Where rendered text goes.

use serde::Serialize;

use crate::output::Output;
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

    /// A piece of text for the model, and what it is called in the table.
    pub(super) fn piece(&mut self, label: &str, text: &[u8]) -> Result<(), Failure> {
        match self.sizes {
            Some(sizes) => {
                sizes.add(label, text);
                Ok(())
            }
            None => self.output.bytes(text),
        }
    }

    /// A line for the reader, which is no part of what the model is told.
    pub(super) fn heading(&mut self, text: &str) -> Result<(), Failure> {
        match self.sizes {
            Some(_) => Ok(()),
            None => self.output.text(format_args!("--- {text}\n")),
        }
    }

    /// A value on a line of its own, and the text in it that counts.
    pub(super) fn json_line(
        &mut self,
        label: &str,
        value: &impl Serialize,
        text: &str,
    ) -> Result<(), Failure> {
        match self.sizes {
            Some(sizes) => {
                sizes.add(label, text.as_bytes());
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
    label: String,
    characters: usize,
    bytes: usize,
}

impl Row {
    fn new(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            characters: 0,
            bytes: 0,
        }
    }
}

impl Sizes {
    /// Adds to the row of this label, which is a new one unless the last has it.
    fn add(&mut self, label: &str, text: &[u8]) {
        if self.rows.last().is_none_or(|row| row.label != label) {
            self.rows.push(Row::new(label));
        }
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
        let lengths = self.rows.iter().map(|row| row.label.chars().count());
        let width = lengths.max().unwrap_or(0);
        output.text(format_args!("{:width$}  characters  bytes\n", ""))?;
        for Row {
            label,
            characters,
            bytes,
        } in &self.rows
        {
            output.text(format_args!(
                "{label:width$}  {characters:>10}  {bytes:>5}\n"
            ))?;
        }
        Ok(())
    }
}
