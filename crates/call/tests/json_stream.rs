//! The JSON text of arguments as deltas: `spec/json-stream.md`.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_call::{
    Arguments, Collected, Collector, EmojiShape, ExpectedParts, ExpectedValue, JsonStream, Limits,
    NotClosed, Parameter, ParameterKind, Shape, ToolCall, ToolSpec, UnknownShape, bind,
};
use plaincall_syntax::{Dialect, Event, Parser, Syntax};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::Value;

/// What became of one call.
struct Streamed {
    /// What was written with each chunk, up to the end of the call.
    deltas: Vec<String>,
    /// What closing added, or why it did not.
    rest: Result<String, NotClosed>,
    fault: Option<String>,
    call: ToolCall,
    /// The arguments that closing was given.
    bound: Option<Arguments>,
}

impl Streamed {
    fn begun(&self) -> String {
        self.deltas.concat()
    }
}

/// The calls of a text that comes in these chunks. Without a tool, arguments are what they are without a definition.
fn stream_all<'t>(
    chunks: impl IntoIterator<Item = &'t str>,
    dialect: &Dialect,
    shape: &dyn Shape,
    tool: Option<&ToolSpec>,
    limits: Limits,
) -> Vec<Streamed> {
    let mut parser = Parser::new(dialect).expect("a dialect that works");
    let mut collector = Collector::new(limits);
    let mut streamed = Vec::new();
    let mut open: Option<(JsonStream<&dyn Shape>, Vec<String>)> = None;
    let mut take = |event: &Event<'_>, is_first: bool| {
        let collected = collector.push(event);
        if let Some(Collected::Started(_)) = &collected {
            open = Some((JsonStream::new(shape, limits), vec![String::new()]));
        }
        let Some((stream, deltas)) = &mut open else {
            return;
        };
        if is_first {
            deltas.push(String::new());
        }
        if let Some(delta) = deltas.last_mut() {
            stream.push(event, delta);
        }
        if let Some(Collected::Finished(call)) = collected
            && let Some((mut stream, deltas)) = open.take()
        {
            let bound = match tool {
                Some(tool) => bind(tool, &call).ok(),
                None => Some(call.arguments.clone()).filter(|_| call.parse_error.is_none()),
            };
            let fault = stream.fault().map(str::to_owned);
            let mut rest = String::new();
            let arguments = bound.as_ref().unwrap_or(&call.arguments);
            let closed = stream.close(&call, arguments, &mut rest);
            streamed.push(Streamed {
                deltas,
                rest: closed.map(|()| rest),
                fault,
                call: *call,
                bound,
            });
        }
    };
    for chunk in chunks {
        for (place, event) in parser.feed(chunk).enumerate() {
            take(&event, place == 0);
        }
    }
    for (place, event) in parser.finish().enumerate() {
        take(&event, place == 0);
    }
    streamed
}

