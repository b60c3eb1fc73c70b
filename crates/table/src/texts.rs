//! Columns of text, in each of Arrow's representations.

use arrow_array::cast::AsArray as _;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeStringArray, StringArray,
    StringViewArray, downcast_integer_array,
};
use arrow_buffer::ArrowNativeType as _;
use arrow_schema::{ArrowError, DataType};

use crate::column::ColumnError;

/// A column of text. Bytes are text too.
pub(crate) enum Texts {
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    Utf8View(StringViewArray),
    Binary(BinaryArray),
    LargeBinary(LargeBinaryArray),
    BinaryView(BinaryViewArray),
    Dictionary(Box<Dictionary>),
    Null,
}

/// Texts that are written once, and the place of each row's text. They are read by key: their copies could have more bytes than
/// an array holds, and a batch is read again for every batch of results.
pub(crate) struct Dictionary {
    keys: ArrayRef,
    values: Texts,
    length: usize,
}

/// Returns whether a column has text.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text(values),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::Null => true,
        _ => false,
    }
}

impl Texts {
    pub(crate) fn new(name: &str, array: &ArrayRef) -> Result<Self, ArrowError> {
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Utf8(array.as_string().clone()),
            DataType::LargeUtf8 => Self::LargeUtf8(array.as_string().clone()),
            DataType::Utf8View => Self::Utf8View(array.as_string_view().clone()),
            DataType::Binary => Self::Binary(array.as_binary().clone()),
            DataType::LargeBinary => Self::LargeBinary(array.as_binary().clone()),
            DataType::BinaryView => Self::BinaryView(array.as_binary_view().clone()),
            DataType::Null => Self::Null,
            other => {
                let dictionary = array.as_any_dictionary_opt();
                let dictionary = dictionary.filter(|_| is_text(other));
                let dictionary =
                    dictionary.ok_or_else(|| ColumnError::of_type(name, other, "text"))?;
                let keys = dictionary.keys();
                Self::Dictionary(Box::new(Dictionary {
                    keys: keys.slice(0, keys.len()),
                    values: Self::new(name, dictionary.values())?,
                    length: dictionary.values().len(),
                }))
            }
        })
    }

    /// Returns the text of a row, or `None` if it is null.
    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::Utf8(texts) => texts.is_valid(row).then(|| texts.value(row).as_bytes()),
            Self::LargeUtf8(texts) => texts.is_valid(row).then(|| texts.value(row).as_bytes()),
            Self::Utf8View(texts) => texts.is_valid(row).then(|| texts.value(row).as_bytes()),
            Self::Binary(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::LargeBinary(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::BinaryView(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::Dictionary(texts) => texts.values.get(texts.key(row)?),
            Self::Null => None,
        }
    }

    /// Returns the text of a row as a string, or `None` if it is null or not UTF-8.
    pub(crate) fn text(&self, row: usize) -> Option<&str> {
        self.get(row).and_then(|text| str::from_utf8(text).ok())
    }
}

impl Dictionary {
    /// Returns the place of the text of a row, or `None` if it is null.
    fn key(&self, row: usize) -> Option<usize> {
        if self.keys.is_null(row) {
            return None;
        }
        let keys = &self.keys;
        let key: Option<usize> = downcast_integer_array!(
            keys => keys.value(row).to_usize(),
            _ => None,
        );
        key.filter(|key| *key < self.length)
    }
}
