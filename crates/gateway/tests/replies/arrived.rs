//! The data that a random model server sends, read without the code of the gateway.

use std::time::Duration;

use plaincall_gateway::GatewayError;
use plaincall_testkit::model_server::{Script, Then};
use plaincall_wire::openai::ErrorObject;
use plaincall_wire::sse::Decoder;
use serde_json::Value;

use crate::replies::chaos::{ANSWER, FIRST_BYTE, IDLE, LIMITS};

/// The limits for reading the body of an error: bytes and time.
const ERROR_BYTES: usize = 64 << 10;
const ERROR_TIME: Duration = Duration::from_secs(2);
/// The most bytes of a finish reason.
const REASON: usize = 254;

/// The data of a model server before it ends, fails or stalls.
pub(crate) struct Arrived {
    /// An error with this status.
    pub(crate) refused: Option<GatewayError>,
    pub(crate) is_json: bool,
    /// Each piece with its time since the request.
    pub(crate) pieces: Vec<(Duration, Vec<u8>)>,
    pub(crate) broken: Option<GatewayError>,
    pub(crate) time: Duration,
}

fn failure(status: u16) -> GatewayError {
    GatewayError::new(status, ErrorObject::new("test", "test"))
}

pub(crate) fn arrive(script: &Script) -> Arrived {
    let mut arrived = Arrived {
        refused: None,
        is_json: false,
        pieces: Vec::new(),
        broken: None,
        time: Duration::ZERO,
    };
    let Some(head) = &script.head else {
        let is_silent = script.then == Then::Stall;
        arrived.refused = Some(failure(if is_silent { 504 } else { 502 }));
        arrived.time = if is_silent {
            FIRST_BYTE
        } else {
            Duration::ZERO
        };
        return arrived;
    };
    if head.after > FIRST_BYTE {
        arrived.refused = Some(failure(504));
        arrived.time = FIRST_BYTE;
        return arrived;
    }
    arrived.time = head.after;
    let is_error = !(200..300).contains(&head.status);
    if is_error {
        let client_status = if head.status < 400 { 502 } else { head.status };
        arrived.refused = Some(failure(client_status));
    }
    let is_json =
        |(name, value): &(&str, String)| *name == "content-type" && value == "application/json";
    arrived.is_json = head.headers.iter().any(is_json);
    if is_error {
        // The body of an error may take only a short time.
        let mut length = 0;
        let mut waits = Vec::new();
        for piece in &script.pieces {
            waits.push(piece.after);
            length += piece.bytes.len();
            if length >= ERROR_BYTES {
                break;
            }
        }
        if length < ERROR_BYTES && script.then == Then::Stall {
            waits.push(ERROR_TIME);
        }
        arrived.time += waits.into_iter().sum::<Duration>().min(ERROR_TIME);
        return arrived;
    }
    for piece in &script.pieces {
        if piece.after > IDLE {
            arrived.time += IDLE;
            arrived.broken = Some(failure(504));
            return arrived;
        }
        arrived.time += piece.after;
        arrived.pieces.push((arrived.time, piece.bytes.clone()));
    }
    match script.then {
        Then::End => {}
        Then::Break | Then::Reset => arrived.broken = Some(failure(502)),
        Then::Stall => {
            arrived.time += IDLE;
            arrived.broken = Some(failure(504));
        }
    }
    arrived
}

impl Arrived {
    pub(crate) fn body(&self) -> Vec<u8> {
        let pieces = self.pieces.iter().map(|(_, bytes)| bytes.as_slice());
        pieces.collect::<Vec<_>>().concat()
    }

    /// Returns the whole body, if it is complete and not too long.
    pub(crate) fn whole(&self) -> Result<Vec<u8>, GatewayError> {
        let body = self.body();
        if body.len() > ANSWER {
            return Err(failure(502));
        }
        match &self.broken {
            Some(failure) => Err(failure.clone()),
            None => Ok(body),
        }
    }
}

/// The texts, the native calls and the finish reason of a model server's stream.
#[derive(Default)]
pub(crate) struct Answer {
    /// Each ends before a call or reasoning.
    pub(crate) texts: Vec<String>,
    /// Name and arguments. Their order is the index.
    pub(crate) calls: Vec<(String, String)>,
    pub(crate) reason: Option<String>,
}

/// Reads a model server's stream without the gateway's code.
pub(crate) fn read_server(body: &[u8]) -> Answer {
    let mut decoder = Decoder::new().limits(LIMITS);
    let events: Vec<_> = decoder.feed(body).map_while(Result::ok).collect();
    let mut events: Vec<String> = events.into_iter().map(|event| event.data.into()).collect();
    events.extend(
        decoder
            .finish()
            .ok()
            .flatten()
            .map(|event| event.data.into()),
    );
    let mut answer = Answer::default();
    for data in events {
        // Texts may contain it unescaped, which is tolerated.
        let data = data.replace('\0', "\\u0000");
        let Ok(chunk) = serde_json::from_str::<Value>(&data) else {
            break;
        };
        let choices = &chunk["choices"];
        if !chunk.is_object() || !(choices.is_null() || choices.is_array()) {
            break;
        }
        let choice = &choices[0];
        let delta = &choice["delta"];
        let text = delta["content"].as_str().unwrap_or_default();
        match answer.texts.last_mut() {
            Some(last) => last.push_str(text),
            None => answer.texts.push(text.to_owned()),
        }
        if delta["reasoning_content"].is_string() || delta["tool_calls"].is_array() {
            answer.texts.push(String::new());
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let text = |name: &str| piece["function"][name].as_str().unwrap_or_default();
            if !text("name").is_empty() {
                answer.calls.push((text("name").to_owned(), String::new()));
            }
            if let Some((_, arguments)) = answer.calls.last_mut() {
                *arguments += text("arguments");
            }
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            answer.reason = Some(reason.to_owned());
            break;
        }
        if chunk.get("error").is_some() {
            break;
        }
    }
    answer
}

/// Returns an answer in which each finish reason that the API does not define is `length` (`spec/gateway.md` 7): a server may
/// break one.
pub(crate) fn with_known_reasons(body: &[u8]) -> Vec<u8> {
    const FIELD: &[u8] = b"\"finish_reason\":";
    let known = ["stop", "length", "tool_calls", "content_filter"];
    let mut out = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.windows(FIELD.len()).position(|field| field == FIELD) {
        let (before, value) = rest.split_at(at + FIELD.len());
        out.extend_from_slice(before);
        rest = value;
        let Some(value) = value.strip_prefix(b"\"") else {
            continue;
        };
        // A reason ends nearby.
        let end = value.iter().take(REASON).position(|byte| *byte == b'"');
        if let Some((reason, behind)) = end.map(|end| value.split_at(end)) {
            let is_known = known.iter().any(|known| known.as_bytes() == reason);
            out.push(b'"');
            out.extend_from_slice(if is_known { reason } else { b"length" });
            rest = behind;
        }
    }
    out.extend_from_slice(rest);
    out
}
