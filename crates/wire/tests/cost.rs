//! The costs of reading and writing: allocations, and time that grows only with the length.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use alloc_tracker::Allocator;
use plaincall_testkit::allocations::allocations;
use plaincall_wire::openai::{ChatCompletionChunk, ChunkHead, ChunkWriter, ReasoningField};
use plaincall_wire::sse::{Decoder, Limits};

#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator::system();

#[test]
fn a_chunk_that_is_written_asks_for_no_memory() {
    let head = ChunkHead {
        id: "chatcmpl-1",
        model: "m",
        ..ChunkHead::default()
    };
    let mut writer = ChunkWriter::new(&head, 0);
    let mut out = Vec::with_capacity(4096);
    let count = allocations(|| {
        for _ in 0..1000 {
            out.clear();
            writer.role(&mut out);
            writer.content("\"a\"\n", &mut out);
            writer.reasoning(ReasoningField::Reasoning, "b", &mut out);
            writer.call(0, "call_1", "add", &mut out);
            writer.arguments(0, "{\"a\":1}", &mut out);
            writer.finish("tool_calls", &mut out);
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn a_chunk_that_is_read_asks_for_memory_once() {
    let chunk = r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1758812345,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":" Hello"},"logprobs":null,"finish_reason":null}],"usage":null}"#;
    let event = format!("data: {chunk}\n\n");
    let mut decoder = Decoder::new();
    let mut length = 0;
    let count = allocations(|| {
        for _ in 0..1000 {
            for event in decoder.feed(event.as_bytes()) {
                let event = event.expect("within the limits");
                let chunk = ChatCompletionChunk::read(&event.data).expect("a chunk");
                length += chunk.expect("no end").choices()[0].content().len();
            }
        }
    });
    assert_eq!(length, 6000);
    // The list of choices.
    assert_eq!(count, 1000);
}

/// The number of allocations grows with the logarithm of the length, so no piece causes another copy.
#[test]
fn a_line_in_many_pieces_is_collected_in_place() {
    let limits = Limits::new().line(1 << 18).event(1 << 18);
    let mut decoder = Decoder::new().limits(limits);
    let count = allocations(|| {
        for _ in 0..1 << 18 {
            assert_eq!(decoder.feed(b"x").count(), 0);
        }
    });
    assert!(count < 40, "{count}");
    assert!(decoder.feed(b"x").next().expect("an error").is_err());
    // A line that is too long is rejected, however it is split.
    let long = vec![b'x'; 4 << 20];
    let mut decoder = Decoder::new().limits(limits);
    let count = allocations(|| assert!(decoder.feed(&long).next().expect("an error").is_err()));
    assert!(count < 4, "{count}");
}

#[test]
fn many_lines_of_data_are_collected_in_place() {
    let limits = Limits::new().line(100).event(4 << 20);
    let mut decoder = Decoder::new().limits(limits);
    let lines = b"data:x\n".repeat(1000);
    let count = allocations(|| {
        for _ in 0..1000 {
            assert_eq!(decoder.feed(&lines).count(), 0);
        }
    });
    assert!(count < 60, "{count}");
    let event = decoder
        .feed(b"\n")
        .next()
        .expect("an event")
        .expect("within the limits");
    assert_eq!(event.data.len(), 2 * 1_000_000 - 1);
}

/// Many unknown fields, repeated without a chunk that could carry them: a part of them is kept.
#[test]
fn many_unknown_fields_are_carried_in_one_pass() {
    let fields: Vec<_> = (0..20_000)
        .map(|number| format!("\"f{number}\":{number}"))
        .collect();
    let data = format!("{{{}}}", fields.join(","));
    let chunk = ChatCompletionChunk::read(&data)
        .expect("a chunk")
        .expect("no end");
    let mut writer = ChunkWriter::new(&ChunkHead::default(), 0);
    for _ in 0..3 {
        writer.carry(&chunk, 0);
    }
    let mut out = Vec::new();
    writer.finish("stop", &mut out);
    let event = std::str::from_utf8(&out).expect("UTF-8");
    for (field, count) in [("\"f255\":255", 1), ("\"f256\":256", 0)] {
        assert_eq!(event.matches(field).count(), count);
    }
}
