//! Requests that are retried, and those that are not.

use std::time::Duration;

use plaincall_gateway::{GatewayConfig, Upstream};
use plaincall_testkit::model_server::{Framing, ModelServer, Script, Then};
use serde_json::json;
use tokio::net::TcpListener;

use crate::serving::test_gateway::{TestGateway, completion, request};

/// A server that is busy.
fn busy(status: u16, retry_after: Option<&str>) -> Script {
    let script = Script::json(status, &json!({"error": {"message": "busy"}}));
    match retry_after {
        Some(time) => script.header("retry-after", time),
        None => script,
    }
}

/// Checks the status for the client, and the number of requests at the server.
async fn check(scripts: Vec<Script>, set: impl Fn(&mut GatewayConfig), expected: (u16, usize)) {
    let server = ModelServer::start(scripts.clone()).await;
    let gateway = TestGateway::before(&server, set).await;
    let response = gateway.post(&request(false)).await;
    // Temporary errors can be retried.
    assert!(!response.headers().contains_key("x-should-retry"));
    let status = response.status().as_u16();
    let requests = server.seen().requests.len();
    assert_eq!((status, requests), expected, "{scripts:?}");
    let (_, metrics) = gateway.get("/metrics").await;
    let again = format!("plaincall_retries_total {}\n", requests - 1);
    assert!(metrics.contains(&again), "{again} in {metrics}");
}

#[tokio::test]
async fn busy_servers_are_retried_after_their_delay() {
    let yes = || Script::json(200, &completion("Yes."));
    let now = |status| busy(status, Some("0"));
    let usual = |_: &mut GatewayConfig| {};
    let never = |config: &mut GatewayConfig| config.retries.max_retries = 0;
    let soon = |config: &mut GatewayConfig| config.retries.max_wait = Duration::from_millis(1);
    check(vec![now(429), yes()], usual, (200, 2)).await;
    check(
        vec![now(503), busy(429, Some("0.01")), yes()],
        usual,
        (200, 3),
    )
    .await;
    check(vec![now(503), now(503), now(503), yes()], usual, (503, 3)).await;
    check(vec![now(429), yes()], never, (429, 1)).await;
    check(vec![busy(429, Some("60")), yes()], usual, (429, 1)).await;
    check(vec![busy(429, Some("0.1")), yes()], soon, (429, 1)).await;
    let date = "Fri, 31 Dec 2027 23:59:59 GMT";
    check(vec![busy(503, Some(date)), yes()], usual, (503, 1)).await;
    let [at, soon] = [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:38 GMT",
    ];
    let dated = busy(503, Some(soon)).header("date", at);
    check(vec![dated, yes()], usual, (200, 2)).await;
    check(vec![busy(503, Some("-1")), yes()], usual, (503, 1)).await;
    check(vec![busy(503, None), yes()], usual, (503, 1)).await;
    check(vec![busy(500, Some("0")), yes()], usual, (500, 1)).await;
}

#[tokio::test]
async fn requests_in_progress_are_not_retried() {
    let yes = || Script::json(200, &completion("Yes."));
    for then in [Then::End, Then::Break, Then::Reset] {
        check(vec![Script::nothing(then), yes()], |_| {}, (502, 1)).await;
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_causes_no_error() {
    // The server closes the connection after each response without announcing it.
    let mut closing = Script::json(200, &completion("Yes."));
    let length = closing.body().len().to_string();
    closing = closing.header("content-length", length);
    closing.head.as_mut().unwrap().framing = Framing::Close;
    let server = ModelServer::start(vec![closing; 3]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    for _ in 0..3 {
        assert_eq!(gateway.post(&request(false)).await.status(), 200);
    }
}

#[tokio::test]
async fn a_refused_connection_is_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let upstream = || Upstream::http(format!("http://{address}/v1"), None);
    let gateway = TestGateway::with(upstream(), |config| config.retries.max_retries = 20).await;
    let server = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let listener = TcpListener::bind(address).await.unwrap();
        ModelServer::listening(listener, vec![Script::json(200, &completion("Yes."))])
    };
    let asked = request(false);
    let (response, server) = tokio::join!(gateway.post(&asked), server);
    assert_eq!(response.status(), 200);
    drop(server);
    let gateway = TestGateway::with(upstream(), |config| config.retries.max_retries = 0).await;
    let response = gateway.post(&request(false)).await;
    assert_eq!(response.status(), 502);
    assert!(response.text().await.unwrap().contains("cannot be reached"));
}
