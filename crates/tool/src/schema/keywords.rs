//! The keywords of one schema, and their values.

use serde_json::{Map, Value};

pub(crate) type Keywords = Map<String, Value>;

/// A schema with at most this many keywords is searched linearly. Hashing a name takes longer, and each step through a
/// schema looks up a dozen.
const FEW: usize = 8;

pub(crate) fn keyword<'s>(keywords: &'s Keywords, name: &str) -> Option<&'s Value> {
    if keywords.len() > FEW {
        return keywords.get(name);
    }
    let found = keywords.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| value)
}
