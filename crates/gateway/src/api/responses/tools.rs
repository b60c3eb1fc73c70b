//! The tools of a request, and their names.

use std::collections::HashMap;
use std::fmt;

use plaincall_wire::Json;
use plaincall_wire::openai::{
    AllowedTools, FunctionDefinition, NamedTool, Tool, ToolChoice, ToolChoiceObject,
};
use plaincall_wire::openai_responses::ResponsesTool;
use serde_json::{Value, json};

use crate::error::GatewayError;
use crate::settings::ToolMode;
use crate::tools::BODY_KEY;

/// The parameter of a custom tool.
pub(super) const INPUT: &str = "input";
const FUNCTION: &str = "function";
const CUSTOM: &str = "custom";

/// The tools as the client knows them, by the names that the model uses.
#[derive(Clone, Debug)]
pub(super) struct ToolNames {
    /// The text between a namespace and the name of a tool.
    separator: &'static str,
    tools: HashMap<String, ToolName>,
}

/// A tool as the client knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolName {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    /// Whether its input is a text.
    pub(super) is_custom: bool,
}

impl ToolName {
    fn is(&self, namespace: Option<&str>, name: &str) -> bool {
        self.namespace.as_deref() == namespace && self.name == name
    }
}

impl ToolNames {
    fn new(mode: ToolMode) -> Self {
        Self {
            // Not every model server accepts a dot in a name.
            separator: match mode {
                ToolMode::Text => ".",
                ToolMode::Native => "__",
            },
            tools: HashMap::new(),
        }
    }

    /// Returns the tool for the model's name of it.
    pub(super) fn get(&self, name: &str) -> Option<&ToolName> {
        self.tools.get(name)
    }

    /// Returns the model's name of a tool.
    pub(super) fn full(&self, namespace: Option<&str>, name: &str) -> String {
        let full = self.joined(namespace, name);
        let is_this = |tool: &ToolName| tool.is(namespace, name);
        if self.get(&full).is_none_or(is_this) {
            return full;
        }
        let other = self.tools.iter().find(|(_, tool)| is_this(tool));
        other.map_or(full, |(other, _)| other.clone())
    }

    fn joined(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            None | Some("") => name.to_owned(),
            // Some clients end the namespace with a separator.
            Some(namespace) if namespace.ends_with(['_', '.']) || name.starts_with('_') => {
                format!("{namespace}{name}")
            }
            Some(namespace) => [namespace, self.separator, name].concat(),
        }
    }

    /// Adds a tool, unless it is known. Returns the model's name of it, which no other tool has.
    fn add(&mut self, tool: ToolName) -> String {
        let mut full = self.joined(tool.namespace.as_deref(), &tool.name);
        let is_other = |other: &ToolName| !other.is(tool.namespace.as_deref(), &tool.name);
        while self.get(&full).is_some_and(is_other) {
            full.push('_');
        }
        self.tools.entry(full.clone()).or_insert(tool);
        full
    }

    /// Returns the model's name of a tool that the client names without its namespace.
    fn find(&self, name: &str) -> String {
        if self.tools.contains_key(name) {
            return name.to_owned();
        }
        let mut found = self.tools.iter().filter(|(_, tool)| tool.name == name);
        match (found.next(), found.next()) {
            (Some((full, _)), None) => full.clone(),
            _ => name.to_owned(),
        }
    }
}

/// Where a tool is in the request. Displays as a JSON Pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToolPlace {
    /// The item of the input that has it, if it is not in the request's list.
    item: Option<usize>,
    /// Its index in that list.
    index: usize,
    /// Its index in the namespace that is there.
    inner: Option<usize>,
}

impl ToolPlace {
    pub(super) fn new(item: Option<usize>, index: usize) -> Self {
        Self {
            item,
            index,
            inner: None,
        }
    }
}

impl fmt::Display for ToolPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(item) = self.item {
            write!(f, "/input/{item}")?;
        }
        write!(f, "/tools/{}", self.index)?;
        match self.inner {
            Some(inner) => write!(f, "/tools/{inner}"),
            None => Ok(()),
        }
    }
}

/// The tools of a request as functions. Hosted tools remain as they are, so that they are reported as dropped.
pub(super) struct Functions {
    /// The JSON of each.
    written: Vec<String>,
    /// Where each is in the request.
    pub(super) places: Vec<ToolPlace>,
    pub(super) names: ToolNames,
}

