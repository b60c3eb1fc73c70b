//! The tools of calls whose JSON is streamed.

use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
use serde_json::json;

pub(crate) fn parameter(name: &str, kind: ParameterKind) -> Parameter {
    Parameter::new(name, kind).optional()
}

/// A tool with parameters of each kind, all optional.
pub(crate) fn tool() -> ToolSpec {
    [
        ("s", ParameterKind::String),
        ("text", ParameterKind::String),
        ("n", ParameterKind::Number),
        ("i", ParameterKind::Integer),
        ("t", ParameterKind::Boolean),
        ("l", ParameterKind::Array),
        ("o", ParameterKind::Object),
        ("d", ParameterKind::Any),
        ("a", ParameterKind::Any),
        ("p", ParameterKind::Any),
    ]
    .into_iter()
    .fold(ToolSpec::new("A"), |tool, (name, kind)| {
        tool.parameter(parameter(name, kind))
    })
}

/// A tool with unknown arguments.
pub(crate) fn unknown() -> ToolSpec {
    let schema = json!({"type": "object", "additionalProperties": true});
    let tool = ToolSpec::new("A").parameters_from_schema(&schema);
    tool.expect("a schema")
}

/// The same, but some locations have a maximum number of parts, and one may be null.
pub(crate) fn counted() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "null": {"type": ["string", "null"]},
            "d": {"type": "object", "maxProperties": 2,
                  "properties": {"e": {"type": "object", "maxProperties": 2}}},
            "p": {"type": "array", "maxItems": 2},
        },
        "additionalProperties": true,
    });
    let tool = ToolSpec::new("A").parameters_from_schema(&schema);
    tool.expect("a schema")
}

pub(crate) fn emoji_tools() -> Vec<ToolSpec> {
    let begun = ToolSpec::new("A")
        .parameter(Parameter::new("path", ParameterKind::String))
        .parameter(parameter("mode", ParameterKind::Integer));
    let create = begun
        .clone()
        .parameter(Parameter::new("content", ParameterKind::String));
    let optional = begun.parameter(parameter("content", ParameterKind::String));
    vec![
        create.clone().body("content").positional(["path", "mode"]),
        create.clone().body("content").positional(["mode", "path"]),
        optional.body("content"),
        create,
        ToolSpec::new("A").parameter(Parameter::new("n", ParameterKind::Number)),
        ToolSpec::new("A")
            .parameter(parameter("text", ParameterKind::String))
            .body("text"),
        ToolSpec::new("A"),
    ]
}
