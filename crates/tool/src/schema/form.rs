//! Checks that the keywords of a schema for reading are well formed.

use serde_json::{Map, Value};

use super::kinds::Kinds;
use super::resolve::Targets;
use crate::SpecError;
use crate::pointer::escape;

const DEEPEST: usize = 128;

pub(super) const SCHEMAS_BY_NAME: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
const LISTS_OF_SCHEMAS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SCHEMAS: [&str; 11] = [
    "additionalProperties",
    "additionalItems",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "items",
];
const LIMITS: [&str; 6] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// Returns all errors in the order of the document.
pub(super) fn errors(root: &Value) -> Vec<SpecError> {
    let mut check = Check {
        targets: Targets::new(root),
        errors: Vec::new(),
    };
    check.schema(root, "", 0);
    check.errors
}

struct Check<'s> {
    targets: Targets<'s>,
    errors: Vec<SpecError>,
}

impl<'s> Check<'s> {
    fn report(&mut self, at: &str, message: impl Into<String>) {
        self.errors.push(SpecError::new(at, message));
    }

    fn schema(&mut self, schema: &'s Value, at: &str, depth: usize) {
        if depth > DEEPEST {
            let message = format!("schemas are nested more than {DEEPEST} deep");
            return self.report(at, message);
        }
        match schema {
            Value::Bool(_) => {}
            Value::Object(keywords) => {
                for (name, value) in keywords {
                    let at = format!("{at}/{}", escape(name));
                    self.keyword(name, value, &at, depth);
                }
            }
            _ => self.report(at, "it must be a JSON Schema: an object, true or false"),
        }
    }

    fn keyword(&mut self, name: &str, value: &'s Value, at: &str, depth: usize) {
        let problem = match (name, value) {
            ("type", _) if !names_types(value) => {
                "it must be one of string, number, integer, boolean, array, object and null, or a list of them"
            }
            ("required", _) if !is_list_of_names(value) => "it must be a list of property names",
            ("enum", value) if !value.is_array() => "it must be a list of values",
            ("$ref", Value::String(reference)) => return self.reference(reference, at),
            ("$ref", _) => "it must be a string: the location of the schema",
            ("items", Value::Array(list)) => return self.list(list, at, depth),
            (name, Value::Object(members)) if SCHEMAS_BY_NAME.contains(&name) => {
                return self.named(name, members, at, depth);
            }
            (name, _) if SCHEMAS_BY_NAME.contains(&name) => {
                "it must be an object with a schema for each name"
            }
            (name, Value::Array(list)) if LISTS_OF_SCHEMAS.contains(&name) && !list.is_empty() => {
                return self.list(list, at, depth);
            }
            (name, _) if LISTS_OF_SCHEMAS.contains(&name) => {
                "it must be a non-empty list of schemas"
            }
            (name, _) if SCHEMAS.contains(&name) => return self.schema(value, at, depth + 1),
            (name, value) if LIMITS.contains(&name) && !is_count(value) => {
                "it must be a non-negative integer"
            }
            _ => return,
        };
        self.report(at, problem);
    }

    fn named(&mut self, name: &str, members: &'s Map<String, Value>, at: &str, depth: usize) {
        // The old `dependencies` may list names too.
        let is_schema = |member: &Value| name != "dependencies" || !member.is_array();
        for (key, member) in members.iter().filter(|(_, member)| is_schema(member)) {
            self.schema(member, &format!("{at}/{}", escape(key)), depth + 1);
        }
    }

    fn list(&mut self, list: &'s [Value], at: &str, depth: usize) {
        for (index, schema) in list.iter().enumerate() {
            self.schema(schema, &format!("{at}/{index}"), depth + 1);
        }
    }

    fn reference(&mut self, reference: &str, at: &str) {
        if self.targets.has(reference) {
            return;
        }
        let message = if reference.starts_with('#') {
            format!("{reference} does not exist")
        } else {
            format!("{reference} points outside this schema: put its target into `$defs`")
        };
        self.report(at, message);
    }
}

fn names_types(value: &Value) -> bool {
    let is_name = |name: &Value| name.as_str().and_then(Kinds::named).is_some();
    match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(is_name),
        name => is_name(name),
    }
}

fn is_list_of_names(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|names| names.iter().all(Value::is_string))
}

fn is_count(value: &Value) -> bool {
    value.as_u64().is_some()
        || value
            .as_f64()
            .is_some_and(|count| count >= 0.0 && count.fract() == 0.0)
}
