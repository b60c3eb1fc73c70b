//! Native mode over a socket.

use plaincall_gateway::{GatewayConfig, ToolMode};
use plaincall_testkit::model_server::{ModelServer, Script};
use serde_json::json;

use crate::native::model::completion;
use crate::replies::model::request;
use crate::serving::test_gateway::TestGateway;

const CALL: &str = "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";

#[tokio::test]
async fn rescued_calls_are_counted() {
    let answer = completion(&json!({"role": "assistant", "content": CALL}), "stop");
    let answer = serde_json::from_slice(&answer).unwrap();
    let scripts = vec![
        Script::json(200, &answer),
        Script::stream(&[CALL], "stop"),
        Script::stream(&["No."], "stop"),
    ];
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |config| {
        config.other_models.mode = ToolMode::Native;
    })
    .await;
    let whole = request(&json!({"stream": false}));
    let response = gateway.post(&whole).await;
    assert_eq!(response.headers()["x-plaincall-rescued"], "1");
    assert!(response.text().await.unwrap().contains("tool_calls"));
    let recorded = gateway.read_answer(&request(&json!({}))).await;
    assert_eq!(recorded.readable(), [("now", "{}")]);
    let response = gateway.post(&request(&json!({}))).await;
    assert!(!response.headers().contains_key("x-plaincall-rescued"));
    drop(response.bytes().await);
    let reports = gateway.reports(3).await;
    let rescued = reports.iter().map(|report| report.counts.rescued_calls);
    assert_eq!(rescued.collect::<Vec<_>>(), [1, 1, 0]);
    assert!(reports.iter().all(|report| !report.is_translated));
    let (_, metrics) = gateway.get("/metrics").await;
    assert!(metrics.contains("plaincall_rescued_calls_total 2\n"));
    assert_eq!(server.seen().requests[0].json(), whole);
}

/// The body of a count is translated only in text mode.
#[tokio::test]
async fn token_counts_are_not_translated() {
    for (mode, is_translated) in [(ToolMode::Native, false), (ToolMode::Text, true)] {
        let server = ModelServer::start(vec![Script::json(200, &json!({"count": 5}))]).await;
        let set = |config: &mut GatewayConfig| config.other_models.mode = mode;
        let gateway = TestGateway::before(&server, set).await;
        let asked = gateway
            .client
            .post(gateway.url("/v1/messages/count_tokens"));
        let body = crate::messages::model::request(&json!({}));
        let response = asked.body(body.to_string()).send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), r#"{"input_tokens":5}"#);
        assert_eq!(gateway.reports(1).await[0].is_translated, is_translated);
        assert_eq!(
            server.seen().requests[0].json()["tools"].is_array(),
            !is_translated
        );
    }
}

#[tokio::test]
async fn the_first_reply_is_the_answer_if_the_second_request_fails() {
    let text = "<tool_call>{\"name\": \"none\", \"arguments\": {";
    let answer = completion(&json!({"role": "assistant", "content": text}), "stop");
    let answer = serde_json::from_slice(&answer).unwrap();
    let error = json!({"error": {"message": "the context is exceeded"}});
    let scripts = vec![
        Script::json(200, &answer),
        Script::json(400, &error),
        Script::stream(&[text], "stop"),
        Script::json(400, &error),
    ];
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |config| {
        config.other_models.mode = ToolMode::Native;
    })
    .await;
    let response = gateway.post(&request(&json!({"stream": false}))).await;
    assert_eq!(response.status(), 200);
    assert!(response.text().await.unwrap().contains("<tool_call>"));
    let recorded = gateway.read_answer(&request(&json!({}))).await;
    assert_eq!((&*recorded.content, recorded.error), (text, None));
    let reports = gateway.reports(2).await;
    assert!(
        reports
            .iter()
            .all(|report| report.counts.failed_repairs == 1)
    );
}
