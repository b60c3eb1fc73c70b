//! Parsing of JSON in text, without losing duplicate keys.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Parses a JSON list or object. Parsers differ in which value of a duplicate key they use, so all are kept, as a list.
pub(super) fn parse_container(text: &str) -> Option<Value> {
    let is_open = text.trim_start().starts_with(['[', '{']);
    let read = || serde_json::from_str::<Whole>(text).ok();
    is_open.then(read).flatten().map(|Whole(value)| value)
}

struct Whole(Value);

impl<'d> Deserialize<'d> for Whole {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor).map(Self)
    }
}

struct WholeVisitor;

impl<'d> Visitor<'d> for WholeVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<S: SeqAccess<'d>>(self, mut list: S) -> Result<Value, S::Error> {
        let mut items = Vec::new();
        while let Some(Whole(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<M: MapAccess<'d>>(self, mut object: M) -> Result<Value, M::Error> {
        let mut members = Map::new();
        while let Some((key, Whole(value))) = object.next_entry::<String, Whole>()? {
            let value = match members.remove(&key) {
                Some(before) => Value::Array(vec![before, value]),
                None => value,
            };
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}
