//! Reports about requests.

use plaincall_gateway::{GatewayConfig, Report, Upstream};
use plaincall_testkit::model_server::{Head, ModelServer, Script};
use plaincall_testkit::recordings::recordings;
use serde_json::{Value, json};

use crate::serving::test_gateway::{ADD, TestGateway, completion, request};

/// Words that occur only in the conversation, and keys.
const QUOTED: [&str; 6] = [
    "quokka",
    "secret_tool",
    "wombat",
    "numbat",
    "bandicoot",
    "dunnart",
];
const CLIENT_KEY: &str = "key-of-the-client";
const UPSTREAM_KEY: &str = "key-of-the-server";

/// A request with many texts.
fn talkative(is_streamed: bool) -> Value {
    let mut body = request(is_streamed);
    body["tools"][0]["function"]["name"] = json!("secret_tool");
    body["messages"][0]["content"] = json!(format!("The quokka. {CLIENT_KEY} {UPSTREAM_KEY}"));
    body
}

/// Returns the report about a request with this response.
async fn report_of(body: Value, script: Script, with_contents: bool) -> Report {
    let server = ModelServer::start(vec![script]).await;
    let gateway = TestGateway::before(&server, |config: &mut GatewayConfig| {
        config.upstream = Upstream::http(server.url(), Some(UPSTREAM_KEY.to_owned()));
        config.keys = vec!["another".to_owned(), CLIENT_KEY.to_owned()];
        config.report_contents = with_contents;
    })
    .await;
    let asked = gateway.client.post(gateway.url("/v1/chat/completions"));
    let asked = asked
        .bearer_auth(CLIENT_KEY)
        .header("x-request-id", format!("id-{CLIENT_KEY}"));
    let response = asked.body(body.to_string()).send().await.unwrap();
    let _ = response.bytes().await;
    gateway.reports(1).await.remove(0)
}

/// Every part of a reply and of an error.
fn scripts() -> Vec<Script> {
    let call = ADD.replace("add", "secret_tool").replace('5', "wombat");
    let error = json!({"error": {"message": format!("numbat {UPSTREAM_KEY}"), "type": "bandicoot", "code": "dunnart"}});
    vec![
        Script::stream(&["The wombat.\n", &call], "stop"),
        Script::json(200, &completion(&call)),
        Script::json(400, &error),
        Script::json(500, &error),
        Script::json(200, &error),
        Script::json(200, &json!({"choices": "numbat"})),
        Script::json(200, &json!("numbat")),
    ]
}

#[tokio::test]
async fn reports_quote_nothing() {
    let mut bodies = vec![talkative(true), talkative(false)];
    let mut wrong = talkative(true);
    wrong["messages"][0]["content"] = json!({"bandicoot": 1});
    bodies.push(wrong);
    let mut wrong = talkative(true);
    wrong["tool_choice"] = json!({"type": "function", "function": {"name": "dunnart"}});
    bodies.push(wrong);
    let mut plain = talkative(true);
    plain["tools"] = json!([]);
    bodies.push(plain);
    for body in bodies {
        for script in scripts() {
            let report = report_of(body.clone(), script, false).await;
            let text = format!("{report:?}");
            for word in QUOTED.iter().chain(&[CLIENT_KEY, UPSTREAM_KEY]) {
                assert!(!text.contains(word), "{word} in {text} for {body}");
            }
        }
    }
}

