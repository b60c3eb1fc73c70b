//! A small MCP server over HTTP, with odd habits.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// It listens until it is dropped.
pub(crate) struct Responder {
    address: String,
    listening: JoinHandle<()>,
}

impl Responder {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Self { address, listening }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Answers one request, and closes the connection.
async fn serve(stream: TcpStream) {
    let mut stream = BufReader::new(stream);
    let (mut first, mut key, mut length) = (String::new(), String::new(), 0);
    if stream.read_line(&mut first).await.is_err() {
        return;
    }
    loop {
        let mut line = String::new();
        if !matches!(stream.read_line(&mut line).await, Ok(3..)) {
            break;
        }
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().expect("a number");
            }
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                value.clone_into(&mut key);
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    let answer = answer(&first, &key, &body);
    // Who asked may be gone.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn response(status: &str, head: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{head}\r\n{body}"
    )
}

fn answer(first: &str, key: &str, body: &[u8]) -> String {
    const JSON: &str = "Content-Type: application/json\r\n";
    let mut words = first.split_whitespace();
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    match (method, path) {
        ("POST", "/mcp" | "/other") => {}
        ("POST", "/nobody") => {
            return response("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "");
        }
        ("POST", "/page") => return response("200 OK", "Content-Type: text/html\r\n", "<p>Hello"),
        _ => return response("405 Method Not Allowed", "", ""),
    }
    let message: Value = serde_json::from_slice(body).expect("JSON");
    let with = |result: Value| {
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()
    };
    match message["method"].as_str() {
        Some("initialize") => {
            let result = json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"},
            });
            response("200 OK", JSON, &with(result))
        }
        Some("tools/list") => {
            let tools = ["json", "events", "moved", "busy", "cut"].map(|name| {
                json!({"name": name, "inputSchema": {"type": "object", "properties": {"a": {}}}})
            });
            response("200 OK", JSON, &with(json!({"tools": tools})))
        }
        Some("tools/call") => {
            let name = message["params"]["name"].as_str().expect("a name");
            let text = format!("{key} said {name}");
            let result = with(json!({"content": [{"type": "text", "text": text}]}));
            match name {
                "events" => {
                    let events = format!(": hello\n\nevent: message\ndata: {result}\n\n");
                    response("200 OK", "Content-Type: text/event-stream\r\n", &events)
                }
                "moved" if path == "/mcp" => {
                    response("307 Temporary Redirect", "Location: /other\r\n", "")
                }
                "busy" => response("503 Service Unavailable", "", "please wait"),
                "cut" => String::new(),
                _ => response("200 OK", JSON, &result),
            }
        }
        _ => response("202 Accepted", "", ""),
    }
}
