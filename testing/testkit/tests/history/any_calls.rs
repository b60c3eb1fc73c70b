//! Any calls in any dialect: what is rendered is read again as it was, and nothing else is read.

use plaincall_prompt::history::{PastCall, TurnPart, history};
use plaincall_reply::{Document, ModelText, Untrusted, bind, untrusted::Origin};
use plaincall_syntax::{Dialect, Syntax};
use plaincall_testkit::untrusted::{FORMS, breach, dialect};
use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A random call.
#[derive(Clone, Debug)]
struct Sample {
    name: String,
    id: Option<String>,
    dependencies: Vec<String>,
    arguments: Given,
}

#[derive(Clone, Debug)]
enum Given {
    Object(Map<String, Value>),
    Text(String),
}

/// Texts of significant pieces.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "!!!GADGET_START:",
            "!!!GADGET_END",
            "!!!ARG:",
            "!!!ARGk3v9q2x8:",
            "!!!GADGET_ENDk3v9q2x8",
            "<<<START:",
            "<<<END:",
            "@param:",
            "##",
            "###",
            "####",
            "ab",
            "ba!",
            "::",
            "<think>",
            "</think>",
            "🛠️[",
            "🛠️[/end]",
            "🛠[",
            "🛠️k1[",
            "🛠️k1[/end]",
            "🛠",
            "[/end]",
            "]",
            " /]",
            "!!!",
            "\n",
            "\r\n",
            "\r",
            "\t",
            " ",
            "\\",
            "\u{0}",
            "\u{1b}",
            "\u{2028}",
            "\u{85}",
            "\u{feff}",
            "null",
            "true",
            "5",
            "007",
            "1e5",
            "-0",
            "[]",
            "{}",
            "[1]",
            "{\"a\": 1}",
            "\"",
            "a",
            "é",
            "x/y",
            "~",
            "~1",
            "Add",
            "rm -r /",
            ":",
            ",",
            "```",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![1e300, -0.0, 0.1, 5e-324]).prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn keys() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(vec!["path", "count", "is_new", "ratio", "tags", "at", "any", "content", "line", "0", "1"])
            .prop_map(str::to_owned),
        1 => texts(),
    ]
}

/// Arguments that fit the tools below, mostly.
fn fitting() -> impl Strategy<Value = Map<String, Value>> {
    let words = prop_oneof![texts(), "[a-z./]{1,8}"];
    (
        prop::option::weighted(0.9, words.clone()),
        prop::option::weighted(0.8, prop_oneof![any::<i64>(), 0..9_i64]),
        prop::option::of(any::<bool>()),
        prop::option::of(any::<f64>()),
        prop::option::of(prop::collection::vec(words.clone(), 0..3)),
        prop::option::of((any::<u64>(), words.clone())),
        prop::option::weighted(0.1, (keys(), values())),
        prop::option::of(words),
    )
        .prop_map(|(path, count, is_new, ratio, tags, at, other, content)| {
            let mut object = Map::new();
            let mut put = |key: &str, value: Option<Value>| {
                if let Some(value) = value {
                    object.insert(key.to_owned(), value);
                }
            };
            put("path", path.map(Value::from));
            put("count", count.map(Value::from));
            put("is_new", is_new.map(Value::from));
            put("ratio", ratio.map(Value::from));
            put("tags", tags.map(Value::from));
            put(
                "at",
                at.map(|(line, name)| json!({"line": line, "name": name})),
            );
            put("content", content.map(Value::from));
            if let Some((key, value)) = other {
                put(&key, Some(value));
            }
            object
        })
}

