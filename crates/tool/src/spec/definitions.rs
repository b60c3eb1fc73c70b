//! Tool definitions of other programs, as the JSON of `OpenAI`, MCP and Anthropic.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::SpecError;
use crate::ToolSpec;
use crate::json_text;
use crate::pointer::escape;
use plaincall_names::{Effect, nearest_name};

/// The names of the schema of the arguments: in `OpenAI`, MCP and Anthropic definitions.
pub(super) const SCHEMAS: [&str; 3] = ["parameters", "inputSchema", "input_schema"];

/// Other names that people use for the schema of the arguments.
const SCHEMA_WORDS: [&str; 5] = ["params", "args", "arguments", "input", "schema"];

/// Names like those of the schema, with another meaning.
const IGNORED: [&str; 2] = ["outputSchema", "output_schema"];

/// All errors in definitions of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefinitionsError {
    /// The errors, each with its location in the document; at least one.
    pub errors: Vec<SpecError>,
    /// The position where the text stops being JSON: line and column from 1, the column in bytes. Then there is one
    /// error.
    pub json_position: Option<(usize, usize)>,
}

impl fmt::Display for DefinitionsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{error}")?;
        }
        if let Some((line, column)) = self.json_position {
            write!(formatter, " (line {line}, column {column})")?;
        }
        Ok(())
    }
}

impl std::error::Error for DefinitionsError {}

/// Reads definitions of tools: a list, an object with such a list as `tools` (a request, or a response to MCP's
/// `tools/list`, with or without the JSON-RPC envelope), or a single definition.
///
/// A definition has a `name`, a `description` and a JSON Schema as `parameters`, `inputSchema` or `input_schema`; it
/// may be nested in `function`. `input_examples` are added to the `examples` of the schema, which are examples of calls
/// ([`call_examples`](ToolSpec::call_examples)). Other keys are ignored. Every
/// tool has [`Effect::Write`]: `annotations` are only hints of the server about itself, kept in
/// [`hinted_effect`](ToolSpec::hinted_effect). If you know better, set another [`effect`](ToolSpec::effect).
///
/// ```
/// use plaincall_tool::Effect;
/// use plaincall_tool::definitions::read_tool_definitions;
///
/// let tools = read_tool_definitions(
///     r#"{"tools": [{"name": "look", "inputSchema": {"type": "object", "properties": {"at": {"type": "string"}}},
///                    "annotations": {"readOnlyHint": true}}]}"#,
/// )?;
/// assert_eq!(tools[0].parameters()[0].name, "at");
/// assert_eq!(tools[0].effect, Effect::Write);
/// assert_eq!(tools[0].hinted_effect, Some(Effect::Read));
///
/// let error = read_tool_definitions(r#"[{"name": "a b"}]"#).unwrap_err();
/// assert_eq!(error.errors[0].at, "/0/name");
/// # Ok::<(), plaincall_tool::definitions::DefinitionsError>(())
/// ```
///
/// # Errors
/// Returns all errors, each with a JSON Pointer to its location.
pub fn read_tool_definitions(json: &str) -> Result<Vec<ToolSpec>, DefinitionsError> {
    let fail = |errors, json_position| DefinitionsError {
        errors,
        json_position,
    };
    let document = json_text::parse_placed(json.trim_start_matches('\u{feff}'));
    let document = document.map_err(|error| {
        let message = format!("invalid JSON: {}", error.message);
        fail(vec![SpecError::new("", message)], error.place)
    })?;
    let listed = definitions(&document).map_err(|error| fail(vec![error], None))?;
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut tools = Vec::new();
    let mut errors = Vec::new();
    for (index, (at, value)) in listed.into_iter().enumerate() {
        match tool(value, &at) {
            Err(error) => errors.push(error),
            Ok(tool) => {
                if let Some(other) = first.insert(tool.name.clone(), index) {
                    let message = format!("tool {other} of the list is also named `{}`", tool.name);
                    errors.push(SpecError::new(at, message));
                }
                tools.push(tool);
            }
        }
    }
    if errors.is_empty() {
        Ok(tools)
    } else {
        Err(fail(errors, None))
    }
}

