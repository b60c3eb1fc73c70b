//! The deltas of a call's JSON by a schema (`spec/json-stream.md`): what they are for any schema, any call and any
//! cuts, and when they come for the schemas that are written most.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_syntax::Dialect;
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::json_streams::{Tally, check_bytes, stream};
use plaincall_testkit::untrusted::chunks;
use plaincall_tool::ToolSpec;
use proptest::prelude::*;
use serde_json::{Map, Value};

const STREAMING: &str = include_str!("streaming.txt");

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn the_deltas_are_the_bound_arguments(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let found = check_bytes(&bytes);
        prop_assert!(found.is_ok(), "{}", found.err().unwrap_or_default());
    }
}

/// Enough of the random calls are valid, and enough of them have deltas before their end.
#[test]
fn many_of_the_random_calls_are_right() {
    let mut random = Random::new(1);
    let mut all = Tally::default();
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..300).map(|_| random.byte()).collect();
        let tally = check_bytes(&bytes).unwrap_or_else(|error| panic!("{error}"));
        all.calls += tally.calls;
        all.bound += tally.bound;
        all.early += tally.early;
    }
    assert!(
        all.calls > 1000 && all.bound > 600 && all.early > 300,
        "{all:?}"
    );
}

fn text_of(pairs: &[(&str, &str)]) -> String {
    let lines = pairs
        .iter()
        .map(|(pointer, text)| format!("!!!ARG:{pointer}\n{text}\n"));
    format!("!!!GADGET_START:t\n{}", lines.collect::<String>())
}

/// Returns the output before the call has ended.
fn given_early(tool: &ToolSpec, pairs: &[(&str, &str)]) -> Result<String, String> {
    // The end is a chunk of its own, so what was given before is in the deltas before.
    let text = text_of(pairs);
    let streamed = stream([&*text, "!!!GADGET_END"], &Dialect::block(), tool);
    let [call] = streamed.as_slice() else {
        panic!("one call, not {}", streamed.len());
    };
    let given = call.begun();
    match &call.rest {
        Ok(rest) => {
            let bound = call.bound.as_ref().expect("closed, so it was bound");
            assert_eq!(given.clone() + rest, bound.to_value().to_string(), "{text}");
            Ok(given)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The schemas that are written most: nothing comes later than it must.
#[test]
fn certain_text_is_written_at_once() {
    let mut tool = ToolSpec::new("t");
    let mut cases = 0;
    for line in STREAMING.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(schema) = line.strip_prefix("schema ") {
            let schema = serde_json::from_str(schema).expect("JSON");
            tool = ToolSpec::new("t")
                .parameters_from_schema(&schema)
                .unwrap_or_else(|error| panic!("{schema}: {error}"));
            continue;
        }
        let (is_right, (pairs, expected)) = match line.split_once(" => ") {
            Some(parts) => (true, parts),
            None => (false, line.split_once(" !! ").expect("a sign")),
        };
        let pairs: Map<String, Value> = serde_json::from_str(pairs).expect("JSON");
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(pointer, text)| (pointer.as_str(), text.as_str().expect("a text")))
            .collect();
        match given_early(&tool, &pairs) {
            Ok(given) => assert_eq!((&*given, true), (expected, is_right), "{line}"),
            Err(fault) => {
                let found = fault.strip_prefix("invalid call: ").unwrap_or(&fault);
                assert!(!is_right && found.starts_with(expected), "{line}\n{fault}");
            }
        }
        cases += 1;
    }
    assert!(cases > 60, "{cases}");
}

/// Each character of a string is given with the chunk that brings it: only a line end may be held, since it may be the
/// last, and only as long as it may belong to a marker.
#[test]
fn strings_are_given_character_by_character() {
    let schema = serde_json::json!({
        "$defs": {"row": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}}, "additionalProperties": false}},
        "properties": {
            "s": {"type": "string"},
            "n": {"type": ["string", "null"]},
            "u": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "o": {"type": "object", "properties": {"s": {"type": "string"}}, "additionalProperties": false},
            "l": {"type": "array", "items": {"$ref": "#/$defs/row"}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "x": {"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "a"}, "text": {"type": "string"}}},
                {"type": "object", "properties": {"kind": {"const": "b"}, "text": {"type": "string"}}}]},
        },
    });
    let tool = ToolSpec::new("t")
        .parameters_from_schema(&schema)
        .expect("a schema");
    for (pointer, before) in [
        ("s", r#"{"s":""#),
        ("n", r#"{"n":""#),
        ("u", r#"{"u":""#),
        ("o/s", r#"{"o":{"s":""#),
        ("l/0/a", r#"{"l":[{"a":""#),
        ("l/0/b", r#"{"l":[{"b":""#),
        ("m/2024", r#"{"m":{"2024":""#),
        ("x/text", r#"{"x":{"text":""#),
    ] {
        let value = "not 5,\n\"𝄞\"\tend";
        let text = text_of(&[(pointer, value)]);
        let begun = text.len() - value.len() - 1;
        for (at, character) in value.char_indices() {
            let end = begun + at + character.len_utf8();
            let streamed = stream([&text[..end], "\n!!!GADGET_END"], &Dialect::block(), &tool);
            let given = streamed[0].deltas[..streamed[0].deltas.len() - 1].concat();
            let escaped = Value::from(&value[..at + character.len_utf8()]).to_string();
            let inside = &escaped[1..escaped.len() - 1];
            let inside = inside.strip_suffix("\\n").unwrap_or(inside);
            // "n" may be the beginning of `null`.
            if ["n", "u", "l/0/b"].contains(&pointer) {
                assert!(at == 0 || given == format!("{before}{inside}"), "{given}");
            } else {
                assert_eq!(given, format!("{before}{inside}"), "{pointer}");
            }
        }
        // For any chunks.
        let whole = text + "!!!GADGET_END";
        let streamed = stream(chunks(&whole, &[1]), &Dialect::block(), &tool);
        assert!(streamed[0].rest.is_ok(), "{pointer}");
    }
}
