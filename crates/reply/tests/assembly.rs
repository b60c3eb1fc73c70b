//! Arguments from pointers: `spec/block.md` 7, through the parser and the collector.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_reply::collector::{Collected, Collector};
use plaincall_reply::document::DocumentReader;
use plaincall_reply::{Document, ReplyCheck, Stop, ToolCall, Unclosed};
use plaincall_syntax::{Dialect, parse};
use plaincall_tool::{Limits, NoTools, ReplyDiagnostic};

/// A block call with these arguments, each a pointer and a value.
fn text_of(arguments: &[(&str, &str)]) -> String {
    let line = |(pointer, value): &(&str, &str)| format!("!!!ARG:{pointer}\n{value}\n");
    let lines = arguments.iter().map(line).collect::<Vec<_>>().concat();
    format!("!!!GADGET_START:A\n{lines}!!!GADGET_END\n")
}

fn call_of(text: &str) -> ToolCall {
    let document = Document::parse(text, &Dialect::block()).expect("a dialect that works");
    document.calls().next().expect("a call").clone()
}

/// `expected` is the JSON of the parameters, or the error.
fn check(arguments: &[(&str, &str)], expected: &str) {
    let call = call_of(&text_of(arguments));
    let found = match &call.parse_error {
        Some(error) => error.clone(),
        None => call.arguments.to_value().to_string(),
    };
    assert_eq!(found, expected, "{arguments:?}");
}

