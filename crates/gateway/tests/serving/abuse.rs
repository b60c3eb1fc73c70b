//! Requests that no client should send, byte for byte, and clients that disconnect.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use plaincall_gateway::Body;
use plaincall_gateway::server::Timeouts;
use plaincall_gateway::{Gateway, GatewayConfig, Secret, Upstream};
use plaincall_testkit::model_server::{ModelServer, Script, Then};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::serving::test_gateway::{TestGateway, nothing_is_left, request};

/// Much longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of a body for the gateways of these tests.
const BODY: usize = 100_000;

const CHAT: &str = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";

/// A gateway with small limits.
async fn small(server: &ModelServer, set: impl FnOnce(&mut Timeouts)) -> TestGateway {
    let gateway = TestGateway::before(server, |config| {
        config.limits.body = BODY;
        config.limits.head = 8 << 10;
        set(&mut config.timeouts);
    });
    gateway.await
}

/// A chat request with this body.
fn chat(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("{CHAT}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Returns the response to these bytes, until the connection is closed.
async fn answer(gateway: &TestGateway, bytes: &[u8]) -> Vec<u8> {
    let stream = TcpStream::connect(gateway.address).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    // A server that responds early need not read the rest.
    let _ = to.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, from.read_to_end(&mut answer)).await;
    read.expect("the connection is closed").expect("in peace");
    answer
}

/// Sends these bytes and checks the answer: its status, a part of the message, and the named field. Without an
/// expected message there is no body: invalid HTTP gets only a status.
async fn check(gateway: &TestGateway, bytes: &[u8], status: u16, words: &str, param: Option<&str>) {
    let answer = answer(gateway, bytes).await;
    let answer = String::from_utf8(answer).unwrap();
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{begin}: {answer}"));
    let found = head.split(' ').nth(1).unwrap_or_default();
    assert_eq!(found, status.to_string(), "{begin}: {answer}");
    if words.is_empty() {
        assert_eq!(body, "", "{begin}");
        return;
    }
    assert!(
        head.to_lowercase()
            .contains("content-type: application/json"),
        "{head}"
    );
    let value: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{begin}: {body}"));
    let error = value["error"].as_object().expect("an error");
    let names: Vec<&str> = error.keys().map(String::as_str).collect();
    assert_eq!(names, ["message", "type", "param", "code"], "{body}");
    assert_eq!(error["type"], "invalid_request_error", "{body}");
    assert!(
        error["message"].as_str().unwrap().contains(words),
        "{begin}: {body}"
    );
    assert_eq!(error["param"].as_str(), param, "{begin}: {body}");
}

#[tokio::test]
async fn bodies_that_are_none() {
    let server = ModelServer::start(vec![]).await;
    let gateway = small(&server, |_| {}).await;
    let deep = "[".repeat(40_000);
    let in_tool = format!(
        r#"{{"messages":[],"tools":[{{"type":"function","function":{{"name":"a","parameters":{deep}"#
    );
    let many = format!("{{{}}}", r#""messages":[],"#.repeat(5000));
    let table: &[(&[u8], &str, Option<&str>)] = &[
        (b"", "cannot be parsed", None),
        (b"null", "cannot be parsed", None),
        (b"{", "cannot be parsed", None),
        (b"\xEF\xBB\xBF{}", "cannot be parsed", None),
        (b"{\"messages\":[]}}", "cannot be parsed", None),
        (
            b"{\"messages\":[],\"x\":\"\xFF\"}",
            "cannot be parsed",
            None,
        ),
        (
            b"{\"messages\":[],\"\xED\xA0\x80\":1}",
            "cannot be parsed",
            None,
        ),
        (
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
            "cannot be parsed",
            None,
        ),
        (deep.as_bytes(), "cannot be parsed", None),
        (in_tool.as_bytes(), "cannot be parsed", Some("tools")),
        (many.as_bytes(), "cannot be parsed", None),
        (br#"{"messages":7}"#, "expected a list", Some("messages")),
        (
            br#"{"messages":[7]}"#,
            "expected an object",
            Some("messages[0]"),
        ),
    ];
    for (body, words, param) in table {
        check(&gateway, &chat(body), 400, words, *param).await;
    }
    assert!(server.seen().requests.is_empty());
    let reports = gateway.reports(table.len()).await;
    assert!(reports.iter().all(|report| report.status == 400));
}

#[tokio::test]
async fn texts_that_are_none_are_marked_so() {
    let server = ModelServer::start(vec![Script::stream(&["Yes."], "stop")]).await;
    let gateway = small(&server, |_| {}).await;
    let body = request(true).to_string().replace("Add.", "Add 5?");
    let mut body = body.into_bytes();
    let at = body.iter().rposition(|byte| *byte == b'5').unwrap();
    body[at] = 0xFF;
    let answer = answer(&gateway, &chat(body)).await;
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    let asked = server.seen().requests[0].json();
    assert_eq!(asked["messages"][1]["content"], "Add \u{FFFD}?");
}

#[tokio::test]
async fn bodies_that_are_too_long() {
    let server = ModelServer::start(vec![]).await;
    let gateway = small(&server, |_| {}).await;
    let words = "exceeds 100000 bytes";
    // The announced length counts before any byte of the body has arrived.
    let asking = format!("{CHAT}expect: 100-continue\r\n");
    let head = format!("{asking}content-length: 100001\r\n\r\n");
    check(&gateway, head.as_bytes(), 413, words, None).await;
    let head = format!("{asking}content-length: 4611686018427387904\r\n\r\n");
    check(&gateway, head.as_bytes(), 413, words, None).await;
    // A client that sends everything before it reads gets the answer too.
    check(&gateway, &chat(vec![b' '; 20 * BODY]), 413, words, None).await;
    let chunk = format!("{:x}\r\n{}\r\n", 1000, " ".repeat(1000));
    let chunked = format!(
        "{CHAT}transfer-encoding: chunked\r\n\r\n{}0\r\n\r\n",
        chunk.repeat(2000)
    );
    check(&gateway, chunked.as_bytes(), 413, words, None).await;
}

#[tokio::test]
async fn malformed_requests() {
    let server = ModelServer::start(vec![]).await;
    let gateway = small(&server, |_| {}).await;
    let with = |header: &str| format!("{CHAT}{header}\r\n\r\n{{}}").into_bytes();
    let chunked =
        |body: &str| format!("{CHAT}transfer-encoding: chunked\r\n\r\n{body}").into_bytes();
    let long = format!("x: {}", "y".repeat(10_000));
    let many = "x: y\r\n".repeat(200);
    let table: &[(Vec<u8>, u16, &str)] = &[
        (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
            400,
            "",
        ),
        (b"hello\r\n\r\n".to_vec(), 400, ""),
        (b"GET /health HTTP/3.0\r\n\r\n".to_vec(), 400, ""),
        (b"GET /health\r\n\r\n".to_vec(), 400, ""),
        (b"G\xC3\x89T /health HTTP/1.1\r\n\r\n".to_vec(), 400, ""),
        (with("content-length: two"), 400, ""),
        (with("content-length: -2"), 400, ""),
        (with("content-length: 2\r\ncontent-length: 3"), 400, ""),
        (with("transfer-encoding: gzip"), 400, ""),
        (with(&long), 431, ""),
        (with(&many), 431, ""),
        (
            format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(10_000)).into_bytes(),
            431,
            "",
        ),
        (chunked("zz\r\n{}\r\n0\r\n\r\n"), 400, "is incomplete"),
        (chunked("fffffffffffffffff\r\n"), 400, "is incomplete"),
        (chunked("2\r\n{}{}{}\r\n0\r\n\r\n"), 400, "is incomplete"),
    ];
    for (bytes, status, words) in table {
        check(&gateway, bytes, *status, words, None).await;
    }
    // Another protocol, without a status.
    let newer = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert_eq!(answer(&gateway, newer).await, b"");
}

#[tokio::test]
async fn paths_and_methods_that_are_none() {
    let server = ModelServer::start(vec![]).await;
    let gateway = small(&server, |_| {}).await;
    let paths = [
        ("/v1/chat/completions", "POST"),
        ("/v1/models", "GET"),
        ("/health", "GET"),
        ("/ready", "GET"),
        ("/metrics", "GET"),
    ];
    for (path, right) in paths {
        for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"] {
            if method != right {
                let bytes = format!(
                    "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
                );
                check(&gateway, bytes.as_bytes(), 405, right, None).await;
                let answer = answer(&gateway, bytes.as_bytes()).await;
                let answer = String::from_utf8(answer).unwrap().to_lowercase();
                let allow = answer.lines().find_map(|line| line.strip_prefix("allow: "));
                assert!(
                    allow.is_some_and(|allow| allow.contains(&right.to_lowercase())),
                    "{answer}"
                );
            }
        }
    }
    for path in [
        "/",
        "/v1",
        "/v1/chat",
        "/v1/complete",
        "/v1/chat/completions/",
        "/v1/../health",
        "//health",
    ] {
        for method in ["GET", "POST"] {
            let bytes =
                format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
            check(
                &gateway,
                bytes.as_bytes(),
                404,
                &format!("unknown endpoint {method} {path}"),
                None,
            )
            .await;
        }
    }
}

/// The connection is reusable after a rejected request.
#[tokio::test]
async fn the_body_of_a_rejected_request_is_drained() {
    let server = ModelServer::start(vec![]).await;
    let gateway = TestGateway::before(&server, |config| {
        config.limits.body = BODY;
        config.keys = vec!["key".to_owned()];
    })
    .await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let ask = |key: &str, len: usize| {
        let body = " ".repeat(len);
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-length: {len}\r\n\r\n{body}"
        )
    };
    let asked = [
        ask("key", BODY + BODY / 2),
        ask("other", BODY / 2),
        "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_owned(),
    ]
    .concat();
    stream.write_all(asked.as_bytes()).await.unwrap();
    let mut answers = String::new();
    let read = tokio::time::timeout(TIMEOUT, stream.read_to_string(&mut answers)).await;
    read.expect("the connection is closed").expect("in peace");
    let places = [" 413 ", " 401 ", " 200 "].map(|status| answers.find(status));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{answers}"
    );
}

