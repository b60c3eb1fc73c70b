//! Lines of the input and of the output.

use std::borrow::Cow;
use std::fmt;
use std::io;

use plaincall_reply::extract::Row;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap as _, Serializer as _};
use serde_json::value::RawValue;

use crate::text::json_error::in_line;
use crate::text::json_line::{JsonLine, text_of};

/// The key of the text.
const TEXT: &str = "text";
/// The keys that are added.
const ADDED: [&str; 3] = ["content", "calls", "error"];

/// A line of the input.
pub(super) struct Line<'l> {
    /// Its keys, unchanged.
    pub(super) fields: Vec<(Cow<'l, str>, &'l RawValue)>,
    /// The text, or an error message.
    pub(super) text: Result<String, String>,
}

impl<'l> Line<'l> {
    /// Parses a line: a string, or an object with the text as `text`.
    pub(super) fn parse(line: &'l [u8]) -> Self {
        let mut fields = Vec::new();
        let text = read(line, &mut fields);
        Self { fields, text }
    }
}

fn read<'l>(
    line: &'l [u8],
    fields: &mut Vec<(Cow<'l, str>, &'l RawValue)>,
) -> Result<String, String> {
    let line = match JsonLine::parse(line)? {
        JsonLine::Text(text) => return Ok(text),
        JsonLine::Object(line) => line,
    };
    let object: Fields<'l> = serde_json::from_str(line).map_err(|error| in_line(&error))?;
    *fields = object.0;
    let mut texts = fields.iter().filter(|(key, _)| key == TEXT);
    match (texts.next(), texts.next()) {
        (None, _) => Err(format!("missing key `{TEXT}`")),
        (Some(_), Some(_)) => Err(format!("duplicate key `{TEXT}`")),
        (Some((_, text)), None) => text_of(TEXT, text.get()),
    }
}

/// Writes a line of the output. A line without a result has an error message.
pub(super) fn write_row(
    out: &mut impl io::Write,
    fields: &[(Cow<'_, str>, &RawValue)],
    row: Result<&Row, &String>,
) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::new(&mut *out);
    let mut line = serializer.serialize_map(None)?;
    for (key, value) in fields {
        if !ADDED.contains(&&**key) {
            line.serialize_entry(key, value)?;
        }
    }
    line.serialize_entry("content", &row.ok().map(|row| &row.content))?;
    line.serialize_entry("calls", &row.ok().map(|row| &row.calls))?;
    line.serialize_entry("error", &row.err())?;
    line.end()?;
    out.write_all(b"\n")
}

/// The keys of an object, in order.
struct Fields<'l>(Vec<(Cow<'l, str>, &'l RawValue)>);

/// A key, borrowed if it has no escapes.
#[derive(serde::Deserialize)]
struct Key<'l>(#[serde(borrow)] Cow<'l, str>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((Key(key), value)) = map.next_entry()? {
            fields.push((key, value));
        }
        Ok(Fields(fields))
    }
}
