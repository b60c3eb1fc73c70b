//! Event streams: the result does not depend on how they are split.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use crate::payloads;

use std::borrow::Cow;

use payloads::folder;
use plaincall_wire::sse::{
    Decoder, Event, Limits, StreamError, encode_comment, encode_data, encode_event,
};
use proptest::prelude::*;

/// Formats an event as `name|data`.
fn summary(event: &Event<'_>) -> String {
    line(event.name.as_deref(), &event.data)
}

fn line(name: Option<&str>, data: &str) -> String {
    format!("{}|{data}", name.unwrap_or("-"))
}

/// Returns the events of these pieces, then those after the last piece, then the error if there is one.
fn decode<'c>(limits: Limits, chunks: impl IntoIterator<Item = &'c [u8]>) -> Vec<String> {
    let mut decoder = Decoder::new().limits(limits);
    let mut found = Vec::new();
    for chunk in chunks {
        for event in decoder.feed(chunk) {
            found.push(match event {
                Ok(event) => summary(&event),
                Err(error) => format!("error: {error}"),
            });
        }
    }
    match decoder.finish() {
        Ok(Some(event)) => found.push(format!("unfinished: {}", summary(&event))),
        Ok(None) => {}
        Err(error) => found.push(format!("error: {error}")),
    }
    found
}

/// A reader of complete streams that follows the standard step by step.
fn oracle(stream: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stream).into_owned();
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    let unfinished = lines.pop().expect("one piece at least");
    let mut found = Vec::new();
    let (mut name, mut data) = (String::new(), String::new());
    let mut error: Option<String> = None;
    let mut take = |text: &str, found: &mut Vec<String>, mark: &str| {
        if text.is_empty() {
            if let Some(error) = error.take() {
                found.push(format!("{mark}{}", line(Some("error"), &error)));
            } else if let Some(data) = data.strip_suffix('\n') {
                found.push(format!(
                    "{mark}{}",
                    line(Some(&*name).filter(|name| !name.is_empty()), data)
                ));
            }
            name.clear();
            data.clear();
            return;
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => data.extend([value, "\n"]),
            "" | "id" | "retry" => {}
            _ if field == "error" || text.starts_with('{') || error.is_some() => {
                let line = if field == "error" { value } else { text };
                error = Some(error.take().map_or(String::new(), |lines| lines + "\n") + line);
            }
            _ => {}
        }
    };
    for line in lines {
        take(line, &mut found, "");
    }
    if !unfinished.is_empty() {
        take(unfinished, &mut found, "");
    }
    take("", &mut found, "unfinished: ");
    found
}

#[track_caller]
fn check(stream: &[u8], expected: &[&str]) {
    let found = decode(Limits::default(), [stream]);
    assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(stream));
    assert_eq!(oracle(stream), expected);
    for split in 0..=stream.len() {
        let (first, second) = stream.split_at(split);
        assert_eq!(
            decode(Limits::default(), [first, second]),
            expected,
            "cut at {split}"
        );
    }
    assert_eq!(decode(Limits::default(), stream.chunks(1)), expected);
}

