//! A table that is made while it is read.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, FieldRef, Schema, SchemaRef};

use crate::column::ColumnError;
use crate::{BATCH_ROWS, CHECKED_BYTES};

/// Makes columns from the columns of a table.
pub trait Columns: Send + Sync {
    /// Returns the columns that it makes. They replace columns with their names.
    fn fields(&self) -> Vec<FieldRef>;

    /// Checks that the table has the columns that it reads.
    ///
    /// # Errors
    ///
    /// It names the columns of the table.
    fn check(&self, schema: &Schema) -> Result<(), ColumnError>;

    /// Makes the columns of the first rows, and returns them with the number of rows: at least one.
    ///
    /// # Errors
    ///
    /// If the batch does not have the columns that [`check`](Self::check) found. Cancelled work may return anything.
    fn make(
        &self,
        batch: &RecordBatch,
        cancel: &mut CancelCheck<'_>,
    ) -> Result<(Vec<ArrayRef>, usize), ArrowError>;
}

/// Checks for cancellation during long work.
pub struct CancelCheck<'c> {
    check: &'c Check,
    /// The bytes since the last check.
    bytes: usize,
    /// The error of the check.
    error: Option<ArrowError>,
}

impl CancelCheck<'_> {
    /// Counts bytes that are read or written next, and checks after every 512 KiB.
    ///
    /// # Errors
    ///
    /// The work is cancelled, from now on.
    pub fn check(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        if self.error.is_none() && self.bytes >= CHECKED_BYTES {
            self.bytes = 0;
            self.error = (self.check)().err();
        }
        match &self.error {
            Some(error) => Err(error.to_string()),
            None => Ok(()),
        }
    }
}

/// Returns an error if the work is cancelled.
type Check = dyn Fn() -> Result<(), ArrowError> + Send + Sync;

/// Runs the work on one batch, which has this many bytes.
type Around = Box<dyn Fn(usize, &mut (dyn FnMut() + Send)) + Send>;

/// A table with the columns of another one, and those that [`Columns`] makes. It is made while it is read, in batches of at most
/// 8,192 rows and about 1 MiB of results, also from larger batches of the input.
pub struct Made {
    input: Box<dyn RecordBatchReader + Send>,
    columns: Arc<dyn Columns>,
    around: Around,
    check: Box<Check>,
    /// The columns of the input that stay.
    kept: Vec<usize>,
    schema: SchemaRef,
    /// The rows of a batch that are not done.
    rest: Option<RecordBatch>,
}

impl Made {
    /// Creates the table.
    ///
    /// # Errors
    ///
    /// If the input does not have the columns that are read.
    pub fn new(
        input: Box<dyn RecordBatchReader + Send>,
        columns: Arc<dyn Columns>,
    ) -> Result<Self, ColumnError> {
        let of_input = input.schema();
        columns.check(&of_input)?;
        let made = columns.fields();
        let is_kept = |field: &FieldRef| made.iter().all(|made| made.name() != field.name());
        let fields = of_input.fields().iter().enumerate();
        let (kept, mut fields): (Vec<usize>, Vec<FieldRef>) = fields
            .filter(|(_, field)| is_kept(field))
            .map(|(at, field)| (at, Arc::clone(field)))
            .unzip();
        fields.extend(made);
        Ok(Self {
            input,
            columns,
            around: Box::new(|_, work| work()),
            check: Box::new(|| Ok(())),
            kept,
            // With it, libraries restore what Arrow does not have, such as an index.
            schema: Arc::new(Schema::new_with_metadata(
                fields,
                of_input.metadata().clone(),
            )),
            rest: None,
        })
    }

    /// Sets a function that runs the work on each batch, for example without a lock. It gets the number of bytes of the batch,
    /// and must call the work once.
    #[must_use]
    pub fn around(
        mut self,
        around: impl Fn(usize, &mut (dyn FnMut() + Send)) + Send + 'static,
    ) -> Self {
        self.around = Box::new(around);
        self
    }

    /// Sets a function that is called before each batch, and during long work. Its error ends the table: read no further.
    #[must_use]
    pub fn with_cancel_check(
        mut self,
        check: impl Fn() -> Result<(), ArrowError> + Send + Sync + 'static,
    ) -> Self {
        self.check = Box::new(check);
        self
    }

    fn make(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let part = batch.slice(0, batch.num_rows().min(BATCH_ROWS));
        let mut made = None;
        let mut cancel = CancelCheck {
            check: &*self.check,
            bytes: 0,
            error: None,
        };
        (self.around)(part.get_array_memory_size(), &mut || {
            made = Some(self.columns.make(&part, &mut cancel));
        });
        if let Some(cancelled) = cancel.error {
            return Err(cancelled);
        }
        let not_run = || ArrowError::ComputeError("the batch was not processed".to_owned());
        let (made, rows) = made.unwrap_or_else(|| Err(not_run()))?;
        let kept = self.kept.iter().map(|&at| part.column(at).slice(0, rows));
        let columns = kept.chain(made).collect();
        let done = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        Ok(done)
    }
}

impl Iterator for Made {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(cancelled) = (self.check)() {
            return Some(Err(cancelled));
        }
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => loop {
                match self.input.next()? {
                    Ok(batch) if batch.num_rows() == 0 => {}
                    Ok(batch) => break batch,
                    Err(error) => return Some(Err(error)),
                }
            },
        };
        Some(self.make(&batch))
    }
}

impl RecordBatchReader for Made {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