/// Sends one byte at a time and reads the response.
async fn drip(gateway: &TestGateway, begin: &[u8], drops: &[u8]) -> Vec<u8> {
    let stream = TcpStream::connect(gateway.address).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    to.write_all(begin).await.unwrap();
    let drops = drops.to_vec();
    let dripping = tokio::spawn(async move {
        for drop in drops.iter().cycle() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if to.write_all(&[*drop]).await.is_err() {
                return;
            }
        }
    });
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, from.read_to_end(&mut answer)).await;
    // A reset also ends the connection.
    let _ = read.expect("the connection is closed");
    dripping.abort();
    answer
}

#[tokio::test]
async fn slow_requests_time_out() {
    let server = ModelServer::start(vec![]).await;
    let gateway = small(&server, |timeouts| {
        timeouts.head = Duration::from_millis(300);
        timeouts.body = Duration::from_millis(300);
    })
    .await;
    // A head that never ends, and one that never begins.
    let counted = format!("{CHAT}content-length: 1000\r\n\r\n");
    let in_chunks = format!("{CHAT}transfer-encoding: chunked\r\n\r\n");
    let (head, body, chunk, silence) = tokio::join!(
        drip(&gateway, CHAT.as_bytes(), b"x: y\r\n"),
        drip(&gateway, counted.as_bytes(), b" "),
        drip(&gateway, in_chunks.as_bytes(), b"1\r\n \r\n"),
        async {
            let mut stream = TcpStream::connect(gateway.address).await.unwrap();
            let mut read = Vec::new();
            let closed = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut read));
            closed.await.expect("the connection is closed").unwrap();
            read
        },
    );
    assert_eq!((head.len(), silence.len()), (0, 0));
    for answer in [body, chunk] {
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(
            answer.contains("timed out while reading the request body"),
            "{answer}"
        );
    }
    nothing_is_left(&gateway, &server).await;
}

