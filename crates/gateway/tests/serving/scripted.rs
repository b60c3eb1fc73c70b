//! A model's server that does what a script says, over HTTP on the loopback.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What is done with one request.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    /// Pieces of the body, each after a while.
    pub(crate) pieces: Vec<(Duration, Vec<u8>)>,
    pub(crate) then: Then,
}

/// What follows the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The body ends.
    End,
    /// The connection is closed in the middle of the body.
    Break,
    /// Nothing, until the other side has gone.
    Stall,
    /// Nothing at all, not even the head.
    Silence,
}

/// What a server has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) requests: Vec<(String, Value)>,
    /// How many connections the other side has closed while an answer was not complete.
    pub(crate) dropped: usize,
}

pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    scripts: Arc<Mutex<VecDeque<Script>>>,
    seen: watch::Receiver<Seen>,
}

impl Script {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json")],
            pieces: vec![(Duration::ZERO, body.to_string().into_bytes())],
            then: Then::End,
        }
    }

    /// A stream that says these texts, and stops for this reason.
    pub(crate) fn stream(texts: &[&str], reason: &str) -> Self {
        let chunk = |delta: Value, reason: Value| {
            let chunk = json!({"id": "chatcmpl-9", "object": "chat.completion.chunk", "created": 7, "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
            format!("data: {chunk}\n\n").into_bytes()
        };
        let mut pieces: Vec<Vec<u8>> = texts
            .iter()
            .map(|text| chunk(json!({"content": text}), Value::Null))
            .collect();
        pieces.push(chunk(json!({}), json!(reason)));
        pieces.push(b"data: [DONE]\n\n".to_vec());
        Self {
            status: 200,
            headers: vec![("content-type", "text/event-stream")],
            pieces: pieces
                .into_iter()
                .map(|piece| (Duration::ZERO, piece))
                .collect(),
            then: Then::End,
        }
    }

    /// Only the first pieces, and then this.
    pub(crate) fn only(mut self, pieces: usize, then: Then) -> Self {
        self.pieces.truncate(pieces);
        self.then = then;
        self
    }

    /// A while before each piece.
    pub(crate) fn after(mut self, pause: Duration) -> Self {
        for (before, _) in &mut self.pieces {
            *before = pause;
        }
        self
    }
}

impl Scripted {
    pub(crate) async fn start(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scripts = Arc::new(Mutex::new(VecDeque::from(scripts)));
        let (sender, seen) = watch::channel(Seen::default());
        let sender = Arc::new(sender);
        let list = Arc::clone(&scripts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&list), Arc::clone(&sender)));
            }
        });
        Self {
            address,
            scripts,
            seen,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits until it has seen something.
    pub(crate) async fn until(&self, is_seen: impl Fn(&Seen) -> bool) {
        let mut seen = self.seen.clone();
        let waited =
            tokio::time::timeout(Duration::from_secs(20), seen.wait_for(|seen| is_seen(seen)));
        let _ = waited.await.expect("it is seen in time").unwrap();
    }

    pub(crate) fn left(&self) -> usize {
        self.scripts.lock().unwrap().len()
    }
}

async fn serve(
    mut stream: TcpStream,
    scripts: Arc<Mutex<VecDeque<Script>>>,
    seen: Arc<watch::Sender<Seen>>,
) {
    while let Some((head, body)) = request(&mut stream).await {
        let value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        seen.send_modify(|seen| seen.requests.push((head, value)));
        let script = scripts
            .lock()
            .unwrap()
            .pop_front()
            .expect("a script for the request");
        if answer(&mut stream, &script).await.is_err() {
            seen.send_modify(|seen| seen.dropped += 1);
            return;
        }
        match script.then {
            Then::End => {}
            Then::Break => return,
            Then::Stall | Then::Silence => {
                // The other side sends nothing more, so this is its end.
                let _ = stream.read(&mut [0]).await;
                seen.send_modify(|seen| seen.dropped += 1);
                return;
            }
        }
    }
}

async fn answer(stream: &mut TcpStream, script: &Script) -> std::io::Result<()> {
    if script.then == Then::Silence {
        return Ok(());
    }
    let mut head = format!(
        "HTTP/1.1 {} Scripted\r\ntransfer-encoding: chunked\r\n",
        script.status
    );
    for (name, value) in &script.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes()).await?;
    for (pause, piece) in &script.pieces {
        stream.flush().await?;
        tokio::time::sleep(*pause).await;
        stream
            .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
            .await?;
        stream.write_all(piece).await?;
        stream.write_all(b"\r\n").await?;
    }
    if script.then == Then::End {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    stream.flush().await
}

/// The head and the body of the next request.
async fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut read = Vec::new();
    let head_len = loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&read[..head_len]).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    while read.len() < head_len + length {
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, read[head_len..head_len + length].to_vec()))
}
