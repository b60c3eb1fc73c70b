//! Few-shot examples as messages, and calls that are copied from them (`spec/prompt.md` 3.3).
#![allow(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its helpers too"
)]

use plaincall_prompt::few_shot::{FewShot, FewShotExample, ShownCall, few_shot};
use plaincall_reply::{Document, Untrusted, bind};
use plaincall_syntax::Dialect;
use plaincall_tool::{Arguments, CallExample, Parameter, ParameterKind, ToolSpec};
use serde_json::{Value, json};

fn weather() -> ToolSpec {
    ToolSpec::new("weather")
        .parameter(Parameter::new("town", ParameterKind::String))
        .parameter(Parameter::new("days", ParameterKind::Integer).optional())
        .positional(["town", "days"])
        .example(
            CallExample::new(json!({"town": "Rome"}))
                .result("21")
                .asked("How warm is it in Rome?", "21 degrees."),
        )
        .example(CallExample::new(json!({"town": "Bern"})))
}

fn now() -> ToolSpec {
    ToolSpec::new("now")
}

fn examples(given: Value) -> Vec<FewShotExample> {
    serde_json::from_value(given).unwrap()
}

fn of_weather(town: &str) -> Value {
    json!({"question": format!("And in {town}?"), "tool": "weather", "arguments": {"town": town}, "result": "3", "answer": "3."})
}

fn questions(shown: &FewShot) -> Vec<&str> {
    let texts = shown.messages.iter().map(|message| &*message.text);
    texts
        .filter(|text| text.ends_with('?') || text.ends_with('!'))
        .collect()
}

fn shown(given: Value, most: usize) -> FewShot {
    let (weather, now) = (weather(), now());
    few_shot(&examples(given), &[&weather, &now], &Dialect::block(), most).unwrap()
}

#[test]
fn each_tool_comes_once_before_any_comes_twice() {
    let given = json!([
        of_weather("Oslo"),
        of_weather("Bonn"),
        {"question": "Which is other?", "tool": "other", "arguments": {"a": 1}, "answer": "None."},
        {"question": "Hello!", "answer": "Hello."},
        {"question": "What time is it?", "tool": "now", "result": "12:00", "answer": "Noon."},
    ]);
    let all = [
        "Hello!",
        "And in Oslo?",
        "What time is it?",
        "And in Bonn?",
        "How warm is it in Rome?",
    ];
    for most in 0..=6 {
        let shown = shown(given.clone(), most);
        assert_eq!(questions(&shown), all[..most.min(5)]);
        assert_eq!(shown.invalid, []);
        for (index, message) in shown.messages.iter().enumerate() {
            assert_eq!(message.is_of_model, index % 2 == 1);
        }
    }
}

#[test]
fn an_example_of_a_definition_may_have_a_question() {
    let parameters = json!({"type": "object", "properties": {"town": {"type": "string"}}, "examples": [
        {"town": "Bern"},
        {"question": "Is it warm in Oslo?", "arguments": {"town": "Oslo"}, "result": "3", "answer": "No."},
    ]});
    let tool = ToolSpec::new("weather")
        .parameters_from_schema(&parameters)
        .unwrap();
    let shown = few_shot(&[], &[&tool], &Dialect::emoji(), 4).unwrap();
    let texts: Vec<_> = shown
        .messages
        .iter()
        .map(|message| &*message.text)
        .collect();
    assert_eq!(
        texts,
        [
            "Is it warm in Oslo?",
            "🛠️[weather Oslo]\n🛠️[/end]\n",
            "Result 1 of 1: tool weather, status ok\nOutput: 3\n",
            "No."
        ]
    );
}

#[test]
fn all_together_are_bounded() {
    let long = "x".repeat(7 << 10);
    let of = |number: u32| {
        let answer = format!("{number} {long}");
        json!({"question": format!("{number}?"), "answer": answer})
    };
    let given = json!([of(1), of(2), of(3), {"question": "4?", "answer": "4"}]);
    assert_eq!(
        questions(&shown(given, 9)),
        ["1?", "How warm is it in Rome?", "2?", "4?"]
    );
}

