//! Deserialization of a tree. After an error, the invalid value is skipped and the rest is deserialized again.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use plaincall_names::did_you_mean;
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Expected, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use crate::document::Location;
use crate::node::{Node, Value, child, last_key};

/// The maximum number of invalid values reported in a part, one per pass. Unknown keys are not limited.
const MOST_PASSES: usize = 50;

/// The expected forms of the key `retry`.
const RETRY: &str = "a number of attempts, such as 3, or a table, such as { attempts = 3, first_wait = \"500ms\", longest_wait = \"30s\" }";

pub(crate) type LocatedMessage = (Location, String);

/// The errors found so far.
struct Found<'f> {
    wrong: &'f mut BTreeSet<String>,
    errors: Vec<LocatedMessage>,
}

/// Deserializes a value. `wrong` contains the pointers to values that are skipped because they are invalid.
pub(crate) fn read<T: DeserializeOwned>(
    node: &Node,
    pointer: &str,
    wrong: &mut BTreeSet<String>,
) -> (Option<T>, Vec<LocatedMessage>) {
    let errors = Vec::new();
    let found = RefCell::new(Found { wrong, errors });
    // Array elements are named after the array.
    let mut names = pointer.rsplit('/').map(last_key);
    let name = names.find(|name| name.parse::<usize>().is_err());
    let name = name.unwrap_or_default();
    let mut value = None;
    for _ in 0..MOST_PASSES {
        let reader = Reader {
            node,
            pointer: pointer.to_owned(),
            key: &name,
            found: &found,
        };
        let (place, message) = match T::deserialize(&reader) {
            Ok(read) => {
                value = Some(read);
                break;
            }
            Err(error) => reader.place(error),
        };
        let Found { wrong, errors } = &mut *found.borrow_mut();
        // The missing value may be one that was skipped.
        let lacks_wrong = is_wrong(wrong, place.pointer());
        wrong.insert(place.pointer().to_owned());
        let is_whole = place.pointer() == pointer;
        if !lacks_wrong {
            errors.push((place, message));
        }
        if is_whole {
            break;
        }
    }
    (value, found.into_inner().errors)
}

/// Returns whether a value or a part of it is invalid.
pub(crate) fn is_wrong(wrong: &BTreeSet<String>, pointer: &str) -> bool {
    let below = format!("{pointer}/");
    let first = wrong.range(below.clone()..).next();
    wrong.contains(pointer) || first.is_some_and(|first| first.starts_with(&below))
}

/// Why a value cannot be deserialized.
#[derive(Debug)]
pub(crate) enum Error {
    /// The expected kind of value.
    Wanted(String),
    /// An error of a table, such as a missing key.
    OfTable(String),
    /// A complete message with its location.
    Placed(Location, String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Wanted(text) | Self::OfTable(text) | Self::Placed(_, text)) = self;
        formatter.write_str(text)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(wanted: T) -> Self {
        let wanted = wanted.to_string();
        Self::Wanted(match wanted.as_str() {
            "a string" => "a string".to_owned(),
            "a boolean" => "true or false".to_owned(),
            "a sequence" => "an array".to_owned(),
            "a map" => "a table".to_owned(),
            "f64" => "a number".to_owned(),
            "u32" | "u64" | "usize" => "an integer of at least 0".to_owned(),
            "a nonzero u32" => "an integer of at least 1".to_owned(),
            name if name.starts_with("struct ") => "a table".to_owned(),
            _ => wanted,
        })
    }

    fn invalid_type(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::custom(wanted)
    }

    fn invalid_value(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::custom(wanted)
    }

    fn invalid_length(_: usize, wanted: &dyn Expected) -> Self {
        Self::custom(wanted)
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::Wanted(one_of(known))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::OfTable(unknown(field, known))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::OfTable(format!("missing key `{field}`"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::OfTable(format!(
            "duplicate key `{field}`, also set under another name"
        ))
    }
}

/// Lists the allowed strings.
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [front @ .., last] if !front.is_empty() => format!("{} or {last}", front.join(", ")),
        _ => quoted.concat(),
    }
}

/// The message about an unknown key.
pub(crate) fn unknown(key: &str, known: &[&str]) -> String {
    let mut end = did_you_mean(key, known.iter().copied());
    if end.is_empty() {
        end = format!("; the keys are {}", known.join(", "));
    }
    format!("unknown key `{key}`{end}")
}

/// Deserializes one node.
struct Reader<'n, 'f> {
    node: &'n Node,
    pointer: String,
    /// The innermost key of the pointer.
    key: &'n str,
    found: &'n RefCell<Found<'f>>,
}