fn given() -> impl Strategy<Value = Given> {
    let object = || {
        prop_oneof![
            3 => fitting(),
            1 => prop::collection::vec((keys(), values()), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    };
    prop_oneof![
        4 => object().prop_map(Given::Object),
        2 => object().prop_map(|object| Given::Text(Value::Object(object).to_string())),
        1 => texts().prop_map(Given::Text),
        1 => prop::sample::select(vec![
            "", " ", "{", "{}", "[]", "null", "{\"path\": 1e400}", "{\"count\": 123456789012345678901234567890}",
            "{\"path\": \"a\", \"path\": \"b\"}", "{\"path\": \"a\"} {\"path\": \"b\"}", "{\"ratio\": 1.00000000000000000001}",
        ])
        .prop_map(|text| Given::Text(text.to_owned())),
    ]
}

fn sample() -> impl Strategy<Value = Sample> {
    let names = prop_oneof![
        4 => prop::sample::select(vec!["Everything", "Line", "Body", "Open", "Unknown"]).prop_map(str::to_owned),
        1 => texts(),
    ];
    let ids = || prop_oneof![3 => "[a-z]{1,3}_[0-9]", 1 => texts()];
    (
        names,
        prop::option::of(ids()),
        prop::collection::vec(ids(), 0..2),
        given(),
    )
        .prop_map(|(name, id, dependencies, arguments)| Sample {
            name,
            id,
            dependencies,
            arguments,
        })
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, schema: Value| {
        ToolSpec::new(name)
            .parameters_from_schema(&schema)
            .expect("a schema of an object")
    };
    let everything = json!({"type": "object", "required": ["path"], "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer"},
        "is_new": {"type": "boolean"},
        "ratio": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "at": {"type": "object", "properties": {"line": {"type": "integer"}, "name": {"type": ["string", "null"]}}},
        "content": {"type": "string"},
        "any": {},
    }});
    vec![
        tool("Everything", everything),
        ToolSpec::new("Line")
            .parameter(Parameter::new("path", ParameterKind::String))
            .parameter(Parameter::new("count", ParameterKind::Integer).optional())
            .positional(["count", "path"]),
        ToolSpec::new("Body")
            .parameter(Parameter::new("path", ParameterKind::String))
            .parameter(Parameter::new("content", ParameterKind::String).optional())
            .parameter(Parameter::new("count", ParameterKind::Integer).optional())
            .body("content"),
        tool(
            "Open",
            json!({"type": "object", "additionalProperties": true}),
        ),
    ]
}

fn past(sample: &Sample) -> PastCall<'_> {
    let name = Untrusted::new(&*sample.name);
    let mut call = match &sample.arguments {
        Given::Object(object) => PastCall::new(name, object),
        Given::Text(text) => PastCall::from_text(name, Untrusted::new(&**text)),
    };
    if let Some(id) = &sample.id {
        call = call.id(Untrusted::new(&**id));
    }
    call.depends_on(sample.dependencies.iter().map(|id| Untrusted::new(&**id)))
}

/// The object that the arguments are, if they are one that keeps every digit and member.
fn object_of(given: &Given) -> Option<Map<String, Value>> {
    match given {
        Given::Object(object) => Some(object.clone()),
        Given::Text(text) if text.trim().is_empty() => Some(Map::new()),
        Given::Text(text) => match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Some(object),
            _ => None,
        },
    }
}