#[tokio::test]
async fn clients_that_go_away() {
    let asked = request(true).to_string();
    let whole = chat(&asked);
    let stalling = || Script::stream(&["I add.\n"], "stop").only(1, Then::Stall);
    let silent = || Script::nothing(Then::Stall);
    let steps: &[(&str, usize, Option<Script>)] = &[
        ("before the head", 0, None),
        ("in the head", 30, None),
        ("behind the head", whole.len() - asked.len(), None),
        ("in the body", whole.len() - 10, None),
        ("while it waits", whole.len(), Some(silent())),
        (
            "before a piece",
            whole.len(),
            Some(stalling().only(0, Then::Stall)),
        ),
        ("in the answer", whole.len(), Some(stalling())),
    ];
    let server = ModelServer::start(vec![]).await;
    let gateway = TestGateway::before(&server, |config| {
        // The keep-alive is not what detects this.
        config.timeouts.keep_alive = Duration::from_hours(1);
    })
    .await;
    let (mut reported, mut dropped) = (0, 0);
    for (step, sent, script) in steps {
        for how in ["close", "reset", "half"] {
            server.play(script.clone());
            let mut stream = TcpStream::connect(gateway.address).await.unwrap();
            stream.write_all(&whole[..*sent]).await.unwrap();
            if script.is_some() {
                server.until(|seen| seen.busy == 1).await;
                dropped += 1;
            }
            if *step == "in the answer" {
                let mut begin = [0; 10];
                let read = tokio::time::timeout(TIMEOUT, stream.read_exact(&mut begin));
                read.await.unwrap().unwrap();
            }
            match how {
                "reset" => {
                    stream.set_zero_linger().unwrap();
                    drop(stream);
                }
                "half" => stream.shutdown().await.unwrap(),
                _ => drop(stream),
            }
            nothing_is_left(&gateway, &server).await;
            assert_eq!(server.seen().dropped, dropped, "{step}, {how}");
            reported += usize::from(*sent + asked.len() >= whole.len());
            let reports = gateway.reports(reported).await;
            assert!(
                reports
                    .iter()
                    .all(|report| report.is_abandoned || report.status == 400),
                "{step}, {how}: {reports:?}"
            );
        }
    }
}

