//! The server on localhost.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::script::{Framing, Script, Then};

/// The maximum time for any wait. No test needs this long.
const PATIENCE: Duration = Duration::from_mins(5);

/// A model server that answers each request with the next script, over HTTP on localhost. When it is dropped, its
/// connections are closed.
pub struct ModelServer {
    /// The address.
    pub address: SocketAddr,
    scripts: Arc<Mutex<VecDeque<Script>>>,
    seen: watch::Receiver<Seen>,
    written: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

/// The requests that a server has seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The requests, in the order in which they were complete.
    pub requests: Vec<Asked>,
    /// The number of incomplete answers whose client closed the connection.
    pub dropped: usize,
    /// The number of active requests.
    pub busy: usize,
    /// The number of open connections, including idle ones.
    pub open: usize,
    /// The number of requests without a script.
    pub surplus: usize,
}

/// A request as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The first line and the headers, in lower case, up to the empty line.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Asked {
    /// The body, if it is JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

impl ModelServer {
    /// Starts a server.
    ///
    /// # Panics
    /// Panics if it cannot listen.
    pub async fn start(scripts: Vec<Script>) -> Self {
        Self::listening(TcpListener::bind("127.0.0.1:0").await.unwrap(), scripts)
    }

    /// Starts a server that first asks `aside` for the script of a request. A request that it answers takes no script of the
    /// list and is not in [`Seen::requests`].
    ///
    /// # Panics
    /// When it cannot listen.
    pub async fn start_with(scripts: Vec<Script>, aside: fn(&Asked) -> Option<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::with(listener, scripts, aside)
    }

    /// Starts a server on this listener.
    ///
    /// # Panics
    /// Panics if the listener has no address.
    pub fn listening(listener: TcpListener, scripts: Vec<Script>) -> Self {
        Self::with(listener, scripts, |_| None)
    }

    fn with(
        listener: TcpListener,
        scripts: Vec<Script>,
        aside: fn(&Asked) -> Option<Script>,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let scripts = Arc::new(Mutex::new(VecDeque::from(scripts)));
        let (sender, seen) = watch::channel(Seen::default());
        let written = Arc::new(AtomicU64::new(0));
        let play = Play {
            scripts: Arc::clone(&scripts),
            seen: Arc::new(sender),
            written: Arc::clone(&written),
            aside,
        };
        let task = tokio::spawn(async move {
            // Dropped with this task, and with it all connections.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                connections.spawn(connection(stream, play.clone()));
            }
        });
        Self {
            address,
            scripts,
            seen,
            written,
            task,
        }
    }

    /// Returns the address up to `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the requests so far.
    pub fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits until a condition holds for the requests so far.
    ///
    /// # Panics
    /// Panics if that takes too long.
    pub async fn until(&self, is_seen: impl Fn(&Seen) -> bool) {
        let mut seen = self.seen.clone();
        let waited = tokio::time::timeout(PATIENCE, seen.wait_for(|seen| is_seen(seen))).await;
        let Ok(Ok(_)) = waited else {
            panic!("what was to be seen is not: {:?}", self.seen());
        };
    }

    /// Replaces the remaining scripts with these.
    pub fn play(&self, scripts: impl IntoIterator<Item = Script>) {
        if let Ok(mut list) = self.scripts.lock() {
            *list = scripts.into_iter().collect();
        }
    }

    /// Returns the number of answer bytes that the system has accepted.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Returns the number of remaining scripts.
    pub fn left(&self) -> usize {
        self.scripts.lock().map_or(0, |scripts| scripts.len())
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The state that all connections share.
#[derive(Clone)]
struct Play {
    scripts: Arc<Mutex<VecDeque<Script>>>,
    seen: Arc<watch::Sender<Seen>>,
    written: Arc<AtomicU64>,
    aside: fn(&Asked) -> Option<Script>,
}

/// Counts something until it is dropped.
struct Counted<'s> {
    seen: &'s watch::Sender<Seen>,
    which: fn(&mut Seen) -> &mut usize,
}

