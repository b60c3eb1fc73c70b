//! `plaincall extract`: the calls of many texts, as a table.

mod file;
mod line;
mod summary;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use plaincall_reply::extract::Extractor;

use crate::commands::extract::file::OutputFile;
use crate::commands::extract::line::{Line, write_row};
use crate::commands::extract::summary::Summary;
use crate::options::{ReplyDialectOption, ToolsOption};
use crate::status::{Failure, Outcome, Status, print_note};
use crate::text::input::{Input, stop_at_end};

/// Extract the calls of many texts to a table.
///
/// Read JSON Lines, and write one JSON object for each line, in order. A line is a string, or an object with the text as
/// `text`; its other keys are copied to the output. Three keys are added: `content` (the text outside calls and
/// reasoning), `calls`, and `error` (why the line has no result, or null). They replace keys with these names.
///
/// Each text is parsed as `run` parses a reply: `<think>` at its beginning starts reasoning.
///
/// Each call has `index`, `name`, `id`, `dependencies`, `arguments` (the text of a JSON object, or null if they are
/// invalid), `syntax`, `termination`, `may_run`, `error` (why it may not run, or null), `codes` (of its diagnostics),
/// `start` and `end` (byte offsets). With `--tools`, validate each call against its tool definition.
///
/// An invalid line never stops the job. The memory used depends on the longest line. The output file is replaced when it is
/// complete. For Parquet and other tables, use the Python package (docs/python-data.md).
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

    /// Treat the texts as complete: a block call at the end of one may run without an end marker.
    #[arg(long)]
    pub(crate) complete: bool,

    #[command(flatten)]
    pub(crate) tools: ToolsOption,

    #[command(flatten)]
    pub(crate) dialect: ReplyDialectOption,
}

pub(crate) fn extract(options: &ExtractOptions) -> Outcome {
    for path in [&options.input, &options.to] {
        if path.extension().is_some_and(|end| end == "parquet") {
            let message =
                "Parquet is not supported; use `table` of the Python package (docs/python-data.md)";
            return Err(Failure::Usage(format!("{}: {message}", path.display())));
        }
    }
    let dialect = options.dialect.dialect.of_reply()?;
    let texts = std::slice::from_ref(&options.input);
    let (tools, unclosed) = options.tools.load(Some(texts))?;
    let stop = stop_at_end(options.complete, false);
    let extractor = Extractor::new(&dialect, unclosed, tools.map(Arc::new), stop)?;
    let summary = extract_lines(options, &extractor)?;
    summary.clear_progress();
    print_note(&summary);
    Ok(if summary.has_invalid_rows() {
        Status::Failed
    } else {
        Status::Success
    })
}

fn extract_lines(options: &ExtractOptions, extractor: &Extractor) -> Result<Summary, Failure> {
    let mut lines = Input::open(&options.input)?.into_lines();
    let mut file = OutputFile::create(&options.to)?;
    let mut summary = Summary::new();
    let mut bytes = Vec::new();
    while lines.next_line(&mut bytes)? {
        let line = Line::parse(&bytes);
        let row = line.text.as_ref().map(|text| extractor.row(text));
        let number = summary.add(row.as_ref().ok(), bytes.len());
        let row = row.map_err(|message| format!("line {number}: {message}"));
        file.write(|out| write_row(out, &line.fields, row.as_ref()))?;
        // Asking for the time takes longer than a short line.
        if number.is_multiple_of(64) {
            summary.show_progress();
        }
    }
    file.finish()?;
    Ok(summary)
}