/// While another request is pending, only the next comment detects the end of a connection.
#[tokio::test]
async fn a_client_that_goes_away_after_asking_twice() {
    let server = ModelServer::start(vec![Script::nothing(Then::Stall)]).await;
    let gateway = TestGateway::before(&server, |config| {
        config.timeouts.keep_alive = Duration::from_millis(50);
    })
    .await;
    let asked = chat(request(true).to_string());
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(&asked.repeat(2)).await.unwrap();
    server.until(|seen| seen.busy == 1).await;
    drop(stream);
    server.until(|seen| seen.dropped == 1).await;
    nothing_is_left(&gateway, &server).await;
}

#[tokio::test]
async fn requests_in_one_go() {
    let scripts = ["One.", "Two.", "Three."].map(|text| Script::stream(&[text], "stop"));
    let server = ModelServer::start(scripts.to_vec()).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let body = request(true).to_string();
    let one = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let last = String::from_utf8(chat(&body)).unwrap();
    let answers = answer(&gateway, format!("{one}{one}{last}").as_bytes()).await;
    let answers = String::from_utf8(answers).unwrap();
    let places: Vec<usize> = ["One.", "Two.", "Three."]
        .iter()
        .map(|text| answers.find(text).expect("each is answered"))
        .collect();
    assert!(places.is_sorted(), "{answers}");
    assert_eq!(answers.matches("data: [DONE]\n\n").count(), 3);
}

#[tokio::test]
async fn the_older_protocol() {
    let server = ModelServer::start(vec![Script::stream(&["Yes."], "stop")]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let body = request(true).to_string();
    let asked = format!(
        "POST /v1/chat/completions HTTP/1.0\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = answer(&gateway, asked.as_bytes()).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, events) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.0 200 ") && !head.contains("chunked"),
        "{head}"
    );
    let found = plaincall_testkit::strict_client::read_answer(events.as_bytes(), false);
    assert_eq!(found.content, "Yes.");
}