impl Functions {
    pub(super) fn of(tools: &[(ToolPlace, Json<'_>)], mode: ToolMode) -> Self {
        let mut functions = Self {
            written: Vec::new(),
            places: Vec::new(),
            names: ToolNames::new(mode),
        };
        let read = tools.iter().map(|(_, json)| json.read().ok());
        let read: Vec<Option<ResponsesTool<'_>>> = read.collect();
        // These names are not changed, so no tool of a namespace gets them.
        for tool in read.iter().flatten() {
            let kind = tool.kind.as_deref().unwrap_or(FUNCTION);
            if [FUNCTION, CUSTOM].contains(&kind) {
                functions.names.add(ToolName {
                    namespace: None,
                    name: tool.name.clone().unwrap_or_default().into_owned(),
                    is_custom: kind == CUSTOM,
                });
            }
        }
        for ((place, json), tool) in tools.iter().zip(read) {
            functions.add(json, tool, *place, None);
        }
        functions
    }

    /// Returns their list, unless it is empty.
    pub(super) fn list(&self) -> Option<Json<'static>> {
        if self.written.is_empty() {
            return None;
        }
        let text = format!("[{}]", self.written.join(","));
        // The parts are JSON, so the whole is.
        Json::parse(&text).map(Json::into_owned).ok()
    }

    /// Adds a tool, or those of a namespace.
    fn add(
        &mut self,
        json: &Json<'_>,
        tool: Option<ResponsesTool<'_>>,
        place: ToolPlace,
        namespace: Option<&str>,
    ) {
        let Some(mut tool) = tool else {
            return self.push(json.text().to_owned(), place);
        };
        let name = tool.name.take().unwrap_or_default();
        let known = |is_custom| ToolName {
            namespace: namespace.map(str::to_owned),
            name: name.clone().into_owned(),
            is_custom,
        };
        match (tool.kind.as_deref(), namespace) {
            (Some("namespace"), None) => {
                let tools = tool.tools.take().unwrap_or_default();
                for (inner, json) in tools.iter().enumerate() {
                    let inner = Some(inner);
                    let place = ToolPlace { inner, ..place };
                    self.add(json, json.read().ok(), place, Some(&name));
                }
            }
            (Some(CUSTOM), _) => {
                let full = self.names.add(known(true));
                self.push(custom(&full, &tool), place);
            }
            (Some(FUNCTION), Some(_)) => {
                tool.name = Some(self.names.add(known(false)).into());
                self.push(plaincall_wire::write(&tool), place);
            }
            _ => self.push(json.text().to_owned(), place),
        }
    }

    fn push(&mut self, written: String, place: ToolPlace) {
        self.written.push(written);
        self.places.push(place);
    }
}

/// Returns a custom tool as a function with one text. It is strict, because its calls have no form for invalid input.
fn custom(name: &str, tool: &ResponsesTool<'_>) -> String {
    let mut description = tool.description.as_deref().unwrap_or_default().to_owned();
    let format = tool.format.as_ref().map(Json::read::<Value>);
    if let Some(Ok(format)) = format {
        let text = |field: &str| format.get(field).and_then(Value::as_str);
        if let Some(definition) = text("definition") {
            let syntax = text("syntax").unwrap_or_default();
            let line = if description.is_empty() { "" } else { "\n" };
            let grammar = [
                "The input must match this ",
                syntax,
                " grammar:\n",
                definition,
            ];
            description = [&*description, line, &grammar.concat()].concat();
        }
    }
    let schema = json!({
        "type": "object",
        "properties": {INPUT: {"type": "string"}},
        "required": [INPUT],
        "additionalProperties": false,
    });
    let function = json!({
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
        "strict": true,
        BODY_KEY: INPUT,
    });
    function.to_string()
}

/// Converts a tool choice.
pub(super) fn choice(
    choice: &Json<'_>,
    names: &ToolNames,
) -> Result<Option<ToolChoice<'static>>, GatewayError> {
    let value = choice.read::<Value>().unwrap_or_default();
    let text = |value: &Value, field: &str| {
        let text = value.get(field).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    let name = |value: &Value| {
        // Chat completions have the name in an object.
        let function = value.get("function").unwrap_or(value);
        let name = text(function, "name").unwrap_or_default();
        match text(value, "namespace") {
            Some(namespace) => names.full(Some(&namespace), &name),
            None => names.find(&name),
        }
    };
    let mut object = ToolChoiceObject::default();
    match (&value, text(&value, "type").as_deref()) {
        (Value::Null, _) => return Ok(None),
        (Value::String(word), _) => return Ok(Some(ToolChoice::Word(word.clone().into()))),
        (_, Some(FUNCTION | CUSTOM)) => {
            object.kind = Some("function".into());
            object.function = Some(NamedTool {
                name: Some(name(&value).into()),
                ..NamedTool::default()
            });
        }
        (_, Some("allowed_tools")) => {
            let tools = value.get("tools").and_then(Value::as_array);
            let tools = tools.into_iter().flatten().map(|tool| Tool {
                function: Some(FunctionDefinition {
                    name: Some(name(tool).into()),
                    ..FunctionDefinition::default()
                }),
                kind: Some("function".into()),
                ..Tool::default()
            });
            object.kind = Some("allowed_tools".into());
            object.allowed_tools = Some(AllowedTools {
                mode: text(&value, "mode").map(Into::into),
                tools: Some(tools.collect()),
                ..AllowedTools::default()
            });
        }
        (_, Some(hosted)) => {
            let message = format!(
                "`tool_choice` of type `{hosted}` is not supported; choose a function, a custom tool or `allowed_tools`"
            );
            return Err(GatewayError::invalid_request(message, Some("tool_choice")));
        }
        _ => {
            let message = "invalid `tool_choice`; it must be `none`, `auto`, `required` or an object with a `type`";
            return Err(GatewayError::invalid_request(message, Some("tool_choice")));
        }
    }
    Ok(Some(ToolChoice::Object(Box::new(object))))
}
