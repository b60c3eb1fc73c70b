//! Responses that fail.

use std::time::Duration;

use plaincall_gateway::Upstream;
use plaincall_testkit::model_server::{Framing, Head, ModelServer, Script, Then};
use plaincall_testkit::strict_client::read_answer;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::serving::test_gateway::{ADD, TestGateway, request};

/// Errors before the response begins.
async fn failed(script: Script, is_streamed: bool, status: u16, words: &str) {
    let (has_head, then) = (script.head.is_some(), script.then);
    let server = ModelServer::start(vec![script]).await;
    let gateway = TestGateway::before(&server, |config| match then {
        // Only data that never arrives has a short timeout.
        Then::Stall if has_head => config.timeouts.idle = Duration::from_millis(300),
        Then::Stall => config.timeouts.first_byte = Duration::from_millis(300),
        _ => {}
    })
    .await;
    let response = gateway.post(&request(is_streamed)).await;
    assert_eq!(response.status(), status, "{words}");
    let text = response.text().await.unwrap();
    let error: Value = serde_json::from_str(&text).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains(words), "{words} in {text}");
    let reports = gateway.reports(1).await;
    assert_eq!(reports[0].status, status);
    // The server's message may quote the conversation.
    let message = reports[0].error.as_ref().unwrap();
    let is_reported = message.contains(words) || message.contains(&format!("status {status}"));
    assert!(is_reported, "{message}");
}

#[tokio::test]
async fn before_it_has_begun() {
    let overloaded =
        json!({"error": {"message": "try later", "type": "rate_limit", "code": "slow"}});
    let started = |then| Script::stream(&[], "stop").only(0, then);
    let page = Head::new(503).header("content-type", "text/html");
    let table = [
        (Script::json(429, &overloaded), 429, "try later"),
        (Script::json(200, &overloaded), 429, "try later"),
        (
            Script::json(500, &json!({})).only(0, Then::End),
            500,
            "status 500",
        ),
        (
            Script::new(page, vec![b"<title>Closed</title><p>Today.".to_vec()]),
            503,
            "answered with a web page, status 503: Closed",
        ),
        (Script::json(302, &json!("gone")), 502, ""),
        (
            Script::nothing(Then::Stall),
            504,
            "did not start to answer within",
        ),
        (Script::nothing(Then::Break), 502, "closed the connection"),
        (Script::nothing(Then::Reset), 502, "reset"),
        (started(Then::Stall), 504, "stopped sending data"),
        (started(Then::Break), 502, "ended its response early"),
        (started(Then::Reset), 502, "reset"),
        (
            started(Then::Break).framing(Framing::Length),
            502,
            "ended its response early",
        ),
    ];
    let mut cases = JoinSet::new();
    for (script, status, words) in table {
        for is_streamed in [true, false] {
            cases.spawn(failed(script.clone(), is_streamed, status, words));
        }
    }
    cases.join_all().await;
    let unreachable_server = Upstream::http("http://127.0.0.1:1/v1".to_owned(), None);
    let gateway = TestGateway::with(unreachable_server, |_| {}).await;
    let response = gateway.post(&request(true)).await;
    assert_eq!(response.status(), 502);
    assert!(response.text().await.unwrap().contains("cannot be reached"));
}

