//! Lists of calls, as other libraries represent them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{
    Array as _, ArrayRef, GenericListViewArray, ListArray, OffsetSizeTrait, StructArray, make_array,
};
use arrow_buffer::{ArrowNativeType as _, OffsetBuffer, ScalarBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType, Field, FieldRef};

use crate::column::ColumnError;
use crate::texts::Texts;

/// Returns a column of lists in one representation, with the items of these rows only: those of others would be converted with
/// each slice of a table.
pub(crate) fn list_column(name: &str, array: &ArrayRef) -> Result<ListArray, ArrowError> {
    let (item, offsets, items, nulls) = as_list(name, array)?.into_parts();
    let first = offsets.first().copied().unwrap_or_default();
    let offsets = offsets.subtract(first);
    let count = offsets.last().map_or(0, |count| count.as_usize());
    let items = items.slice(first.as_usize(), count);
    ListArray::try_new(item, offsets, items, nulls)
}

/// Arrow's own conversion brings that of all types.
fn as_list(name: &str, array: &ArrayRef) -> Result<ListArray, ArrowError> {
    let ends = |ends: &mut dyn Iterator<Item = usize>| {
        let ends: Result<Vec<i32>, _> = ends.map(i32::try_from).collect();
        let ends = ends.map_err(|_| ArrowError::OffsetOverflowError(array.len()))?;
        Ok::<_, ArrowError>(OffsetBuffer::new(ScalarBuffer::from(ends)))
    };
    let nulls = array.nulls().cloned();
    match array.data_type() {
        DataType::List(_) => Ok(array.as_list().clone()),
        DataType::LargeList(item) => {
            let list = array.as_list::<i64>();
            let ends = ends(&mut list.value_offsets().iter().map(|end| end.as_usize()))?;
            ListArray::try_new(Arc::clone(item), ends, Arc::clone(list.values()), nulls)
        }
        DataType::FixedSizeList(item, length) => {
            let values = Arc::clone(array.as_fixed_size_list().values());
            let length = length.as_usize();
            let ends = ends(&mut (0..=array.len()).map(|row| row * length))?;
            ListArray::try_new(Arc::clone(item), ends, values, nulls)
        }
        DataType::ListView(item) => of_views(item, array.as_list_view::<i32>()),
        DataType::LargeListView(item) => of_views(item, array.as_list_view::<i64>()),
        DataType::Null => {
            let item = Arc::new(Field::new("item", DataType::Null, true));
            Ok(ListArray::new_null(item, array.len()))
        }
        other => Err(ColumnError::of_type(name, other, "lists").into()),
    }
}

/// Copies the items, which may be in another order, and may belong to several rows.
fn of_views<Offset: OffsetSizeTrait>(
    item: &FieldRef,
    lists: &GenericListViewArray<Offset>,
) -> Result<ListArray, ArrowError> {
    let data = lists.values().to_data();
    let mut items = MutableArrayData::new(vec![&data], false, data.len());
    let mut ends = vec![0];
    for row in 0..lists.len() {
        let start = lists.value_offset(row).as_usize();
        let count = lists.value_size(row).as_usize();
        let count = if lists.is_valid(row) { count } else { 0 };
        items.try_extend(0, start, start + count)?;
        let end = i32::try_from(items.len());
        ends.push(end.map_err(|_| ArrowError::OffsetOverflowError(row))?);
    }
    let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
    let items = make_array(items.freeze());
    ListArray::try_new(Arc::clone(item), ends, items, lists.nulls().cloned())
}

/// Returns the items of a row, or `None` if it is null.
pub(crate) fn items(lists: &ListArray, row: usize) -> Option<Range<usize>> {
    let offsets = lists.value_offsets();
    let at = |row: usize| offsets.get(row).and_then(|&at| usize::try_from(at).ok());
    let range = at(row)?..at(row + 1)?;
    lists.is_valid(row).then_some(range)
}

/// Returns the items of a column of lists as a struct.
pub(crate) fn structs<'l>(name: &str, lists: &'l ListArray) -> Result<&'l StructArray, ArrowError> {
    let items = lists.values().as_struct_opt();
    items.ok_or_else(|| {
        ArrowError::SchemaError(format!(
            "the lists of the column `{name}` must have structs"
        ))
    })
}

/// A field of calls: lists of text for each call.
pub(crate) struct TextLists {
    lists: ListArray,
    texts: Texts,
}

impl TextLists {
    pub(crate) fn new(calls: &StructArray, name: &str) -> Result<Option<Self>, ArrowError> {
        let Some(array) = calls.column_by_name(name) else {
            return Ok(None);
        };
        let lists = list_column(name, array)?;
        let texts = Texts::new(name, lists.values())?;
        Ok(Some(Self { lists, texts }))
    }

    pub(crate) fn of(&self, call: usize) -> impl Iterator<Item = &str> {
        let items = items(&self.lists, call).into_iter().flatten();
        items.filter_map(|item| self.texts.text(item))
    }
}

/// Returns the texts of a field of calls.
pub(crate) fn texts(calls: &StructArray, name: &str) -> Result<Option<Texts>, ArrowError> {
    let array = calls.column_by_name(name);
    array.map(|array| Texts::new(name, array)).transpose()
}
