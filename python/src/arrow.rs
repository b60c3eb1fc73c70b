//! Tables of other libraries, read by Arrow's `PyCapsule` interface.

#![expect(
    unsafe_code,
    reason = "Arrow's C interface has pointers and functions of C"
)]

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader, StructArray,
};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef, UnionMode};
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
    let stream = pointer::<FFI_ArrowArrayStream>(&capsule, c"arrow_array_stream")?;
    // SAFETY: a capsule of this name has a stream, and lives. The stream is moved out, so that it is released here only.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream) };
    Ok(Box::new(Stream::new(stream).map_err(error::value)?))
}

fn batch(data: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let capsules = data.call_method0("__arrow_c_array__")?;
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = capsules.extract()?;
    let schema = pointer::<FFI_ArrowSchema>(&schema, c"arrow_schema")?;
    let array = pointer::<FFI_ArrowArray>(&array, c"arrow_array")?;
    // SAFETY: capsules of these names have a schema and an array, and live. Both are moved out, so that they are released here only.
    let (schema, array) = unsafe {
        let schema = FFI_ArrowSchema::from_raw(schema);
        (schema, FFI_ArrowArray::from_raw(array))
    };
    if array.is_released() {
        return Err(error::value("the array has been read already"));
    }
    let found = DataType::try_from(&schema).map_err(error::value)?;
    if !matches!(found, DataType::Struct(_)) {
        let message =
            format!("`data`: expected a table or a batch, found an array of the type {found}");
        return Err(error::value(message));
    }
    let schema = Schema::try_from(&schema).map_err(error::value)?;
    imported(array, &Arc::new(schema)).map_err(error::value)
}

/// Returns what a capsule of this name has.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?;
    Ok(pointer.cast().as_ptr())
}

/// The batches of another library.
struct Stream {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl Stream {
    fn new(mut stream: FFI_ArrowArrayStream) -> Result<Self, ArrowError> {
        let function = stream.get_schema;
        let schema = called(&mut stream, function, FFI_ArrowSchema::empty())?;
        let schema = Arc::new(Schema::try_from(&schema)?);
        Ok(Self { stream, schema })
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let function = self.stream.get_next;
        match called(&mut self.stream, function, FFI_ArrowArray::empty()) {
            Ok(end) if end.is_released() => None,
            array => Some(array.and_then(|array| imported(array, &self.schema))),
        }
    }
}

/// A function of a stream that writes what it returns.
type Function<T> = unsafe extern "C" fn(*mut FFI_ArrowArrayStream, *mut T) -> c_int;

fn called<T>(
    stream: &mut FFI_ArrowArrayStream,
    function: Option<Function<T>>,
    mut output: T,
) -> Result<T, ArrowError> {
    let failed = |message: &str| ArrowError::CDataInterface(message.to_owned());
    let function = function.ok_or_else(|| failed("the stream has been read already"))?;
    // SAFETY: a stream with functions is not released, and they write to this place only.
    if unsafe { function(stream, &raw mut output) } == 0 {
        return Ok(output);
    }
    // SAFETY: as above; it returns null or a text, which lives until the next call.
    let message = stream
        .get_last_error
        .map(|function| unsafe { function(stream) });
    let message = message.filter(|message| !message.is_null());
    let message = message.map(|message| unsafe { CStr::from_ptr(message) }.to_string_lossy());
    Err(failed(
        &message.unwrap_or("its library states no reason".into()),
    ))
}

fn imported(array: FFI_ArrowArray, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let rows = array.len();
    // SAFETY: the library states that the array has the types of its schema.
    let data = unsafe { from_ffi_and_data_type(array, DataType::Struct(schema.fields().clone())) }?;
    let (_, columns, nulls) = StructArray::from(part(&data, 0, rows)).into_parts();
    if nulls.is_some_and(|nulls| nulls.null_count() > 0) {
        let message = "a batch has rows that are null as a whole, which a table cannot have";
        return Err(ArrowError::SchemaError(message.to_owned()));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// Returns a slice of an array, with its offset moved into the children of structs, lists of a fixed size and sparse unions: arrow adds
/// the offset of a struct to a struct in it twice.
fn part(data: &ArrayData, from: usize, length: usize) -> ArrayData {
    let (whole, start) = (data.slice(from, length), data.offset() + from);
    let children = |start, length| {
        let children = data.child_data().iter();
        children.map(move |one| part(one, start, length)).collect()
    };
    let builder = match data.data_type() {
        DataType::Struct(_) => whole
            .into_builder()
            .offset(0)
            .child_data(children(start, length)),
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or_default();
            let children = children(start * size, length * size);
            whole.into_builder().offset(0).child_data(children)
        }
        DataType::Union(_, UnionMode::Sparse) => {
            // A type id has one byte.
            let ids = data.buffers().iter();
            let ids = ids.map(|ids| ids.slice_with_length(start, length));
            let builder = whole.into_builder().offset(0).buffers(ids.collect());
            builder.child_data(children(start, length))
        }
        _ => {
            let children = data.child_data().iter();
            let children = children.map(|one| part(one, 0, one.len()));
            whole.into_builder().child_data(children.collect())
        }
    };
    // SAFETY: the library states that the array is valid. Where the offset became 0, each child has exactly the elements that the array
    // has from it on, and the nulls have an offset of their own.
    unsafe { builder.build_unchecked() }
}
