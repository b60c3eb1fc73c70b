//! Tools as other programs define them: the JSON of `OpenAI`, MCP and Anthropic.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::json_text;
use crate::spec_error::SpecError;
use crate::tool::ToolSpec;

/// What the schema of the arguments is called: by `OpenAI`, by MCP, by Anthropic.
const SCHEMAS: [&str; 3] = ["parameters", "inputSchema", "input_schema"];

/// Everything that is wrong with definitions of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionsError {
    /// What is wrong, each with its place in the document; at least one.
    pub mistakes: Vec<SpecError>,
    /// Where the text stops being JSON: line and column from 1, the column in bytes. Then there is one mistake.
    pub json_place: Option<(usize, usize)>,
}

impl fmt::Display for DefinitionsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{mistake}")?;
        }
        if let Some((line, column)) = self.json_place {
            write!(formatter, " (line {line}, column {column} of it)")?;
        }
        Ok(())
    }
}

impl std::error::Error for DefinitionsError {}

/// Reads definitions of tools: a list of them, an object with such a list as `tools` (a request, or what MCP answers
/// to `tools/list`, with or without the JSON-RPC around it), or one alone.
///
/// A definition has a `name`, a `description` and a JSON Schema as `parameters`, `inputSchema` or `input_schema`; it
/// may stand in `function`. Whatever annotations say about what a tool does, every tool has
/// [`Effect::Write`](crate::Effect::Write): a server's word about itself is a hint and relaxes nothing. Who knows
/// better sets another [`effect`](ToolSpec::effect).
///
/// ```
/// use plaincall_call::{Effect, read_tool_definitions};
///
/// let tools = read_tool_definitions(
///     r#"{"tools": [{"name": "look", "inputSchema": {"type": "object", "properties": {"at": {"type": "string"}}},
///                    "annotations": {"readOnlyHint": true}}]}"#,
/// )?;
/// assert_eq!(tools[0].parameters()[0].name, "at");
/// assert_eq!(tools[0].effect, Effect::Write);
///
/// let error = read_tool_definitions(r#"[{"name": "a b"}]"#).unwrap_err();
/// assert_eq!(error.mistakes[0].at, "/0/name");
/// # Ok::<(), plaincall_call::DefinitionsError>(())
/// ```
///
/// # Errors
/// All mistakes, each with the JSON Pointer to its place.
pub fn read_tool_definitions(json: &str) -> Result<Vec<ToolSpec>, DefinitionsError> {
    let mut mistakes = Vec::new();
    let mut json_place = None;
    let tools = match json_text::parse_placed(json.trim_start_matches('\u{feff}')) {
        Ok(document) => tools(&document, &mut mistakes),
        Err(fault) => {
            let message = format!("it is no JSON that can be used: {}", fault.message);
            mistakes.push(SpecError::new("", message));
            json_place = fault.place;
            Vec::new()
        }
    };
    if mistakes.is_empty() {
        Ok(tools)
    } else {
        Err(DefinitionsError {
            mistakes,
            json_place,
        })
    }
}

fn tools(document: &Value, mistakes: &mut Vec<SpecError>) -> Vec<ToolSpec> {
    let (at, list) = match document {
        Value::Array(list) => ("", list.as_slice()),
        Value::Object(object) => match (object.get("tools"), object.get("result")) {
            (Some(Value::Array(list)), _) => ("/tools", list.as_slice()),
            (Some(_), _) => {
                mistakes.push(SpecError::new("/tools", "it must be a list of tools"));
                return Vec::new();
            }
            (None, Some(result)) => {
                let Some(list) = result.get("tools").and_then(Value::as_array) else {
                    let message = "it must hold `tools`, a list of tools";
                    mistakes.push(SpecError::new("/result", message));
                    return Vec::new();
                };
                ("/result/tools", list.as_slice())
            }
            (None, None) if !object.contains_key("name") && !object.contains_key("function") => {
                mistakes.push(SpecError::new("", no_definition(object)));
                return Vec::new();
            }
            (None, None) => return Vec::from_iter(collected(tool(document, ""), mistakes)),
        },
        _ => {
            let message = "it must be a list of tools, or an object with such a list as `tools`";
            mistakes.push(SpecError::new("", message));
            return Vec::new();
        }
    };
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut tools = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let at = format!("{at}/{index}");
        let Some(tool) = collected(tool(value, &at), mistakes) else {
            continue;
        };
        if let Some(other) = first.insert(tool.name.clone(), index) {
            let message = format!("the tool {other} of the list is called `{}` too", tool.name);
            mistakes.push(SpecError::new(at, message));
        }
        tools.push(tool);
    }
    tools
}

/// What is wrong with an object that holds no definition.
fn no_definition(object: &Map<String, Value>) -> &'static str {
    let is_schema = ["properties", "$schema", "$ref", "anyOf"]
        .iter()
        .any(|key| object.contains_key(*key))
        || object.get("type").is_some_and(|kind| kind == "object");
    if is_schema {
        "it is a JSON Schema alone, and no tool is called by it: put it into a definition, as `parameters` beside a `name`"
    } else {
        "there is no definition of a tool in it: neither `tools`, a list of tools, nor the `name` of one"
    }
}

fn collected(tool: Result<ToolSpec, SpecError>, mistakes: &mut Vec<SpecError>) -> Option<ToolSpec> {
    tool.map_err(|mistake| mistakes.push(mistake)).ok()
}

fn tool(value: &Value, at: &str) -> Result<ToolSpec, SpecError> {
    let mut at = at.to_owned();
    let mut fields = object(value, &at)?;
    match fields.get("type").and_then(Value::as_str) {
        None | Some("function" | "custom") => {}
        Some(other) => {
            let message = format!(
                "a tool of the type {other} is one that its provider runs: only functions can be called from here"
            );
            return Err(SpecError::new(format!("{at}/type"), message));
        }
    }
    if let Some(function) = fields.get("function") {
        at.push_str("/function");
        fields = object(function, &at)?;
    }
    let name = match fields.get("name") {
        Some(Value::String(name)) => name,
        Some(_) => return Err(SpecError::new(format!("{at}/name"), "it must be a text")),
        None => return Err(SpecError::new(at, "a tool has a `name`")),
    };
    let description = match fields.get("description") {
        Some(Value::String(text)) => text.as_str(),
        Some(Value::Null) | None => "",
        Some(_) => {
            return Err(SpecError::new(
                format!("{at}/description"),
                "it must be a text",
            ));
        }
    };
    let mut spec = ToolSpec::new(name.as_str()).describe(description);
    let mut schemas = SCHEMAS
        .iter()
        .filter_map(|key| Some((*key, fields.get(*key).filter(|schema| !schema.is_null())?)));
    let schema_at = match schemas.next() {
        Some((key, schema)) => {
            let schema_at = format!("{at}/{key}");
            if let Some((second, _)) = schemas.next() {
                let message = format!("the schema of the arguments stands in `{key}` already");
                return Err(SpecError::new(format!("{at}/{second}"), message));
            }
            spec = spec
                .parameters_from_schema(schema)
                .map_err(|error| error.under(&schema_at))?;
            schema_at
        }
        None => at.clone(),
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
        .ok_or_else(|| SpecError::new(at, "a tool is an object"))
}
