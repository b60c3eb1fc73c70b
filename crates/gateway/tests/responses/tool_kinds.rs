//! Custom tools, namespaces, tools in the input, and hosted tools.

use plaincall_gateway::ModelSettings;
use plaincall_syntax::Dialect;
use serde_json::{Value, json};

use crate::responses::model::{asked, messages, request, sent, streamed};

const PATCH: &str = "*** Begin Patch\n+{\"a\": 1}\n\n!!!x\n*** End Patch";

fn patch() -> Value {
    json!({"type": "custom", "name": "apply_patch", "description": "Changes files.",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"x\""}})
}

fn files() -> Value {
    let schema =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tool = |name: &str| json!({"type": "function", "name": name, "parameters": schema});
    json!({"type": "namespace", "name": "files", "tools": [tool("read"), tool("stat")]})
}

fn emoji() -> ModelSettings {
    crate::settings(|settings| settings.dialect = Dialect::emoji())
}

/// The input is one raw text, in both syntaxes, and is written the same way in the next request.
#[test]
fn the_input_of_a_custom_tool_is_one_text() {
    let block = format!("!!!GADGET_START:apply_patch\n!!!ARG:input\n{PATCH}\n!!!GADGET_END\n");
    let emoji_text = format!("🛠️[apply_patch]\n{PATCH}🛠️[/end]");
    for (settings, text) in [(ModelSettings::default(), &block), (emoji(), &emoji_text)] {
        let fields = json!({"tools": [patch()]});
        let response = streamed(&fields, &settings, &[text], "stop");
        let call = &response["output"][0];
        assert_eq!(call["type"], "custom_tool_call");
        assert_eq!(call["name"], "apply_patch");
        assert_eq!(call["input"], PATCH);

        let output = json!({"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "Done."});
        let input = json!([{"role": "user", "content": "Do it."}, call, output]);
        let body = request(&json!({"tools": [patch()], "input": input}));
        let asked = asked(&body, &settings);
        let sent: Value = serde_json::from_slice(asked.body()).unwrap();
        let turn = sent["messages"][2]["content"].as_str().unwrap();
        assert_eq!(turn.trim_end(), text.trim_end());
        let results = sent["messages"][3]["content"].as_str().unwrap();
        assert!(
            results.contains("apply_patch") && results.contains("Done."),
            "{results}"
        );
    }
    let prompt = &messages(&request(&json!({"tools": [patch()]})))[0].1;
    assert!(prompt.contains("must match this lark grammar:"), "{prompt}");
}

/// A custom tool has no form for an invalid call, so its calls are always checked.
#[test]
fn calls_of_custom_tools_are_checked() {
    let settings = crate::replies::model::streaming();
    let fields = json!({"tools": [patch()]});
    let invalid = "!!!GADGET_START:apply_patch\n!!!ARG:other\nx\n!!!GADGET_END\n";
    let valid = "!!!GADGET_START:apply_patch\n!!!ARG:input\nx\n!!!GADGET_END\n";
    let response = streamed(&fields, &settings, &[invalid, valid], "stop");
    assert_eq!(response["output"][0]["input"], "x");
}

#[test]
fn namespaces_are_restored() {
    let fields = json!({"tools": [files()]});
    let text = "!!!GADGET_START:files.read\n!!!ARG:path\na\n!!!GADGET_END\n";
    let response = streamed(&fields, &ModelSettings::default(), &[text], "stop");
    let call = &response["output"][0];
    assert_eq!(
        (&call["namespace"], &call["name"]),
        (&json!("files"), &json!("read"))
    );

    let output = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "b"});
    let input = json!([{"role": "user", "content": "Do it."}, call, output]);
    let messages = messages(&request(&json!({"tools": [files()], "input": input})));
    assert_eq!(messages[2].1, text);
    for choice in [
        json!({"type": "function", "name": "stat"}),
        json!({"type": "function", "namespace": "files", "name": "stat"}),
        json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "stat"}]}),
    ] {
        let sent = sent(&request(
            &json!({"tools": [files()], "tool_choice": choice}),
        ));
        let last = sent["messages"][1]["content"].as_str().unwrap();
        assert!(last.ends_with("call the tool files.stat.)"), "{last}");
    }
}

