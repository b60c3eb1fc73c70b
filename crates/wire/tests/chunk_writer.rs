//! Chunks that are written, and read again.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use crate::payloads;

use payloads::data_of;
use plaincall_wire::openai::{
    ChatCompletionChunk, ChunkHead, ChunkWriter, ErrorObject, ReasoningField, Usage, done_event,
    error_event, read_error,
};
use plaincall_wire::write;
use proptest::prelude::*;

const HEAD: ChunkHead<'_> = ChunkHead {
    id: "chatcmpl-\"1\"",
    created: 1_700_000_000,
    model: "m",
    service_tier: None,
    system_fingerprint: Some("fp"),
    includes_usage: false,
};

/// Checks the output of the writer, without the common parts of all chunks.
#[track_caller]
fn check(
    head: &ChunkHead<'_>,
    write_chunks: impl FnOnce(&mut ChunkWriter, &mut Vec<u8>),
    expected: &[&str],
) {
    let mut writer = ChunkWriter::new(head, 0);
    let mut out = Vec::new();
    write_chunks(&mut writer, &mut out);
    let stream = String::from_utf8(out).expect("UTF-8");
    let common = r#"{"id":"chatcmpl-\"1\"","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":"fp","choices":["#;
    let data = data_of(&stream);
    let rest: Vec<_> = data
        .iter()
        .map(|data| data.strip_prefix(common).expect("the common part"))
        .collect();
    assert_eq!(rest, expected);
    // The serializer of this crate writes the same.
    for data in &data {
        let chunk = ChatCompletionChunk::read(data)
            .expect("a chunk")
            .expect("no end");
        assert_eq!(&write(&chunk), data);
    }
}

#[test]
fn every_kind_of_chunk() {
    check(
        &HEAD,
        |writer, out| {
            writer.role(out);
            writer.reasoning(ReasoningField::ReasoningContent, "Hm\u{1}", out);
            writer.reasoning(ReasoningField::Reasoning, "Hm", out);
            writer.content("\"\n\u{2028}🚀\\", out);
            writer.refusal("No", out);
            writer.call(0, "call_1", "add", out);
            writer.arguments(0, "{\"a\": \"\\n\"}", out);
            writer.call(1, "call_2", "now", out);
            writer.finish("tool_calls", out);
        },
        &[
            r#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"index":0,"delta":{"reasoning_content":"Hm\u0001"},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"index":0,"delta":{"reasoning":"Hm"},"logprobs":null,"finish_reason":null}]}"#,
            "{\"index\":0,\"delta\":{\"content\":\"\\\"\\n\u{2028}🚀\\\\\"},\"logprobs\":null,\"finish_reason\":null}]}",
            r#"{"index":0,"delta":{"refusal":"No"},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add","arguments":""}}]},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\": \"\\n\"}"}}]},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"now","arguments":""}}]},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}]}"#,
        ],
    );
}

#[test]
fn usage() {
    let head = ChunkHead {
        includes_usage: true,
        ..HEAD
    };
    let usage = Usage {
        prompt_tokens: Some(1),
        completion_tokens: Some(2),
        total_tokens: Some(3),
        ..Usage::default()
    };
    check(
        &head,
        |writer, out| {
            writer.content("a", out);
            writer.usage(&usage, out);
        },
        &[
            r#"{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
            r#"],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#,
        ],
    );
}

#[test]
fn an_unnamed_call_waits_for_the_next_chunk() {
    let chunk = |data: &'static str| {
        ChatCompletionChunk::read(data)
            .expect("a chunk")
            .expect("no end")
    };
    check(
        &HEAD,
        |writer, out| {
            writer.carry(&chunk(r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0}],"model":"other"}"#), 0);
            writer.role(out);
            writer.carry(&chunk("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"audio\":{\"id\":1}},\"logprobs\":{\"content\":[]},\"content_filter_results\":{}},{\"index\":1,\"x\":0}],\"timings\":{\n\"n\": 1.50}}"), 0);
            writer.carry(&chunk(r#"{"choices":[{"y":0}],"p":"abc","timings":2}"#), 0);
            writer.content("a", out);
            writer.content("b", out);
            writer.carry(
                &chunk("{\"choices\":[{\"delta\":{\"audio\":[\r\n]},\"stop_reason\":7}]}"),
                0,
            );
            writer.finish("stop", out);
        },
        &[
            r#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_filter_results":[{"prompt_index":0}]}"#,
            r#"{"index":0,"delta":{"content":"a","audio":{"id":1}},"content_filter_results":{},"logprobs":{"content":[]},"y":0,"finish_reason":null}],"p":"abc","timings":2}"#,
            r#"{"index":0,"delta":{"content":"b"},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"index":0,"delta":{"audio":[  ]},"logprobs":null,"stop_reason":7,"finish_reason":"stop"}]}"#,
        ],
    );
}

