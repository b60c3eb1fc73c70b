//! Forwarding: other routes, and headers.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use plaincall_gateway::Body;
use plaincall_gateway::{Gateway, GatewayConfig, Secret, Upstream};
use plaincall_testkit::model_server::{Head, ModelServer, Script};
use serde_json::{Value, json};

use crate::serving::test_gateway::{ADD, TestGateway, completion, request};

/// Rate limits of a server.
fn limited(script: Script) -> Script {
    script
        .header("x-ratelimit-remaining-requests", "59")
        .header("openai-processing-ms", "12")
        .header("set-cookie", "a=b")
        .header("x-request-id", "theirs")
}

#[tokio::test]
async fn other_routes_are_passed_on() {
    let answer = b"\0any bytes".to_vec();
    let table = [
        ("GET", "/v1/models", "/v1/models"),
        (
            "GET",
            "/v1/models/meta/llama-3.1?x=%20y",
            "/v1/models/meta/llama-3.1?x=%20y",
        ),
        ("POST", "/v1/embeddings", "/v1/embeddings"),
        ("POST", "/v1/completions", "/v1/completions"),
        ("POST", "/v1/rerank", "/v1/rerank"),
        (
            "POST",
            "/v1/audio/transcriptions",
            "/v1/audio/transcriptions",
        ),
        ("POST", "/v1/images/generations", "/v1/images/generations"),
    ];
    for (method, path, expected) in table {
        let head = Head::new(200).header("content-type", "audio/x");
        let script = limited(Script::new(head, vec![answer.clone()]));
        let server = ModelServer::start(vec![script]).await;
        let gateway = TestGateway::before(&server, |_| {}).await;
        let method = method.parse().unwrap();
        let asked = gateway.client.request(method, gateway.url(path));
        let asked = asked.header("content-type", "text/x").body("{ any }");
        let asked = asked.header("accept", "audio/*").header("cookie", "c=d");
        let response = asked.header("x-request-id", "mine").send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        for (name, value) in [
            ("content-type", Some("audio/x")),
            ("x-ratelimit-remaining-requests", Some("59")),
            ("openai-processing-ms", Some("12")),
            ("x-request-id", Some("mine")),
            ("set-cookie", None),
        ] {
            let found = response
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap());
            assert_eq!(found, value, "{path}: {name}");
        }
        assert_eq!(response.bytes().await.unwrap(), answer);
        let asked = &server.seen().requests[0];
        let head = asked.head.to_lowercase();
        let line = head.lines().next().unwrap();
        assert!(line.contains(&format!(" {expected} http/1.1")), "{line}");
        assert!(head.contains("content-type: text/x\r\n"), "{head}");
        assert!(head.contains("accept: audio/*\r\n"), "{head}");
        assert!(!head.contains("cookie"), "{head}");
        assert_eq!(asked.body, b"{ any }");
        let report = &gateway.reports(1).await[0];
        assert_eq!((report.status, report.is_translated), (200, false));
        assert!(expected.starts_with(report.path.trim_end_matches("/NAME")));
    }
}

#[tokio::test]
async fn the_status_is_passed_on() {
    let scripts = [200, 201, 202, 204, 206].map(|status| {
        let head = Head::new(status).header("content-type", "audio/x");
        Script::new(head, vec![])
    });
    let server = ModelServer::start(scripts.to_vec()).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    for (count, status) in [200, 201, 202, 204, 206].into_iter().enumerate() {
        let asked = gateway.client.post(gateway.url("/v1/images/edits"));
        let response = asked.send().await.unwrap();
        assert_eq!(response.status(), status);
        let content_type = response.headers().get("content-type");
        assert_eq!(content_type.is_some(), status != 204, "{status}");
        response.bytes().await.expect("it is whole");
        assert_eq!(gateway.reports(count + 1).await[count].status, status);
    }
}

