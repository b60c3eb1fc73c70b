//! Limits of client keys.

use plaincall_gateway::server::KeyLimits;
use plaincall_gateway::{GatewayConfig, Secret};
use plaincall_testkit::model_server::{ModelServer, Script, Then};
use reqwest::Response;
use serde_json::{Value, json};

use crate::serving::test_gateway::{TestGateway, request, upstream};

const LIMITED: &str = "a-key-with-limits";
const FREE: &str = "a-key-without-limits";

fn limits(concurrent: Option<u32>, per_minute: Option<u32>) -> Vec<(String, KeyLimits)> {
    let mut limits = KeyLimits::default();
    limits.concurrent = concurrent;
    limits.per_minute = per_minute;
    vec![(LIMITED.to_owned(), limits)]
}

async fn gateway(server: &ModelServer, by_key: Vec<(String, KeyLimits)>) -> TestGateway {
    TestGateway::before(server, |config| {
        config.keys = vec![LIMITED.to_owned(), FREE.to_owned()];
        config.limits_by_key = by_key;
    })
    .await
}

impl TestGateway {
    async fn ask(&self, key: &str, path: &str, body: &Value) -> Response {
        let request = self.client.post(self.url(path)).bearer_auth(key);
        request.body(body.to_string()).send().await.unwrap()
    }

    /// Asks with the key that has limits. Returns the time until the next try, if there is one.
    async fn wait(&self) -> Option<u64> {
        let list = self.client.get(self.url("/v1/models"));
        let response = list.bearer_auth(LIMITED).send().await.unwrap();
        let wait = response.headers().get("retry-after");
        let wait = wait.map(|wait| wait.to_str().unwrap().parse().unwrap());
        assert_eq!(response.status() == 429, wait.is_some());
        wait
    }

    /// Replaces the keys and their limits.
    fn reload_keys(&self, server: &ModelServer, keys: &[&str], by_key: Vec<(String, KeyLimits)>) {
        let mut config = GatewayConfig::new(upstream(server), Secret::new("ignored"));
        config.keys = keys.iter().map(|key| (*key).to_owned()).collect();
        config.limits_by_key = by_key;
        self.gateway.reload(config).unwrap();
    }

    async fn has_metric(&self, line: &str) {
        let (_, metrics) = self.get("/metrics").await;
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}: {metrics}"
        );
    }
}

fn list() -> Script {
    Script::json(200, &json!({"object": "list", "data": []}))
}

#[tokio::test]
async fn concurrent_requests() {
    let stalled = Script::stream(&["I"], "stop").only(1, Then::Stall);
    let server = ModelServer::start(vec![stalled]).await;
    let gateway = gateway(&server, limits(Some(1), None)).await;
    let chat = "/v1/chat/completions";
    let running = gateway.ask(LIMITED, chat, &request(true)).await;
    assert_eq!(running.status(), 200);
    for (path, is_messages) in [
        (chat, false),
        ("/v1/responses", false),
        ("/v1/messages", true),
        ("/v1/messages/count_tokens", true),
        ("/v1/embeddings", false),
    ] {
        let response = gateway.ask(LIMITED, path, &request(true)).await;
        assert_eq!(response.status(), 429, "{path}");
        assert_eq!(response.headers()["retry-after"], "1", "{path}");
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        let error = &body["error"];
        assert_eq!(error["type"], "rate_limit_error", "{path}: {body}");
        assert_eq!(body["type"] == "error", is_messages, "{path}: {body}");
        if !is_messages {
            assert_eq!(error["code"], "rate_limit_exceeded", "{path}: {body}");
        }
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("at most 1"), "{message}");
    }
    // The limit is that of one key, and the rejected requests have not reached the server.
    server.play([list()]);
    let free = gateway.client.get(gateway.url("/v1/models"));
    assert_eq!(free.bearer_auth(FREE).send().await.unwrap().status(), 200);
    assert_eq!(server.seen().requests.len(), 2);
    gateway
        .has_metric(r#"plaincall_key_requests_active{key="1"} 1"#)
        .await;
    gateway
        .has_metric(r#"plaincall_key_limited_requests_total{key="1",limit="concurrent"} 5"#)
        .await;
    gateway
        .has_metric(r#"plaincall_errors_total{type="rate_limit_error"} 5"#)
        .await;
    let reports = gateway.reports(6).await;
    assert_eq!(reports[0].error_type, Some("rate_limit_error"));
    assert_eq!((reports[0].key, reports[0].status), (Some(1), 429));

    // The request also counts under new settings.
    gateway.reload_keys(&server, &[FREE, LIMITED], limits(Some(1), None));
    assert_eq!(gateway.wait().await, Some(1));
    gateway
        .has_metric(r#"plaincall_key_requests_active{key="2"} 1"#)
        .await;
    gateway.reload_keys(&server, &[LIMITED], limits(Some(2), None));
    server.play([list()]);
    assert_eq!(gateway.wait().await, None);
    gateway.reload_keys(&server, &[LIMITED], limits(Some(1), None));
    assert_eq!(gateway.wait().await, Some(1));
    drop(running);
    server.until(|seen| seen.busy == 0).await;
    server.play([list()]);
    for _ in 0..500 {
        if gateway.wait().await.is_none() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the key is still in use");
}

#[tokio::test]
async fn requests_per_minute() {
    let server = ModelServer::start(vec![list(); 4]).await;
    let gateway = gateway(&server, limits(None, Some(2))).await;
    assert_eq!([gateway.wait().await, gateway.wait().await], [None; 2]);
    assert_eq!(gateway.wait().await, Some(30));
    gateway
        .has_metric(r#"plaincall_key_limited_requests_total{key="1",limit="rate"} 1"#)
        .await;
    // New settings give no new requests. The key is in the list twice, and is still one key.
    gateway.reload_keys(&server, &[LIMITED, LIMITED], limits(None, Some(2)));
    assert_eq!(gateway.wait().await, Some(30));
    gateway.reload_keys(&server, &[LIMITED], limits(None, Some(60)));
    assert_eq!(gateway.wait().await, Some(1));
    gateway.reload_keys(&server, &[LIMITED], limits(None, None));
    assert_eq!(gateway.wait().await, None);
}
