//! Counts the tokens of a request to Messages (`spec/gateway.md` 10).

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Request};
use serde_json::{Value, json};

use crate::api::ClientApi;
use crate::server::body::{Body, Response};
use crate::server::chat::check_encoding;
use crate::server::chat::prepare::{Task, prepared};
use crate::server::endpoint::Endpoint;
use crate::server::request::{AcceptedRequest, Handled, reject, with_request};
use crate::server::upstream::Connection;
use crate::server::{Shared, response};

/// The header of a count that the model server has not made.
const TOKEN_COUNT: HeaderName = HeaderName::from_static("x-plaincall-token-count");
/// The time limit for the model server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The estimated tokens of a message besides its text, and of the beginning of the reply.
const PER_MESSAGE: usize = 4;
/// The estimated tokens of an image or a file.
const PER_PART: usize = 1000;

pub(super) async fn count_tokens(shared: &Arc<Shared>, request: Request<Body>) -> Response {
    let handle = |accepted| handle(shared, accepted);
    with_request(
        shared,
        Endpoint::CountTokens,
        request,
        check_encoding,
        handle,
    )
    .await
}

async fn handle(shared: &Arc<Shared>, accepted: AcceptedRequest) -> Handled {
    let AcceptedRequest {
        body,
        upstream_headers,
        mut guard,
        ..
    } = accepted;
    let prepared = prepared(shared, ClientApi::Messages, body, &guard.caller).await;
    guard.model(prepared.model);
    let (body, changed, upstream) = match prepared.task {
        Task::Translate(mut asked, upstream) => {
            let changed = response::changed_tools(asked.changed_tools());
            guard.report.is_translated = true;
            (asked.take_body(), changed, upstream)
        }
        Task::Forward(body, upstream) => (body.into(), HeaderMap::new(), upstream),
        Task::Reject(error) => return (reject(guard, &error), None),
    };
    guard.upstream(&upstream);
    guard.model_request(&body);
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let counted = tokio::time::timeout(
        TIMEOUT,
        tokenize(shared, &upstream, &body, &upstream_headers),
    );
    let counted = counted.await.ok().flatten();
    let tokens = counted.unwrap_or_else(|| estimate(&body));
    let mut response = response::json(200, json!({"input_tokens": tokens}).to_string());
    if counted.is_none() {
        let estimate = HeaderValue::from_static("estimate");
        response.headers_mut().insert(TOKEN_COUNT, estimate);
    }
    guard.end(200, None);
    (response::with_headers(response, changed), Some(upstream))
}

/// Asks the model server for the number of tokens of a chat completions request. Returns `None` if it cannot count them.
async fn tokenize(
    shared: &Shared,
    upstream: &Connection,
    request: &Value,
    headers: &HeaderMap,
) -> Option<u64> {
    let ask = async |path: &str, body: &Value| {
        let body = body.to_string().into_bytes();
        let answer = upstream.ask_server(path, headers, body).await;
        let bytes = answer.ok()?.whole(shared.config.limits.answer).await.ok()?;
        serde_json::from_slice::<Value>(&bytes).ok()
    };
    // vLLM applies the chat template of the model.
    let mut chat = json!({"add_generation_prompt": true});
    for field in ["model", "messages", "tools"] {
        if let Some(value) = request.get(field) {
            chat[field] = value.clone();
        }
    }
    let answer = ask("/tokenize", &chat).await?;
    if let Some(count) = answer["count"].as_u64() {
        return Some(count);
    }
    // llama.cpp does that at another address.
    answer.get("tokens")?;
    let prompt = ask("/apply-template", &chat).await?;
    let text =
        json!({"content": prompt["prompt"].as_str()?, "add_special": true, "parse_special": true});
    let answer = ask("/tokenize", &text).await?;
    Some(answer["tokens"].as_array()?.len() as u64)
}

/// Estimates the tokens of a request: four ASCII characters or one other character are a token.
fn estimate(request: &Value) -> u64 {
    let of_text = |text: &str| {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let other = text.chars().filter(|letter| !letter.is_ascii()).count();
        ascii.div_ceil(4) + other
    };
    let of_part = |part: &Value| part["text"].as_str().map_or(PER_PART, of_text);
    let messages = request["messages"].as_array();
    let messages = messages.into_iter().flatten().map(|message| {
        let content = match &message["content"] {
            Value::String(text) => of_text(text),
            Value::Array(parts) => parts.iter().map(of_part).sum(),
            _ => 0,
        };
        let others = ["reasoning_content", "tool_calls"].map(|field| match &message[field] {
            Value::Null => 0,
            Value::String(text) => of_text(text),
            other => of_text(&other.to_string()),
        });
        PER_MESSAGE + content + others.iter().sum::<usize>()
    });
    // In native mode, the model server writes the tools into the prompt.
    let tools = request
        .get("tools")
        .map_or(0, |tools| of_text(&tools.to_string()));
    (PER_MESSAGE + tools + messages.sum::<usize>()) as u64
}
