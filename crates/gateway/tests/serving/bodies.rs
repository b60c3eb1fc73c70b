//! The bodies of responses, for any split.

use std::io;
use std::iter;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use plaincall_gateway::Body;
use plaincall_gateway::{Gateway, GatewayConfig, Secret, Upstream};

type Piece = Result<Bytes, io::Error>;

/// Returns the client's body for a forwarded response in these pieces; `None` if it is truncated.
async fn given<I>(
    content_type: &'static str,
    pieces: impl Fn() -> I + Send + Sync + 'static,
) -> Option<String>
where
    I: Iterator<Item = Piece> + Send + 'static,
{
    let model = move |_: Request<Bytes>| {
        let answer = Response::builder().header("content-type", content_type);
        let frames = pieces().map(|piece| piece.map(Frame::data));
        let body = Body::new(StreamBody::new(stream::iter(frames)));
        std::future::ready(answer.body(body).map_err(Into::into))
    };
    let config = GatewayConfig::new(Upstream::local(model), Secret::new("secret"));
    let gateway = Gateway::new(config).unwrap();
    let asked = Request::post("/v1/chat/completions").body(Body::from(r#"{"messages":[]}"#));
    let body = gateway.handle(asked.unwrap()).await.into_body();
    let bytes = body.collect().await.ok()?.to_bytes();
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

/// The result for a body does not depend on its split.
async fn check(content_type: &'static str, body: &str, expected: &str) {
    let cuts = (0..=body.len()).map(|at| vec![at]);
    let cuts = cuts.chain(iter::once((0..body.len()).collect()));
    for cuts in cuts {
        let whole = body.as_bytes().to_vec();
        let pieces = move || {
            let ends = cuts.iter().copied().chain([whole.len()]);
            let starts = iter::once(0).chain(cuts.iter().copied());
            let pieces = starts
                .zip(ends)
                .map(|(start, end)| Ok(whole[start..end].to_vec().into()));
            pieces.collect::<Vec<Piece>>().into_iter()
        };
        assert_eq!(given(content_type, pieces).await.as_deref(), Some(expected));
    }
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const OTHER: &str = "audio/x";

#[tokio::test]
async fn separators_are_escaped_in_events_alone() {
    let text = "data: {\"a\":\"x\u{85}y\u{2028}\u{2029}\u{2027}\u{86}\"}\n\n";
    let escaped = "data: {\"a\":\"x\\u0085y\\u2028\\u2029\u{2027}\u{86}\"}\n\n";
    check(EVENTS, text, escaped).await;
    check(JSON, text, text).await;
    check(OTHER, text, text).await;
}

#[tokio::test]
async fn finish_reasons_are_those_of_the_api() {
    let long = format!("{{\"finish_reason\":{}\"eos\"}}", " ".repeat(300));
    for (body, expected) in [
        (r#"{"finish_reason":"stop"}"#, r#"{"finish_reason":"stop"}"#),
        (
            r#"{"finish_reason": "tool_calls"}"#,
            r#"{"finish_reason": "tool_calls"}"#,
        ),
        (r#"{"finish_reason":null}"#, r#"{"finish_reason":null}"#),
        (r#"{"finish_reason":"eos"}"#, r#"{"finish_reason":"stop"}"#),
        (
            "{\"finish_reason\" :\n\"MAX_TOKENS\"}",
            r#"{"finish_reason":"length"}"#,
        ),
        (
            r#"{"finish_reason":"a\"b"}"#,
            r#"{"finish_reason":"length"}"#,
        ),
        (r#"{"finish_reason":""}"#, r#"{"finish_reason":"length"}"#),
        (
            r#"{"a":"\"finish_reason\":\"eos\""}"#,
            r#"{"a":"\"finish_reason\":\"eos\""}"#,
        ),
        (r#"["finish_reason","eos"]"#, r#"["finish_reason","eos"]"#),
        (r#"{"finish_reason":"#, r#"{"finish_reason":"#),
        (&long, &long),
    ] {
        check(JSON, body, expected).await;
        check(EVENTS, body, expected).await;
        check(OTHER, body, body).await;
    }
}

/// A partial body is never mistaken for a complete one.
#[tokio::test]
async fn truncated_bodies_are_not_complete() {
    let first = || Ok(Bytes::from("a"));
    for content_type in [JSON, EVENTS, OTHER] {
        let whole = given(content_type, move || iter::once(first())).await;
        assert_eq!(whole.as_deref(), Some("a"));
        let broken = move || [first(), Err(io::ErrorKind::BrokenPipe.into())].into_iter();
        assert_eq!(given(content_type, broken).await, None);
        let panicking = move || {
            (0..2).map(move |place| {
                assert_eq!(place, 0, "this is meant to panic");
                first()
            })
        };
        assert_eq!(given(content_type, panicking).await, None);
    }
}
