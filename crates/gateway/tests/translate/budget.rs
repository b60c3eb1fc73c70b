//! Which tools a prompt lists, and how long descriptions are.

use plaincall_gateway::translation::{Adapter, Ask, AskEnd, Host};
use plaincall_gateway::{ModelSettings, Secret, ToolMode};
use serde_json::{Value, json};

use crate::settings;

fn request(choice: &Value) -> Vec<u8> {
    let tool = |name: &str, describe: &str| {
        json!({"type": "function", "function": {"name": name, "description": describe, "parameters": {
            "type": "object", "properties": {"path": {"type": "string", "description": "Where the file is in the project."}}}}})
    };
    let tools = ["read", "read_all", "web_read"];
    let tools = tools.map(|name| tool(name, "Reads it, and returns all of its lines."));
    let mut request = json!({"model": "m", "tools": tools, "tool_choice": choice, "messages": [
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Read a."}]});
    if choice.is_null() {
        request.as_object_mut().unwrap().remove("tool_choice");
    }
    request.to_string().into_bytes()
}

/// Returns the texts of the system and the user message for the model, and the converted reply, with the counter of hidden tools.
fn asked(choice: &Value, settings: ModelSettings, reply: &str) -> (String, String, Value, u64) {
    let adapter = Adapter::new(Secret::new("secret"), settings);
    let host = Host::new(Secret::new("seed"), 0);
    let Ask::Asked(mut asked) = adapter.ask("/v1/chat/completions", &request(choice), host) else {
        panic!("it offers tools")
    };
    let body: Value = serde_json::from_slice(asked.body()).unwrap();
    let text = |index: usize| {
        let text = body["messages"][index]["content"].as_str();
        text.unwrap_or_default().to_owned()
    };
    let answer = json!({"choices": [{"message": {"content": reply}, "finish_reason": "stop"}]});
    asked.feed(answer.to_string().as_bytes());
    assert_eq!(asked.end(None), AskEnd::Done);
    let response: Value = serde_json::from_slice(&asked.take()).unwrap();
    let call = response["choices"][0]["message"]["tool_calls"][0]["function"].clone();
    (text(0), text(1), call, asked.counts().hidden_tools)
}

const CALL: &str = "!!!GADGET_START:web_read\n!!!ARG:path\na\n!!!GADGET_END\n";

#[test]
fn a_prompt_lists_some_tools() {
    let listed = |listed: Option<&[&str]>, hidden: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let settings = settings(|settings| {
            settings.prompt_budget.listed_tools = listed.map(owned);
            settings.prompt_budget.hidden_tools = owned(hidden);
        });
        let (system, user, call, hidden) = asked(&Value::Null, settings, CALL);
        assert_eq!(user, "Read a.");
        // A tool that is not listed can be called.
        assert_eq!(call["name"], "web_read");
        let lines = system.lines().filter_map(|line| line.strip_prefix("## "));
        let lines: Vec<&str> = lines.collect();
        assert_eq!(lines.len() as u64, 3 - hidden, "{lines:?}");
        lines.join(" ")
    };
    assert_eq!(listed(None, &[]), "read read_all web_read");
    assert_eq!(listed(Some(&["read"]), &[]), "read");
    assert_eq!(listed(Some(&["read*"]), &["*_all"]), "read");
    assert_eq!(listed(Some(&["*read", "other"]), &[]), "read web_read");
    assert_eq!(listed(None, &["*"]), "");
}

#[test]
fn a_choice_describes_a_hidden_tool() {
    let settings = settings(|settings| {
        settings.prompt_budget.hidden_tools = vec!["web_*".to_owned()];
        settings.prompt_budget.description_length = "12".parse().ok();
    });
    let choice = json!({"type": "function", "function": {"name": "web_read"}});
    let (system, user, call, _) = asked(&choice, settings, CALL);
    assert!(!system.contains("web_read"), "{system}");
    assert_eq!(
        user,
        "Read a.\n\n(In this reply, call the tool web_read.)\n\n## web_read\n// Reads it,…\npath?: string // Where the…\n"
    );
    assert_eq!(call["arguments"], r#"{"path":"a"}"#);
}

#[test]
fn a_budget_of_native_mode_changes_nothing() {
    let settings = settings(|settings| {
        settings.mode = ToolMode::Native;
        settings.prompt_budget.hidden_tools = vec!["*".to_owned()];
        settings.prompt_budget.description_length = "1".parse().ok();
    });
    let adapter = Adapter::new(Secret::new("secret"), settings);
    let host = Host::new(Secret::new("seed"), 0);
    let body = request(&Value::Null);
    let Ask::Asked(asked) = adapter.ask("/v1/chat/completions", &body, host) else {
        panic!("it offers tools")
    };
    assert_eq!(asked.body(), body);
    assert_eq!(asked.counts().hidden_tools, 0);
}

#[test]
fn examples_that_do_not_fit_into_the_prompt_are_counted() {
    let tool = |name: &str, examples: Value| {
        json!({"type": "function", "function": {"name": name, "input_examples": examples, "parameters": {
            "type": "object", "properties": {"text": {"type": "string"}}}}})
    };
    let long = "x".repeat(5_000);
    let tools = [
        tool("short", json!([{"text": "shown"}])),
        tool("write", json!([{"text": "also shown"}, {"text": long}])),
        tool("web_read", json!([{"text": 5}, {"text": long}])),
    ];
    let body =
        json!({"model": "m", "tools": tools, "messages": [{"role": "user", "content": "Read a."}]});
    let count = |mode: ToolMode, hidden: &[&str]| {
        let settings = settings(|settings| {
            settings.mode = mode;
            settings.prompt_budget.hidden_tools = hidden.iter().map(|&name| name.into()).collect();
        });
        let adapter = Adapter::new(Secret::new("secret"), settings);
        let host = Host::new(Secret::new("seed"), 0);
        let Ask::Asked(asked) =
            adapter.ask("/v1/chat/completions", body.to_string().as_bytes(), host)
        else {
            panic!("it offers tools")
        };
        let sent = String::from_utf8(asked.body().to_vec()).unwrap();
        if mode == ToolMode::Text {
            assert!(
                sent.contains("also shown") && !sent.contains(&long),
                "{sent}"
            );
        }
        asked.counts().skipped_examples
    };
    assert_eq!(count(ToolMode::Text, &[]), 3);
    assert_eq!(count(ToolMode::Text, &["web_*"]), 1);
    assert_eq!(count(ToolMode::Native, &[]), 0);
}
