//! Scripts with every kind of failure. The same seed gives the same script.

use std::time::Duration;

use plaincall_syntax::floor_char_boundary;
use serde_json::{Value, json};

use super::script::{Framing, Head, Script, Then, chunk};
use crate::arbitrary_texts::Random;

/// A random script, and its outcome for a client.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The script.
    pub script: Script,
    /// Its outcome.
    pub verdict: Verdict,
}

/// The outcome of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer is complete, even if something fails after it.
    Complete,
    /// The answer is incomplete or unreadable.
    Failed,
    /// There is no answer, but an error with this status.
    Refused(u16),
    /// The outcome depends on timing, or on how tolerant the client is.
    Either,
}

/// The length of a giant line in bytes, which exceeds the limit of the tests.
pub const GIANT: usize = 100_000;

/// The text of a model. The tools are `add`, `write` and `now` of `spec/gateway.md` 8; no call depends on another.
const TEXTS: &[&str] = &[
    "Let me ",
    "see.\n",
    "\u{65E5}\u{672C}\u{8A9E} ",
    "!!!GADGET_START:write\n",
    "!!!ARG:path\n",
    "a\u{1F600}b",
    "\n!!!ARG:text\n",
    "one \"two\"\\\n",
    "\n!!!GADGET_END\n",
    "!!!GADGET_START:now\n!!!GADGET_END\n",
    "<think>",
    "hm</think>",
    "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n",
    "!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END\n",
    "!!!GADGET_",
];

/// The text of a model with native calls: also calls that arrive as text (`spec/gateway.md` 11.1).
const NATIVE_TEXTS: &[&str] = &[
    "Let me ",
    "see.\n",
    "\n",
    "<tool_call>",
    "<tool_call>\n",
    "{\"name\": \"now\", \"arguments\": {}}",
    "{\"name\": \"add\", \"arguments\": {\"a\": 5}}\n",
    "</tool_call>\n",
    "[TOOL_CALLS]add[ARGS]{\"a\": 5}\n",
    "<function=write>\n<parameter=path>a\u{1F600}b</parameter>\n</function>\n",
    "```json\n",
    "```\n",
    "!!!GADGET_START:now\n!!!GADGET_END\n",
    "<think>",
    "hm</think>",
];

/// Native calls, also of an unknown tool, and without arguments.
const NATIVE_CALLS: &[(&str, &str)] = &[
    ("add", "{\"a\": 5}"),
    ("add", "{\"a\": \"five\"}"),
    (
        "write",
        "{\"path\":\"a\u{1F600}b\",\"text\":\"one \\\"two\\\"\\\\\"}",
    ),
    ("now", "{}"),
    ("now", ""),
    ("unknown", "{\"a\": 1.50}"),
];

const REASONS: &[&str] = &["stop", "stop", "length", "tool_calls", "content_filter"];

/// Data that is not a chunk.
const GARBAGE: &[&[u8]] = &[
    b"data: {\n\n",
    b"data: \"choices\"\n\n",
    b"data: {\"choices\": 7}\n\n",
    b"data: {\"choices\": [{\"delta\": {\"content\": \"\xE2\x82\"}}\n\n",
    b"data: <html><body>502 Bad Gateway</body></html>\n\n",
    b"data: {\"error\": {\"message\": \"the engine died\", \"code\": 500}}\n\n",
    b"data: {\"error\": \"out of memory\"}\n\n",
    b"event: error\ndata: {\"error\": {\"message\": \"no\"}, \"status\": 500}\n\n",
];

/// Parts that have no effect.
const HARMLESS: &[&[u8]] = &[
    b": ping\n\n",
    b"\n\n\n",
    b"id: 7\nretry: 10\n\n",
    b"data: {\"id\":\"chatcmpl-9\",\"choices\":null}\n\n",
    b"data: {\"choices\":[]}\n\n",
    b"HTTP/1.1 500 Internal Server Error\nServer: x\n\n",
];

