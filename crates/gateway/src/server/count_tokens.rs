//! Counts the tokens of a request to Messages (`spec/gateway.md` 10).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use serde_json::{Value, json};

use crate::api::ClientApi;
use crate::server::body::{Body, Response};
use crate::server::chat::check_encoding;
use crate::server::chat::prepare::{Task, prepared, without_blocking};
use crate::server::endpoint::Endpoint;
use crate::server::request::{AcceptedRequest, reject, with_request};
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

async fn handle(shared: &Arc<Shared>, accepted: AcceptedRequest) -> Response {
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
            guard.report.is_translated = asked.is_translated();
            (asked.take_body(), changed, upstream)
        }
        Task::Forward(body, upstream) => (body.into(), HeaderMap::new(), upstream),
        Task::Reject(error) => return reject(guard, &error),
    };
    guard.upstream(&upstream);
    guard.model_request(&body);
    let length = body.len();
    let (request, estimated) = match without_blocking(shared, length, move || read(&body)).await {
        Ok(read) => read,
        Err(error) => return reject(guard, &error),
    };
    let counted = tokenize(shared, &upstream, request, &upstream_headers);
    let counted = tokio::time::timeout(TIMEOUT, counted).await.ok().flatten();
    let tokens = counted.unwrap_or(estimated);
    let mut response = response::json(200, json!({"input_tokens": tokens}).to_string());
    if counted.is_none() {
        let estimate = HeaderValue::from_static("estimate");
        response.headers_mut().insert(TOKEN_COUNT, estimate);
    }
    guard.end(200, None);
    response::with_headers(response, changed)
}

/// Reads a chat completions request. Returns the request whose tokens the model server counts, and an estimate of their number.
fn read(body: &[u8]) -> (Bytes, u64) {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    // vLLM applies the chat template of the model.
    let mut chat = json!({"add_generation_prompt": true});
    for field in ["model", "messages", "tools"] {
        if let Some(value) = request.get(field) {
            chat[field] = value.clone();
        }
    }
    (chat.to_string().into(), estimate(&request))
}

/// The parts of a model server's answer that matter for the number of tokens.
struct Counted {
    /// The number of tokens of a chat.
    count: Option<u64>,
    /// The number of tokens of a text.
    tokens: Option<usize>,
    /// The request to count the tokens of a prompt.
    prompt: Option<Bytes>,
}

impl Counted {
    fn read(answer: &[u8]) -> Option<Self> {
        let answer: Value = serde_json::from_slice(answer).ok()?;
        let prompt = answer["prompt"].as_str();
        Some(Self {
            count: answer["count"].as_u64(),
            tokens: answer["tokens"].as_array().map(Vec::len),
            prompt: prompt.map(|prompt| {
                let text = json!({"content": prompt, "add_special": true, "parse_special": true});
                text.to_string().into()
            }),
        })
    }
}

/// Asks the model server for the number of tokens of a chat completions request. Returns `None` if it cannot count them.
async fn tokenize(
    shared: &Shared,
    upstream: &Connection,
    chat: Bytes,
    headers: &HeaderMap,
) -> Option<u64> {
    let ask = async |path: &str, body: Bytes| {
        let answer = upstream.ask_server(path, headers, body).await;
        let bytes = answer.ok()?.whole(shared.config.limits.answer).await.ok()?;
        let length = bytes.len();
        let work = move || Counted::read(&bytes);
        without_blocking(shared, length, work).await.ok()?
    };
    let answer = ask("/tokenize", chat.clone()).await?;
    if answer.count.is_some() {
        return answer.count;
    }
    // llama.cpp applies the template at another address.
    answer.tokens?;
    let prompt = ask("/apply-template", chat).await?.prompt?;
    let tokens = ask("/tokenize", prompt).await?.tokens?;
    u64::try_from(tokens).ok()
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
