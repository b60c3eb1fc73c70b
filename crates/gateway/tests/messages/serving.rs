//! The API on a real socket.

use plaincall_testkit::model_server::{ModelServer, Script};
use reqwest::Response;
use serde_json::{Value, json};

use crate::messages::model::completion;
use crate::messages::strict::{read_complete, read_stream};
use crate::replies::table::ADD;
use crate::serving::test_gateway::TestGateway;

const KEY: &str = "a-key-of-a-client";

fn body(is_streamed: bool) -> Value {
    crate::messages::model::request(&json!({"stream": is_streamed}))
}

async fn post(gateway: &TestGateway, headers: &[(&str, &str)], body: &Value) -> Response {
    let mut request = gateway.client.post(gateway.url("/v1/messages?beta=true"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.to_string()).send().await.unwrap()
}

#[tokio::test]
async fn streamed_and_complete() {
    let texts = ["I add.\n", ADD, ADD];
    let whole: Value = serde_json::from_slice(&completion(&texts.concat(), "stop")).unwrap();
    let scripts = vec![
        Script::stream(&texts, "stop"),
        Script::json(200, &whole),
        Script::json(200, &whole),
    ];
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let response = post(
        &gateway,
        &[("anthropic-version", "2023-06-01")],
        &body(true),
    )
    .await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(response.headers().contains_key("request-id"));
    let message = read_stream(&response.bytes().await.unwrap());
    assert_eq!(
        (message.text("text").as_str(), message.calls().len()),
        ("I add.\n", 2)
    );
    let response = post(&gateway, &[], &body(false)).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let whole = read_complete(&response.bytes().await.unwrap());
    assert_eq!(whole.calls(), message.calls());
    // A stream was requested, and the server does not stream.
    let response = post(&gateway, &[], &body(true)).await;
    assert_eq!(
        read_stream(&response.bytes().await.unwrap()).calls(),
        message.calls()
    );
    let seen = server.seen();
    assert!(
        seen.requests[0]
            .head
            .starts_with("post /v1/chat/completions http/1.1\r\n")
    );
    let report = &gateway.reports(3).await[0];
    assert_eq!(
        (report.path, report.is_translated, report.is_streamed),
        ("/v1/messages", true, true)
    );
    assert_eq!(report.counts.calls, 2);
}

/// The input of a call may have a field that has a meaning in another API.
#[tokio::test]
async fn inputs_are_not_changed() {
    let whole = completion(
        "!!!GADGET_START:log\n!!!ARG:finish_reason\neos\n!!!GADGET_END\n",
        "stop",
    );
    let server = ModelServer::start(vec![Script::json(
        200,
        &serde_json::from_slice(&whole).unwrap(),
    )])
    .await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let mut body = body(false);
    body["tools"] = json!([{"name": "log", "input_schema": {"type": "object", "properties": {"finish_reason": {"type": "string"}}}}]);
    let response = post(&gateway, &[], &body).await;
    let message = read_complete(&response.bytes().await.unwrap());
    assert_eq!(message.calls()[0].1, r#"{"finish_reason":"eos"}"#);
}

#[tokio::test]
async fn keys_in_either_header() {
    let whole: Value = serde_json::from_slice(&completion("Hi.", "stop")).unwrap();
    let server = ModelServer::start(vec![Script::json(200, &whole); 4]).await;
    let gateway = TestGateway::before(&server, |config| config.keys = vec![KEY.to_owned()]).await;
    let bearer = format!("Bearer {KEY}");
    let table: [(&[(&str, &str)], u16); 7] = [
        (&[("x-api-key", KEY)], 200),
        (&[("authorization", &bearer)], 200),
        (
            &[("authorization", "Bearer other"), ("x-api-key", KEY)],
            200,
        ),
        (&[("authorization", &bearer), ("x-api-key", "other")], 200),
        (&[("x-api-key", "other")], 401),
        (&[("authorization", "Bearer other")], 401),
        (&[], 401),
    ];
    for (headers, status) in table {
        let response = post(&gateway, headers, &body(false)).await;
        assert_eq!(response.status(), status, "{headers:?}");
        let id = response.headers()["request-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let text = response.bytes().await.unwrap();
        if status == 401 {
            let (kind, _) = read_complete(&text).error.unwrap();
            assert_eq!(kind, "authentication_error");
            let value: Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(value["request_id"], id);
        }
    }
}

/// A client's key is forwarded as the model server expects it.
#[tokio::test]
async fn the_key_of_a_client_is_forwarded() {
    let whole: Value = serde_json::from_slice(&completion("Hi.", "stop")).unwrap();
    let server = ModelServer::start(vec![Script::json(200, &whole)]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    post(&gateway, &[("x-api-key", KEY)], &body(false)).await;
    let head = &server.seen().requests[0].head;
    assert!(
        head.to_lowercase()
            .contains(&format!("authorization: bearer {KEY}\r\n")),
        "{head}"
    );
    assert!(!head.contains("x-api-key"));
}

#[tokio::test]
async fn errors_have_the_types_of_the_api() {
    let table = [
        (400, "invalid_request_error"),
        (402, "billing_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "overloaded_error"),
        (529, "overloaded_error"),
    ];
    let scripts =
        table.map(|(status, _)| Script::json(status, &json!({"error": {"message": "no"}})));
    let server = ModelServer::start(scripts.to_vec()).await;
    let gateway = TestGateway::before(&server, |config| config.retries.max_retries = 0).await;
    for (index, (status, kind)) in table.into_iter().enumerate() {
        let response = post(&gateway, &[], &body(index % 2 == 0)).await;
        assert_eq!(response.status(), status);
        let (found, message) = read_complete(&response.bytes().await.unwrap())
            .error
            .unwrap();
        assert_eq!((&*found, &*message), (kind, "no"));
    }
    let response = post(&gateway, &[], &json!({"messages": 1})).await;
    assert_eq!(response.status(), 400);
    let (kind, _) = read_complete(&response.bytes().await.unwrap())
        .error
        .unwrap();
    assert_eq!(kind, "invalid_request_error");
}

#[tokio::test]
async fn models_and_the_address() {
    let models = json!({"object": "list", "data": [{"id": "a", "object": "model"}, {"id": "b", "object": "model"}]});
    let one = Script::json(200, &models["data"][0]);
    let scripts = [vec![Script::json(200, &models); 2], vec![one]].concat();
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let url = gateway.url("/v1/models?limit=1000");
    let asked = gateway
        .client
        .get(&url)
        .header("anthropic-version", "2023-06-01");
    let page = asked.send().await.unwrap().bytes().await.unwrap();
    let page: Value = serde_json::from_slice(&page).unwrap();
    let model = |id: &str| json!({"type": "model", "id": id, "display_name": id, "created_at": "1970-01-01T00:00:00Z"});
    assert_eq!(
        page,
        json!({"data": [model("a"), model("b")], "has_more": false, "first_id": "a", "last_id": "b"})
    );
    let (_, list) = gateway.get("/v1/models").await;
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap(), models);
    let asked = gateway.client.get(gateway.url("/v1/models/a"));
    let asked = asked.header("anthropic-version", "2023-06-01").send().await;
    let found = asked.unwrap().bytes().await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&found).unwrap(), model("a"));
    let head = gateway.client.head(gateway.url("/")).send().await.unwrap();
    assert_eq!(head.status(), 200);
    assert_eq!(gateway.get("/").await.0, 404);
}

const COUNT: &str = "/v1/messages/count_tokens";

/// Counts the tokens of a request with a tool. Returns the number, whether it is an estimate, and the requests that the
/// model server got.
async fn count(scripts: Vec<Script>) -> (u64, bool, Vec<(String, Value)>) {
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let mut body = body(false);
    body.as_object_mut().unwrap().remove("max_tokens");
    let request = gateway.client.post(gateway.url(COUNT));
    let response = request.body(body.to_string()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let mark = response.headers().get("x-plaincall-token-count");
    let is_estimate = mark.is_some_and(|mark| mark == "estimate");
    let count: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(gateway.reports(1).await[0].path, COUNT);
    let requests = server.seen().requests.into_iter().map(|request| {
        let target = request.head.split(' ').nth(1).unwrap().to_owned();
        (target, request.json())
    });
    let requests = requests.collect();
    (
        count["input_tokens"].as_u64().unwrap(),
        is_estimate,
        requests,
    )
}

/// The model server counts the translated prompt, with its chat template.
#[tokio::test]
async fn token_counts_of_the_model_server() {
    let sent = crate::messages::model::upstream(&body(false));
    let vllm = json!({"count": 321, "max_model_len": 4096, "tokens": [1, 2]});
    let (tokens, is_estimate, requests) = count(vec![Script::json(200, &vllm)]).await;
    assert_eq!((tokens, is_estimate), (321, false));
    assert_eq!(requests.len(), 1);
    let (path, request) = &requests[0];
    assert_eq!(path, "/tokenize");
    assert_eq!(request["messages"], sent["messages"]);
    assert_eq!(request["model"], "m");

    let llama = vec![
        Script::json(200, &json!({"tokens": []})),
        Script::json(200, &json!({"prompt": "<|user|>Do it."})),
        Script::json(200, &json!({"tokens": [7, 8, 9]})),
    ];
    let (tokens, is_estimate, requests) = count(llama).await;
    assert_eq!((tokens, is_estimate), (3, false));
    let paths: Vec<&str> = requests.iter().map(|(path, _)| &**path).collect();
    assert_eq!(paths, ["/tokenize", "/apply-template", "/tokenize"]);
    assert_eq!(requests[1].1["messages"], sent["messages"]);
    assert_eq!(requests[2].1["content"], "<|user|>Do it.");
}

#[tokio::test]
async fn token_counts_that_are_estimated() {
    let sent = crate::messages::model::upstream(&body(false));
    let texts = sent["messages"].as_array().unwrap().iter();
    let length: usize = texts
        .map(|message| message["content"].as_str().unwrap().len())
        .sum();
    for script in [
        Script::json(404, &json!({"error": {"message": "no such path"}})),
        Script::json(200, &json!({"choices": []})),
        Script::json(200, &json!({"tokens": 5})),
    ] {
        let (tokens, is_estimate, _) = count(vec![script]).await;
        assert!(is_estimate);
        let tokens = usize::try_from(tokens).unwrap();
        assert!(
            (length / 4..length / 3).contains(&tokens),
            "{tokens} of {length}"
        );
    }
}

/// Both APIs have the same paths for models, so the client's header decides.
#[tokio::test]
async fn errors_of_shared_paths() {
    let server = ModelServer::start(Vec::new()).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    for (method, path, status) in [
        ("GET", "/v1/models", 500),
        ("GET", "/v1/models/m", 404),
        ("POST", "/v1/models", 405),
        ("GET", "/models", 404),
        ("GET", "/v1/files", 404),
    ] {
        for version in [None, Some("2023-06-01")] {
            if matches!(status, 404 | 500) && path.starts_with("/v1/models") {
                server.play([Script::json(status, &json!({"error": {"message": "no"}}))]);
            }
            let mut request = gateway
                .client
                .request(method.parse().unwrap(), gateway.url(path));
            if let Some(version) = version {
                request = request.header("anthropic-version", version);
            }
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), status, "{path}");
            let id = response.headers()["request-id"].clone();
            let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
            assert!(body["error"]["message"].is_string(), "{body}");
            if version.is_some() {
                assert_eq!(body["type"], "error", "{path}: {body}");
                assert_eq!(body["request_id"], id.to_str().unwrap(), "{body}");
            } else {
                assert_eq!(body.get("type"), None, "{path}: {body}");
            }
        }
    }
    assert_eq!(server.left(), 0);
}

/// Each error has the format of the API to which the path belongs.
#[tokio::test]
async fn errors_of_unknown_paths() {
    let server = ModelServer::start(vec![Script::json(200, &json!({}))]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    for (method, path, status, is_ours) in [
        ("POST", "/v1/messages/batches", 404, true),
        ("GET", "/v1/messages", 405, true),
        ("GET", COUNT, 405, true),
        ("POST", "/messages", 404, true),
        ("POST", "/v1/v1/messages", 404, true),
        ("POST", "/v1/messagesx", 404, false),
        ("GET", "/v1/responses/resp_1", 404, false),
        ("DELETE", "/v1/chat/completions", 405, false),
        ("GET", "/other", 404, false),
    ] {
        let request = gateway
            .client
            .request(method.parse().unwrap(), gateway.url(path));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert_eq!(body["type"] == "error", is_ours, "{path}: {body}");
        let kind = &body["error"]["type"];
        let expected = if status == 404 && is_ours {
            "not_found_error"
        } else {
            "invalid_request_error"
        };
        assert_eq!(kind, expected, "{path}");
    }
    // Invalid requests too.
    let request = gateway.client.post(gateway.url(COUNT)).body("{");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 400);
    let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(body["type"], "error");
    assert!(server.seen().requests.is_empty());
}
