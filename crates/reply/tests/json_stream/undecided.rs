//! The point at which a text is known to be a string and is streamed (`spec/json-stream.md` 3).

use plaincall_syntax::Dialect;
use plaincall_testkit::json_streams::stream_all;
use plaincall_tool::{Limits, ToolSpec};
use serde_json::{Value, json};

/// A tool with an argument of any text and of these types. An object has named members.
fn tool(types: &[&str]) -> ToolSpec {
    let argument = if types.is_empty() {
        json!({})
    } else {
        json!({"type": types, "properties": {"b": {}}})
    };
    tool_with(&argument)
}

fn tool_with(argument: &Value) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"a": argument}});
    let tool = ToolSpec::new("A").parameters_from_schema(&schema);
    tool.expect("a schema")
}

/// The number of characters read before a text is streamed as a string; `None`: it is held to its end.
fn read_until_certain(tool: &ToolSpec, text: &str) -> Option<usize> {
    let whole = format!("!!!GADGET_START:A\n!!!ARG:a\n{text}\n!!!GADGET_END");
    let from = whole.len() - text.len() - "\n!!!GADGET_END".len();
    let (begin, end) = (&whole[..from], &whole[from + text.len()..]);
    let each = text
        .char_indices()
        .map(|(at, c)| &text[at..at + c.len_utf8()]);
    let chunks = [begin].into_iter().chain(each).chain([end]);
    let dialect = Dialect::block();
    let calls = stream_all(chunks, &dialect, tool, Some(tool), Limits::default());
    let call = calls.into_iter().next().expect("a call");
    assert!(call.rest.is_ok(), "{text:?}: {:?}", call.rest);
    // The key has been written with the first character of the value.
    let key = call.deltas.iter().position(|delta| !delta.is_empty());
    let deltas = call.deltas.get(key? + 1..)?;
    let certain = deltas.iter().position(|delta| !delta.is_empty());
    certain
        .map(|at| at + 1)
        .filter(|at| *at <= text.chars().count())
}

fn check(tool: &ToolSpec, text: &str, expected: Option<usize>) {
    assert_eq!(read_until_certain(tool, text), expected, "{text:?}");
}

#[test]
fn a_text_is_a_string_as_soon_as_it_must_be() {
    let (guessed, nullable) = (tool(&[]), tool(&["string", "null"]));
    let object = tool(&["string", "object"]);
    let ones = "1".repeat(400);
    let zeros = format!("1{}", "0".repeat(400));
    for (text, expected) in [
        ("", None),
        ("  \t", None),
        ("x", Some(1)),
        ("  x", Some(3)),
        ("true", None),
        ("true  ", None),
        ("true x", Some(6)),
        ("truex", Some(5)),
        ("tree", Some(3)),
        ("fall", Some(4)),
        ("null", Some(1)),
        ("é", Some(1)),
        ("12 ", None),
        ("12 3", Some(4)),
        ("-", None),
        ("--", Some(2)),
        ("-5", None),
        ("007", Some(2)),
        ("0.0", None),
        ("5.", None),
        ("5.x", Some(3)),
        ("1.2.3", Some(4)),
        ("1e5", Some(2)),
        ("+5", Some(1)),
        (".5", Some(1)),
        ("0x10", Some(2)),
        ("10:30", Some(3)),
        ("2024-01-01", Some(5)),
        ("3.14159265358979323846", None),
        ("18446744073709551615", None),
        (&ones, None),
        (&zeros, None),
        // A line end may belong to the syntax, so it counts together with the text after it.
        ("\n1", Some(1)),
        ("5\n1", Some(2)),
        ("5\r1", Some(2)),
    ] {
        check(&guessed, text, expected);
    }
    for (text, expected) in [
        ("null", None),
        (" null\t", None),
        ("nul", None),
        ("none", Some(2)),
        ("nulls", Some(5)),
        ("null\n ", Some(5)),
        ("5", Some(1)),
        ("true", Some(1)),
    ] {
        check(&nullable, text, expected);
    }
    for (text, expected) in [
        ("{\"a\": 1}", None),
        ("{not an object", None),
        ("\n5", Some(1)),
        ("[{}]", Some(1)),
        ("x{", Some(1)),
    ] {
        check(&object, text, expected);
    }
    // A text is never a free-form object.
    let free = tool_with(&json!({"type": ["string", "object"]}));
    check(&free, "{\"a\": 1}", Some(1));
}

/// Every short text of the relevant characters: the closed text never contradicts what was streamed.
#[test]
fn other_values_are_never_written_as_strings() {
    let tools = [
        tool(&[]),
        tool(&["string", "null"]),
        tool(&["string", "null", "boolean", "number"]),
        tool(&["string", "number", "object"]),
    ];
    let characters = [
        "-", "0", "1", "9", ".", " ", "\n", "true", "false", "null", "e", "{}",
    ];
    let mut texts = vec![String::new()];
    let mut count = 0;
    for _ in 0..5 {
        let longer = |text: &String| characters.map(|character| format!("{text}{character}"));
        texts = texts.iter().flat_map(longer).collect();
        // A certain string stays one, so longer texts need no check.
        texts.retain(|text| {
            let certain = tools.each_ref().map(|tool| read_until_certain(tool, text));
            certain.contains(&None)
        });
        count += texts.len();
    }
    assert!(count > 1000, "{count}");
}

/// The limits of digits, at their boundaries.
#[test]
fn long_numbers_are_never_taken_for_strings() {
    let mut numbers = vec![
        u64::MAX.to_string(),
        i64::MIN.to_string(),
        format!("0.{}5", "0".repeat(323)),
        format!("0.{}", "0".repeat(1000)),
        format!("1.5{}", "0".repeat(1000)),
        format!("1797693134862315{}.0", "0".repeat(293)),
    ];
    let mut bits = 1_u64;
    for _ in 0..2_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let written = Value::from(f64::from_bits(bits)).to_string();
        if !written.contains(['e', 'n']) {
            numbers.push(written);
        }
        numbers.push(bits.to_string());
    }
    let guessed = tool(&[]);
    for number in &numbers {
        check(&guessed, number, None);
    }
}
