//! The costs of a stream of JSON (`spec/json-stream.md` 6).

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::sync::Arc;

use alloc_tracker::Allocator;
#[cfg(feature = "jsonschema")]
use plaincall_reply::Document;
use plaincall_reply::collector::{Collected, Collector};
use plaincall_reply::{JsonStream, bind};
use plaincall_syntax::{Dialect, Event, EventKind, Parser, parse};
use plaincall_testkit::allocations::allocations;
use plaincall_tool::{Limits, Parameter, ParameterKind, ToolSpec};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator::system();

const MIB: usize = 1 << 20;
/// The number of pieces while allocations are counted.
const PIECES: usize = 100_000;

fn tool() -> ToolSpec {
    [
        ("text", ParameterKind::String),
        ("any", ParameterKind::Any),
        ("number", ParameterKind::Number),
    ]
    .into_iter()
    .fold(ToolSpec::new("A"), |tool, (name, kind)| {
        tool.parameter(Parameter::new(name, kind).optional())
    })
}

/// The events of a call up to the first piece of its only value, which is `piece`.
fn opened(text: &str) -> Vec<Event<'_>> {
    let mut events = parse(text, &Dialect::block()).expect("a dialect that works");
    let is_delta = |event: &Event<'_>| matches!(event.kind, EventKind::ValueDelta(_));
    let delta = events.iter().position(is_delta).expect("a value");
    events.truncate(delta + 1);
    events
}

/// Sends a piece [`PIECES`] times; the stream may allocate at most `most` times.
fn check_allocations(key: &str, piece: &str, written: usize, most: u64) {
    let text = format!("!!!GADGET_START:A\n!!!ARG:{key}\n{piece}");
    let events = opened(&text);
    let (delta, before) = events.split_last().expect("events");
    let tool = tool();
    let mut stream = JsonStream::new(&tool, Limits::default());
    let mut out = String::with_capacity(256);
    for event in before {
        stream.push(event, &mut out);
    }
    let mut bytes = 0;
    let count = allocations(|| {
        for _ in 0..PIECES {
            out.clear();
            stream.push(delta, &mut out);
            bytes += out.len();
        }
    });
    assert!(count <= most, "{key} {piece:?}: {count} allocations");
    assert_eq!(bytes, written, "{key} {piece:?}");
}

#[test]
fn a_delta_asks_for_no_memory_of_its_own() {
    check_allocations("text", "x", PIECES, 0);
    check_allocations("text", "\u{1}", 6 * PIECES, 0);
    check_allocations("text", "\"𝄞\\", 8 * PIECES, 0);
    // The first piece shows that the text is a string, and adds its quote.
    check_allocations("any", "x", PIECES + 1, 8);
    // Undecided to the end: the buffer of the held text grows by doubling.
    check_allocations("any", " ", 0, 40);
    check_allocations("any", "0", PIECES + 1, 8);
    check_allocations("number", "1", 0, 40);
}

/// The CPU time of this thread in nanoseconds; other work on the machine does not count.
fn cpu_time() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The time of the stream alone for a text in chunks of `size`.
fn stream_time(tool: &Arc<ToolSpec>, text: &str, size: usize, limits: Limits) -> i64 {
    let mut parser = Parser::new(&Dialect::block()).expect("a dialect that works");
    let mut events = Vec::new();
    for chunk in text.as_bytes().chunks(size) {
        let chunk = std::str::from_utf8(chunk).expect("ASCII");
        events.extend(parser.feed(chunk).map(Event::into_owned));
    }
    let mut collector = Collector::new(limits);
    let collected = events
        .iter()
        .filter_map(|event| collector.push(event))
        .last();
    let Some(Collected::Finished(call)) = collected else {
        panic!("the call has not ended");
    };
    let arguments = bind(tool, &call).expect("it fits");

    let begun = cpu_time();
    let mut stream = JsonStream::new(Arc::clone(tool), limits);
    let mut out = String::new();
    for event in &events {
        stream.push(event, &mut out);
    }
    stream
        .close(&call, &arguments, &mut out)
        .expect("the call is right");
    let used = cpu_time() - begun;
    assert_eq!(out, serde_json::to_string(&arguments).expect("JSON"));
    used
}

/// A text of about this many bytes.
type Text = Box<dyn Fn(usize) -> String>;

#[test]
fn time_is_linear_for_hostile_calls() {
    let mut limits = Limits::default();
    limits.arguments = MIB;
    let value = |key: &'static str, unit: &'static str| {
        move |size: usize| format!("!!!ARG:{key}\n{}\n", unit.repeat(size / unit.len()))
    };
    let arguments = |pointer: fn(usize) -> String| {
        move |size: usize| {
            let argument = |index| format!("!!!ARG:{}\n{index}\n", pointer(index));
            (0..size / 32).map(argument).collect::<Vec<_>>().concat()
        }
    };
    let cases: [(&str, Text); 8] = [
        ("text", Box::new(value("text", "x"))),
        ("escapes", Box::new(value("text", "\u{1}"))),
        ("blanks", Box::new(value("any", " "))),
        (
            "zeros",
            Box::new(|size| format!("!!!ARG:any\n0.{}\n", "0".repeat(size))),
        ),
        (
            "blanks before a text",
            Box::new(|size| format!("!!!ARG:any\n{}x\n", " ".repeat(size))),
        ),
        (
            "items",
            Box::new(arguments(|index| format!("any/{index}/k"))),
        ),
        ("keys", Box::new(arguments(|index| format!("any/k{index}")))),
        (
            "held keys",
            Box::new(arguments(|index| {
                format!("any/{}/k{index}", ["a", "b", "c"][index % 3])
            })),
        ),
    ];
    let tool = Arc::new(tool());
    for (name, text) in &cases {
        for size in [1, 4096] {
            check_linear(name, &tool, text, size, 1 << 13);
        }
    }
    let text = format!(
        "!!!GADGET_START:A\n!!!ARG:text\n{}\n!!!GADGET_END",
        "x".repeat(MIB)
    );
    stream_time(&tool, &text, 1, limits);
}

