//! Measures requests that are not streamed: requests per second, and the time of each request.

use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::bodies;
use crate::http::{find, read_message, write};
use crate::way::Way;

/// Sends requests over this many connections for a while, and returns the time of each request in microseconds.
pub(crate) async fn ask_for(
    way: &Way,
    connections: usize,
    time: Duration,
) -> Result<Vec<f64>, String> {
    let request = way.request(&bodies::request(false));
    let end = Instant::now() + time;
    let tasks: Vec<_> = (0..connections)
        .map(|_| tokio::spawn(ask(way.clone(), request.clone(), end)))
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.map_err(|error| error.to_string())??);
    }
    Ok(times)
}

async fn ask(way: Way, request: Vec<u8>, end: Instant) -> Result<Vec<f64>, String> {
    let named = |error: String| format!("{}: {error}", way.name);
    let connected = TcpStream::connect(way.address).await;
    let stream = connected.map_err(|error| named(error.to_string()))?;
    stream
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    let mut times = Vec::new();
    let mut answer = Vec::new();
    while Instant::now() < end {
        let begun = Instant::now();
        write(&stream, &request).await.map_err(named)?;
        let body = read_message(&stream, &mut answer).await.map_err(named)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
        let part = if way.has_calls {
            &b"\"tool_calls\":["[..]
        } else {
            b"\"choices\""
        };
        let is_right = answer.starts_with(b"HTTP/1.1 200") && find(&answer, part).is_some();
        if body.is_none() || !is_right {
            return Err(named(String::from_utf8_lossy(&answer).into_owned()));
        }
    }
    Ok(times)
}
