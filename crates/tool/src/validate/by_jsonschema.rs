//! Validation by the crate `jsonschema`, with our own messages.

use std::collections::{HashMap, HashSet};

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

use crate::Schema;
use crate::SpecError;
use crate::argument_error::{joined, quoted, shown};
use crate::pointer::escape;
use crate::schema::Targets;
use crate::validate::named_references::numbered;
use crate::validate::steps;
use crate::validate::steps::{Purpose, TooManySteps};
use crate::validate::{InvalidValue, NotValidated};

/// The maximum depth of unions that are searched for the cause of an error.
const DEEPEST: usize = 8;

/// The maximum number of places whose error contains the bounds that the schema states there: each is searched for.
const BOUNDED: usize = 64;

pub(crate) struct Compiled {
    validator: Validator,
    /// The schema as it was compiled.
    document: Value,
    has_names: bool,
}

impl Compiled {
    /// Compiles a schema. References to other documents are never fetched.
    ///
    /// # Errors
    /// Returns an error with its location if this is not a valid JSON Schema.
    pub(crate) fn new(schema: &Schema) -> Result<Self, SpecError> {
        let mut document = schema.document().clone();
        let has_old_tuples = document.get("$schema").is_none();
        modernize(&mut document, has_old_tuples, 0);
        let patterns = PatternOptions::fancy_regex().backtrack_limit(steps::BACKTRACKS);
        let patterns = patterns.size_limit(steps::PATTERN_BYTES);
        let options = jsonschema::options().offline();
        let validator = options.with_pattern_options(patterns).build(&document);
        let validator = validator.map_err(|error| {
            let at = error.instance_path().as_str().to_owned();
            SpecError::new(at, format!("invalid JSON Schema: {error}"))
        })?;
        Ok(Self {
            validator,
            has_names: Targets::new(&document).has_names(),
            document,
        })
    }

    /// Returns the violations, and adds its steps to `taken`. `schema` is the one that was compiled.
    ///
    /// # Errors
    /// Returns an error if this takes too many steps.
    pub(crate) fn validate(
        &self,
        schema: &Schema,
        arguments: &Value,
        taken: &mut usize,
    ) -> Result<Vec<InvalidValue>, NotValidated> {
        let mut check =
            |purpose| steps::check(&self.document, self.has_names, arguments, purpose, taken);
        check(Purpose::Decide).map_err(|TooManySteps| NotValidated::TooManySteps)?;
        if self.validator.is_valid(arguments) {
            return Ok(Vec::new());
        }
        check(Purpose::List).map_err(|TooManySteps| NotValidated::TooManyViolations)?;
        let mut found = Found {
            schema,
            invalid: Vec::new(),
            known: HashSet::new(),
            bounds: HashMap::new(),
        };
        for error in self.validator.iter_errors(arguments) {
            add(&error, &mut found, 0);
        }
        Ok(found.invalid)
    }
}

/// Violations, each once.
struct Found<'s> {
    schema: &'s Schema,
    invalid: Vec<InvalidValue>,
    known: HashSet<InvalidValue>,
    /// The expectation of the schema at a place.
    bounds: HashMap<String, Option<String>>,
}

impl Found<'_> {
    /// Describes what is expected at a place, with bounds, if it is one of the first.
    fn expected(&mut self, pointer: &str) -> Option<&str> {
        if !self.bounds.contains_key(pointer) && self.bounds.len() < BOUNDED {
            let expected = self.schema.expected(pointer);
            self.bounds.insert(pointer.to_owned(), expected);
        }
        self.bounds.get(pointer)?.as_deref()
    }
}

