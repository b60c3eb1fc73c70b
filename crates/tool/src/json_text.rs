//! JSON in values and bodies, parsed without losing a digit or a member, and JSON on one line.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::decimal::{Decimal, Notation};

/// Parses JSON without losing a digit or a member.
///
/// ```
/// use plaincall_tool::json::parse as parse_json;
///
/// assert_eq!(parse_json("[1.50, \"a\"]"), Ok(serde_json::json!([1.5, "a"])));
/// assert!(parse_json("{\"a\": 1, \"a\": 2}").is_err());
/// let message = parse_json("123456789012345678901234567890").unwrap_err();
/// assert_eq!(message, "the number 123456789012345678901234567890 has too many digits");
/// ```
///
/// # Errors
/// Returns a message for invalid JSON, for a duplicate key in an object, and for a number with more digits than are
/// kept.
pub fn parse(text: &str) -> Result<Value, String> {
    parse_placed(text).map_err(|error| error.to_string())
}

pub(crate) fn parse_placed(text: &str) -> Result<Value, JsonError> {
    let Unique(value) = serde_json::from_str(text).map_err(|error| JsonError::of(&error))?;
    match numbers(text).find(|number| !is_kept(number)) {
        Some(number) => Err(JsonError {
            message: format!("the number {number} has too many digits"),
            place: None,
        }),
        None => Ok(value),
    }
}

/// The reason why a text cannot be parsed as JSON. `Display` adds the position.
#[derive(Clone, Debug)]
pub(crate) struct JsonError {
    pub(crate) message: String,
    /// Line and column from 1, the column in bytes, if the position is known.
    pub(crate) place: Option<(usize, usize)>,
}

impl JsonError {
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

impl fmt::Display for JsonError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match self.place {
            Some((line, column)) => write!(formatter, " (line {line}, column {column})"),
            None => Ok(()),
        }
    }
}

pub(crate) fn phrase(error: &serde_json::Error) -> String {
    JsonError::of(error).to_string()
}

/// Writes a value as JSON on one line, without any character that a reader may take for a line end.
pub fn on_one_line(value: &Value) -> String {
    let text = value.to_string();
    // `serde_json` does not escape these; they occur in strings only.
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

fn is_long_integer(number: &str) -> bool {
    !number.contains(['.', 'e', 'E']) && !is_kept(number)
}

/// Returns the numbers in a text that is valid JSON.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    // `true` and `false` contain an `e`.
    let has_digit = |piece: &&str| piece.contains(|character: char| character.is_ascii_digit());
    text.split(outside_numbers()).filter(has_digit)
}

/// Returns a function that gets each character of valid JSON and returns whether it is in no number.
fn outside_numbers() -> impl FnMut(char) -> bool {
    let mut in_string = false;
    let mut is_escaped = false;
    move |character| {
        if in_string {
            in_string = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
            true
        } else {
            in_string = character == '"';
            !matches!(character, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')
        }
    }
}

/// Writes the integers of valid JSON that do not fit into 64 bits as strings, so that no digit is lost.
///
/// ```
/// use plaincall_tool::json::keep_digits;
///
/// let kept = keep_digits(r#"{"a": 123456789012345678901234567890, "b": 1}"#);
/// assert_eq!(kept, r#"{"a": "123456789012345678901234567890", "b": 1}"#);
/// ```
pub fn keep_digits(json: &str) -> Cow<'_, str> {
    if !numbers(json).any(is_long_integer) {
        return Cow::Borrowed(json);
    }
    let mut kept = String::with_capacity(json.len() + 16);
    let mut outside = outside_numbers();
    let mut number_start = 0;
    for (at, character) in json.char_indices() {
        if !outside(character) {
            continue;
        }
        push_number(&mut kept, json.get(number_start..at).unwrap_or_default());
        kept.push(character);
        number_start = at + character.len_utf8();
    }
    push_number(&mut kept, json.get(number_start..).unwrap_or_default());
    Cow::Owned(kept)
}

/// Adds a number, or a part of a keyword.
fn push_number(kept: &mut String, text: &str) {
    if numbers(text).any(is_long_integer) {
        let _ = write!(kept, "\"{text}\"");
    } else {
        kept.push_str(text);
    }
}

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
