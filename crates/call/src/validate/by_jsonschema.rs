//! Validation by the crate `jsonschema`, in our words.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::argument_error::quoted;
use crate::pointer::escape;
use crate::schema::Schema;
use crate::spec_error::SpecError;
use crate::validate::{Validate, Violation};

/// Forms of a union that are looked into for what is wrong with the one that was meant.
const DEEPEST: usize = 8;

/// Compiles a schema. Nothing outside it is ever fetched.
///
/// # Errors
/// Says what is no JSON Schema, with its place.
pub(crate) fn compile(schema: &Schema) -> Result<Arc<dyn Validate>, SpecError> {
    let mut document = with_null(schema.document(), 0);
    if document.get("$schema").is_none() {
        new_tuples(&mut document, 0);
    }
    match jsonschema::options().offline().build(&document) {
        Ok(validator) => Ok(Arc::new(Compiled(validator))),
        Err(error) => {
            let at = error.instance_path().as_str().to_owned();
            Err(SpecError::new(at, format!("it is no JSON Schema: {error}")))
        }
    }
}

struct Compiled(Validator);

impl Validate for Compiled {
    fn validate(&self, arguments: &Value) -> Vec<Violation> {
        let mut found = Found::default();
        for error in self.0.iter_errors(arguments) {
            add(&error, &mut found, 0);
        }
        found.violations
    }
}

/// What has been found, each thing once.
#[derive(Default)]
struct Found {
    violations: Vec<Violation>,
    known: HashSet<Violation>,
}

/// Adds what an error says, if it says something new.
fn add(error: &ValidationError<'_>, found: &mut Found, depth: usize) {
    let path = error.instance_path().as_str();
    let pointer = path.strip_prefix('/').unwrap_or(path);
    let below = |name: &str| {
        if pointer.is_empty() {
            escape(name).into_owned()
        } else {
            format!("{pointer}/{}", escape(name))
        }
    };
    let mut push = |pointer: String, message: String, is_missing| {
        let violation = Violation {
            pointer,
            message,
            is_missing,
        };
        if found.known.insert(violation.clone()) {
            found.violations.push(violation);
        }
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            push(below(name), "is missing".to_owned(), true);
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            for name in unexpected {
                push(below(name), "it may not stand there".to_owned(), false);
            }
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            match meant(context, pointer) {
                Some(errors) if depth < DEEPEST => {
                    for error in errors {
                        add(error, found, depth + 1);
                    }
                }
                _ => {
                    let value = quoted(&error.instance().to_string());
                    let message = format!("none of the forms that are allowed fits {value}");
                    push(pointer.to_owned(), message, false);
                }
            }
        }
        kind => {
            let message = sentence(kind, error);
            push(pointer.to_owned(), message, false);
        }
    }
}

/// The errors of the form that was meant: the only one whose constants and types fit.
fn meant<'e>(
    context: &'e [Vec<ValidationError<'static>>],
    pointer: &str,
) -> Option<&'e [ValidationError<'static>]> {
    let is_near = |error: &ValidationError<'_>| {
        let path = error.instance_path().as_str();
        let path = path.strip_prefix('/').unwrap_or(path);
        path.strip_prefix(pointer)
            .is_some_and(|rest| rest.matches('/').count() <= 1)
    };
    let is_meant = |errors: &&Vec<ValidationError<'static>>| {
        !errors.iter().any(|error| {
            let path = error.instance_path().as_str();
            let is_whole = path.strip_prefix('/').unwrap_or(path) == pointer;
            match error.kind() {
                ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. } => {
                    is_near(error)
                }
                ValidationErrorKind::Type { .. } => is_whole,
                _ => false,
            }
        })
    };
    let mut forms = context.iter().filter(is_meant);
    let only = forms.next()?;
    forms.next().is_none().then_some(only)
}

