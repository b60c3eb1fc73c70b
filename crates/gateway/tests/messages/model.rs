//! A scripted model server behind the adapter.

use plaincall_gateway::translation::{Adapter, Ask, AskEnd, Asked, ClientApi, Flow, Host};
use plaincall_gateway::{GatewayError, ModelSettings, Secret};
use serde_json::{Value, json};

use crate::messages::strict::{Message, read_complete, read_stream};
use crate::replies::model::{Stream, tools as chat_tools};

/// The tools of the tests of replies, as this API defines tools.
pub(crate) fn tools() -> Value {
    let tools = chat_tools();
    let tools = tools.as_array().unwrap().iter().map(|tool| {
        let function = &tool["function"];
        json!({"name": function["name"], "input_schema": function["parameters"]})
    });
    tools.collect()
}

/// A request with these tools and other fields.
pub(crate) fn request(fields: &Value) -> Value {
    let mut request = json!({
        "model": "m", "max_tokens": 100, "stream": true, "tools": tools(),
        "messages": [{"role": "user", "content": "Do it."}],
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        request[name] = value.clone();
    }
    request
}

pub(crate) fn ask(
    path: &str,
    body: &Value,
    settings: &ModelSettings,
) -> Result<Box<Asked>, GatewayError> {
    let adapter = Adapter::new(Secret::new("secret"), settings.clone());
    let host = Host::new(Secret::new("seed"), 1);
    match adapter.ask(path, body.to_string().as_bytes(), host) {
        Ask::Asked(asked) => Ok(asked),
        Ask::Refused(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// The request for the model server.
pub(crate) fn upstream(body: &Value) -> Value {
    let asked = ask(ClientApi::Messages.path(), body, &ModelSettings::default()).unwrap();
    serde_json::from_slice(asked.body()).unwrap()
}

/// Feeds the answers of a model server, one for each round, in pieces of this size. Returns the client's bytes, and the
/// bodies of the requests for repairs.
pub(crate) fn fed(
    asked: &mut Asked,
    answers: &[Vec<u8>],
    is_stream: bool,
    size: usize,
) -> (Vec<u8>, Vec<Value>) {
    let (mut bytes, mut repairs) = (Vec::new(), Vec::new());
    for answer in answers {
        asked.begin_answer(is_stream);
        for piece in answer.chunks(size) {
            let flow = asked.feed(piece);
            bytes.append(&mut asked.take());
            if flow == Flow::Stop {
                break;
            }
        }
        let end = asked.end(None);
        bytes.append(&mut asked.take());
        match end {
            AskEnd::Again => repairs.push(serde_json::from_slice(asked.body()).unwrap()),
            AskEnd::Refused(error) if bytes.is_empty() => {
                bytes = ClientApi::Messages.error_body(&error, Some("req_1"));
                break;
            }
            _ => break,
        }
    }
    (bytes, repairs)
}

/// The streamed message for these rounds of a model server.
pub(crate) fn streamed(fields: &Value, settings: &ModelSettings, rounds: &[Stream]) -> Message {
    let mut asked = ask(ClientApi::Messages.path(), &request(fields), settings).unwrap();
    let answers: Vec<Vec<u8>> = rounds.iter().map(|stream| stream.0.clone()).collect();
    let (bytes, _) = fed(&mut asked, &answers, true, usize::MAX);
    read_stream(&bytes)
}

/// The complete message for the texts of these rounds.
pub(crate) fn complete(
    fields: &Value,
    settings: &ModelSettings,
    texts: &[&str],
    reason: &str,
) -> Message {
    let mut body = request(fields);
    body["stream"] = json!(false);
    let mut asked = ask(ClientApi::Messages.path(), &body, settings).unwrap();
    let answers: Vec<Vec<u8>> = texts.iter().map(|text| completion(text, reason)).collect();
    let (bytes, _) = fed(&mut asked, &answers, false, usize::MAX);
    read_complete(&bytes)
}

/// A complete answer of a model server.
pub(crate) fn completion(text: &str, reason: &str) -> Vec<u8> {
    let usage = json!({"prompt_tokens": 12, "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 10}});
    let message = json!({"role": "assistant", "content": text});
    let answer = json!({"id": "chatcmpl-9", "model": "real", "usage": usage,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}]});
    answer.to_string().into_bytes()
}

/// A round of a server that streams this text.
pub(crate) fn round(text: &str, reason: &str) -> Stream {
    Stream::new().texts([text]).finish(reason).done()
}
