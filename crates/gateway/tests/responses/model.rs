//! A scripted model server behind the adapter.

use plaincall_gateway::translation::{Adapter, Ask, AskEnd, Asked, ClientApi, Flow, Host};
use plaincall_gateway::{GatewayError, ModelSettings, Secret};
use serde_json::{Value, json};

use crate::replies::model::Stream;
use crate::responses::strict_reader::read_stream;

/// The tools of the chat tests, in the form of this API.
pub(crate) fn tools() -> Value {
    let tools = crate::replies::model::tools();
    let flat = tools.as_array().unwrap().iter().map(|tool| {
        let mut flat = tool["function"].clone();
        flat["type"] = json!("function");
        flat
    });
    flat.collect()
}

/// A request with these tools and other fields.
pub(crate) fn request(fields: &Value) -> Value {
    let mut request = json!({"model": "asked", "input": "Do it.", "tools": tools()});
    for (name, value) in fields.as_object().into_iter().flatten() {
        request[name] = value.clone();
    }
    request
}

pub(crate) fn ask(body: &Value, settings: &ModelSettings) -> Ask {
    let adapter = Adapter::new(Secret::new("secret"), settings.clone());
    let host = Host::new(Secret::new("seed"), 5);
    adapter.ask(
        ClientApi::Responses.path(),
        body.to_string().as_bytes(),
        host,
    )
}

pub(crate) fn asked(body: &Value, settings: &ModelSettings) -> Box<Asked> {
    match ask(body, settings) {
        Ask::Asked(asked) => asked,
        other => panic!("{other:?}"),
    }
}

/// The request to the model server.
pub(crate) fn sent(body: &Value) -> Value {
    let asked = asked(body, &ModelSettings::default());
    serde_json::from_slice(asked.body()).unwrap()
}

/// The messages to the model, as role and content.
pub(crate) fn messages(body: &Value) -> Vec<(String, String)> {
    let sent = sent(body);
    let messages = sent["messages"].as_array().unwrap().iter();
    messages
        .map(|message| {
            let text = |field: &str| message[field].as_str().unwrap_or_default().to_owned();
            (text("role"), text("content"))
        })
        .collect()
}

pub(crate) fn refused(body: &Value) -> GatewayError {
    match ask(body, &ModelSettings::default()) {
        Ask::Refused(error) => error,
        other => panic!("{other:?}"),
    }
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: AskEnd,
}

/// Feeds the answers of a server, one for each round, in pieces of this size.
pub(crate) fn play(
    body: &Value,
    settings: &ModelSettings,
    answers: &[Vec<u8>],
    size: usize,
    broken: Option<&GatewayError>,
) -> Outcome {
    let mut asked = asked(body, settings);
    let mut bytes = Vec::new();
    let mut rounds = 0;
    loop {
        for piece in answers[rounds].chunks(size) {
            let flow = asked.feed(piece);
            bytes.append(&mut asked.take());
            if flow == Flow::Stop {
                break;
            }
        }
        rounds += 1;
        let end = asked.end(broken.cloned());
        bytes.append(&mut asked.take());
        if end != AskEnd::Again {
            return Outcome { bytes, end };
        }
    }
}

/// The server's stream of one text.
pub(crate) fn stream(text: &str, reason: &str) -> Vec<u8> {
    let edges = text.char_indices();
    let letters = edges.map(|(at, letter)| &text[at..at + letter.len_utf8()]);
    Stream::new()
        .texts(letters)
        .finish(reason)
        .usage(10)
        .done()
        .0
}

/// The server's complete answer of one text.
pub(crate) fn completion(text: &str, reason: &str) -> Vec<u8> {
    let completion = json!({
        "id": "chatcmpl-9", "object": "chat.completion", "created": 7, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    });
    completion.to_string().into_bytes()
}

/// The response to these texts, one for each round, streamed and read by the strict reader.
pub(crate) fn streamed(
    fields: &Value,
    settings: &ModelSettings,
    texts: &[&str],
    reason: &str,
) -> Value {
    let mut body = request(fields);
    body["stream"] = json!(true);
    let answers: Vec<_> = texts.iter().map(|text| stream(text, reason)).collect();
    let outcome = play(&body, settings, &answers, usize::MAX, None);
    read_stream(&outcome.bytes)
}

/// The complete response to these texts.
pub(crate) fn complete(
    fields: &Value,
    settings: &ModelSettings,
    texts: &[&str],
    reason: &str,
) -> Result<Value, GatewayError> {
    let body = request(fields);
    let answers: Vec<_> = texts.iter().map(|text| completion(text, reason)).collect();
    let outcome = play(&body, settings, &answers, usize::MAX, None);
    match outcome.end {
        AskEnd::Done => Ok(serde_json::from_slice(&outcome.bytes).unwrap()),
        AskEnd::Refused(error) => Err(error),
        other => panic!("{other:?}"),
    }
}