impl<'s> Counted<'s> {
    fn new(seen: &'s watch::Sender<Seen>, which: fn(&mut Seen) -> &mut usize) -> Self {
        seen.send_modify(|seen| *which(seen) += 1);
        Self { seen, which }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.seen.send_modify(|seen| *(self.which)(seen) -= 1);
    }
}

/// The end of an answer.
enum Ended {
    /// The connection can be used again.
    Well,
    /// Close it.
    Close,
    /// Reset it.
    Reset,
    /// The client has disconnected.
    Dropped,
}

async fn connection(mut stream: TcpStream, play: Play) {
    let Play {
        scripts,
        seen,
        written,
        aside,
    } = play;
    let _open = Counted::new(&seen, |seen| &mut seen.open);
    let _ = stream.set_nodelay(true);
    let mut read = Vec::new();
    loop {
        let (mut from, to) = stream.split();
        let mut to = Counting {
            to,
            written: &written,
        };
        let asked = tokio::time::timeout(PATIENCE, request(&mut from, &mut read)).await;
        let Ok(Ok(Some(asked))) = asked else {
            return;
        };
        let ended = {
            let _busy = Counted::new(&seen, |seen| &mut seen.busy);
            let script = aside(&asked).or_else(|| {
                seen.send_modify(|seen| seen.requests.push(asked));
                scripts.lock().unwrap().pop_front()
            });
            let script = script.unwrap_or_else(|| {
                seen.send_modify(|seen| seen.surplus += 1);
                Script::json(500, &"there is no script for this request".into())
            });
            tokio::select! {
                () = gone(&mut from, &mut read) => Ended::Dropped,
                ended = tokio::time::timeout(PATIENCE, answer(&mut to, &script)) => {
                    ended.unwrap_or(Ok(Ended::Close)).unwrap_or(Ended::Dropped)
                }
            }
        };
        match ended {
            Ended::Well => {}
            Ended::Close => return,
            Ended::Reset => {
                let _ = stream.set_zero_linger();
                return;
            }
            Ended::Dropped => {
                seen.send_modify(|seen| seen.dropped += 1);
                return;
            }
        }
    }
}

/// Waits until the client has disconnected. Bytes that it sends before are kept for later.
async fn gone(from: &mut ReadHalf<'_>, read: &mut Vec<u8>) {
    while from.read_buf(read).await.is_ok_and(|count| count > 0) {}
}

/// The connection for an answer.
struct Counting<'s> {
    to: WriteHalf<'s>,
    written: &'s AtomicU64,
}

impl Counting<'_> {
    async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.to.write(bytes).await?;
            self.written.fetch_add(count as u64, Ordering::Relaxed);
            bytes = &bytes[count..];
        }
        Ok(())
    }
}

async fn answer(to: &mut Counting<'_>, script: &Script) -> io::Result<Ended> {
    if let Some(head) = &script.head {
        tokio::time::sleep(head.after).await;
        let mut text = format!("HTTP/1.1 {} Scripted\r\n", head.status);
        for (name, value) in &head.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        let _ = match head.framing {
            Framing::Chunked => write!(text, "transfer-encoding: chunked\r\n"),
            // Announces more bytes than it sends, for an answer that is truncated.
            Framing::Length => {
                let missing = usize::from(script.then != Then::End);
                let length = script.body().len() + missing;
                write!(text, "content-length: {length}\r\n")
            }
            Framing::Close => write!(text, "connection: close\r\n"),
        };
        to.write_all((text + "\r\n").as_bytes()).await?;
        for piece in &script.pieces {
            tokio::time::sleep(piece.after).await;
            if head.framing == Framing::Chunked {
                // In one write, so that the client gets the whole chunk.
                let mut chunk = format!("{:x}\r\n", piece.bytes.len()).into_bytes();
                chunk.extend_from_slice(&piece.bytes);
                chunk.extend_from_slice(b"\r\n");
                to.write_all(&chunk).await?;
            } else {
                to.write_all(&piece.bytes).await?;
            }
        }
    }
    let framing = script.head.as_ref().map(|head| head.framing);
    match (script.then, framing) {
        (Then::End, Some(Framing::Chunked)) => {
            to.write_all(b"0\r\n\r\n").await?;
            Ok(Ended::Well)
        }
        (Then::End, Some(Framing::Length)) => Ok(Ended::Well),
        (Then::End | Then::Break, _) => Ok(Ended::Close),
        (Then::Reset, _) => Ok(Ended::Reset),
        (Then::Stall, _) => std::future::pending().await,
    }
}

