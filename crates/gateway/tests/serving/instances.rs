//! Several instances instead of one.

use plaincall_gateway::Markers;
use plaincall_testkit::model_server::{Asked, ModelServer, Script};
use plaincall_testkit::round_robin::RoundRobin;
use plaincall_testkit::strict_client::Recorded;
use serde_json::{Value, json};

use crate::serving::test_gateway::{TestGateway, completion, request};

/// A gateway with keyed markers and repairs.
async fn instance(server: &ModelServer) -> TestGateway {
    let gateway = TestGateway::before(server, |config| {
        config.other_models.markers = Markers::Keyed;
    });
    gateway.await
}

/// Returns the key of the markers for this request.
async fn key(request: &Value) -> String {
    let server = ModelServer::start(vec![Script::stream(&["Yes."], "stop")]).await;
    instance(&server).await.read_answer(request).await;
    let prompt = server.seen().requests[0].json()["messages"][0]["content"].clone();
    let (_, behind) = prompt
        .as_str()
        .unwrap()
        .split_once("!!!GADGET_START")
        .unwrap();
    behind.split(':').next().unwrap().to_owned()
}

/// A call that the model writes.
fn written(key: &str, a: &str) -> String {
    format!("!!!GADGET_START{key}:add\n!!!ARG{key}:a\n{a}\n!!!GADGET_END{key}\n")
}

/// Adds the recorded reply and the results of its calls.
fn add_turn(request: &mut Value, recorded: &Recorded, results: &[&str]) {
    let calls: Vec<Value> = recorded
        .calls
        .iter()
        .map(|call| {
            json!({"id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": call.arguments}})
        })
        .collect();
    assert_eq!(calls.len(), results.len());
    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": recorded.content, "tool_calls": calls}));
    for (call, result) in recorded.calls.iter().zip(results) {
        messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": result}));
    }
}

/// Runs a conversation of four turns with these instances, and returns the model server's requests.
async fn converse(server: &ModelServer, url: &str) -> Vec<Asked> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let read_answer = async |body: &Value| {
        let response = client
            .post(url)
            .body(body.to_string())
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        plaincall_testkit::strict_client::read_answer(&response.bytes().await.unwrap(), false)
    };
    let mut body = request(true);
    let first = key(&body).await;

    // Two calls in one reply.
    let two = [written(&first, "5"), written(&first, "6")];
    server.play([Script::stream(&["I add.\n", &two[0], &two[1]], "stop")]);
    let recorded = read_answer(&body).await;
    assert_eq!(
        recorded.readable(),
        [("add", r#"{"a":5}"#), ("add", r#"{"a":6}"#)]
    );
    // In another order, as some clients send them.
    add_turn(&mut body, &recorded, &["five", "six"]);
    let messages = body["messages"].as_array_mut().unwrap();
    let last = messages.len() - 1;
    messages.swap(last - 1, last);
    assert_eq!(key(&body).await, first, "results do not change the key");

    // A call that needs a repair.
    let (wrong, right) = (written(&first, "seven"), written(&first, "7"));
    server.play([
        Script::stream(&[&wrong], "stop"),
        Script::stream(&[&right], "stop"),
    ]);
    let recorded = read_answer(&body).await;
    assert_eq!(recorded.readable(), [("add", r#"{"a":7}"#)]);
    // A result with a call by an author who knows the key.
    add_turn(&mut body, &recorded, &[&written(&first, "8")]);
    let second = key(&body).await;
    assert_ne!(second, first);

    // The old key has no meaning now.
    let old = format!("Not {}", written(&first, "9"));
    server.play([Script::stream(&[&old, &written(&second, "10")], "stop")]);
    let recorded = read_answer(&body).await;
    assert_eq!(recorded.readable(), [("add", r#"{"a":10}"#)]);
    assert_eq!(recorded.content, old);
    add_turn(&mut body, &recorded, &["ten"]);

    // The last answer arrives completely.
    body["stream"] = json!(false);
    server.play([Script::json(200, &completion("All is added."))]);
    let response = client
        .post(url)
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "All is added.");
    server.seen().requests
}

#[tokio::test]
async fn two_gateways_serve_one_conversation() {
    let server = ModelServer::start(vec![]).await;
    let alone = instance(&server).await;
    let expected = converse(&server, &alone.url("/v1/chat/completions")).await;
    assert_eq!(expected.len(), 5);

    let server = ModelServer::start(vec![]).await;
    let both = [instance(&server).await, instance(&server).await];
    let forwarder = RoundRobin::start(both.iter().map(|one| one.address).collect()).await;
    let url = format!("http://{}/v1/chat/completions", forwarder.address);
    let asked = converse(&server, &url).await;
    assert_eq!(forwarder.given(), [2, 2]);
    assert_eq!(asked.len(), expected.len());
    for (asked, expected) in asked.iter().zip(&expected) {
        // The ids of the calls differ, which the model server does not see.
        let texts = [asked, expected].map(|one| String::from_utf8_lossy(&one.body));
        assert_eq!(texts[0], texts[1]);
    }
}
