//! Requests that are answered, and those that are rejected.

use std::time::Duration;

use http_body_util::BodyExt;
use plaincall_gateway::{Body, Gateway, GatewayConfig, Replay, Secret, Upstream};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::serving::test_gateway::{ADD, TestGateway, completion, request};
use plaincall_testkit::model_server::{ModelServer, Script, Then};

#[tokio::test]
async fn streamed_and_whole() {
    let scripts = vec![
        Script::stream(&["I add.\n", ADD], "stop"),
        Script::json(200, &completion(ADD)),
        Script::json(200, &completion(ADD)),
    ];
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let recorded = gateway.read_answer(&request(true)).await;
    assert_eq!(
        (recorded.content.as_str(), recorded.readable()),
        ("I add.\n", vec![("add", r#"{"a":5}"#)])
    );

    let response = gateway.post(&request(false)).await;
    assert_eq!(response.headers()["x-request-id"], "mine-1");
    let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(
        answer["choices"][0]["message"]["tool_calls"][0]["function"],
        json!({"name": "add", "arguments": "{\"a\":5}"})
    );

    // A stream was requested, and the server does not stream.
    let recorded = gateway.read_answer(&request(true)).await;
    assert_eq!(recorded.readable(), [("add", r#"{"a":5}"#)]);

    let seen = server.seen();
    assert_eq!(seen.requests.len(), 3);
    let (asked, body) = (&seen.requests[0].head, seen.requests[0].json());
    assert!(
        asked.starts_with("post /v1/chat/completions http/1.1\r\n"),
        "{asked}"
    );
    assert!(asked.contains("x-request-id: mine-1\r\n"));
    assert!(body.get("tools").is_none());
    assert!(
        body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("## add\n")
    );
    let reports = gateway.reports(3).await;
    assert!(
        reports
            .iter()
            .all(|report| report.status == 200 && report.counts.calls == 1 && !report.is_abandoned)
    );
    let (_, metrics) = gateway.get("/metrics").await;
    for line in [
        "plaincall_requests_total{status=\"200\"} 3",
        "plaincall_calls_total 3",
        "plaincall_requests_active 0",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} in {metrics}"
        );
    }
}

#[tokio::test]
async fn without_tools_all_is_passed_on() {
    let stream = Script::stream(&["!!!GADGET_START:", "x\n"], "stop");
    let expected = stream.body();
    let list = json!({"object": "list", "data": [{"id": "m"}]});
    let server = ModelServer::start(vec![stream, Script::json(200, &list)]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let body = r#"{ "messages":[{"role":"user","content":"!!!ARG:"}], "stream":true, "x":1.50 }"#;
    let response = gateway.post_text(body).await;
    assert_eq!(response.bytes().await.unwrap(), expected);
    assert_eq!(
        server.seen().requests[0].json(),
        serde_json::from_str::<Value>(body).unwrap()
    );
    let (status, text) = gateway.get("/v1/models").await;
    assert_eq!(
        (status, serde_json::from_str::<Value>(&text).unwrap()),
        (200, list)
    );
}

#[tokio::test]
async fn an_invalid_call_is_repaired() {
    let wrong = ADD.replace('5', "five");
    let server = ModelServer::start(vec![
        Script::stream(&[&wrong], "stop"),
        Script::stream(&[ADD], "stop"),
        Script::json(200, &completion(&wrong)),
        Script::json(200, &completion(ADD)),
        Script::json(200, &completion(&wrong)),
        Script::json(200, &completion(&wrong)),
        Script::json(200, &completion(&wrong)),
    ])
    .await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    assert_eq!(
        gateway.read_answer(&request(true)).await.readable(),
        [("add", r#"{"a":5}"#)]
    );
    let answer = gateway.post(&request(false)).await;
    assert_eq!(answer.status(), 200);
    let answer = gateway.post(&request(false)).await;
    assert_eq!(answer.status(), 502);
    // An automatic retry of the client would repeat all rounds.
    assert_eq!(answer.headers()["x-should-retry"], "false");
    let error: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(error["error"]["code"], "invalid_tool_call");
    let seen = server.seen();
    let repair = seen.requests[1].json();
    let roles: Vec<&str> = repair["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!(
        seen.requests[6].json()["messages"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
}

#[tokio::test]
async fn a_repair_that_is_decided_at_the_end_of_a_stream_is_of_the_whole_request() {
    // The reason arrives before the end of the stream, which the gateway still reads.
    let pause = Duration::from_millis(30);
    for wrong in [
        ADD.replace("START", "SART"),
        ADD.replace("START", "SART") + "\n",
        ADD.replace('5', "five").replace("!!!GADGET_END\n", ""),
    ] {
        let server = ModelServer::start(vec![
            Script::stream(&[&wrong], "stop").after(pause),
            Script::stream(&[ADD], "stop").after(pause),
        ])
        .await;
        let gateway = TestGateway::before(&server, |_| {}).await;
        let recorded = gateway.read_answer(&request(true)).await;
        assert_eq!(recorded.readable(), [("add", r#"{"a":5}"#)], "{wrong}");
        let seen = server.seen();
        let (first, second) = (seen.requests[0].json(), seen.requests[1].json());
        assert_eq!(second["model"], first["model"]);
        let messages = second["messages"].as_array().unwrap();
        let begin = first["messages"].as_array().unwrap();
        assert_eq!(messages[..2], begin[..]);
        let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["system", "user", "assistant", "user"]);
    }
}

async fn refused(gateway: &TestGateway, body: impl Into<reqwest::Body>, status: u16, words: &str) {
    let response = gateway.post_text(body).await;
    assert_eq!(response.status(), status);
    let text = response.text().await.unwrap();
    let error: Value = serde_json::from_str(&text).unwrap();
    assert!(
        error["error"]["message"].as_str().unwrap().contains(words),
        "{text}"
    );
    assert!(error["error"]["type"].is_string());
}

#[tokio::test]
async fn refusals() {
    let server = ModelServer::start(vec![]).await;
    let gateway = TestGateway::before(&server, |config| config.limits.body = 1000).await;
    refused(&gateway, "{", 400, "cannot be parsed").await;
    refused(
        &gateway,
        r#"{"messages":7}"#,
        400,
        "messages: expected a list",
    )
    .await;
    refused(
        &gateway,
        r#"{"messages":[],"tools":{"type":"function","function":{"name":"a"}}}"#,
        400,
        "tools",
    )
    .await;
    refused(&gateway, " ".repeat(1001), 413, "exceeds 1000 bytes").await;
    let (status, text) = gateway.get("/v1/chat/completions").await;
    assert_eq!(status, 405, "{text}");
    let (status, text) = gateway.get("/v1/other").await;
    assert_eq!(status, 404);
    assert!(text.contains("unknown endpoint GET /v1/other"));
    assert_eq!(gateway.get("/health").await, (200, "ok\n".to_owned()));
    assert_eq!(gateway.get("/ready").await, (200, "ready\n".to_owned()));
}

#[tokio::test]
async fn errors_are_counted_and_reported() {
    let scripts = vec![
        Script::stream(&["I add."], "stop").only(1, Then::End),
        Script::json(
            400,
            &json!({"error": {"message": "no", "type": "of_its_own"}}),
        ),
    ];
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    // The status of a stream is sent before anything can fail in it.
    let response = gateway.post(&request(true)).await;
    assert_eq!(response.status(), 200);
    assert!(response.text().await.unwrap().contains("upstream_error"));
    gateway.reports(1).await;
    assert_eq!(gateway.post(&request(true)).await.status(), 400);
    let base = "base URL must end with a single /v1";
    let origin = "did you mean /v1/messages? The client's base URL must not contain /v1";
    for (method, path, status, words) in [
        (
            "POST",
            "/chat/completions",
            404,
            "did you mean /v1/chat/completions?",
        ),
        ("POST", "/v1/v1/chat/completions", 404, base),
        ("POST", "/v1/v1/messages", 404, origin),
        ("POST", "//v1/chat/completions", 404, base),
        (
            "POST",
            "/v1/messages/",
            404,
            "did you mean /v1/messages? The client's base URL must end with a single /v1, without",
        ),
        ("GET", "/v1//models", 404, "did you mean /v1/models?"),
        ("POST", "/messages", 404, base),
        ("GET", "/models/m", 404, "did you mean /v1/models/m?"),
        ("GET", "/secret", 404, "unknown endpoint GET /secret. "),
        ("GET", "/v1/chat/completions", 405, "another method"),
    ] {
        let asked = gateway
            .client
            .request(method.parse().unwrap(), gateway.url(path));
        let response = asked.header("x-request-id", "mine").send().await.unwrap();
        assert_eq!(
            (
                response.status().as_u16(),
                &response.headers()["x-request-id"]
            ),
            (status, &"mine".parse().unwrap())
        );
        let text = response.text().await.unwrap();
        assert!(text.contains(words), "{words} in {text}");
    }
    let reports = gateway.reports(12).await;
    let types: Vec<_> = reports
        .iter()
        .map(|report| report.error_type.unwrap())
        .collect();
    assert_eq!(types[..2], ["upstream_error"; 2]);
    assert_eq!(types[2..], ["invalid_request_error"; 10]);
    assert!(
        reports[2..]
            .iter()
            .all(|report| report.path == "other" && report.request_id == "mine")
    );
    let response = gateway
        .client
        .get(gateway.url("/metrics"))
        .send()
        .await
        .unwrap();
    let kind = response.headers()["content-type"].clone();
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    let metrics = response.text().await.unwrap();
    for line in [
        "plaincall_errors_total{type=\"upstream_error\"} 2",
        "plaincall_errors_total{type=\"invalid_request_error\"} 10",
        "plaincall_requests_total{status=\"200\"} 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line} in {metrics}"
        );
    }
}

/// Reports contain the position of the key, never the key.
#[tokio::test]
async fn which_key_it_was() {
    for (keys, expected) in [(&["one", "two"][..], Some(2)), (&["two"], None)] {
        let server = ModelServer::start(vec![Script::json(200, &completion("Yes."))]).await;
        let gateway = TestGateway::before(&server, |config| {
            config.keys = keys.iter().map(|key| (*key).to_owned()).collect();
        })
        .await;
        let asked = gateway.client.get(gateway.url("/v1/models"));
        assert_eq!(asked.bearer_auth("two").send().await.unwrap().status(), 200);
        assert_eq!(gateway.reports(1).await[0].key, expected);
    }
}

#[tokio::test]
async fn keys() {
    let list = json!({"object": "list", "data": []});
    let server = ModelServer::start(vec![Script::json(200, &list), Script::json(200, &list)]).await;
    let gateway = TestGateway::before(&server, |config| {
        config.keys = vec!["one".to_owned(), "two".to_owned()];
    })
    .await;
    let ask = async |key: Option<&str>| {
        let mut request = gateway.client.get(gateway.url("/v1/models"));
        if let Some(key) = key {
            request = request.header("authorization", key);
        }
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(ask(None).await, 401);
    assert_eq!(ask(Some("Bearer three")).await, 401);
    assert_eq!(ask(Some("Basic one")).await, 401);
    assert_eq!(ask(Some("Bearer on")).await, 401);
    assert_eq!(ask(Some("Bearer two")).await, 200);
    assert_eq!(ask(Some("bearer one")).await, 200);
    // The key of the gateway is not a key of the model server.
    assert!(
        server
            .seen()
            .requests
            .iter()
            .all(|asked| !asked.head.contains("authorization"))
    );
    let open = ModelServer::start(vec![Script::json(200, &list)]).await;
    let gateway = TestGateway::before(&open, |_| {}).await;
    gateway
        .client
        .get(gateway.url("/v1/models"))
        .header("authorization", "Bearer theirs")
        .send()
        .await
        .unwrap();
    assert!(
        open.seen().requests[0]
            .head
            .contains("authorization: bearer theirs\r\n")
    );
}

#[tokio::test]
async fn as_many_as_it_takes() {
    let slow = Script::stream(&["a", "b"], "stop").after(Duration::from_millis(100));
    let server = ModelServer::start(vec![slow]).await;
    let gateway = TestGateway::before(&server, |config| config.limits.concurrent = 1).await;
    let first = gateway.post(&request(true)).await;
    let second = gateway.post(&request(true)).await;
    assert_eq!(second.status(), 503);
    assert_eq!(second.headers()["retry-after"], "1");
    assert!(first.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    assert_eq!(server.left(), 0);
}

#[tokio::test]
async fn a_body_counts_as_long_as_its_texts_are_kept() {
    // A call was sent long before the end.
    let pieces = [ADD, "a", "b", "c", "d", "e"];
    for (choice, expected) in [("auto", 503), ("none", 200)] {
        let script = || Script::stream(&pieces, "stop").after(Duration::from_millis(100));
        let server = ModelServer::start(vec![script(), script()]).await;
        let mut body = request(true);
        body["tool_choice"] = json!(choice);
        let length = body.to_string().len();
        let gateway = TestGateway::before(&server, |config| {
            config.limits.body = length + 10;
            config.limits.bodies = length + 10;
        })
        .await;
        let first = gateway.post(&body).await;
        let second = gateway.post(&body).await;
        assert_eq!(second.status(), expected, "{choice}");
        assert!(first.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    }
}

#[tokio::test]
async fn a_head_that_never_ends() {
    let server = ModelServer::start(vec![]).await;
    let gateway = TestGateway::before(&server, |config| {
        config.timeouts.head = Duration::from_millis(200);
    })
    .await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream
        .write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n")
        .await
        .unwrap();
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest));
    closed.await.expect("the connection is closed").unwrap();
}

#[tokio::test]
async fn recorded_replies() {
    let lines = format!(
        "{}\n{}\n",
        json!(format!("I add.\n{ADD}")),
        json!({"content": "It is five."})
    );
    let replay = Replay::read(&lines).unwrap();
    let gateway = TestGateway::with(Upstream::local(replay), |_| {}).await;
    let recorded = gateway.read_answer(&request(true)).await;
    assert_eq!(recorded.readable(), [("add", r#"{"a":5}"#)]);
    let mut next = request(false);
    let call = json!({"id": recorded.calls[0].id, "type": "function", "function": {"name": "add", "arguments": "{\"a\":5}"}});
    next["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": recorded.calls[0].id, "content": "5"}),
    ]);
    let response = gateway.post(&next).await;
    let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "It is five.");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
}

/// One odd tool does not fail the request: it is offered with a looser schema or dropped, and that is reported.
#[tokio::test]
async fn odd_tools() {
    let function = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let even = || request(true)["tools"][0].clone();
    let spaced = json!({"type": "object", "properties": {"first name": {}, "b": {"type": "any"}}, "required": null});
    let loosened_spaced = "loosened /tools/1/function/parameters/properties/b/type";
    let many: Vec<Value> = (0..100).map(|_| json!({"type": "web_search"})).collect();
    let many = [vec![even()], many].concat();
    for (tools, expected, counts) in [
        (vec![even()], "", (0, 0)),
        (
            vec![even(), function("odd", spaced)],
            loosened_spaced,
            (1, 0),
        ),
        (
            vec![function("-a", json!({})), even(), function("-c", json!({}))],
            "dropped /tools/0/function/name, dropped /tools/2/function/name",
            (0, 2),
        ),
        (
            vec![
                even(),
                function("odd", json!({"properties": {"\u{e9},\n": {}}})),
            ],
            "loosened /tools/1/function/parameters/properties/%C3%A9%2C%0A",
            (1, 0),
        ),
        (many, "", (0, 100)),
        // More nested brackets than are read.
        (
            vec![
                even(),
                function("deep", (0..200).fold(json!([]), |inner, _| json!([inner]))),
            ],
            "dropped /tools/1",
            (0, 1),
        ),
    ] {
        for is_streamed in [true, false] {
            let script = if is_streamed {
                Script::stream(&[ADD], "stop")
            } else {
                Script::json(200, &completion(ADD))
            };
            let server = ModelServer::start(vec![script]).await;
            let gateway = TestGateway::before(&server, |_| {}).await;
            let mut asked = request(is_streamed);
            asked["tools"] = json!(tools);
            let response = gateway.post(&asked).await;
            assert_eq!(response.status(), 200);
            let header = response.headers().get("x-plaincall-tools");
            let header = header.map(|value| value.to_str().unwrap().to_owned());
            if counts == (0, 100) {
                let header = header.unwrap();
                assert!(header.len() < 1100 && header.ends_with(" more"), "{header}");
            } else {
                assert_eq!(header.unwrap_or_default(), expected);
            }
            assert!(response.text().await.unwrap().contains("tool_calls"));
            let report = &gateway.reports(1).await[0];
            let found = (report.counts.loosened_tools, report.counts.dropped_tools);
            assert_eq!((found, report.counts.calls), (counts, 1));
            let (_, metrics) = gateway.get("/metrics").await;
            for (name, count) in [("loosened", counts.0), ("dropped", counts.1)] {
                let line = format!("plaincall_{name}_tools_total {count}");
                assert!(metrics.lines().any(|found| found == line), "{metrics}");
            }
            let asked = server.seen().requests[0].json();
            assert!(asked.get("tools").is_none());
            let prompt = asked["messages"][0]["content"].as_str().unwrap();
            assert!(prompt.contains("## add\n"), "{prompt}");
            assert_eq!(prompt.contains("## odd\n"), counts.0 == 1, "{prompt}");
            assert!(!prompt.contains("first name") && !prompt.contains("## -a"));
        }
    }
    // If no tool is left, the model server gets no prompt for tools.
    let server = ModelServer::start(vec![Script::json(200, &completion("Yes."))]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let mut asked = request(false);
    asked["tools"] = json!([{"type": "web_search"}]);
    let response = gateway.post(&asked).await;
    assert_eq!(
        response.headers()["x-plaincall-tools"],
        "dropped /tools/0/type"
    );
    assert!(response.text().await.unwrap().contains("Yes."));
    let asked = server.seen().requests[0].json();
    assert!(asked.get("tools").is_none() && asked["messages"].as_array().unwrap().len() == 1);
}

/// A gateway is a service that another server can route to.
#[tokio::test]
async fn a_gateway_is_a_tower_service() {
    let upstream = Upstream::local(Replay::read("\"Yes.\"").unwrap());
    let config = GatewayConfig::new(upstream, Secret::new("secret"));
    let mut gateway = Gateway::new(config).unwrap();
    let request = http::Request::head("/health").body(Body::default());
    let Ok(response) = gateway.call(request.unwrap()).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-length"], "3");
    let body = response.into_body().collect().await.unwrap();
    assert!(body.to_bytes().is_empty());
}
