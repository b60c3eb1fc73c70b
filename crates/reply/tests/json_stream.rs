//! The JSON text of arguments as deltas: `spec/json-stream.md`.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod random;
pub(crate) mod tools;
mod undecided;

use plaincall_reply::collector::{Collected, Collector};
use plaincall_reply::{JsonStream, NotClosed};
use plaincall_syntax::{Dialect, Parser, Syntax};
use plaincall_testkit::json_streams::stream_all;
use plaincall_tool::{Arguments, Limits, ToolSpec};

use crate::json_stream::tools::{counted, emoji_tools, tool, unknown};

/// A block call in these chunks gives these non-empty deltas; the last one is the result of closing, or the error.
fn check(shape: &ToolSpec, tool: Option<&ToolSpec>, chunks: &[&str], expected: &[&str]) {
    let mut text = vec!["!!!GADGET_START:A\n"];
    text.extend(chunks);
    text.push("!!!GADGET_END");
    let dialect = Dialect::block().escaped();
    let streamed = stream_all(text, &dialect, shape, tool, Limits::default());
    let [call] = streamed.as_slice() else {
        panic!("one call, not {}", streamed.len());
    };
    let mut found = call.deltas.clone();
    found.push(match &call.rest {
        Ok(rest) => rest.clone(),
        Err(error) => error.to_string(),
    });
    found.retain(|delta| !delta.is_empty());
    assert_eq!(found, expected, "{chunks:?}");
    if call.rest.is_ok() {
        let bound = call.bound.as_ref().expect("closed, so it was bound");
        assert_eq!(found.concat(), bound.to_value().to_string());
    }
}

