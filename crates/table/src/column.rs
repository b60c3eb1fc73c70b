//! The columns of a table by name.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};

/// A table does not have a column that is read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct ColumnError(String);

impl ColumnError {
    /// The column has another type.
    pub(crate) fn of_type(name: &str, data_type: &DataType, needed: &str) -> Self {
        Self(format!(
            "the column `{name}` has the type {data_type}; it must have {needed}"
        ))
    }

    fn missing(schema: &Schema, name: &str) -> Self {
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let names = names.collect::<Vec<&str>>().join("`, `");
        Self(format!(
            "the table has no column `{name}`; its columns are `{names}`"
        ))
    }
}

impl From<ColumnError> for ArrowError {
    fn from(error: ColumnError) -> Self {
        Self::SchemaError(error.0)
    }
}

pub(crate) fn column<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b ArrayRef, ColumnError> {
    let found = batch.column_by_name(name);
    found.ok_or_else(|| ColumnError::missing(&batch.schema(), name))
}

/// Returns the type of the column with this name.
pub(crate) fn check_column<'s>(
    schema: &'s Schema,
    name: &str,
) -> Result<&'s DataType, ColumnError> {
    match schema.column_with_name(name) {
        Some((_, field)) => Ok(field.data_type()),
        None => Err(ColumnError::missing(schema, name)),
    }
}