impl Drawn {
    /// Creates an answer to a request for a stream, or for a complete answer.
    pub fn new(random: &mut Random, is_streamed: bool) -> Self {
        Self::draw(random, is_streamed, false)
    }

    /// Creates an answer of a server with native calls.
    pub fn native(random: &mut Random, is_streamed: bool) -> Self {
        Self::draw(random, is_streamed, true)
    }

    fn draw(random: &mut Random, is_streamed: bool, is_native: bool) -> Self {
        let mut drawn = match random.below(20) {
            0..3 => refused(random),
            3 => Self {
                script: Script::nothing(random.pick(&[Then::Break, Then::Reset, Then::Stall])),
                verdict: Verdict::Failed,
            },
            4 => page(random),
            // The wrong kind of answer: a client can read a complete answer in place of a stream, but not the
            // reverse.
            5 if is_streamed => whole(random, is_native),
            5 => Self {
                verdict: Verdict::Failed,
                ..stream(random, is_native)
            },
            _ if is_streamed => stream(random, is_native),
            _ => whole(random, is_native),
        };
        let script = &mut drawn.script;
        let script_len = script.body().len();
        let framings = [
            Framing::Chunked,
            Framing::Chunked,
            Framing::Length,
            Framing::Close,
        ];
        *script = std::mem::replace(script, Script::nothing(Then::End))
            .framing(random.pick(&framings))
            .cut(&sizes(random, script_len));
        if let Some(last) = script.pieces.len().checked_sub(1) {
            for _ in 0..random.below(4) {
                let after = Duration::from_millis(1 + random.below(4) as u64);
                script.pieces[random.below(last + 1)].after = after;
            }
        }
        if let Some(head) = script.head.as_mut().filter(|_| random.one_in(4)) {
            head.after = Duration::from_millis(random.below(6) as u64);
        }
        drawn
    }
}

/// The sizes of the pieces: often one byte each.
fn sizes(random: &mut Random, len: usize) -> Vec<usize> {
    // A giant line comes in larger pieces, because single bytes would take too long.
    let least = 1 + len / 5000;
    match random.below(4) {
        0 => vec![least],
        1 => vec![usize::MAX],
        most => (0..most).map(|_| least * (1 + random.below(40))).collect(),
    }
}

/// An error status, with a body of any kind.
fn refused(random: &mut Random) -> Drawn {
    let status = random.pick(&[400, 401, 404, 408, 429, 429, 429, 500, 502, 503, 529, 302]);
    let body = match random.below(6) {
        0 => Vec::new(),
        1 => b"<html>\xFFno</html>".to_vec(),
        2 => br#"{"detail": [{"loc": ["body"], "msg": "no"}]}"#.to_vec(),
        3 => "no ".repeat(GIANT / 3).into_bytes(),
        4 => chunk(&json!({"content": "no"}), &Value::Null),
        _ => br#"{"error": {"message": "try later", "type": "overloaded", "code": 7}}"#.to_vec(),
    };
    let mut head = Head::new(status).header("content-type", "application/json");
    if random.one_in(2) {
        head = head.header("retry-after", "7");
    }
    let mut script = Script::new(head, vec![body]);
    if random.one_in(3) {
        break_off(&mut script, random);
    }
    let mapped = if status == 302 { 502 } else { status };
    Drawn {
        // A connection that closes immediately may lose the status.
        verdict: match script.then {
            Then::Reset => Verdict::Either,
            _ => Verdict::Refused(mapped),
        },
        script,
    }
}

/// A success status without an answer.
fn page(random: &mut Random) -> Drawn {
    let content_type = random.pick(&["text/html", "application/json", "text/event-stream", ""]);
    let body = random.pick(&[
        "",
        "<html>Welcome</html>",
        "{}",
        "null",
        "[]",
        "\u{FEFF}",
        "data",
    ]);
    let mut head = Head::new(200);
    if !content_type.is_empty() {
        head = head.header("content-type", content_type);
    }
    Drawn {
        script: Script::new(head, vec![body.into()]),
        verdict: Verdict::Failed,
    }
}

