//! A small MCP server over HTTP with unusual behavior.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The tools at `/mcp`.
const TOOLS: [&str; 15] = [
    "json", "events", "moved", "busy", "cut", "gone", "away", "quote", "odd", "half", "expired",
    "stated", "refused", "ended", "noisy",
];

/// It listens until it is dropped.
pub(crate) struct Responder {
    address: String,
    state: Arc<Mutex<State>>,
    listening: JoinHandle<()>,
}

/// The state of the server, and its answers.
#[derive(Default)]
struct State {
    calls: Vec<String>,
    elsewhere: String,
    /// The definitions of the tools at `/given`, and their results.
    offered: Value,
    given: Value,
    /// Responses to the next calls at `/given`: status, content type and body, with `CALL_ID` for their ids.
    responses: VecDeque<[String; 3]>,
}

impl Responder {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::<Mutex<State>>::default();
        let notes = Arc::clone(&state);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&notes)));
            }
        });
        Self {
            address,
            state,
            listening,
        }
    }

    /// Returns the number of calls of a tool.
    pub(crate) fn calls(&self, tool: &str) -> usize {
        let state = self.state.lock().expect("no panic");
        state.calls.iter().filter(|called| *called == tool).count()
    }

    /// Redirects calls of `away` to this address.
    pub(crate) fn lead_to(&self, other: &Self) {
        let mut state = self.state.lock().expect("no panic");
        state.elsewhere = other.url("/mcp");
    }

    /// Sets the tools at `/given`.
    pub(crate) fn offer(&self, tools: &[&str]) {
        self.define(&tools.iter().map(defined).collect());
    }

    /// Sets the definitions of the tools at `/given`.
    pub(crate) fn define(&self, tools: &Value) {
        self.state.lock().expect("no panic").offered = tools.clone();
    }

    /// Sets the results of the tools at `/given`.
    pub(crate) fn give(&self, result: &Value) {
        self.state.lock().expect("no panic").given = result.clone();
    }

    /// Answers a further call at `/given` with this status, content type and body.
    pub(crate) fn respond(&self, response: [&str; 3]) {
        let mut state = self.state.lock().expect("no panic");
        state.responses.push_back(response.map(str::to_owned));
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
async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
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
    let answer = answer(&first, &key, &body, &state);
    // The client may have disconnected.
    let _ = stream.write_all(answer.as_bytes()).await;
    if answer.contains("event-stream") && !answer.contains("Content-Length") {
        let _ = stream.read_to_end(&mut body).await;
    }
    let _ = stream.shutdown().await;
}