#[test]
fn pointers_make_objects_and_arrays() {
    check(&[], "{}");
    check(&[("filename", "value")], r#"{"filename":"value"}"#);
    check(
        &[("config/timeout", "30"), ("config/retries", "3")],
        r#"{"config":{"timeout":30,"retries":3}}"#,
    );
    check(
        &[("items/0", "a"), ("items/1", "b")],
        r#"{"items":["a","b"]}"#,
    );
    check(
        &[("u/0/name", "Al"), ("u/1/name", "Bo"), ("u/0/age", "25")],
        r#"{"u":[{"name":"Al","age":25},{"name":"Bo"}]}"#,
    );
    check(
        &[("grid/0/0", "1"), ("grid/0/1", "2"), ("grid/1/0", "3")],
        r#"{"grid":[[1,2],[3]]}"#,
    );
    check(&[("0", "a"), ("1", "b")], r#"{"0":"a","1":"b"}"#);
    check(&[("o/k", "a"), ("o/7", "b")], r#"{"o":{"k":"a","7":"b"}}"#);
    check(
        &[("a~1b/c~0d", "1"), ("~01", "2"), ("~2~", "3")],
        r#"{"a/b":{"c~d":1},"~1":2,"~2~":3}"#,
    );
    check(
        &[("/lead", "1"), ("  blank\t", "2")],
        r#"{"lead":1,"blank":2}"#,
    );
    check(
        &[("__proto__/constructor", "1")],
        r#"{"__proto__":{"constructor":1}}"#,
    );
    check(
        &[("dash/-", "1"), ("word/1a", "2"), ("٣", "3")],
        r#"{"dash":{"-":1},"word":{"1a":2},"٣":3}"#,
    );
}

#[test]
fn errors_have_the_documents_texts() {
    for (arguments, expected) in [
        (
            &[("name", "Alice"), ("name", "Bob")][..],
            "Duplicate pointer: name",
        ),
        (&[("name", "1"), (" name ", "2")], "Duplicate pointer: name"),
        (&[("a~01", "1"), ("a~01", "2")], "Duplicate pointer: a~01"),
        (
            &[("items/0", "a"), ("items/2", "b")],
            "Array index gap: expected 1, got 2",
        ),
        (
            &[("items/1", "a"), ("items/0", "b")],
            "Array index gap: expected 0, got 1",
        ),
        (&[("a/0/b/3", "x")], "Array index gap: expected 0, got 3"),
        (
            &[("a/0", "x"), ("a/99999999999999999999999", "y")],
            "Array index gap: expected 1, got 99999999999999999999999",
        ),
        (&[("items/-1", "a")], "Invalid array index: -1"),
        (&[("items/01", "a")], "Invalid array index: 01"),
        (&[("00", "a")], "Invalid array index: 00"),
        (
            &[("items/0", "a"), ("items/foo", "b")],
            "Invalid array index: foo",
        ),
        (
            &[("items/0", "a"), ("items/-", "b")],
            "Invalid array index: -",
        ),
        (
            &[("items/0", "a"), ("items/foo/x", "b")],
            "Invalid array index: foo",
        ),
        (&[("a//b", "1")], "Empty pointer segment: a//b"),
        (&[("a/", "1")], "Empty pointer segment: a/"),
        (&[("//a", "1")], "Empty pointer segment: /a"),
        (&[("", "1")], "Empty pointer segment: "),
        (&[("/", "1")], "Empty pointer segment: "),
        (
            &[("a", "1"), ("a/b", "2")],
            "Pointer conflict: a/b passes through the value a",
        ),
        (
            &[("a/b", "1"), ("a/b/c/d", "2")],
            "Pointer conflict: a/b/c/d passes through the value a/b",
        ),
        (
            &[("/a", "1"), ("/a/0", "2")],
            "Pointer conflict: a/0 passes through the value a",
        ),
        (
            &[("a/b", "1"), ("a", "2")],
            "Pointer conflict: a already holds other arguments",
        ),
        (
            &[("a/0", "1"), ("a", "2")],
            "Pointer conflict: a already holds other arguments",
        ),
        (&[("x 5", "")], "Value on the pointer line: x 5"),
        (&[("/x\t5", "")], "Value on the pointer line: x\t5"),
        // The order of the checks: a blank before an empty segment, that before the form of a segment.
        (&[("a //b", "1")], "Value on the pointer line: a //b"),
        (&[("a//-1", "1")], "Empty pointer segment: a//-1"),
        (&[("a", "1"), ("a/-1", "2")], "Invalid array index: -1"),
        // The first error in text order.
        (
            &[("x", "1"), ("x", "2"), ("-1", "3")],
            "Duplicate pointer: x",
        ),
        // A wrong argument is not placed; later arguments are checked against the placed ones.
        (
            &[("a/5", "1"), ("a/0", "2")],
            "Array index gap: expected 0, got 5",
        ),
    ] {
        check(arguments, expected);
    }
    let deep = vec!["a"; 65].join("/");
    check(&[(&deep, "1")], &format!("Pointer too deep: {deep}"));
    let deep = vec!["a"; 64].join("/");
    assert_eq!(
        call_of(&text_of(&[(&deep, "1")])).arguments.get(&deep),
        Some("1")
    );
}

#[test]
fn errors_of_the_parser_take_part() {
    for (text, expected) in [
        (
            "!!!GADGET_START:A\n{\"x\": 1}\n!!!GADGET_END",
            "Text without an argument marker",
        ),
        (
            "!!!GADGET_START:A\n!!!ARG:x/y",
            "Truncated pointer line: x/y",
        ),
        (
            "!!!GADGET_START:A\n!!!ARG:x\n1\n!!!ARG:x\n2\n!!!ARG:y",
            "Duplicate pointer: x",
        ),
    ] {
        assert_eq!(
            call_of(text).parse_error.as_deref(),
            Some(expected),
            "{text}"
        );
    }
    let long = format!(
        "!!!GADGET_START:A\n!!!ARG:{}\n1\n!!!GADGET_END",
        "x".repeat(5000)
    );
    let call = call_of(&long);
    assert_eq!(call.parse_error.as_deref(), Some("Pointer too long"));
    assert!(call.arguments.is_empty());
    assert_eq!(call.source(), Some(long.as_str()));
}

#[test]
fn findings_stand_at_the_pointer_line_in_text_order() {
    let text = text_of(&[("/a", "1"), ("a", "see !!!ARG: there"), ("b//", "2")]);
    let call = call_of(&text);
    let found: Vec<(&str, &str)> = call
        .diagnostics
        .iter()
        .map(|one| (one.code, text.get(one.span.range()).unwrap_or_default()))
        .collect();
    assert_eq!(
        found,
        [
            ("leading_slash", "!!!ARG:/a\n"),
            ("duplicate_pointer", "!!!ARG:a\n"),
            ("marker_in_value", "!!!ARG:"),
            ("empty_pointer_segment", "!!!ARG:b//\n"),
        ]
    );
    assert!(call.marker_in_value);
}

#[test]
fn values_keep_text_span_and_place() {
    let text = text_of(&[("x", "  one\n"), ("empty", ""), ("list/0", "a\r\nb")]);
    let call = call_of(&text);
    let found: Vec<(&str, &str, &str)> = call
        .arguments
        .iter()
        .map(|one| {
            (
                one.pointer,
                one.text,
                text.get(one.span.range()).unwrap_or("?"),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("x", "  one\n", "  one\n"),
            ("empty", "", ""),
            ("list/0", "a\r\nb", "a\r\nb")
        ]
    );
    for (pointer, expected) in [
        ("x", Some("  one\n")),
        ("/x", Some("  one\n")),
        ("list/0", Some("a\r\nb")),
        ("list", None),
        ("list/1", None),
        ("list/7", None),
        ("list/x", None),
        ("x/y", None),
        ("", None),
        ("nothing", None),
    ] {
        assert_eq!(call.arguments.get(pointer), expected, "{pointer}");
    }
}

#[test]
fn escaped_values_have_no_backslash_and_the_whole_span() {
    let text = "!!!GADGET_START:A\n!!!ARG:x\n!!!ARG\\:y and !!!GADGET_EN\\D\n!!!GADGET_END";
    let document =
        Document::parse(text, &Dialect::block().escaped()).expect("a dialect that works");
    let call = document.calls().next().expect("a call");
    let argument = call.arguments.argument("x").expect("an argument");
    assert_eq!(argument.text, "!!!ARG:y and !!!GADGET_END");
    assert_eq!(
        text.get(argument.span.range()),
        Some("!!!ARG\\:y and !!!GADGET_EN\\D")
    );
    assert_eq!(call.raw(), "!!!ARG:x\n!!!ARG\\:y and !!!GADGET_EN\\D\n");
}

fn collect(text: &str, limits: Limits) -> ToolCall {
    let mut collector = Collector::new(limits);
    let events = parse(text, &Dialect::block()).expect("a dialect that works");
    let finished = events
        .iter()
        .filter_map(|event| match collector.push(event) {
            Some(Collected::Finished(call)) => Some(*call),
            _ => None,
        });
    finished.last().expect("a call")
}

#[test]
fn limits_are_errors_and_nothing_is_kept_beyond_them() {
    let mut limits = Limits::for_running();
    limits.depth = 2;
    limits.arguments = 3;
    limits.dependencies = 2;
    limits.value_bytes = Some(4);
    limits.warnings = Some(1);
    let of = |arguments: &[(&str, &str)]| collect(&text_of(arguments), limits);

    let call = of(&[("a/b", "1234"), ("b", ""), ("c", "x")]);
    assert_eq!(
        (call.parse_error.as_deref(), call.arguments.len()),
        (None, 3)
    );
    assert!(call.source().is_some());

    let call = of(&[("a", "12345"), ("a", "1")]);
    assert_eq!(call.parse_error.as_deref(), Some("Value too long: a"));
    assert_eq!(
        call.arguments.get("a"),
        Some("1"),
        "a wrong argument is not placed"
    );
    assert_eq!(call.source(), None);
    assert_eq!(call.diagnostics.len(), 1);

    let call = of(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5")]);
    assert_eq!(call.parse_error.as_deref(), Some("Too many arguments"));
    assert_eq!((call.diagnostics.len(), call.arguments.len()), (1, 3));
    assert!(!call.raw().contains('4'));

    assert_eq!(
        of(&[("a/b/c", "1")]).parse_error.as_deref(),
        Some("Pointer too deep: a/b/c")
    );

    let call = collect("!!!GADGET_START:A:i:b,c,b,d,e\n!!!GADGET_END", limits);
    assert_eq!(call.parse_error.as_deref(), Some("Too many dependencies"));
    assert_eq!(call.dependencies, ["b", "c"]);

    let call = of(&[("/a", "1"), ("/b", "2"), ("/b", "3")]);
    let codes: Vec<&str> = call
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.code)
        .collect();
    assert_eq!(codes, ["leading_slash", "duplicate_pointer"]);
    assert_eq!(call.omitted_warnings, 2);
}

#[test]
fn ten_thousand_arguments_of_every_shape() {
    let shapes: [fn(usize) -> String; 5] = [
        |index| format!("key{index}"),
        |index| format!("list/{index}"),
        |index| format!("list/{index}/name"),
        |index| format!("o/k{}/k{index}", index % 7),
        |index| format!("{}k{index}", "d/".repeat(60)),
    ];
    for shape in shapes {
        let pointers: Vec<String> = (0..10_000).map(shape).collect();
        let values: Vec<String> = (0..10_000_usize).map(|index| index.to_string()).collect();
        let arguments: Vec<(&str, &str)> = pointers
            .iter()
            .zip(&values)
            .map(|(pointer, value)| (pointer.as_str(), value.as_str()))
            .collect();
        let text = text_of(&arguments);
        let call = call_of(&text);
        let last = shape(9_999);
        assert_eq!(call.parse_error, None, "{last}");
        assert_eq!(call.arguments.get(&last), Some("9999"));
        assert_eq!(call.arguments.len(), 10_000);
    }
}

/// Checks the names of the calls that a run treats as reasoning, for a text in two pieces split anywhere.
fn check_leading(text: &str, dialect: &Dialect, expected: &[&str]) {
    for cut in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        let check = ReplyCheck::new(dialect, Unclosed::Reject).expect("a dialect that works");
        let limits = Limits::for_reading();
        let reader = DocumentReader::new(dialect, NoTools, check, limits);
        let mut reader = reader.expect("a dialect that works");
        let (before, behind) = text.split_at(cut);
        for chunk in [before, behind] {
            reader.feed(chunk);
        }
        let document = reader.finish(Stop::Broken);
        let warned = document.diagnostics.iter().filter(|diagnostic| {
            diagnostic.code == ReplyDiagnostic::CALL_IN_REASONING && !diagnostic.is_error()
        });
        let spans: Vec<_> = warned.map(|diagnostic| diagnostic.span).collect();
        let calls = document
            .calls()
            .filter(|call| spans.contains(&call.header.span));
        let names: Vec<_> = calls.map(|call| call.name.as_str()).collect();
        assert_eq!(names, expected, "{text:?} cut at {cut}");
    }
}

#[test]
fn calls_in_leading_reasoning_are_reported() {
    let [open, close] = Dialect::THINK;
    let auto = Dialect::auto();
    let a = "!!!GADGET_START:A\n!!!ARG:x\n1\n!!!GADGET_END\n";
    let b = "!!!GADGET_START:B\n!!!GADGET_END\n";
    for (text, expected) in [
        (format!("{open}{a}{close}{b}"), &["A"][..]),
        (format!(" \r\n\t{open}\n{a}\n{b}"), &["A", "B"]),
        (format!("{open}{close}{a}"), &[]),
        (format!("So: {open}{a}{close}"), &[]),
        (format!("{a}{open}{b}{close}"), &["B"]),
        (format!("{open}{close} {open}{b}{close}{a}"), &["B"]),
        (format!("\u{FEFF}\u{200B}\n{open}{b}{close}{a}"), &["B"]),
        (format!("{a}\u{FEFF}{open}{b}{close}"), &[]),
        (format!("{a}So {open}{b}{close}"), &[]),
        (format!("{}{a}{close}", open.to_uppercase()), &[]),
        // The close marker counts anywhere.
        (
            format!("{open}!!!GADGET_START:A\n!!!ARG:x\n{close}\n!!!GADGET_END\n{b}"),
            &["A"],
        ),
        (format!("{open}🛠️[a {close}]🛠️[/end]🛠️[b]🛠️[/end]"), &["a"]),
    ] {
        check_leading(&text, &auto, expected);
    }
    let with_reasoning = auto.leading_reasoning(open, close);
    check_leading(&format!("{open}{a}{close}{b}"), &with_reasoning, &[]);
}