fn add(error: &ValidationError<'_>, found: &mut Found<'_>, depth: usize) {
    let path = error.instance_path().as_str();
    let pointer = path.strip_prefix('/').unwrap_or(path);
    let below = |name: &str| {
        if pointer.is_empty() {
            escape(name).into_owned()
        } else {
            format!("{pointer}/{}", escape(name))
        }
    };
    let push = |found: &mut Found<'_>, pointer: String, message: String, is_missing| {
        let violation = InvalidValue {
            pointer,
            message,
            is_missing,
        };
        if found.known.insert(violation.clone()) {
            found.invalid.push(violation);
        }
    };
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            push(found, below(name), "is missing".to_owned(), true);
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            for name in unexpected {
                push(found, below(name), "not allowed here".to_owned(), false);
            }
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            match meant(context, pointer) {
                Some(errors) if depth < DEEPEST => {
                    for error in errors {
                        add(error, found, depth + 1);
                    }
                }
                _ => {
                    let value = quoted(&error.instance().to_string());
                    let message = format!("{value} matches none of the allowed forms");
                    push(found, pointer.to_owned(), message, false);
                }
            }
        }
        kind => {
            let mut message = sentence(kind, error);
            if let Kind::Type { kind } = kind {
                let kinds = types(kind);
                let expected = found.expected(pointer);
                if let Some(bounded) = expected.filter(|words| words.starts_with(&kinds)) {
                    message = message.replacen(&kinds, bounded, 1);
                }
            }
            push(found, pointer.to_owned(), message, false);
        }
    }
}

/// Returns the errors of the alternative that was meant: the only one whose constants and types match.
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
                Kind::Constant { .. } | Kind::Enum { .. } => is_near(error),
                Kind::Type { .. } => is_whole,
                _ => false,
            }
        })
    };
    let mut forms = context.iter().filter(is_meant);
    let only = forms.next()?;
    forms.next().is_none().then_some(only)
}

