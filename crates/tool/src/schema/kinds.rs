//! Sets of JSON Schema types.

use std::ops::{BitAnd, BitOr};

use serde_json::{Map, Value};

use super::keywords::keyword;

/// Keywords that apply to objects only.
const FOR_OBJECTS: [&str; 6] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "propertyNames",
    "minProperties",
];
/// Keywords that apply to lists only.
const FOR_LISTS: [&str; 5] = [
    "items",
    "prefixItems",
    "contains",
    "minItems",
    "uniqueItems",
];

/// A set of types. `integer` contains the whole numbers, `number` all numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kinds(u8);

impl Kinds {
    pub(crate) const NONE: Self = Self(0);
    pub const NULL: Self = Self(1);
    pub const BOOLEAN: Self = Self(2);
    pub const WHOLE: Self = Self(4);
    pub const FRACTION: Self = Self(8);
    pub const STRING: Self = Self(16);
    pub const LIST: Self = Self(32);
    pub const OBJECT: Self = Self(64);
    pub const ALL: Self = Self(127);
    pub(crate) const NUMBER: Self = Self(4 | 8);

    pub const fn has(self, kinds: Self) -> bool {
        self.0 & kinds.0 == kinds.0
    }

    pub const fn has_any(self, kinds: Self) -> bool {
        self.0 & kinds.0 != 0
    }

    pub(crate) const fn without(self, kinds: Self) -> Self {
        Self(self.0 & !kinds.0)
    }

    /// Returns the types with this name in JSON Schema.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::WHOLE,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::LIST,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() != 0.0 => Self::FRACTION,
                _ => Self::WHOLE,
            },
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::LIST,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// Returns the types that `type`, `enum` and `const` allow; `None` without these keywords.
    pub(crate) fn stated(keywords: &Map<String, Value>) -> Option<Self> {
        let by_type = match keyword(keywords, "type") {
            Some(Value::String(name)) => Self::named(name),
            Some(Value::Array(names)) => names
                .iter()
                .map(|name| name.as_str().and_then(Self::named))
                .try_fold(Self::NONE, |all, one| one.map(|one| all | one)),
            _ => None,
        };
        let of_all = |values: &[Value]| {
            values
                .iter()
                .fold(Self::NONE, |all, value| all | Self::of(value))
        };
        let by_enum = keyword(keywords, "enum")
            .and_then(Value::as_array)
            .map(|values| of_all(values));
        let by_const = keyword(keywords, "const").map(Self::of);
        [by_type, by_enum, by_const]
            .into_iter()
            .flatten()
            .reduce(|one, other| one & other)
    }

    /// Returns the types that keywords for a single type imply.
    pub(crate) fn implied(keywords: &Map<String, Value>) -> Option<Self> {
        if FOR_OBJECTS
            .iter()
            .any(|name| keyword(keywords, name).is_some())
        {
            Some(Self::OBJECT)
        } else if FOR_LISTS
            .iter()
            .any(|name| keyword(keywords, name).is_some())
        {
            Some(Self::LIST)
        } else {
            None
        }
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Kinds {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}
