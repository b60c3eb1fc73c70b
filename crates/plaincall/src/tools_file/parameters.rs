//! The parameters of a tool: a JSON Schema as a table, or the short form.
//!
//! ```toml
//! parameters = { path = "string", limit = "integer?", unit = { enum = ["mm", "inch"], optional = true } }
//!
//! [tools.read.parameters]
//! type = "object"
//! properties.path = { type = "string", description = "The file." }
//! required = ["path"]
//! ```

use std::borrow::Cow;
use std::ops::Range;

use plaincall_call::{Parameter, ParameterKind, Schema, ToolSpec};
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::Mistakes;
use super::table::{Entry, kind};

/// Adds the parameters to the definition.
pub(super) fn parameters(
    spec: ToolSpec,
    entry: &Entry<'_, '_>,
    mistakes: &mut Mistakes<'_>,
) -> Option<ToolSpec> {
    let Some(table) = entry.value().as_table() else {
        entry.refuse(
            "a table, such as { path = \"string\", limit = \"integer?\" }",
            mistakes,
        );
        return None;
    };
    if is_schema(table) {
        if !table.contains_key("type") {
            let message = "`type = \"object\"` is missing; every JSON Schema of parameters has it";
            mistakes.add(entry.key_span(), message);
            return None;
        }
        let schema = json(entry.span(), entry.value(), mistakes)?;
        match spec.parameters_from_schema(&schema) {
            Ok(spec) => Some(spec),
            Err(error) => {
                let span = span_at(entry, error.at.split('/').skip(1));
                mistakes.add(span, error.message);
                None
            }
        }
    } else {
        short_form(spec, table, mistakes)
    }
}

/// Where a parameter is declared.
pub(super) fn parameter_span(entry: &Entry<'_, '_>, name: &str) -> Range<usize> {
    match entry.value().as_table() {
        Some(table) if is_schema(table) => span_at(entry, ["properties", name].into_iter()),
        _ => span_at(entry, std::iter::once(name)),
    }
}

/// Where a place in the schema of the parameters stands; in the short form their names come first.
pub(super) fn schema_span(entry: &Entry<'_, '_>, at: &str) -> Range<usize> {
    let segments = at.split('/').skip(1);
    match entry.value().as_table() {
        Some(table) if is_schema(table) => span_at(entry, segments),
        _ => span_at(entry, segments.skip(1)),
    }
}

/// A parameter of the short form could be called `type` too, but it would hardly be an object.
fn is_schema(table: &DeTable<'_>) -> bool {
    table
        .iter()
        .any(|(key, value)| match key.get_ref().as_ref() {
            "properties" => value.get_ref().is_table(),
            "type" => value.get_ref().as_str() == Some("object"),
            _ => false,
        })
}

fn short_form(
    mut spec: ToolSpec,
    table: &DeTable<'_>,
    mistakes: &mut Mistakes<'_>,
) -> Option<ToolSpec> {
    let before = mistakes.count();
    for (name, value) in table {
        if let DeValue::Table(schema) = value.get_ref() {
            let parameter = with_schema(name, schema, mistakes);
            spec = parameter.into_iter().fold(spec, ToolSpec::parameter);
            continue;
        }
        let parameter = value
            .get_ref()
            .as_str()
            .and_then(|text| short(name.get_ref(), text));
        if let Some(parameter) = parameter {
            spec = spec.parameter(parameter);
        } else {
            let (name, found) = (name.get_ref(), kind(value.get_ref()));
            mistakes.add(value.span(), format!(
                "the parameter `{name}` is {found}; write string, number, integer, boolean, array, object or any, with `?` if a call may leave it out, or a JSON Schema as a table"
            ));
        }
    }
    (mistakes.count() == before).then_some(spec)
}

