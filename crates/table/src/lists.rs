//! Lists of calls, as other libraries represent them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, ListArray, StructArray};
use arrow_buffer::ArrowNativeType as _;
use arrow_schema::{ArrowError, DataType, Field};

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

fn as_list(name: &str, array: &ArrayRef) -> Result<ListArray, ArrowError> {
    let item = match array.data_type() {
        DataType::List(_) => return Ok(array.as_list().clone()),
        DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => Arc::clone(item),
        DataType::Null => Arc::new(Field::new("item", DataType::Null, true)),
        other => {
            return Err(ColumnError::of_type(name, other, "lists").into());
        }
    };
    let list = arrow_cast::cast(array, &DataType::List(item))?;
    Ok(list.as_list().clone())
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
