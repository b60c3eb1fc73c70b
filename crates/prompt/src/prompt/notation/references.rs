//! The targets of references, and the definitions with a line of their own.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::words::json;

/// Words of the notation, which cannot be names.
const WORDS: [&str; 15] = [
    "string", "number", "integer", "boolean", "array", "object", "null", "any", "never", "one",
    "not", "tuple", "schema", "true", "false",
];

pub(crate) struct References<'s> {
    definitions: HashMap<&'s str, Definition<'s>>,
    named: VecDeque<&'s str>,
    seen: HashSet<&'s str>,
}

struct Definition<'s> {
    schema: &'s Value,
    /// The number of references to the definition.
    uses: usize,
}

pub(super) enum Target<'s> {
    /// The name of a definition.
    Named(String),
    /// The definition, which has no other reference.
    Inline(&'s Value),
}

impl<'s> References<'s> {
    /// Collects the references of a schema; `None` if one of them does not lead to a definition at the schema's root.
    pub(crate) fn of(root: &'s Value) -> Option<Self> {
        let mut definitions: HashMap<&str, Definition<'_>> = HashMap::new();
        for keyword in ["$defs", "definitions"] {
            let found = root.get(keyword).and_then(Value::as_object);
            for (name, schema) in found.into_iter().flatten() {
                let definition = Definition { schema, uses: 0 };
                if definitions.insert(name, definition).is_some() {
                    return None;
                }
            }
        }
        let mut all_known = true;
        visit(root, &mut |keyword, value| match keyword {
            "$ref" => {
                let name = value.as_str().and_then(name_of);
                match name.and_then(|name| definitions.get_mut(name)) {
                    Some(definition) => definition.uses += 1,
                    None => all_known = false,
                }
            }
            "$dynamicRef" | "$recursiveRef" => all_known = false,
            _ => {}
        });
        all_known.then(|| Self {
            definitions,
            named: VecDeque::new(),
            seen: HashSet::new(),
        })
    }

    pub(super) fn follow(&mut self, reference: &str) -> Option<Target<'s>> {
        let (name, definition) = self.definitions.get_key_value(name_of(reference)?)?;
        if definition.uses == 1 {
            return Some(Target::Inline(definition.schema));
        }
        let name = *name;
        self.name(name);
        Some(Target::Named(spelled(name)))
    }

    /// Names every definition that a schema written as JSON refers to.
    pub(super) fn name_all(&mut self, schema: &Value) {
        let mut found = Vec::new();
        visit(schema, &mut |keyword, value| {
            if keyword == "$ref" {
                found.extend(value.as_str().and_then(name_of));
            }
        });
        for name in found {
            let known = self.definitions.get_key_value(name).map(|(name, _)| *name);
            if let Some(name) = known {
                self.name(name);
            }
        }
    }

    pub(super) fn next(&mut self) -> Option<(String, &'s Value)> {
        let name = self.named.pop_front()?;
        let definition = self.definitions.get(name)?;
        Some((spelled(name), definition.schema))
    }

    fn name(&mut self, name: &'s str) {
        if self.seen.insert(name) {
            self.named.push_back(name);
        }
    }
}

fn name_of(reference: &str) -> Option<&str> {
    let name = reference
        .strip_prefix("#/$defs/")
        .or_else(|| reference.strip_prefix("#/definitions/"))?;
    (!name.contains(['/', '~', '%'])).then_some(name)
}

fn spelled(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !WORDS.contains(&name);
    if is_plain {
        name.to_owned()
    } else {
        format!("<{}>", json(&name.into()))
    }
}

fn visit<'v>(value: &'v Value, see: &mut impl FnMut(&'v str, &'v Value)) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    see(name, member);
                    open.push(member);
                }
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
}
