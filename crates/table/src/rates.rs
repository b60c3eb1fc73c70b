//! Error rates of extracted calls.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::{ArrowError, Schema};
use plaincall_reply::extract::RowCounts;

use crate::column::{ColumnError, check_column, column};
use crate::lists::{TextLists, items, list_column, structs};

/// Counts of the rows and calls of a table that [`Extract`](crate::Extract) made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rates {
    /// The name of the column of calls.
    column: String,
    /// The counts.
    pub counts: RowCounts,
}

impl Rates {
    /// Counts the calls of a column, in batches of this schema.
    ///
    /// # Errors
    ///
    /// If there is no such column.
    pub fn new(schema: &Schema, column: impl Into<String>) -> Result<Self, ColumnError> {
        let column = column.into();
        check_column(schema, &column)?;
        Ok(Self {
            column,
            counts: RowCounts::default(),
        })
    }

    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// If the column does not have calls.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let name = &self.column;
        let lists = list_column(name, column(batch, name)?)?;
        self.counts.rows += lists.len();
        self.counts.failed_rows += lists.null_count();
        if lists.null_count() == lists.len() {
            return Ok(());
        }
        let calls = structs(name, &lists)?;
        let may_run = calls.column_by_name("may_run");
        let may_run = may_run.and_then(|may_run| may_run.as_boolean_opt());
        let may_run = may_run.ok_or_else(|| {
            ArrowError::SchemaError(format!(
                "the calls of the column `{name}` have no field `may_run`; count the column `calls` of the same table"
            ))
        })?;
        let codes = TextLists::new(calls, "codes")?;
        for call in (0..lists.len())
            .filter_map(|row| items(&lists, row))
            .flatten()
        {
            let may_run = may_run.is_valid(call) && may_run.value(call);
            let codes = codes.iter().flat_map(|codes| codes.of(call));
            self.counts.add_call(may_run, codes);
        }
        Ok(())
    }
}
