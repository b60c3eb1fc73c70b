//! Several model servers, chosen by the requested model.

use plaincall_gateway::{Body, GatewayConfig, ModelSettings, Upstream};
use plaincall_testkit::model_server::{ModelServer, Script};
use serde_json::{Value, json};

use crate::serving::test_gateway::{ADD, TestGateway, completion, request};

const KEYS: [&str; 2] = ["sk-the-key-of-one", "sk-the-key-of-two"];

/// Parts of headers for the second server.
const HEADER_SECRET: &str = "secret/of-a-header";
const HEADER_KEY: &str = "key-of-a-header";

/// Two servers, and a gateway that sends `fast` and `q*` to the second, `fast` by the name `qwen`.
async fn routed(set: impl FnOnce(&mut GatewayConfig)) -> ([ModelServer; 2], TestGateway) {
    let servers = [
        ModelServer::start(vec![]).await,
        ModelServer::start(vec![]).await,
    ];
    let [one, two] = KEYS.map(|key| Some(key.to_owned()));
    let second = Upstream::http(servers[1].url(), two)
        .with_headers([("x-tenant".to_owned(), "blue".to_owned())])
        .with_headers([("x-tool".to_owned(), format!("a;{HEADER_SECRET}"))])
        .with_headers([("X-API-Key".to_owned(), format!("Token {HEADER_KEY}"))])
        .with_secrets([HEADER_SECRET.to_owned()]);
    let gateway = TestGateway::with(Upstream::http(servers[0].url(), one), |config| {
        config.upstreams = vec![
            ("q*".to_owned(), second.clone()),
            ("fast".to_owned(), second),
        ];
        let mut settings = ModelSettings::default();
        settings.upstream_model = Some("qwen".to_owned());
        config.models = vec![("fast".to_owned(), settings)];
        set(config);
    })
    .await;
    (servers, gateway)
}

fn named(model: &str, with_tools: bool, is_streamed: bool) -> Value {
    let mut body = request(is_streamed);
    body["model"] = json!(model);
    if !with_tools {
        body.as_object_mut().unwrap().remove("tools");
    }
    body
}

fn anthropic_model(id: &str) -> Value {
    json!({"type": "model", "id": id, "display_name": id, "created_at": "1970-01-01T00:00:00Z"})
}

