//! Tables of other libraries, read by Arrow's `PyCapsule` interface.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{DataType, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error;

/// Returns the batches of a table, or a single batch.
pub(crate) fn batches(data: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let Some(stream) = data.getattr_opt("__arrow_c_stream__")? else {
        let batch = batch(data)?;
        let schema = batch.schema();
        return Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
    };
    let capsule = stream.call0()?;
    let stream = place::<FFI_ArrowArrayStream>(&capsule, c"arrow_array_stream")?;
    // SAFETY: a capsule of this name has a stream. It is moved out, so that it is released here only.
    #[expect(unsafe_code, reason = "Arrow's C interface has pointers")]
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream) };
    let stream = ArrowArrayStreamReader::try_new(stream).map_err(error::value)?;
    Ok(Box::new(stream))
}

fn batch(data: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let capsules = data.call_method0("__arrow_c_array__")?;
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = capsules.extract()?;
    let schema = place::<FFI_ArrowSchema>(&schema, c"arrow_schema")?;
    let array = place::<FFI_ArrowArray>(&array, c"arrow_array")?;
    // SAFETY: capsules of these names have a schema, and an array of this schema. Both are moved out, so that they are released here only.
    #[expect(unsafe_code, reason = "Arrow's C interface has pointers")]
    let (schema, array) = unsafe {
        let schema = FFI_ArrowSchema::from_raw(schema);
        let array = from_ffi(FFI_ArrowArray::from_raw(array), &schema);
        (schema, array.map_err(error::value)?)
    };
    if !matches!(array.data_type(), DataType::Struct(_)) || array.null_count() > 0 {
        let found = array.data_type();
        let message = format!(
            "`data`: expected a table or a batch without nulls, found an array of the type {found}"
        );
        return Err(error::value(message));
    }
    let batch = RecordBatch::from(StructArray::from(array));
    let schema = Schema::try_from(&schema).map_err(error::value)?;
    batch.with_schema(Arc::new(schema)).map_err(error::value)
}

/// Returns what a capsule of this name has.
fn place<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let place = capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?;
    Ok(place.cast().as_ptr())
}
