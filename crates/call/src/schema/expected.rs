//! What a schema says about a place before the whole call is there (`spec/json-stream.md` 2).

use serde_json::Value;

use super::alternative::{Alternative, Keywords};
use super::kinds::Kinds;
use super::place::{Place, SchemaReader};
use crate::json_stream::shape::{ExpectedParts, ExpectedValue};
use crate::pointer::is_index;

/// What may stand at a place.
pub(crate) struct Expected<'r, 's> {
    reader: &'r SchemaReader<'s>,
    place: Place<'s>,
    /// Whether nothing else in the call can change what may stand there.
    is_settled: bool,
    /// Whether the root names what leads there, by name or by pattern.
    is_declared: bool,
}

impl<'r, 's> Expected<'r, 's> {
    pub(crate) fn at(reader: &'r SchemaReader<'s>, segments: &[&str]) -> Self {
        let mut place = reader.root();
        let mut is_settled = true;
        let is_declared = segments.first().is_some_and(|name| place.declares(name));
        for segment in segments {
            let both = Kinds::LIST | Kinds::OBJECT;
            let is_open = place.alternatives.iter().all(|one| one.all.is_empty());
            is_settled &= is_open || (place.alternatives.len() < 2 && !place.kinds().has(both));
            place = if place.has_keys_only() || !is_index(segment) {
                reader.member(&place, segment)
            } else {
                reader.item(&place, segment.parse().unwrap_or(usize::MAX))
            };
        }
        Self {
            reader,
            place,
            is_settled,
            is_declared,
        }
    }

    pub(crate) fn is_declared(&self) -> bool {
        self.is_declared
    }

    /// Whether a member is named letter by letter.
    pub(crate) fn spells(&self, key: &str) -> bool {
        self.place.spells(key)
    }

    /// What a value is. Where a value or its neighbours decide between several schemas, the types that all of them
    /// allow are still certain.
    pub(crate) fn value(&self) -> ExpectedValue {
        let kinds = self.place.kinds();
        let is_stated = self
            .place
            .alternatives
            .iter()
            .all(|one| one.kinds().is_some());
        let is_unknown = self
            .place
            .alternatives
            .iter()
            .all(|one| one.kinds().is_none());
        match () {
            () if self.place.alternatives.is_empty() => ExpectedValue::Nothing,
            () if is_stated && kinds == Kinds::STRING => ExpectedValue::Text,
            () if !self.is_settled => ExpectedValue::Later,
            () if is_stated && kinds == Kinds::STRING | Kinds::NULL => ExpectedValue::TextOrNull,
            () if is_unknown => ExpectedValue::Guessed,
            () => ExpectedValue::Whole,
        }
    }

    /// What a list or an object is.
    pub(crate) fn parts(&self) -> ExpectedParts {
        let kinds = self.place.kinds();
        let most = |of: fn(&Keywords) -> Option<usize>| match self.place.alternatives.as_slice() {
            [Alternative { all }] => all.iter().filter_map(|keywords| of(keywords)).min(),
            _ => None,
        };
        match () {
            () if !kinds.has_any(Kinds::LIST | Kinds::OBJECT) => ExpectedParts::Nothing,
            () if !self.is_settled => ExpectedParts::Later,
            () if !kinds.has(Kinds::LIST) => ExpectedParts::Object {
                most: most(most_members),
            },
            () if !kinds.has(Kinds::OBJECT) => ExpectedParts::List {
                most: most(most_items),
            },
            () => ExpectedParts::ByPointers,
        }
    }

    /// The value that a text is; `None` if it does not fit.
    pub(crate) fn read(&self, text: &str) -> Option<Value> {
        let spelling = self.reader.spelling(&self.place, text);
        spelling
            .misfit
            .is_none()
            .then(|| spelling.reading.value(text))
    }
}

fn most_members(keywords: &Keywords) -> Option<usize> {
    let is_open = keywords.contains_key("patternProperties")
        || keywords.get("additionalProperties") != Some(&Value::Bool(false));
    let named = keywords.get("properties").and_then(Value::as_object);
    let count = named.map_or(0, serde_json::Map::len);
    least(
        (!is_open).then_some(count),
        stated(keywords, "maxProperties"),
    )
}

fn most_items(keywords: &Keywords) -> Option<usize> {
    let no_more = |name: &str| keywords.get(name) == Some(&Value::Bool(false));
    let tuple = match (keywords.get("prefixItems"), keywords.get("items")) {
        (Some(Value::Array(items)), _) => no_more("items").then_some(items.len()),
        (_, Some(Value::Array(items))) => no_more("additionalItems").then_some(items.len()),
        _ => None,
    };
    least(tuple, stated(keywords, "maxItems"))
}

fn stated(keywords: &Keywords, name: &str) -> Option<usize> {
    usize::try_from(keywords.get(name)?.as_u64()?).ok()
}

fn least(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    one.into_iter().chain(other).min()
}