#[tokio::test]
async fn retry_after_is_forwarded() {
    let script =
        Script::json(429, &json!({"error": {"message": "slow"}})).header("retry-after", "7");

    let server = ModelServer::start(vec![script]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let response = gateway.post(&request(true)).await;
    assert_eq!(response.headers()["retry-after"], "7");
}

#[tokio::test]
async fn in_the_middle() {
    let script = |then| Script::stream(&["I add.\n", ADD], "stop").only(1, then);
    for (then, words) in [
        (Then::Break, "ended its response early"),
        (Then::End, "is incomplete"),
    ] {
        let server = ModelServer::start(vec![script(then)]).await;
        let gateway = TestGateway::before(&server, |_| {}).await;
        let recorded = gateway.read_answer(&request(true)).await;
        assert_eq!(recorded.content, "I add.\n");
        assert!(
            recorded.error.as_ref().unwrap().contains(words),
            "{recorded:?}"
        );
    }
}

#[tokio::test]
async fn a_truncated_answer_is_sent_up_to_its_end() {
    for pieces in [0, 1] {
        let script = Script::stream(&["I add.\n"], "stop").only(pieces, Then::Break);
        let server = ModelServer::start(vec![script]).await;
        let gateway = TestGateway::before(&server, |_| {}).await;
        let mut body = request(true);
        body.as_object_mut().unwrap().remove("tools");
        let mut response = gateway.post(&body).await;
        assert_eq!(response.status(), 200, "{pieces}");
        let mut received = Vec::new();
        let end = loop {
            match response.chunk().await {
                Ok(Some(piece)) => received.extend_from_slice(&piece),
                end => break end,
            }
        };
        assert!(end.is_err(), "{pieces}");
        let text = String::from_utf8(received).unwrap();
        assert_eq!(text.contains("I add."), pieces == 1, "{text}");
    }
}

#[tokio::test]
async fn a_client_that_goes_takes_the_request_with_it() {
    let started = |pieces| Script::stream(&["I add.\n"], "stop").only(pieces, Then::Stall);
    for (is_streamed, script) in [
        (true, started(1)),
        (true, Script::nothing(Then::Stall)),
        (true, started(0)),
        (false, Script::nothing(Then::Stall)),
        (false, started(1)),
    ] {
        let server = ModelServer::start(vec![script]).await;
        let gateway = TestGateway::before(&server, |config| {
            // The keep-alive is not what detects this.
            config.timeouts.keep_alive = Duration::from_hours(1);
        })
        .await;
        let url = gateway.url("/v1/chat/completions");
        let asked = gateway
            .client
            .post(url)
            .body(request(is_streamed).to_string())
            .send();
        let task = tokio::spawn(async move {
            if let Ok(mut response) = asked.await {
                while let Ok(Some(_)) = response.chunk().await {}
            }
        });
        server.until(|seen| seen.requests.len() == 1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        task.abort();
        server.until(|seen| seen.dropped == 1).await;
        let reports = gateway.reports(1).await;
        assert!(reports[0].is_abandoned, "{:?}", reports[0]);
    }
}

#[tokio::test]
async fn without_tools_a_client_that_goes_takes_the_request_too() {
    let server =
        ModelServer::start(vec![Script::stream(&["a"], "stop").only(1, Then::Stall)]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let response = gateway.post(&json!({"messages": [], "stream": true})).await;
    drop(response);
    server.until(|seen| seen.dropped == 1).await;
}

#[tokio::test]
async fn a_call_that_waits_ends_the_request() {
    let second = "!!!GADGET_START:add:b:gadget_1\n!!!ARG:a\n6\n!!!GADGET_END";
    let script = Script::stream(&[ADD, second, "more"], "stop").only(2, Then::Stall);
    let server = ModelServer::start(vec![script]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let recorded = gateway.read_answer(&request(true)).await;
    assert_eq!(recorded.readable(), [("add", r#"{"a":5}"#)]);
    server.until(|seen| seen.dropped == 1).await;
}

#[tokio::test]
async fn it_ends_with_the_reply() {
    let script = Script::stream(&["a", "b", "c"], "stop").after(Duration::from_millis(100));
    let server = ModelServer::start(vec![script]).await;
    let mut gateway = TestGateway::before(&server, |_| {}).await;
    let response = gateway.post(&request(true)).await;
    gateway.stop();
    let bytes = response.bytes().await.unwrap();
    assert_eq!(read_answer(&bytes, false).content, "abc");
    let url = gateway.url("/health");
    let client = gateway.client.clone();
    gateway.ended().await;
    assert!(client.get(url).send().await.is_err());
}
