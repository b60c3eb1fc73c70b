//! A tool's parameters from a JSON Schema and as one, and whether a definition is consistent.

use std::collections::HashSet;
use std::fmt;

use plaincall_syntax::is_blank;
use serde_json::{Map, Value, json};

use crate::pointer::{escape, is_bad_index};
use crate::tool::{Parameter, ParameterKind, ToolSpec};

/// Keywords that say something and demand nothing.
const ANNOTATIONS: [&str; 9] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$schema",
];

/// Why a definition of a tool cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Where in the schema or the definition, as a JSON Pointer: `/properties/path/enum`, `/positional/1`. Empty for
    /// the whole.
    pub at: String,
    /// What is wrong there and what to do, in one sentence.
    pub message: String,
}

impl SpecError {
    fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() {
            formatter.write_str(&self.message)
        } else {
            write!(formatter, "at {}: {}", self.at, self.message)
        }
    }
}

impl std::error::Error for SpecError {}

impl ToolSpec {
    /// Sets the parameters from a JSON Schema.
    ///
    /// The schema is an object with `properties`, each with a `type`, and `required`. Arguments that it does not
    /// declare are always wrong, with or without `"additionalProperties": false`.
    ///
    /// ```
    /// use plaincall_call::{ParameterKind, ToolSpec};
    ///
    /// let schema = serde_json::json!({
    ///     "type": "object",
    ///     "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
    ///     "required": ["path"],
    /// });
    /// let tool = ToolSpec::new("read-file").parameters_from_schema(&schema)?;
    /// assert_eq!(tool.parameters[1].kind, ParameterKind::Integer);
    /// assert!(!tool.parameters[1].required);
    ///
    /// let bounded = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    /// let error = ToolSpec::new("count").parameters_from_schema(&bounded).unwrap_err();
    /// assert_eq!(error.at, "/properties/n/minimum");
    /// # Ok::<(), plaincall_call::SpecError>(())
    /// ```
    ///
    /// # Errors
    /// Refuses, with its place, every keyword that would have to be enforced and is not.
    pub fn parameters_from_schema(mut self, schema: &Value) -> Result<Self, SpecError> {
        let Value::Object(schema) = schema else {
            return Err(SpecError::new(
                "",
                "the parameters must be a JSON Schema: an object",
            ));
        };
        let Declared {
            properties,
            required,
        } = Declared::new(schema)?;
        if !schema.contains_key("type") {
            return Err(SpecError::new("", "`\"type\": \"object\"` is missing"));
        }
        if let Some(name) = required
            .iter()
            .find(|name| !properties.is_some_and(|all| all.contains_key(**name)))
        {
            return Err(SpecError::new(
                "/required",
                format!("`{name}` is not among the properties"),
            ));
        }
        self.parameters = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| {
                let mut parameter = parameter(name, schema)?;
                parameter.required = required.contains(name.as_str());
                Ok(parameter)
            })
            .collect::<Result<_, SpecError>>()?;
        Ok(self)
    }

    /// The parameters as a JSON Schema.
    pub fn to_schema(&self) -> Value {
        let property = |parameter: &Parameter| {
            let mut schema = Map::new();
            if parameter.kind != ParameterKind::Any {
                schema.insert("type".to_owned(), parameter.kind.name().into());
            }
            if !parameter.description.is_empty() {
                schema.insert(
                    "description".to_owned(),
                    parameter.description.as_str().into(),
                );
            }
            (parameter.name.clone(), Value::Object(schema))
        };
        let properties: Map<String, Value> = self.parameters.iter().map(property).collect();
        let required: Vec<&str> = self
            .parameters
            .iter()
            .filter(|parameter| parameter.required)
            .map(|parameter| parameter.name.as_str())
            .collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    /// Whether the definition is consistent, so that its tool can be called in both syntaxes.
    ///
    /// # Errors
    /// The first thing that is wrong: a name that no call can spell, a parameter declared twice, a name in
    /// `positional` or `body` that is no parameter or not one of a fitting kind, a required list or object for which
    /// the line of an emoji call has no room.
    pub fn check(&self) -> Result<(), SpecError> {
        check_tool_name(&self.name)?;
        let mut seen = HashSet::new();
        for parameter in &self.parameters {
            let at = format!("/parameters/{}", escape(&parameter.name));
            if let Some(reason) = unusable_key(&parameter.name) {
                return Err(SpecError::new(
                    at,
                    format!("the name of a parameter {reason}"),
                ));
            }
            if !seen.insert(parameter.name.as_str()) {
                return Err(SpecError::new(at, "two parameters have this name"));
            }
        }
        self.check_body()?;
        self.check_positional()
    }

    fn check_body(&self) -> Result<(), SpecError> {
        let Some(name) = &self.body else {
            return Ok(());
        };
        match self.get(name) {
            Some(parameter) if parameter.kind == ParameterKind::String => Ok(()),
            Some(parameter) => Err(SpecError::new(
                "/body",
                format!(
                    "`{name}` takes {}: the body is a text, so its parameter must be a string",
                    parameter.kind.in_words()
                ),
            )),
            None => Err(SpecError::new(
                "/body",
                format!("`{name}` is no parameter of this tool"),
            )),
        }
    }

    fn check_positional(&self) -> Result<(), SpecError> {
        let Some(names) = &self.positional else {
            return self.check_default_line();
        };
        let mut seen = HashSet::new();
        for (index, name) in names.iter().enumerate() {
            let fault = match self.get(name) {
                None => Some("is no parameter of this tool".to_owned()),
                Some(_) if self.body.as_ref() == Some(name) => {
                    Some("is the body already".to_owned())
                }
                Some(_) if !seen.insert(name) => Some("stands here twice".to_owned()),
                Some(parameter) if !parameter.kind.is_scalar() => Some(format!(
                    "takes {}: the line has room for single values only",
                    parameter.kind.in_words()
                )),
                Some(_) => None,
            };
            if let Some(fault) = fault {
                return Err(SpecError::new(
                    format!("/positional/{index}"),
                    format!("`{name}` {fault}"),
                ));
            }
        }
        let is_placed = |name: &String| names.contains(name) || self.body.as_ref() == Some(name);
        match self
            .parameters
            .iter()
            .find(|one| one.required && !is_placed(&one.name))
        {
            Some(parameter) => Err(SpecError::new(
                "/positional",
                format!(
                    "`{}` is required and stands neither here nor in the body",
                    parameter.name
                ),
            )),
            None => Ok(()),
        }
    }

    /// A list is written with `]`, which ends the line of an emoji call, and so is most of what objects hold.
    fn check_default_line(&self) -> Result<(), SpecError> {
        let has_parts = |kind| matches!(kind, ParameterKind::Array | ParameterKind::Object);
        let usage = self.usage();
        let mut line = usage.line.iter().map(|item| item.parameter);
        match line.find(|parameter| has_parts(parameter.kind)) {
            Some(parameter) => Err(SpecError::new(
                format!("/parameters/{}", escape(&parameter.name)),
                format!(
                    "`{}` takes {} and is required, so with `body` it would stand on the line of an emoji call, which has room for single values only: make it optional, or leave out `body`, and all arguments are one JSON object",
                    parameter.name,
                    parameter.kind.in_words()
                ),
            )),
            None => Ok(()),
        }
    }
}