fn definitions(document: &Value) -> Result<Vec<(String, &Value)>, SpecError> {
    let (at, list) = match document {
        Value::Array(list) => ("", Some(list)),
        Value::Object(object) if object.contains_key("tools") => {
            ("/tools", document["tools"].as_array())
        }
        Value::Object(object) if object.contains_key("result") => {
            ("/result", document["result"]["tools"].as_array())
        }
        Value::Object(object) => {
            if object.contains_key("name") || object.contains_key("function") {
                return Ok(vec![(String::new(), document)]);
            }
            return Err(match near_key(object, &["tools", "name"]) {
                Some((key, meant)) => misspelled("", key, meant),
                None => SpecError::new("", no_definition(object)),
            });
        }
        _ => ("", None),
    };
    let Some(list) = list else {
        let message = match at {
            "/tools" => "it must be a list of tools",
            "/result" => "it must contain `tools`, a list of tools",
            _ => "it must be a list of tools, or an object with such a list as `tools`",
        };
        return Err(SpecError::new(at, message));
    };
    let below = if at == "/result" { "/tools" } else { "" };
    let items = list.iter().enumerate();
    Ok(items
        .map(|(index, value)| (format!("{at}{below}/{index}"), value))
        .collect())
}

fn no_definition(object: &Map<String, Value>) -> &'static str {
    let is_schema = ["properties", "$schema", "$ref", "anyOf"]
        .iter()
        .any(|key| object.contains_key(*key))
        || object.get("type").is_some_and(|kind| kind == "object");
    if is_schema {
        "this is only a JSON Schema; put it into a tool definition, as `parameters` next to a `name`"
    } else {
        "no tool definitions found: expected `tools`, a list of tools, or one tool with a `name`"
    }
}

pub(super) fn tool(value: &Value, at: &str) -> Result<ToolSpec, SpecError> {
    let mut at = at.to_owned();
    let mut fields = object(value, &at)?;
    match fields.get("type").and_then(Value::as_str) {
        None | Some("function" | "custom") => {}
        Some(other) => {
            let message = format!(
                "tools of the type `{other}` run at the model provider; only functions are supported"
            );
            return Err(SpecError::new(format!("{at}/type"), message));
        }
    }
    if fields.contains_key("custom") {
        let message = "custom tools are not supported; define a function with one string parameter";
        return Err(SpecError::new(format!("{at}/custom"), message));
    }
    if let Some(function) = fields.get("function") {
        at.push_str("/function");
        fields = object(function, &at)?;
    }
    let Some(name) = text(fields, "name", &at)? else {
        return Err(match near_key(fields, &["name"]) {
            Some((key, meant)) => misspelled(&at, key, meant),
            None => SpecError::new(at, "missing `name` of the tool"),
        });
    };
    let description = text(fields, "description", &at)?;
    if description.is_none() {
        if let Some((key, meant)) = near_key(fields, &["description"]) {
            return Err(misspelled(&at, key, meant));
        }
    }
    let mut spec = ToolSpec::new(name).describe(description.unwrap_or_default());
    spec.hinted_effect = hinted_effect(fields, &at)?;
    let mut schemas = SCHEMAS
        .iter()
        .filter_map(|key| Some((*key, fields.get(*key).filter(|schema| !schema.is_null())?)));
    let schema_at = if let Some((key, schema)) = schemas.next() {
        let schema_at = format!("{at}/{key}");
        if let Some((second, _)) = schemas.next() {
            let message = format!("the argument schema is already in `{key}`");
            return Err(SpecError::new(format!("{at}/{second}"), message));
        }
        let schema = with_examples(schema, fields, &at)?;
        spec = spec
            .parameters_from_schema(&schema)
            .map_err(|error| error.under(&schema_at))?;
        schema_at
    } else {
        // A misspelled key must not make a tool without parameters.
        if let Some((key, meant)) = near_key(fields, &SCHEMAS) {
            return Err(misspelled(&at, key, meant));
        }
        at.clone()
    };
    match spec.check() {
        Ok(()) => Ok(spec),
        Err(error) if error.at == "/name" => Err(error.under(&at)),
        Err(mut error) => {
            if let Some(parameter) = error.at.strip_prefix("/parameters/") {
                error.at = format!("/properties/{parameter}");
            }
            Err(error.under(&schema_at))
        }
    }
}

