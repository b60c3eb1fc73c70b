//! Error rates of extracted calls.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatchReader};
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::lock::released;
use crate::table::lists::{TextLists, items, list_column, structs};
use crate::table::{check_column, column, reader, schema_error};

#[derive(Default)]
struct Rates {
    rows: usize,
    failed_rows: usize,
    calls: usize,
    may_run: usize,
    codes: BTreeMap<String, usize>,
}

impl Rates {
    fn of(reader: Box<dyn RecordBatchReader + Send>, name: &str) -> Result<Self, ArrowError> {
        check_column(&reader.schema(), name, "calls")?;
        let mut rates = Self::default();
        for batch in reader {
            let batch = batch?;
            let lists = list_column(name, column(&batch, name)?)?;
            rates.rows += lists.len();
            rates.failed_rows += lists.null_count();
            if lists.null_count() == lists.len() {
                continue;
            }
            let calls = structs(name, &lists)?;
            let may_run = calls.column_by_name("may_run");
            let may_run = may_run.and_then(|may_run| may_run.as_boolean_opt());
            let may_run = may_run.ok_or_else(|| {
                ArrowError::SchemaError(format!(
                    "the calls of the column `{name}` must have the field `may_run`"
                ))
            })?;
            let codes = TextLists::new(calls, "codes")?;
            for call in (0..lists.len())
                .filter_map(|row| items(&lists, row))
                .flatten()
            {
                rates.calls += 1;
                rates.may_run += usize::from(may_run.is_valid(call) && may_run.value(call));
                for code in codes.iter().flat_map(|codes| codes.of(call)) {
                    if let Some(count) = rates.codes.get_mut(code) {
                        *count += 1;
                    } else {
                        rates.codes.insert(code.to_owned(), 1);
                    }
                }
            }
        }
        Ok(rates)
    }
}

/// Counts the rows and calls of a table. The Python function `error_rates` calls it.
#[pyfunction]
pub(crate) fn error_rates<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    calls: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let reader = reader(data)?;
    let rates = released(py, usize::MAX, || Rates::of(reader, calls)).map_err(schema_error)?;
    let counts = PyDict::new(py);
    counts.set_item("rows", rates.rows)?;
    counts.set_item("failed_rows", rates.failed_rows)?;
    counts.set_item("calls", rates.calls)?;
    counts.set_item("may_run", rates.may_run)?;
    counts.set_item("codes", rates.codes)?;
    Ok(counts)
}