#[test]
fn fields_and_lines() {
    check(b"data: a\n\n", &["-|a"]);
    check(b"data:a\r\rdata:  b\r\n\r\n", &["-|a", "-| b"]);
    check(b"data: a\ndata\ndata:b\n\n", &["-|a\n\nb"]);
    check(b"data\n\ndata\ndata\n\ndata:\n\n", &["-|", "-|\n", "-|"]);
    check(b": comment\n\n:\n\ndata: a\n: b\n\n", &["-|a"]);
    check(b"event: e\ndata: a\n\ndata: b\n\n", &["e|a", "-|b"]);
    check(b"event: lost\n\ndata: b\nevent: e\nevent\n\n", &["-|b"]);
    check(b"error: {}\n\ndata: b\n\n", &["error|{}", "-|b"]);
    check(
        b"data: a\nerror: b\nevent: e\nerror: c\ndata: d\n\n",
        &["error|b\nc"],
    );
    check(
        b"data: a\n\n{\"error\":\n : 1}\n: b\nid: c\ndata: [DONE]\n\ndata: d\n\n",
        &["-|a", "error|{\"error\":\n : 1}", "-|d"],
    );
    check(b"{\"error\":{}}", &["unfinished: error|{\"error\":{}}"]);
    check(b"error:b", &["unfinished: error|b"]);
    check(b"Data: a\n data: b\ndata : c\nfoo: d\n\n", &[]);
    check(b"id: 1\nretry: 10\n\nid\ndata: a\nretry: x\n\n", &["-|a"]);
    check(b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n", &["-|a"]);
    check(b"\xEF\xBB\xBF\ndata: a\n\n", &["-|a"]);
    check(b"\xEF\xBB\xBFdata: a", &["unfinished: -|a"]);
    check(b"\xEF\xBB\xBF", &[]);
    check(
        b"data: \xF0\x9F\x9A\x80\n\ndata: \xFFx\xF0\x9F\n\n",
        &["-|\u{1F680}", "-|\u{FFFD}x\u{FFFD}"],
    );
    // Half of a surrogate pair, written as if it were a character, is three invalid parts.
    check(b"data: \xED\xB2\xB2\n\n", &["-|\u{FFFD}\u{FFFD}\u{FFFD}"]);
    check(
        "data: {\"a\": \"b: c\"}\u{2028}\u{85}\n\n".as_bytes(),
        &["-|{\"a\": \"b: c\"}\u{2028}\u{85}"],
    );
    check(
        b"data: a\n\ndata: [DONE]\n",
        &["-|a", "unfinished: -|[DONE]"],
    );
    check(b"data: [DONE]", &["unfinished: -|[DONE]"]);
    check(b"", &[]);
    check(b"\n\r\n\r\r\n\n", &[]);
}

#[test]
fn streams_of_servers_at_every_split() {
    let all = folder("stream")
        .into_iter()
        .chain(folder("messages-stream"));
    for (name, stream) in all {
        let expected = decode(Limits::default(), [stream.as_bytes()]);
        assert_eq!(oracle(stream.as_bytes()), expected, "{name}");
        for line_end in ["\n", "\r\n", "\r"] {
            let stream = stream.replace('\n', line_end);
            let bytes = stream.as_bytes();
            assert_eq!(
                decode(Limits::default(), bytes.chunks(1)),
                expected,
                "{name}"
            );
            for split in 0..=bytes.len() {
                let (first, second) = bytes.split_at(split);
                let found = decode(Limits::default(), [first, second]);
                assert_eq!(found, expected, "{name} with {line_end:?}, cut at {split}");
            }
        }
    }
}

/// Pieces of these sizes, repeatedly.
fn chunks<'b>(mut bytes: &'b [u8], sizes: &[usize]) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// Streams of meaningful parts and arbitrary data.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let words: &[&[u8]] = &[
        b"data",
        b"data: ",
        b"data:",
        b"event: ",
        b"error: ",
        b"id: ",
        b"retry: ",
        b":",
        b" ",
        b"\n",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\xEF\xBB\xBF",
        b"\xF0\x9F\x9A\x80",
        b"\xF0\x9F",
        b"\xFF",
        b"\0",
        b"7",
        b"{\"a\":1}",
        b"[DONE]",
    ];
    let word = prop_oneof![
        9 => proptest::sample::select(words).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn events_do_not_depend_on_how_a_stream_is_split(
        stream in streams(),
        sizes in proptest::collection::vec(1_usize..12, 1..6),
        line in 0_usize..24,
        event in 0_usize..24,
    ) {
        let pieces = chunks(&stream, &sizes);
        prop_assert_eq!(decode(Limits::default(), pieces.iter().copied()), oracle(&stream));
        let limits = Limits::new().line(line).event(event);
        prop_assert_eq!(decode(limits, pieces), decode(limits, [stream.as_slice()]));
    }

    #[test]
    fn events_that_are_dropped_change_no_other(
        stream in streams(),
        sizes in proptest::collection::vec(1_usize..30, 1..6),
    ) {
        let (mut all, mut some) = (Decoder::new(), Decoder::new());
        for piece in chunks(&stream, &sizes) {
            let first = all.feed(piece).next().map(|event| event.expect("within the limits"));
            let one = some.feed(piece).next().map(|event| event.expect("within the limits"));
            prop_assert_eq!(first, one);
        }
        prop_assert_eq!(all.finish(), some.finish());
    }

    #[test]
    fn encoding_round_trips(
        events in proptest::collection::vec((proptest::option::of("[a-z_:\n ]{1,8}"), "(\\PC|[\r\n :])*"), 0..5),
        sizes in proptest::collection::vec(1_usize..12, 1..6),
    ) {
        let (mut out, mut expected) = (Vec::new(), Vec::new());
        for (name, data) in &events {
            encode_comment(data, &mut out);
            match name {
                Some(name) => encode_event(name, data, &mut out),
                None => encode_data(data, &mut out),
            }
            let name = name.as_ref().map(|name| name.replace('\n', " "));
            let data = data.replace("\r\n", "\n").replace('\r', "\n");
            expected.push(line(name.as_deref(), &data));
        }
        prop_assert_eq!(decode(Limits::default(), chunks(&out, &sizes)), expected);
    }
}

#[test]
fn an_event_that_lies_in_one_piece_is_not_copied() {
    let stream = b"event: e\ndata: {}\n\n";
    let mut decoder = Decoder::new();
    let event = decoder
        .feed(stream)
        .next()
        .expect("an event")
        .expect("within the limits");
    assert!(matches!(event.name, Some(Cow::Borrowed("e"))));
    assert!(matches!(event.data, Cow::Borrowed("{}")));
}

#[test]
fn limits() {
    let limits = Limits::new().line(10).event(8);
    let check = |stream: &[u8], expected: &[&str]| {
        assert_eq!(decode(limits, [stream]), expected);
        assert_eq!(decode(limits, stream.chunks(1)), expected);
    };
    let long_line = "error: a line of the event stream has more than 10 bytes";
    let long_event = "error: an event of the event stream has more than 8 bytes";
    check(b"data: 1234\n\n", &["-|1234"]);
    check(
        b"data: a\n\ndata: 12345\n\ndata: b\n\n",
        &["-|a", long_line],
    );
    check(b"data: 12345", &[long_line]);
    check(b":234567890\n:2345678901\n", &[long_line]);
    check(b"data:1234\ndata:567\n\n", &["-|1234\n567"]);
    check(b"data:1234\ndata:5678\n\n", &[long_event]);
    check(b"event:1234\ndata:1234\n\n", &["1234|1234"]);
    check(b"event:1234\ndata:12345\n\n", &[long_event]);
    check(b"data:1234\ndata:5678", &[long_event]);
    let error = Decoder::new().limits(limits).feed(b"data: 12345").next();
    assert_eq!(error, Some(Err(StreamError::LongLine(10))));
}

#[test]
fn nothing_comes_after_an_error() {
    let mut decoder = Decoder::new().limits(Limits::new().line(8).event(8));
    assert_eq!(decoder.feed(b"data: 123\n\ndata: a\n\n").count(), 1);
    assert_eq!(decoder.feed(b"\n\ndata: a\n\n").count(), 0);
    assert_eq!(decoder.finish(), Ok(None));
}