#[tokio::test]
async fn all_of_it_but_keys_if_asked() {
    let call = ADD.replace("add", "secret_tool");
    for is_streamed in [true, false] {
        let script = if is_streamed {
            Script::stream(&["The wombat.\n", &call], "stop")
        } else {
            Script::json(200, &completion(&format!("The wombat.\n{call}")))
        };
        let report = report_of(talkative(is_streamed), script, true).await;
        let contents = report.contents.as_ref().unwrap();
        assert_eq!(contents.model_requests.len(), 1);
        let asked: Value = serde_json::from_str(&contents.model_requests[0]).unwrap();
        let last_message = asked["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(last_message["content"], "The quokka. [key] [key]");
        assert!(contents.model_reply.contains("wombat") && contents.model_reply.contains("ARG:"));
        assert!(
            contents.client_reply.contains("tool_calls") && !contents.client_reply.contains("ARG:")
        );
        let text = format!("{report:?}");
        for key in [CLIENT_KEY, UPSTREAM_KEY] {
            assert!(!text.contains(key), "{text}");
        }
    }
    // The key of the server, spelled in the JSON of arguments, and that JSON in the JSON of an answer.
    let spelled = r"\\u006bey-of-the-serve\\u0072";
    let answer = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1","type":"function","function":
        {"name":"a","arguments":"{\"b\":\"SPELLED\"}"}}]},"finish_reason":"tool_calls"}]}"#;
    let head = Head::new(200).header("content-type", "application/json");
    let answer = answer.replace("SPELLED", spelled).into_bytes();
    let script = Script::new(head, vec![answer]);
    let report = report_of(json!({"messages": [], "stream": false}), script, true).await;
    let contents = report.contents.unwrap();
    assert!(
        contents.model_reply.contains(r#":\"[key]\""#),
        "{contents:?}"
    );
    // A forwarded answer is included once.
    let plain = json!({"messages": [], "stream": true});
    let report = report_of(plain, Script::stream(&["The wombat."], "stop"), true).await;
    let contents = report.contents.unwrap();
    assert!(contents.model_reply.contains("wombat") && contents.client_reply.is_empty());
    // Long texts are truncated.
    let long = "é".repeat(100 << 10);
    let report = report_of(
        talkative(false),
        Script::json(200, &completion(&long)),
        true,
    )
    .await;
    let contents = report.contents.unwrap();
    assert!(
        contents.model_reply.len() <= (64 << 10) + "…".len() && contents.model_reply.ends_with('…')
    );
}

/// Keys that clients send if no key is needed: words, most of them short.
#[tokio::test]
async fn short_words_are_not_redacted() {
    for (bearer, model, expected) in [
        ("a", "llama", "llama"),
        ("none", "none-8b", "none-8b"),
        ("sk-12345", "llama-sk-12345", "llama-[key]"),
    ] {
        let server = ModelServer::start(vec![Script::json(200, &completion("Yes."))]).await;
        let gateway = TestGateway::before(&server, |_| {}).await;
        let asked = gateway.client.post(gateway.url("/v1/chat/completions"));
        let body = json!({"model": model, "messages": []});
        let asked = asked.bearer_auth(bearer).body(body.to_string());
        let response = asked.send().await.unwrap();
        let id = response.headers()["x-request-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let _ = response.bytes().await;
        let report = gateway.reports(1).await.remove(0);
        assert_eq!((report.model, report.request_id), (expected.to_owned(), id));
    }
}

/// The metrics have the sums of the reports.
#[tokio::test]
async fn the_bytes_of_prompts_are_counted() {
    let server = ModelServer::start(Vec::new()).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let (mut ended, mut sum) = (0, 0);
    for recording in recordings() {
        for request in &recording.requests {
            let script = if request.contains("\"stream\":true") {
                Script::stream(&["Yes."], "stop")
            } else {
                Script::json(200, &completion("Yes."))
            };
            server.play(vec![script]);
            let asked = gateway.client.post(gateway.url(recording.path));
            let response = asked.body(request.clone()).send().await.unwrap();
            assert_eq!(response.status(), 200);
            let _ = response.bytes().await;
            ended += 1;
            let report = gateway.reports(ended).await.remove(ended - 1);
            sum += report.counts.prompt_bytes;
        }
    }
    assert!(sum > 0);
    let (_, metrics) = gateway.get("/metrics").await;
    let expected = format!("\nplaincall_prompt_bytes_total {sum}\n");
    assert!(metrics.contains(&expected), "{metrics}");
}
