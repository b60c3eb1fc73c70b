//! A proxy that only forwards requests, as most people would write it with axum and reqwest.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use reqwest::Client;
use tokio::net::TcpListener;

/// Forwards requests to this address until the process ends. Complete bodies are read before they are forwarded;
/// streams are forwarded as they arrive.
pub(crate) async fn serve(listener: TcpListener, model: &str) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder().no_proxy().tcp_nodelay(true);
    let client = builder.build().unwrap();
    let url = format!("{model}/chat/completions");
    let router = Router::new()
        .route("/v1/chat/completions", post(pass_on))
        .with_state((client, url));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        // The same as `axum::serve`, without the detection of HTTP/2.
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn pass_on(State((client, url)): State<(Client, String)>, body: Bytes) -> Response {
    let asked = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .body(body);
    let answer = asked.send().await.unwrap();
    let kind = answer.headers().get(CONTENT_TYPE).cloned().unwrap();
    let body = if kind == "text/event-stream" {
        Body::new(reqwest::Body::from(answer))
    } else {
        Body::from(answer.bytes().await.unwrap())
    };
    Response::builder()
        .header(CONTENT_TYPE, kind)
        .body(body)
        .unwrap()
}
