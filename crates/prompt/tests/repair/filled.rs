//! The expected behavior of a model: it copies the example and replaces the placeholders with values.

use plaincall_reply::{Document, ToolCall, bind};
use plaincall_syntax::{Call, Dialect, Syntax, render};
use plaincall_tool::{Arguments, ReplyDiagnostic, ToolSpec, bind_arguments, usage::UsageBody};
use serde_json::{Map, Value};

/// The call that a message shows, and the text after it.
pub(crate) fn example_of(message: &str) -> Option<&str> {
    let correct = message.rsplit_once("\nA correct call:\n");
    let shown = correct.or_else(|| {
        let (_, form) = message.rsplit_once("\nIf you meant a tool call, ")?;
        form.split_once(":\n")
    });
    shown.map(|(_, example)| example)
}

/// Returns `true` if the call is valid once its placeholders are filled.
pub(crate) fn filled(tool: &ToolSpec, call: &ToolCall, dialect: &Dialect) -> Result<(), String> {
    let result = match call.syntax {
        Syntax::Block => {
            let mut texts = call.arguments.iter().map(|argument| argument.text);
            if texts.any(is_placeholder) && bind(tool, call).is_ok() {
                return Err("valid before its placeholders are filled".to_owned());
            }
            let pairs: Vec<(String, String)> = call
                .arguments
                .iter()
                .map(|argument| {
                    let text = fill(tool, argument.pointer, argument.text);
                    (argument.pointer.to_owned(), text)
                })
                .collect();
            let pairs = pairs.iter().map(|(pointer, text)| (&**pointer, &**text));
            let arguments =
                Arguments::from_pairs_for(tool, pairs).map_err(|error| error.to_string())?;
            bind_arguments(tool, &arguments)
        }
        Syntax::Emoji => {
            let line = call.raw_args.as_deref().unwrap_or_default();
            let mut texts = line.split(' ').chain(call.body());
            if texts.any(is_placeholder) && bind(tool, call).is_ok() {
                return Err("valid before its placeholders are filled".to_owned());
            }
            let (raw_args, body) = filled_emoji(tool, call);
            let text = render(
                &Call::Emoji {
                    name: &call.name,
                    raw_args: &raw_args,
                    body: &body,
                },
                dialect,
            )
            .map_err(|error| error.to_string())?;
            let document = Document::parse(&text, dialect).map_err(|error| error.to_string())?;
            bind(tool, document.calls().next().expect("a call"))
        }
    };
    let sentences = |problems: Vec<ReplyDiagnostic>| {
        let problems = problems.iter().map(ToString::to_string);
        problems.collect::<Vec<_>>().join("; ")
    };
    result.map(drop).map_err(sentences)
}

fn is_placeholder(text: &str) -> bool {
    text.len() > 3 && text.starts_with('<') && text.ends_with('>')
}

fn fill(tool: &ToolSpec, pointer: &str, text: &str) -> String {
    let root = tool.schema().document();
    if text.starts_with(['{', '['])
        && let Ok(mut value) = serde_json::from_str(text)
    {
        fill_json(at(root, pointer), &mut value);
        return value.to_string();
    }
    if !is_placeholder(text) {
        return text.to_owned();
    }
    match sample(at(root, pointer)) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Fills each word of the line, and the body.
fn filled_emoji(tool: &ToolSpec, call: &ToolCall) -> (String, String) {
    let usage = tool.usage();
    let line = call.raw_args.as_deref().unwrap_or_default();
    let mut rest = line;
    let mut words = Vec::new();
    for item in &usage.line {
        rest = rest.trim_matches([' ', '\t']);
        if rest.is_empty() {
            break;
        }
        let end = if item.takes_rest {
            rest.len()
        } else {
            rest.find([' ', '\t']).unwrap_or(rest.len())
        };
        let (word, behind) = rest.split_at(end);
        words.push(fill(tool, &item.parameter.name, word));
        rest = behind;
    }
    assert_eq!(rest, "", "too much on the line: {line}");
    let body = call.body().unwrap_or_default();
    let body = match usage.body {
        UsageBody::Nothing => body.to_owned(),
        UsageBody::Parameter(parameter) => fill(tool, &parameter.name, body),
        UsageBody::Json => {
            let mut object = serde_json::from_str(body).expect("JSON in the body");
            let root = tool.schema().document();
            fill_json(root, &mut object);
            object.to_string()
        }
    };
    (words.join(" "), body)
}

fn fill_json(schema: &Value, value: &mut Value) {
    match value {
        Value::String(text) if is_placeholder(text) => *value = sample(schema),
        Value::Object(members) => {
            for (key, member) in members {
                fill_json(member_of(schema, key), member);
            }
        }
        Value::Array(items) => {
            for item in items {
                fill_json(&schema["items"], item);
            }
        }
        _ => {}
    }
}

fn member_of<'s>(schema: &'s Value, key: &str) -> &'s Value {
    match schema.get("oneOf").and_then(Value::as_array) {
        Some(any) => any
            .iter()
            .map(|one| &one["properties"][key])
            .find(|one| !one.is_null())
            .unwrap_or(&Value::Null),
        None => match &schema["properties"][key] {
            Value::Null => &schema["additionalProperties"],
            named => named,
        },
    }
}

fn at<'s>(root: &'s Value, pointer: &str) -> &'s Value {
    pointer.split('/').fold(root, |schema, segment| {
        if schema.get("items").is_some() {
            &schema["items"]
        } else {
            member_of(schema, segment)
        }
    })
}

/// A value that a schema of the table allows.
fn sample(schema: &Value) -> Value {
    if let Some(any) = schema.get("oneOf").and_then(Value::as_array) {
        return sample(&any[0]);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values[0].clone();
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[0].as_str(),
        kind => kind.as_str(),
    };
    match kind {
        Some("string") | None => "filled".into(),
        Some("integer" | "number") => 7.into(),
        Some("boolean") => true.into(),
        Some("array") => Value::Array(vec![sample(&schema["items"])]),
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten();
            let names = required.filter_map(Value::as_str);
            let members = names.map(|name| {
                let value = sample(&schema["properties"][name]);
                (name.to_owned(), value)
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        Some(other) => panic!("what is {other}?"),
    }
}
