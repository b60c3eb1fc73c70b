//! All errors of a call are reported at once, each with its pointer and its location in the text.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_reply::{Document, bind};
use plaincall_syntax::Dialect;
use plaincall_tool::ToolSpec;
use serde_json::{Value, json};

/// Each error as `code pointer` and the source text of its span; errors that only validation finds come last.
fn check(schema: &Value, dialect: &Dialect, text: &str, expected: &[(&str, &str, &str)]) {
    let tool = ToolSpec::new("t")
        .parameters_from_schema(schema)
        .expect("a schema");
    // Text before the call moves every location.
    let text = format!("Voilà 🛠 {text}");
    let document = Document::parse(&text, dialect).expect("a dialect that works");
    let call = document.calls().next().expect("a call");
    let problems = bind(&tool, call).expect_err("something is wrong");
    let found: Vec<(&str, &str, &str)> = problems
        .iter()
        .map(|one| {
            (
                one.code,
                &*one.pointer,
                text.get(one.span.range()).expect("a place"),
            )
        })
        .collect();
    assert_eq!(found, expected, "{text}\n{problems:?}");
    let messages = problems.iter().map(|one| one.message.as_str());
    assert!(messages.into_iter().all(|message| !message.is_empty()));
}

fn schema() -> Value {
    json!({
        "properties": {
            "n": {"type": "integer"}, "s": {"type": "string"}, "b": {"type": "boolean"},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
            "l": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
        },
        "required": ["s"],
    })
}

#[test]
fn block_calls() {
    let block = |lines: &str| format!("!!!GADGET_START:t\n{lines}!!!GADGET_END\n");
    for (lines, expected) in [
        (
            "!!!ARG:n\nmany\n!!!ARG:b\n\n!!!ARG:no\n1\n!!!ARG:m/x\ny\n",
            &[
                ("wrong_type", "n", "many"),
                ("wrong_type", "b", ""),
                ("undeclared_argument", "no", "!!!ARG:no\n"),
                ("wrong_type", "m/x", "y"),
                ("missing_argument", "s", "!!!GADGET_START:t\n"),
            ][..],
        ),
        // Errors of the text come first; one that the schema resolves is not reported.
        (
            "!!!ARG:m/007\n1\n!!!ARG:n\nmany\n!!!ARG:n\n5\n!!!ARG:l/1\n1\n",
            &[
                ("duplicate_pointer", "n", "!!!ARG:n\n"),
                ("array_index_gap", "l/1", "!!!ARG:l/1\n"),
                ("wrong_type", "n", "many"),
                ("missing_argument", "s", "!!!GADGET_START:t\n"),
            ],
        ),
        // An invalid argument is not reported as missing.
        (
            "!!!ARG:s 5\n!!!ARG:b\nyes\n",
            &[
                ("value_on_pointer_line", "s", "!!!ARG:s 5\n"),
                ("wrong_type", "b", "yes"),
            ],
        ),
        (
            "!!!ARG:s\nx\n!!!ARG:s/a\ny\n!!!ARG:l\n[1, \"x\"]\n!!!ARG:m//a\n1\n",
            &[
                ("pointer_conflict", "s/a", "!!!ARG:s/a\n"),
                ("empty_pointer_segment", "m//a", "!!!ARG:m//a\n"),
                #[cfg(not(feature = "jsonschema"))]
                ("wrong_type", "l", "[1, \"x\"]"),
                #[cfg(feature = "jsonschema")]
                ("wrong_value", "l/1", "[1, \"x\"]"),
            ],
        ),
        (
            "!!!ARG:s\nx\n!!!ARG:l/0\nx\n!!!ARG:l/1\n2\n!!!ARG:l/2\n3\n",
            &[
                ("wrong_type", "l/0", "x"),
                ("wrong_value", "l", "!!!ARG:l/0\n"),
            ],
        ),
        // The unreadable argument may be the missing one.
        (
            "{\"s\": 1}\n",
            &[("text_without_argument", "", "{\"s\": 1}\n")],
        ),
    ] {
        check(&schema(), &Dialect::block(), &block(lines), expected);
    }
    check(
        &schema(),
        &Dialect::block().escaped(),
        &block("!!!ARG:s\nx\n!!!ARG:n\n5!!!ARG\\:\n"),
        &[("wrong_type", "n", "5!!!ARG\\:")],
    );
}

#[test]
fn the_line_of_an_emoji_call() {
    let schema = json!({
        "properties": {"n": {"type": "integer"}, "e": {"enum": ["fast", "slow"]}, "b": {"type": "boolean"}},
        "required": ["n"],
    });
    for (text, expected) in [
        (
            "🛠️[t  é  medium ja  und mehr ]🛠️[/end]",
            &[
                ("wrong_type", "n", "é"),
                ("wrong_type", "e", "medium"),
                ("wrong_type", "b", "ja"),
                ("surplus_on_line", "", "und mehr"),
            ][..],
        ),
        ("🛠️[t]🛠️[/end]", &[("missing_argument", "n", "🛠️[t]")]),
        (
            "🛠️[t x]\nmore\n🛠️[/end]",
            &[("wrong_type", "n", "x"), ("body_not_blank", "", "more\n")],
        ),
    ] {
        check(&schema, &Dialect::emoji(), text, expected);
    }
}

#[test]
fn the_body_of_an_emoji_call() {
    for (text, expected) in [
        (
            "🛠️[t]\n {\"n\": \"é\", \"no\": [1],\n \"b\": 5, \"b\": true, \"m\": {\"x\": 1.5}}\n🛠️[/end]",
            &[
                ("wrong_type", "n", "\"é\""),
                ("undeclared_argument", "no", "[1]"),
                ("wrong_type", "b", "5"),
                ("duplicate_pointer", "b", "true"),
                ("missing_argument", "s", "🛠️[t]"),
                #[cfg(not(feature = "jsonschema"))]
                ("wrong_type", "m", "{\"x\": 1.5}"),
                #[cfg(feature = "jsonschema")]
                ("wrong_value", "m/x", "{\"x\": 1.5}"),
            ][..],
        ),
        (
            "🛠️[t 5]\n{\"s\": \"x\"🛠️[/end]",
            &[
                ("line_not_empty", "", "5"),
                ("body_not_json", "", "{\"s\": \"x\""),
            ],
        ),
    ] {
        check(&schema(), &Dialect::emoji(), text, expected);
    }
    // After an escape, locations inside the body are not known.
    check(
        &schema(),
        &Dialect::emoji().escaped(),
        "🛠️[t]\n{\"s\": \"🛠️\\[/end]\", \"n\": true}🛠️[/end]",
        &[("wrong_type", "n", "{\"s\": \"🛠️\\[/end]\", \"n\": true}")],
    );
}
