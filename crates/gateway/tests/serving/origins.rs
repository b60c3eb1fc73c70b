//! Requests from web pages of other origins.

use plaincall_gateway::{Gateway, GatewayConfig, Secret, Upstream};
use plaincall_testkit::model_server::{ModelServer, Script};
use reqwest::Method;

use crate::serving::test_gateway::{TestGateway, completion, request};

/// Checks the status for a page of `https://here.example`, and the origin that may read the response.
async fn check(keys: &[&str], origins: &[&str], key: Option<&str>, expected: (u16, Option<&str>)) {
    let server = ModelServer::start(vec![Script::json(200, &completion("Yes."))]).await;
    let gateway = TestGateway::before(&server, |config| {
        config.keys = keys.iter().map(|key| (*key).to_owned()).collect();
        config.origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    })
    .await;
    let url = gateway.url("/v1/chat/completions");
    let mut asked = gateway
        .client
        .post(url)
        .header("origin", "https://here.example");
    if let Some(key) = key {
        asked = asked.bearer_auth(key);
    }
    let response = asked.body(request(false).to_string()).send().await.unwrap();
    let origin = response.headers().get("access-control-allow-origin");
    let found = (
        response.status().as_u16(),
        origin.map(|value| value.to_str().unwrap()),
    );
    assert_eq!(found, expected, "{keys:?} {origins:?} {key:?}");
    if expected.1.is_some() {
        let exposed = &response.headers()["access-control-expose-headers"];
        assert!(exposed.to_str().unwrap().contains("x-request-id"));
    }
}

#[tokio::test]
async fn allowed_origins() {
    let here = "https://here.example";
    let there = "https://there.example";
    // Without keys, any page that a user visits could use the model.
    check(&[], &[], None, (403, None)).await;
    check(&[], &[there], None, (403, None)).await;
    check(&[], &[there, here], None, (200, Some(here))).await;
    check(&[], &["*"], None, (200, Some("*"))).await;
    // With a key, the request is allowed, but the browser does not show the response to the page.
    check(&["k"], &[], Some("k"), (200, None)).await;
    check(&["k"], &[there], Some("k"), (200, None)).await;
    check(&["k"], &[here], Some("k"), (200, Some(here))).await;
    // A page can read the reason of a rejection.
    check(&["k"], &[here], None, (401, Some(here))).await;
}

/// A page can read that its path is unknown, and the list of valid paths.
#[tokio::test]
async fn wrong_addresses() {
    let server = ModelServer::start(vec![]).await;
    let gateway = TestGateway::before(&server, |config| {
        config.origins = vec!["https://here.example".to_owned()];
    })
    .await;
    for (method, path, status) in [
        (Method::POST, "/v1/chat/completion", 404),
        (Method::GET, "/", 404),
        (Method::GET, "/v1/chat/completions", 405),
    ] {
        for (origin, expected) in [
            ("https://here.example", Some("https://here.example")),
            ("https://there.example", None),
        ] {
            let asked = gateway.client.request(method.clone(), gateway.url(path));
            let response = asked.header("origin", origin).send().await.unwrap();
            assert_eq!(response.status(), status, "{path}");
            let allowed = response.headers().get("access-control-allow-origin");
            let allowed = allowed.map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(allowed.as_deref(), expected, "{path}");
            let text = response.text().await.unwrap();
            for known in [
                "POST /v1/chat/completions",
                "/api/chat, ",
                "GET /health, /ready and /metrics",
                "GET /v1/models, /v1/models/NAME",
                "/v1/completions",
                "/v1/embeddings",
                "/v1/audio/speech",
                "/v1/score",
            ] {
                assert!(text.contains(known), "{known}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn browsers_ask_before() {
    for (origins, expected) in [
        (&["https://here.example"][..], Some("https://here.example")),
        (&["https://there.example"], None),
        (&[], None),
    ] {
        let server = ModelServer::start(vec![]).await;
        let gateway = TestGateway::before(&server, |config| {
            config.keys = vec!["k".to_owned()];
            config.origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
        })
        .await;
        for path in [
            "/v1/chat/completions",
            "/v1/embeddings",
            "/v1/models",
            "/v1/other",
        ] {
            let asked = gateway.client.request(Method::OPTIONS, gateway.url(path));
            let asked = asked
                .header("origin", "https://here.example")
                .header("access-control-request-method", "POST")
                .header(
                    "access-control-request-headers",
                    "authorization,x-stainless-os",
                );
            let response = asked.send().await.unwrap();
            let headers = response.headers();
            let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
            assert_eq!(text("access-control-allow-origin"), expected);
            if expected.is_some() {
                assert_eq!(response.status(), 200);
                let allowed = text("access-control-allow-headers").unwrap();
                assert_eq!(allowed, "authorization,x-stainless-os");
                assert!(
                    text("access-control-allow-methods")
                        .unwrap()
                        .contains("POST")
                );
            }
        }
    }
}

#[test]
fn origins() {
    for (origin, words) in [
        ("https://chat.example", ""),
        ("http://localhost:3000", ""),
        ("http://[::1]:3000", ""),
        ("app://obsidian.md", ""),
        ("*", ""),
        (
            "https://chat.example/",
            "did you mean https://chat.example?",
        ),
        (
            "https://Chat.example/page?x",
            "did you mean https://chat.example?",
        ),
        ("chat.example", "such as https://chat.example"),
        ("https://", "such as https://chat.example"),
        ("https://a@chat.example", "such as https://chat.example"),
        ("null", "such as https://chat.example"),
        ("", "such as https://chat.example"),
    ] {
        let upstream = Upstream::http("http://a", None);
        let mut config = GatewayConfig::new(upstream, Secret::new("secret"));
        config.origins = vec![origin.to_owned()];
        let message = Gateway::new(config).err();
        let message = message.map_or_else(String::new, |error| error.to_string());
        assert!(message.contains(words), "{origin}: {message}");
        assert_eq!(message.is_empty(), words.is_empty(), "{origin}: {message}");
    }
}

/// Without keys, no page reads anything under a name that it has rebound to this machine.
#[tokio::test]
async fn hosts() {
    for (set, host, path, expected) in [
        ("", "localhost", "/metrics", 200),
        ("", "evil.example", "/metrics", 403),
        ("", "evil.example", "/v1/models", 403),
        ("", "evil.example", "/other", 403),
        ("keys", "evil.example", "/metrics", 200),
        ("open", "evil.example", "/metrics", 200),
    ] {
        let server = ModelServer::start(vec![]).await;
        let gateway = TestGateway::before(&server, |config| match set {
            "keys" => config.keys = vec!["k".to_owned()],
            "open" => config.allow_public_without_keys = true,
            _ => {}
        })
        .await;
        let asked = gateway.client.get(gateway.url(path)).header("host", host);
        let response = asked.send().await.unwrap();
        assert_eq!(response.status(), expected, "{set} {host} {path}");
        let text = response.text().await.unwrap();
        assert_eq!(text.contains("host_not_allowed"), expected == 403, "{text}");
    }
}