fn object<'v>(value: &'v Value, at: &str) -> Result<&'v Map<String, Value>, SpecError> {
    value
        .as_object()
        .ok_or_else(|| SpecError::new(at, "a tool must be an object"))
}

fn text<'v>(
    fields: &'v Map<String, Value>,
    key: &str,
    at: &str,
) -> Result<Option<&'v str>, SpecError> {
    match fields.get(key) {
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Null) if key != "name" => Ok(None),
        Some(_) => Err(SpecError::new(format!("{at}/{key}"), "it must be a string")),
        None => Ok(None),
    }
}

/// Returns the effect according to MCP's annotations. `openWorldHint` and `title` do not matter.
fn hinted_effect(fields: &Map<String, Value>, at: &str) -> Result<Option<Effect>, SpecError> {
    let at = format!("{at}/annotations");
    let hints = match fields.get("annotations") {
        Some(Value::Object(hints)) => hints,
        Some(Value::Null) | None => return Ok(None),
        Some(_) => return Err(SpecError::new(at, "it must be an object with hints")),
    };
    let hint = |key: &str| match hints.get(key) {
        Some(Value::Bool(hint)) => Ok(Some(*hint)),
        Some(Value::Null) | None => Ok(None),
        Some(_) => {
            let message = "it must be true or false";
            Err(SpecError::new(format!("{at}/{key}"), message))
        }
    };
    let hints = [
        hint("readOnlyHint")?,
        hint("idempotentHint")?,
        hint("destructiveHint")?,
    ];
    Ok(match hints {
        [None, None, None] => None,
        [Some(true), _, _] => Some(Effect::Read),
        [_, Some(true), _] => Some(Effect::Idempotent),
        _ => Some(Effect::Write),
    })
}

/// Adds the `input_examples` of a definition to the examples of its schema.
pub(super) fn with_examples<'v>(
    schema: &'v Value,
    fields: &'v Map<String, Value>,
    at: &str,
) -> Result<Cow<'v, Value>, SpecError> {
    let examples = match fields.get("input_examples") {
        Some(Value::Array(examples)) if examples.iter().all(Value::is_object) => examples,
        Some(Value::Null) | None => return Ok(Cow::Borrowed(schema)),
        Some(_) => {
            let message = "it must be a list of examples, each an object with arguments";
            return Err(SpecError::new(format!("{at}/input_examples"), message));
        }
    };
    let mut schema = schema.clone();
    if let (Value::Object(keywords), false) = (&mut schema, examples.is_empty()) {
        let all = keywords.entry("examples").or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            let new: Vec<&Value> = examples.iter().filter(|one| !all.contains(one)).collect();
            all.extend(new.into_iter().cloned());
        }
    }
    Ok(Cow::Owned(schema))
}

/// Returns a key of the definition that was probably meant to be one of these.
fn near_key<'f, 'k>(
    fields: &'f Map<String, Value>,
    known: &[&'k str],
) -> Option<(&'f str, &'k str)> {
    fields
        .keys()
        .filter(|key| !known.contains(&key.as_str()) && !IGNORED.contains(&key.as_str()))
        .find_map(|key| {
            let plain = key.replace('-', "_");
            let schema = SCHEMA_WORDS.contains(&&*plain).then_some(SCHEMAS[0]);
            let of_schema = known.iter().copied().find(|one| Some(*one) == schema);
            let near = of_schema.or_else(|| nearest_name(&plain, known.iter().copied()))?;
            Some((key.as_str(), near))
        })
}

fn misspelled(at: &str, key: &str, meant: &str) -> SpecError {
    let at = format!("{at}/{}", escape(key));
    SpecError::new(at, format!("unknown key; did you mean `{meant}`?"))
}
