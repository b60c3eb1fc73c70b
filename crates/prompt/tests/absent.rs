//! Parameters that a call does not have, null for them in JSON, and integers with a fraction of zero (`spec/block.md` 7.7.1).

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_prompt::render::{JsonCall, render_call};
use plaincall_reply::{Document, ReplyCheck, Stop, Unclosed, bind};
use plaincall_syntax::Dialect;
use plaincall_tool::flatten;
use plaincall_tool::{Arguments, Parameter, ParameterKind, ToolSet, ToolSpec, bind_arguments};
use serde_json::{Value, json};

use plaincall_testkit::json_streams::stream;

fn tool() -> ToolSpec {
    let schema = json!({
        "type": "object", "required": ["path"],
        "properties": {
            "path": {"type": "string"}, "limit": {"type": "integer"}, "note": {"type": ["string", "null"]},
            "inner": {"type": "object", "properties": {"x": {"type": "integer"}}}
        }
    });
    let tool = ToolSpec::new("search").parameters_from_schema(&schema);
    tool.expect("a schema")
}

/// The arguments that are read back from JSON arguments written as a call, and from the same JSON in the body of an emoji call; or
/// the error.
fn written(arguments: &Value) -> [Result<Value, String>; 2] {
    let tool = tool();
    let object = arguments.as_object().expect("an object");
    let dialect = Dialect::block();
    let rendered = render_call(&JsonCall::new("search", object), Some(&tool), &dialect);
    let rendered = rendered.map_err(|error| error.to_string());
    let block = rendered.and_then(|text| read(&text, &dialect));
    [
        block,
        read(
            &format!("🛠️[search]\n{arguments}🛠️[/end]"),
            &Dialect::emoji(),
        ),
    ]
}

fn read(text: &str, dialect: &Dialect) -> Result<Value, String> {
    let tools = ToolSet::new([tool()]).expect("one tool");
    let check = ReplyCheck::new(dialect, Unclosed::Reject).expect("a dialect");
    let document = Document::read(text, dialect, &tools, check, Stop::Natural);
    let document = document.expect("a dialect");
    let read = document.decided().next().expect("a call");
    let bound = read.bound().map_err(|error| error.to_string())?;
    Ok(bound.arguments.to_value())
}

#[test]
fn null_is_absent_where_the_parameter_is_optional_and_cannot_be_null() {
    let table = [
        (
            json!({"path": "a", "limit": null}),
            Some(json!({"path": "a"})),
        ),
        (
            json!({"path": "a", "note": null}),
            Some(json!({"path": "a", "note": null})),
        ),
        (json!({"path": null}), None),
        // Only parameters can be absent.
        (json!({"path": "a", "inner": {"x": null}}), None),
        (json!({"path": "a", "other": null}), None),
    ];
    for (arguments, expected) in table {
        for found in written(&arguments) {
            assert_eq!(found.clone().ok(), expected, "{arguments}: {found:?}");
        }
    }
}

/// The arguments that a block call has with the text `null` at each pointer, or the error; the same from the deltas of their JSON.
#[test]
fn the_text_null_is_absent_where_it_is_in_json_and_no_string_fits() {
    let schema = json!({
        "type": "object", "required": ["must"],
        "properties": {
            "must": {"type": "integer"}, "limit": {"type": "integer"}, "list": {"type": "array"},
            "kind": {"enum": ["a", "b"]}, "word": {"enum": ["None", "null"]}, "any": {"type": "string"}, "long": {"type": "string", "minLength": 9},
            "either": {"type": ["integer", "null"]}, "open": {},
            "inner": {"type": "object", "properties": {"x": {"type": "integer"}}}
        }
    });
    let tool = ToolSpec::new("search").parameters_from_schema(&schema);
    let tool = tool.expect("a schema");
    let table = [
        (&[("limit", "null")][..], Some(json!({"must": 1}))),
        (&[("limit", " None ")], Some(json!({"must": 1}))),
        (&[("list", "null\n")], Some(json!({"must": 1}))),
        (&[("kind", "null")], Some(json!({"must": 1}))),
        (
            &[("word", "null")],
            Some(json!({"must": 1, "word": "null"})),
        ),
        (&[("any", "null")], Some(json!({"must": 1, "any": "null"}))),
        (
            &[("either", "null")],
            Some(json!({"must": 1, "either": null})),
        ),
        (
            &[("open", "null")],
            Some(json!({"must": 1, "open": "null"})),
        ),
        (
            &[
                ("limit", "null"),
                ("any", "x"),
                ("list", "None"),
                ("inner/x", "5"),
                ("kind", "b"),
            ],
            Some(json!({"must": 1, "any": "x", "inner": {"x": 5}, "kind": "b"})),
        ),
        (&[("limit", "Null")], None),
        (&[("long", "null")], None),
        // Only parameters can be absent, and each has one value.
        (&[("inner/x", "null")], None),
        (&[("other", "null")], None),
        (&[("limit", "null"), ("limit", "5")], None),
        (&[("must", "null")], None),
    ];
    for (pairs, expected) in table {
        let mut text = "!!!GADGET_START:search\n".to_owned();
        let must = [("must", "1")].into_iter().filter(|_| pairs[0].0 != "must");
        for (pointer, value) in must.chain(pairs.iter().copied()) {
            text.extend(["!!!ARG:", pointer, "\n", value, "\n"]);
        }
        text += "!!!GADGET_END";
        let document = Document::parse(&text, &Dialect::block()).expect("a dialect");
        let bound = bind(&tool, document.calls().next().expect("a call"));
        let found = bound.as_ref().ok().map(Arguments::to_value);
        assert_eq!(found, expected, "{text}\n{bound:?}");
        for size in [1, 5, text.len()] {
            let chunks: Vec<&str> = text
                .as_bytes()
                .chunks(size)
                .map(|one| std::str::from_utf8(one).expect("ASCII"))
                .collect();
            let streamed = stream(chunks, &Dialect::block(), &tool);
            let [call] = streamed.as_slice() else {
                panic!("one call: {text}")
            };
            let rest = call.rest.as_ref().ok();
            let json = rest.map(|rest| call.begun() + rest);
            // Arguments that only validation rejects are not closed by callers.
            assert_eq!(
                json.filter(|_| call.bound.is_some()),
                expected.as_ref().map(Value::to_string),
                "{text}\n{:?}",
                call.rest
            );
        }
        if let Ok(bound) = bound {
            assert_eq!(bound.len(), bound.iter().count());
            assert_eq!(bind_arguments(&tool, &bound), Ok(bound));
        }
    }
}

