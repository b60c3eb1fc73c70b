//! Tables in, tables out: Arrow data from any library, without copies of the columns that stay.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use plaincall_reply::{Unclosed, extract::Extractor};
use plaincall_table::{ColumnError, Columns, Extract, Made, Rates, Render};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::arrow::batches;
use crate::dialect::Dialect;
use crate::error;
use crate::input::dialect_of;
use crate::lock::released;
use crate::nulls::WithNulls;
use crate::settings::stop_from;
use crate::toolbox::ToolSet;

/// After so many rows of a batch, a signal such as Ctrl-C can stop the counting.
const COUNTED: usize = 1 << 16;

/// A table that is made while it is read, in batches of at most 8,192 rows. It implements Arrow's `PyCapsule` interface
/// (`__arrow_c_stream__`).
///
/// Each time it is read, the input is read again, one batch after another.
#[pyclass(frozen, module = "plaincall")]
pub(crate) struct Table {
    data: Py<PyAny>,
    columns: Arc<dyn Columns>,
    /// The argument that names the column it reads.
    argument: &'static str,
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let made = Made::new(reader(self.data.bind(py))?, Arc::clone(&self.columns));
        let made = made.map_err(|error| column_error(&error, self.argument))?;
        // Other libraries read with the global interpreter lock or without it, and from any thread.
        let made = made.around(|bytes, work| {
            if Python::try_attach(|py| released(py, bytes, &mut *work)).is_none() {
                work();
            }
        });
        let made = made.with_cancel_check(not_interrupted);
        let batches = Batches {
            schema: made.schema(),
            made: Some(made),
        };
        // The library that reads converts the columns if it wants others.
        drop(requested_schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        let fields = self.columns.fields();
        let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        format!("Table(… {})", names.join(", "))
    }
}

/// The batches of a table for C code, which no panic may reach.
struct Batches {
    schema: SchemaRef,
    /// `None` after an error.
    made: Option<Made>,
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let made = self.made.as_mut()?;
        let next = caught(|| made.next().transpose()).and_then(|next| next);
        if next.is_err() {
            self.made = None;
        }
        next.transpose()
    }
}

/// Returns an error if a signal, such as Ctrl-C, stops the work.
///
/// The library that reads gets a text only, so its exception is another one. Python raises that of the signal's handler at its next
/// step: the next turn of a loop, or the next call of a function of Python. A native function that is called before it, such as
/// `time.sleep`, ends first.
fn not_interrupted() -> Result<(), ArrowError> {
    let stopped = Python::try_attach(|py| {
        let stopped = py.check_signals().err()?;
        // C ends a text at this byte.
        let text = stopped.to_string().replace('\0', "\u{fffd}");
        let raise_later = |exception: PyErr| {
            let raiser = signals(py)?.call_method1("raiser", (exception,))?;
            // It is the last step: any other would raise the exception.
            raiser.call0()
        };
        // A second signal can end the first attempt.
        match raise_later(stopped).or_else(raise_later) {
            Ok(_) => Some(text),
            Err(error) => Some(error.to_string()),
        }
    });
    match stopped.flatten() {
        Some(text) => Err(ArrowError::CDataInterface(format!("stopped by {text}"))),
        None => Ok(()),
    }
}

/// Returns an error instead of a panic. Arrow has no types in its batches: one that does not match the schema of its table is
/// found when it is read.
fn caught<T>(read: impl FnOnce() -> T) -> Result<T, ArrowError> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| {
        let reason = "a batch cannot be read; does it match the schema of its table?";
        ArrowError::CDataInterface(reason.to_owned())
    })
}

/// Returns a reader of a table of another library.
fn reader(data: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let reader = caught(|| batches(data)).map_err(error::value)??;
    let Some(typed) = data.getattr_opt("_typed")? else {
        return Ok(reader);
    };
    let schema = batches(&typed)?.schema();
    Ok(Box::new(WithNulls { reader, schema }))
}

/// Reads the texts of a column, and adds their calls. The Python function `table` calls it.
#[pyfunction]
pub(crate) fn extract_table(
    data: Py<PyAny>,
    column: String,
    tools: Option<&ToolSet>,
    dialect: Option<&Bound<'_, PyAny>>,
    stop: Option<&Bound<'_, PyAny>>,
    tool_calls: bool,
) -> PyResult<Table> {
    let stop = stop_from(stop)?;
    let extractor = if let Some(tools) = tools {
        tools.extractor(stop)
    } else {
        let dialect = Dialect::or_auto(dialect_of(dialect)?);
        Extractor::new(&dialect.inner, Unclosed::Reject, None, stop)
    };
    let extract = Extract::new(column, extractor.map_err(error::dialect)?, tool_calls);
    Ok(Table {
        data,
        columns: Arc::new(extract),
        argument: "column",
    })
}

/// Writes the calls of a column as text. The Python function `render_many` calls it.
#[pyfunction]
pub(crate) fn render_table(
    data: Py<PyAny>,
    calls: String,
    content: String,
    tools: Option<&ToolSet>,
    dialect: Option<&Bound<'_, PyAny>>,
) -> PyResult<Table> {
    let own = Dialect::or_auto(dialect_of(dialect)?);
    let render = match tools {
        Some(tools) => Render::new(calls, content, tools.dialect.clone(), Some(&tools.tools)),
        None => Render::new(calls, content, own.inner.clone(), None),
    };
    Ok(Table {
        data,
        columns: Arc::new(render.map_err(error::dialect)?),
        argument: "calls",
    })
}

/// Counts the rows and calls of a table. The Python function `error_rates` calls it.
#[pyfunction]
pub(crate) fn error_rates<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    calls: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let mut reader = reader(data)?;
    let rates = Rates::new(&reader.schema(), calls);
    let mut rates = rates.map_err(|error| column_error(&error, "calls"))?;
    while let Some(batch) = stoppable(py, || reader.next().transpose())? {
        let (mut at, rows) = (0, batch.num_rows());
        // Also a batch without rows shows whether it has calls.
        while at == 0 || at < rows {
            stoppable(py, || rates.add(&batch.slice(at, COUNTED.min(rows - at))))?;
            at += COUNTED;
        }
    }
    let made = rates.counts;
    let counts = PyDict::new(py);
    counts.set_item("rows", made.rows)?;
    counts.set_item("failed_rows", made.failed_rows)?;
    counts.set_item("calls", made.calls)?;
    counts.set_item("may_run", made.may_run)?;
    counts.set_item("codes", made.codes)?;
    Ok(counts)
}

/// Returns the module `plaincall._signals`.
fn signals(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("plaincall._signals")
}

/// Does a part of the work without the lock. The exception of a signal's handler is raised after it, also if it has stopped the
/// reading of another table.
fn stoppable<T: Send>(
    py: Python<'_>,
    part: impl FnOnce() -> Result<T, ArrowError> + Send,
) -> PyResult<T> {
    let done = released(py, usize::MAX, || caught(part).and_then(|done| done));
    signals(py)?.call_method0("next_step")?;
    done.map_err(stream_error)
}

/// An error about the columns of a table, one of which this argument names.
fn column_error(error: &ColumnError, argument: &str) -> PyErr {
    error::value(format!(
        "{error}; name a column of the table with `{argument}`"
    ))
}

/// An error without the words that Arrow adds.
fn stream_error(error: ArrowError) -> PyErr {
    match error {
        ArrowError::SchemaError(message) => error::value(message),
        other => error::value(other),
    }
}
