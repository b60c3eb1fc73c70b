//! Columns of the type Null in a table of Polars, whose arrays of this type arrow does not read. `data.py` reads them as booleans.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{
    Array as _, ArrayRef, FixedSizeListArray, LargeListArray, NullArray, RecordBatch,
    RecordBatchReader, StructArray,
};
use arrow_schema::{ArrowError, DataType, SchemaRef};

/// A reader whose columns get the types of this schema: Null instead of others, also in structs and lists.
pub(crate) struct WithNulls {
    pub(crate) reader: Box<dyn RecordBatchReader + Send>,
    pub(crate) schema: SchemaRef,
}

impl Iterator for WithNulls {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?;
        Some(batch.and_then(|batch| {
            let columns = batch.columns().iter().zip(self.schema.fields());
            let columns = columns.map(|(column, field)| typed(column, field.data_type()));
            let columns: Result<_, _> = columns.collect();
            RecordBatch::try_new(Arc::clone(&self.schema), columns?)
        }))
    }
}

impl RecordBatchReader for WithNulls {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn typed(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let nulls = array.nulls().cloned();
    Ok(match (array.data_type(), to) {
        (_, DataType::Null) => Arc::new(NullArray::new(array.len())),
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| typed(column, field.data_type()));
            let columns: Result<_, _> = columns.collect();
            Arc::new(StructArray::try_new(fields.clone(), columns?, nulls)?)
        }
        (DataType::LargeList(_), DataType::LargeList(item)) => {
            let list = array.as_list::<i64>();
            let (values, offsets) = (typed(list.values(), item.data_type())?, list.offsets());
            let (item, offsets) = (Arc::clone(item), offsets.clone());
            Arc::new(LargeListArray::try_new(item, offsets, values, nulls)?)
        }
        (DataType::FixedSizeList(_, _), DataType::FixedSizeList(item, size)) => {
            let values = typed(array.as_fixed_size_list().values(), item.data_type())?;
            let item = Arc::clone(item);
            Arc::new(FixedSizeListArray::try_new(item, *size, values, nulls)?)
        }
        (from, to) => {
            let message = format!("a column has the type {from}, and not {to}");
            return Err(ArrowError::SchemaError(message));
        }
    })
}
