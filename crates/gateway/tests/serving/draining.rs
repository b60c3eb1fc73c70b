//! Shutting down the server.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use plaincall_gateway::{ConfigError, Gateway, GatewayConfig, Secret, Upstream};
use plaincall_testkit::model_server::{Head, ModelServer, Script, Then};
use plaincall_testkit::strict_client::read_answer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::serving::test_gateway::{ADD, TestGateway, completion, request};

/// A request without tools.
fn plain(is_streamed: bool) -> Value {
    json!({"messages": [], "stream": is_streamed})
}

#[tokio::test]
async fn draining_completes_requests_and_is_visible() {
    let scripts = vec![Script::stream(&["Yes."], "stop"); 2];
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let response = gateway.post(&request(true)).await;
    assert!(!response.headers().contains_key("connection"));
    gateway.gateway.drain();
    assert_eq!(gateway.get("/ready").await, (503, "draining\n".to_owned()));
    assert_eq!(gateway.get("/health").await.0, 200);
    let response = gateway.post(&request(true)).await;
    assert_eq!(response.headers()["connection"], "close");
    assert_eq!(
        read_answer(&response.bytes().await.unwrap(), false).content,
        "Yes."
    );
}

/// Connections that the listener has not accepted yet, and those without a request so far, are not closed.
#[tokio::test]
async fn requests_in_transit_are_answered() {
    let pause = Duration::from_millis(300);
    let mut scripts = vec![Script::stream(&["One", " two"], "stop").after(pause)];
    scripts.extend(vec![Script::json(200, &completion("Yes.")); 4]);
    let server = ModelServer::start(scripts).await;
    // The first request has the only connection that is accepted.
    let mut gateway = TestGateway::before(&server, |config| config.limits.connections = 1).await;
    let running = gateway.post(&request(true)).await;
    let body = request(false).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut clients = Vec::new();
    for number in 0..4 {
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        // The others send their request after the listener has closed.
        if number < 2 {
            client
                .write_all((head.clone() + &body).as_bytes())
                .await
                .unwrap();
        }
        clients.push(client);
    }
    gateway.stop();
    while TcpStream::connect(gateway.address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for client in &mut clients[2..] {
        client
            .write_all((head.clone() + &body).as_bytes())
            .await
            .unwrap();
    }
    for mut client in clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("connection: close\r\n"), "{answer}");
    }
    let running = read_answer(&running.bytes().await.unwrap(), false);
    assert_eq!(running.content, "One two");
    assert_eq!(gateway.ended().await, 0);
}

#[tokio::test]
async fn unanswered_requests_get_an_error() {
    let texts = ["I add.\n", ADD];
    let table = [
        (
            request(true),
            Script::stream(&texts, "stop").only(1, Then::Stall),
        ),
        (
            plain(true),
            Script::stream(&texts, "stop").only(1, Then::Stall),
        ),
        (request(false), Script::nothing(Then::Stall)),
        (plain(false), Script::nothing(Then::Stall)),
    ];
    for (body, script) in table {
        let server = ModelServer::start(vec![script]).await;
        let mut gateway = TestGateway::before(&server, |config| {
            config.timeouts.drain = Duration::from_millis(100);
        })
        .await;
        let asked = gateway.client.post(gateway.url("/v1/chat/completions"));
        let asked = tokio::spawn(asked.body(body.to_string()).send());
        server.until(|seen| seen.requests.len() == 1).await;
        let is_streamed = body["stream"] == true;
        if is_streamed {
            // The head arrives before the shutdown begins.
            let response = asked.await.unwrap().unwrap();
            gateway.stop();
            let text = response.text().await.expect("it is not cut");
            let last = text.trim_end().rsplit("\n\n").next().unwrap();
            let last: Value = serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(last["error"]["code"], "shutting_down", "{text}");
            assert!(text.contains("I add."), "{text}");
        } else {
            gateway.stop();
            let response = asked.await.unwrap().unwrap();
            assert_eq!(response.status(), 503);
            let error: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
            assert_eq!(error["error"]["code"], "shutting_down");
        }
        server.until(|seen| seen.dropped == 1).await;
        assert!(!gateway.reports(1).await[0].is_abandoned);
        assert_eq!(gateway.ended().await, 1);
    }
}

/// A forwarded response ends with an event only where that is valid: after another event, in a readable stream.
#[tokio::test]
async fn an_incomplete_event_is_not_repaired() {
    let stream = "text/event-stream";
    for (content_type, pieces, is_reported) in [
        (stream, &["data: 1\n\n"][..], true),
        (stream, &["data: 1\r\n\r\n"], true),
        (stream, &["data: 1\n", "\n"], true),
        (stream, &["data: 1\r", "\n\r", "\n"], true),
        (stream, &["data: 1\n"], false),
        (stream, &["data: 1\n\nd"], false),
        (stream, &["data: 1\n\n", "d"], false),
        ("audio/x", &["data: 1\n\n"], false),
    ] {
        let head = Head::new(200).header("content-type", content_type);
        let bytes = pieces.iter().map(|piece| piece.as_bytes().to_vec());
        let script = Script::new(head, bytes.collect()).only(pieces.len(), Then::Stall);
        let server = ModelServer::start(vec![script]).await;
        let mut gateway = TestGateway::before(&server, |config| {
            config.timeouts.drain = Duration::from_millis(100);
        })
        .await;
        let mut response = gateway.post(&plain(true)).await;
        let mut left = pieces.concat().len();
        while left > 0 {
            left -= response.chunk().await.unwrap().unwrap().len();
        }
        gateway.stop();
        assert_eq!(response.chunk().await.is_ok(), is_reported, "{pieces:?}");
        assert_eq!(gateway.ended().await, 1);
    }
}

#[tokio::test]
async fn public_addresses_need_keys() {
    let key = || vec!["key".to_owned()];
    for (address, keys, allow_public_without_keys, is_fine) in [
        ("127.0.0.1:0", vec![], false, true),
        ("0.0.0.0:0", vec![], false, false),
        ("0.0.0.0:0", key(), false, true),
        ("0.0.0.0:0", vec![], true, true),
    ] {
        let model = async |_: Request<Bytes>| Err("it is not asked".into());
        let mut config = GatewayConfig::new(Upstream::local(model), Secret::new("secret"));
        config.keys = keys;
        config.allow_public_without_keys = allow_public_without_keys;
        let listener = TcpListener::bind(address).await.unwrap();
        let served = Gateway::new(config)
            .unwrap()
            .serve(listener, async {})
            .await;
        match served {
            Ok(cut) => assert!(is_fine && cut == 0, "{address}"),
            Err(error) => {
                assert!(!is_fine, "{address}");
                let error = error.downcast::<ConfigError>().unwrap();
                assert!(error.to_string().contains("set client keys"), "{error}");
            }
        }
    }
}