/// Returns the next request, if there is one.
async fn request(from: &mut ReadHalf<'_>, read: &mut Vec<u8>) -> io::Result<Option<Asked>> {
    let head_len = loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if from.read_buf(read).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&read[..head_len]).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    while read.len() < head_len + length {
        if from.read_buf(read).await? == 0 {
            return Ok(None);
        }
    }
    let body = read[head_len..head_len + length].to_vec();
    read.drain(..head_len + length);
    Ok(Some(Asked { head, body }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_server::Head;

    /// Returns the bytes of a response, and whether the connection was closed normally.
    async fn received(script: Script) -> (String, bool) {
        let server = ModelServer::start(vec![script]).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let asked = b"POST /v1/x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
        for byte in asked {
            stream.write_all(&[*byte]).await.unwrap();
        }
        server
            .until(|seen| seen.requests.len() == 1 && seen.busy == 0)
            .await;
        assert_eq!(server.seen().requests[0].json(), serde_json::json!({}));
        // Also closes kept connections.
        drop(server);
        let mut received = Vec::new();
        let is_peaceful = stream.read_to_end(&mut received).await.is_ok();
        (String::from_utf8(received).unwrap(), is_peaceful)
    }

    #[tokio::test]
    async fn each_ending_and_each_framing() {
        let script = |framing, then| {
            let pieces = ["ab", "c"].map(|piece| piece.as_bytes().to_vec());
            let mut script = Script::new(Head::new(200).header("x", "y"), pieces.to_vec());
            script.then = then;
            script.framing(framing)
        };
        let first = "HTTP/1.1 200 Scripted\r\nx: y\r\n";
        for (framing, then, expected, is_peaceful) in [
            (
                Framing::Chunked,
                Then::End,
                "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
                true,
            ),
            (
                Framing::Chunked,
                Then::Break,
                "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n",
                true,
            ),
            (
                Framing::Chunked,
                Then::Reset,
                "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n",
                false,
            ),
            (
                Framing::Length,
                Then::End,
                "content-length: 3\r\n\r\nabc",
                true,
            ),
            (
                Framing::Length,
                Then::Break,
                "content-length: 4\r\n\r\nabc",
                true,
            ),
            (
                Framing::Close,
                Then::End,
                "connection: close\r\n\r\nabc",
                true,
            ),
        ] {
            let (received, was_peaceful) = received(script(framing, then)).await;
            assert_eq!(was_peaceful, is_peaceful, "{framing:?} {then:?}");
            if is_peaceful {
                assert_eq!(received, format!("{first}{expected}"));
            } else {
                // A reset may lose bytes in transit.
                assert!(format!("{first}{expected}").starts_with(&received));
            }
        }
        for (then, is_peaceful) in [(Then::Break, true), (Then::Reset, false)] {
            assert_eq!(
                received(Script::nothing(then)).await,
                (String::new(), is_peaceful)
            );
        }
    }

    #[tokio::test]
    async fn disconnects_are_seen_and_connections_reused() {
        let stalling = Script::stream(&["a"], "stop").only(1, Then::Stall);
        let server = ModelServer::start(vec![Script::json(200, &1.into()), stalling]).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // Both at the same time.
        stream
            .write_all(&b"GET / HTTP/1.1\r\n\r\n".repeat(2))
            .await
            .unwrap();
        server
            .until(|seen| seen.requests.len() == 2 && seen.busy == 1)
            .await;
        assert_eq!((server.seen().open, server.left()), (1, 0));
        drop(stream);
        server
            .until(|seen| seen.dropped == 1 && seen.open == 0)
            .await;
    }
}
