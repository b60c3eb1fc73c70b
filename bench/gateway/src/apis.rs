//! Measures the processor time of the gateway for the requests of coding agents, and for the streams of each API.

use std::time::Duration;

use plaincall_testkit::recordings::recordings;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::bodies;
use crate::http::{find, read, read_message, write};
use crate::measure::{PACE, Verdict, pace};
use crate::options::Options;
use crate::process::Server;
use crate::way::Way;

/// The most processor time for a request of a coding agent, in microseconds.
const MOST_PREPARE: f64 = 1000.0;
/// The most by which the cost of a byte may differ between the APIs.
const MOST_DIFFERENCE: f64 = 1.1;
/// The number of requests in a turn.
const REQUESTS: u32 = 100;
/// The number of concurrent streams.
const STREAMS: usize = 16;
/// The time between two deltas, in microseconds.
const FAST_PACE: u32 = 1000;

/// Measures requests of coding agents that are not streamed: with tools that the gateway knows from an earlier request, and
/// with new ones.
pub(crate) async fn prepare(
    options: &Options,
    gateway: &Server,
    verdict: &mut Verdict,
) -> Result<(), String> {
    println!(
        "\n{:<24} {:>9} {:>16} {:>16}   (processor time of a request, text mode, streamed arguments)",
        "not streamed", "request", "known tools", "new tools"
    );
    let mut most = 0.0_f64;
    for recording in recordings() {
        let body = recording.requests[0].replace("\"stream\":true", "\"stream\":false");
        // The tools of each request differ in one description.
        let (begin, end) = body.split_once("\"description\":\"").unwrap();
        let new = |number: u32| format!("{begin}\"description\":\"{number} {end}");
        let known = |_: u32| body.clone();
        let mut used = [f64::MAX; 2];
        for turn in 0..u32::try_from(options.turns).unwrap() {
            let numbers = turn * REQUESTS..(turn + 1) * REQUESTS;
            let measured = time_of(gateway, recording.path, numbers.clone().map(known)).await?;
            used[0] = used[0].min(measured);
            let measured = time_of(gateway, recording.path, numbers.map(new)).await?;
            used[1] = used[1].min(measured);
        }
        println!(
            "{:<24} {:>6} kB {:>13.0} µs {:>13.0} µs",
            recording.client,
            body.len() / 1000,
            used[0],
            used[1]
        );
        most = most.max(used[0]);
    }
    verdict.target(
        "processor time of an agent's request, known tools",
        most,
        most <= MOST_PREPARE,
        "at most 1000 µs",
    );
    Ok(())
}

/// Returns the processor time of a request, in microseconds.
async fn time_of(
    gateway: &Server,
    path: &str,
    bodies: impl Iterator<Item = String>,
) -> Result<f64, String> {
    let stream = connected(gateway).await?;
    let mut answer = Vec::new();
    let before = gateway.used();
    for body in bodies {
        write(&stream, &request(gateway, path, &body)).await?;
        read_message(&stream, &mut answer).await?;
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&answer).into_owned());
        }
    }
    let used = gateway.used().saturating_sub(before);
    Ok(used.as_secs_f64() * 1e6 / f64::from(REQUESTS))
}

