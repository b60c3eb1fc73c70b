//! `plaincall extract`: the calls of many texts, as a table.

mod file;
mod line;
mod summary;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use plaincall_call::{ReplyCheck, extract::Extractor};

use crate::commands::extract::file::OutputFile;
use crate::commands::extract::line::{Line, write_row};
use crate::commands::extract::summary::Summary;
use crate::options::{DialectOptions, SchemaOption};
use crate::status::{Outcome, Status, print_note};
use crate::text::input::{Input, stop_at_end};

/// Extract the calls of many texts to a table.
///
/// Read JSON Lines, and write one JSON object for each line, in order. A line is a string, or an object with the text as
/// `text`; its other keys are copied to the output. Three keys are added: `content` (the text outside calls and
/// reasoning), `calls`, and `error` (why the line has no result, or null). They replace keys with these names.
///
/// Each call has `index`, `name`, `id`, `dependencies`, `arguments` (the text of a JSON object, or null if they are
/// invalid), `syntax`, `termination`, `may_run`, `error` (why it may not run, or null), `codes` (of its diagnostics),
/// `start` and `end` (byte offsets). With `--schema`, validate each call against its tool definition.
///
/// An invalid line never stops the job. The memory used depends on the longest line only. The output file is replaced
/// when it is complete.
///
/// Exit status: 0 if every line has a result; 1 if a line is invalid, or a file cannot be read or written.
#[derive(Args, Debug)]
pub(crate) struct ExtractOptions {
    /// The file to read, or `-` for standard input.
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// The file to write.
    #[arg(long, value_name = "OUT")]
    pub(crate) to: PathBuf,

    /// The key of the text.
    #[arg(long, value_name = "KEY", default_value = "text")]
    pub(crate) column: String,

    /// Treat the texts as complete: a block call at the end of one may run without an end marker.
    #[arg(long)]
    pub(crate) complete: bool,

    #[command(flatten)]
    pub(crate) schema: SchemaOption,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

pub(crate) fn extract(options: &ExtractOptions) -> Outcome {
    let dialect = options.dialect.dialect()?;
    let texts = std::slice::from_ref(&options.input);
    let (tools, unclosed) = options.schema.load(Some(texts))?;
    let stop = stop_at_end(options.complete, false);
    let check = ReplyCheck::new(&dialect, unclosed)?;
    let extractor = Extractor::new(&dialect, check, tools.map(Arc::new), stop)?;
    let mut lines = Input::open(&options.input)?.into_lines();
    let mut file = OutputFile::create(&options.to)?;
    let mut summary = Summary::new();
    let mut bytes = Vec::new();
    while lines.next_line(&mut bytes)? {
        let line = Line::parse(&bytes, &options.column);
        let row = line.text.as_ref().map(|text| extractor.row(text));
        let number = summary.add(row.as_ref().ok(), bytes.len());
        let row = row.map_err(|message| format!("line {number}: {message}"));
        file.write(|out| write_row(out, &line.fields, row.as_ref()))?;
        summary.show_progress();
    }
    summary.clear_progress();
    file.finish()?;
    print_note(&summary);
    Ok(if summary.has_invalid_lines() {
        Status::Failed
    } else {
        Status::Success
    })
}
