//! The information in a schema about a value before the call is complete (`spec/json-stream.md` 2).

use serde_json::Value;

use super::allowed_values::{AllowedValues, SchemaReader};
use super::alternative::Alternative;
use super::keywords::Keywords;
use super::kinds::Kinds;
use crate::pointer::is_index;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedValue {
    /// No value is allowed: the call is invalid.
    Nothing,
    /// A string, for any text.
    Text,
    /// A string, unless the text is null.
    TextOrNull,
    /// A string, unless the text is null, a boolean or a number.
    TextOrScalar,
    /// A string, unless the text is null, a boolean, a number or a described object.
    TextOrObject,
    /// The text decides (`spec/block.md` 7.7).
    Guessed,
    /// Known only when the text is complete.
    Whole,
    /// Known only when the call is complete.
    Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedParts {
    Nothing,
    /// A list or an object; the pointers decide (`spec/block.md` 7.4).
    ByPointers,
    Object {
        /// The maximum number of members, if known: with that many the object is complete.
        most: Option<usize>,
    },
    List {
        /// The maximum number of items, if known: with that many the list is complete.
        most: Option<usize>,
    },
    /// Known only when the call is complete.
    Later,
}

pub struct Expected<'r, 's> {
    reader: &'r SchemaReader<'s>,
    allowed: AllowedValues<'s>,
    /// Whether nothing else in the call can change the allowed values.
    is_settled: bool,
}

impl<'r, 's> Expected<'r, 's> {
    pub fn root(reader: &'r SchemaReader<'s>) -> Self {
        Self {
            allowed: reader.root(),
            is_settled: true,
            reader,
        }
    }

    /// Continues with the value under a segment.
    pub fn step(&mut self, segment: &str) {
        let Self {
            reader, allowed, ..
        } = self;
        let kinds = allowed.kinds();
        let is_list = is_index(segment) && kinds.has(Kinds::LIST);
        let is_object = !is_index(segment) || kinds.has(Kinds::OBJECT);
        let member = || reader.member(&allowed.only(Kinds::OBJECT), segment);
        let item = || {
            let index = segment.parse().unwrap_or(usize::MAX);
            reader.item(&allowed.only(Kinds::LIST), index)
        };
        // Alternatives for another kind of container do not match the pointer.
        let (below, is_sure, meant) = match (is_list, is_object) {
            (true, true) => {
                let (either, is_same) = item().or(member());
                (either, is_same, Kinds::LIST | Kinds::OBJECT)
            }
            (true, false) => (item(), true, Kinds::LIST),
            (false, _) => (member(), true, Kinds::OBJECT),
        };
        let forms = allowed.alternatives.iter().filter(|one| one.allows(meant));
        // The last remaining alternative stays, independent of earlier decisions.
        let is_one = matches!(below.alternatives.as_slice(), [one] if !one.all.is_empty());
        self.is_settled = is_one || (self.is_settled && is_sure && forms.count() < 2);
        self.allowed = below;
    }

    /// Returns the allowed values.
    pub fn allowed(&self) -> &AllowedValues<'s> {
        &self.allowed
    }

    /// Returns whether the schema here declares a key, by name or by pattern.
    pub fn declares(&self, key: &str) -> bool {
        self.allowed.declares(key)
    }

    pub fn spells(&self, key: &str) -> bool {
        self.allowed.spells(key)
    }

    /// Returns the expected value. If it or its neighbors decide between several schemas, the types that all of them
    /// allow are still certain.
    pub fn value(&self) -> ExpectedValue {
        let kinds = self.allowed.kinds();
        let is_stated = self
            .allowed
            .alternatives
            .iter()
            .all(|one| one.kinds().is_some());
        let is_unknown = self
            .allowed
            .alternatives
            .iter()
            .all(|one| one.kinds().is_none());
        // Blanks around a listed string are not part of it.
        let has_listed = self.allowed.alternatives.iter().any(Alternative::is_listed);
        let takes_any_text = self.allowed.takes_any_text();
        // Beside a string with any text, only values in JSON notation are something else.
        let beside = self.allowed.stated().kinds();
        let has_scalar = beside.has_any(Kinds::BOOLEAN | Kinds::NUMBER);
        let mut forms = self.allowed.alternatives.iter();
        let has_object = forms.any(|one| one.kinds().is_some() && one.describes_object());
        match () {
            () if self.allowed.alternatives.is_empty() => ExpectedValue::Nothing,
            () if is_stated && kinds == Kinds::STRING && !has_listed => ExpectedValue::Text,
            // Whichever form it is, the text is one of the listed strings.
            () if kinds == Kinds::STRING && self.allowed.is_listed() => ExpectedValue::Whole,
            () if !self.is_settled => ExpectedValue::Later,
            () if takes_any_text && has_object => ExpectedValue::TextOrObject,
            () if takes_any_text && has_scalar => ExpectedValue::TextOrScalar,
            () if takes_any_text && beside.has(Kinds::NULL) => ExpectedValue::TextOrNull,
            () if takes_any_text => ExpectedValue::Text,
            () if is_unknown => ExpectedValue::Guessed,
            () => ExpectedValue::Whole,
        }
    }

    pub fn parts(&self) -> ExpectedParts {
        let allowed = self.allowed.only(Kinds::LIST | Kinds::OBJECT);
        let kinds = allowed.kinds();
        let most = |keyword: &str, of: fn(&Keywords) -> Option<usize>| {
            let [form] = allowed.alternatives.as_slice() else {
                return None;
            };
            let named = form.all.iter().filter_map(|keywords| of(keywords));
            named.chain(form.least(keyword)).min()
        };
        let is_object_only = |form: &Alternative<'_>| !form.allows(Kinds::LIST);
        match () {
            () if allowed.alternatives.is_empty() => ExpectedParts::Nothing,
            () if !kinds.has(Kinds::LIST) => ExpectedParts::Object {
                most: most("maxProperties", most_members),
            },
            () if !kinds.has(Kinds::OBJECT) => ExpectedParts::List {
                most: most("maxItems", most_items),
            },
            () if !self.is_settled => ExpectedParts::Later,
            // What looks like a list may be an object: its content decides.
            () if allowed.alternatives.iter().any(is_object_only) => ExpectedParts::Later,
            () => ExpectedParts::ByPointers,
        }
    }

    /// Converts a text to a value; `None` if it does not match.
    pub fn read(&self, text: &str) -> Option<Value> {
        let spelling = self.reader.spelling(&self.allowed, text);
        // Errors inside a list or an object are left to validation.
        let is_wrong = spelling
            .type_error
            .is_some_and(|type_error| !type_error.is_inside);
        (!is_wrong).then(|| spelling.text_type.value(text))
    }
}

fn most_members(keywords: &Keywords) -> Option<usize> {
    let is_open = keywords.contains_key("patternProperties")
        || keywords.get("additionalProperties") != Some(&Value::Bool(false));
    let named = keywords.get("properties").and_then(Value::as_object);
    (!is_open).then(|| named.map_or(0, serde_json::Map::len))
}

fn most_items(keywords: &Keywords) -> Option<usize> {
    let no_more = |name: &str| keywords.get(name) == Some(&Value::Bool(false));
    match (keywords.get("prefixItems"), keywords.get("items")) {
        (Some(Value::Array(items)), _) => no_more("items").then_some(items.len()),
        (_, Some(Value::Array(items))) => no_more("additionalItems").then_some(items.len()),
        _ => None,
    }
}