#[tokio::test]
async fn a_client_that_waits_to_be_asked_for_the_body() {
    let server = ModelServer::start(vec![Script::json(200, &json!({"choices": []}))]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let body = json!({"messages": []}).to_string();
    let head = format!(
        "{CHAT}expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut found = [0; 25];
    let read = tokio::time::timeout(TIMEOUT, stream.read_exact(&mut found));
    read.await.unwrap().unwrap();
    assert_eq!(&found, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer));
    read.await.unwrap().unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
}

/// The maximum number of tools, and one more; the size of a tool besides its name.
fn tools(count: usize, parameters: &Value) -> Value {
    let tool = |number| json!({"type": "function", "function": {"name": format!("t{number}"), "parameters": parameters}});
    let tools: Vec<Value> = (0..count).map(tool).collect();
    json!({"messages": [{"role": "user", "content": "Hello."}], "tools": tools})
}

#[tokio::test]
async fn requests_with_too_many_values() {
    let server = ModelServer::start(vec![]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let many = tools(1025, &json!({})).to_string();
    check(
        &gateway,
        &chat(many),
        400,
        "exceeds 1024 definitions",
        Some("tools"),
    )
    .await;
    let mut long = tools(1, &json!({}));
    long["tools"][0]["function"]["description"] = json!("x".repeat(4 << 20));
    check(
        &gateway,
        &chat(long.to_string()),
        400,
        "exceeds 4194304 bytes",
        Some("tools"),
    )
    .await;
    for piece in ["{}", "[]", "1"] {
        let pieces = format!("{},1", vec![piece; 250_000].join(","));
        for body in [
            format!(r#"{{"messages":[{pieces}]}}"#),
            format!(r#"{{"messages":[],"any":[{pieces}]}}"#),
        ] {
            check(
                &gateway,
                &chat(body),
                400,
                "more than 250000 JSON values",
                None,
            )
            .await;
        }
    }
    // Each object, list and comma counts, but none in a string, and escapes do not end a string.
    for (first, counted) in [
        ("1", 0),
        ("{}", 1),
        (r#"[{"b":"c"},2]"#, 3),
        (r#""{[,\"{[,\\\"[,""#, 0),
        (r#"["\\",1]"#, 2),
    ] {
        for (left, words) in [(0, "expected a list"), (1, "more than 250000 JSON values")] {
            // Besides these: an object, its comma and a list.
            let others = ",1".repeat(249_997 - counted + left);
            let body = format!(r#"{{"messages":[{first}{others}]}}"#);
            let body = body.replacen('[', "7,\"any\":[", 1);
            let body = chat(body);
            let param = (left == 0).then_some("messages");
            check(&gateway, &body, 400, words, param).await;
        }
    }
    assert!(server.seen().requests.is_empty());
}

/// While a long request is processed, others are answered, even on one thread.
#[tokio::test]
async fn a_long_request_blocks_no_other() {
    let is_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_asked);
    let model = move |_: Request<Bytes>| {
        asked.store(true, Ordering::Relaxed);
        std::future::ready(Err("it cannot say".into()))
    };
    let config = GatewayConfig::new(Upstream::local(model), Secret::new("secret"));
    let gateway = Gateway::new(config).unwrap();
    let mut long = tools(1, &json!({}));
    long["messages"][0]["content"] = json!("x".repeat(300 << 10));
    let long = Bytes::from(long.to_string());
    let health = Request::get("/health").body(Body::default()).unwrap();
    // Another thread prepares it, sometimes faster than this one. The request to the model is sent only when the
    // future is polled again.
    let mut attempts = 0..20;
    let answering = loop {
        assert!(attempts.next().is_some(), "it is thought about here");
        is_asked.store(false, Ordering::Relaxed);
        let request = Request::post("/v1/chat/completions").body(Body::from(long.clone()));
        let mut answering = Box::pin(gateway.handle(request.unwrap()));
        if poll_fn(|context| Poll::Ready(answering.as_mut().poll(context)))
            .await
            .is_pending()
        {
            break answering;
        }
    };
    assert_eq!(gateway.handle(health).await.status(), 200);
    assert!(!is_asked.load(Ordering::Relaxed));
    assert_eq!(answering.await.status(), 502);
    assert!(is_asked.load(Ordering::Relaxed));
}

/// The body for the model server is as long as that of the client. Reading it takes another turn.
#[tokio::test]
async fn a_long_count_blocks_no_other() {
    let polls = Arc::new(AtomicUsize::new(0));
    let polls_before = Arc::new(AtomicUsize::new(0));
    let (seen, before) = (Arc::clone(&polls), Arc::clone(&polls_before));
    let model = move |_: Request<Bytes>| {
        before.store(seen.load(Ordering::Relaxed), Ordering::Relaxed);
        std::future::ready(Err("it cannot say".into()))
    };
    let config = GatewayConfig::new(Upstream::local(model), Secret::new("secret"));
    let gateway = Gateway::new(config).unwrap();
    let long = json!([{"role": "user", "content": "x".repeat(300 << 10)}]);
    let long = Bytes::from(json!({"model": "m", "messages": long}).to_string());
    // Another thread is sometimes faster than this one, which then continues in the same turn.
    let mut attempts = 0..20;
    while polls_before.load(Ordering::Relaxed) < 3 {
        assert!(attempts.next().is_some(), "it is read here");
        polls.store(0, Ordering::Relaxed);
        let request = Request::post("/v1/messages/count_tokens").body(Body::from(long.clone()));
        let mut counting = Box::pin(gateway.handle(request.unwrap()));
        let counted = poll_fn(|context| {
            polls.fetch_add(1, Ordering::Relaxed);
            counting.as_mut().poll(context)
        });
        let counted = counted.await;
        assert_eq!(counted.status(), 200);
        assert_eq!(counted.headers()["x-plaincall-token-count"], "estimate");
    }
}
