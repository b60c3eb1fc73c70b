//! Conversion of arguments to a type.

use std::borrow::Cow;
use std::fmt::Display;
use std::iter::Enumerate;
use std::str::FromStr;
use std::vec;

use plaincall_syntax::Span;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use crate::ArgumentError;
use crate::Arguments;
use crate::argument_error::quoted;
use crate::decimal::Decimal;
use crate::json_text;
use crate::text_type::{TextType, boolean, decimal, is_null, is_null_or_none};
use crate::tree::{Node, NodeIndex, ROOT};

type Result<T> = std::result::Result<T, ArgumentError>;

impl Arguments {
    /// Converts the arguments to a type; the type decides how each value is parsed.
    ///
    /// `"02134"` stays as written for a `String` and becomes 2134 for a `u32`. Numbers may have a leading `+`, leading
    /// zeros, a point at either end (`.5`, `5.`) and an exponent, but no digit may be lost. Booleans may be `True` and
    /// `False`. Blank lines after such a value do not count. The text `null` becomes `None` for an `Option`; so does
    /// the text `None` if the arguments were bound to a tool whose schema allows no string there. Lists and objects
    /// come from pointers or from JSON text. For a type that accepts any value (`serde_json::Value`, untagged and
    /// internally tagged enums, flattened fields), [`coerce`](crate::json::coerce) converts the value.
    ///
    /// # Errors
    /// Returns the first value that does not match the type, with its pointer and span.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(Reader::Node(self, ROOT))
    }
}

/// Converts JSON to a type, with the pointer of a value that does not match.
#[cfg(all(feature = "jsonschema", feature = "schemars"))]
pub fn from_json<T: DeserializeOwned>(value: &Value) -> Result<T> {
    T::deserialize(Reader::Json(value))
}

/// The location in the arguments that is being read.
#[derive(Clone, Copy)]
enum Reader<'a> {
    Node(&'a Arguments, NodeIndex),
    /// Part of the JSON text of a value.
    Json(&'a Value),
}

enum Shape<'a> {
    Object(Vec<(Cow<'a, str>, Reader<'a>)>),
    List(Vec<Reader<'a>>),
    Value(TextType, Cow<'a, str>),
}

impl<'a> Reader<'a> {
    fn shape(self) -> Shape<'a> {
        let (arguments, node) = match self {
            Self::Node(arguments, node) => (arguments, arguments.tree.node(node)),
            Self::Json(Value::Object(members)) => {
                let members = members.iter();
                let members = members.map(|(key, value)| (key.into(), Self::Json(value)));
                return Shape::Object(members.collect());
            }
            Self::Json(Value::Array(items)) => {
                return Shape::List(items.iter().map(Self::Json).collect());
            }
            Self::Json(Value::String(text)) => return Shape::Value(TextType::String, text.into()),
            Self::Json(other) => return Shape::Value(TextType::Json, other.to_string().into()),
        };
        let at = |node: NodeIndex| Self::Node(arguments, node);
        match node {
            Some(Node::Object(object)) => {
                let members = object.iter().map(|(key, node)| (key.into(), at(node)));
                Shape::Object(members.collect())
            }
            Some(Node::Array(items)) => Shape::List(items.iter().copied().map(at).collect()),
            Some(Node::Leaf(index)) => match arguments.leaves.get(*index) {
                Some(leaf) => Shape::Value(leaf.text_type, arguments.text(leaf).into()),
                None => Shape::List(Vec::new()),
            },
            None => Shape::List(Vec::new()),
        }
    }

    /// Returns its location in the input, if it is known; for part of a JSON text, that of the whole value.
    fn span(self) -> Option<Span> {
        let Self::Node(arguments, node) = self else {
            return None;
        };
        let leaf = arguments.leaves.get(arguments.tree.first_leaf(node)?)?;
        let span = match arguments.tree.node(node)? {
            Node::Leaf(_) => leaf.span,
            _ => leaf.pointer_span,
        };
        Some(span).filter(|span| *span != Span::default())
    }

    /// Reads the value at this location, which its parent calls `key`.
    fn read<'de, T: DeserializeSeed<'de>>(self, key: &str, seed: T) -> Result<T::Value> {
        let value = seed.deserialize(self);
        value.map_err(|error| error.inside(key, self.span()))
    }

    fn refuse<T>(self, expected: impl Display) -> Result<T> {
        let found = match self.shape() {
            Shape::Object(_) => "an object".to_owned(),
            Shape::List(_) => "a list".to_owned(),
            Shape::Value(_, text) => quoted(&text),
        };
        Err(ArgumentError::custom(format_args!(
            "expected {expected}, found {found}"
        )))
    }

    fn number(self, expected: &str) -> Result<Decimal> {
        match self.shape() {
            Shape::Value(_, text) => decimal(&text).map_or_else(|| self.refuse(expected), Ok),
            Shape::Object(_) | Shape::List(_) => self.refuse(expected),
        }
    }

    fn integer<T: FromStr>(self, least: impl Display, most: impl Display) -> Result<T> {
        let number = self.number("an integer")?;
        if !number.is_whole() {
            return self.refuse("an integer");
        }
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
            None => self.refuse(format_args!("an integer from {least} to {most}")),
        }
    }

    /// Parses the JSON text at this location; `None` if it is not JSON that `fits`.
    fn json(self, fits: impl FnOnce(&Value) -> bool) -> Option<Result<Value>> {
        let text = match self.shape() {
            Shape::Value(text_type, text) if text_type != TextType::String => text,
            _ => return None,
        };
        if !text.trim_start().starts_with(['[', '{']) {
            return None;
        }
        match json_text::parse(&text) {
            Ok(value) => fits(&value).then_some(Ok(value)),
            Err(error) => Some(Err(ArgumentError::custom(format_args!(
                "invalid JSON: {error}"
            )))),
        }
    }
}

