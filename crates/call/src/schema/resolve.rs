//! Resolution of references.

use std::borrow::Cow;

use serde_json::{Map, Value};

const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

pub(crate) fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let fragment = decoded(reference.strip_prefix('#')?)?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return root.pointer(&fragment);
    }
    let has_name = |schema: &&Value| {
        ["$anchor", "$dynamicAnchor"]
            .iter()
            .any(|keyword| schema.get(*keyword).and_then(Value::as_str) == Some(&fragment))
            || schema
                .get("$id")
                .and_then(Value::as_str)
                .and_then(|id| id.strip_prefix('#'))
                == Some(&fragment)
    };
    DEFINITIONS
        .iter()
        .filter_map(|keyword| root.get(*keyword)?.as_object())
        .flat_map(Map::values)
        .chain([root])
        .find(has_name)
}

/// Decodes the fragment of a URI: `%25` is `%`.
fn decoded(fragment: &str) -> Option<Cow<'_, str>> {
    if !fragment.contains('%') {
        return Some(Cow::Borrowed(fragment));
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            u8::try_from(digit()? * 16 + digit()?).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