fn response(status: &str, head: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{head}\r\n{body}"
    )
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn answer(first: &str, key: &str, body: &[u8], state: &Mutex<State>) -> String {
    const JSON: &str = "Content-Type: application/json\r\n";
    let mut words = first.split_whitespace();
    let method = words.next().unwrap_or_default();
    let path = words.next().and_then(|path| path.split('?').next());
    let path = path.unwrap_or_default();
    match (method, path) {
        (
            "POST",
            "/mcp" | "/given" | "/other" | "/pages" | "/again" | "/many" | "/giant" | "/much"
            | "/wrong",
        ) => {}
        ("POST", "/unauthorized") => {
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
            // The server has sessions, and sends other events first.
            let with_session = "Content-Type: text/event-stream\r\nMcp-Session-Id: one\r\n";
            let events = format!("event: ping\ndata: {{}}\n\ndata: {}\n\n", with(result));
            response("200 OK", with_session, &events)
        }
        Some("tools/list") if !matches!(path, "/mcp" | "/given") => {
            let page = message["params"]["cursor"].as_str().unwrap_or("0");
            let page: u32 = page.parse().expect("a number");
            response("200 OK", JSON, &with(page_of(path, page)))
        }
        Some("tools/list") => {
            let tools: Value = match path {
                "/given" => state.lock().expect("no panic").offered.clone(),
                _ => TOOLS.iter().map(defined).collect(),
            };
            response("200 OK", JSON, &with(json!({"tools": tools})))
        }
        Some("tools/call") if path == "/given" => {
            let mut state = state.lock().expect("no panic");
            match state.responses.pop_front() {
                Some([status, content_type, body]) => {
                    let head = format!("Content-Type: {content_type}\r\n");
                    let body = body.replace("CALL_ID", &message["id"].to_string());
                    response(&status, &head, &body)
                }
                None => response("200 OK", JSON, &with(state.given.clone())),
            }
        }
        Some("tools/call") => {
            let name = message["params"]["name"].as_str().expect("a name");
            let (elsewhere, calls) = {
                let mut state = state.lock().expect("no panic");
                state.calls.push(name.to_owned());
                let calls = state.calls.iter().filter(|called| *called == name);
                (state.elsewhere.clone(), calls.count())
            };
            let text = format!("{key} called {name}");
            let result = with(json!({"content": [{"type": "text", "text": text}]}));
            match name {
                "events" => {
                    let events = format!(": hello\n\nevent: message\ndata: {result}\n\n");
                    response("200 OK", "Content-Type: text/event-stream\r\n", &events)
                }
                // The connection stays open, because more events could follow.
                "odd" | "half" => {
                    let id = &message["id"];
                    let data = if name == "odd" {
                        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":["#)
                    } else {
                        result.replace("called half", "\\ud83d")
                    };
                    format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {data}\n\n"
                    )
                }
                "moved" if path == "/mcp" => {
                    response("307 Temporary Redirect", "Location: /other\r\n", "")
                }
                "gone" => response("404 Not Found", "", ""),
                "expired" if calls == 1 => response("404 Not Found", "", ""),
                "stated" if calls == 1 => {
                    let error = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID"},"id":null}"#;
                    response("400 Bad Request", JSON, error)
                }
                "refused" => {
                    let error = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"not now"},"id":null}"#;
                    response("406 Not Acceptable", JSON, error)
                }
                "ended" => response("200 OK", "Content-Type: text/event-stream\r\n", ": bye\n\n"),
                "noisy" => {
                    let events = format!(
                        "event: ping\ndata: {{}}\n\ndata: {{\"level\":30}}\n\ndata: {result}\n\n"
                    );
                    response("200 OK", "Content-Type: text/event-stream\r\n", &events)
                }
                "away" => {
                    let location = format!("Location: {elsewhere}\r\n");
                    response("307 Temporary Redirect", &location, "")
                }
                "quote" => {
                    let beginning = key.get(..14).unwrap_or_default();
                    let error = json!({"code": -32000, "message": format!("wrong key {key}, {beginning}***")});
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                    response("200 OK", JSON, &answer.to_string())
                }
                "busy" => response("503 Service Unavailable", "", "please wait"),
                "cut" => String::new(),
                _ => response("200 OK", JSON, &result),
            }
        }
        _ => response("202 Accepted", "", ""),
    }
}

fn defined(name: &&str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"a": {}}}})
}

/// Servers that offer too much.
fn page_of(path: &str, page: u32) -> Value {
    let tool = |name: String, length: usize| json!({"name": name, "description": "x".repeat(length), "inputSchema": {"type": "object"}});
    let tools = |count: u32, length: usize| -> Vec<Value> {
        let names = (0..count).map(|number| format!("t{page}_{number}"));
        names.map(|name| tool(name, length)).collect()
    };
    let next = (page + 1).to_string();
    match path {
        "/pages" => json!({"tools": tools(1, 0), "nextCursor": next}),
        "/again" => json!({"tools": tools(1, 0), "nextCursor": "1"}),
        "/many" => json!({"tools": tools(600, 0), "nextCursor": next}),
        "/giant" => {
            json!({"tools": [tool("small".to_owned(), 0), tool("giant".to_owned(), 40_000)]})
        }
        "/much" => json!({"tools": tools(10, 32_000)}),
        _ => {
            let wrong =
                |number| json!({"name": format!("w{number}"), "inputSchema": {"type": "array"}});
            json!({"tools": (0..300).map(wrong).collect::<Vec<_>>()})
        }
    }
}
