//! Why arguments are what they are: the rule for each text, in words.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_call::{
    Document, Explained, Explanation, TextPlace, ToolSet, ToolSpec, explain, read_tool_definitions,
};
use plaincall_syntax::Dialect;
use serde_json::Value;

/// The tool `t`, whose parameter `x` has this schema.
fn tool(schema: &str) -> ToolSpec {
    let definition = format!(
        r#"{{"name": "t", "parameters": {{"type": "object", "properties": {{"x": {schema}}}}}}}"#
    );
    let mut tools = read_tool_definitions(&definition).unwrap_or_else(|error| panic!("{error}"));
    tools.remove(0)
}

fn explained(tool: Option<&ToolSpec>, text: &str) -> Explanation {
    let document = Document::parse(text, &Dialect::auto()).expect("a dialect that works");
    explain(tool, document.calls().next().expect("a call"))
}

/// `expected` is the value of `x`, or `-` for none, then a bar and the rule.
fn check(schema: Option<&str>, text: &str, expected: &str) {
    let call = format!("!!!GADGET_START:t\n!!!ARG:x\n{text}\n!!!GADGET_END");
    let tool = schema.map(tool);
    let Explanation { arguments, .. } = explained(tool.as_ref(), &call);
    let [argument] = arguments.as_slice() else {
        panic!("{arguments:?}")
    };
    assert_eq!(argument.text, text);
    assert_eq!(&call[argument.span.range()], text);
    assert_eq!(argument.place, TextPlace::Argument);
    let value = argument
        .value
        .as_ref()
        .map_or("-".to_owned(), Value::to_string);
    let found = format!("{value} | {}", argument.rule);
    assert_eq!(found, expected, "{schema:?} {text:?}");
}

#[test]
fn without_a_schema() {
    for (text, expected) in [
        ("true", "true | no schema: `true` and `false` are booleans"),
        ("5", "5 | no schema: it is written as a whole number is"),
        ("1.50", "1.5 | no schema: it is written as a number is"),
        ("", "\"\" | no schema: it stays a text, since it is empty"),
        (
            "007",
            "\"007\" | no schema: it stays a text, since it has a leading zero",
        ),
        (
            "1e5",
            "\"1e5\" | no schema: it stays a text, since it has an exponent",
        ),
        (
            "null",
            "\"null\" | no schema: it stays a text, since `null` is null only where a schema allows it",
        ),
        (
            "18446744073709551616",
            "\"18446744073709551616\" | no schema: it stays a text, since as a number it would lose digits",
        ),
    ] {
        check(None, text, expected);
        let open = expected.replace("no schema", "the schema leaves the type open");
        check(Some("{}"), text, &open);
    }
}

#[test]
fn by_a_schema() {
    for (schema, text, expected) in [
        (
            r#"{"type": "string"}"#,
            "007",
            r#""007" | declared: a text; it stays exactly as written"#,
        ),
        (
            r#"{"type": ["string", "integer"]}"#,
            "5",
            "5 | declared: a text or a whole number; the text is a whole number",
        ),
        (
            r#"{"type": ["string", "integer"]}"#,
            "007",
            r#""007" | declared: a text or a whole number; beside a text, only the JSON spelling of another value counts, and this is none"#,
        ),
        (
            r#"{"type": ["string", "null"]}"#,
            " null",
            "null | declared: a text or null; the text is the word `null`",
        ),
        (
            r#"{"type": "integer", "minimum": 1}"#,
            "+007",
            "7 | declared: a whole number of at least 1; the text is a whole number",
        ),
        (
            r#"{"type": "integer", "minimum": 1}"#,
            "0",
            "- | declared: a whole number of at least 1; what stands there is not",
        ),
        (
            r#"{"type": ["integer", "null"], "minimum": 1}"#,
            "0",
            "- | declared: a whole number of at least 1 or null; what stands there is not",
        ),
        (
            r#"{"type": "integer"}"#,
            "18446744073709551616",
            "- | declared: a whole number of at most 64 bits; what stands there is not",
        ),
        (
            r#"{"type": "number"}"#,
            "1e-3",
            "0.001 | declared: a number; the text is a number",
        ),
        (
            r#"{"type": "boolean"}"#,
            "true ",
            "true | declared: true or false; the text is one of the two words",
        ),
        (
            r#"{"type": "array"}"#,
            "[1,\n 2]",
            "[1,2] | declared: a list; the text is JSON of one",
        ),
        (
            r#"{"enum": [1, 2, "high"]}"#,
            "2",
            "2 | declared: one of `1`, `2` and `high`; the text is one of them",
        ),
        (
            r#"{"const": "a"}"#,
            "a",
            r#""a" | declared: `a`; the text is that"#,
        ),
        (
            r#"{"anyOf": [{"type": "integer"}, {"const": "forever"}]}"#,
            "5",
            "5 | declared: a text or a whole number; as a text it is not allowed, and the text is a whole number",
        ),
        (
            r#"{"anyOf": [{}, {"type": "integer"}]}"#,
            "5",
            "5 | declared: a whole number; the text is a whole number",
        ),
        (
            r#"{"anyOf": [{}, {"type": "integer"}]}"#,
            "five",
            r#""five" | the schema leaves the type open: it stays a text, since it is neither a number nor `true` or `false`"#,
        ),
    ] {
        check(Some(schema), text, expected);
    }
}

