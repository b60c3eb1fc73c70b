//! Parquet files.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatchReader as _;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use plaincall_reply::extract::Extractor;
use plaincall_table::{Extract, Made, Rates};

use crate::commands::extract::ExtractOptions;
use crate::commands::extract::file::OutputFile;
use crate::commands::extract::summary::Summary;
use crate::status::Failure;
use crate::text::input::unreadable;

/// The rows that are read at once.
const BATCH_ROWS: usize = 1024;
/// A row group is written when it has this many bytes.
const GROUP_BYTES: usize = 64 << 20;

pub(super) fn extract_parquet(
    options: &ExtractOptions,
    extractor: Extractor,
) -> Result<Summary, Failure> {
    let input = options.input.display().to_string();
    let broken = |error: &dyn std::error::Error| {
        Failure::Runtime(format!("{input} is not a readable Parquet file: {error}"))
    };
    let file = open(&options.input).map_err(|error| unreadable(&input, &error))?;
    let size = file.metadata().map_or(0, |file| file.len());
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build())
        .map_err(|error| broken(&error))?;
    let extract = Arc::new(Extract::new(&options.column, extractor, false));
    let made = Made::new(Box::new(reader), extract).map_err(|error| {
        Failure::Usage(format!(
            "{input}: {error}; name another column with `--column`"
        ))
    })?;
    let mut rates = Rates::new(&made.schema(), "calls").map_err(|error| broken(&error))?;
    let mut file = OutputFile::create(&options.to)?;
    let unwritable = |error| {
        let path = options.to.display();
        Failure::Runtime(format!("cannot write {path}: {error}"))
    };
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let schema = made.schema();
    let mut writer = ArrowWriter::try_new(file.writer(), schema, Some(properties.build()))
        .map_err(unwritable)?;
    let mut summary = Summary::new("row");
    for batch in made {
        let batch = batch.map_err(|error| broken(&error))?;
        rates.add(&batch).map_err(|error| broken(&error))?;
        writer.write(&batch).map_err(unwritable)?;
        if writer.in_progress_size() >= GROUP_BYTES {
            writer.flush().map_err(unwritable)?;
        }
        summary.set(&rates, usize::try_from(size).unwrap_or_default());
        summary.show_progress();
    }
    writer.close().map_err(unwritable)?;
    file.finish()?;
    Ok(summary)
}

fn open(path: &Path) -> std::io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    Ok(file)
}