impl<'n> Reader<'n, '_> {
    /// Returns the location of an error, which defaults to this node, and its message.
    fn place(&self, error: Error) -> LocatedMessage {
        match error {
            Error::Placed(place, message) => (place, message),
            Error::OfTable(message) => (Location::key(&self.pointer), message),
            Error::Wanted(wanted) => {
                let is_element = !self.key.is_empty() && last_key(&self.pointer) != self.key;
                let element = if is_element { "an element of " } else { "" };
                let mut kinds = ["a string", "an array", "a table"].iter();
                let kind = if kinds.any(|kind| wanted.starts_with(kind)) {
                    self.node.kind().to_owned()
                } else {
                    self.node.kind_and_value()
                };
                let key = self.key;
                let message = format!("{element}`{key}` is {kind}; it must be {wanted}");
                (Location::value(&self.pointer), message)
            }
        }
    }

    fn deserialize<'de, S: DeserializeSeed<'de>>(&self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self).map_err(|error| {
            let (place, message) = self.place(error);
            Error::Placed(place, message)
        })
    }

    fn table<'de, V: Visitor<'de>>(
        &self,
        known: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Value::Table(table) = &self.node.value else {
            return self.other(visitor);
        };
        let mut entries = Entries {
            table: self,
            rest: table.iter(),
            known,
            next: None,
        };
        let result = visitor.visit_map(&mut entries);
        match (result, entries.next) {
            // The key whose value was not deserialized is unknown or a duplicate.
            (Err(Error::OfTable(message)), Some(entry)) => {
                Err(Error::Placed(Location::Key(entry.pointer), message))
            }
            (result, _) => result,
        }
    }

    /// Deserializes anything but a table.
    fn other<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::List(items) => visitor.visit_seq(Elements {
                list: self,
                rest: items.iter().enumerate(),
            }),
            Value::Table(_) => Err(de::Error::invalid_type(Unexpected::Map, &visitor)),
            Value::Null => visitor.visit_unit(),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Text(text) => visitor.visit_str(text),
            Value::DateTime(_) => Err(de::Error::invalid_type(Unexpected::Unit, &visitor)),
            Value::Number(text) => match (text.parse::<u64>(), text.parse::<i64>(), text.parse()) {
                (Ok(number), ..) => visitor.visit_u64(number),
                (_, Ok(number), _) => visitor.visit_i64(number),
                // An integer with more digits would lose precision.
                (.., Ok(number)) if f64::is_finite(number) && text.contains(['.', 'e', 'E']) => {
                    visitor.visit_f64(number)
                }
                _ => Err(de::Error::invalid_type(Unexpected::Unit, &visitor)),
            },
        }
    }

    /// Returns the reader for a part of this value; `None` if it is skipped.
    fn below(&self, node: &'n Node, pointer: String, key: &'n str) -> Option<Self> {
        let is_skipped = self.found.borrow().wrong.contains(&pointer);
        (!is_skipped).then_some(Self {
            node,
            pointer,
            key,
            found: self.found,
        })
    }
}

/// The own types that other kinds of values may become have names that begin with `$`, which the type of a program cannot have.
impl<'de> de::Deserializer<'de> for &Reader<'_, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.table(None, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match (name, &self.node.value) {
            ("$RetryTable", Value::Number(attempts)) => {
                let attempts = attempts.parse::<u64>();
                let attempts = attempts.map_err(|_| Error::Wanted(RETRY.to_owned()))?;
                let table = std::iter::once(("attempts", attempts));
                visitor.visit_map(de::value::MapDeserializer::new(table))
            }
            ("$RetryTable", value) if !matches!(value, Value::Table(_)) => {
                Err(Error::Wanted(RETRY.to_owned()))
            }
            _ => self.table(Some(fields), visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = match (name, &self.node.value) {
            ("$AsText", Value::Number(text) | Value::DateTime(text)) => text,
            ("$AsText", Value::Boolean(value)) => &value.to_string(),
            ("$OneOrMore", Value::Text(text)) => {
                let items = std::iter::once(text.as_str());
                return visitor.visit_newtype_struct(de::value::SeqDeserializer::new(items));
            }
            ("$Effects", Value::Text(text)) => {
                let all = std::iter::once(("**", text.as_str()));
                return visitor.visit_newtype_struct(de::value::MapDeserializer::new(all));
            }
            ("$OneOrMore", value) if !matches!(value, Value::List(_)) => {
                return Err(Error::Wanted("a string or an array of strings".to_owned()));
            }
            _ => return visitor.visit_newtype_struct(self),
        };
        visitor.visit_newtype_struct(StrDeserializer::new(text))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Text(text) if words.contains(&text.as_str()) => {
                visitor.visit_enum(StrDeserializer::new(text))
            }
            Value::Text(text) => {
                let near = did_you_mean(text, words.iter().copied());
                let (key, words) = (self.key, one_of(words));
                let message = format!("`{key}` cannot be `{text}`; it must be {words}{near}");
                Err(Error::Placed(Location::value(&self.pointer), message))
            }
            _ => Err(Error::Wanted(one_of(words))),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

struct Entries<'r, 'n, 'f> {
    table: &'r Reader<'n, 'f>,
    rest: indexmap::map::Iter<'n, String, Node>,
    known: Option<&'static [&'static str]>,
    next: Option<Reader<'n, 'f>>,
}

impl<'de> de::MapAccess<'de> for &mut Entries<'_, '_, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.next = None;
        for (key, node) in self.rest.by_ref() {
            let pointer = child(&self.table.pointer, key);
            let Some(entry) = self.table.below(node, pointer, key) else {
                continue;
            };
            if let Some(known) = self.known.filter(|known| !known.contains(&key.as_str())) {
                let mut found = self.table.found.borrow_mut();
                found.wrong.insert(entry.pointer.clone());
                let error = (Location::Key(entry.pointer), unknown(key, known));
                found.errors.push(error);
                continue;
            }
            self.next = Some(entry);
            return seed.deserialize(StrDeserializer::new(key)).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        match self.next.take() {
            Some(entry) => entry.deserialize(seed),
            None => Err(de::Error::custom("a key without a value")),
        }
    }
}

struct Elements<'r, 'n, 'f> {
    list: &'r Reader<'n, 'f>,
    rest: std::iter::Enumerate<std::slice::Iter<'n, Node>>,
}

impl<'de> de::SeqAccess<'de> for Elements<'_, '_, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        for (index, node) in self.rest.by_ref() {
            let pointer = format!("{}/{index}", self.list.pointer);
            if let Some(element) = self.list.below(node, pointer, self.list.key) {
                return element.deserialize(seed).map(Some);
            }
        }
        Ok(None)
    }
}
