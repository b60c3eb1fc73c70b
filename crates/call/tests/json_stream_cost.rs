//! What a stream of JSON costs: `spec/json-stream.md` 6.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::sync::Arc;

use alloc_tracker::{Allocator, Session};
use plaincall_call::{
    Collected, Collector, JsonStream, Limits, Parameter, ParameterKind, ToolSpec, bind,
};
use plaincall_syntax::{Dialect, Event, EventKind, Parser, parse};
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator::system();

const MIB: usize = 1 << 20;

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

/// The events of a call up to the first piece of its one value, which is `piece`.
fn opened(text: &str) -> Vec<Event<'_>> {
    let mut events = parse(text, &Dialect::block()).expect("a dialect that works");
    let is_delta = |event: &Event<'_>| matches!(event.kind, EventKind::ValueDelta(_));
    let delta = events.iter().position(is_delta).expect("a value");
    events.truncate(delta + 1);
    events
}

fn allocations(run: impl FnOnce()) -> u64 {
    let session = Session::new().no_stdout().no_file();
    let operation = session.operation("run");
    {
        let _span = operation.measure_thread().iterations(1);
        run();
    }
    let report = session.to_report();
    let counts = report
        .operations()
        .map(|(_, operation)| operation.total_allocations_count());
    counts.sum()
}

/// A piece comes a million times; the stream asks at most `most` times for memory.
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
        for _ in 0..MIB {
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
    check_allocations("text", "x", MIB, 0);
    check_allocations("text", "\u{1}", 6 * MIB, 0);
    check_allocations("text", "\"𝄞\\", 8 * MIB, 0);
    // With the first piece the text is known to be a string; its quote comes with it.
    check_allocations("any", "x", MIB + 1, 8);
    // In doubt to the end: the text that is held grows by doubling.
    check_allocations("any", " ", 0, 40);
    check_allocations("any", "0", MIB + 1, 8);
    check_allocations("number", "1", 0, 40);
}

/// What this thread has computed so far, in nanoseconds; other work on the machine does not count.
fn cpu_time() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The time that the stream alone takes for a text in chunks of `size`.
fn stream_time(text: &str, size: usize, limits: Limits) -> i64 {
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
    let tool = Arc::new(tool());
    let arguments = bind(&tool, &call).expect("it fits");

    let begun = cpu_time();
    let mut stream = JsonStream::new(Arc::clone(&tool), limits);
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

/// A text of about so many bytes.
type Text = Box<dyn Fn(usize) -> String>;

#[test]
fn time_is_linear_for_hostile_calls() {
    let limits = Limits {
        arguments: MIB,
        ..Limits::default()
    };
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
    for (name, text) in &cases {
        for size in [1, 4096] {
            let time = |length: usize| {
                let text = format!("!!!GADGET_START:A\n{}!!!GADGET_END", text(length));
                let times = (0..3).map(|_| stream_time(&text, size, limits));
                times.min().unwrap_or_default()
            };
            // Eight times the text takes eight times the time, or 64 times if it were quadratic.
            let (short, long) = (time(1 << 13), time(1 << 16));
            assert!(
                long < short * 24 + 1_000_000,
                "{name} at chunks of {size}: {short} ns, then {long} ns"
            );
        }
    }
    let text = format!(
        "!!!GADGET_START:A\n!!!ARG:text\n{}\n!!!GADGET_END",
        "x".repeat(MIB)
    );
    stream_time(&text, 1, limits);
}