#[test]
fn problems_name_the_field() {
    let text = json!({"question": "Is it?", "answer": "It is."});
    for (change, expected) in [
        (
            json!({"question": " "}),
            "`question` of example 1: it is missing; servers reject empty messages",
        ),
        (
            json!({"answer": ""}),
            "`answer` of example 1: it is missing; servers reject empty messages",
        ),
        (
            json!({"arguments": {"town": "Oslo"}}),
            "`arguments` of example 1: the example has no `tool`; add it, or remove this",
        ),
        (
            json!({"tool": "weather", "arguments": {"twn": "Oslo"}}),
            "`arguments` of example 1: ",
        ),
        (
            json!({"tool": "weather", "arguments": {"town": "Oslo", "days": "many"}}),
            "`arguments` of example 1: ",
        ),
    ] {
        let mut given = text.clone();
        given
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let shown = shown(json!([given]), 4);
        let problems: Vec<_> = shown.invalid.iter().map(ToString::to_string).collect();
        assert!(
            problems.len() == 1 && problems[0].starts_with(expected),
            "{problems:?}"
        );
        assert_eq!(questions(&shown), ["How warm is it in Rome?"]);
    }
}

/// No text of an example is a call, except its call.
#[test]
fn texts_are_escaped() {
    let marker = "!!!GADGET_START:now\n!!!GADGET_END\n";
    let given = json!([{"question": format!("What is {marker}"), "tool": "weather", "arguments": {"town": marker},
        "result": marker, "answer": marker}]);
    let tool = weather();
    let dialect = Dialect::block().escaped();
    let shown = few_shot(&examples(given), &[&tool], &dialect, 1).unwrap();
    let calls: Vec<usize> = shown
        .messages
        .iter()
        .map(|message| {
            Document::parse(&message.text, &dialect)
                .unwrap()
                .calls()
                .count()
        })
        .collect();
    assert_eq!(calls, [0, 1, 0, 0]);
}

fn arguments(town: &str, days: Option<i64>) -> Arguments {
    let days = days.map_or(String::new(), |days| format!("!!!ARG:days\n{days}\n"));
    let text = format!("!!!GADGET_START:weather\n!!!ARG:town\n{town}\n{days}!!!GADGET_END\n");
    let document = Document::parse(&text, &Dialect::block()).unwrap();
    bind(&weather(), document.calls().next().unwrap()).unwrap()
}

#[test]
fn a_call_is_copied_until_the_conversation_has_its_values() {
    let mut calls = shown(json!([of_weather("New  York")]), 4).calls;
    assert!(calls.is_copied("weather", &arguments("new york", None)));
    assert!(!calls.is_copied("weather", &arguments("New York City", None)));
    assert!(!calls.is_copied("weather", &arguments("New York", Some(2))));
    assert!(!calls.is_copied("other", &arguments("New York", None)));
    for text in [
        "What about New Yorkshire?",
        "New\n\nJersey, York",
        "newyork",
    ] {
        calls.observe(&Untrusted::new(text));
        assert!(
            calls.is_copied("weather", &arguments("New York", None)),
            "{text}"
        );
    }
    calls.observe(&Untrusted::new("How warm is it in *new york*, please?"));
    assert!(!calls.is_copied("weather", &arguments("New York", None)));
    assert!(calls.is_copied("weather", &arguments("Rome", None)));
}

/// Scripts without blanks have no word boundaries, numbers are compared as they are written, and a call without values
/// cannot be copied.
#[test]
fn values_of_other_kinds() {
    let given = json!([
        {"question": "a?", "tool": "weather", "arguments": {"town": "東京", "days": 3}, "answer": "b"},
        {"question": "c?", "tool": "now", "answer": "d"},
    ]);
    let mut calls = shown(given, 2).calls;
    assert_eq!(calls.unknown().count(), 1);
    assert!(calls.is_copied("weather", &arguments("東京", Some(3))));
    calls.observe(&Untrusted::new("今日の東京の天気は？ 13 31"));
    assert!(calls.is_copied("weather", &arguments("東京", Some(3))));
    // A log has the values that are missing.
    let recorded: Vec<_> = calls.unknown().cloned().collect();
    let lines = serde_json::to_string(&recorded).unwrap();
    let read: Vec<ShownCall> = serde_json::from_str(&lines).unwrap();
    assert_eq!(read, recorded, "{lines}");
    calls.observe(&Untrusted::new("3日"));
    assert!(!calls.is_copied("weather", &arguments("東京", Some(3))));
}
