//! Clients that do not read.

use std::time::Duration;

use plaincall_testkit::model_server::{ModelServer, Piece, Script};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::serving::test_gateway::{TestGateway, completion, nothing_is_left, request, upstream};

/// The maximum that the gateway may buffer for a client that does not read, in bytes.
const MOST: i64 = 64 << 10;

/// Much longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends a request and reads nothing.
async fn ask(gateway: &TestGateway, body: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(gateway.address).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).await.unwrap();
    stream
}

/// A listener whose connections send from small buffers.
fn listener() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(4096).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(8).unwrap()
}

#[cfg(target_os = "linux")]
/// Returns the number of bytes that the system buffers for the connections with this port.
fn in_sockets(port: u16) -> i64 {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let mut sum = 0;
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |text: &str| i64::from_str_radix(text, 16).unwrap();
        let is_ours = |address: &str| number(address.split_once(':').unwrap().1) == i64::from(port);
        if is_ours(fields[1]) || is_ours(fields[2]) {
            let (sent, received) = fields[4].split_once(':').unwrap();
            sum += number(sent) + number(received);
        }
    }
    sum
}

/// Returns the number of bytes that the gateway has read from the model server and still buffers, once nothing moves.
///
/// The parameters are the length of the model server's texts, and of their pieces.
async fn held(with_tools: bool, text: usize, piece: usize) -> i64 {
    let text = "x".repeat(text);
    let texts: Vec<&str> = (0..(1 << 20) / text.len()).map(|_| text.as_str()).collect();
    let mut script = Script::stream(&texts, "stop");
    let pieces = script.body();
    let len = pieces.len() as u64;
    script.pieces.clear();
    script.pieces.extend(pieces.chunks(piece).map(Piece::new));
    let server = ModelServer::listening(listener(), vec![script]);
    let gateway = TestGateway::listening(listener(), upstream(&server), |_| {});
    let mut body = request(true);
    if !with_tools {
        body["tools"] = json!([]);
    }
    let client = ask(&gateway, &body.to_string()).await;
    let ports = [server.address.port(), gateway.address.port()];
    let in_sockets = || ports.into_iter().map(in_sockets).sum::<i64>();
    // All share one thread: during each pause, every ready task runs, even on a slow machine.
    let (mut before, mut rests) = ((0, 0), 0);
    while rests < 5 {
        tokio::time::sleep(Duration::from_millis(40)).await;
        let now = (server.written(), in_sockets());
        let is_rest = now == before && now.0 > 0 && now.1 > 0;
        rests = if is_rest { rests + 1 } else { 0 };
        before = now;
    }
    let (written, in_sockets) = before;
    assert!(written < len, "the model server waits");
    drop(client);
    server.until(|seen| seen.busy == 0).await;
    i64::try_from(written).unwrap() - in_sockets
}

/// Returns how much data the system buffers in sockets, which does not count as the gateway's.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn little_is_held_for_a_client_that_does_not_read() {
    let mut cases = JoinSet::new();
    for with_tools in [true, false] {
        for (text, piece) in [
            (1000, 1000),
            (1000, 1 << 20),
            (4000, 4000),
            (50_000, 10_000),
        ] {
            cases.spawn(async move {
                let held = held(with_tools, text, piece).await;
                // An event must be complete before it is converted.
                let is_long = with_tools && text > 4000;
                let most = MOST + i64::from(is_long) * 2 * i64::try_from(text).unwrap();
                (with_tools, text, piece, held, most)
            });
        }
    }
    let held = cases.join_all().await;
    let is_little = held.iter().all(|(.., held, most)| held <= most);
    assert!(is_little, "{held:?}");
}

/// Returns the bytes that a client receives when it resumes reading after its response was abandoned.
async fn let_go(body: Value, script: Script) -> Vec<u8> {
    let server = ModelServer::listening(listener(), vec![script]);
    let gateway = TestGateway::listening(listener(), upstream(&server), |config| {
        config.timeouts.idle = Duration::from_millis(300);
    });
    let mut client = ask(&gateway, &body.to_string()).await;
    server.until(|seen| seen.requests.len() == 1).await;
    // The gateway neither reads nor keeps what this client does not read.
    nothing_is_left(&gateway, &server).await;
    let is_streamed = body["stream"] == true;
    assert_eq!(server.seen().dropped == 1, is_streamed);
    assert_eq!(gateway.reports(1).await[0].is_abandoned, is_streamed);
    // The other side has closed the connection, so nothing can be written.
    let closed = async {
        while client.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let closed = tokio::time::timeout(TIMEOUT, closed).await;
    closed.expect("the connection is closed");
    rest(&mut client).await
}

/// Returns the data until the connection is closed. A reset also closes it.
async fn rest(client: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, client.read_to_end(&mut rest)).await;
    let _ = read.expect("the connection is closed");
    rest
}

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go() {
    let text = "x".repeat(64 << 10);
    let texts: Vec<&str> = (0..32).map(|_| text.as_str()).collect();
    let streamed = Script::stream(&texts, "stop");
    let mut plain = request(true);
    plain["tools"] = json!([]);
    let whole = Script::json(200, &completion(&texts.concat()));
    let got = tokio::join!(
        let_go(request(true), streamed.clone()),
        let_go(plain, streamed),
        let_go(request(false), whole),
    );
    for got in <[Vec<u8>; 3]>::from(got) {
        let end = String::from_utf8_lossy(&got[got.len().saturating_sub(20)..]).into_owned();
        assert!(got.len() < texts.len() * text.len(), "{end}");
        assert!(!end.ends_with("0\r\n\r\n"), "{end}");
    }
}

/// A client that resumes reading before its connection closes sees a truncated response.
#[tokio::test]
async fn a_client_that_reads_late_does_not_take_a_part_for_the_whole() {
    let text = "x".repeat(64 << 10);
    let texts: Vec<&str> = (0..32).map(|_| text.as_str()).collect();
    let server = ModelServer::listening(listener(), vec![Script::stream(&texts, "stop")]);
    let gateway = TestGateway::listening(listener(), upstream(&server), |config| {
        config.timeouts.idle = Duration::from_millis(300);
    });
    let mut client = ask(&gateway, &request(true).to_string()).await;
    // It reads a little at times, so writing continues, but no piece is sent in time.
    let mut got = Vec::new();
    let mut some = [0; 64];
    while gateway.reported() == 0 {
        let read = tokio::time::timeout(TIMEOUT, client.read(&mut some)).await;
        let read = read.expect("something comes").unwrap_or(0);
        got.extend_from_slice(&some[..read]);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    got.append(&mut rest(&mut client).await);
    assert!(gateway.reports(1).await[0].is_abandoned);
    assert!(got.len() < texts.len() * text.len());
    assert!(!got.ends_with(b"0\r\n\r\n"));
}