/// What is wrong with one value.
fn sentence(kind: &ValidationErrorKind, error: &ValidationError<'_>) -> String {
    let value = error.instance();
    let found = match &**value {
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => quoted(&other.to_string()),
    };
    let count = |what: &str| {
        let count = match &**value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            Value::String(text) => text.chars().count(),
            _ => 0,
        };
        format!("{count} {what}")
    };
    let (expected, found) = match kind {
        ValidationErrorKind::Type { kind } => (types(kind), found),
        ValidationErrorKind::Constant { expected_value } => (shown(expected_value), found),
        ValidationErrorKind::Enum { options } => (one_of(options), found),
        ValidationErrorKind::Minimum { limit } => (format!("at least {limit}"), found),
        ValidationErrorKind::Maximum { limit } => (format!("at most {limit}"), found),
        ValidationErrorKind::ExclusiveMinimum { limit } => (format!("more than {limit}"), found),
        ValidationErrorKind::ExclusiveMaximum { limit } => (format!("less than {limit}"), found),
        ValidationErrorKind::MultipleOf { multiple_of } => {
            (format!("a multiple of {multiple_of}"), found)
        }
        ValidationErrorKind::MinLength { limit } => {
            (format!("at least {limit} characters"), count("characters"))
        }
        ValidationErrorKind::MaxLength { limit } => {
            (format!("at most {limit} characters"), count("characters"))
        }
        ValidationErrorKind::MinItems { limit } => {
            (format!("at least {limit} items"), count("items"))
        }
        ValidationErrorKind::MaxItems { limit } => {
            (format!("at most {limit} items"), count("items"))
        }
        ValidationErrorKind::AdditionalItems { limit } => {
            (format!("at most {limit} items"), count("items"))
        }
        ValidationErrorKind::MinProperties { limit } => {
            (format!("at least {limit} members"), count("members"))
        }
        ValidationErrorKind::MaxProperties { limit } => {
            (format!("at most {limit} members"), count("members"))
        }
        ValidationErrorKind::Pattern { pattern } => {
            (format!("a text that matches {}", quoted(pattern)), found)
        }
        ValidationErrorKind::Format { format } => (format!("a text of the form {format}"), found),
        ValidationErrorKind::UniqueItems => {
            return "two items of the list are the same, and none may be".to_owned();
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            return format!("more than one of the forms that are allowed fits {found}");
        }
        ValidationErrorKind::FalseSchema => return "it may not stand there".to_owned(),
        ValidationErrorKind::Contains => {
            return "the list lacks an item that it must have".to_owned();
        }
        ValidationErrorKind::Not { .. } => return format!("{found} is just what is not allowed"),
        ValidationErrorKind::PropertyNames { error } => {
            return format!(
                "the key {} is wrong: {}",
                quoted(&error.instance().to_string()),
                sentence(error.kind(), error)
            );
        }
        _ => return error.to_string(),
    };
    format!("expected {expected}, found {found}")
}

fn types(kind: &TypeKind) -> String {
    let word = |name: &str| match name {
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        _ => "null",
    };
    match kind {
        TypeKind::Single(one) => word(one.as_str()).to_owned(),
        TypeKind::Multiple(all) => {
            let words: Vec<&str> = all.iter().map(|one| word(one.as_str())).collect();
            words.join(" or ")
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    }
}

fn one_of(options: &Value) -> String {
    let all = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut words = String::from(if all.len() > 1 { "one of " } else { "" });
    for (index, option) in all.iter().enumerate() {
        let separator = match index {
            0 => "",
            _ if index + 1 == all.len() => " and ",
            _ => ", ",
        };
        let _ = write!(words, "{separator}{}", shown(option));
    }
    words
}

/// `nullable` of `OpenAPI` in the words of JSON Schema. Recurses as deep as schemas may stand in each other.
fn with_null(schema: &Value, depth: usize) -> Value {
    let mut keywords = match schema {
        Value::Object(keywords) if depth < 256 => keywords.clone(),
        Value::Array(list) if depth < 256 => {
            return list.iter().map(|one| with_null(one, depth + 1)).collect();
        }
        other => return other.clone(),
    };
    for (name, value) in &mut keywords {
        if !matches!(name.as_str(), "enum" | "const" | "default" | "examples") {
            *value = with_null(value, depth + 1);
        }
    }
    if keywords.get("nullable") != Some(&Value::Bool(true)) {
        return Value::Object(keywords);
    }
    let null = || serde_json::json!({"type": "null"});
    match keywords.get_mut("type") {
        Some(Value::Array(names)) => names.push("null".into()),
        Some(name) => *name = serde_json::json!([name, "null"]),
        None => {}
    }
    if let Some(Value::Array(values)) = keywords.get_mut("enum") {
        if !values.contains(&Value::Null) {
            values.push(Value::Null);
        }
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(Value::Array(members)) = keywords.get_mut(name) {
            members.push(null());
        }
    }
    for name in ["$ref", "allOf", "const"] {
        if let Some(value) = keywords.remove(name) {
            let one = Value::Object([(name.to_owned(), value)].into_iter().collect());
            let either = serde_json::json!({"anyOf": [one, {"type": "null"}]});
            match keywords.get_mut("allOf") {
                Some(Value::Array(all)) => all.push(either),
                _ => {
                    keywords.insert("allOf".to_owned(), Value::Array(vec![either]));
                }
            }
        }
    }
    Value::Object(keywords)
}

/// Tuples of the drafts before `prefixItems` in today's words: reading understands both, also in one schema.
fn new_tuples(schema: &mut Value, depth: usize) {
    match schema {
        Value::Object(keywords) if depth < 256 => {
            let is_old = keywords.get("items").is_some_and(Value::is_array);
            if is_old && !keywords.contains_key("prefixItems") {
                if let Some(first) = keywords.remove("items") {
                    keywords.insert("prefixItems".to_owned(), first);
                }
                if let Some(rest) = keywords.remove("additionalItems") {
                    keywords.insert("items".to_owned(), rest);
                }
            }
            for (name, value) in keywords {
                if !matches!(name.as_str(), "enum" | "const" | "default" | "examples") {
                    new_tuples(value, depth + 1);
                }
            }
        }
        Value::Array(list) if depth < 256 => {
            for one in list {
                new_tuples(one, depth + 1);
            }
        }
        _ => {}
    }
}
