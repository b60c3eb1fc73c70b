//! Untrusted text in a record of a run, unescaped: `#[serde(with = "plaincall_reply::untrusted::in_record", default)]`.
//!
//! [`Untrusted`] has no serialization of its own. Each field that is written to a record names this module, so that these places can
//! be found. A record is never part of a prompt.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::untrusted::Untrusted;

/// Writes the text to a record.
///
/// # Errors
/// Returns the error of the serializer.
#[allow(clippy::ref_option, reason = "serde passes a reference to the field")]
pub fn serialize<S: Serializer>(
    text: &Option<Arc<Untrusted<'static>>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    text.as_ref().map(|text| text.raw()).serialize(serializer)
}

/// Reads the text from a record.
///
/// # Errors
/// Returns an error if the value is neither a string nor `null`.
pub fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Arc<Untrusted<'static>>>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    Ok(text.map(|text| Arc::new(Untrusted(Cow::Owned(text)))))
}
