//! Arguments as a type: each value is parsed by what the type asks for.

use std::fmt::Display;
use std::str::FromStr;

use plaincall_syntax::Span;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use crate::argument_error::{ArgumentError, quoted};
use crate::arguments::{Arguments, Leaf};
use crate::decimal::Decimal;
use crate::expand::Expanded;
use crate::json_text;
use crate::pointer::Pointer;
use crate::reading::{Reading, boolean, decimal, is_null, is_null_or_none};
use crate::tree::{Node, NodeIndex, ROOT};

type Result<T> = std::result::Result<T, ArgumentError>;

impl Arguments {
    /// Reads the arguments as a type: each value is parsed by what the type asks for.
    ///
    /// `"02134"` is itself for a `String` and 2134 for a `u32`. Numbers may have a leading `+`, leading zeros, a point at
    /// either end (`.5`, `5.`) and an exponent, but no digit may be lost. Booleans may be `True` and `False`. Blank lines
    /// after such a value do not count. The text `null` is `None` for an `Option`; if the arguments were bound to a
    /// tool whose schema allows no string there, the text `None` is too. Lists and objects come from
    /// pointers or from JSON text. Where a type takes whatever comes (`serde_json::Value`, untagged and internally
    /// tagged enums, flattened fields), a value is what [`coerce`](crate::coerce) makes of it.
    ///
    /// # Errors
    /// Says what does not fit, with the pointer and the span of the value.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(Reader::root(self)).map_err(|error| error.or_at(|| ("", None)))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    arguments: &'a Arguments,
    node: NodeIndex,
    /// How many segments the pointer to it has.
    depth: usize,
    /// The pointers to empty lists and objects of JSON text.
    empty: &'a [(NodeIndex, String)],
}

enum Place<'a> {
    Object(Vec<(&'a str, NodeIndex)>),
    List(&'a [NodeIndex]),
    Value(&'a Leaf, &'a str),
}

impl<'a> Reader<'a> {
    pub(crate) fn root(arguments: &'a Arguments) -> Self {
        Self {
            arguments,
            node: ROOT,
            depth: 0,
            empty: &[],
        }
    }

    fn child(self, node: NodeIndex) -> Self {
        Self {
            node,
            depth: self.depth + 1,
            ..self
        }
    }

    fn place(self) -> Place<'a> {
        match self.arguments.tree().node(self.node) {
            Some(Node::Object(object)) => {
                Place::Object(object.iter().map(|(key, node)| (&**key, *node)).collect())
            }
            Some(Node::Array(items)) => Place::List(items),
            Some(Node::Leaf(index)) => match self.arguments.leaf(*index) {
                Some(leaf) => Place::Value(leaf, self.arguments.text(leaf)),
                None => Place::List(&[]),
            },
            None => Place::List(&[]),
        }
    }

    /// The pointer to this place and where it stands in the input.
    fn here(self) -> (&'a str, Option<Span>) {
        let first = self.arguments.tree().first_leaf(self.node);
        let Some(leaf) = first.and_then(|index| self.arguments.leaf(index)) else {
            let pointer = self.empty.iter().find(|(node, _)| *node == self.node);
            return (pointer.map_or("", |(_, pointer)| pointer), None);
        };
        match self.arguments.tree().node(self.node) {
            Some(Node::Leaf(_)) => (&leaf.pointer, Some(leaf.span)),
            _ if self.depth == 0 => ("", None),
            _ => (
                Pointer::beginning(&leaf.pointer, self.depth),
                Some(leaf.pointer_span),
            ),
        }
    }

    fn placed<T>(self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.or_at(|| self.here()))
    }

    fn refuse<T>(self, expected: impl Display) -> Result<T> {
        let found = match self.place() {
            Place::Object(_) => "an object".to_owned(),
            Place::List(_) => "a list".to_owned(),
            Place::Value(_, text) => quoted(text),
        };
        let message = format!("expected {expected}, found {found}");
        self.placed(Err(ArgumentError::custom(message)))
    }

    fn integer<T: FromStr>(self, least: impl Display, most: impl Display) -> Result<T> {
        let Place::Value(_, text) = self.place() else {
            return self.refuse("a whole number");
        };
        let Some(number) = decimal(text).filter(Decimal::is_whole) else {
            return self.refuse("a whole number");
        };
        let sign = if number.negative && !number.is_zero() {
            "-"
        } else {
            ""
        };
        let value = number
            .magnitude()
            .and_then(|magnitude| format!("{sign}{magnitude}").parse().ok());
        match value {
            Some(value) => Ok(value),
            None => self.refuse(format_args!("a whole number from {least} to {most}")),
        }
    }

    fn float(self) -> Result<f64> {
        let Place::Value(_, text) = self.place() else {
            return self.refuse("a number");
        };
        match decimal(text).map(|number| number.float_in_memory()) {
            Some(Some(float)) => Ok(float),
            Some(None) => self.refuse("a number with no more digits than a 64-bit number keeps"),
            None => self.refuse("a number"),
        }
    }

    /// The JSON text at this place, expanded; `None` if it is none that `fits`.
    fn json(self, text: &str, fits: impl FnOnce(&Value) -> bool) -> Option<Result<Expanded>> {
        let leaf = match self.place() {
            Place::Value(leaf, _) if leaf.reading != Reading::String => leaf,
            _ => return None,
        };
        if !text.trim_start().starts_with(['[', '{']) {
            return None;
        }
        Some(match json_text::parse(text) {
            Ok(value) if fits(&value) => Ok(Expanded::new(&value, &leaf.pointer, leaf.span)),
            Ok(_) => return None,
            Err(error) => {
                let message = format!("its JSON cannot be used: {error}");
                self.placed(Err(ArgumentError::custom(message)))
            }
        })
    }

    /// Goes on in the JSON text that stands here.
    fn inside<'j>(self, json: &'j Expanded) -> Reader<'j>
    where
        'a: 'j,
    {
        Reader {
            arguments: &json.arguments,
            node: json.node,
            depth: self.depth,
            empty: &json.empty,
        }
    }

    fn list<'de, V: Visitor<'de>>(self, items: &[NodeIndex], visitor: V) -> Result<V::Value> {
        let mut access = Items {
            reader: self,
            items: items.iter(),
        };
        let value = self.placed(visitor.visit_seq(&mut access))?;
        match access.items.len() {
            0 => Ok(value),
            left => {
                let message = format!("the list is too long by {left}");
                self.placed(Err(ArgumentError::custom(message)))
            }
        }
    }

    fn object<'de, V: Visitor<'de>>(
        self,
        members: Vec<(&str, NodeIndex)>,
        visitor: V,
    ) -> Result<V::Value> {
        self.placed(visitor.visit_map(Members {
            reader: self,
            rest: members.into_iter(),
            next: None,
        }))
    }
}

