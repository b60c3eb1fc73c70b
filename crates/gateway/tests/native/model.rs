//! A scripted model server with native calls behind the adapter.

use plaincall_gateway::translation::{Adapter, Ask, Asked, ClientApi, Flow, Host};
use plaincall_gateway::{ModelSettings, Secret, ToolMode};
use plaincall_reply::rescue::Format;
use serde_json::{Value, json};

pub(crate) fn native() -> ModelSettings {
    crate::settings(|settings| settings.mode = ToolMode::Native)
}

/// The model `fast` is `qwen` on its server.
pub(crate) fn ask(api: ClientApi, body: &str) -> Ask {
    ask_with(native(), api, body)
}

fn ask_with(settings: ModelSettings, api: ClientApi, body: &str) -> Ask {
    let mut fast = settings.clone();
    fast.upstream_model = Some("qwen".to_owned());
    let mut models = vec![("fast".to_owned(), fast)];
    // Models with one format, and one without any.
    let one = |format: Option<Format>| {
        let mut settings = settings.clone();
        settings.formats = Some(format.into_iter().collect());
        (format.map_or("none", Format::name).to_owned(), settings)
    };
    models.push(one(None));
    models.extend(Format::ALL.map(|format| one(Some(format))));
    let adapter = Adapter::new(Secret::new("secret"), settings).models(models);
    let host = Host::new(Secret::new("seed"), 5);
    adapter.ask(api.path(), body.as_bytes(), host)
}

pub(crate) fn asked(api: ClientApi, body: &Value) -> Box<Asked> {
    match ask(api, &body.to_string()) {
        Ask::Asked(asked) => asked,
        other => panic!("{other:?}"),
    }
}

/// Like [`asked`]; the model is not asked again.
pub(crate) fn asked_once(api: ClientApi, body: &Value) -> Box<Asked> {
    let mut settings = native();
    settings.repair_rounds = 0;
    match ask_with(settings, api, &body.to_string()) {
        Ask::Asked(asked) => asked,
        other => panic!("{other:?}"),
    }
}

/// Feeds an answer in pieces of this size, and returns the client's bytes.
pub(crate) fn fed(asked: &mut Asked, answer: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in answer.chunks(size) {
        let flow = asked.feed(piece);
        bytes.append(&mut asked.take());
        if flow == Flow::Stop {
            break;
        }
    }
    asked.end(None);
    bytes.append(&mut asked.take());
    bytes
}

/// A server's stream of these deltas.
pub(crate) fn stream(deltas: &[Value], reason: &str) -> Vec<u8> {
    let chunk = |delta: &Value, reason: &Value| {
        let chunk = json!({
            "id": "chatcmpl-9", "object": "chat.completion.chunk", "created": 7, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        });
        format!("data: {chunk}\n\n")
    };
    let mut text: String = deltas
        .iter()
        .map(|delta| chunk(delta, &Value::Null))
        .collect();
    text += &chunk(&json!({}), &json!(reason));
    text += "data: [DONE]\n\n";
    text.into_bytes()
}

/// A server's complete answer with this message.
pub(crate) fn completion(message: &Value, reason: &str) -> Vec<u8> {
    let completion = json!({
        "id": "chatcmpl-9", "object": "chat.completion", "created": 7, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    });
    completion.to_string().into_bytes()
}
