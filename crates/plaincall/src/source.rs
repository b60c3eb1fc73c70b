//! Chunks of a reply as they arrived.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A chunk of a reply. In the log it is `"text"`, or hexadecimal `"bytes"` if it is not valid UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// Valid UTF-8.
    Text(Arc<str>),
    /// Bytes that are not valid UTF-8, for example half a character.
    Bytes(Bytes),
}

/// Bytes, serialized as hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Arc<[u8]>);

impl Source {
    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(Bytes(bytes)) => bytes,
        }
    }
}

impl From<&[u8]> for Source {
    fn from(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.into()),
            Err(_) => Self::Bytes(Bytes(bytes.into())),
        }
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
        let digits = self
            .0
            .iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
        let text: String = digits.map(char::from).collect();
        serializer.serialize_str(&text)
    }
}

impl<'d> Deserialize<'d> for Bytes {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("`bytes` must be pairs of hexadecimal digits");
        let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
        let digits = digits.ok_or_else(wrong)?;
        let (pairs, rest) = digits.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(wrong());
        }
        let byte = |pair: &[u32; 2]| u8::try_from(pair[0] * 16 + pair[1]).unwrap_or_default();
        Ok(Self(pairs.iter().map(byte).collect()))
    }
}
