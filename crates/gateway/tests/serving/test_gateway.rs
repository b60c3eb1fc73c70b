//! A running gateway, and a client.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plaincall_gateway::{Gateway, GatewayConfig, Report, Secret, Upstream};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use plaincall_testkit::model_server::ModelServer;
use plaincall_testkit::strict_client::{Recorded, read_answer};

pub(crate) struct TestGateway {
    pub(crate) address: SocketAddr,
    pub(crate) client: Client,
    pub(crate) gateway: Gateway,
    reports: Arc<Mutex<Vec<Report>>>,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<std::io::Result<usize>>,
}

impl TestGateway {
    /// A gateway in front of a scripted server, with other settings.
    pub(crate) async fn before(server: &ModelServer, set: impl FnOnce(&mut GatewayConfig)) -> Self {
        Self::with(upstream(server), set).await
    }

    pub(crate) async fn with(upstream: Upstream, set: impl FnOnce(&mut GatewayConfig)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::listening(listener, upstream, set)
    }

    /// A gateway on this listener.
    pub(crate) fn listening(
        listener: TcpListener,
        upstream: Upstream,
        set: impl FnOnce(&mut GatewayConfig),
    ) -> Self {
        let mut config = GatewayConfig::new(upstream, Secret::new("secret"));
        let reports: Arc<Mutex<Vec<Report>>> = Arc::default();
        let list = Arc::clone(&reports);
        config.observer =
            Arc::new(move |report: &Report| list.lock().unwrap().push(report.clone()));
        set(&mut config);
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let gateway = Gateway::new(config).unwrap();
        let server = tokio::spawn(gateway.clone().serve(listener, async move {
            let _ = stopped.await;
        }));
        // The first shutdown of the gateway and this client decides.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        Self {
            address,
            gateway,
            client,
            reports,
            stop: Some(stop),
            server,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        let response = self.client.get(self.url(path)).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    pub(crate) async fn post(&self, body: &Value) -> Response {
        self.post_text(body.to_string()).await
    }

    pub(crate) async fn post_text(&self, body: impl Into<reqwest::Body>) -> Response {
        let request = self.client.post(self.url("/v1/chat/completions"));
        request
            .header("x-request-id", "mine-1")
            .body(body)
            .send()
            .await
            .unwrap()
    }

    /// Requests a stream and reads it to its end.
    pub(crate) async fn read_answer(&self, body: &Value) -> Recorded {
        let response = self.post(body).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        read_answer(&response.bytes().await.unwrap(), false)
    }

    /// Returns the reports of ended requests, as soon as there are this many.
    pub(crate) async fn reports(&self, count: usize) -> Vec<Report> {
        for _ in 0..2000 {
            let reports = self.reports.lock().unwrap().clone();
            if reports.len() >= count {
                return reports;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("there are no {count} reports");
    }

    /// Returns the number of ended requests.
    pub(crate) fn reported(&self) -> u64 {
        self.reports.lock().unwrap().len() as u64
    }

    /// Shuts the gateway down.
    pub(crate) fn stop(&mut self) {
        let _ = self.stop.take().expect("it runs").send(());
    }

    /// Drops the server at once.
    pub(crate) fn abort(&self) {
        self.server.abort();
    }

    /// Waits for its end.
    pub(crate) async fn ended(self) -> usize {
        let ended = tokio::time::timeout(Duration::from_secs(20), self.server);
        ended.await.expect("it ends in time").unwrap().unwrap()
    }
}

/// Returns the gateway's settings for a scripted server.
pub(crate) fn upstream(server: &ModelServer) -> Upstream {
    Upstream::http(server.url(), None)
}

/// A request with a tool.
pub(crate) fn request(is_streamed: bool) -> Value {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    json!({
        "model": "m", "stream": is_streamed,
        "messages": [{"role": "user", "content": "Add."}],
        "tools": [{"type": "function", "function": {"name": "add", "parameters": schema}}],
    })
}

pub(crate) const ADD: &str = "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n";

/// Returns an answer of a server that does not stream.
pub(crate) fn completion(text: &str) -> Value {
    json!({"id": "chatcmpl-9", "object": "chat.completion", "created": 7, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
}

/// Waits until neither the gateway nor the model server has a request.
pub(crate) async fn nothing_is_left(gateway: &TestGateway, server: &ModelServer) {
    server.until(|seen| seen.busy == 0).await;
    for _ in 0..2000 {
        let (_, metrics) = gateway.get("/metrics").await;
        let line = "plaincall_requests_active 0";
        if metrics.lines().any(|found| found == line) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a request is left");
}