/// Writes the methods for all types of whole numbers with the given macro.
macro_rules! for_whole_numbers {
    ($methods:ident) => {
        $methods! {
            deserialize_i8 visit_i8 i8
            deserialize_i16 visit_i16 i16
            deserialize_i32 visit_i32 i32
            deserialize_i64 visit_i64 i64
            deserialize_i128 visit_i128 i128
            deserialize_u8 visit_u8 u8
            deserialize_u16 visit_u16 u16
            deserialize_u32 visit_u32 u32
            deserialize_u64 visit_u64 u64
            deserialize_u128 visit_u128 u128
        }
    };
}

macro_rules! integers {
    ($($method:ident $visit:ident $number:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let value = self.integer::<$number>($number::MIN, $number::MAX)?;
            self.placed(visitor.$visit(value))
        })*
    };
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = ArgumentError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.place() {
            Place::Object(members) => self.object(members, visitor),
            Place::List(items) => self.list(items, visitor),
            Place::Value(leaf, text) => match leaf.reading.value(text) {
                Value::Null => self.placed(visitor.visit_unit()),
                Value::Bool(value) => self.placed(visitor.visit_bool(value)),
                Value::String(value) => self.placed(visitor.visit_string(value)),
                Value::Number(value) => self.placed(match (value.as_u64(), value.as_i64()) {
                    (Some(value), _) => visitor.visit_u64(value),
                    (None, Some(value)) => visitor.visit_i64(value),
                    (None, None) => visitor.visit_f64(value.as_f64().unwrap_or(f64::NAN)),
                }),
                value @ (Value::Array(_) | Value::Object(_)) => {
                    let json = Expanded::new(&value, &leaf.pointer, leaf.span);
                    self.inside(&json).deserialize_any(visitor)
                }
            },
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let value = match self.place() {
            Place::Value(_, text) => boolean(text),
            _ => None,
        };
        match value {
            Some(value) => self.placed(visitor.visit_bool(value)),
            None => self.refuse("true or false"),
        }
    }

    for_whole_numbers!(integers);

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let value = self.float()?;
        self.placed(visitor.visit_f64(value))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.place() {
            Place::Value(_, text) => self.placed(visitor.visit_str(text)),
            Place::Object(_) | Place::List(_) => self.refuse("a text"),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.place() {
            Place::Value(_, text) => self.placed(visitor.visit_bytes(text.as_bytes())),
            Place::Object(_) | Place::List(_) => self.refuse("a text"),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.place() {
            Place::Value(leaf, text) if is_none(leaf.reading, text) => {
                self.placed(visitor.visit_none())
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.place() {
            Place::Value(_, text) if is_null_or_none(text) => self.placed(visitor.visit_unit()),
            // A tool without parameters has a call without arguments.
            Place::Object(members) if members.is_empty() && self.depth == 0 => {
                self.placed(visitor.visit_unit())
            }
            _ => self.refuse("null"),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.placed(visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.place() {
            Place::List(items) => self.list(items, visitor),
            Place::Value(_, text) => match self.json(text, Value::is_array) {
                Some(json) => self.inside(&json?).deserialize_seq(visitor),
                None => self.refuse("a list"),
            },
            Place::Object(_) => self.refuse("a list"),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.place() {
            Place::Object(members) => self.object(members, visitor),
            // Numeric segments make a list, unless the type says that they are keys.
            Place::List(items) => {
                let keys: Vec<String> = (0..items.len()).map(|index| index.to_string()).collect();
                let keys = keys.iter().map(String::as_str);
                self.object(keys.zip(items.iter().copied()).collect(), visitor)
            }
            Place::Value(_, text) => match self.json(text, Value::is_object) {
                Some(json) => self.inside(&json?).deserialize_map(visitor),
                None => self.refuse("an object"),
            },
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.place() {
            Place::List(_) => self.refuse("an object"),
            Place::Object(_) | Place::Value(..) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.place() {
            Place::Value(_, text) => match self.json(text, Value::is_object) {
                Some(json) => self
                    .inside(&json?)
                    .deserialize_enum(name, variants, visitor),
                None => self.placed(visitor.visit_enum(Variant {
                    name: text,
                    content: None,
                })),
            },
            Place::Object(members) => match *members.as_slice() {
                [(name, node)] => self.placed(visitor.visit_enum(Variant {
                    name,
                    content: Some(self.child(node)),
                })),
                _ => self.refuse("an object with one member"),
            },
            Place::List(_) => self.refuse("a name"),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }
}

/// Whether an optional value is left out. Without a schema, what is optional may be a string.
fn is_none(reading: Reading, text: &str) -> bool {
    reading == Reading::Null || (reading != Reading::String && is_null(text))
}

struct Items<'a, 'i> {
    reader: Reader<'a>,
    items: std::slice::Iter<'i, NodeIndex>,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = ArgumentError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(&node) = self.items.next() else {
            return Ok(None);
        };
        let reader = self.reader.child(node);
        reader.placed(seed.deserialize(reader)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Members<'a, 'k> {
    reader: Reader<'a>,
    rest: std::vec::IntoIter<(&'k str, NodeIndex)>,
    next: Option<NodeIndex>,
}

impl<'de> MapAccess<'de> for Members<'_, '_> {
    type Error = ArgumentError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some((key, node)) = self.rest.next() else {
            return Ok(None);
        };
        self.next = Some(node);
        seed.deserialize(Key { key }).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        let Some(node) = self.next.take() else {
            return Err(ArgumentError::custom(
                "a value was asked for before its key",
            ));
        };
        let reader = self.reader.child(node);
        reader.placed(seed.deserialize(reader))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A key of an object: a text, or a number where the type of the keys is one.
struct Key<'k> {
    key: &'k str,
}

macro_rules! key_numbers {
    ($($method:ident $visit:ident $number:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.key.parse::<$number>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(ArgumentError::custom(format_args!(
                    "expected keys that are whole numbers from {} to {}, found {}",
                    $number::MIN, $number::MAX, quoted(self.key)
                ))),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = ArgumentError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_str(self.key)
    }

    for_whole_numbers!(key_numbers);

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.key {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_enum(StrDeserializer::<ArgumentError>::new(self.key))
    }

    forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Variant<'a> {
    name: &'a str,
    content: Option<Reader<'a>>,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = ArgumentError;
    type Variant = Content<'a>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Content<'a>)> {
        let name = seed.deserialize(Key { key: self.name })?;
        Ok((name, Content(self.content)))
    }
}

struct Content<'a>(Option<Reader<'a>>);

impl<'a> Content<'a> {
    fn reader(self) -> Result<Reader<'a>> {
        self.0.ok_or_else(|| {
            ArgumentError::custom("this name needs something under it, and stands alone")
        })
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = ArgumentError;

    fn unit_variant(self) -> Result<()> {
        match self.0 {
            None => Ok(()),
            Some(reader) => reader.deserialize_unit(serde::de::IgnoredAny).map(drop),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        let reader = self.reader()?;
        reader.placed(seed.deserialize(reader))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        self.reader()?.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.reader()?.deserialize_struct("", fields, visitor)
    }
}