#[test]
fn a_string_is_written_as_it_comes() {
    check(
        &tool(),
        Some(&tool()),
        &[
            "!!!ARG:s\n",
            "1",
            "2",
            "\n3\"",
            "\u{1}\u{8}",
            "\\é",
            "𝄞\t\u{c}\r",
            "\n",
        ],
        &[
            r#"{"s":""#,
            "1",
            "2",
            r#"\n3\""#,
            r"\u0001\b",
            r"\\é",
            r"𝄞\t\f",
            r#"""#,
            "}",
        ],
    );
    check(
        &tool(),
        Some(&tool()),
        &["!!!ARG:s\n", "\n!!!ARG:text\n", "b\n"],
        &[r#"{"s":""#, r#"","text":""#, "b", "\"", "}"],
    );
}

#[test]
fn a_text_of_which_nothing_is_known_waits_until_it_must_be_a_string() {
    for (chunks, expected) in [
        (&["5", "0", "0\n"][..], &["500", "}"][..]),
        (&[" ", "5 ", "x", "y\n"], &[r#"" 5 x"#, "y", "\"", "}"]),
        (&["tr", "ue", "\n"], &["true", "}"]),
        (&["tr", "ee", "s\n"], &["\"tree", "s", "\"", "}"]),
        (&["5", "\nx\n"], &["\"5\\nx", "\"", "}"]),
        (&["h", "i\n"], &["\"h", "i", "\"", "}"]),
        (&["1.5", "0\n"], &["1.5", "}"]),
        (&["1.5", ".0", "\n"], &["\"1.5.0", "\"", "}"]),
        (&["", "\n"], &["\"\"", "}"]),
        (&["  ", "\n"], &["\"  \"", "}"]),
        (&["-", "0\n"], &["\"-0\"", "}"]),
    ] {
        let mut chunks = chunks.to_vec();
        chunks.insert(0, "!!!ARG:x\n");
        let mut expected = expected.to_vec();
        expected.insert(0, r#"{"x":"#);
        check(&unknown(), None, &chunks, &expected);
    }
}

#[test]
fn other_values_than_strings_are_written_when_complete() {
    check(
        &tool(),
        Some(&tool()),
        &[
            "!!!ARG:n\n",
            "+01",
            "0.50\n!!!ARG:t\n",
            "true\n!!!ARG:l\n",
            "[1,\n",
            " 2]\n",
        ],
        &[r#"{"n":10.5"#, r#","t":true"#, r#","l":[1,2]"#, "}"],
    );
}

#[test]
fn a_nullable_value_waits_only_for_null() {
    for (chunks, expected) in [
        (&["nu", "ts\n"][..], &["\"nuts", "\"", "}"][..]),
        (&["5\n"], &["\"5", "\"", "}"]),
        (&["null\n"], &["null", "}"]),
    ] {
        let chunks = [&["!!!ARG:null\n"], chunks].concat();
        let expected = [&[r#"{"null":"#], expected].concat();
        check(&counted(), Some(&counted()), &chunks, &expected);
    }
    // Without its definition, 5 is a number, so the written text differs from the arguments.
    let different = NotClosed::Different.to_string();
    check(
        &counted(),
        None,
        &["!!!ARG:null\n", "5\n"],
        &[r#"{"null":"#, "\"5", "\"", &different],
    );
}

#[test]
fn parts_are_written_while_the_model_stays_in_them() {
    check(
        &unknown(),
        None,
        &[
            "!!!ARG:a/x/0\n",
            "1\n!!!ARG:a/x/1\n",
            "2\n!!!ARG:a/y\n",
            "3\n",
        ],
        &[r#"{"a":{"x":["#, "1,", "2", "],\"y\":3}}"],
    );
    check(
        &tool(),
        Some(&tool()),
        &["!!!ARG:o/0\n", "x\n!!!ARG:o/1\n", "y\n!!!ARG:s\n", "z\n"],
        &[r#"{"o":{"0":"#, r#""x","1":"#, "\"y\"", r#"},"s":"z"}"#],
    );
    check(
        &counted(),
        None,
        &[
            "!!!ARG:p/0\n",
            "1\n!!!ARG:p/1\n",
            "2\n!!!ARG:d/e/f\n",
            "3\n!!!ARG:d/h\n4\n!!!ARG:d/e/g\n5\n",
        ],
        &[
            r#"{"p":["#,
            "1,",
            r#"2],"d":{"e":{"f":"#,
            "3",
            r#","g":5},"h":4}}"#,
        ],
    );
    check(
        &counted(),
        None,
        &[
            "!!!ARG:d/e/f\n3\n!!!ARG:d/e/g\n5\n!!!ARG:d/h\n4\n!!!ARG:z\n",
            "text\n",
        ],
        &[
            r#"{"d":{"e":{"f":3,"g":5},"h":4},"z":"#,
            "\"text",
            "\"",
            "}",
        ],
    );
}

#[test]
fn a_call_without_arguments_is_an_empty_object() {
    check(&unknown(), None, &[], &["{}"]);
    check(&tool(), Some(&tool()), &[], &["{}"]);
}

#[test]
fn a_wrong_call_is_left_open() {
    for (chunks, expected) in [
        (
            &["!!!ARG:s\nx\n!!!ARG:s\ny\n"][..],
            &[r#"{"s":"x""#, "invalid call: Duplicate pointer: s"][..],
        ),
        (
            &["!!!ARG:s\nx\n!!!ARG:s/a\ny\n"],
            &[
                r#"{"s":"x""#,
                "invalid call: Pointer conflict: s/a passes through the value s",
            ],
        ),
        (
            &["!!!ARG:o/a\nx\n!!!ARG:s\ny\n!!!ARG:o\nz\n"],
            &[
                r#"{"o":{"a":"x""#,
                "invalid call: Pointer conflict: o already holds other arguments",
            ],
        ),
        (
            &["!!!ARG:l/1\nx\n"],
            &["invalid call: Array index gap: expected 0, got 1"],
        ),
        (
            &["!!!ARG:s\nx\n!!!ARG:-1\ny\n!!!ARG:text\nz\n"],
            &[r#"{"s":"x""#, "invalid call: Invalid array index: -1"],
        ),
        (
            &["!!!ARG:s\nx\n!!!ARG:n\nmany\n"],
            &[r#"{"s":"x""#, "invalid call: `n`: unexpected `many`"],
        ),
        (
            &["!!!ARG:s\nx\n!!!ARG:no\ny\n"],
            &[
                r#"{"s":"x""#,
                "invalid call: `no`: no value is allowed here",
            ],
        ),
        (
            &["!!!ARG:s 5\n"],
            &["invalid call: Value on the pointer line: s 5"],
        ),
    ] {
        check(&tool(), Some(&tool()), chunks, expected);
    }
    check(
        &counted(),
        None,
        &["!!!ARG:p/0\n1\n!!!ARG:p/1\n2\n!!!ARG:z\n3\n!!!ARG:p/2\n4\n"],
        &[
            r#"{"p":[1,2],"z":3"#,
            "invalid call: `p/2`: no value is allowed here",
        ],
    );
}

#[test]
fn limits_are_those_of_the_collector() {
    let mut tight = Limits::for_running();
    tight.depth = 2;
    tight.arguments = 2;
    tight.dependencies = 1;
    tight.value_bytes = Some(3);
    tight.warnings = None;
    for (text, begun, fault) in [
        ("A\n!!!ARG:a\n1234\n", r#"{"a":"#, "Value too long: a"),
        ("A\n!!!ARG:a/b/c\n1\n", "", "Pointer too deep: a/b/c"),
        (
            "A\n!!!ARG:a\n1\n!!!ARG:b\n2\n!!!ARG:c\n3\n",
            r#"{"a":1,"b":2"#,
            "Too many arguments",
        ),
        (
            "A:i:j,j,k\n!!!ARG:a\n1\n",
            r#"{"a":1"#,
            "Too many dependencies",
        ),
    ] {
        let text = format!("!!!GADGET_START:{text}!!!GADGET_END");
        let streamed = stream_all([text.as_str()], &Dialect::block(), &unknown(), None, tight);
        let call = streamed.first().expect("a call");
        assert_eq!(call.begun(), begun);
        assert_eq!(call.rest, Err(NotClosed::Invalid(fault.to_owned())));
    }
}

#[test]
fn other_arguments_than_those_written_are_refused() {
    let text = "!!!GADGET_START:A\n!!!ARG:s\nsafe\n!!!ARG:text\nx\n!!!GADGET_END";
    let limits = Limits::default();
    for (pairs, expected) in [
        (
            &[("s", "safe"), ("text", "x")][..],
            Ok(r#"{"s":"safe","text":"x"}"#),
        ),
        (
            &[("s", "safe"), ("text", "x"), ("more", "y")],
            Ok(r#"{"s":"safe","text":"x","more":"y"}"#),
        ),
        (&[("s", "evil"), ("text", "x")], Err(NotClosed::Different)),
        (&[("s", "safe")], Err(NotClosed::Different)),
        (&[("text", "x"), ("s", "safe")], Err(NotClosed::Different)),
        (&[], Err(NotClosed::Different)),
        (&[("s", "é\u{1}𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞")], Err(NotClosed::Different)),
    ] {
        let mut parser = Parser::new(&Dialect::block()).expect("a dialect that works");
        let mut collector = Collector::new(limits);
        let mut stream = JsonStream::new(unknown(), limits);
        let mut out = String::new();
        let mut call = None;
        for event in parser.feed(text) {
            stream.push(&event, &mut out);
            if let Some(Collected::Finished(finished)) = collector.push(&event) {
                call = Some(finished);
            }
        }
        let call = call.expect("a call");
        let arguments = Arguments::from_pairs(pairs.iter().copied()).expect("arguments");
        let begun = out.clone();
        let closed = stream.close(&call, &arguments, &mut out);
        match expected {
            Ok(text) => {
                assert_eq!((closed, out.as_str()), (Ok(()), text));
                assert_eq!(stream.close(&call, &arguments, &mut out), Ok(()));
                assert_eq!(out, text, "closing twice");
            }
            Err(error) => assert_eq!((closed, out), (Err(error), begun), "{pairs:?}"),
        }
    }
}

#[test]
fn the_body_of_an_emoji_call_is_written_as_it_comes() {
    let tools = emoji_tools();
    for (tool, chunks, expected) in [
        (
            0,
            &["🛠️[A a.txt 007]\n", "one\n", "\"", "🛠️[/end]"][..],
            &[
                r#"{"path":"a.txt","mode":7,"content":""#,
                r"one\n",
                "\\\"",
                "\"",
                "}",
            ][..],
        ),
        (
            1,
            &["🛠️[A 7 a b ]", "x🛠️[/end]"],
            &[r#"{"mode":7,"path":"a b""#, r#","content":"x""#, "}"],
        ),
        (
            2,
            &["🛠️[A a.txt]\n", "🛠️[/end]"],
            &[r#"{"path":"a.txt""#, "}"],
        ),
        (
            2,
            &["🛠️[A a.txt]\n", "x", "🛠️[/end]"],
            &[r#"{"path":"a.txt""#, r#","content":"x"#, "\"", "}"],
        ),
        (
            3,
            &[
                "🛠️[A]\n{\"path\": \"a\", ",
                "\"content\": \"b\"}",
                "🛠️[/end]",
            ],
            &[r#"{"path":"a","content":"b"}"#],
        ),
        (4, &["🛠️[A 1.50]\n", "\n🛠️[/end]"], &[r#"{"n":1.5"#, "}"]),
        (5, &["🛠️[A]\n", "🛠️[/end]"], &["{}"]),
        (6, &["🛠️[A]🛠️[/end]"], &["{}"]),
        (
            0,
            &["🛠️[A a.txt x]\n", "one🛠️[/end]"],
            &["invalid call: the line does not match the usage of the tool: found `a.txt x`"],
        ),
        (
            4,
            &["🛠️[A]\n", "one🛠️[/end]"],
            &["invalid call: the line does not match the usage of the tool: found nothing"],
        ),
    ] {
        let tool = &tools[tool];
        let dialect = Dialect::emoji();
        let streamed = stream_all(
            chunks.iter().copied(),
            &dialect,
            tool,
            Some(tool),
            Limits::default(),
        );
        let call = streamed.first().expect("a call");
        let mut found = call.deltas.clone();
        found.push(match &call.rest {
            Ok(rest) => rest.clone(),
            Err(error) => error.to_string(),
        });
        found.retain(|delta| !delta.is_empty());
        assert_eq!(found, expected, "{chunks:?}");
    }
}

/// Both syntaxes in one text; each call has its own stream.
#[test]
fn calls_of_one_text_have_streams_of_their_own() {
    let text = "🛠️[A]\n{\"s\": \"x\"}🛠️[/end] 🛠️[A]\n{}🛠️[/end]";
    let tool = tool();
    let streamed = stream_all(
        [text],
        &Dialect::auto(),
        &tool,
        Some(&tool),
        Limits::default(),
    );
    let texts: Vec<_> = streamed
        .iter()
        .map(|call| {
            (
                call.call.syntax,
                call.begun() + call.rest.as_deref().unwrap_or("?"),
            )
        })
        .collect();
    assert_eq!(
        texts,
        [
            (Syntax::Emoji, r#"{"s":"x"}"#.to_owned()),
            (Syntax::Emoji, "{}".to_owned())
        ]
    );
}
