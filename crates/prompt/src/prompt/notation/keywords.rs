//! The keywords of one schema, taken one by one.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Keywords without constraints, which are omitted, like all that begin with `x-`.
const OMITTED: [&str; 4] = ["title", "$schema", "$id", "$comment"];
const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "array", "object", "null",
];
const OF_OBJECTS: [&str; 3] = ["properties", "additionalProperties", "patternProperties"];
const OF_LISTS: [&str; 2] = ["items", "prefixItems"];

/// The keywords of a schema that have not been taken yet.
#[derive(Clone)]
pub(crate) struct Keywords<'s>(Vec<(&'s str, Cow<'s, Value>)>);

impl<'s> Keywords<'s> {
    pub(crate) fn new(schema: &'s Map<String, Value>) -> Self {
        let is_kept = |name: &str| !OMITTED.contains(&name) && !name.starts_with("x-");
        let keywords = schema.iter().filter(|(name, _)| is_kept(name));
        Self(
            keywords
                .map(|(name, value)| (name.as_str(), Cow::Borrowed(value)))
                .collect(),
        )
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| &**value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Cow<'s, Value>> {
        let at = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(at).1)
    }

    pub(crate) fn take_if(
        &mut self,
        name: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Option<Cow<'s, Value>> {
        if !self.get(name).is_some_and(fits) {
            return None;
        }
        self.take(name)
    }

    /// Takes the value exactly as the schema has it, if it matches.
    pub(crate) fn take_whole(
        &mut self,
        name: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Option<&'s Value> {
        let at = self.0.iter().position(|(known, _)| *known == name)?;
        match self.0.get(at)?.1 {
            Cow::Borrowed(value) if fits(value) => {
                self.0.remove(at);
                Some(value)
            }
            _ => None,
        }
    }

    pub(crate) fn take_text(&mut self, name: &str) -> Option<String> {
        let text = self.take_if(name, Value::is_string)?;
        text.as_str().map(str::to_owned)
    }

    /// Puts back a keyword that has no notation after all.
    pub(super) fn put(&mut self, name: &'s str, value: Value) {
        self.0.push((name, Cow::Owned(value)));
    }

    pub(super) fn rest(&self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let rest = self.0.iter();
        let rest = rest.map(|(name, value)| ((*name).to_owned(), value.clone().into_owned()));
        Some(Value::Object(rest.collect()))
    }

    /// Returns `true` if a keyword constrains the parts of an object or list.
    pub(super) fn describes_parts(&self) -> bool {
        let mut parts = OF_OBJECTS.iter().chain(&OF_LISTS);
        parts.any(|name| self.has(name))
    }

    /// Returns `true` if an object has constraints besides its members.
    pub(crate) fn describes_more_than_members(&self) -> bool {
        let others = ["anyOf", "oneOf", "allOf", "not", "enum", "const"];
        self.has("$ref") || (!self.describes_parts() && others.iter().any(|name| self.has(name)))
    }

    /// Takes the types, including null if `nullable` adds it. Without `type`, the other keywords imply them
    /// (`spec/block.md` 7.7.1).
    pub(super) fn take_types(&mut self) -> Option<Vec<&'static str>> {
        let known = |name: &Value| TYPES.into_iter().find(|one| name.as_str() == Some(one));
        let mut types: Vec<&str> = match self.get("type") {
            Some(Value::Array(names)) => names.iter().map(known).collect::<Option<_>>()?,
            Some(name) => vec![known(name)?],
            None => {
                let of_object = OF_OBJECTS.iter().any(|name| self.has(name));
                let of_list = OF_LISTS.iter().any(|name| self.has(name));
                return match (of_object, of_list) {
                    (true, false) => Some(vec!["object"]),
                    (false, true) => Some(vec!["array"]),
                    _ => None,
                };
            }
        };
        let is_first = |(at, name)| types.iter().position(|one| one == name) == Some(at);
        if types.is_empty() || !types.iter().enumerate().all(is_first) {
            return None;
        }
        self.take("type");
        let is_true = |value: &Value| *value == Value::Bool(true);
        if !types.contains(&"null") && self.take_if("nullable", is_true).is_some() {
            types.push("null");
        }
        Some(types)
    }

    /// Takes the type that all these values have, and returns whether it did. Beside `nullable` it stays.
    pub(super) fn take_type_of_values(&mut self, values: &[Value]) -> bool {
        if !self.has("type") || self.has("nullable") {
            return false;
        }
        let before = self.clone();
        let types = self.take_types().unwrap_or_default();
        let fits = values.iter().all(|value| is_of(value, &types));
        if !fits {
            *self = before;
        }
        fits
    }

    /// Takes a list of schemas, and `type` if each of them names it too. The list stays beside another type.
    pub(super) fn take_members(&mut self, name: &str) -> Option<&'s [Value]> {
        let is_list = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty());
        let members = self.get(name).filter(|value| is_list(value))?.as_array()?;
        if let Some(of_all) = self.get("type") {
            if !members.iter().all(|one| one.get("type") == Some(of_all)) {
                return None;
            }
            self.take("type");
        }
        self.take_whole(name, is_list)?
            .as_array()
            .map(Vec::as_slice)
    }
}

fn is_of(value: &Value, types: &[&str]) -> bool {
    types.iter().any(|name| match (value, *name) {
        (Value::Null, "null")
        | (Value::Bool(_), "boolean")
        | (Value::String(_), "string")
        | (Value::Number(_), "number") => true,
        (Value::Number(number), "integer") => !number.is_f64(),
        _ => false,
    })
}
