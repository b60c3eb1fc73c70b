//! JSON written as a value or body: read without losing a digit or a member. And JSON for a line of its own.

use std::fmt::{self, Write as _};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::decimal::{Decimal, Notation};

/// Reads a JSON text without losing a digit or a member.
///
/// ```
/// use plaincall_call::json::parse as parse_json;
///
/// assert_eq!(parse_json("[1.50, \"a\"]"), Ok(serde_json::json!([1.5, "a"])));
/// assert!(parse_json("{\"a\": 1, \"a\": 2}").is_err());
/// let message = parse_json("123456789012345678901234567890").unwrap_err();
/// assert_eq!(message, "the number 123456789012345678901234567890 has too many digits");
/// ```
///
/// # Errors
/// Says in a phrase what is wrong: no JSON, a key twice in one object, a number with more digits than are kept.
pub fn parse(text: &str) -> Result<Value, String> {
    parse_placed(text).map_err(|fault| fault.to_string())
}

pub(crate) fn parse_placed(text: &str) -> Result<Value, Fault> {
    let Unique(value) = serde_json::from_str(text).map_err(|error| Fault::of(&error))?;
    match numbers(text).find(|number| !is_kept(number)) {
        Some(number) => Err(Fault {
            message: format!("the number {number} has too many digits"),
            place: None,
        }),
        None => Ok(value),
    }
}

/// Why a text cannot be read as JSON. It shows itself as a phrase with the place.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) message: String,
    /// Line and column from 1, the column in bytes, if the place is known.
    pub(crate) place: Option<(usize, usize)>,
}

impl Fault {
    fn of(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        match text.strip_suffix(&place) {
            Some(cause) => Self {
                message: match cause.strip_prefix("EOF while parsing ") {
                    Some(part) => format!("it ends inside {part}"),
                    None => cause.to_owned(),
                },
                place: Some((error.line(), error.column())),
            },
            None => Self {
                message: text,
                place: None,
            },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match self.place {
            Some((line, column)) => write!(formatter, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}

/// The message of an error of the JSON reader, its place in words.
pub(crate) fn phrase(error: &serde_json::Error) -> String {
    Fault::of(error).to_string()
}

/// A value as JSON on one line, whatever counts as a line end to its reader.
pub(crate) fn on_one_line(value: &Value) -> String {
    let text = value.to_string();
    // `serde_json` leaves these as they are; they stand in strings only.
    let is_break = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if !text.contains(is_break) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_break(c) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

fn is_kept(number: &str) -> bool {
    Decimal::parse(number, Notation::Free).is_some_and(|decimal| {
        let is_plain = !number.contains(['.', 'e', 'E']);
        (is_plain && decimal.integer().is_some()) || decimal.float().is_some()
    })
}

/// The numbers in a text that is known to be JSON.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut in_string = false;
    let mut is_escaped = false;
    text.split(move |character: char| {
        if in_string {
            in_string = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
            true
        } else {
            in_string = character == '"';
            !matches!(character, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')
        }
    })
    // `true` and `false` hold an `e`.
    .filter(|piece| piece.contains(|character: char| character.is_ascii_digit()))
}

/// A JSON value in whose objects every key stands once.
struct Unique(Value);

struct UniqueVisitor;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Unique;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Unique, A::Error> {
        let mut items = Vec::new();
        while let Some(Unique(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Unique(items.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Unique, A::Error> {
        let mut members = Map::new();
        while let Some((key, Unique(member))) = access.next_entry::<String, Unique>()? {
            if members.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key {key:?}")));
            }
            members.insert(key, member);
        }
        Ok(Unique(members.into()))
    }
}
