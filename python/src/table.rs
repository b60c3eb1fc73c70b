//! Tables in, tables out: Arrow data from any library, without copies of the columns that stay.

mod extract;
mod lists;
mod rates;
mod render;
mod texts;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, FieldRef, Schema, SchemaRef};
use plaincall_call::{ReplyCheck, Unclosed, extract::Extractor};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PyRecordBatchReader;
use pyo3_arrow::error::PyArrowResult;
use pyo3_arrow::ffi::{ArrayIterator, to_stream_pycapsule};
use pyo3_arrow::input::AnyRecordBatch;

pub(crate) use rates::error_rates;

use crate::dialect::Dialect;
use crate::error;
use crate::lock::released;
use crate::settings::stop_from;
use crate::table::extract::Extract;
use crate::table::render::Render;
use crate::toolbox::ToolSet;

/// After this many bytes of results a batch ends.
const BATCH_BYTES: usize = 64 << 20;
/// The most bytes of results of one row: a batch of Arrow strings has at most 2 GiB.
const ROW_BYTES: usize = 1 << 30;

/// Makes columns from the columns of a table.
trait Work: Send + Sync {
    /// The columns that it makes. They replace columns with their names.
    fn fields(&self) -> Vec<FieldRef>;

    /// Checks that the table has the columns that it reads.
    fn check(&self, schema: &Schema) -> Result<(), ArrowError>;

    /// Makes the columns from the row `from` on, and returns them with the number of rows: at least one.
    fn run(&self, batch: &RecordBatch, from: usize) -> Result<(Vec<ArrayRef>, usize), ArrowError>;
}

/// A table that is made while it is read. It implements Arrow's `PyCapsule` interface (`__arrow_c_stream__`).
///
/// Each time it is read, the input is read again, one batch after another.
#[pyclass(frozen, module = "plaincall")]
pub(crate) struct Table {
    data: Py<PyAny>,
    work: Arc<dyn Work>,
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        let input = reader(self.data.bind(py))?;
        let schema = input.schema();
        self.work.check(&schema).map_err(schema_error)?;
        let stream = Stream::new(input, &schema, Arc::clone(&self.work));
        let field = arrow_schema::Field::new_struct("", stream.schema.fields().clone(), false)
            .with_metadata(stream.schema.metadata().clone());
        let arrays = stream.map(|batch| {
            let array: ArrayRef = Arc::new(arrow_array::StructArray::from(batch?));
            Ok(array)
        });
        let arrays = ArrayIterator::new(arrays, Arc::new(field));
        to_stream_pycapsule(py, Box::new(arrays), requested_schema)
    }

    fn __repr__(&self) -> String {
        let names: Vec<String> = self
            .work
            .fields()
            .iter()
            .map(|it| it.name().clone())
            .collect();
        format!("Table(… {})", names.join(", "))
    }
}

/// Returns a reader of a table of another library.
fn reader(data: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let Ok(table) = data.extract::<AnyRecordBatch>() else {
        // With the error of the stream.
        return data.extract::<PyRecordBatchReader>()?.into_reader();
    };
    table.into_reader()
}

struct Stream {
    input: Box<dyn RecordBatchReader + Send>,
    work: Arc<dyn Work>,
    /// The columns of the input that stay.
    kept: Vec<usize>,
    schema: SchemaRef,
    /// A batch, and its first row that is not done.
    rest: Option<(RecordBatch, usize)>,
}

impl Stream {
    fn new(input: Box<dyn RecordBatchReader + Send>, schema: &Schema, work: Arc<dyn Work>) -> Self {
        let made = work.fields();
        let is_kept = |field: &FieldRef| made.iter().all(|made| made.name() != field.name());
        let fields = schema.fields().iter().enumerate();
        let (kept, mut fields): (Vec<usize>, Vec<FieldRef>) = fields
            .filter(|(_, field)| is_kept(field))
            .map(|(at, field)| (at, Arc::clone(field)))
            .unzip();
        fields.extend(made);
        Self {
            input,
            work,
            kept,
            schema: Arc::new(Schema::new(fields)),
            rest: None,
        }
    }

    fn run(&mut self, batch: RecordBatch, from: usize) -> Result<RecordBatch, ArrowError> {
        let work = &*self.work;
        let run = || work.run(&batch, from);
        let bytes = batch.get_array_memory_size();
        // Other libraries read with the global interpreter lock or without it, and from any thread.
        let made = Python::try_attach(|py| released(py, bytes, run)).unwrap_or_else(run);
        let (made, rows) = made?;
        let kept = self
            .kept
            .iter()
            .map(|&at| batch.column(at).slice(from, rows));
        let columns = kept.chain(made).collect();
        let done = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        if from + rows < batch.num_rows() {
            self.rest = Some((batch, from + rows));
        }
        Ok(done)
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (batch, from) = match self.rest.take() {
            Some(rest) => rest,
            None => loop {
                match self.input.next()? {
                    Ok(batch) if batch.num_rows() == 0 => {}
                    Ok(batch) => break (batch, 0),
                    Err(error) => return Some(Err(error)),
                }
            },
        };
        Some(self.run(batch, from))
    }
}

/// Reads the texts of a column, and adds their calls. The Python function `table` calls it.
#[pyfunction]
pub(crate) fn extract_table(
    data: Py<PyAny>,
    column: String,
    tools: Option<&ToolSet>,
    dialect: Option<&Dialect>,
    stop: &str,
    tool_calls: bool,
) -> PyResult<Table> {
    let stop = stop_from(stop)?;
    let extractor = if let Some(tools) = tools {
        tools.extractor(stop)
    } else {
        let dialect = Dialect::or_auto(dialect);
        let check = ReplyCheck::new(&dialect, Unclosed::Reject).map_err(error::dialect)?;
        Extractor::new(&dialect, check, None, stop)
    };
    let work = Extract::new(column, extractor.map_err(error::dialect)?, tool_calls);
    Ok(Table {
        data,
        work: Arc::new(work),
    })
}

/// Writes the calls of a column as text. The Python function `render_many` calls it.
#[pyfunction]
pub(crate) fn render_table(
    data: Py<PyAny>,
    calls: String,
    content: String,
    tools: Option<&ToolSet>,
    dialect: Option<&Dialect>,
) -> PyResult<Table> {
    let render = match tools {
        Some(tools) => Render::new(calls, content, tools.dialect.clone(), Some(&tools.tools)),
        None => Render::new(calls, content, Dialect::or_auto(dialect), None),
    };
    let work = Arc::new(render.map_err(error::dialect)?);
    Ok(Table { data, work })
}

/// An error about the columns of a table, without the words that Arrow adds.
fn schema_error(error: ArrowError) -> PyErr {
    match error {
        ArrowError::SchemaError(message) => error::value(message),
        other => error::value(other),
    }
}

/// Returns the column with this name.
fn column<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b ArrayRef, ArrowError> {
    let found = batch.column_by_name(name);
    found.ok_or_else(|| ArrowError::SchemaError(format!("no column `{name}`")))
}

/// Returns an error that names the columns of the table if it has none with this name.
fn check_column(schema: &Schema, name: &str, option: &str) -> Result<(), ArrowError> {
    if schema.column_with_name(name).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|it| it.name().as_str())
        .collect();
    Err(ArrowError::SchemaError(format!(
        "the table has no column `{name}`; its columns are `{}`; name one of them with `{option}`",
        names.join("`, `")
    )))
}
