//! What is asked: a model's server, and what stands before it.

use std::net::SocketAddr;
use std::sync::mpsc::channel;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use plaincall_gateway::{Gateway, GatewayConfig, Secret, Upstream};
use reqwest::Client;
use serde_json::json;
use tokio::net::TcpListener;

/// Starts a server on a runtime of its own.
fn start<F: Future<Output = ()>>(
    run: impl FnOnce(TcpListener) -> F + Send + 'static,
) -> SocketAddr {
    let (sender, address) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            run(listener).await;
        });
    });
    address.recv().unwrap()
}

async fn serve_router(listener: TcpListener, router: Router) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// A model's server that always says the same: about 1 kB with one call.
pub(crate) fn model() -> SocketAddr {
    let said = format!(
        "{}\n!!!GADGET_START:tool_3\n!!!ARG:query\nweather in Paris\n!!!ARG:limit\n5\n!!!GADGET_END\n",
        "I look that up for you. ".repeat(25)
    );
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "logprobs": null, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 80, "total_tokens": 980}});
    let body = Bytes::from(body.to_string());
    start(move |listener| {
        let answer = move |_: Bytes| async move { json_answer(Body::from(body)) };
        serve_router(
            listener,
            Router::new().route("/v1/chat/completions", post(answer)),
        )
    })
}

/// A proxy that does nothing but pass on.
pub(crate) fn bare_proxy(model: SocketAddr) -> SocketAddr {
    start(move |listener| async move {
        let url = format!("http://{model}/v1/chat/completions");
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .build()
            .unwrap();
        let router = Router::new()
            .route("/v1/chat/completions", post(pass_on))
            .with_state((client, url));
        serve_router(listener, router).await;
    })
}

async fn pass_on(State((client, url)): State<(Client, String)>, body: Bytes) -> Response {
    let asked = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .body(body);
    let answer = asked.send().await.unwrap();
    json_answer(Body::from(answer.bytes().await.unwrap()))
}

fn json_answer(body: Body) -> Response {
    Response::builder()
        .header(CONTENT_TYPE, "application/json")
        .body(body)
        .unwrap()
}

/// The gateway as it usually is.
pub(crate) fn gateway(model: SocketAddr) -> SocketAddr {
    start(move |listener| async move {
        let upstream = Upstream::Http {
            url: format!("http://{model}/v1"),
            key: None,
        };
        let config = GatewayConfig::new(upstream, Secret::new("secret"));
        let gateway = Gateway::new(config).unwrap();
        gateway.serve(listener, std::future::pending()).await;
    })
}