#[test]
fn null_on_the_line_of_an_emoji_call_is_absent_too() {
    let tool = ToolSpec::new("query")
        .parameter(Parameter::new("file", ParameterKind::String))
        .parameter(Parameter::new("limit", ParameterKind::Integer).optional())
        .parameter(Parameter::new("all", ParameterKind::Boolean).optional());
    let table = [
        (
            "a.sql null true",
            Some(json!({"file": "a.sql", "all": true})),
        ),
        ("a.sql 5 None", Some(json!({"file": "a.sql", "limit": 5}))),
        ("null null null", Some(json!({"file": "null"}))),
        ("a.sql nil", None),
    ];
    for (line, expected) in table {
        let text = format!("🛠️[query {line}]🛠️[/end]");
        let document = Document::parse(&text, &Dialect::emoji()).expect("a dialect");
        let bound = bind(&tool, document.calls().next().expect("a call"));
        assert_eq!(bound.ok().map(|one| one.to_value()), expected, "{line}");
        let streamed = stream([&*text], &Dialect::emoji(), &tool);
        let [call] = streamed.as_slice() else {
            panic!("one call: {text}")
        };
        let json = call.rest.as_ref().ok().map(|rest| call.begun() + rest);
        assert_eq!(json, expected.map(|one| one.to_string()), "{line}");
    }
}

#[test]
fn an_absent_parameter_cannot_be_given_again() {
    for members in [
        "\"limit\": null, \"limit\": 5",
        "\"limit\": 5, \"limit\": null",
    ] {
        let text = format!("🛠️[search]\n{{\"path\": \"a\", {members}}}🛠️[/end]");
        assert!(read(&text, &Dialect::emoji()).is_err(), "{members}");
    }
}

#[test]
fn a_fraction_of_zero_is_an_integer() {
    for number in [json!(5.0), json!(-3.0), json!(1e3)] {
        let arguments = json!({"path": "a", "limit": number});
        let pairs = flatten(arguments.as_object().expect("an object"), Some(&tool()));
        pairs.unwrap_or_else(|error| panic!("{number}: {error}"));
        for found in written(&arguments) {
            let found = found.unwrap_or_else(|error| panic!("{number}: {error}"));
            assert_eq!(found["limit"].as_f64(), number.as_f64(), "{found}");
        }
    }
    for found in written(&json!({"path": "a", "limit": 5.5})) {
        assert!(found.is_err(), "{found:?}");
    }
}

#[test]
fn defaults_are_added_if_they_are_valid() {
    let schema = json!({
        "type": "object", "required": ["path", "must"],
        "properties": {
            "path": {"type": "string", "default": "unused"}, "limit": {"type": "integer", "default": 10},
            "kind": {"enum": ["a", "b"], "default": "a"}, "names": {"type": "array", "default": ["x"]},
            "none": {"type": ["string", "null"], "default": null},
            "must": {"type": "boolean", "default": true}
        }
    });
    let tool = ToolSpec::new("search")
        .parameters_from_schema(&schema)
        .expect("a schema");
    let text =
        "!!!GADGET_START:search\n!!!ARG:path\na\n!!!ARG:must\nfalse\n!!!ARG:kind\nb\n!!!GADGET_END";
    let document = Document::parse(text, &Dialect::block()).expect("a dialect");
    let call = document.calls().next().expect("a call");
    let given = json!({"path": "a", "must": false, "kind": "b"});
    assert_eq!(bind(&tool, call).expect("valid").to_value(), given);
    let bound = bind(&tool, call).expect("valid");
    let mut expected = given;
    expected["limit"] = json!(10);
    expected["names"] = json!(["x"]);
    let all = tool.with_defaults(&bound);
    assert_eq!(all.to_value(), expected);
    assert_eq!(tool.with_defaults(&all), all);
    // Defaults that are invalid, alone or together, are not added.
    for properties in [
        json!({"n": {"type": "integer", "default": "many"}}),
        json!({"n": {"enum": ["a", "b"], "default": "c"}}),
    ] {
        let schema = json!({"type": "object", "properties": properties});
        let tool = ToolSpec::new("t")
            .parameters_from_schema(&schema)
            .expect("a schema");
        assert_eq!(
            tool.with_defaults(&Arguments::default()),
            Arguments::default()
        );
    }
}
