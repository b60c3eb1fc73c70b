//! Tables of Arrow.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{DataType, Field, Schema};
use plaincall_table::{Extract, Made};

use crate::decision::Seen;
use crate::entry_points::{extractor, row_call};
use crate::texts::Reply;
use crate::tools::Tools;

/// `extract` with Parquet files, and the tables of the Python package.
pub(crate) fn table(tools: &Tools, reply: &Reply) -> Seen {
    let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, true)]));
    let texts = Arc::new(StringArray::from(vec![Some(&*reply.text)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![texts]).unwrap();
    let input = RecordBatchIterator::new([Ok(batch)], schema);
    let extract = Extract::new("text", extractor(tools, reply), false);
    let mut made = Made::new(Box::new(input), Arc::new(extract)).unwrap();
    let batch = made.next().unwrap().unwrap();
    let calls = batch
        .column_by_name("calls")
        .unwrap()
        .as_list::<i32>()
        .value(0);
    let calls = calls.as_struct();
    let column = |name: &str| calls.column_by_name(name).unwrap();
    let text = |name: &str, at: usize| {
        let column = column(name).as_string::<i32>();
        let is_null = column.is_null(at);
        (!is_null).then(|| column.value(at))
    };
    let decisions = (0..calls.len()).map(|at| {
        let may_run = column("may_run").as_boolean().value(at);
        let name = text("name", at).unwrap();
        row_call(name, may_run, text("arguments", at), text("error", at))
    });
    decisions.collect::<Vec<_>>().into()
}
