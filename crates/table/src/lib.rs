//! The calls of many texts as tables in [Arrow](https://arrow.apache.org)'s format: batches in, batches out. The columns that
//! stay are not copied.
//!
//! [`Extract`] reads the texts of a column and adds their calls, [`Render`] is the inverse, and [`Rates`] counts. The Python
//! package and `plaincall extract` use them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader as _, StringArray};
//! use arrow_schema::{DataType, Field, Schema};
//! use plaincall_reply::{Stop, Unclosed};
//! use plaincall_reply::extract::Extractor;
//! use plaincall_syntax::Dialect;
//! use plaincall_table::{Extract, Made, Rates};
//!
//! let text = "I look.\n!!!GADGET_START:read\n!!!ARG:path\na.txt\n!!!GADGET_END";
//! let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, true)]));
//! let texts = Arc::new(StringArray::from(vec![Some(text), None]));
//! let batch = RecordBatch::try_new(Arc::clone(&schema), vec![texts])?;
//! let input = RecordBatchIterator::new([Ok(batch)], schema);
//!
//! let extractor = Extractor::new(&Dialect::block(), Unclosed::Reject, None, Stop::Natural)?;
//! let made = Made::new(Box::new(input), Arc::new(Extract::new("text", extractor, false)))?;
//! let mut rates = Rates::new(&made.schema(), "calls")?;
//! for batch in made {
//!     rates.add(&batch?)?;
//! }
//! let counts = &rates.counts;
//! assert_eq!((counts.rows, counts.failed_rows, counts.calls), (2, 1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod column;
mod extract;
mod lists;
mod made;
mod rates;
mod render;
mod texts;

pub use column::ColumnError;
pub use extract::Extract;
pub use made::{CancelCheck, Columns, Made};
pub use rates::Rates;
pub use render::Render;

/// After this many bytes of results a batch ends. Each can be the last one: a program stops between them.
const BATCH_BYTES: usize = 1 << 20;
/// The bytes of work between two checks for cancellation.
const CHECKED_BYTES: usize = 512 << 10;
/// The most rows of a batch.
const BATCH_ROWS: usize = 8192;
