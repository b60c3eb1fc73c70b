//! The parameters of a tool: a JSON Schema as a table, or the short form.
//!
//! ```toml
//! parameters = { path = "string", limit = "integer?" }
//!
//! [tools.read.parameters]
//! type = "object"
//! properties.path = { type = "string", description = "The file." }
//! required = ["path"]
//! ```

use std::ops::Range;

use plaincall_call::{Parameter, ParameterKind, ToolSpec};
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
        let parameter = value
            .get_ref()
            .as_str()
            .and_then(|text| short(name.get_ref(), text));
        if let Some(parameter) = parameter {
            spec = spec.parameter(parameter);
        } else {
            let (name, found) = (name.get_ref(), kind(value.get_ref()));
            mistakes.add(value.span(), format!(
                "the parameter `{name}` is {found}; write string, number, integer, boolean, array, object or any, with `?` if a call may leave it out"
            ));
        }
    }
    (mistakes.count() == before).then_some(spec)
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
    let mut span = entry.key_span();
    let mut value = entry.value();
    for segment in segments {
        let segment = segment.replace("~1", "/").replace("~0", "~");
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