/// The events of a native call with this index.
fn native_call(random: &mut Random, index: usize) -> Vec<Vec<u8>> {
    let (name, arguments) = random.pick(NATIVE_CALLS);
    let cut = floor_char_boundary(arguments, random.below(arguments.len() + 1));
    let (begin, rest) = arguments.split_at(cut);
    let first = json!({
        "index": index, "id": format!("call_{index}"), "type": "function",
        "function": {"name": name, "arguments": begin},
    });
    let more = json!({"index": index, "function": {"arguments": rest}});
    let mut pieces = vec![first];
    if !rest.is_empty() {
        pieces.push(more);
    }
    let event = |piece: &Value| chunk(&json!({"tool_calls": [piece]}), &Value::Null);
    pieces.iter().map(event).collect()
}

/// An answer as one JSON text.
fn whole(random: &mut Random, is_native: bool) -> Drawn {
    let from = if is_native { NATIVE_TEXTS } else { TEXTS };
    let texts = (0..random.below(8)).map(|_| random.pick(from));
    let text: String = texts.collect();
    let mut body = json!({
        "id": "chatcmpl-9", "object": "chat.completion", "created": 7, "model": "m",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": random.pick(REASONS),
        }],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    });
    if is_native {
        let calls = (0..random.below(3)).map(|index| {
            let (name, arguments) = random.pick(NATIVE_CALLS);
            json!({
                "id": format!("call_{index}"), "type": "function",
                "function": {"name": name, "arguments": arguments},
            })
        });
        body["choices"][0]["message"]["tool_calls"] = calls.collect();
    }
    let mut verdict = Verdict::Complete;
    if random.one_in(6) {
        let (name, value) = random.pick(&[("choices", "[]"), ("choices", "7"), ("message", "no")]);
        body[name] = serde_json::from_str(value).unwrap_or(Value::Null);
        if name == "choices" {
            verdict = Verdict::Failed;
        }
    }
    let mut script = Script::json(200, &body);
    if random.one_in(4) {
        break_off(&mut script, random);
        verdict = Verdict::Failed;
    }
    Drawn { script, verdict }
}

