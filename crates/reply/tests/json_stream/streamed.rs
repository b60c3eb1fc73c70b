//! Calls as streams of their JSON, and the tools for them.

use plaincall_reply::collector::{Collected, Collector};
use plaincall_reply::{JsonStream, NotClosed, ToolCall, bind};
use plaincall_syntax::{Dialect, Event, Parser};
use plaincall_tool::{Arguments, Limits, Parameter, ParameterKind, ToolSpec};
use serde_json::json;

/// The result of one call.
pub(crate) struct Streamed {
    /// The text written with each chunk, up to the end of the call.
    pub(crate) deltas: Vec<String>,
    /// The text that closing added, or its error.
    pub(crate) rest: Result<String, NotClosed>,
    pub(crate) fault: Option<String>,
    pub(crate) call: ToolCall,
    /// The arguments passed to `close`.
    pub(crate) bound: Option<Arguments>,
}

impl Streamed {
    pub(crate) fn begun(&self) -> String {
        self.deltas.concat()
    }
}

/// Streams the calls of a text in these chunks. Without a tool, arguments are converted without a definition.
pub(crate) fn stream_all<'t>(
    chunks: impl IntoIterator<Item = &'t str>,
    dialect: &Dialect,
    shape: &ToolSpec,
    tool: Option<&ToolSpec>,
    limits: Limits,
) -> Vec<Streamed> {
    let mut parser = Parser::new(dialect).expect("a dialect that works");
    let mut collector = Collector::new(limits);
    let mut streamed = Vec::new();
    let mut open: Option<(JsonStream<&ToolSpec>, Vec<String>)> = None;
    let mut take = |event: &Event<'_>, is_first: bool| {
        let collected = collector.push(event);
        if let Some(Collected::Started(_)) = &collected {
            open = Some((JsonStream::new(shape, limits), vec![String::new()]));
        }
        let Some((stream, deltas)) = &mut open else {
            return;
        };
        if is_first {
            deltas.push(String::new());
        }
        if let Some(delta) = deltas.last_mut() {
            stream.push(event, delta);
        }
        if let Some(Collected::Finished(call)) = collected
            && let Some((mut stream, deltas)) = open.take()
        {
            let bound = match tool {
                Some(tool) => bind(tool, &call).ok(),
                None => Some(call.arguments.clone()).filter(|_| call.parse_error.is_none()),
            };
            let fault = stream.error().map(str::to_owned);
            let mut rest = String::new();
            let arguments = bound.as_ref().unwrap_or(&call.arguments);
            let closed = stream.close(&call, arguments, &mut rest);
            streamed.push(Streamed {
                deltas,
                rest: closed.map(|()| rest),
                fault,
                call: *call,
                bound,
            });
        }
    };
    for chunk in chunks {
        for (place, event) in parser.feed(chunk).enumerate() {
            take(&event, place == 0);
        }
    }
    for (place, event) in parser.finish().enumerate() {
        take(&event, place == 0);
    }
    streamed
}

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