#[test]
fn little_is_kept_for_the_next_chunk() {
    let carry = |writer: &mut ChunkWriter, name: &str, value: &str| {
        let fields = format!(r#""{name}":"{value}""#);
        let data = format!(r#"{{"choices":[{{"delta":{{{fields}}},{fields}}}],{fields}}}"#);
        let chunk = ChatCompletionChunk::read(&data).expect("a chunk");
        writer.carry(&chunk.expect("no end"), 0);
    };
    let written = |writer: &mut ChunkWriter| {
        let mut out = Vec::new();
        writer.content("a", &mut out);
        let text = String::from_utf8(out).expect("UTF-8");
        (text.matches("\":\"b").count(), text.len())
    };
    let mut writer = ChunkWriter::new(&HEAD, 0);
    // New names each time.
    for number in 0..1000 {
        carry(&mut writer, &format!("n{number}"), "b");
    }
    // A repeated name gets its later value, unless that is too long.
    for (length, count, most) in [
        (1, 256, 20_000),
        (900_000, 256, 2_800_000),
        (1 << 20, 255, 20_000),
    ] {
        let mut writer = writer.clone();
        carry(&mut writer, "n0", &"b".repeat(length));
        let (fields, bytes) = written(&mut writer);
        assert_eq!(fields, 3 * count);
        assert!(bytes < most && bytes + 200_000 > most, "{bytes}");
        // Fields that were written make room for others.
        carry(&mut writer, "n0", "b");
        assert_eq!(written(&mut writer).0, 3);
    }
}

#[test]
fn the_second_answer() {
    let mut writer = ChunkWriter::new(&HEAD, 1);
    let mut out = Vec::new();
    writer.role(&mut out);
    let data = data_of(std::str::from_utf8(&out).expect("UTF-8"));
    let chunk = ChatCompletionChunk::read(&data[0])
        .expect("a chunk")
        .expect("no end");
    assert_eq!(chunk.choices()[0].index, Some(1));
}

#[test]
fn ends() {
    let mut out = Vec::new();
    error_event(
        &ErrorObject::new("server_error", "The model has\ngone.").code("gone"),
        &mut out,
    );
    done_event(&mut out);
    let data = data_of(std::str::from_utf8(&out).expect("UTF-8"));
    assert_eq!(data[1], "[DONE]");
    assert_eq!(
        data[0],
        r#"{"error":{"message":"The model has\ngone.","type":"server_error","param":null,"code":"gone"}}"#
    );
    let error = read_error(data[0].as_bytes());
    assert_eq!(error.message.as_deref(), Some("The model has\ngone."));
}

proptest! {
    #[test]
    fn texts_come_back(content in "\\PC*|(?s).*", thought in "(?s).*", id in "\\PC*", name in "(?s).*") {
        let head = ChunkHead { id: &id, model: &name, ..HEAD };
        let mut writer = ChunkWriter::new(&head, 0);
        let mut out = Vec::new();
        writer.content(&content, &mut out);
        writer.reasoning(ReasoningField::Reasoning, &thought, &mut out);
        writer.call(7, &id, &name, &mut out);
        writer.arguments(7, &content, &mut out);
        let stream = String::from_utf8(out).expect("UTF-8");
        let data = data_of(&stream);
        let chunks: Vec<_> = data
            .iter()
            .map(|data| ChatCompletionChunk::read(data).expect("a chunk").expect("no end"))
            .collect();
        let choice = |number: usize| &chunks[number].choices()[0];
        prop_assert_eq!(choice(0).content(), content.as_str());
        prop_assert_eq!(choice(1).thought(), thought);
        prop_assert_eq!(choice(2).calls()[0].name(), &name);
        prop_assert_eq!(choice(2).calls()[0].id.as_deref(), Some(id.as_str()));
        prop_assert_eq!(choice(3).calls()[0].arguments(), content);
        prop_assert_eq!(chunks[0].id.as_deref(), Some(id.as_str()));
        prop_assert_eq!(chunks[0].model.as_deref(), Some(name.as_str()));
    }
}