/// What a schema of parameters declares.
#[derive(Default)]
struct Declared<'s> {
    properties: Option<&'s Map<String, Value>>,
    required: HashSet<&'s str>,
}

impl<'s> Declared<'s> {
    fn new(schema: &'s Map<String, Value>) -> Result<Self, SpecError> {
        let mut declared = Self::default();
        for (keyword, value) in schema {
            let fault = match (keyword.as_str(), value) {
                ("type", Value::String(name)) if name == "object" => continue,
                ("type", _) => {
                    "the arguments of a tool are an object: write `\"type\": \"object\"`"
                }
                ("properties", Value::Object(members)) => {
                    declared.properties = Some(members);
                    continue;
                }
                ("properties", _) => {
                    "it must be an object: the name of each parameter with its schema"
                }
                ("required", value) => {
                    if let Some(names) = names(value) {
                        declared.required = names;
                        continue;
                    }
                    "it must be a list of names of parameters"
                }
                ("additionalProperties", Value::Bool(false)) => continue,
                ("additionalProperties", _) => {
                    "arguments that are not declared are always wrong: leave it out, or write false"
                }
                (annotation, _) if ANNOTATIONS.contains(&annotation) => continue,
                (keyword, _) => return Err(not_enforced(format!("/{}", escape(keyword)), keyword)),
            };
            return Err(SpecError::new(format!("/{}", escape(keyword)), fault));
        }
        Ok(declared)
    }
}

