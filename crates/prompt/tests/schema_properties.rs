//! Any schema, any arguments: nothing panics, no digit is lost, and rendered arguments round-trip.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::format_collect,
    reason = "a test fails by a panic"
)]

use plaincall_prompt::repair::repair;
use plaincall_reply::{CallError, Document, bind};
use plaincall_syntax::Dialect;
use plaincall_tool::definitions::read_tool_definitions;
use plaincall_tool::{Argument, Arguments, Schema, ToolSpec, bind_arguments, flatten};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Texts that some parser reads as another type.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            " ",
            "null",
            "true",
            "false",
            "5",
            "007",
            "+5",
            "-0",
            "1.0",
            "1.50",
            "1e3",
            "18446744073709551616",
            "3.14159265358979323846",
            "a",
            " a ",
            "[]",
            "{}",
            "[1, \"2\"]",
            "{\"a\": 1}",
            "{\"a\":",
            "5\n",
            "\"5\"",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,6}",
        "-?[0-9]{1,21}(\\.[0-9]{1,19})?",
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i8..3).prop_map(Value::from),
        prop::sample::select(vec![0.5, 1.0, 1e22]).prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((keys(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn keys() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "0", "1", "12", "007", "x/y", "a b", ""])
        .prop_map(str::to_owned)
}

/// Keys of a map, most of which look like the index of a list or like an invalid one.
fn map_keys() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["0", "1", "2", "7", "007", "-1", "2024", "a"]).prop_map(str::to_owned)
}

/// An alternative beside a map in a union: another type under the same name, or nothing.
fn other_forms() -> impl Strategy<Value = Value> {
    let of = |m: Value| json!({"type": "object", "properties": {"kind": {"const": "other"}, "m": m}, "required": ["kind"]});
    prop::sample::select(vec![
        of(json!({"type": "array", "items": {"type": "integer"}})),
        of(json!({"type": "array", "items": {"type": "string"}})),
        of(json!({"type": "string"})),
        of(json!({"type": "object", "properties": {"0": {"type": "boolean"}}})),
        json!({"type": "object", "properties": {"kind": {"const": "other"}}, "required": ["kind"]}),
        json!({"type": "object", "properties": {"kind": {"const": "none"}}, "required": ["kind"], "additionalProperties": false}),
        json!({"type": "array", "items": {"type": "integer"}}),
    ])
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            json!({}),
            json!(true),
            json!({"type": "string"}),
            json!({"type": "integer"}),
            json!({"type": "number"}),
            json!({"type": "boolean"}),
            json!({"type": "null"}),
            json!({"type": "array"}),
            json!({"type": "object"}),
            json!({"type": ["string", "null"]}),
            json!({"type": ["string", "number", "boolean"]}),
            json!({"type": "integer", "nullable": true}),
            json!({"enum": [1, "1", null]}),
            json!({"const": "a"}),
            json!({"const": 5}),
            json!({"type": "string", "maxLength": 2}),
            json!({"type": "integer", "minimum": 1}),
            json!({"$ref": "#/$defs/node"}),
            json!({"$ref": "#"}),
        ]),
        values().prop_map(|value| json!({"const": value})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let list = || prop::collection::vec(inner.clone(), 1..3);
        let members = || {
            prop::collection::vec((keys(), inner.clone()), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect()))
        };
        prop_oneof![
            list().prop_map(|all| json!({"allOf": all})),
            list().prop_map(|any| json!({"anyOf": any})),
            list().prop_map(|one| json!({"oneOf": one})),
            list().prop_map(|first| json!({"prefixItems": first})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (members(), inner.clone()).prop_map(|(members, rest)| json!({"type": "object", "properties": members, "additionalProperties": rest})),
            (members(), any::<bool>()).prop_map(|(members, open)| json!({"properties": members, "additionalProperties": open})),
            (inner.clone(), inner.clone()).prop_map(|(one, two)| json!({"type": "object", "patternProperties": {"^[0-9]+$": one, "^a": two}})),
        ]
    })
}

/// A schema of arguments named `p` and `q`.
fn roots() -> impl Strategy<Value = Value> {
    (schemas(), schemas(), schemas()).prop_map(|(p, q, node)| {
        json!({"type": "object", "$defs": {"node": node}, "properties": {"p": p, "q": q}})
    })
}

