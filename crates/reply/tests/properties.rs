//! Properties of every input.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_reply::document::DocumentReader;
use plaincall_reply::{Document, ReplyCheck, Stop, Unclosed, bind};
use plaincall_syntax::{Call, Dialect, ceil_char_boundary, render};
use plaincall_tool::json::coerce;
use plaincall_tool::{Arguments, Limits, NoTools, Parameter, ParameterKind, ToolSpec, flatten};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Texts of pieces with a meaning for the parser or the assembly.
fn arbitrary() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "!!!GADGET_START:",
        "!!!GADGET_END",
        "!!!ARG:",
        "🛠️[",
        "🛠️[/end]",
        "]",
        "\n",
        "\r\n",
        "\r",
        " ",
        "A",
        "b:c,d",
        ":",
        "x",
        "x/0",
        "/",
        "-1",
        "~1",
        "5",
        "007",
        "1.50",
        "true",
        "```",
        "é",
        "<think>",
        "</think>",
        "\\",
        "🛠",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

/// More valid calls.
fn calls() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "!!!GADGET_START:A\n",
        "!!!GADGET_START:B:i:j\n",
        "!!!GADGET_END\n",
        "!!!ARG:x\n",
        "!!!ARG:x/0\n",
        "!!!ARG:x/1\n",
        "!!!ARG:y/a\n",
        "!!!ARG:/z\n",
        "!!!ARG:x 5\n",
        "1\n",
        "text \\ !!!ARG\\:\n",
        "\n",
        "prose",
        "see !!!ARG:",
        "🛠️[a b]\n",
        "🛠️[/end]",
        "<think>",
        "</think>",
    ]);
    prop::collection::vec(pieces, 0..30).prop_map(|pieces| pieces.concat())
}

fn dialects() -> impl Strategy<Value = Dialect> {
    let thinking = |dialect: Dialect| dialect.reasoning("<think>", "</think>");
    prop::sample::select(vec![
        Dialect::auto(),
        Dialect::block(),
        Dialect::emoji(),
        Dialect::block().escaped(),
        Dialect::block().markers_anywhere(),
        Dialect::emoji().self_closing(),
        thinking(Dialect::auto().escaped()),
        thinking(Dialect::block()).in_reasoning(),
    ])
}

fn in_chunks(text: &str, dialect: &Dialect, sizes: &[usize], limits: Limits) -> Document {
    let check = ReplyCheck::new(dialect, Unclosed::Reject).expect("a dialect that works");
    let reader = DocumentReader::new(dialect, NoTools, check, limits);
    let mut reader = reader.expect("a dialect that works");
    let mut rest = text;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, left) = rest.split_at(ceil_char_boundary(rest, size.min(rest.len())));
        reader.feed(chunk);
        rest = left;
    }
    reader.finish(Stop::Broken)
}

/// All public information of a document.
fn seen(document: &Document) -> String {
    let calls: Vec<_> = document
        .calls()
        .map(|call| {
            let arguments: Vec<_> = call.arguments.iter().collect();
            let rest = (
                call.marker_in_value,
                call.is_duplicate,
                call.source(),
                call.body_span(),
                call.raw_args_span(),
            );
            format!(
                "{} {:?} {:?} {arguments:?} {rest:?} {:?}",
                call.index, call.span, call.header.span, call.diagnostics
            )
        })
        .collect();
    format!(
        "{}\n{calls:#?}",
        serde_json::to_string_pretty(document).expect("JSON")
    )
}

