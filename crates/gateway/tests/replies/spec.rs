//! The examples of `spec/gateway.md` and of both syntaxes, executed as replies.

use std::fs;

use plaincall_gateway::{ArgumentMode, ModelSettings, ToolMode};
use plaincall_reply::{Document, Stop, Unclosed};
use plaincall_syntax::{Dialect, Syntax};
use plaincall_testkit::examples::{Example, Operation, all, fences, folder};
use plaincall_testkit::untrusted::chunks;
use plaincall_tool::{ToolSet, ToolSpec, definitions::read_tool_definitions};
use serde_json::{Value, json};

use crate::replies::back::next_message;
use crate::replies::expected;
use crate::replies::model::{Stream, exchange, plan, recorded};
use plaincall_testkit::strict_client::Recorded;

fn lines(recorded: &Recorded) -> String {
    let mut lines = Vec::new();
    for (name, text) in [
        ("reasoning", &recorded.reasoning),
        ("content", &recorded.content),
    ] {
        if !text.is_empty() {
            lines.push(format!("{name} {}", Value::from(text.as_str())));
        }
    }
    for call in &recorded.calls {
        let arguments = expected::without_reason(&call.arguments);
        lines.push(format!("call {} {arguments}", call.name));
    }
    lines.extend(
        recorded
            .finish_reason
            .iter()
            .map(|reason| format!("finish {reason}")),
    );
    lines.extend(recorded.error.iter().map(|error| format!("error {error}")));
    lines.join("\n")
}

/// Applies the words after `reply`.
fn request_of(words: &[String]) -> (Value, ModelSettings) {
    let mut settings = ModelSettings::default();
    let mut fields = json!({});
    for word in words {
        match word.strip_prefix("choice=") {
            Some(word @ ("none" | "required")) => fields["tool_choice"] = json!(word),
            Some(name) => {
                fields["tool_choice"] = json!({"type": "function", "function": {"name": name}});
            }
            None if word == "unclosed" => settings.unclosed = Unclosed::Run,
            None if word == "native" => settings.mode = ToolMode::Native,
            None if word == "stream" => settings.arguments = ArgumentMode::Stream,
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
    let mut last = None;
    for fence in fences(&text) {
        match fence.info[0].as_str() {
            "reply" => rounds.push((fence.info[1..].to_vec(), fence.content)),
            "client" => {
                let (fields, settings) = request_of(&rounds[0].0[1..]);
                let plan = plan(&fields, &settings);
                let streams = rounds.drain(..).map(|(words, text)| {
                    let edges = text
                        .char_indices()
                        .map(|(at, c)| &text[at..at + c.len_utf8()]);
                    Stream::new().texts(edges).finish(&words[0]).done()
                });
                let outcome = exchange(&plan, &streams.collect::<Vec<_>>(), &[10], false);
                assert_eq!(
                    lines(&outcome.recorded),
                    fence.content,
                    "gateway.md, line {}",
                    fence.line
                );
                count += 1;
                last = Some(outcome.recorded);
            }
            "next" => {
                let recorded = last.take().expect("an example");
                let found = next_message(&recorded, &ModelSettings::default());
                assert_eq!(
                    found.trim_end(),
                    fence.content,
                    "gateway.md, line {}",
                    fence.line
                );
            }
            form @ ("items" | "events") => {
                let (words, text) = rounds.pop().expect("a reply");
                let found = crate::responses::spec::lines(form, &text, &words[0]);
                assert_eq!(found, fence.content, "gateway.md, line {}", fence.line);
            }
            // Other tests cover the examples of Messages and of Ollama's API.
            other if other.starts_with("messages-") || other.starts_with("ollama-") => {}
            other => panic!("a fence of no known form: {other}"),
        }
    }
    assert!(count > 8 && rounds.is_empty());
}

/// Runs an example of a syntax as a reply to a request that offers the tools of its calls, with these parameters.
/// Returns the number of calls that the client can read.
fn reply(example: &Example, dialect: Dialect, parameters: &Value) -> usize {
    let settings = crate::settings(|settings| {
        settings.dialect = match dialect.reasoning_markers() {
            Some(_) => dialect,
            None => dialect.without_reasoning(),
        };
    });
    if settings.check().is_err() {
        return 0;
    }
    let read = Document::parse(&example.input, &settings.dialect.clone().escaped()).unwrap();
    let mut names: Vec<&str> = read.calls().map(|call| &*call.name).collect();
    names.retain(|name| ToolSpec::new(*name).check().is_ok());
    names.push("other");
    names.sort_unstable();
    names.dedup();
    let tool = |name: &&str| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let tools: Value = names.iter().map(tool).collect();
    let set = ToolSet::new(read_tool_definitions(&tools.to_string()).unwrap()).unwrap();
    let plan = plan(&json!({"tools": tools}), &settings);
    let mut readable = 0;
    for (reason, stop, sizes) in [
        ("stop", Stop::Natural, [1]),
        ("length", Stop::Broken, [usize::MAX]),
    ] {
        let calls = expected::calls(&example.input, plan.dialect(), stop, &set);
        let recorded = recorded(&plan, &chunks(&example.input, &sizes), reason).recorded;
        expected::check_rounds(&recorded, [&*example.input], |_| calls.clone());
        readable = readable.max(calls.iter().flatten().count());
    }
    readable
}

#[test]
fn examples_of_the_syntaxes() {
    let anything = json!({"type": "object"});
    let line = json!({"type": "object", "properties": {"line": {"type": "string"}}});
    let (mut replies, mut readable) = (0, 0);
    for example in all(&["common.md", "block.md", "emoji.md"]) {
        if example.operation != Operation::Read {
            continue;
        }
        let syntaxes = match example.dialect.syntax() {
            Some(syntax) => vec![syntax],
            // The gateway teaches one syntax.
            None => vec![Syntax::Block, Syntax::Emoji],
        };
        for syntax in syntaxes {
            let parameters = match syntax {
                Syntax::Block => &anything,
                Syntax::Emoji => &line,
            };
            readable += reply(&example, example.dialect.for_syntax(syntax), parameters);
            replies += 1;
        }
    }
    assert!(
        replies > 200 && readable > 60,
        "{readable} calls of {replies}"
    );
}
