//! Measures streamed answers: the latency of the model's text.

use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::bodies::{self, STAMP, STAMPS, now};
use crate::http::{find, read, write};
use crate::way::Way;

/// The maximum silence of a stream before it counts as lost.
const PATIENCE: Duration = Duration::from_mins(1);

/// The measured times, in microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// From the request to the first piece of its answer.
    pub(crate) first: Vec<f64>,
    /// From the time at which the model writes a delta to its arrival.
    pub(crate) deltas: Vec<f64>,
    /// From the last byte of an argument to the arrival of the delta that contains it.
    pub(crate) arguments: Vec<f64>,
}

impl Found {
    pub(crate) fn add(&mut self, other: Self) {
        self.first.extend(other.first);
        self.deltas.extend(other.deltas);
        self.arguments.extend(other.arguments);
    }
}

/// Reads this many streams concurrently, each of them repeatedly until the time is over. The first ones start within
/// `spread`.
pub(crate) async fn read_for(
    way: &Way,
    streams: u32,
    spread: Duration,
    time: Duration,
) -> Result<Found, String> {
    let request = way.request(&bodies::request(true));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..streams)
        .map(|number| {
            let (way, request) = (way.clone(), request.clone());
            tokio::spawn(async move {
                tokio::time::sleep(spread * number / streams).await;
                let named = |error: String| format!("{}: {error}", way.name);
                let connected = TcpStream::connect(way.address).await;
                let stream = connected.map_err(|error| named(error.to_string()))?;
                stream
                    .set_nodelay(true)
                    .map_err(|error| error.to_string())?;
                let mut found = Found::default();
                loop {
                    read_one(&stream, &way, &request, &mut found)
                        .await
                        .map_err(named)?;
                    if begun.elapsed() >= time {
                        return Ok::<_, String>(found);
                    }
                }
            })
        })
        .collect();
    let mut found = Found::default();
    for task in tasks {
        found.add(task.await.map_err(|error| error.to_string())??);
    }
    Ok(found)
}

/// Reads one stream, and returns whether it is complete.
async fn read_one(
    stream: &TcpStream,
    way: &Way,
    request: &[u8],
    found: &mut Found,
) -> Result<(), String> {
    let mut all = Vec::new();
    let mut looked = 0;
    let mut stamps = 0;
    let begun = Instant::now();
    write(stream, request).await?;
    loop {
        let piece = tokio::time::timeout(PATIENCE, read(stream, &mut all)).await;
        let read = piece.map_err(|_| "the stream has fallen silent".to_owned())??;
        let arrived = now();
        if read == 0 {
            return Err(format!(
                "the stream ended after {stamps} of {STAMPS} deltas"
            ));
        }
        if looked == 0 && !all.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&all).into_owned());
        }
        if looked == 0 {
            // The id of the request in the head may have as many digits as a time.
            let Some(head) = find(&all, b"\r\n\r\n") else {
                continue;
            };
            looked = head;
        }
        while let Some((kind, stamp, end)) = next_stamp(&all, looked) {
            if stamps == 0 {
                found.first.push(begun.elapsed().as_secs_f64() * 1e6);
            }
            stamps += 1;
            looked = end;
            #[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
            let late = arrived.saturating_sub(stamp) as f64 / 1e3;
            match kind {
                b't' | b'a' | b'z' => found.deltas.push(late),
                _ => {}
            }
            match kind {
                b't' | b'a' => {}
                _ => found.arguments.push(late),
            }
        }
        looked = looked.max(all.len().saturating_sub(STAMP));
        if all.ends_with(b"\r\n0\r\n\r\n") {
            break;
        }
    }
    let ends = if way.has_calls {
        &b"\"finish_reason\":\"tool_calls\""[..]
    } else {
        b"[DONE]"
    };
    if stamps != STAMPS || find(&all, ends).is_none() || find(&all, b"[DONE]").is_none() {
        let text = String::from_utf8_lossy(&all).into_owned();
        return Err(format!(
            "not all has come, {stamps} of {STAMPS} deltas: {text}"
        ));
    }
    Ok(())
}

/// Returns the next time in a text: the byte before it, the time, and the position after it.
fn next_stamp(text: &[u8], mut from: usize) -> Option<(u8, u64, usize)> {
    loop {
        let rest = text.get(from..)?;
        let begin = from + rest.iter().position(u8::is_ascii_digit)?;
        let digits = text.get(begin..)?;
        let length = digits
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        // The time is complete, because bytes follow it.
        if begin + length >= text.len() {
            return None;
        }
        from = begin + length;
        if length == STAMP {
            let stamp = str::from_utf8(digits.get(..length)?).ok()?.parse().ok()?;
            return Some((*text.get(begin.checked_sub(1)?)?, stamp, from));
        }
    }
}