/// Checks the text of a turn: each part that is a call parses to the same call, and the rest contains no call.
fn check(words: &str, calls: &[Sample], texts: &[String]) -> usize {
    let mut dialect = dialect(words);
    if words.contains("in-reasoning") {
        dialect = Dialect::auto().escaped().reasoning("<think>", "</think>");
    }
    let tools = tools();
    let find = |name: &str| tools.iter().find(|tool| tool.name == name);
    let mut turn = Vec::new();
    for (place, call) in calls.iter().enumerate() {
        turn.extend(
            texts
                .get(place)
                .map(|text| TurnPart::Claimed(Untrusted::new(&**text))),
        );
        turn.push(TurnPart::Called(past(call)));
    }
    let prompt_text = history(&turn, &dialect, find).expect("a dialect that works");
    assert_eq!(breach(&prompt_text, &dialect), None, "{words}");
    let rendered: Vec<&str> = prompt_text
        .parts()
        .iter()
        .filter(|part| part.origin == Origin::Trusted)
        .map(|part| &prompt_text.text()[part.span.range()])
        .filter(|text| *text != "\n")
        .collect();

    let document = Document::parse(prompt_text.text(), &dialect).expect("a dialect that works");
    let read: Vec<_> = document.calls().collect();
    assert_eq!(
        read.len(),
        rendered.len(),
        "{words}\n{}",
        prompt_text.text()
    );

    // Which of the calls were rendered is seen by telling each alone.
    let mut found = read.iter();
    for sample in calls {
        let alone = history(&[TurnPart::Called(past(sample))], &dialect, find).expect("a dialect");
        let is_call = alone
            .parts()
            .iter()
            .all(|part| part.origin == Origin::Trusted);
        let alone_read = Document::parse(alone.text(), &dialect).expect("a dialect that works");
        assert_eq!(
            alone_read.calls().count(),
            usize::from(is_call),
            "{words}: {alone:?}"
        );
        if !is_call {
            let json = json_of(alone.text(), &dialect);
            assert_eq!(json["name"], sample.name.as_str());
            assert_eq!(json.get("id").and_then(Value::as_str), sample.id.as_deref());
            match (&sample.arguments, object_of(&sample.arguments)) {
                (Given::Text(text), _) if json["arguments"].is_string() => {
                    assert_eq!(json["arguments"], text.as_str());
                }
                (_, object) => assert_eq!(json["arguments"].as_object(), object.as_ref()),
            }
            continue;
        }
        let call = found.next().expect("a call for each that was rendered");
        let object = object_of(&sample.arguments).expect("what is rendered is an object");
        assert_eq!(call.name, sample.name);
        assert!(call.is_closed(), "{words}\n{}", prompt_text.text());
        if call.syntax == Syntax::Block {
            match sample.id.as_deref().filter(|id| !id.is_empty()) {
                Some(id) => assert_eq!(call.id, id),
                None => assert!(call.is_id_automatic),
            }
        }
        match (find(&sample.name), call.syntax) {
            (Some(tool), _) => match bind(tool, call) {
                Ok(bound) => {
                    let bound = bound.to_value();
                    let mut given = object;
                    // Null for an optional parameter that cannot be null means absent.
                    let is_optional = |name: &str| tool.get(name).is_some_and(|one| !one.required);
                    given.retain(|name, value| {
                        !value.is_null() || !is_optional(name) || bound.get(name).is_some()
                    });
                    assert_eq!(bound, Value::Object(given), "{words}");
                }
                Err(problems) => {
                    let is_missing = problems.iter().all(|one| one.code == "missing_argument");
                    assert!(is_missing, "{words}: {problems:?}\n{}", prompt_text.text());
                }
            },
            (None, Syntax::Block) => assert_eq!(call.arguments.to_value(), Value::Object(object)),
            (None, Syntax::Emoji) => assert_eq!(
                json!({"raw_args": call.raw_args.as_deref(), "body": call.body()}),
                Value::Object(object)
            ),
        }
    }
    assert!(found.next().is_none());
    rendered.len()
}

/// The JSON of a call that is sample as JSON.
fn json_of(text: &str, dialect: &Dialect) -> Value {
    let escaper = plaincall_syntax::Escaper::new(dialect).expect("a dialect that works");
    let plain = escaper.unescape(text);
    let json = plain
        .strip_suffix(")\n")
        .and_then(|text| text.split_once(": "));
    let (_, json) = json.unwrap_or_else(|| panic!("{plain}"));
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[test]
fn any_calls_come_back_or_stand_as_json() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(600));
    let turns = (
        prop::sample::select(FORMS),
        prop::collection::vec(sample(), 1..4),
        prop::collection::vec(texts(), 0..4),
    );
    let (rendered, all) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    runner
        .run(&turns, |(words, calls, texts)| {
            rendered.set(rendered.get() + check(words, &calls, &texts));
            all.set(all.get() + calls.len());
            Ok(())
        })
        .expect("it holds");
    println!("{} of {} calls were rendered", rendered.get(), all.get());
    assert!(
        rendered.get() * 5 > all.get(),
        "too few calls are rendered to say anything"
    );
}

#[test]
fn model_text_is_kept_byte_for_byte() {
    let written = [
        "Let me see.\r\n!!!GADGET_START:Add\n!!!ARG:a\n5\n!!!GADGET_END",
        "!!!GADGET_START:Add:\r\n!!!ARG:a\\:\n\u{0}",
        "🛠️[x",
        "🛠️[x]!!!GADGET_START:",
        "",
        "\\",
    ];
    for words in FORMS {
        let parts: Vec<TurnPart<'_>> = written
            .iter()
            .map(|text| TurnPart::Written(ModelText::new(*text)))
            .collect();
        let prompt_text = history(&parts, &dialect(words), |_| None).expect("a dialect that works");
        assert_eq!(prompt_text.text(), written.concat(), "{words}");
    }
}