/// Each argument as `pointer: value | place | rule | problems`, then the problems of the call.
fn lines(explanation: &Explanation) -> Vec<String> {
    let argument = |one: &Explained| {
        let value = one.value.as_ref().map_or("-".to_owned(), Value::to_string);
        let problems: Vec<&str> = one.problems.iter().map(|it| it.code).collect();
        let (place, rule) = (one.place, one.rule.name());
        format!(
            "{}: {value} | {place} | {rule} | {}",
            one.pointer,
            problems.join(" ")
        )
    };
    let problems = explanation.problems.iter().map(|it| it.code.to_owned());
    explanation
        .arguments
        .iter()
        .map(argument)
        .chain(problems)
        .collect()
}

fn check_lines(tools: &str, text: &str, expected: &[&str]) {
    let tools = read_tool_definitions(tools).unwrap_or_else(|error| panic!("{error}"));
    let tools = ToolSet::new(tools).expect("different names");
    let document = Document::parse(text, &Dialect::auto()).expect("a dialect that works");
    let call = document.calls().next().expect("a call");
    assert_eq!(lines(&tools.explain(call)), expected, "{text}");
}

#[test]
fn forms_and_what_is_wrong() {
    let tools = r#"[{"name": "t", "parameters": {"type": "object", "properties": {
        "shape": {"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "circle"}, "size": {"type": "number"}}},
            {"type": "object", "properties": {"kind": {"const": "label"}, "size": {"type": "string"}}}]},
        "ids": {"type": "array", "items": {"type": "integer"}}, "to": {"type": "string"}}, "required": ["to"]}}]"#;
    check_lines(
        tools,
        "!!!GADGET_START:t\n!!!ARG:shape/kind\nlabel\n!!!ARG:shape/size\n5\n!!!ARG:to\nme\n!!!GADGET_END",
        &[
            "shape/kind: \"label\" | its argument | declared | ",
            "shape/size: \"5\" | its argument | declared | ",
            "to: \"me\" | its argument | declared | ",
        ],
    );
    check_lines(
        tools,
        "!!!GADGET_START:t\n!!!ARG:ids\n[1, \"x\"]\n!!!ARG:to/0\nme\n!!!ARG:to/1\nyou\n!!!ARG:other/a\n5\n!!!GADGET_END",
        &[
            // What validates says it, if anything does.
            if cfg!(feature = "jsonschema") {
                "ids: - | its argument | unfit | wrong_value"
            } else {
                "ids: - | its argument | unfit | wrong_type"
            },
            "to/0: - | its argument | not_read | wrong_type",
            "to/1: - | its argument | not_read | ",
            "other/a: - | its argument | not_declared | undeclared_argument",
        ],
    );
    check(
        Some(r#"{"type": "array", "items": {"type": "integer"}}"#),
        "[1, \"x\"]",
        "- | declared: a list; what stands there is one, with something wrong inside",
    );
    // The text is wrong: what could be placed is explained, and what else is wrong is told too.
    check_lines(
        tools,
        "!!!GADGET_START:t\n!!!ARG:ids/0\n1\n!!!ARG:ids/0\n2\n!!!ARG:ids/2\n3\n!!!GADGET_END",
        &[
            "ids/0: 1 | its argument | declared | duplicate_pointer",
            "array_index_gap",
            "missing_argument",
        ],
    );
    check_lines(
        tools,
        "!!!GADGET_START:tt\n!!!ARG:n\n1\n!!!GADGET_END",
        &["n: 1 | its argument | no_schema | ", "unknown_tool"],
    );
}

#[test]
fn emoji_calls() {
    let tools = r#"[
        {"name": "query", "parameters": {"type": "object", "properties": {"limit": {"type": "integer"}, "text": {"type": "string"}}, "required": ["limit"]}},
        {"name": "move", "parameters": {"type": "object", "properties": {"from": {"type": "string"}, "to": {"type": "string"}, "n": {"type": "integer"}}}}]"#;
    check_lines(
        tools,
        "🛠️[query 0100  some words ]🛠️[/end]",
        &[
            "limit: 100 | the 1st word of the line | declared | ",
            "text: \"some words\" | the line from the 2nd word on | declared | ",
        ],
    );
    check_lines(
        tools,
        "🛠️[move]\n{\"from\": \"a\", \"n\": \"5\", \"m\": 1}🛠️[/end]",
        &[
            "from: \"a\" | the JSON in the body | json_body | ",
            "n: - | the JSON in the body | unfit | wrong_type",
            "undeclared_argument",
        ],
    );
    check_lines(tools, "🛠️[move a b]🛠️[/end]", &["line_not_empty"]);
    check_lines(
        tools,
        "🛠️[mov a]b🛠️[/end]",
        &[
            "raw_args: \"a\" | the whole line | no_definition | ",
            "body: \"b\" | the body | no_definition | ",
            "unknown_tool",
        ],
    );
    let tool = tool(r#"{"type": "string"}"#).body("x");
    let Explanation { arguments, .. } = explained(Some(&tool), "🛠️[t]\n 5\n🛠️[/end]");
    assert_eq!(arguments[0].value, Some(" 5\n".into()));
    assert_eq!(
        arguments[0].rule.to_string(),
        "the body is this text, exactly as written"
    );
}

/// The place of a value in a JSON body is its own, also behind other characters.
#[test]
fn spans_in_a_body() {
    let tool = tool(r#"{"type": "array"}"#);
    let text = "é 🛠️[t]\n { \"x\" : [\"é\", 5] }🛠️[/end]";
    let Explanation { arguments, .. } = explained(Some(&tool), text);
    assert_eq!(&text[arguments[0].span.range()], "[\"é\", 5]");
}