fn check_document(text: &str, dialect: &Dialect, sizes: &[usize]) -> Result<(), TestCaseError> {
    let whole = Document::parse(text, dialect).expect("a dialect that works");
    prop_assert_eq!(
        seen(&in_chunks(text, dialect, sizes, Limits::default())),
        seen(&whole)
    );

    let mut at = 0;
    for segment in &whole.segments {
        prop_assert_eq!(segment.span().start, at, "the segments tile the text");
        at = segment.span().end;
    }
    prop_assert_eq!(at, text.len());
    for call in whole.calls() {
        prop_assert_eq!(call.source(), text.get(call.span.range()));
        prop_assert!(
            call.source()
                .is_some_and(|source| source.contains(call.raw()))
        );
        let json = serde_json::to_value(call).expect("JSON");
        prop_assert_eq!(
            json.get("parameters").is_some(),
            call.parse_error.is_none() && json.get("gadgetName").is_some()
        );
        for argument in call.arguments.iter() {
            let source = text.get(argument.span.range()).unwrap_or("?");
            if source.len() == argument.text.len() {
                prop_assert_eq!(source, argument.text);
            } else {
                prop_assert!(dialect.is_escaped() && source.len() > argument.text.len());
            }
            prop_assert_eq!(call.arguments.get(argument.pointer), Some(argument.text));
        }
        prop_assert_eq!(
            call.arguments.to_value(),
            serde_json::to_value(&call.arguments).expect("JSON")
        );
    }
    prop_assert!(
        whole
            .diagnostics
            .is_sorted_by_key(|diagnostic| diagnostic.span.end)
    );

    let mut tight = Limits::for_running();
    tight.depth = 1;
    tight.arguments = 2;
    tight.dependencies = 1;
    tight.value_bytes = Some(3);
    tight.warnings = Some(1);
    for call in in_chunks(text, dialect, sizes, tight).calls() {
        prop_assert!(call.arguments.len() <= 2 && call.dependencies.len() <= 1);
        prop_assert!(
            call.arguments
                .iter()
                .all(|argument| argument.text.len() <= 3)
        );
        prop_assert!(call.body().is_none_or(|body| body.len() <= 3));
    }
    Ok(())
}

/// Keys, some of which need an escape and some of which look like indices.
fn keys() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z]{1,3}", 1 => "[a-z~/0-9-]{1,3}", 1 => "[ -~é]{0,3}"]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-1000_i32..1000, 0_i32..4)
            .prop_map(|(digits, places)| Value::from(f64::from(digits) / 10_f64.powi(places))),
        "[ -~\n\r\té]{0,8}".prop_map(Value::from),
        "-?[0-9]{1,4}(\\.[0-9]{1,3})?".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn objects() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((keys(), json()), 0..5).prop_map(|members| members.into_iter().collect())
}

/// An object that flattening can usually express.
fn repaired(value: Value) -> Value {
    match value {
        Value::Null => Value::from("null"),
        Value::String(text) if !coerce(&text).is_string() => Value::from(format!("{text}x")),
        Value::Array(items) if items.is_empty() => Value::from("list"),
        Value::Object(members) if members.is_empty() => Value::from("object"),
        Value::Array(items) => items.into_iter().map(repaired).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(key, member)| (format!("k{}", key.replace(' ', "_")), repaired(member)))
            .collect(),
        other => other,
    }
}

