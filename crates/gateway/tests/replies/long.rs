//! Very long replies, and the memory that the gateway needs for them.
//!
//! `cargo test --release -p plaincall-gateway long_replies -- --ignored --nocapture`

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Body as HttpBody;
use hyper::body::Frame;
use plaincall_gateway::Body;
use plaincall_gateway::{Gateway, GatewayConfig, Secret, Upstream};
use plaincall_testkit::model_server::chunk;
use serde_json::{Value, json};

use crate::replies::model::request;

/// The length of a reply, and the memory limit for it, in bytes.
const LENGTH: usize = 100 << 20;
const HELD: usize = 4 << 20;
/// The memory limit for each call, whose id the gateway keeps during the reply.
const HELD_OF_CALL: usize = 200;

/// A body that repeats one piece and then ends with another.
struct Repeating {
    piece: Bytes,
    left: usize,
    last: Option<Bytes>,
}

impl HttpBody for Repeating {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let piece = match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Some(self.piece.clone())
            }
            None => self.last.take(),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Returns a memory statistic of this process in bytes, on Linux.
fn memory(name: &str) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

async fn play(name: &str, delta: &Value, fields: &Value) {
    let is_call = name == "calls";
    let piece = Bytes::from(chunk(delta, &Value::Null));
    let last = [
        chunk(&json!({}), &json!("stop")),
        b"data: [DONE]\n\n".to_vec(),
    ]
    .concat();
    let left = LENGTH / piece.len();
    let model = move |_: Request<Bytes>| {
        let body = Repeating {
            piece: piece.clone(),
            left,
            last: Some(last.clone().into()),
        };
        let response = Response::builder().header("content-type", "text/event-stream");
        async move { Ok(response.body(Body::new(body))?) }
    };
    let config = GatewayConfig::new(Upstream::local(model), Secret::new("secret"));
    let gateway = Gateway::new(config).unwrap();
    let asked = Request::post("/v1/chat/completions").body(Body::from(request(fields).to_string()));
    let mut body = gateway.handle(asked.unwrap()).await.into_body();
    let mut before = None;
    let mut length = 0;
    let mut end = Vec::new();
    while let Some(frame) =
        std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {
        let data = frame.unwrap().into_data().unwrap();
        length += data.len();
        end.extend_from_slice(&data);
        end.drain(..end.len().saturating_sub(20));
        if length > LENGTH / 100 && before.is_none() {
            before = Some(memory("VmRSS:"));
        }
    }
    assert!(
        end.ends_with(b"data: [DONE]\n\n"),
        "{}",
        String::from_utf8_lossy(&end)
    );
    let Some((before, most)) = before.flatten().zip(memory("VmHWM:")) else {
        println!("long reply, {name}: no memory statistics on this system");
        return;
    };
    let held = most.saturating_sub(before);
    println!(
        "long reply, {name}: {} MiB out, {} KiB held",
        length >> 20,
        held >> 10
    );
    let of_calls = if is_call { left * HELD_OF_CALL } else { 0 };
    assert!(held < HELD + of_calls, "{name}: {held} bytes");
}

#[test]
#[ignore = "measures the memory of its process, so it must be alone in it"]
fn long_replies_are_not_held() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let words = "A few words, and then some more. ".repeat(4);
    let call = "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n";
    runtime.block_on(async {
        let none = json!({});
        play("text", &json!({"content": words}), &none).await;
        play("reasoning", &json!({"reasoning_content": words}), &none).await;
        play(
            "passed on",
            &json!({"content": "A few words. "}),
            &json!({"tools": []}),
        )
        .await;
        play("calls", &json!({"content": call}), &none).await;
    });
}
