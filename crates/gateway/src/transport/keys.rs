//! The keys of the body of a request.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The facts that the keys of a body state.
#[derive(Default)]
pub(crate) struct Keys {
    /// Whether there are definitions of tools, or the body is not JSON and may be an object for a server.
    pub(crate) may_have_tools: bool,
    /// A repeated key. A server may use another of the values.
    pub(crate) repeated: Option<String>,
}

impl Keys {
    pub(crate) fn of(body: &[u8]) -> Self {
        // Some servers accept a byte order mark.
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        serde_json::from_slice(body).unwrap_or_else(|_| Self {
            may_have_tools: may_be_object(body),
            repeated: None,
        })
    }
}

/// Returns whether a tolerant server may read an object from a body that is not one of JSON. Texts, lists and forms are none; bytes
/// that are not UTF-8 may be an object in another encoding.
fn may_be_object(body: &[u8]) -> bool {
    // Parts of a form begin with a boundary, and may have files.
    if body.trim_ascii_start().starts_with(b"--") {
        return false;
    }
    match std::str::from_utf8(body) {
        Ok(text) => text.contains('\0') || text.trim_start().starts_with(['{', '/', '#']),
        Err(_) => true,
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let (mut keys, mut known) = (Keys::default(), Map::new());
        while let Some(mut key) = map.next_key::<String>()? {
            // Servers in Go read keys in any case.
            key.make_ascii_lowercase();
            if matches!(&*key, "tools" | "functions") {
                let list: Value = map.next_value()?;
                let mut list = list.as_array().into_iter().flatten();
                keys.may_have_tools |= list.any(Value::is_object);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
            if known.contains_key(&key) {
                keys.repeated = Some(key);
            } else {
                known.insert(key, Value::Null);
            }
        }
        Ok(keys)
    }
}