fn pointers() -> impl Strategy<Value = String> {
    ("[pq]", prop::collection::vec(keys(), 0..3)).prop_map(|(name, keys)| {
        let escaped = keys
            .iter()
            .map(|key| format!("/{}", key.replace('/', "~1")));
        format!("{name}{}", escaped.collect::<String>())
    })
}

/// Collects every number of a value in JSON notation.
fn numbers(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, found)),
        Value::Object(members) => members.values().for_each(|member| numbers(member, found)),
        _ => {}
    }
}

/// Returns the digits of a number without sign, point, exponent and zeros at either end.
fn digits(text: &str) -> String {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

/// Returns whether a value was read back. A fraction of zero may be lost.
fn is_read_back(back: &Value, value: &Value) -> bool {
    match (back, value) {
        (Value::Array(back), Value::Array(value)) => {
            let mut pairs = back.iter().zip(value);
            back.len() == value.len() && pairs.all(|(back, value)| is_read_back(back, value))
        }
        (Value::Object(back), Value::Object(value)) => {
            let mut members = value.iter();
            back.len() == value.len()
                && members
                    .all(|(key, value)| back.get(key).is_some_and(|back| is_read_back(back, value)))
        }
        _ if value.is_f64() => back.as_f64() == value.as_f64(),
        _ => back == value,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_loses_no_digit(root in roots(), pairs in prop::collection::vec((pointers(), texts()), 0..5)) {
        let Ok(tool) = ToolSpec::new("t").parameters_from_schema(&root) else {
            return Ok(());
        };
        let borrowed = pairs.iter().map(|(pointer, text)| (pointer.as_str(), text.as_str()));
        let Ok(arguments) = Arguments::from_pairs_for(&tool, borrowed) else {
            return Ok(());
        };
        prop_assert_eq!(arguments.len(), pairs.len());
        let Ok(bound) = bind_arguments(&tool, &arguments) else {
            return Ok(());
        };
        // A listed text is read without the blanks around it, and null may mean that a parameter is absent.
        let is_given = |one: &Argument<'_>| bound.get(one.pointer).is_some() || !matches!(one.text.trim(), "null" | "None");
        let given: Vec<Argument<'_>> = arguments.iter().filter(is_given).collect();
        for (read, written) in bound.iter().zip(&given) {
            prop_assert_eq!(read.pointer, written.pointer);
            prop_assert!(read.text == written.text || read.text == written.text.trim(), "{read:?} {written:?}");
        }
        prop_assert_eq!(bound.len(), given.len());
        let value = bound.to_value();
        let mut found = Vec::new();
        numbers(&value, &mut found);
        for number in found {
            let digits = digits(&number);
            prop_assert!(pairs.iter().any(|(_, text)| text.replace(['.', '+', '-'], "").contains(&digits)), "{number} {pairs:?}");
        }
        // Binding bound arguments changes nothing.
        prop_assert_eq!(bind_arguments(&tool, &bound).map(|again| again.to_value()), Ok(value));
    }

    #[test]
    fn written_values_read_back(root in roots(), p in values(), q in values()) {
        let Ok(tool) = ToolSpec::new("t").parameters_from_schema(&root) else {
            return Ok(());
        };
        let mut value = json!({"p": p, "q": q});
        let object = value.as_object_mut().expect("an object");
        let Ok(pairs) = flatten(object, Some(&tool)) else {
            return Ok(());
        };
        // Null may mean that a parameter is absent.
        object.retain(|key, value| !value.is_null() || pairs.iter().any(|(pointer, _)| pointer == key));
        let borrowed = pairs.iter().map(|(pointer, text)| (pointer.as_str(), text.as_str()));
        let arguments = Arguments::from_pairs_for(&tool, borrowed).expect("pointers that can be placed");
        // Only validation finds some errors, such as a length.
        if let Ok(bound) = bind_arguments(&tool, &arguments) {
            let back = bound.to_value();
            prop_assert!(is_read_back(&back, &value), "{back} {value}");
        }
    }

    #[test]
    fn keys_of_a_map_in_a_union_stay_keys(
        members in prop::collection::btree_map(map_keys(), -9_i64..9, 1..5),
        others in prop::collection::vec(other_forms(), 1..4),
        at in 0_usize..4,
        depth in 0_usize..3,
        comes_first in any::<bool>(),
    ) {
        let mut forms = others;
        forms.insert(at.min(forms.len()), json!({
            "type": "object", "properties": {"kind": {"const": "map"}, "m": {"type": "object", "additionalProperties": {"type": "integer"}}},
            "required": ["kind", "m"]}));
        let union = json!({"oneOf": forms});
        let map: Value = members.into_iter().map(|(key, number)| (key, Value::from(number))).collect();
        let value = if comes_first { json!({"m": map, "kind": "map"}) } else { json!({"kind": "map", "m": map}) };
        let (root, value) = match depth {
            0 => (union, value),
            1 => (json!({"properties": {"p": union}}), json!({"p": value})),
            _ => (json!({"properties": {"p": {"type": "array", "items": {"type": "object", "additionalProperties": union}}}}), json!({"p": [{"0": value}]})),
        };
        let tool = ToolSpec::new("t").parameters_from_schema(&root).expect("a schema");
        let object = value.as_object().expect("an object");
        let pairs = flatten(object, Some(&tool)).expect("it can be written");
        prop_assert!(pairs.iter().any(|(pointer, _)| pointer.contains("m/")), "{pairs:?}");
        let borrowed = pairs.iter().map(|(pointer, text)| (pointer.as_str(), text.as_str()));
        let arguments = Arguments::from_pairs_for(&tool, borrowed).expect("pointers that can be placed");
        let bound = bind_arguments(&tool, &arguments).expect("it is right");
        prop_assert_eq!(bound.to_value(), value.clone());
        // The same from a reply, where the pointers are parsed before the schema is known.
        let text: String = pairs.iter().map(|(pointer, text)| format!("!!!ARG:{pointer}\n{text}\n")).collect();
        let document = Document::parse(&format!("!!!GADGET_START:t\n{text}!!!GADGET_END\n"), &Dialect::block()).expect("a dialect");
        let bound = bind(&tool, document.calls().next().expect("a call")).expect("it is right");
        prop_assert_eq!(bound.to_value(), value);
    }

    #[test]
    fn any_json_is_a_schema_or_a_mistake(document in values(), root in schemas()) {
        let _ = Schema::new(document.clone()).check();
        let _ = ToolSpec::new("t").parameters_from_schema(&document);
        let _ = ToolSpec::new("t").parameters_from_schema(&root);
        let _ = read_tool_definitions(&json!({"tools": [document]}).to_string());
        let _ = read_tool_definitions(&json!([{"name": "t", "inputSchema": root}]).to_string());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any schema, the message is short, and the call that it shows is one call of the tool.
    #[test]
    fn a_wrong_call_gets_a_message(
        mut root in roots(),
        pairs in prop::collection::vec((pointers(), texts()), 0..5),
        members in (values(), values()),
        is_required in any::<bool>(),
        is_emoji in any::<bool>(),
    ) {
        if is_required {
            root["required"] = json!(["q", "p"]);
        }
        let Ok(tool) = ToolSpec::new("t").parameters_from_schema(&root) else {
            return Ok(());
        };
        let (reply, dialect) = if is_emoji {
            let body = json!({"p": members.0, "q": members.1});
            (format!("🛠️[t]\n{body}🛠️[/end]\n"), Dialect::emoji().escaped())
        } else {
            let arguments = pairs.iter().map(|(pointer, text)| format!("!!!ARG:{pointer}\n{text}\n"));
            let arguments: String = arguments.collect();
            (format!("!!!GADGET_START:t:i\n{arguments}!!!GADGET_END\n"), Dialect::block().escaped())
        };
        let document = Document::parse(&reply, &dialect).expect("a dialect that works");
        let call = document.calls().next().expect("a call");
        let Err(problems) = bind(&tool, call) else {
            return Ok(());
        };
        let message = repair([(call, &CallError::Arguments(problems))], &[&tool][..], &dialect);
        let message = message.expect("a dialect that works").into_text();
        prop_assert!(message.len() < 10_000, "{message}");
        if let Some((_, example)) = message.rsplit_once("\nA correct call:\n") {
            let document = Document::parse(example, &dialect).expect("a dialect that works");
            prop_assert_eq!(document.calls().count(), 1, "{}", message);
            let shown = document.calls().next().expect("a call");
            prop_assert_eq!(&shown.name, "t");
            prop_assert!(shown.is_closed());
        }
    }
}