fn names(value: &Value) -> Option<HashSet<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

fn parameter(name: &str, schema: &Value) -> Result<Parameter, SpecError> {
    let at = format!("/properties/{}", escape(name));
    let mut parameter = Parameter::new(name, ParameterKind::Any);
    let schema = match schema {
        Value::Bool(true) => return Ok(parameter),
        Value::Object(schema) => schema,
        _ => return Err(SpecError::new(at, "it must be a JSON Schema: an object")),
    };
    for (keyword, value) in schema {
        let at = format!("{at}/{}", escape(keyword));
        match (keyword.as_str(), value) {
            ("type", Value::String(name)) => {
                parameter.kind = kind(name).ok_or_else(|| unknown_type(at))?;
            }
            ("type", _) => return Err(unknown_type(at)),
            ("description", Value::String(text)) => parameter.description.clone_from(text),
            (annotation, _) if ANNOTATIONS.contains(&annotation) => {}
            (keyword, _) => return Err(not_enforced(at, keyword)),
        }
    }
    Ok(parameter)
}

fn unknown_type(at: String) -> SpecError {
    SpecError::new(
        at,
        "it must be one of string, number, integer, boolean, array and object",
    )
}

fn not_enforced(at: String, keyword: &str) -> SpecError {
    SpecError::new(
        at,
        format!(
            "`{keyword}` is not enforced yet, so it is refused: leave it out and check the argument in the tool"
        ),
    )
}

/// The kind of a type of JSON Schema; `any` is none.
fn kind(name: &str) -> Option<ParameterKind> {
    ParameterKind::from_name(name).filter(|kind| *kind != ParameterKind::Any)
}

/// A name that both syntaxes read as the name of a tool.
fn check_tool_name(name: &str) -> Result<(), SpecError> {
    let begins_well = name.starts_with(|first: char| first.is_alphanumeric() || first == '_');
    let is_wrong =
        |c: char| is_blank(c) || c.is_control() || c.is_whitespace() || "\"'`:[]".contains(c);
    if begins_well && !name.contains(is_wrong) {
        return Ok(());
    }
    Err(SpecError::new(
        "/name",
        format!(
            "{name:?} cannot be the name of a tool: it begins with a letter, a digit or `_` and holds no blank, quote, colon or bracket"
        ),
    ))
}

/// Why a key cannot be written as a pointer; ends the sentence "the name of a parameter …".
pub(crate) fn unusable_key(key: &str) -> Option<&'static str> {
    if key.is_empty() {
        Some("must not be empty")
    } else if key.contains(is_blank) {
        Some("must not hold a blank: behind a blank a pointer line would hold a value")
    } else if key.contains(['\n', '\r']) {
        Some("must not hold a line end")
    } else if is_bad_index(key) {
        Some("must not look like the index of a list")
    } else {
        None
    }
}