#[tokio::test]
async fn a_head_request_is_not_abandoned() {
    let models = json!({"object": "list", "data": []});
    let server = ModelServer::start(vec![Script::json(200, &models)]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let response = gateway.client.head(gateway.url("/v1/models")).send().await;
    let response = response.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    let report = &gateway.reports(1).await[0];
    assert_eq!((report.status, report.is_abandoned), (200, false));
}

/// A web page with any status is an error; other bodies are forwarded.
#[tokio::test]
async fn web_pages_with_a_status_of_success() {
    let page = "<!DOCTYPE html>\n<html><head><title>My router</title></head>";
    let empty = json!({"choices": []}).to_string();
    let bare = json!({"messages": [{"role": "user", "content": "Hello."}]});
    let mut streamed = bare.clone();
    streamed["stream"] = json!(true);
    for (content_type, body, is_page) in [
        ("text/html; charset=utf-8", page, true),
        ("text/html", "\n \n<p>Closed", true),
        ("text/plain", page, true),
        ("", page, true),
        ("text/html", &*empty, false),
        ("text/plain", "a short text <html>", false),
        ("text/plain", "<", false),
        ("text/html", "", false),
        ("", "   ", false),
        ("application/json", page, false),
    ] {
        for (path, asked) in [
            ("/v1/chat/completions", &bare),
            ("/v1/chat/completions", &streamed),
            ("/v1/chat/completions", &request(false)),
            ("/v1/chat/completions", &request(true)),
            ("/v1/embeddings", &bare),
        ] {
            if asked.get("tools").is_some() && !is_page {
                continue;
            }
            let mut head = Head::new(200);
            if !content_type.is_empty() {
                head = head.header("content-type", content_type);
            }
            // One byte at a time.
            let pieces = body.bytes().map(|byte| vec![byte]).collect();
            let server = ModelServer::start(vec![Script::new(head, pieces)]).await;
            let gateway = TestGateway::before(&server, |_| {}).await;
            let response = gateway.client.post(gateway.url(path));
            let response = response.body(asked.to_string()).send().await.unwrap();
            let status = response.status().as_u16();
            let retry = response.headers().get("x-should-retry").cloned();
            let text = response.text().await.unwrap();
            if is_page {
                assert_eq!(status, 502, "{path} {content_type} {body}");
                assert!(
                    text.contains("a web page instead of an API response"),
                    "{text}"
                );
                assert!(text.contains("check the URL"), "{text}");
                assert!(retry.is_some_and(|value| value == "false"));
            } else {
                assert_eq!((status, &*text), (200, body), "{path} {content_type}");
            }
        }
    }
}

/// An encoded body is not read, and is forwarded only if nothing has to be read.
#[tokio::test]
async fn encoded_bodies() {
    let zipped = || {
        let script = Script::json(200, &completion("Yes."));
        script.header("content-encoding", "gzip")
    };
    let table = [
        ("/v1/embeddings", Some("gzip"), 200, Some("gzip")),
        ("/v1/chat/completions", Some("gzip"), 415, None),
        ("/v1/chat/completions", Some("identity"), 502, None),
        ("/v1/chat/completions", None, 502, None),
    ];
    for (path, encoding, status, expected) in table {
        for is_streamed in [true, false] {
            let server = ModelServer::start(vec![zipped()]).await;
            let gateway = TestGateway::before(&server, |_| {}).await;
            let mut asked = gateway.client.post(gateway.url(path));
            if let Some(encoding) = encoding {
                asked = asked.header("content-encoding", encoding);
            }
            let asked = asked.header("accept-encoding", "gzip");
            let asked = asked.body(request(is_streamed).to_string());
            let response = asked.send().await.unwrap();
            assert_eq!(response.status(), status, "{path} {encoding:?}");
            let found = response.headers().get("content-encoding");
            let found = found.map(|value| value.to_str().unwrap());
            assert_eq!(found, expected, "{path} {encoding:?}");
            let seen = server.seen();
            assert_eq!(seen.requests.is_empty(), status == 415);
            for asked in &seen.requests {
                let head = asked.head.to_lowercase();
                assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
                let is_passed = head.contains("content-encoding: gzip\r\n");
                assert_eq!(is_passed, status == 200, "{head}");
            }
        }
    }
}

/// Bytes that a conversion to text would change.
#[tokio::test]
async fn encoded_bodies_are_not_changed() {
    let bytes = b"\x1f\x8b\xc2\x85\xe2\x80\xa8 \"finish_reason\":\"eos\"".to_vec();
    for content_type in ["text/event-stream", "application/json"] {
        let head = Head::new(200)
            .header("content-type", content_type)
            .header("content-encoding", "gzip");
        let server = ModelServer::start(vec![Script::new(head, vec![bytes.clone()])]).await;
        let gateway = TestGateway::before(&server, |_| {}).await;
        let response = gateway.post(&json!({"messages": [], "stream": true})).await;
        assert_eq!(response.headers()["content-encoding"], "gzip");
        assert_eq!(response.bytes().await.unwrap(), bytes, "{content_type}");
    }
}

#[tokio::test]
async fn not_all_is_passed_on() {
    let server = ModelServer::start(vec![]).await;
    let gateway = TestGateway::before(&server, |config| {
        config.keys = vec!["one".to_owned()];
        config.limits.body = 10;
    })
    .await;
    for (method, path, key, status) in [
        ("POST", "/v1/embeddings", "two", 401),
        ("GET", "/v1/models/m", "two", 401),
        ("GET", "/v1/embeddings", "one", 405),
        ("POST", "/v1/files", "one", 404),
        ("GET", "/v1/fine_tuning/jobs", "one", 404),
        ("POST", "/v1/responses/input_tokens", "one", 404),
        ("POST", "/v1/responses", "one", 413),
        ("DELETE", "/v1/models/m", "one", 405),
        ("POST", "/v1/embeddings", "one", 413),
    ] {
        let asked = gateway
            .client
            .request(method.parse().unwrap(), gateway.url(path));
        let asked = asked.bearer_auth(key).body("more than ten");
        let response = asked.send().await.unwrap();
        assert_eq!(response.status(), status, "{method} {path}");
        let text = response.text().await.unwrap();
        assert!(text.starts_with(r#"{"error":{"message":""#), "{text}");
    }
    // Clients normalize such paths, so this test writes to the socket itself.
    let asked = Request::get("/v1/models/%2e%2e/files").header("authorization", "Bearer one");
    let response = gateway
        .gateway
        .handle(asked.body(Body::default()).unwrap())
        .await;
    assert_eq!(response.status(), 400);
    assert!(server.seen().requests.is_empty());
}

#[tokio::test]
async fn headers_of_the_model_s_server_reach_the_client() {
    let busy = json!({"error": {"message": "busy"}});
    let table = [
        (request(true), Script::stream(&["Yes."], "stop"), 200),
        (request(true), Script::json(200, &completion("Yes.")), 200),
        (request(false), Script::json(200, &completion(ADD)), 200),
        (
            json!({"messages": []}),
            Script::json(200, &completion("Yes.")),
            200,
        ),
        (request(true), Script::json(429, &busy), 429),
        (request(false), Script::json(429, &busy), 429),
    ];
    for (body, script, status) in table {
        let server = ModelServer::start(vec![limited(script)]).await;
        let gateway = TestGateway::before(&server, |_| {}).await;
        let response = gateway.post(&body).await;
        assert_eq!(response.status(), status);
        let headers = response.headers();
        assert_eq!(headers["x-ratelimit-remaining-requests"], "59", "{body}");
        assert_eq!(headers["x-request-id"], "mine-1");
        assert!(!headers.contains_key("set-cookie"));
    }
}

#[tokio::test]
async fn key_headers_are_passed_with_the_key() {
    // A key for clients, and a key for the model server.
    for (key, own, is_passed) in [
        (None, None, true),
        (Some("theirs"), None, false),
        (None, Some("ours"), false),
        (Some("theirs"), Some("ours"), false),
    ] {
        let server = ModelServer::start(vec![Script::json(200, &completion("Yes."))]).await;
        let gateway = TestGateway::before(&server, |config| {
            config.keys = key.map(str::to_owned).into_iter().collect();
            let url = format!("{}/chat/completions", server.url());
            config.upstream = Upstream::http(url, own.map(str::to_owned));
        })
        .await;
        let asked = gateway.client.post(gateway.url("/v1/chat/completions"));
        let asked = asked
            .bearer_auth("theirs")
            .header("openai-organization", "org");
        let asked = asked
            .header("traceparent", "00-1")
            .body(request(false).to_string());
        assert_eq!(asked.send().await.unwrap().status(), 200);
        let head = server.seen().requests[0].head.to_lowercase();
        assert!(head.contains("traceparent: 00-1\r\n"), "{head}");
        for name in [
            "authorization: bearer theirs\r\n",
            "openai-organization: org\r\n",
        ] {
            assert_eq!(head.contains(name), is_passed, "{head}");
        }
    }
}

/// Checks the client's response for an error of the model server, with or without a key of the gateway.
async fn check_error(script: Script, key: Option<&str>, body: &Value, status: u16, words: &str) {
    let server = ModelServer::start(vec![script]).await;
    let gateway = TestGateway::before(&server, |config| {
        config.upstream = Upstream::http(server.url(), key.map(str::to_owned));
    })
    .await;
    let response = gateway.post(body).await;
    assert_eq!(response.status(), status);
    let text = response.text().await.unwrap();
    assert!(text.contains(words), "{words}: {text}");
    assert_eq!(text.contains(OWN_KEY), words.contains(OWN_KEY), "{text}");
    let reported = format!("{:?}", gateway.reports(1).await);
    assert!(!reported.contains(OWN_KEY), "{reported}");
}

const OWN_KEY: &str = "sk-the-gateway-s-own";

#[tokio::test]
async fn the_gateway_s_own_key_reaches_no_client() {
    let message = format!("the key {OWN_KEY} may not");
    let error = json!({"error": {"message": message, "code": "invalid_api_key", "param": OWN_KEY}});
    let plain = json!({"messages": []});
    for body in [&plain, &request(true), &request(false)] {
        let refused = |status| Script::json(status, &error);
        let fix = "the operator of the gateway must fix this";
        check_error(refused(401), Some(OWN_KEY), body, 502, fix).await;
        check_error(
            refused(403),
            Some(OWN_KEY),
            body,
            502,
            "the key [key] may not",
        )
        .await;
        check_error(
            refused(429),
            Some(OWN_KEY),
            body,
            429,
            "the key [key] may not",
        )
        .await;
        // It was the client's key.
        check_error(refused(401), None, body, 401, &message).await;
    }
    // In a response with the status 200.
    for body in [request(true), request(false)] {
        let script = Script::json(200, &error);
        check_error(script, Some(OWN_KEY), &body, 502, "the key [key] may not").await;
    }
    // In a stream that has started.
    let started = json!({"choices": [{"index": 0, "delta": {"content": "Well."}}]});
    let events = [started, error].map(|event| format!("data: {event}\n\n").into_bytes());
    let head = Head::new(200).header("content-type", "text/event-stream");
    let script = Script::new(head, events.to_vec());
    let words = "the key [key] may not";
    check_error(script, Some(OWN_KEY), &request(true), 200, words).await;
}

/// Returns the bytes that a client receives, and the headers as text.
async fn answer_of(script: Script, key: Option<&str>, path: &str, body: &Value) -> (u16, String) {
    let server = ModelServer::start(vec![script]).await;
    let gateway = TestGateway::before(&server, |config| {
        config.upstream = Upstream::http(server.url(), key.map(str::to_owned));
    })
    .await;
    let asked = gateway.client.post(gateway.url(path));
    let response = asked.body(body.to_string()).send().await.unwrap();
    let status = response.status().as_u16();
    let length = response.content_length();
    let head = format!("{:?}", response.headers());
    let bytes = response.bytes().await.unwrap();
    assert!(length.is_none_or(|length| length == bytes.len() as u64));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (status, format!("{head}\n{text}"))
}

/// The key never reaches a client, for any response of the model server and any split.
#[tokio::test]
async fn the_gateway_s_own_key_is_in_no_answer() {
    let plain = json!({"messages": []});
    let streamed = json!({"messages": [], "stream": true});
    let chunk = json!({"id": OWN_KEY, "model": OWN_KEY, "x": {"key": OWN_KEY},
        "choices": [{"index": 0, "delta": {"content": format!("It is {OWN_KEY}."), "y": OWN_KEY}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let events = format!(": {OWN_KEY}\n\ndata: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    let mut whole = completion(&format!("It is {OWN_KEY}."));
    whole["z"] = json!([OWN_KEY]);
    let whole = whole.to_string().replacen("sk-", "\\u0073k-", 1);
    let json = "application/json; charset=utf-8";
    for (path, body, content_type, answer) in [
        ("/v1/chat/completions", &plain, json, &*whole),
        (
            "/v1/chat/completions",
            &streamed,
            "text/event-stream",
            &*events,
        ),
        ("/v1/chat/completions", &request(false), json, &*whole),
        (
            "/v1/chat/completions",
            &request(true),
            "text/event-stream",
            &*events,
        ),
        ("/v1/chat/completions", &request(true), json, &*whole),
        ("/v1/embeddings", &plain, json, &*whole),
        (
            "/v1/audio/speech",
            &plain,
            "audio/x",
            &*format!("\0{OWN_KEY}\0"),
        ),
        ("/v1/audio/speech", &plain, "", &*OWN_KEY.repeat(3)),
    ] {
        for size in [1, 7, answer.len()] {
            let head = Head::new(200)
                .header("x-ratelimit-remaining-requests", OWN_KEY)
                .header("x-ratelimit-remaining-tokens", "9");
            let head = match content_type {
                "" => head,
                _ => head.header("content-type", content_type),
            };
            let pieces = answer.as_bytes().chunks(size).map(<[u8]>::to_vec);
            let script = Script::new(head, pieces.collect());
            let (status, got) = answer_of(script, Some(OWN_KEY), path, body).await;
            assert_eq!(status, 200, "{got}");
            assert!(!got.contains(OWN_KEY), "{path} {size}: {got}");
            assert!(!got.contains(&OWN_KEY[2..]), "{path} {size}: {got}");
            assert!(
                got.contains("[key]") && got.contains("remaining-tokens"),
                "{got}"
            );
        }
    }
    // A body that cannot be searched is not sent.
    let zipped = Script::json(200, &completion("Yes.")).header("content-encoding", "gzip");
    for (key, status) in [(Some(OWN_KEY), 502), (None, 200)] {
        let (found, _) = answer_of(zipped.clone(), key, "/v1/embeddings", &plain).await;
        assert_eq!(found, status);
    }
}

/// Finish reasons are those of the API, and no client splits an event, even if it splits lines at every separator.
#[tokio::test]
async fn unreadable_responses_are_fixed() {
    let plain = json!({"messages": []});
    let streamed = json!({"messages": [], "stream": true});
    for (reason, expected) in [
        ("stop", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("abort", "length"),
    ] {
        let mut whole = completion("x\u{2028}y\u{85}");
        whole["choices"][0]["finish_reason"] = json!(reason);
        let stream = || Script::stream(&["x\u{2028}y", "\u{2029}\u{85}z"], reason);
        for (body, script) in [
            (&plain, Script::json(200, &whole)),
            (&request(false), Script::json(200, &whole)),
            (&streamed, stream()),
            (&request(true), stream()),
        ] {
            let is_stream = body["stream"] == true;
            let (status, got) = answer_of(script, None, "/v1/chat/completions", body).await;
            assert_eq!(status, 200);
            let field = format!("\"finish_reason\":\"{expected}\"");
            assert!(got.contains(&field), "{reason}: {got}");
            assert_eq!(got.matches("\"finish_reason\":\"").count(), 1, "{got}");
            if is_stream {
                assert!(!got.contains(['\u{85}', '\u{2028}', '\u{2029}']), "{got}");
                assert!(got.contains("x\\u2028y"), "{got}");
            }
        }
    }
}

/// Names of models are forwarded unchanged, except those that a server could interpret as another path.
#[tokio::test]
async fn paths() {
    let model = async |asked: Request<Bytes>| {
        let path = asked.uri().path().to_owned();
        Ok(Response::new(Body::from(path)))
    };
    let config = GatewayConfig::new(Upstream::local(model), Secret::new("secret"));
    let gateway = Gateway::new(config).unwrap();
    for (path, behind) in [
        ("/v1/models", Some("/models")),
        ("/v1/models/qwen3:8b", Some("/models/qwen3:8b")),
        ("/v1/models/meta/llama-3.1", Some("/models/meta/llama-3.1")),
        (
            "/v1/models/meta%2Fllama-3.1",
            Some("/models/meta%2Fllama-3.1"),
        ),
        ("/v1/models/a..b", Some("/models/a..b")),
        ("/v1/models/../files", None),
        ("/v1/models/a/../../files", None),
        ("/v1/models/%2e%2E/files", None),
        ("/v1/models/.%2e", None),
        ("/v1/models/./a", None),
        ("/v1/models/..%2ffiles", None),
        ("/v1/models/..\\files", None),
        ("/v1/models/a.b;c=d", None),
        ("/v1/models/a%20b", Some("/models/a%20b")),
        ("/v1/models/100%25", None),
        ("/v1/models/50%", None),
        ("/v1/models/..;/admin", None),
        ("/v1/models/..;a=b/admin", None),
        ("/v1/models/.;/admin", None),
        ("/v1/models/..%3b/admin", None),
        ("/v1/models/%252e%252e/admin", None),
        ("/v1/models/%25252e%25252e/admin", None),
        ("/v1/models/%2525252e%2525252e/admin", None),
        ("/v1/models/%25%32%65%25%32%65/admin", None),
        ("/v1/models/a%2f..%2f..%2fadmin", None),
        ("/v1/models/..%5cadmin", None),
        ("/v1/models/..%00/admin", None),
        ("/v1/models/..%20/admin", None),
        ("/v1/models/..%3f", None),
        ("/v2/models", None),
    ] {
        let asked = Request::get(path).body(Body::default()).unwrap();
        let response = gateway.handle(asked).await;
        let expected = match behind {
            Some(_) => 200,
            None if path.starts_with("/v1/") => 400,
            None => 404,
        };
        assert_eq!(response.status(), expected, "{path}");
        if let Some(behind) = behind {
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, format!("/v1{behind}"));
        }
    }
}
