//! Reading the values of fields.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use crate::json::Json;
use crate::read_error::{ReadError, inside};
use crate::to_json::ToJson;

/// A type that a field of an object can have.
pub(crate) trait Field<'de>: Sized + ToJson {
    /// Converts it to an owned value.
    type Owned;

    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    fn into_owned(self) -> Self::Owned;

    /// Returns the value of a missing field, or `None` if the field is required.
    fn absent() -> Option<Self> {
        None
    }

    fn is_absent(&self) -> bool {
        false
    }
}

/// Reads the next value as a field.
pub(crate) struct Value<T>(pub(crate) T);

impl<'de, T: Field<'de>> Deserialize<'de> for Value<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read(deserializer).map(Self)
    }
}

/// The name of a field.
pub(crate) struct Name<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor).map(Self)
    }
}

impl<'de, T: Field<'de>> Field<'de> for Option<T> {
    type Owned = Option<T::Owned>;

    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Option::<Value<T>>::deserialize(deserializer)?;
        Ok(value.map(|Value(value)| value))
    }

    fn into_owned(self) -> Self::Owned {
        self.map(T::into_owned)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<'de, T: Field<'de>> Field<'de> for Vec<T> {
    type Owned = Vec<T::Owned>;

    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);
        impl<'de, T: Field<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = Vec<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<Vec<T>, A::Error> {
                items(access)
            }
        }
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }

    fn into_owned(self) -> Self::Owned {
        self.into_iter().map(T::into_owned).collect()
    }
}

/// Reads the items of a list. An error names the item.
pub(crate) fn items<'de, T: Field<'de>, A: SeqAccess<'de>>(
    mut access: A,
) -> Result<Vec<T>, A::Error> {
    let mut items = Vec::new();
    loop {
        let number = items.len();
        match access.next_element() {
            Ok(Some(Value(item))) => items.push(item),
            Ok(None) => return Ok(items),
            Err(error) => return Err(inside(format_args!("[{number}]"), &error)),
        }
    }
}

/// Decodes the bytes, with U+FFFD for each invalid part.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    // Validation alone is many times as fast as the search for invalid parts.
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => lossy(bytes),
    }
}

/// Writes one U+FFFD for each unpaired surrogate, which the reader passes as three bytes, and for each other invalid part.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest
        .windows(3)
        .position(|window| matches!(window, [0xed, 0xa0..=0xbf, 0x80..=0xbf]))
    {
        text.push_str(&String::from_utf8_lossy(rest.get(..at).unwrap_or_default()));
        text.push(char::REPLACEMENT_CHARACTER);
        rest = rest.get(at + 3..).unwrap_or_default();
    }
    text.push_str(&String::from_utf8_lossy(rest));
    Cow::Owned(text)
}

/// Reads texts as bytes, so that an unpaired surrogate, which some servers send, costs one character and not the reply.
pub(crate) struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(text(bytes))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text(bytes).into_owned()))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

impl<'de> Field<'de> for Cow<'de, str> {
    type Owned = Cow<'static, str>;

    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(TextVisitor)
    }

    fn into_owned(self) -> Cow<'static, str> {
        Cow::Owned(self.into_owned())
    }
}

impl<'de> Field<'de> for Json<'de> {
    type Owned = Json<'static>;

    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }

    fn into_owned(self) -> Self::Owned {
        self.into_owned()
    }
}

impl<'de> Field<'de> for bool {
    type Owned = bool;

    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bool::deserialize(deserializer)
    }

    fn into_owned(self) -> bool {
        self
    }
}

/// A count. Also accepts floats, and -1 for "unknown", which some servers send.
impl<'de> Field<'de> for u64 {
    type Owned = u64;

    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor;
        impl Visitor<'_> for CountVisitor {
            type Value = u64;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number")
            }

            fn visit_u64<E>(self, number: u64) -> Result<u64, E> {
                Ok(number)
            }

            fn visit_i64<E>(self, number: i64) -> Result<u64, E> {
                Ok(u64::try_from(number).unwrap_or_default())
            }

            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the cast saturates"
            )]
            fn visit_f64<E>(self, number: f64) -> Result<u64, E> {
                Ok(number as u64)
            }
        }
        deserializer.deserialize_u64(CountVisitor)
    }

    fn into_owned(self) -> u64 {
        self
    }
}

/// A text or a number, each of which may be written as the other, or `null`. Another text in place of a number is as a missing one.
pub(crate) struct Loose<'de>(Json<'de>);

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer).map(Self)
    }
}

impl<'a> TryFrom<Loose<'a>> for Option<Cow<'a, str>> {
    type Error = ReadError;

    fn try_from(Loose(json): Loose<'a>) -> Result<Self, ReadError> {
        if matches!(json.text().as_bytes(), [b'-' | b'0'..=b'9', ..]) {
            return Ok(Some(json.text().to_owned().into()));
        }
        let text: Option<Cow<'_, str>> = json.read_field()?;
        Ok(text.map(|text| text.into_owned().into()))
    }
}

impl TryFrom<Loose<'_>> for Option<u64> {
    type Error = ReadError;

    fn try_from(Loose(json): Loose<'_>) -> Result<Self, ReadError> {
        let text = json.text().strip_prefix('"');
        let Some(text) = text.and_then(|text| text.strip_suffix('"')) else {
            return json.read_field();
        };
        let number = Json::parse(text);
        Ok(number.ok().and_then(|number| number.read_field().ok()))
    }
}
