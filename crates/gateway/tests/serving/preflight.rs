//! The check of the model server before the first request.

use plaincall_gateway::{Replay, Upstream};
use plaincall_testkit::model_server::{Head, ModelServer, Script};
use serde_json::json;

use crate::serving::test_gateway::TestGateway;

/// Checks the message for a server with this response, address and keys.
async fn check(scripts: Vec<Script>, path: &str, key: Option<&str>, has_keys: bool, words: &str) {
    let server = ModelServer::start(scripts).await;
    let upstream = Upstream::http(
        format!("http://{}{path}", server.address),
        key.map(str::to_owned),
    );
    let gateway = TestGateway::with(upstream, |config| {
        if has_keys {
            config.keys = vec!["one".to_owned()];
        }
    })
    .await;
    let message = gateway.gateway.preflight().await.join("\n");
    assert!(message.contains(words), "{message}");
    assert_eq!(message.is_empty(), words.is_empty(), "{message}");
    let asked = server.seen().requests.swap_remove(0).head;
    assert!(asked.starts_with(&format!(
        "get {}/models http/1.1",
        path.trim_end_matches('/')
    )));
}

#[tokio::test]
async fn messages() {
    let status = |status| Script::json(status, &json!({"error": {"message": "so it is"}}));
    let list = || Script::json(200, &json!({"object": "list", "data": []}));
    check(vec![list()], "/v1", None, false, "").await;
    check(vec![list()], "/v1/", None, false, "").await;
    let below = "but http://";
    check(vec![status(404), list()], "", None, false, below).await;
    check(vec![status(404), list()], "/", None, false, below).await;
    let none = "does not exist; check the URL";
    check(vec![status(404), status(404)], "/v2", None, false, none).await;
    check(vec![status(401)], "/v1", None, false, "").await;
    check(vec![status(401)], "/v1", None, true, "requires a key").await;
    check(
        vec![status(403)],
        "/v1",
        Some("k"),
        false,
        "rejected the key",
    )
    .await;
    check(vec![status(500)], "/v1", None, false, "so it is").await;
    let head = Head::new(200).header("content-type", "text/html");
    let page = Script::new(head, vec![b"<html><title>My router".to_vec()]);
    let words = "with a web page instead of an API response (status 200: My router): check the URL";
    check(vec![page], "/v1", None, false, words).await;
    let unreachable_server = Upstream::http("http://127.0.0.1:1/v1".to_owned(), None);
    let gateway = TestGateway::with(unreachable_server, |_| {}).await;
    let message = gateway.gateway.preflight().await.join("\n");
    assert!(message.contains("cannot be reached: "), "{message}");
    let replay = Upstream::local(Replay::read("\"Yes.\"").unwrap());
    let gateway = TestGateway::with(replay, |_| {}).await;
    assert!(gateway.gateway.preflight().await.is_empty());
}