/// A parameter whose table is a JSON Schema, with `optional` beside its keywords.
fn with_schema(
    name: &Spanned<Cow<'_, str>>,
    table: &DeTable<'_>,
    mistakes: &mut Mistakes<'_>,
) -> Option<Parameter> {
    let mut is_optional = false;
    let mut keywords = Map::new();
    for (key, value) in table {
        if key.get_ref() == "optional" {
            let Some(given) = value.get_ref().as_bool() else {
                mistakes.add(value.span(), "`optional` is true or false");
                return None;
            };
            is_optional = given;
        } else {
            let value = json(value.span(), value.get_ref(), mistakes)?;
            keywords.insert(key.get_ref().clone().into_owned(), value);
        }
    }
    let schema = Value::Object(keywords);
    if let Err(error) = Schema::new(schema.clone()).check() {
        let span = span_in(name.span(), table, error.at.split('/').skip(1));
        mistakes.add(span, error.message);
        return None;
    }
    let parameter = Parameter::from_schema(name.get_ref().as_ref(), schema);
    Some(if is_optional {
        parameter.optional()
    } else {
        parameter
    })
}

fn short(name: &str, text: &str) -> Option<Parameter> {
    let (kind, is_optional) = match text.strip_suffix('?') {
        Some(kind) => (kind, true),
        None => (text, false),
    };
    let parameter = Parameter::new(name, ParameterKind::from_name(kind)?);
    Some(if is_optional {
        parameter.optional()
    } else {
        parameter
    })
}

/// A value of the file as JSON.
fn json(span: Range<usize>, value: &DeValue<'_>, mistakes: &mut Mistakes<'_>) -> Option<Value> {
    let of = |value: &Spanned<DeValue<'_>>, mistakes: &mut Mistakes<'_>| {
        json(value.span(), value.get_ref(), mistakes)
    };
    let number = |text: &str| serde_json::from_str(text).ok();
    let converted = match value {
        DeValue::String(text) => Some(text.as_ref().into()),
        DeValue::Boolean(value) => Some((*value).into()),
        DeValue::Integer(integer) => {
            let value = i64::from_str_radix(integer.as_str(), integer.radix());
            value.ok().map(Value::from)
        }
        DeValue::Float(float) => number(float.as_str().trim_start_matches('+')),
        DeValue::Datetime(_) => None,
        DeValue::Array(list) => {
            let mut array = Vec::new();
            for element in list {
                array.push(of(element, mistakes)?);
            }
            Some(Value::Array(array))
        }
        DeValue::Table(table) => {
            let mut object = Map::new();
            for (key, value) in table {
                object.insert(key.get_ref().clone().into_owned(), of(value, mistakes)?);
            }
            Some(Value::Object(object))
        }
    };
    if converted.is_none() {
        mistakes.add(
            span,
            format!("{} cannot be part of a JSON Schema", kind(value)),
        );
    }
    converted
}

/// Where the end of a JSON Pointer stands: the key if it ends at one, as far as the file has it.
fn span_at<'s>(entry: &Entry<'_, '_>, segments: impl Iterator<Item = &'s str>) -> Range<usize> {
    match entry.value() {
        DeValue::Table(table) => span_in(entry.key_span(), table, segments),
        _ => entry.key_span(),
    }
}

/// The same from a table on, whose key stands at `span`.
fn span_in<'s>(
    mut span: Range<usize>,
    table: &DeTable<'_>,
    mut segments: impl Iterator<Item = &'s str>,
) -> Range<usize> {
    let Some(first) = segments.next() else {
        return span;
    };
    let first = unescaped(first);
    let Some((key, value)) = table.iter().find(|(key, _)| *key.get_ref() == first) else {
        return span;
    };
    span = key.span();
    let mut value = value.get_ref();
    for segment in segments {
        let segment = unescaped(segment);
        let next = match value {
            DeValue::Table(table) => {
                let mut entries = table.iter();
                let found = entries.find(|(key, _)| *key.get_ref() == segment);
                found.map(|(key, value)| (key.span(), value.get_ref()))
            }
            DeValue::Array(list) => {
                let element = segment
                    .parse()
                    .ok()
                    .and_then(|index: usize| list.get(index));
                element.map(|element| (element.span(), element.get_ref()))
            }
            _ => None,
        };
        let Some(next) = next else { break };
        (span, value) = next;
    }
    span
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}