/// A tool with one parameter of each kind.
fn tool() -> ToolSpec {
    let kinds = [
        ("string", ParameterKind::String),
        ("number", ParameterKind::Number),
        ("integer", ParameterKind::Integer),
        ("boolean", ParameterKind::Boolean),
        ("array", ParameterKind::Array),
        ("object", ParameterKind::Object),
        ("any", ParameterKind::Any),
    ];
    kinds
        .into_iter()
        .fold(ToolSpec::new("A"), |tool, (name, kind)| {
            tool.parameter(Parameter::new(name, kind).optional())
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn documents_do_not_depend_on_chunks(text in arbitrary(), dialect in dialects(), sizes in prop::collection::vec(1_usize..9, 1..5)) {
        check_document(&text, &dialect, &sizes)?;
    }

    #[test]
    fn calls_do_not_depend_on_chunks(text in calls(), dialect in dialects(), sizes in prop::collection::vec(1_usize..20, 1..5)) {
        check_document(&text, &dialect, &sizes)?;
    }

    #[test]
    fn flattened_values_read_back(object in objects(), fixed in any::<bool>()) {
        let object = if fixed {
            object.into_iter().map(|(key, member)| (format!("k{}", key.replace(' ', "_")), repaired(member))).collect()
        } else {
            object
        };
        let pairs = match flatten(&object, None) {
            Ok(pairs) => pairs,
            Err(error) => {
                prop_assert!(!error.message.is_empty());
                // The only remaining errors are numbers that no text can express.
                prop_assert!(!fixed || error.message.contains("the number"), "{error}");
                return Ok(());
            }
        };
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(pointer, text)| (pointer.as_str(), text.as_str())).collect();
        let arguments = Arguments::from_pairs(pairs.iter().copied());
        let back = arguments.map(|arguments| arguments.to_value());
        prop_assert_eq!(back, Ok(Value::Object(object.clone())));

        let call = Call::Block { name: "A", id: None, dependencies: Vec::new(), arguments: pairs };
        if let Ok(text) = render(&call, &Dialect::block().escaped()) {
            let document = Document::parse(&text, &Dialect::block().escaped()).expect("a dialect that works");
            let call = document.calls().next().expect("a call");
            prop_assert_eq!(call.arguments.to_value(), Value::Object(object));
        }
    }

    #[test]
    fn values_flattened_for_a_tool_read_back(
        members in prop::collection::vec((0_usize..7, json(), prop::collection::vec("[0-3a]", 1..4)), 0..4)
    ) {
        let tool = tool();
        let mut object = Map::new();
        for (index, value, keys) in members {
            let parameter = &tool.parameters()[index];
            // Mostly values of the declared kind; others are rejected.
            let value = match parameter.kind {
                ParameterKind::String => Value::from(value.to_string()),
                ParameterKind::Array => Value::from(vec![repaired(value)]),
                ParameterKind::Object => keys.into_iter().map(|key| (key, repaired(value.clone()))).collect(),
                _ => value,
            };
            object.insert(parameter.name.clone(), value);
        }
        let Ok(pairs) = flatten(&object, Some(&tool)) else {
            return Ok(());
        };
        let arguments = pairs.iter().map(|(pointer, text)| (pointer.as_str(), text.as_str())).collect();
        let call = Call::Block { name: "A", id: None, dependencies: Vec::new(), arguments };
        let text = render(&call, &Dialect::block().escaped()).expect("pointers that can be written");
        let document = Document::parse(&text, &Dialect::block().escaped()).expect("a dialect that works");
        let bound = bind(&tool, document.calls().next().expect("a call")).map(|arguments| arguments.to_value());
        // Null may mean that a parameter is absent.
        if let Ok(bound) = &bound {
            object.retain(|key, value| !value.is_null() || bound.get(key).is_some());
            // A fraction of zero is an integer.
            for (key, value) in &mut object {
                let back = bound.get(key).filter(|back| value.is_f64() && back.as_f64() == value.as_f64());
                if let Some(back) = back {
                    *value = back.clone();
                }
            }
        }
        prop_assert_eq!(bound, Ok(Value::Object(object)));
    }

    #[test]
    fn floats_are_read_back(float in any::<f64>().prop_filter("finite", |float| float.is_finite())) {
        let text = format!("{float:?}");
        let arguments = Arguments::from_pairs([("x", text.as_str())]).expect("one argument");
        let back: std::collections::BTreeMap<String, f64> = arguments.to().expect("a number");
        prop_assert_eq!(back.get("x").map(|back| back.to_bits()), Some(float.to_bits()));
    }

    #[test]
    fn any_type_is_read_or_refused_without_a_panic(text in "[ -~\n]{0,12}|[\\[\\]{}\",:0-9a]{0,12}") {
        let arguments = Arguments::from_pairs([("x", text.as_str()), ("y/0", text.as_str())]).expect("two arguments");
        let _ = arguments.to::<std::collections::HashMap<String, Vec<Option<u8>>>>();
        let _ = arguments.to::<std::collections::HashMap<String, std::collections::BTreeMap<i8, bool>>>();
        let _ = arguments.to::<std::collections::HashMap<String, (f32, char)>>();
        let value: Value = arguments.to().expect("every text is some value");
        prop_assert_eq!(value, arguments.to_value());
    }
}
