//! Few-shot examples in requests, and replies that copy them (`spec/prompt.md` 3.3).

use plaincall_gateway::{ArgumentMode, ModelSettings};
use plaincall_syntax::Dialect;
use serde_json::{Value, json};

use super::translated;
use crate::replies::model::{Stream, exchange, plan};
use crate::replies::table::line;
use crate::settings;

const EXAMPLE: &str = "!!!GADGET_START:add\n!!!ARG:a\n77\n!!!GADGET_END\n";
const OTHER: &str = "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n";

fn few_shot(dialect: Dialect) -> ModelSettings {
    let examples = json!([
        {"question": "Hi!", "answer": "Hi."},
        {"question": "Add 77.", "tool": "add", "arguments": {"a": 77}, "result": "77", "answer": "It is 77."},
        {"question": "Is it?", "tool": "unknown", "answer": "No."},
        {"question": "Add it.", "tool": "add", "arguments": {"a": "many"}, "answer": "No."},
    ]);
    settings(|settings| {
        settings.dialect = dialect;
        settings.examples = serde_json::from_value(examples).unwrap();
        settings.few_shot = 8;
    })
}

/// They follow the system message, also in later requests.
#[test]
fn examples_come_first() {
    let tools = json!([{"type": "function", "function": {"name": "add", "parameters":
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}]);
    for (dialect, call) in [
        (Dialect::block(), EXAMPLE),
        (Dialect::emoji(), "🛠️[add 77]\n🛠️[/end]\n"),
    ] {
        for system in [&["system"][..], &[], &["developer", "system"]] {
            let before = system
                .iter()
                .map(|role| json!({"role": role, "content": "Be short."}));
            let mut messages: Vec<Value> = before.collect();
            messages.push(json!({"role": "user", "content": "Do it."}));
            let request = json!({"messages": messages, "tools": tools});
            let (upstream, ..) = translated(&request, &few_shot(dialect.clone())).unwrap();
            let sent = upstream["messages"].as_array().unwrap();
            let first = 1;
            let pairs = sent[first..].iter().map(|message| {
                (
                    message["role"].as_str().unwrap(),
                    message["content"].as_str().unwrap(),
                )
            });
            let result = "Result 1 of 1: tool add, status ok\nOutput: 77\n";
            let expected = [
                ("user", "Hi!"),
                ("assistant", "Hi."),
                ("user", "Add 77."),
                ("assistant", call),
                ("user", result),
                ("assistant", "It is 77."),
                ("user", "Do it."),
            ];
            assert_eq!(pairs.collect::<Vec<_>>(), expected);
        }
    }
}

/// A call that is copied from an example is invalid: the model is asked again. If the conversation has its values, it is sent.
#[test]
fn a_copied_call_is_invalid() {
    let answered = |question: &str, settings: &ModelSettings, texts: &[&str]| {
        let fields = json!({"messages": [{"role": "user", "content": question}]});
        let rounds = texts
            .iter()
            .map(|text| Stream::new().texts([*text]).finish("stop").done());
        let rounds: Vec<Stream> = rounds.collect();
        let outcome = exchange(&plan(&fields, settings), &rounds, &[7], false);
        let asked = outcome.rounds.last().map(|round| round.message.clone());
        (line(&outcome), asked.unwrap_or_default())
    };
    let settings = few_shot(Dialect::block());
    let (sent, asked) = answered("Do it.", &settings, &[EXAMPLE, OTHER]);
    assert_eq!(sent, r#""" add({"a":5}) tool_calls"#);
    assert!(
        asked.contains(
            "this is the call of an example, and its values are not in this conversation"
        ),
        "{asked}"
    );
    assert!(!asked.contains("A correct call"), "{asked}");
    let (sent, _) = answered("Add seventy-seven (77).", &settings, &[EXAMPLE]);
    assert_eq!(sent, r#""" add({"a":77}) tool_calls"#);

    let mut streaming = settings;
    streaming.arguments = ArgumentMode::Stream;
    let (sent, _) = answered("Do it.", &streaming, &[EXAMPLE]);
    assert_eq!(sent, r#""" add({"a":77]) tool_calls"#);
}
