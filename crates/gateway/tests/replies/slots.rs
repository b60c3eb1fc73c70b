//! Limits for requests and bodies: which request takes which slot.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Body as HttpBody;
use hyper::body::Frame;
use plaincall_gateway::Body;
use plaincall_gateway::{Gateway, GatewayConfig, Secret, Upstream};
use tokio::time::{Instant, sleep};

/// A body that begins and never ends.
struct Unending(Option<Bytes>);

impl HttpBody for Unending {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

/// A gateway with one client, whose model answers after a second.
fn gateway(set: impl FnOnce(&mut GatewayConfig)) -> Gateway {
    let model = async |_: Request<Bytes>| {
        sleep(Duration::from_secs(1)).await;
        let answer = Response::builder().header("content-type", "application/json");
        Ok(answer.body(Body::from(r#"{"choices":[]}"#))?)
    };
    let mut config = GatewayConfig::new(Upstream::local(model), Secret::new("secret"));
    config.keys = vec!["known".to_owned()];
    set(&mut config);
    Gateway::new(config).unwrap()
}

async fn ask(gateway: &Gateway, key: &str, body: Body) -> Response<Body> {
    let request = Request::post("/v1/chat/completions").header("authorization", key);
    gateway.handle(request.body(body).unwrap()).await
}

const PLAIN: &str = r#"{"messages":[]}"#;

#[tokio::test(start_paused = true)]
async fn unauthorized_requests_take_no_slot() {
    let gateway = gateway(|config| config.limits.concurrent = 1);
    let started = Instant::now();
    let unending = || Body::new(Unending(Some("{".into())));
    let refused = tokio::spawn({
        let gateway = gateway.clone();
        async move { ask(&gateway, "Bearer other", unending()).await }
    });
    sleep(Duration::from_millis(1)).await;
    assert_eq!(gateway.active(), 0);
    assert_eq!(
        ask(&gateway, "Bearer known", PLAIN.into()).await.status(),
        200
    );
    assert_eq!(refused.await.unwrap().status(), 401);
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_place_is_kept_until_the_answer_is_taken() {
    let gateway = gateway(|config| config.limits.concurrent = 1);
    let answer = ask(&gateway, "Bearer known", PLAIN.into()).await;
    assert_eq!((answer.status().as_u16(), gateway.active()), (200, 1));
    assert_eq!(
        ask(&gateway, "Bearer known", PLAIN.into()).await.status(),
        503
    );
    drop(answer);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(gateway.active(), 0);
}

#[tokio::test(start_paused = true)]
async fn bodies_have_a_limit_together() {
    let gateway = gateway(|config| {
        config.limits.body = 20;
        config.limits.bodies = 30;
    });
    let first = tokio::spawn({
        let gateway = gateway.clone();
        async move {
            ask(
                &gateway,
                "Bearer known",
                Body::new(Unending(Some(PLAIN.into()))),
            )
            .await
        }
    });
    sleep(Duration::from_millis(1)).await;
    // 15 bytes and 15 bytes fit; another 15 do not.
    let second = tokio::spawn({
        let gateway = gateway.clone();
        async move { ask(&gateway, "Bearer known", PLAIN.into()).await }
    });
    sleep(Duration::from_millis(1)).await;
    let third = ask(&gateway, "Bearer known", PLAIN.into()).await;
    assert_eq!(third.status(), 503);
    assert_eq!(third.headers()["retry-after"], "1");
    // A body that the model server has takes no room, although the answer has not been read.
    let second = second.await.unwrap();
    assert_eq!(
        ask(&gateway, "Bearer known", PLAIN.into()).await.status(),
        200
    );
    drop(second);
    assert_eq!(first.await.unwrap().status(), 408);
}