/// Measures streams of each API: the processor time for the bytes sent.
pub(crate) async fn streams(
    options: &Options,
    model: &Way,
    gateway: &Server,
    verdict: &mut Verdict,
) -> Result<(), String> {
    pace(model, FAST_PACE).await?;
    let apis = [
        ("/v1/chat/completions", "[DONE]"),
        ("/v1/responses", "\"type\":\"response.completed\""),
        ("/v1/messages", "\"type\":\"message_stop\""),
    ];
    let time = Duration::from_secs_f64(options.seconds);
    let mut found = [[f64::MAX; 3]; 3];
    for _ in 0..options.turns {
        for ((path, end), found) in apis.iter().zip(&mut found) {
            let body = request(gateway, path, &streamed(path));
            let before = gateway.used();
            let begun = std::time::Instant::now();
            let tasks: Vec<_> = (0..STREAMS)
                .map(|_| {
                    let (body, end) = (body.clone(), *end);
                    let address = gateway.address;
                    tokio::spawn(async move {
                        let stream = TcpStream::connect(address).await;
                        let stream = stream.map_err(|error| error.to_string())?;
                        let (mut bytes, mut answers) = (0, 0);
                        while begun.elapsed() < time {
                            bytes += read_stream(&stream, &body, end).await?;
                            answers += 1;
                        }
                        Ok::<_, String>((bytes, answers))
                    })
                })
                .collect();
            let (mut bytes, mut answers) = (0, 0);
            for task in tasks {
                let (more, count) = task.await.map_err(|error| error.to_string())??;
                bytes += more;
                answers += count;
            }
            let used = gateway.used().saturating_sub(before).as_secs_f64() * 1e6;
            #[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
            let (bytes, answers) = (bytes as f64, f64::from(answers));
            if used / answers < found[0] {
                *found = [used / answers, bytes / answers, used / bytes * 1000.0];
            }
        }
    }
    pace(model, PACE).await?;
    println!(
        "\n{:<24} {:>12} {:>12} {:>12}   (processor time, {STREAMS} streams, text mode, streamed arguments)",
        "streamed", "an answer", "its length", "for 1 kB"
    );
    for ((path, _), [used, bytes, cost]) in apis.iter().zip(&found) {
        println!("{path:<24} {used:>9.0} µs {bytes:>10.0} B {cost:>9.1} µs");
    }
    let costs = found.map(|[_, _, cost]| cost);
    let most = costs.iter().copied().fold(0.0, f64::max);
    let least = costs.iter().copied().fold(f64::MAX, f64::min);
    verdict.target(
        "the most expensive API for a byte, against the cheapest",
        most / least,
        most / least <= MOST_DIFFERENCE,
        "at most 1.1",
    );
    Ok(())
}

/// Returns the streamed request of the benchmark in the API of this path.
fn streamed(path: &str) -> String {
    let chat: Value = serde_json::from_str(&bodies::request(true)).unwrap();
    let (system, user) = (
        &chat["messages"][0]["content"],
        &chat["messages"][1]["content"],
    );
    let functions = chat["tools"].as_array().unwrap().iter();
    let functions = functions.map(|tool| &tool["function"]);
    match path {
        "/v1/responses" => {
            let tools = functions.map(|function| {
                json!({"type": "function", "name": function["name"], "description": function["description"],
                    "parameters": function["parameters"], "strict": false})
            });
            json!({"model": "m", "stream": true, "store": false, "instructions": system, "tools": tools.collect::<Vec<_>>(),
                "input": [{"role": "user", "content": user}], "temperature": 0.2})
        }
        "/v1/messages" => {
            let tools = functions.map(|function| {
                json!({"name": function["name"], "description": function["description"],
                    "input_schema": function["parameters"]})
            });
            json!({"model": "m", "stream": true, "max_tokens": 1000, "system": system, "tools": tools.collect::<Vec<_>>(),
                "messages": [{"role": "user", "content": user}], "temperature": 0.2})
        }
        _ => chat,
    }
    .to_string()
}

/// Reads one answer, and returns its length.
async fn read_stream(stream: &TcpStream, request: &[u8], end: &str) -> Result<usize, String> {
    let mut all = Vec::new();
    write(stream, request).await?;
    while !all.ends_with(b"\r\n0\r\n\r\n") {
        if read(stream, &mut all).await? == 0 {
            return Err("the stream ended early".to_owned());
        }
    }
    if find(&all, end.as_bytes()).is_none() || find(&all, b"tool_3").is_none() {
        return Err(String::from_utf8_lossy(&all).into_owned());
    }
    Ok(all.len())
}

async fn connected(server: &Server) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(server.address).await;
    let stream = stream.map_err(|error| error.to_string())?;
    stream
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    Ok(stream)
}

fn request(server: &Server, path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer key\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    )
    .into_bytes()
}
