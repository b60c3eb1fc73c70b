//! The examples of `spec/history.md` and `spec/repair.md`.

use plaincall_prompt::history::{PastCall, ResultMessage, Status, TurnPart, history, results};
use plaincall_prompt::repair::{repair, repair_reply};
use plaincall_reply::{Document, ModelText, ReplyCheck, Stop, Unclosed, Untrusted};
use plaincall_testkit::examples;
use plaincall_testkit::untrusted::{breach, dialect};
use plaincall_tool::ToolSpec;
use plaincall_tool::definitions::read_tool_definitions;
use serde_json::Value;

fn turn(content: &str, words: &str, tools: &[ToolSpec]) -> String {
    let lines: Vec<(&str, Value)> = content
        .lines()
        .map(|line| {
            let (kind, json) = line.split_once(' ').expect("a kind and JSON");
            (kind, serde_json::from_str(json).expect("JSON"))
        })
        .collect();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let parts: Vec<TurnPart<'_>> = lines
        .iter()
        .map(|(kind, value)| match *kind {
            "written" => TurnPart::Written(ModelText::new(text(value))),
            "claimed" => TurnPart::Claimed(Untrusted::new(text(value))),
            "call" => {
                let name = Untrusted::new(text(&value["name"]));
                let mut call = match &value["arguments"] {
                    Value::Object(object) => PastCall::new(name, object),
                    other => PastCall::from_text(name, Untrusted::new(text(other))),
                };
                if let Some(id) = value["id"].as_str() {
                    call = call.id(Untrusted::new(id));
                }
                let ids = value["dependencies"].as_array().into_iter().flatten();
                TurnPart::Called(call.depends_on(ids.map(|id| Untrusted::new(text(id)))))
            }
            other => panic!("what is {other:?}?"),
        })
        .collect();
    let find = |name: &str| tools.iter().find(|tool| tool.name == name);
    let prompt_text = history(&parts, &dialect(words), find).expect("a dialect that works");
    assert_eq!(breach(&prompt_text, &dialect(words)), None);
    prompt_text.into_text()
}

fn result_text(content: &str, words: &str) -> String {
    let lines: Vec<Value> = content
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let result_text: Vec<ResultMessage<'_>> = lines
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().map(Untrusted::new);
            let name = text("name").expect("a name");
            let mut message = ResultMessage::new(name, text("id").expect("an id"));
            message.status = line["status"].as_str().and_then(Status::from_name);
            message.error = text("error");
            message.note = text("note");
            message.output = text("output");
            message.whole_bytes = line["whole_bytes"].as_u64();
            message
        })
        .collect();
    let prompt_text = results(&result_text, &dialect(words)).expect("a dialect that works");
    assert_eq!(breach(&prompt_text, &dialect(words)), None);
    prompt_text.into_text()
}

fn message(reply: &str, words: &str, tools: &[ToolSpec]) -> String {
    let is_cut = words.contains(" truncated");
    let dialect = dialect(&words.replace(" truncated", ""));
    let stop = if is_cut { Stop::Broken } else { Stop::Natural };
    let tools: Vec<&ToolSpec> = tools.iter().collect();
    let check = ReplyCheck::new(&dialect, Unclosed::Reject).expect("a dialect that works");
    let document = Document::read(reply, &dialect, &tools[..], check.without_gate(), stop);
    let document = document.expect("a dialect that works");
    for read in document.decided() {
        let Some(error) = read.rejection() else {
            continue;
        };
        let call = &*read.call;
        let prompt_text = repair([(call, error)], &tools[..], &dialect);
        let prompt_text = prompt_text.expect("a dialect that works");
        assert_eq!(breach(&prompt_text, &dialect), None);
        return prompt_text.into_text();
    }
    let prompt_text = repair_reply(&ModelText::new(reply), &tools[..], &dialect);
    let prompt_text = prompt_text
        .expect("a dialect that works")
        .expect("near misses");
    assert_eq!(breach(&prompt_text, &dialect), None);
    prompt_text.into_text()
}

fn check(file: &str, least: usize) {
    let mut tools: Vec<ToolSpec> = Vec::new();
    let mut found: Option<String> = None;
    let mut checked = 0;
    let text = std::fs::read_to_string(examples::folder().join(file));
    for fence in examples::fences(&text.expect("a file of the definition")) {
        let (first, words) = fence.info.split_first().expect("a word behind the fence");
        let words = &*words.join(" ");
        match first.as_str() {
            "tools" => tools = read_tool_definitions(&fence.content).expect("definitions"),
            "turn" => found = Some(turn(&fence.content, words, &std::mem::take(&mut tools))),
            "results" => found = Some(result_text(&fence.content, words)),
            "wrong" => found = Some(message(&fence.content, words, &tools)),
            "text" | "message" => {
                let found = found.take().expect("an example before its text");
                assert_eq!(found, fence.content, "{file}:{}", fence.line);
                checked += 1;
            }
            "ebnf" => {}
            other => panic!("{file}:{}: what is {other:?}?", fence.line),
        }
    }
    assert!(checked >= least, "{file}: {checked} examples");
}

#[test]
fn every_example_of_history_holds() {
    check("history.md", 10);
}

#[test]
fn every_example_of_repair_holds() {
    check("repair.md", 6);
}
