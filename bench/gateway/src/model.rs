//! A model server that writes prepared bytes and does nothing else.
//!
//! One thread reads requests. Another one writes streams, so that each delta is sent on time, and not at the next
//! tick of a millisecond timer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};

use crate::bodies::{CALLED, STAMP, answer, events, now, plain_answer};
use crate::http::{find, read_message, write};

const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// The maximum time for which the thread that writes streams sleeps.
const IDLE: Duration = Duration::from_secs(1);

/// Serves until the process ends. An answer that is not streamed is written as soon as its request is read.
///
/// `POST /pace/N` sets the microseconds between two deltas of a stream.
pub(crate) async fn serve(listener: TcpListener) {
    let shared = Arc::new(Shared {
        answer: whole(&answer()),
        plain: whole(&plain_answer()),
        models: whole(
            r#"{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"bench"}]}"#,
        ),
        pace: AtomicU64::new(20_000),
    });
    let (sender, streams) = channel();
    let writer = Arc::clone(&shared);
    std::thread::spawn(move || write_streams(&streams, &writer.pace));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let conversation = converse(Arc::new(stream), Arc::clone(&shared), sender.clone());
        // A client may disconnect at any time.
        tokio::spawn(async move { drop(conversation.await) });
    }
}

struct Shared {
    answer: Vec<u8>,
    /// An answer without a call, for requests with other tools.
    plain: Vec<u8>,
    models: Vec<u8>,
    /// Microseconds.
    pace: AtomicU64,
}

fn whole(body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    (head + body).into_bytes()
}

/// Answers the requests of one connection until it ends.
async fn converse(
    stream: Arc<TcpStream>,
    shared: Arc<Shared>,
    streams: Sender<Arc<TcpStream>>,
) -> Result<(), String> {
    let mut read = Vec::new();
    while let Some(body) = read_message(&stream, &mut read).await? {
        let (head, body) = read.split_at(body);
        if let Some(number) = head.strip_prefix(b"POST /pace/") {
            let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
            let number: String = digits.map(|digit| char::from(*digit)).collect();
            shared
                .pace
                .store(number.parse().unwrap(), Ordering::Relaxed);
        }
        let mut wanted = [&b"\"stream\":true"[..], b"\"stream\": true"].into_iter();
        if wanted.any(|field| find(body, field).is_some()) {
            write(&stream, STREAM_HEAD).await?;
            streams.send(Arc::clone(&stream)).unwrap();
        } else if head.starts_with(b"GET") {
            write(&stream, &shared.models).await?;
        } else if find(body, CALLED.as_bytes()).is_none() {
            write(&stream, &shared.plain).await?;
        } else {
            write(&stream, &shared.answer).await?;
        }
    }
    Ok(())
}

/// A stream that is being written. Its number orders the streams that are due at the same time.
struct OpenStream {
    stream: Arc<TcpStream>,
    next: usize,
    pace: Duration,
}

/// Writes the deltas of all streams on time.
fn write_streams(begun: &Receiver<Arc<TcpStream>>, pace: &AtomicU64) {
    let mut events = events();
    let mut due: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
    let mut written: Vec<Option<OpenStream>> = Vec::new();
    let mut free = Vec::new();
    loop {
        let wait = match due.peek() {
            Some(Reverse((time, _))) => time.saturating_duration_since(Instant::now()),
            None => IDLE,
        };
        if !wait.is_zero() {
            match begun.recv_timeout(wait) {
                Ok(stream) => {
                    let number = free.pop().unwrap_or_else(|| {
                        written.push(None);
                        written.len() - 1
                    });
                    written[number] = Some(OpenStream {
                        stream,
                        next: 0,
                        pace: Duration::from_micros(pace.load(Ordering::Relaxed)),
                    });
                    due.push(Reverse((Instant::now(), number)));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            continue;
        }
        let Some(Reverse((time, number))) = due.pop() else {
            continue;
        };
        let Some(one) = &mut written[number] else {
            continue;
        };
        let (bytes, places) = &mut events[one.next];
        let stamp = now().to_string();
        for place in places.iter() {
            bytes[*place..*place + STAMP].copy_from_slice(stamp.as_bytes());
        }
        // A delta is small enough for the socket buffer of any client that reads.
        let is_sent = one
            .stream
            .try_write(bytes)
            .is_ok_and(|sent| sent == bytes.len());
        one.next += 1;
        if is_sent && one.next < events.len() {
            due.push(Reverse((time + one.pace, number)));
        } else {
            written[number] = None;
            free.push(number);
        }
    }
}