fn check_linear(name: &str, tool: &Arc<ToolSpec>, text: &Text, size: usize, short: usize) {
    let mut limits = Limits::default();
    limits.arguments = MIB;
    let time = |length: usize| {
        let text = format!("!!!GADGET_START:A\n{}!!!GADGET_END", text(length));
        let times = (0..3).map(|_| stream_time(tool, &text, size, limits));
        times.min().unwrap_or_default()
    };
    // Eight times the text takes eight times the time; quadratic time would be 64 times as long.
    let (short, long) = (time(short), time(8 * short));
    assert!(
        long < short * 24 + 1_000_000,
        "{name} at chunks of {size}: {short} ns, then {long} ns"
    );
}

/// A tool with a large schema: many parameters, recursive references, unions, maps and lists.
fn tool_by_schema() -> ToolSpec {
    let mut properties = serde_json::Map::new();
    for number in 0..1000 {
        properties.insert(format!("k{number}"), json!({"type": "string"}));
    }
    let node = json!({"$ref": "#/$defs/node"});
    properties.extend([
        ("node".to_owned(), node.clone()),
        ("rows".to_owned(), json!({"type": "array", "items": node})),
        (
            "map".to_owned(),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        ),
        (
            "forms".to_owned(),
            json!({"type": "array", "items": {"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "a"}, "v": {"type": "string"}}},
                {"type": "object", "properties": {"kind": {"const": "b"}, "v": {"type": "integer"}}}]}}),
        ),
    ]);
    let schema = json!({
        "$defs": {"node": {"type": "object", "properties": {
            "next": {"anyOf": [node, {"type": "null"}]}, "text": {"type": "string"}, "v": {"type": "integer"}}}},
        "properties": properties,
    });
    ToolSpec::new("A")
        .parameters_from_schema(&schema)
        .expect("a schema")
}

#[test]
fn time_is_linear_by_a_large_schema() {
    let arguments = |pointer: fn(usize) -> String, value: fn(usize) -> String| {
        move |size: usize| {
            let argument = |index| format!("!!!ARG:{}\n{}\n", pointer(index), value(index));
            let mut text = String::new();
            (0..size)
                .map_while(|index| (text.len() < size).then(|| text.push_str(&argument(index))))
                .for_each(drop);
            text
        }
    };
    let number = |index: usize| index.to_string();
    let deep = |index: usize| format!("rows/{index}{}/v", "/next".repeat(60));
    let cases: [(&str, Text); 6] = [
        (
            "text in the depth",
            Box::new(|size| {
                let next = "/next".repeat(60);
                format!("!!!ARG:node{next}/text\n{}\n", "x".repeat(size))
            }),
        ),
        (
            "rows",
            Box::new(arguments(|index| format!("rows/{index}/v"), number)),
        ),
        ("deep rows", Box::new(arguments(deep, number))),
        (
            "map",
            Box::new(arguments(|index| format!("map/{}", index * 7), number)),
        ),
        (
            "forms",
            Box::new(arguments(
                |index| format!("forms/{}/{}", index / 2, ["v", "kind"][index % 2]),
                |index| ["5", "b"][index % 2].to_owned(),
            )),
        ),
        (
            "held",
            Box::new(arguments(
                |index| format!("{}/k{index}", ["map", "node"][index % 2]),
                number,
            )),
        ),
    ];
    let tool = Arc::new(tool_by_schema());
    for (name, text) in &cases {
        check_linear(name, &tool, text, 4096, 1 << 11);
    }
}

/// With a schema too, a piece of a string allocates no memory, however deeply it is nested.
#[test]
fn a_delta_by_a_schema_asks_for_no_memory_of_its_own() {
    let tool = tool_by_schema();
    let pointer = format!("rows/0{}/text", "/next".repeat(60));
    let text = format!("!!!GADGET_START:A\n!!!ARG:{pointer}\nx");
    let events = opened(&text);
    let (delta, before) = events.split_last().expect("events");
    let mut stream = JsonStream::new(&tool, Limits::default());
    let mut out = String::with_capacity(1024);
    for event in before {
        stream.push(event, &mut out);
    }
    let count = allocations(|| {
        for _ in 0..PIECES {
            out.clear();
            stream.push(delta, &mut out);
            assert_eq!(out, "x");
        }
    });
    assert_eq!(count, 0);
}

/// The schema of a tool is compiled for validation once, no matter how many clones of the tool are bound, and how often.
#[cfg(feature = "jsonschema")]
#[test]
fn a_schema_is_compiled_once() {
    let call = |text: &str| {
        let document = Document::parse(text, &Dialect::block()).expect("a dialect that works");
        document.calls().next().expect("a call").clone()
    };
    let call = call("!!!GADGET_START:A\n!!!ARG:k1\nx\n!!!GADGET_END");
    let tool = tool_by_schema();
    let copy = tool.clone();
    let bound = |tool: &ToolSpec| {
        allocations(|| {
            bind(tool, &call).expect("it fits");
        })
    };
    let (first, again, by_copy) = (bound(&tool), bound(&tool), bound(&copy));
    assert!(first > 1000, "{first}: compiling is more than that");
    assert!(again < 200 && by_copy < 200, "{first}, {again}, {by_copy}");
}
