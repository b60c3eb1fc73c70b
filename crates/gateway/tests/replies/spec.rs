//! The examples of `spec/gateway.md`, executed.

use std::fs;

use plaincall_gateway::{Mode, ModelSettings};
use plaincall_testkit::examples::{fences, folder};
use serde_json::{Value, json};

use crate::model::{Stream, exchange, plan};
use plaincall_testkit::strict_client::Heard;

fn lines(heard: &Heard) -> String {
    let mut lines = Vec::new();
    for (name, text) in [("reasoning", &heard.reasoning), ("content", &heard.content)] {
        if !text.is_empty() {
            lines.push(format!("{name} {}", Value::from(text.as_str())));
        }
    }
    for call in &heard.calls {
        lines.push(format!("call {} {}", call.name, call.arguments));
    }
    lines.extend(
        heard
            .finish_reason
            .iter()
            .map(|reason| format!("finish {reason}")),
    );
    lines.extend(heard.error.iter().map(|error| format!("error {error}")));
    lines.join("\n")
}

/// What the words behind `reply` ask for.
fn asked(words: &[String]) -> (Value, ModelSettings) {
    let mut settings = ModelSettings::default();
    let mut fields = json!({});
    for word in words {
        match word.strip_prefix("choice=") {
            Some(word @ ("none" | "required")) => fields["tool_choice"] = json!(word),
            Some(name) => {
                fields["tool_choice"] = json!({"type": "function", "function": {"name": name}});
            }
            None if word == "checked" => settings.mode = Mode::Checked,
            None => panic!("{word}?"),
        }
    }
    (fields, settings)
}

#[test]
fn examples() {
    let text = fs::read_to_string(folder().join("gateway.md")).unwrap();
    let mut rounds: Vec<(Vec<String>, String)> = Vec::new();
    let mut count = 0;
    for fence in fences(&text) {
        match fence.info[0].as_str() {
            "reply" => rounds.push((fence.info[1..].to_vec(), fence.content)),
            "client" => {
                let (fields, settings) = asked(&rounds[0].0[1..]);
                let plan = plan(&fields, &settings);
                let streams = rounds.drain(..).map(|(words, text)| {
                    let edges = text
                        .char_indices()
                        .map(|(at, c)| &text[at..at + c.len_utf8()]);
                    Stream::new().texts(edges).finish(&words[0]).done()
                });
                let outcome = exchange(&plan, &streams.collect::<Vec<_>>(), &[10], false);
                assert_eq!(
                    lines(&outcome.heard),
                    fence.content,
                    "gateway.md, line {}",
                    fence.line
                );
                count += 1;
            }
            other => panic!("a fence of no known form: {other}"),
        }
    }
    assert!(count > 8 && rounds.is_empty());
}