/// An event stream.
fn stream(random: &mut Random, is_native: bool) -> Drawn {
    let mut events = vec![chunk(
        &json!({"role": "assistant", "content": ""}),
        &Value::Null,
    )];
    let texts = if is_native { NATIVE_TEXTS } else { TEXTS };
    let mut calls = 0;
    for _ in 0..random.below(8) {
        events.push(match random.below(8) {
            0 => random.pick(HARMLESS).to_vec(),
            1 => chunk(&json!({"reasoning_content": "hm"}), &Value::Null),
            2 | 3 if is_native => {
                calls += 1;
                native_call(random, calls - 1).concat()
            }
            _ => chunk(&json!({"content": random.pick(texts)}), &Value::Null),
        });
    }
    // From here on the answer is complete.
    let mut complete_from = events.len();
    let is_silent = random.one_in(12);
    if !is_silent {
        if !random.one_in(10) {
            events.push(chunk(&json!({}), &json!(random.pick(REASONS))));
        }
        if random.one_in(3) {
            let usage = json!({"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4});
            let chunk = json!({"choices": random.pick(&[None, Some([0; 0])]), "usage": usage});
            events.push(format!("data: {chunk}\n\n").into_bytes());
        }
        events.push(b"data: [DONE]\n\n".to_vec());
        // Usage does not end the stream.
        if events[complete_from].starts_with(b"data: {\"choices\"") {
            complete_from += 1;
        }
    }
    let mut verdict = if is_silent {
        Verdict::Failed
    } else {
        Verdict::Complete
    };
    let at = random.below(events.len());
    let failed_at = |verdict: &mut Verdict| {
        if at <= complete_from {
            *verdict = Verdict::Failed;
        }
    };
    let mut then = Then::End;
    match random.below(10) {
        0 => {
            events.insert(at, b"data: [DONE]\n\n".to_vec());
            // Without a choice before it, there is no answer.
            verdict = [Verdict::Failed, Verdict::Complete][usize::from(at > 0)];
        }
        1 | 2 => {
            events.insert(at, random.pick(GARBAGE).to_vec());
            failed_at(&mut verdict);
        }
        3 => {
            let text = json!({"content": "x".repeat(GIANT)});
            events.insert(at, chunk(&text, &Value::Null));
            failed_at(&mut verdict);
        }
        4 => {
            let comment = [b": ".as_slice(), &vec![b'x'; GIANT / 4], b"\n\n"].concat();
            events.insert(at, comment);
        }
        5 => {
            events.truncate(at);
            then = random.pick(&[Then::Break, Then::Reset, Then::Stall, Then::End]);
            failed_at(&mut verdict);
        }
        _ => {}
    }
    let line_end: &[u8] = random.pick(&[b"\n", b"\n", b"\n", b"\r\n", b"\r"]);
    let mut body = Vec::new();
    if random.one_in(10) {
        body.extend_from_slice("\u{FEFF}".as_bytes());
    }
    for byte in events.concat() {
        if byte == b'\n' {
            body.extend_from_slice(line_end);
        } else {
            body.push(byte);
        }
    }
    let head = Head::new(200).header("content-type", "text/event-stream");
    let mut script = Script::new(head, vec![body]);
    script.then = then;
    if random.one_in(5) {
        break_off(&mut script, random);
        // Before or after the end.
        verdict = match verdict {
            Verdict::Complete => Verdict::Either,
            other => other,
        };
    }
    // A native call is returned unchanged, so a client would get its invalid bytes.
    if !is_native && random.one_in(12) {
        spoil(&mut script, random);
        verdict = Verdict::Either;
    }
    if script.then == Then::Reset && verdict == Verdict::Complete {
        verdict = Verdict::Either;
    }
    Drawn { script, verdict }
}

/// Ends a body anywhere, even inside a character or a line.
fn break_off(script: &mut Script, random: &mut Random) {
    if let Some(piece) = script.pieces.last_mut() {
        let len = random.below(piece.bytes.len() + 1);
        // Removes at least one byte, if there is any.
        piece
            .bytes
            .truncate(len.min(piece.bytes.len().saturating_sub(1)));
    }
    script.then = random.pick(&[Then::Break, Then::Reset, Then::Stall, Then::End]);
}

/// Inserts an invalid byte somewhere.
fn spoil(script: &mut Script, random: &mut Random) {
    if let Some(piece) = script
        .pieces
        .last_mut()
        .filter(|piece| !piece.bytes.is_empty())
    {
        let at = random.below(piece.bytes.len());
        piece.bytes[at] = random.pick(&[0xFF, b'\n', b'\r', 0, b'"', b'{', 0xC3]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_are_drawn() {
        let drawn: Vec<Drawn> = (0..2000)
            .map(|seed| Drawn::new(&mut Random::new(seed), seed % 2 == 0))
            .collect();
        let again = Drawn::new(&mut Random::new(7), false);
        assert_eq!(again.script, drawn[7].script);
        let some = |is: &dyn Fn(&Drawn) -> bool| assert!(drawn.iter().any(is));
        for verdict in [Verdict::Complete, Verdict::Failed, Verdict::Either] {
            some(&|drawn| drawn.verdict == verdict);
        }
        some(&|drawn| drawn.verdict == Verdict::Refused(429));
        for then in [Then::End, Then::Break, Then::Reset, Then::Stall] {
            some(&|drawn| {
                drawn.script.head.is_none() && drawn.script.then == then || then == Then::End
            });
            some(&|drawn| drawn.script.pieces.len() > 1 && drawn.script.then == then);
        }
        for framing in [Framing::Chunked, Framing::Length, Framing::Close] {
            some(&|drawn| {
                drawn
                    .script
                    .head
                    .as_ref()
                    .is_some_and(|head| head.framing == framing)
            });
        }
        some(&|drawn| {
            drawn.script.pieces.len() > 50
                && drawn
                    .script
                    .pieces
                    .iter()
                    .all(|piece| piece.bytes.len() == 1)
        });
    }
}
