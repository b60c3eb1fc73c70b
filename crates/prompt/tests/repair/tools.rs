//! The tools of the tables.

use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
use serde_json::json;

pub(crate) fn tools() -> Vec<ToolSpec> {
    let by_schema = |name: &str, schema: serde_json::Value| {
        ToolSpec::new(name)
            .parameters_from_schema(&schema)
            .expect("a schema of an object")
    };
    vec![
        by_schema(
            "read-file",
            json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
                "path": {"type": "string"},
                "lines": {"type": "integer", "minimum": 1},
                "mode": {"enum": ["text", "binary"]},
            }}),
        ),
        by_schema(
            "book",
            json!({"type": "object", "required": ["at", "guests"], "additionalProperties": false, "properties": {
                "at": {
                    "type": "object",
                    "required": ["date", "hour"],
                    "additionalProperties": false,
                    "properties": {"date": {"type": "string"}, "hour": {"type": "integer", "minimum": 0, "maximum": 23}},
                },
                "guests": {"type": "array", "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                }},
                "note": {"type": ["string", "null"]},
            }}),
        ),
        by_schema(
            "choose",
            json!({"type": "object", "required": ["shape"], "properties": {"shape": {"oneOf": [
                {"type": "object", "required": ["kind", "radius"], "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}},
                {"type": "object", "required": ["kind", "side"], "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}},
            ]}}}),
        ),
        by_schema(
            "open",
            json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}, "additionalProperties": {"type": "integer"}}),
        ),
        ToolSpec::new("run-query")
            .parameter(Parameter::new("file", ParameterKind::String))
            .parameter(Parameter::new("limit", ParameterKind::Integer).optional())
            .parameter(Parameter::new("verbose", ParameterKind::Boolean).optional()),
        ToolSpec::new("create-file")
            .parameter(Parameter::new("path", ParameterKind::String))
            .parameter(Parameter::new("encoding", ParameterKind::String).optional())
            .parameter(Parameter::new("content", ParameterKind::String))
            .body("content"),
        ToolSpec::new("ping"),
    ]
}
