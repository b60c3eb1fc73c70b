//! JSON values as text.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::field::Field;
use crate::read_error::ReadError;
use crate::to_json::ToJson;

/// A JSON value, stored as its text, so that digits, whitespace and key order are preserved.
#[derive(Clone)]
pub struct Json<'a>(Cow<'a, RawValue>);

impl<'a> Json<'a> {
    /// Parses a text that contains one JSON value.
    ///
    /// # Errors
    /// Returns an error if the text is not JSON.
    pub fn parse(text: &'a str) -> Result<Self, ReadError> {
        Self::read_text(text)
    }

    /// Reads a JSON text as this type.
    pub(crate) fn read_text<T: Deserialize<'a>>(text: &'a str) -> Result<T, ReadError> {
        serde_json::from_str(text).map_err(|error| ReadError::new(&error))
    }

    /// Returns the original text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Reads the value as this type.
    ///
    /// # Errors
    /// Returns an error if the value has another type.
    pub fn read<'s, T: Deserialize<'s>>(&'s self) -> Result<T, ReadError> {
        Json::read_text(self.text())
    }

    /// Reads the value as a field type. An error names the item of a list.
    pub(crate) fn read_field<'s, T: Field<'s>>(&'s self) -> Result<T, ReadError> {
        let mut text = serde_json::Deserializer::from_str(self.text());
        T::read(&mut text).map_err(|error| ReadError::new(&error))
    }

    /// Returns whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }

    /// Returns whether the value is more than `null`, an empty list or an empty string.
    pub fn is_given(&self) -> bool {
        !matches!(self.text(), "null" | "[]" | "\"\"")
    }

    /// Converts it to an owned value.
    pub fn into_owned(self) -> Json<'static> {
        Json(Cow::Owned(self.0.into_owned()))
    }
}

impl Json<'static> {
    /// Serializes a value; `null` if it cannot be serialized.
    pub fn new(value: &impl Serialize) -> Self {
        Self(Cow::Owned(
            serde_json::value::to_raw_value(value).unwrap_or_default(),
        ))
    }
}

impl Default for Json<'_> {
    /// `null`
    fn default() -> Self {
        Self(Cow::Borrowed(RawValue::NULL))
    }
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl PartialEq for Json<'_> {
    /// Compares the texts.
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json<'_> {}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self(Cow::Borrowed(raw)))
    }
}

impl ToJson for Json<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text().as_bytes());
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
