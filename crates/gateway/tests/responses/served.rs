//! Responses over a socket.

use plaincall_testkit::model_server::{ModelServer, Script, Then};
use serde_json::{Value, json};

use crate::responses::model::request;
use crate::responses::strict_reader::{check_response, read_stream};
use crate::serving::test_gateway::TestGateway;

const CALL: &str = "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n";

async fn post(gateway: &TestGateway, body: &Value) -> (u16, Vec<u8>) {
    let request = gateway.client.post(gateway.url("/v1/responses"));
    let response = request.body(body.to_string()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn streamed_and_complete() {
    let scripts = vec![
        Script::stream(&["I add.\n", CALL], "stop"),
        Script::stream(&["Ten."], "stop"),
    ];
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let (status, bytes) = post(&gateway, &request(&json!({"stream": true}))).await;
    assert_eq!(status, 200);
    let response = read_stream(&bytes);
    assert_eq!(response["output"][1]["name"], "add");
    let report = gateway.reports(1).await.remove(0);
    assert_eq!(report.path, "/v1/responses");
    assert!(report.is_translated && report.is_streamed && report.counts.calls == 1);
}

#[tokio::test]
async fn errors_before_and_within() {
    let overloaded =
        json!({"error": {"message": "try later", "type": "rate_limit", "code": "slow"}});
    let scripts = vec![
        Script::json(429, &overloaded),
        Script::stream(&["So"], "stop").only(1, Then::Break),
    ];
    let server = ModelServer::start(scripts).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let body = request(&json!({"stream": true}));
    let (status, bytes) = post(&gateway, &body).await;
    assert_eq!(status, 429);
    let error: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(error["error"]["message"], "try later");
    assert_eq!(error["error"]["type"], "rate_limit");
    let (status, bytes) = post(&gateway, &body).await;
    assert_eq!(status, 200);
    let response = read_stream(&bytes);
    assert_eq!(response["status"], "failed");
    check_response(&response);
}
