//! Resolution of references.

use std::borrow::Cow;
use std::collections::HashMap;

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

/// The places in a schema to which a reference may lead.
pub(crate) struct Targets<'s> {
    root: &'s Value,
    /// The schemas with an `$id` of their own. References in them are resolved from them.
    resources: Vec<&'s Value>,
    /// The schemas with an anchor.
    anchors: HashMap<&'s str, Vec<&'s Value>>,
}

impl<'s> Targets<'s> {
    pub(crate) fn without_names(root: &'s Value) -> Self {
        Self {
            root,
            resources: Vec::new(),
            anchors: HashMap::new(),
        }
    }

    /// Finds the parts with a name.
    pub(crate) fn new(root: &'s Value) -> Self {
        let mut found = Self::without_names(root);
        let mut rest = vec![root];
        while let Some(schema) = rest.pop() {
            match schema {
                Value::Object(members) => {
                    let text = |keyword| members.get(keyword).and_then(Value::as_str);
                    let id = text("$id");
                    let id_as_anchor = id.and_then(|id| id.strip_prefix('#'));
                    let names = [text("$anchor"), text("$dynamicAnchor"), id_as_anchor];
                    for name in names.into_iter().flatten() {
                        found.anchors.entry(name).or_default().push(schema);
                    }
                    let is_resource = id.is_some_and(|id| !id.starts_with('#'));
                    if is_resource && !std::ptr::eq(schema, root) {
                        found.resources.push(schema);
                    }
                    rest.extend(members.values());
                }
                Value::Array(items) => rest.extend(items),
                _ => {}
            }
        }
        found
    }

    /// Returns whether a part of the schema has a name.
    #[cfg(feature = "jsonschema")]
    pub(crate) fn has_names(&self) -> bool {
        !self.resources.is_empty() || !self.anchors.is_empty()
    }

    /// Returns whether a reference leads to a place in the document.
    pub(crate) fn has(&self, reference: &str) -> bool {
        let fragment = reference.strip_prefix('#').and_then(decoded);
        fragment.is_some_and(|fragment| {
            if fragment.is_empty() || fragment.starts_with('/') {
                self.root.pointer(&fragment).is_some()
            } else {
                self.anchors.contains_key(&*fragment)
            }
        })
    }

    /// Returns each schema to which a reference may lead.
    pub(crate) fn of(&self, reference: &str) -> Vec<&'s Value> {
        let name = reference.strip_prefix('#');
        let named = name.and_then(|name| self.anchors.get(name));
        let mut found: Vec<&'s Value> = named.into_iter().flatten().copied().collect();
        let is_pointer =
            name.is_some_and(|name| name.is_empty() || !name.starts_with(|c: char| c != '/'));
        let roots = [&self.root].into_iter().chain(&self.resources);
        for root in roots.take_while(|_| is_pointer) {
            let target = resolve(root, reference);
            found
                .extend(target.filter(|one| !found.iter().any(|known| std::ptr::eq(*known, *one))));
        }
        found
    }
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