fn sentence(kind: &Kind, error: &ValidationError<'_>) -> String {
    let value = error.instance();
    let found = match &**value {
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => quoted(&other.to_string()),
    };
    let counted = |bound: &str, limit: &u64, what: &str| {
        let count = match &**value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            Value::String(text) => text.chars().count(),
            _ => 0,
        };
        format!("expected at {bound} {limit} {what}, found {count} {what}")
    };
    let expected = match kind {
        Kind::Type { kind } => types(kind),
        Kind::Constant { expected_value } => shown(expected_value),
        Kind::Enum { options } => one_of(options),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => format!("a string that matches {}", quoted(pattern)),
        Kind::Format { format } => format!("a string of the format {format}"),
        Kind::MinLength { limit } => return counted("least", limit, "characters"),
        Kind::MaxLength { limit } => return counted("most", limit, "characters"),
        Kind::MinItems { limit } => return counted("least", limit, "items"),
        Kind::MaxItems { limit } => return counted("most", limit, "items"),
        Kind::AdditionalItems { limit } => {
            return counted("most", &u64::try_from(*limit).unwrap_or(u64::MAX), "items");
        }
        Kind::MinProperties { limit } => return counted("least", limit, "members"),
        Kind::MaxProperties { limit } => return counted("most", limit, "members"),
        Kind::UniqueItems => {
            return "the items of the list must be unique".to_owned();
        }
        Kind::OneOfMultipleValid { .. } => {
            return format!("{found} matches more than one of the allowed forms");
        }
        Kind::FalseSchema => return "not allowed here".to_owned(),
        Kind::Contains => return "the list lacks a required item".to_owned(),
        Kind::Not { .. } => return format!("{found} is not allowed"),
        Kind::PropertyNames { error } => {
            return format!(
                "invalid key {}: {}",
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
        "string" => "a string",
        "integer" => "an integer",
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

fn one_of(options: &Value) -> String {
    let all = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let words: Vec<String> = all.iter().map(shown).collect();
    let one_of = if words.len() > 1 { "one of " } else { "" };
    format!("{one_of}{}", joined(&words, "and"))
}

/// Rewrites `nullable` of `OpenAPI`, tuples of drafts before `prefixItems`, and patterns, as what the validator knows. Recurses as deep as
/// schemas may be nested.
fn modernize(schema: &mut Value, has_old_tuples: bool, depth: usize) {
    let keywords = match schema {
        Value::Object(keywords) if depth < 256 => keywords,
        Value::Array(list) if depth < 256 => {
            for one in list {
                modernize(one, has_old_tuples, depth + 1);
            }
            return;
        }
        _ => return,
    };
    if let Some(Value::String(pattern)) = keywords.get_mut("pattern")
        && let Some(known) = as_known(pattern)
    {
        *pattern = known;
    }
    if let Some(Value::Object(patterns)) = keywords.get_mut("patternProperties") {
        let given: HashSet<String> = patterns.keys().cloned().collect();
        for (pattern, schema) in std::mem::take(patterns) {
            // Two patterns never become one.
            let known = as_known(&pattern)
                .filter(|known| !given.contains(known) && !patterns.contains_key(known));
            patterns.insert(known.unwrap_or(pattern), schema);
        }
    }
    for (name, value) in keywords.iter_mut() {
        if !matches!(name.as_str(), "enum" | "const" | "default" | "examples") {
            modernize(value, has_old_tuples, depth + 1);
        }
    }
    let is_tuple = keywords.get("items").is_some_and(Value::is_array);
    if has_old_tuples && is_tuple && !keywords.contains_key("prefixItems") {
        for (old, new) in [("items", "prefixItems"), ("additionalItems", "items")] {
            if let Some(value) = keywords.remove(old) {
                keywords.insert(new.to_owned(), value);
            }
        }
    }
    if keywords.get("nullable") == Some(&Value::Bool(true)) {
        allow_null(keywords);
    }
}

/// Rewrites a pattern as one that the validator reads like ECMAScript.
fn as_known(pattern: &str) -> Option<String> {
    let ascii = ascii_classes(pattern);
    numbered(ascii.as_deref().unwrap_or(pattern)).or(ascii)
}

/// Writes `\d`, `\w` and their opposites in a pattern with a look-around or a back reference as classes of ASCII, which they are in
/// ECMAScript. `jsonschema` does so for all other patterns.
fn ascii_classes(pattern: &str) -> Option<String> {
    let is_number = |c: char| c.is_ascii_digit() || c == 'k';
    let refers = pattern
        .split('\\')
        .skip(1)
        .any(|rest| rest.starts_with(is_number));
    let looks = ["(?=", "(?!", "(?<"]
        .iter()
        .any(|sign| pattern.contains(sign));
    if !refers && !looks {
        return None;
    }
    let mut written = String::with_capacity(pattern.len() + 16);
    let mut is_in_class = false;
    // Beside such an escape, `-` is a character.
    let is_escape = |c: char| matches!(c, 'd' | 'D' | 'w' | 'W' | 's' | 'S');
    let mut is_behind_escape = false;
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        let escaped = if character == '\\' { rest.next() } else { None };
        let behind = rest.as_str();
        let is_before_escape = behind
            .strip_prefix('\\')
            .is_some_and(|escape| escape.starts_with(is_escape));
        let is_beside_escape = is_behind_escape && !behind.starts_with(']') || is_before_escape;
        match (escaped, is_in_class) {
            (Some('d'), true) => written.push_str("0-9"),
            (Some('w'), true) => written.push_str("A-Za-z0-9_"),
            (Some('D'), true) => written.push_str(r"\x00-/:-\x{10FFFF}"),
            (Some('W'), true) => written.push_str(r"\x00-/:-@\[-\^`{-\x{10FFFF}"),
            (Some('d'), false) => written.push_str("[0-9]"),
            (Some('w'), false) => written.push_str("[A-Za-z0-9_]"),
            (Some('D'), false) => written.push_str("[^0-9]"),
            (Some('W'), false) => written.push_str("[^A-Za-z0-9_]"),
            (Some(other), _) => written.extend(['\\', other]),
            (None, true) if character == '-' && is_beside_escape => written.push_str("\\-"),
            (None, _) => {
                is_in_class = (is_in_class || character == '[') && character != ']';
                written.push(character);
            }
        }
        is_behind_escape = escaped.is_some_and(is_escape) || is_behind_escape && character == '-';
    }
    Some(written)
}

fn allow_null(keywords: &mut Map<String, Value>) {
    match keywords.get_mut("type") {
        Some(Value::Array(names)) => names.push("null".into()),
        Some(name) => *name = json!([name, "null"]),
        None => {}
    }
    let none = json!({"type": "null"});
    for (name, none) in [("enum", &Value::Null), ("anyOf", &none), ("oneOf", &none)] {
        if let Some(Value::Array(members)) = keywords.get_mut(name) {
            if !members.contains(none) {
                members.push(none.clone());
            }
        }
    }
    for name in ["$ref", "allOf", "const"] {
        if let Some(value) = keywords.remove(name) {
            let either = json!({"anyOf": [{name: value}, none]});
            match keywords.get_mut("allOf") {
                Some(Value::Array(all)) => all.push(either),
                _ => {
                    keywords.insert("allOf".to_owned(), json!([either]));
                }
            }
        }
    }
}
