//! The API on a real socket.

use plaincall_testkit::model_server::{ModelServer, Script};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::ollama::strict::{check_error, read_complete, read_stream};
use crate::serving::test_gateway::{ADD, TestGateway, completion, request};

async fn send(gateway: &TestGateway, method: Method, path: &str, body: &Value) -> Response {
    let request = gateway.client.request(method, gateway.url(path));
    request.body(body.to_string()).send().await.unwrap()
}

async fn post(gateway: &TestGateway, path: &str, body: &Value) -> Response {
    send(gateway, Method::POST, path, body).await
}

#[tokio::test]
async fn streamed_and_complete() {
    let texts = ["a\u{85}b\u{2028}c\n", ADD, ADD];
    let whole = completion(&texts.concat());
    let scripts = vec![
        Script::stream(&texts, "stop"),
        Script::json(200, &whole),
        Script::json(200, &whole),
    ];
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    // A response is streamed by default.
    let mut body = request(true);
    body.as_object_mut().unwrap().remove("stream");
    let response = post(&gateway, "/api/chat", &body).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let bytes = response.bytes().await.unwrap();
    let streamed = read_stream(&bytes);
    assert_eq!(streamed.content, texts[0]);
    assert_eq!(streamed.readable(), [("add", r#"{"a":5}"#); 2]);
    let last: Value = serde_json::from_slice(
        bytes
            .trim_ascii_end()
            .rsplit(|byte| *byte == b'\n')
            .next()
            .unwrap(),
    )
    .unwrap();
    assert!(last["total_duration"].as_u64().unwrap() > 0, "{last}");
    let response = post(&gateway, "/api/chat", &request(false)).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let whole = read_complete(&response.bytes().await.unwrap());
    assert_eq!(
        (&*whole.content, whole.readable()),
        (texts[0], streamed.readable())
    );
    // A stream was requested, and the server does not stream.
    let response = post(&gateway, "/api/chat", &body).await;
    let again = read_stream(&response.bytes().await.unwrap());
    assert_eq!(again.readable(), streamed.readable());
    let seen = server.seen();
    let head = &seen.requests[0].head;
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1\r\n"),
        "{head}"
    );
    let report = &gateway.reports(3).await[0];
    assert_eq!(
        (
            report.path,
            report.is_translated,
            report.is_streamed,
            report.counts.calls
        ),
        ("/api/chat", true, true, 2)
    );
}

/// The arguments of a call may have a field that has a meaning in another API.
#[tokio::test]
async fn arguments_are_not_changed() {
    let text = "!!!GADGET_START:log\n!!!ARG:finish_reason\neos\n!!!GADGET_END\n";
    let mut native = completion("");
    native["choices"][0]["message"] = json!({"role": "assistant", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "log", "arguments": "a.txt"}}]});
    let scripts = [completion(text), native].map(|answer| Script::json(200, &answer));
    let server = ModelServer::start(scripts.to_vec()).await;
    let gateway = TestGateway::before(&server, |config| {
        config.models = vec![("native".to_owned(), crate::native::model::native())];
    })
    .await;
    let mut body = request(false);
    body["tools"] = json!([{"type": "function", "function": {"name": "log", "parameters":
        {"type": "object", "properties": {"finish_reason": {"type": "string"}}}}}]);
    let response = post(&gateway, "/api/chat", &body).await;
    let reply = read_complete(&response.bytes().await.unwrap());
    assert_eq!(reply.readable(), [("log", r#"{"finish_reason":"eos"}"#)]);
    // Those of a native call that are not JSON are a string, which no client takes for an object.
    body["model"] = json!("native");
    let response = post(&gateway, "/api/chat", &body).await;
    let reply: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    let call = &reply["message"]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], "a.txt", "{reply}");
}

#[tokio::test]
async fn models() {
    let list =
        json!({"object": "list", "data": [{"id": "m:7b", "object": "model", "owned_by": "vllm"}]});
    let server = ModelServer::start(vec![Script::json(200, &list); 5]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let (status, version) = gateway.get("/api/version").await;
    let version: Value = serde_json::from_str(&version).unwrap();
    assert!(status == 200 && version["version"].is_string());
    let (status, tags) = gateway.get("/api/tags").await;
    let tags: Value = serde_json::from_str(&tags).unwrap();
    let model = &tags["models"][0];
    assert_eq!(
        (status, &model["name"], &model["model"]),
        (200, &json!("m:7b"), &json!("m:7b"))
    );
    assert_eq!(model["details"]["family"], "vllm");
    for (body, status) in [
        (json!({"model": "m:7b"}), 200),
        (json!({"name": "m:7b"}), 200),
        (json!({"model": "other"}), 404),
        (json!(7), 400),
    ] {
        let response = post(&gateway, "/api/show", &body).await;
        assert_eq!(response.status(), status, "{body}");
        let bytes = response.bytes().await.unwrap();
        if status != 200 {
            check_error(&bytes);
            continue;
        }
        let shown: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(shown["capabilities"], json!(["completion", "tools"]));
        assert!(shown["model_info"].is_object());
    }
}

/// A server that has the API gets its other requests, and those that manage models are refused.
#[tokio::test]
async fn other_requests() {
    let embedding = json!({"model": "m", "embeddings": [[0.5]]});
    let missing = json!({"detail": "Not Found"});
    let scripts = vec![Script::json(200, &embedding), Script::json(404, &missing)];
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let body = json!({"model": "m", "input": "a"});
    let response = post(&gateway, "/api/embed", &body).await;
    assert_eq!(response.text().await.unwrap(), embedding.to_string());
    let sent = &server.seen().requests[0];
    assert!(
        sent.head.starts_with("post /api/embed http/1.1\r\n"),
        "{}",
        sent.head
    );
    for (method, path, status, words) in [
        (
            Method::POST,
            "/api/generate",
            404,
            "the model server does not have Ollama's API, or not this model: Not Found",
        ),
        (
            Method::POST,
            "/api/pull",
            404,
            "unknown endpoint POST /api/pull; to manage models, use the model server. The gateway serves",
        ),
        (
            Method::DELETE,
            "/api/delete",
            404,
            "unknown endpoint DELETE /api/delete; to manage",
        ),
        (
            Method::GET,
            "/api/chat",
            405,
            "unknown endpoint GET /api/chat; this path has another method.",
        ),
        (
            Method::POST,
            "/v1/api/chat",
            404,
            "did you mean /api/chat? The client's base URL must not contain /v1",
        ),
    ] {
        let response = send(&gateway, method, path, &body).await;
        assert_eq!(response.status(), status, "{path}");
        let bytes = response.bytes().await.unwrap();
        check_error(&bytes);
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn keys() {
    let server = ModelServer::start(vec![Script::json(200, &completion("Hi."))]).await;
    let key = "a-key-of-a-client";
    let gateway = TestGateway::before(&server, |config| config.keys = vec![key.to_owned()]).await;
    for (method, path) in [
        (Method::POST, "/api/chat"),
        (Method::GET, "/api/tags"),
        (Method::POST, "/api/show"),
        (Method::POST, "/api/embed"),
    ] {
        let response = send(&gateway, method, path, &request(false)).await;
        assert_eq!(response.status(), 401, "{path}");
        check_error(&response.bytes().await.unwrap());
    }
    let asked = gateway
        .client
        .post(gateway.url("/api/chat"))
        .bearer_auth(key);
    let response = asked.body(request(false).to_string()).send().await.unwrap();
    assert_eq!(response.status(), 200);
}
