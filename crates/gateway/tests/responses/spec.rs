//! The examples of this API in `spec/gateway.md`.

use plaincall_gateway::ModelSettings;
use serde_json::{Value, json};

use crate::responses::model::{play, request, stream, tools};
use crate::responses::strict_reader::{events, read_stream};

/// The tools of the examples.
fn example_tools() -> Value {
    let mut tools = tools();
    let path =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let read = json!({"type": "function", "name": "read", "parameters": path});
    let list = tools.as_array_mut().unwrap();
    list.push(json!({"type": "custom", "name": "patch"}));
    list.push(json!({"type": "namespace", "name": "files", "tools": [read]}));
    tools
}

/// The items or the events of the response to a reply.
pub(crate) fn lines(form: &str, text: &str, reason: &str) -> String {
    let body = request(&json!({"stream": true, "tools": example_tools()}));
    let settings = ModelSettings::default();
    let bytes = play(&body, &settings, &[stream(text, reason)], usize::MAX, None).bytes;
    let response = read_stream(&bytes);
    let mut lines: Vec<String> = Vec::new();
    if form == "events" {
        let names = events(&bytes);
        lines.extend(
            names
                .iter()
                .map(|event| event["type"].as_str().unwrap().to_owned()),
        );
        lines.dedup();
        return lines.join("\n");
    }
    for item in response["output"].as_array().unwrap() {
        let mut line = item["type"].as_str().unwrap().to_owned();
        if let Some(name) = item["name"].as_str() {
            let namespace = item["namespace"].as_str();
            let namespace = namespace.map(|namespace| format!("{namespace}/"));
            line = [&line, " ", &namespace.unwrap_or_default(), name].concat();
        }
        let text = item.pointer("/content/0/text").or(item.get("arguments"));
        let text = text.or(item.get("input")).unwrap();
        line = format!("{line} {text}");
        lines.push(line);
    }
    lines.push(response["status"].as_str().unwrap().to_owned());
    lines.join("\n")
}
