//! Connections of clients: their number and duration.

use std::time::Duration;

use plaincall_testkit::model_server::{ModelServer, Script, Then};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::serving::test_gateway::{TestGateway, request};

/// Much longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(30);
const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Requests `/health`.
async fn ask(client: &mut TcpStream) {
    client.write_all(HEALTH).await.unwrap();
}

/// Reads the response.
async fn read_answer(client: &mut TcpStream) {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nok\n") {
        let read = tokio::time::timeout(TIMEOUT, client.read_buf(&mut answer)).await;
        assert_ne!(read.expect("in time").unwrap(), 0, "it is closed");
    }
}

/// Waits until the connection is closed.
async fn read_end(client: &mut TcpStream) {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, client.read_to_end(&mut rest));
    // A reset also ends the connection.
    let _ = read.await.expect("the connection is closed");
    assert_eq!(rest, b"");
}

/// Connections with a request in progress keep their places.
#[tokio::test]
async fn no_more_than_are_allowed() {
    let stalling = || Script::stream(&["Yes."], "stop").only(1, Then::Stall);
    let server = ModelServer::start(vec![stalling(), stalling()]).await;
    let gateway = TestGateway::before(&server, |config| config.limits.connections = 2).await;
    let body = request(true).to_string();
    let length = body.len();
    let asked = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let mut busy = Vec::new();
    for count in 1..=2 {
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        client.write_all(asked.as_bytes()).await.unwrap();
        server.until(|seen| seen.busy == count).await;
        busy.push(client);
    }
    let mut third = TcpStream::connect(gateway.address).await.unwrap();
    ask(&mut third).await;
    let soon = tokio::time::timeout(Duration::from_millis(100), third.readable()).await;
    assert!(soon.is_err(), "it waits until another has gone");
    drop(busy);
    read_answer(&mut third).await;
}

/// A connection that sends no request loses its place to a new one: the one that has waited longest.
#[tokio::test]
async fn a_new_connection_always_finds_a_place() {
    let server = ModelServer::start(vec![]).await;
    let gateway = TestGateway::before(&server, |config| {
        config.limits.connections = 3;
        config.timeouts.head = Duration::from_hours(1);
        config.timeouts.connection_idle = Duration::from_hours(1);
    })
    .await;
    let connect = async || TcpStream::connect(gateway.address).await.unwrap();
    let (mut first, mut second, mut third) = (connect().await, connect().await, connect().await);
    // An incomplete head, silence, and a connection that waits since its last response.
    first.write_all(&HEALTH[..20]).await.unwrap();
    ask(&mut third).await;
    read_answer(&mut third).await;
    // Each of these needs a place that only the longest wait can give.
    let mut later = Vec::new();
    for _ in 0..2 {
        let mut new = connect().await;
        ask(&mut new).await;
        read_answer(&mut new).await;
        later.push(new);
    }
    read_end(&mut first).await;
    read_end(&mut second).await;
    // The others are still open.
    ask(&mut third).await;
    read_answer(&mut third).await;
}

/// An idle connection has its own time limit, and so has a head.
#[tokio::test]
async fn how_long_they_are_kept() {
    let server = ModelServer::start(vec![]).await;
    let with = |head: u64, kept: u64| {
        TestGateway::before(&server, move |config| {
            config.timeouts.head = Duration::from_millis(head);
            config.timeouts.connection_idle = Duration::from_millis(kept);
        })
    };
    let longer_than_a_head = async {
        let gateway = with(100, 30_000).await;
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        for _ in 0..2 {
            ask(&mut client).await;
            read_answer(&mut client).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        // A request that has started must be complete in time.
        for byte in &HEALTH[..HEALTH.len() - 2] {
            if client.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        read_end(&mut client).await;
    };
    let not_for_ever = async {
        let gateway = with(30_000, 100).await;
        let mut client = TcpStream::connect(gateway.address).await.unwrap();
        ask(&mut client).await;
        read_answer(&mut client).await;
        read_end(&mut client).await;
    };
    tokio::join!(longer_than_a_head, not_for_ever);
}

/// This includes connections with a pending response.
#[tokio::test]
async fn none_is_left_after_the_server_is_dropped() {
    let script = Script::stream(&["Yes."], "stop").only(1, Then::Stall);
    let server = ModelServer::start(vec![script]).await;
    let gateway = TestGateway::before(&server, |_| {}).await;
    let mut answer = gateway.post(&request(true)).await;
    assert!(answer.chunk().await.unwrap().is_some());
    let mut client = TcpStream::connect(gateway.address).await.unwrap();
    ask(&mut client).await;
    read_answer(&mut client).await;
    gateway.abort();
    read_end(&mut client).await;
    let rest = tokio::time::timeout(TIMEOUT, answer.bytes()).await;
    assert!(rest.expect("it is closed").is_err(), "it is not whole");
    server.until(|seen| seen.dropped == 1).await;
}