/// Tools whose joined names would be equal have names of their own, and each is restored.
#[test]
fn equal_names_with_and_without_a_namespace() {
    let tool = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}});
    let space =
        |name: &str, tools: Value| json!({"type": "namespace", "name": name, "tools": tools});
    let tools = json!([
        space("a", json!([tool("b.c"), tool("d")])),
        space("a.b", json!([tool("c")])),
        tool("a.d"),
        tool("d"),
    ]);
    let fields = json!({"tools": tools});
    for (model, namespace, name) in [
        ("a.b.c", json!("a"), "b.c"),
        ("a.b.c_", json!("a.b"), "c"),
        ("a.d", Value::Null, "a.d"),
        ("a.d_", json!("a"), "d"),
        ("d", Value::Null, "d"),
    ] {
        let text = format!("!!!GADGET_START:{model}\n!!!GADGET_END\n");
        let response = streamed(&fields, &ModelSettings::default(), &[&text], "stop");
        let call = &response["output"][0];
        assert_eq!(
            (&call["namespace"], &call["name"]),
            (&namespace, &json!(name))
        );
        let output =
            json!({"type": "function_call_output", "call_id": call["call_id"], "output": "b"});
        let input = json!([{"role": "user", "content": "Do it."}, call, output]);
        let messages = messages(&request(&json!({"tools": tools, "input": input})));
        assert_eq!(messages[2].1, text);
        let mut choice = json!({"type": "function", "name": name});
        if !namespace.is_null() {
            choice["namespace"] = namespace;
        }
        let sent = sent(&request(&json!({"tools": tools, "tool_choice": choice})));
        let last = sent["messages"][1]["content"].as_str().unwrap();
        assert!(
            last.ends_with(&format!("call the tool {model}.)")),
            "{last}"
        );
    }
}

#[test]
fn tools_in_the_input_and_hosted_tools() {
    let more =
        json!({"type": "additional_tools", "role": "developer", "tools": [files(), patch()]});
    let input = json!([more, {"role": "user", "content": "Do it."}, more]);
    let body = json!({"model": "m", "input": input, "tools": [{"type": "web_search"}, {"type": "mcp", "server_label": "x"}]});
    let asked = asked(&body, &ModelSettings::default());
    let changed: Vec<(&str, bool)> = asked
        .changed_tools()
        .iter()
        .map(|tool| (&*tool.reason.at, tool.is_dropped))
        .collect();
    assert_eq!(changed, [("/tools/0/type", true), ("/tools/1/type", true)]);
    assert_eq!(asked.counts().dropped_tools, 2);
    let sent = String::from_utf8(asked.body().to_vec()).unwrap();
    for name in ["files.read", "files.stat", "apply_patch"] {
        assert!(sent.contains(name), "{sent}");
    }
    assert!(
        !sent.contains("web_search") && sent.matches("files.read").count() == 1,
        "{sent}"
    );
}

/// The pointers to changed tools lead into the client's own request.
#[test]
fn pointers_to_changed_tools() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "any"}}});
    let odd = |name: &str| json!({"type": "function", "name": name, "parameters": schema});
    let space =
        |name: &str| json!({"type": "namespace", "name": name, "tools": [patch(), odd(name)]});
    let more = json!({"type": "additional_tools", "tools": [patch(), odd("b"), space("c")]});
    let input = json!([{"role": "user", "content": "Do it."}, more]);
    let body = json!({"model": "m", "input": input, "tools": [patch(), space("a"), odd("d")]});
    let asked = asked(&body, &ModelSettings::default());
    let changed = asked.changed_tools().iter();
    let places: Vec<&str> = changed.map(|tool| &*tool.reason.at).collect();
    assert_eq!(
        places,
        [
            "/tools/1/tools/1/parameters/properties/a/type",
            "/tools/2/parameters/properties/a/type",
            "/input/1/tools/1/parameters/properties/a/type",
            "/input/1/tools/2/tools/1/parameters/properties/a/type",
        ]
    );
    for place in places {
        assert_eq!(body.pointer(place), Some(&json!("any")), "{place}");
    }
}

/// From one request to the next, all messages before the last turn are the same.
#[test]
fn the_prefix_is_stable() {
    let fields = json!({"tools": [patch(), files()]});
    let text = "!!!GADGET_START:files.read\n!!!ARG:path\na\n!!!GADGET_END\n";
    let mut input = vec![json!({"role": "user", "content": "Do it."})];
    let mut before: Vec<(String, String)> = Vec::new();
    for _ in 0..4 {
        let mut body = request(&fields);
        body["input"] = json!(input);
        let now = messages(&body);
        assert_eq!(now[..before.len()], before);
        let response = streamed(&fields, &ModelSettings::default(), &[text], "stop");
        let call = response["output"][0].clone();
        let id = call["call_id"].clone();
        input.push(call);
        input.push(json!({"type": "function_call_output", "call_id": id, "output": "b"}));
        before = now;
    }
    assert_eq!(before.len(), 8);
}
