//! Clients that do as little as possible beside asking.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Asks over so many connections for a while, and gives the time of each request.
pub(crate) fn ask_for(address: SocketAddr, connections: usize, time: Duration) -> Vec<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let end = Instant::now() + time;
        let tasks: Vec<_> = (0..connections)
            .map(|_| tokio::spawn(ask(address, end)))
            .collect();
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await.unwrap());
        }
        times
    })
}

async fn ask(address: SocketAddr, end: Instant) -> Vec<Duration> {
    let body = request();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let request = head + &body;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut times = Vec::new();
    let mut read = Vec::new();
    while Instant::now() < end {
        let begun = Instant::now();
        stream.write_all(request.as_bytes()).await.unwrap();
        answer(&mut stream, &mut read).await;
        times.push(begun.elapsed());
    }
    times
}

/// Reads one answer.
async fn answer(stream: &mut TcpStream, read: &mut Vec<u8>) {
    read.clear();
    loop {
        assert!(
            stream.read_buf(read).await.unwrap() > 0,
            "the server has gone"
        );
        let Some(head) = read.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let text = String::from_utf8_lossy(read.get(..head).unwrap()).to_lowercase();
        assert!(text.starts_with("http/1.1 200"), "{text}");
        let body = read.len() - head - 4;
        let is_whole = match text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
        {
            Some(length) => body >= length.parse().unwrap(),
            None => read.ends_with(b"0\r\n\r\n"),
        };
        if is_whole {
            return;
        }
    }
}

/// A request with ten tools.
fn request() -> String {
    let tools: Vec<_> = (0..10)
        .map(|number| {
            json!({"type": "function", "function": {
                "name": format!("tool_{number}"), "description": "Looks something up, and tells what is known about it.",
                "parameters": {"type": "object", "required": ["query"], "properties": {
                    "query": {"type": "string", "description": "What to look for."},
                    "limit": {"type": "integer", "minimum": 1, "default": 10},
                    "tags": {"type": "array", "items": {"type": "string"}}}}}})
        })
        .collect();
    json!({"model": "m", "messages": [
        {"role": "system", "content": "You are a helpful assistant. ".repeat(10)},
        {"role": "user", "content": "What is the weather like in Paris? ".repeat(10)}], "tools": tools, "temperature": 0.2})
    .to_string()
}