fn list<'de, V: Visitor<'de>>(items: Vec<Reader<'_>>, visitor: V) -> Result<V::Value> {
    let mut access = Items(items.into_iter().enumerate());
    let value = visitor.visit_seq(&mut access)?;
    match access.0.len() {
        0 => Ok(value),
        left => Err(ArgumentError::custom(format_args!(
            "the list is too long by {left}"
        ))),
    }
}

fn object<'de, V: Visitor<'de>>(
    members: Vec<(Cow<'_, str>, Reader<'_>)>,
    visitor: V,
) -> Result<V::Value> {
    visitor.visit_map(Members {
        rest: members.into_iter(),
        next: None,
    })
}

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
            visitor.$visit(value)
        })*
    };
}

/// Methods of a deserializer that do the same as another one.
macro_rules! same_as {
    ($($method:ident($($parameter:ty),*) is $other:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self $(, _: $parameter)*, visitor: V) -> Result<V::Value> {
            self.$other(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = ArgumentError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.shape() {
            Shape::Object(members) => object(members, visitor),
            Shape::List(items) => list(items, visitor),
            Shape::Value(text_type, text) => match text_type.value(&text) {
                Value::Null => visitor.visit_unit(),
                Value::Bool(value) => visitor.visit_bool(value),
                Value::String(value) => visitor.visit_string(value),
                Value::Number(value) => match (value.as_u64(), value.as_i64()) {
                    (Some(value), _) => visitor.visit_u64(value),
                    (None, Some(value)) => visitor.visit_i64(value),
                    (None, None) => visitor.visit_f64(value.as_f64().unwrap_or(f64::NAN)),
                },
                value @ (Value::Array(_) | Value::Object(_)) => {
                    Reader::Json(&value).deserialize_any(visitor)
                }
            },
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let value = match self.shape() {
            Shape::Value(_, text) => boolean(&text),
            _ => None,
        };
        match value {
            Some(value) => visitor.visit_bool(value),
            None => self.refuse("true or false"),
        }
    }

    for_whole_numbers!(integers);

    same_as! {
        deserialize_f32() is deserialize_f64;
        deserialize_char() is deserialize_str;
        deserialize_string() is deserialize_str;
        deserialize_identifier() is deserialize_str;
        deserialize_byte_buf() is deserialize_bytes;
        deserialize_unit_struct(&'static str) is deserialize_unit;
        deserialize_tuple(usize) is deserialize_seq;
        deserialize_tuple_struct(&'static str, usize) is deserialize_seq;
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.number("a number")?.float_in_memory() {
            Some(value) => visitor.visit_f64(value),
            None => self.refuse("a number that fits into 64 bits"),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.shape() {
            Shape::Value(_, text) => visitor.visit_str(&text),
            Shape::Object(_) | Shape::List(_) => self.refuse("a string"),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.shape() {
            Shape::Value(_, text) => visitor.visit_bytes(text.as_bytes()),
            Shape::Object(_) | Shape::List(_) => self.refuse("a string"),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.shape() {
            Shape::Value(text_type, text) if is_none(text_type, &text) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.shape() {
            Shape::Value(_, text) if is_null_or_none(&text) => visitor.visit_unit(),
            // A tool without parameters has a call without arguments.
            Shape::Object(members) if members.is_empty() && matches!(self, Self::Node(_, ROOT)) => {
                visitor.visit_unit()
            }
            _ => self.refuse("null"),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.shape() {
            Shape::List(items) => list(items, visitor),
            _ => match self.json(Value::is_array) {
                Some(json) => Reader::Json(&json?).deserialize_seq(visitor),
                None => self.refuse("a list"),
            },
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.shape() {
            Shape::Object(members) => object(members, visitor),
            // Numeric segments are a list, unless the type has them as keys.
            Shape::List(items) => {
                let members = items.into_iter().enumerate();
                let members = members.map(|(index, item)| (index.to_string().into(), item));
                object(members.collect(), visitor)
            }
            Shape::Value(..) => match self.json(Value::is_object) {
                Some(json) => Reader::Json(&json?).deserialize_map(visitor),
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
        match self.shape() {
            Shape::List(_) => self.refuse("an object"),
            Shape::Object(_) | Shape::Value(..) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.shape() {
            Shape::Value(_, text) => match self.json(Value::is_object) {
                Some(json) => Reader::Json(&json?).deserialize_enum(name, variants, visitor),
                None => visitor.visit_enum(Variant {
                    name: &text,
                    content: None,
                }),
            },
            Shape::Object(members) => match members.as_slice() {
                [(name, content)] => visitor.visit_enum(Variant {
                    name,
                    content: Some(*content),
                }),
                _ => self.refuse("an object with one member"),
            },
            Shape::List(_) => self.refuse("a name"),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }
}

/// Returns `true` if an optional value is omitted. Without a schema, it may be a string.
fn is_none(text_type: TextType, text: &str) -> bool {
    text_type == TextType::Null || (text_type != TextType::String && is_null(text))
}

struct Items<'a>(Enumerate<vec::IntoIter<Reader<'a>>>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = ArgumentError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let next = self.0.next();
        next.map(|(index, item)| item.read(&index.to_string(), seed))
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Members<'a> {
    rest: vec::IntoIter<(Cow<'a, str>, Reader<'a>)>,
    next: Option<(Cow<'a, str>, Reader<'a>)>,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = ArgumentError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.next = self.rest.next();
        let key = self.next.as_ref().map(|(key, _)| Key { key });
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        let Some((key, value)) = self.next.take() else {
            return Err(ArgumentError::custom("value requested before its key"));
        };
        value.read(&key, seed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A key of an object: a text, or a number if the type of the keys is numeric.
struct Key<'k> {
    key: &'k str,
}

macro_rules! key_numbers {
    ($($method:ident $visit:ident $number:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.key.parse::<$number>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(ArgumentError::custom(format_args!(
                    "expected keys that are integers from {} to {}, found {}",
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

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = ArgumentError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self)> {
        let name = seed.deserialize(Key { key: self.name })?;
        Ok((name, self))
    }
}

impl Variant<'_> {
    fn read<T>(self, read: impl FnOnce(Reader<'_>) -> Result<T>) -> Result<T> {
        let Some(content) = self.content else {
            let message = "this name requires a value";
            return Err(ArgumentError::custom(message));
        };
        read(content).map_err(|error| error.inside(self.name, content.span()))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = ArgumentError;

    fn unit_variant(self) -> Result<()> {
        match self.content {
            None => Ok(()),
            Some(_) => self.read(|content| content.deserialize_unit(IgnoredAny).map(drop)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        self.read(|content| seed.deserialize(content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        self.read(|content| content.deserialize_tuple(len, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.read(|content| content.deserialize_struct("", fields, visitor))
    }
}