/// A block call in these chunks gives these deltas, empty ones left out; the last one, or the fault, is what closing
/// gives.
fn check(shape: &dyn Shape, tool: Option<&ToolSpec>, chunks: &[&str], expected: &[&str]) {
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

fn parameter(name: &str, kind: ParameterKind) -> Parameter {
    Parameter::new(name, kind).optional()
}

/// A tool with parameters of each kind, all optional.
fn tool() -> ToolSpec {
    [
        ("s", ParameterKind::String),
        ("text", ParameterKind::String),
        ("n", ParameterKind::Number),
        ("i", ParameterKind::Integer),
        ("t", ParameterKind::Boolean),
        ("l", ParameterKind::Array),
        ("o", ParameterKind::Object),
        ("d", ParameterKind::Any),
        ("a", ParameterKind::Any),
        ("p", ParameterKind::Any),
    ]
    .into_iter()
    .fold(ToolSpec::new("A"), |tool, (name, kind)| {
        tool.parameter(parameter(name, kind))
    })
}

/// Nothing is known but how many parts some places have.
struct Counted;

impl Shape for Counted {
    fn value(&self, place: &[&str]) -> ExpectedValue {
        match place {
            ["null"] => ExpectedValue::TextOrNull,
            _ => UnknownShape.value(place),
        }
    }

    fn parts(&self, place: &[&str]) -> ExpectedParts {
        let most = Some(2);
        match place {
            ["d"] | ["d", "e"] => ExpectedParts::Object { most },
            ["p"] => ExpectedParts::List { most },
            _ => UnknownShape.parts(place),
        }
    }

    fn read(&self, place: &[&str], text: &str) -> Option<Value> {
        UnknownShape.read(place, text)
    }

    fn emoji(&self, raw_args: &str) -> EmojiShape {
        UnknownShape.emoji(raw_args)
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
        check(&UnknownShape, None, &chunks, &expected);
    }
}

#[test]
fn what_is_no_string_is_written_when_it_is_complete() {
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
        &[r#"{"n":"#, r#"10.5,"t":"#, r#"true,"l":"#, "[1,2]", "}"],
    );
}

#[test]
fn what_may_be_null_waits_for_that_alone() {
    let different = NotClosed::Different.to_string();
    check(
        &Counted,
        None,
        &["!!!ARG:null\n", "nu", "ts\n"],
        &[r#"{"null":"#, "\"nuts", "\"", "}"],
    );
    // Without a definition 5 is a number, so what is written is not what the arguments are.
    check(
        &Counted,
        None,
        &["!!!ARG:null\n", "5\n"],
        &[r#"{"null":"#, "\"5", "\"", &different],
    );
}

#[test]
fn parts_are_written_while_the_model_stays_in_them() {
    check(
        &UnknownShape,
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
        &Counted,
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
        &Counted,
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
    check(&UnknownShape, None, &[], &["{}"]);
    check(&tool(), Some(&tool()), &[], &["{}"]);
}

#[test]
fn a_wrong_call_is_left_open() {
    for (chunks, expected) in [
        (
            &["!!!ARG:s\nx\n!!!ARG:s\ny\n"][..],
            &[r#"{"s":"x""#, "the call is wrong: Duplicate pointer: s"][..],
        ),
        (
            &["!!!ARG:s\nx\n!!!ARG:s/a\ny\n"],
            &[
                r#"{"s":"x""#,
                "the call is wrong: Pointer conflict: s/a passes through the value s",
            ],
        ),
        (
            &["!!!ARG:o/a\nx\n!!!ARG:s\ny\n!!!ARG:o\nz\n"],
            &[
                r#"{"o":{"a":"x""#,
                "the call is wrong: Pointer conflict: o already holds other arguments",
            ],
        ),
        (
            &["!!!ARG:l/1\nx\n"],
            &["the call is wrong: Array index gap: expected 0, got 1"],
        ),
        (
            &["!!!ARG:s\nx\n!!!ARG:-1\ny\n!!!ARG:text\nz\n"],
            &[r#"{"s":"x""#, "the call is wrong: Invalid array index: -1"],
        ),
        (
            &["!!!ARG:s\nx\n!!!ARG:n\nmany\n"],
            &[
                r#"{"s":"x","n":"#,
                "the call is wrong: `n`: found `many`, which does not fit",
            ],
        ),
        (
            &["!!!ARG:s\nx\n!!!ARG:no\ny\n"],
            &[
                r#"{"s":"x""#,
                "the call is wrong: `no`: nothing may stand there",
            ],
        ),
        (
            &["!!!ARG:s 5\n"],
            &["the call is wrong: Value on the pointer line: s 5"],
        ),
    ] {
        check(&tool(), Some(&tool()), chunks, expected);
    }
    check(
        &Counted,
        None,
        &["!!!ARG:p/0\n1\n!!!ARG:p/1\n2\n!!!ARG:z\n3\n!!!ARG:p/2\n4\n"],
        &[
            r#"{"p":[1,2],"z":3"#,
            "the call is wrong: `p/2`: nothing may stand there",
        ],
    );
}

#[test]
fn limits_are_those_of_the_collector() {
    let tight = Limits {
        depth: 2,
        arguments: 2,
        dependencies: 1,
        value_bytes: Some(3),
        warnings: None,
    };
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
        let streamed = stream_all(
            [text.as_str()],
            &Dialect::block(),
            &UnknownShape,
            None,
            tight,
        );
        let call = streamed.first().expect("a call");
        assert_eq!(call.begun(), begun);
        assert_eq!(call.rest, Err(NotClosed::Wrong(fault.to_owned())));
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
        let mut stream = JsonStream::new(UnknownShape, limits);
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

fn emoji_tools() -> Vec<ToolSpec> {
    let begun = ToolSpec::new("A")
        .parameter(Parameter::new("path", ParameterKind::String))
        .parameter(parameter("mode", ParameterKind::Integer));
    let create = begun
        .clone()
        .parameter(Parameter::new("content", ParameterKind::String));
    let optional = begun.parameter(parameter("content", ParameterKind::String));
    vec![
        create.clone().body("content").positional(["path", "mode"]),
        create.clone().body("content").positional(["mode", "path"]),
        optional.body("content"),
        create,
        ToolSpec::new("A").parameter(Parameter::new("n", ParameterKind::Number)),
        ToolSpec::new("A")
            .parameter(parameter("text", ParameterKind::String))
            .body("text"),
        ToolSpec::new("A"),
    ]
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
            &["the call is wrong: the line does not fit the form of the call: found `a.txt x`"],
        ),
        (
            4,
            &["🛠️[A]\n", "one🛠️[/end]"],
            &["the call is wrong: the line does not fit the form of the call: found nothing"],
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

/// What holds for every call, however it is cut.
fn check_text(
    text: &str,
    dialect: &Dialect,
    sizes: &[usize],
    shape: &dyn Shape,
    tool: Option<&ToolSpec>,
    limits: Limits,
) -> Result<usize, TestCaseError> {
    let mut chunks = Vec::new();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, left) = rest.split_at(rest.ceil_char_boundary((*size).min(rest.len())));
        chunks.push(chunk);
        rest = left;
    }
    let cut = stream_all(chunks, dialect, shape, tool, limits);
    let whole = stream_all([text], dialect, shape, tool, limits);
    prop_assert_eq!(cut.len(), whole.len());
    let mut closed = 0;
    for (call, whole) in cut.iter().zip(&whole) {
        prop_assert_eq!(&call.rest, &whole.rest);
        if call.fault.is_none() {
            prop_assert_eq!(call.begun(), whole.begun());
        }
        let Some(bound) = &call.bound else {
            // Not bound, so nobody closes it.
            prop_assert!(serde_json::from_str::<Value>(&call.begun()).is_err());
            continue;
        };
        match &call.rest {
            Ok(rest) => {
                closed += 1;
                let is_flat = |pointer: &str| !pointer.contains('/');
                if call.call.syntax == Syntax::Block && bound.iter().all(|one| is_flat(one.pointer))
                {
                    // Without parts nothing is held.
                    let end = if bound.is_empty() { "{}" } else { "}" };
                    prop_assert_eq!(rest, end);
                }
                let json = call.begun() + rest;
                prop_assert_eq!(&json, &bound.to_value().to_string());
                prop_assert_eq!(
                    serde_json::from_str::<Value>(&json).ok(),
                    Some(bound.to_value())
                );
            }
            Err(error) => {
                // Only a shape that was wrong about the number of parts makes a right call a wrong one.
                let fault = call.fault.clone().unwrap_or_default();
                let is_over = tool.is_none() && fault.ends_with("nothing may stand there");
                prop_assert!(is_over, "{error} {:?}", call.call.arguments);
                prop_assert!(serde_json::from_str::<Value>(&call.begun()).is_err());
            }
        }
    }
    Ok(closed)
}

const POINTERS: &[(&str, &str)] = &[
    ("s", "text"),
    ("o/x", "text"),
    ("o/y", "text"),
    ("n", "number"),
    ("l/0", "text"),
    ("l/1", "text"),
    ("l/2/k", "text"),
    ("d/e/f", "text"),
    ("d/e/g", "text"),
    ("d/h", "text"),
    ("p/0", "text"),
    ("p/1", "text"),
    ("i", "integer"),
    ("t", "boolean"),
    ("a", "text"),
    ("text", "text"),
    ("o/0", "text"),
    ("p/2", "text"),
    ("o", "object"),
    ("l", "list"),
    ("/s", "text"),
    ("no", "text"),
    ("o//", "text"),
    ("-1", "text"),
];

fn value(kind: &'static str) -> BoxedStrategy<String> {
    let texts =
        |texts: &[&'static str]| prop::sample::select(texts.to_vec()).prop_map(str::to_owned);
    let soup = prop::collection::vec(
        prop::sample::select(vec![
            "5",
            "0",
            "-",
            ".",
            " ",
            "\t",
            "\n",
            "\r",
            "true",
            "null",
            "x",
            "\"",
            "\\",
            "\u{1}",
            "é",
            "𝄞",
            "/",
            "[",
            "!!!ARG:",
            "🛠️[a",
            "\u{7f}",
            "\u{2028}",
        ]),
        0..6,
    );
    let fitting = match kind {
        "number" => texts(&["5", "-0.5", "+1e3", " 007 ", "1.50", "-0"]).boxed(),
        "integer" => texts(&["5", "-17", "+1e3", " 007 ", "1.0"]).boxed(),
        "boolean" => texts(&["true", " false\t"]).boxed(),
        "object" => texts(&["{}", "{\"b\": 1.50,\n \"a\": [null]}"]).boxed(),
        "list" => texts(&["[]", "[1, {\"b\": 1e3}]"]).boxed(),
        _ => texts(&[
            "5",
            "007",
            "true",
            "null",
            "",
            " ",
            "1.50",
            "-0",
            "3.14159265358979323846",
        ])
        .boxed(),
    };
    let soup = soup.prop_map(|pieces| pieces.concat());
    if kind == "text" {
        prop_oneof![fitting, soup].boxed()
    } else {
        prop_oneof![9 => fitting, 1 => soup].boxed()
    }
}

/// Block calls: often right, in the order of the list above or in any other.
fn block_calls() -> impl Strategy<Value = String> {
    let right = prop::sample::subsequence(POINTERS[..16].to_vec(), 0..9);
    let any = prop::sample::subsequence(POINTERS.to_vec(), 0..6);
    let grouped = prop::sample::select(vec![
        vec!["l/0", "l/1", "s", "l/2/k"],
        vec!["d/e/f", "d/e/g", "d/h", "text", "a"],
        vec!["d/h", "d/e/f", "s", "d/e/g", "text"],
        vec!["p/0", "p/1", "o/x", "o/y", "s"],
        vec!["o/x", "p/0", "o/y", "p/1", "n"],
        vec!["p/0", "p/1", "s", "p/2"],
    ])
    .prop_map(|names| {
        names
            .iter()
            .filter_map(|name| POINTERS.iter().find(|(one, _)| one == name))
            .copied()
            .collect()
    });
    let pointers = prop_oneof![
        2 => right.clone(),
        2 => right.prop_shuffle(),
        1 => any.prop_shuffle(),
        3 => grouped,
    ];
    let arguments = pointers.prop_flat_map(|pointers: Vec<(&'static str, &'static str)>| {
        pointers
            .into_iter()
            .map(|(pointer, kind)| {
                value(kind).prop_map(move |value| format!("!!!ARG:{pointer}\n{value}\n"))
            })
            .collect::<Vec<_>>()
    });
    let ends = prop::sample::select(vec!["!!!GADGET_END\n", "", "!!!GADGET_START:B\n"]);
    (arguments, ends)
        .prop_map(|(arguments, end)| format!("!!!GADGET_START:A\n{}{end}", arguments.concat()))
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..12, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn block_calls_become_their_value(text in block_calls(), sizes in sizes(), is_tight in any::<bool>()) {
        let dialect = Dialect::block();
        let tight = Limits { value_bytes: Some(8), arguments: 4, ..Limits::for_running() };
        let limits = if is_tight { tight } else { Limits::default() };
        let tool = tool();
        check_text(&text, &dialect, &sizes, &tool, Some(&tool), limits)?;
        check_text(&text, &dialect, &sizes, &UnknownShape, None, limits)?;
        check_text(&text, &dialect, &sizes, &Counted, None, limits)?;
    }

    #[test]
    fn emoji_calls_become_their_value(
        tool in prop::sample::select(emoji_tools()),
        line in prop::sample::select(vec!["", "a.txt", "a.txt 7", "7 a.txt", "1.5", " 7  a b ", "\"q\" 007"]),
        body in prop_oneof![
            value("text"),
            Just("{\"path\": \"a\", \"content\": \"\\u0001\", \"mode\": 7}".to_owned()),
            Just("\n".to_owned()),
        ],
        end in prop::sample::select(vec!["🛠️[/end]", ""]),
        sizes in sizes(),
    ) {
        let text = format!("🛠️[A {line}]\n{body}{end}");
        check_text(&text, &Dialect::emoji(), &sizes, &tool, Some(&tool), Limits::default())?;
    }
}

/// The calls above are right often enough to say something.
#[test]
fn many_of_the_random_calls_are_right() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut closed = 0;
    for _ in 0..500 {
        let text = block_calls()
            .new_tree(&mut runner)
            .expect("a call")
            .current();
        let tool = tool();
        closed += check_text(
            &text,
            &Dialect::block(),
            &[3],
            &tool,
            Some(&tool),
            Limits::default(),
        )
        .expect("the property holds");
    }
    assert!(closed > 150, "{closed} of 500");
}

/// Both syntaxes in one text, each call with its own stream.
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