#[tokio::test]
async fn the_model_decides_on_the_server() {
    let (servers, gateway) = routed(|config| config.report_contents = true).await;
    for (model, index, sent) in [
        ("m", 0, "m"),
        ("", 0, ""),
        ("q2", 1, "q2"),
        ("fast", 1, "qwen"),
        ("faster", 0, "faster"),
    ] {
        for (with_tools, is_streamed) in
            [(true, true), (true, false), (false, true), (false, false)]
        {
            let before = servers
                .each_ref()
                .map(|server| server.seen().requests.len());
            // The server repeats its key; the client must not get it.
            let all = [KEYS[index], HEADER_SECRET, HEADER_KEY].join(" ");
            let text = format!("{ADD}\nmy keys are {all}");
            servers[index].play([if is_streamed {
                Script::stream(&[&text], "stop")
            } else {
                Script::json(200, &completion(&text))
            }]);
            let response = gateway.post(&named(model, with_tools, is_streamed)).await;
            assert_eq!(response.status(), 200, "{model}");
            let answer = response.text().await.unwrap();
            assert!(!answer.contains(KEYS[index]), "{answer}");
            assert!(!answer.contains("of-a-header"), "{answer}");
            let asked = servers.each_ref().map(|server| server.seen().requests);
            assert_eq!(asked[1 - index].len(), before[1 - index], "{model}");
            let asked = asked[index].last().unwrap();
            assert_eq!(asked.json()["model"], sent);
            let head = asked.head.to_lowercase();
            assert!(
                head.contains(&format!("authorization: bearer {}\r\n", KEYS[index])),
                "{head}"
            );
            assert!(!head.contains(KEYS[1 - index]), "{head}");
            assert_eq!(head.contains("x-tenant: blue\r\n"), index == 1, "{head}");
            for secret in [HEADER_SECRET, HEADER_KEY] {
                assert_eq!(head.contains(secret), index == 1, "{head}");
            }
        }
    }
    let reports = gateway.reports(20).await;
    for report in &reports {
        let contents = report.contents.as_ref().unwrap();
        assert!(contents.model_reply.contains("[key]"), "{contents:?}");
        assert!(
            !contents.model_reply.contains("of-a-header"),
            "{contents:?}"
        );
    }
    let urls = servers.each_ref().map(ModelServer::url);
    assert_eq!(reports[0].upstream.as_deref(), Some(&*urls[0]));
    assert_eq!(
        (reports[12].model.as_str(), reports[12].upstream.as_deref()),
        ("fast", Some(&*urls[1]))
    );
    let (_, metrics) = gateway.get("/metrics").await;
    for (url, count) in urls.iter().zip([12, 8]) {
        let line = format!("plaincall_upstream_requests_total{{upstream=\"{url}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
        let line = format!("plaincall_upstream_up{{upstream=\"{url}\"}} 1\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}

#[tokio::test]
async fn other_endpoints_follow_the_model() {
    let (servers, gateway) = routed(|_| {}).await;
    let form = |model: &str| {
        format!("--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n--b--\r\n")
    };
    for (path, body, index, sent) in [
        (
            "embeddings",
            r#"{"input":"a","model":"fast"}"#.to_owned(),
            1,
            r#"{"input":"a","model":"qwen"}"#.to_owned(),
        ),
        (
            "embeddings",
            r#"{"model": "m"}"#.to_owned(),
            0,
            r#"{"model": "m"}"#.to_owned(),
        ),
        ("audio/transcriptions", form("fast"), 1, form("qwen")),
        ("audio/transcriptions", form("m"), 0, form("m")),
        ("completions", "no JSON".to_owned(), 0, "no JSON".to_owned()),
    ] {
        servers[index].play([Script::json(200, &json!({}))]);
        let asked = gateway
            .client
            .post(gateway.url(&format!("/v1/{path}")))
            .body(body);
        assert_eq!(asked.send().await.unwrap().status(), 200, "{path}");
        let last = servers[index].seen().requests.pop().unwrap();
        assert_eq!(String::from_utf8(last.body).unwrap(), sent);
    }
}

#[tokio::test]
async fn the_models_of_all_servers_are_listed() {
    let (servers, gateway) = routed(|_| {}).await;
    let list = |ids: &[&str]| {
        let models: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "owned_by": "vllm"}))
            .collect();
        Script::json(200, &json!({"object": "list", "data": models}))
    };
    let ids = |text: &str| -> Vec<String> {
        let list: Value = serde_json::from_str(text).unwrap();
        let data = list["data"].as_array().unwrap().iter();
        data.map(|model| model["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let both = || {
        // The first server's `q1` is never asked for.
        servers[0].play([list(&["m", "q1"])]);
        servers[1].play([list(&["qwen", "other"])]);
    };
    both();
    let (status, text) = gateway.get("/v1/models").await;
    assert_eq!(
        (status, ids(&text)),
        (
            200,
            vec!["fast".to_owned(), "m".to_owned(), "qwen".to_owned()]
        )
    );
    assert!(
        text.contains(r#"{"id":"fast","owned_by":"vllm"}"#),
        "{text}"
    );
    for (name, status) in [("fast", 200), ("qwen", 200), ("q1", 404), ("other", 404)] {
        both();
        let (found, text) = gateway.get(&format!("/v1/models/{name}")).await;
        assert_eq!(found, status, "{text}");
    }
    both();
    let page = gateway.client.get(gateway.url("/v1/models"));
    let page = page
        .header("anthropic-version", "2023-06-01")
        .send()
        .await
        .unwrap();
    assert_eq!(ids(&page.text().await.unwrap()), ["fast", "m", "qwen"]);
    both();
    let model = gateway.client.get(gateway.url("/v1/models/fast"));
    let model = model.header("anthropic-version", "2023-06-01").send();
    let model: Value = serde_json::from_str(&model.await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(model, anthropic_model("fast"));
    // One that fails does not hide the others.
    servers[0].play([Script::json(500, &json!({}))]);
    servers[1].play([list(&["qwen"])]);
    let (status, text) = gateway.get("/v1/models").await;
    assert_eq!(
        (status, ids(&text)),
        (200, vec!["fast".to_owned(), "qwen".to_owned()])
    );
    servers[0].play([Script::json(500, &json!({}))]);
    servers[1].play([Script::json(500, &json!({}))]);
    assert_eq!(gateway.get("/v1/models").await.0, 500);
}

/// An error of the list may quote the key.
#[tokio::test]
async fn the_keys_of_all_servers_are_redacted() {
    let (servers, gateway) = routed(|_| {}).await;
    for (path, status) in [("/v1/models", 400), ("/v1/models/q", 403)] {
        for (server, key) in servers.iter().zip(KEYS) {
            let error = json!({"error": {"message": format!("the key {key} is not allowed")}});
            let script = Script::json(status, &error);
            server.play([script.header("x-ratelimit-key", key)]);
        }
        let response = gateway.client.get(gateway.url(path)).send().await.unwrap();
        assert!(response.status().is_client_error() || response.status() == 502);
        let head = format!("{:?}", response.headers());
        let text = response.text().await.unwrap();
        assert!(text.contains("the key [key] is not allowed"), "{text}");
        for key in KEYS {
            assert!(!text.contains(key) && !head.contains(key), "{head}{text}");
        }
    }
}

/// The model of an encoded body is unknown.
#[tokio::test]
async fn encoded_bodies_are_rejected() {
    let (servers, gateway) = routed(|_| {}).await;
    let asked = gateway.client.post(gateway.url("/v1/embeddings"));
    let asked = asked.header("content-encoding", "gzip").body("\x1f\x08");
    let response = asked.send().await.unwrap();
    assert_eq!(response.status(), 415);
    assert_eq!(response.headers()["accept-encoding"], "identity");
    for server in &servers {
        assert!(server.seen().requests.is_empty());
    }
}

/// Two connections may have the same address, such as one server with two keys.
#[tokio::test]
async fn models_are_listed_from_their_own_connection() {
    let model = |owner: &'static str| {
        Upstream::local(move |_| async move {
            let list = json!({"data": [{"id": "qwen", "owned_by": owner}]});
            let response = http::Response::builder().header("content-type", "application/json");
            Ok(response.body(Body::from(list.to_string()))?)
        })
    };
    let gateway = TestGateway::with(model("one"), |config| {
        config.upstreams = vec![("fast".to_owned(), model("two"))];
        let mut settings = ModelSettings::default();
        settings.upstream_model = Some("qwen".to_owned());
        config.models = vec![("fast".to_owned(), settings)];
    })
    .await;
    let (_, text) = gateway.get("/v1/models").await;
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        list["data"],
        json!([{"id": "fast", "owned_by": "two"}, {"id": "qwen", "owned_by": "one"}])
    );
}

#[tokio::test]
async fn keys_of_clients_reach_only_the_first_server() {
    let (servers, gateway) = routed(|config| {
        let Upstream::Http { url, .. } = config.upstream.clone() else {
            return;
        };
        config.upstream = Upstream::http(url, None);
        let second = config.upstreams.remove(0).1;
        let Upstream::Http { url, .. } = second else {
            return;
        };
        config.upstreams = vec![("q*".to_owned(), Upstream::http(url, None))];
    })
    .await;
    for (model, index) in [("m", 0), ("q", 1)] {
        servers[index].play([Script::json(200, &completion("Yes."))]);
        let asked = gateway.client.post(gateway.url("/v1/chat/completions"));
        let asked = asked
            .bearer_auth("a-key-of-the-client")
            .body(named(model, true, false).to_string());
        assert_eq!(asked.send().await.unwrap().status(), 200);
        let head = servers[index].seen().requests[0].head.to_lowercase();
        assert_eq!(head.contains("a-key-of-the-client"), index == 0, "{head}");
    }
}

#[tokio::test]
async fn a_model_without_a_server() {
    let (servers, gateway) = routed(|config| config.upstream = Upstream::None).await;
    let response = gateway.post(&named("m", true, true)).await;
    assert_eq!(response.status(), 404);
    let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(error["error"]["code"], "model_not_found");
    servers[1].play([Script::json(200, &completion("Yes."))]);
    assert_eq!(gateway.post(&named("q", true, false)).await.status(), 200);
}

#[tokio::test]
async fn settings_are_replaced_while_a_stream_runs() {
    let (servers, gateway) = routed(|config| config.keys = vec!["old-client-key".to_owned()]).await;
    let pause = std::time::Duration::from_millis(600);
    servers[1].play([Script::stream(&["One", " two"], "stop").after(pause)]);
    let ask = |key: &str, model: &str| {
        let asked = gateway.client.post(gateway.url("/v1/chat/completions"));
        asked
            .bearer_auth(key.to_owned())
            .body(named(model, true, true).to_string())
            .send()
    };
    let running = tokio::spawn(ask("old-client-key", "q"));
    servers[1].until(|seen| seen.busy == 1).await;
    // The second server is gone, and the key is another one.
    let mut config = GatewayConfig::new(
        Upstream::http(servers[0].url(), Some(KEYS[0].to_owned())),
        plaincall_gateway::Secret::new("ignored"),
    );
    let error = gateway.gateway.reload(config.clone()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the reloaded files contain no client keys"),
        "{error}"
    );
    config.keys = vec!["new-client-key".to_owned()];
    gateway.gateway.reload(config).unwrap();
    assert_eq!(ask("old-client-key", "q").await.unwrap().status(), 401);
    servers[0].play([Script::stream(&["Yes."], "stop")]);
    let new = ask("new-client-key", "q").await.unwrap();
    assert!(new.text().await.unwrap().contains("Yes."));
    let running = running.await.unwrap().unwrap().text().await.unwrap();
    assert!(
        running.contains("One") && running.ends_with("data: [DONE]\n\n"),
        "{running}"
    );
}
