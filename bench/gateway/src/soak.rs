//! Runs the gateway with a faulty model server for a while: its memory must not grow.
//!
//! Every answer must follow the rules of the API. At the end, no request, no connection to the model server and no
//! file may be open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::model_server::{Drawn, ModelServer};
use plaincall_testkit::strict_client::read_answer;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::process::{Server, raise_open_files};

/// The number of concurrent clients.
const CLIENTS: u64 = 16;
/// The maximum time of an answer. The gateway's own deadlines for the model server are much shorter.
const PATIENCE: Duration = Duration::from_mins(1);
/// The number of rounds. Between two rounds there is no request, and memory is measured.
const ROUNDS: u32 = 6;
/// The number of additional rounds while memory seems to grow. Random growth does not continue.
const MORE: u32 = 4;
/// The maximum growth of the last two rounds over all rounds before them, in bytes. The memory after a round varies
/// by more than this, because allocators keep freed memory; only a leak grows steadily.
const GROWTH: u64 = 4 << 20;
/// The maximum memory in total without the pages of the program, in bytes. Answers may be long here, and many are created at the
/// same time.
const MOST: u64 = 128 << 20;
/// The number of bodies of 1 MiB that are announced at the same time.
const ANNOUNCED: u64 = 1000;
/// The maximum memory for each of them, in bytes.
const MOST_ANNOUNCED: u64 = 64 << 10;
/// The time after the last request in which the gateway must close everything.
const END: Duration = Duration::from_secs(10);

/// The results of one client.
#[derive(Clone, Copy, Debug, Default)]
struct Had {
    answers: u64,
    errors: u64,
    calls: usize,
    left: u64,
}

impl Had {
    fn add(&mut self, more: Self) {
        self.answers += more.answers;
        self.errors += more.errors;
        self.calls += more.calls;
        self.left += more.left;
    }
}

/// Runs the gateway for this long.
pub(crate) async fn soak(program: &str, time: Duration) -> Result<(), String> {
    raise_open_files();
    // A client of `reqwest` requires one, even without encryption.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let model = Arc::new(ModelServer::start(Vec::new()).await);
    let upstream = model.url();
    let configuration = "[serve]\nfirst_byte_timeout = '300ms'\nidle_timeout = '300ms'\n";
    let gateway = Server::gateway(program, &upstream, configuration)?;
    let begun = Instant::now();
    let files = gateway.files();
    let mut had = Had::default();
    let mut left = Vec::new();
    for round in 0..u64::from(ROUNDS + MORE) {
        if round >= u64::from(ROUNDS) && !grows(&left) {
            break;
        }
        let end = Instant::now() + time / ROUNDS;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let seed = round * CLIENTS + number;
                tokio::spawn(client(seed, gateway.address, Arc::clone(&model), end))
            })
            .collect();
        for client in clients {
            had.add(client.await.map_err(|error| error.to_string())?);
        }
        until_nothing_is_left(&gateway, files).await?;
        left.push(gateway.memory().0);
    }
    announce(&gateway).await?;
    until_nothing_is_left(&gateway, files).await?;
    let most = gateway.memory().1.saturating_sub(gateway.file_pages());
    let memory: Vec<String> = left.iter().map(|bytes| (bytes >> 10).to_string()).collect();
    println!(
        "soak: {} s, {} answers with {} calls, {} errors, {} clients that went away; memory after each round {} KiB; {} \
         KiB at most without the program's pages",
        begun.elapsed().as_secs(),
        had.answers,
        had.calls,
        had.errors,
        had.left,
        memory.join(", "),
        most >> 10
    );
    if had.calls == 0 || had.errors == 0 || had.left == 0 {
        return Err("the soak has not met what it is to meet".to_owned());
    }
    if grows(&left) {
        return Err("memory grows".to_owned());
    }
    if most > MOST {
        return Err(format!("it had more than {} KiB at one time", MOST >> 10));
    }
    Ok(())
}

/// Announces bodies and sends none of them. The gateway must use memory only for the bytes that arrive.
async fn announce(gateway: &Server) -> Result<(), String> {
    let before = gateway.memory().0;
    let mut clients = Vec::new();
    for _ in 0..ANNOUNCED {
        let stream = TcpStream::connect(gateway.address).await;
        let mut stream = stream.map_err(|error| error.to_string())?;
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1048576\r\n\r\n{";
        let sent = stream.write_all(head.as_bytes()).await;
        sent.map_err(|error| error.to_string())?;
        clients.push(stream);
    }
    let line = format!("plaincall_requests_active {ANNOUNCED}");
    until_metrics_contain(gateway, &line).await?;
    let each = gateway.memory().0.saturating_sub(before) / ANNOUNCED;
    println!("soak: {ANNOUNCED} announced bodies take {each} bytes each");
    if each > MOST_ANNOUNCED {
        return Err(format!("an announced body takes {each} bytes"));
    }
    Ok(())
}

/// Returns whether both of the last two rounds left more memory than all rounds between them and the first, which
/// fills the caches.
fn grows(left: &[u64]) -> bool {
    let (before, last) = left.split_at(left.len().saturating_sub(2));
    let before = before.iter().skip(1).max();
    let last = last.iter().min();
    last.zip(before)
        .is_some_and(|(last, before)| *last > before + GROWTH)
}

/// Sends requests until the end.
async fn client(number: u64, address: SocketAddr, model: Arc<ModelServer>, end: Instant) -> Had {
    let http = Client::builder().no_proxy().build().unwrap();
    let mut random = Random::new(number);
    let mut had = Had::default();
    while Instant::now() < end {
        let is_streamed = !random.one_in(3);
        let has_tools = !random.one_in(4);
        if model.left() < 8 {
            let scripts = (0..8).map(|_| Drawn::new(&mut random, is_streamed).script);
            model.play(scripts.collect::<Vec<_>>());
        }
        let asked = http
            .post(format!("http://{address}/v1/chat/completions"))
            .body(request(is_streamed, has_tools).to_string());
        let goes_away = random.one_in(10);
        let pause = Duration::from_millis(random.below(20) as u64);
        let talk = async {
            let response = asked.send().await.unwrap();
            if response.status() != 200 {
                let body = response.text().await.unwrap();
                let error: Value = serde_json::from_str(&body).expect("an error as JSON");
                assert!(error["error"]["message"].is_string(), "{error}");
                return None;
            }
            let is_ours = has_tools && is_streamed;
            match response.bytes().await {
                Ok(bytes) if is_ours => Some(read_answer(&bytes, false).calls.len()),
                Ok(_) => Some(0),
                // Only forwarded answers may be truncated.
                Err(error) => {
                    assert!(!has_tools, "{error}");
                    None
                }
            }
        };
        if goes_away {
            if tokio::time::timeout(pause, talk).await.is_err() {
                had.left += 1;
            }
            continue;
        }
        match tokio::time::timeout(PATIENCE, talk).await.expect("an end") {
            Some(calls) => {
                had.answers += 1;
                had.calls += calls;
            }
            None => had.errors += 1,
        }
    }
    had
}

/// A request with the tools that the model server calls.
fn request(is_streamed: bool, has_tools: bool) -> Value {
    let tool = |name: &str, properties: Value| {
        let schema = json!({"type": "object", "properties": properties});
        json!({"type": "function", "function": {"name": name, "parameters": schema}})
    };
    let tools = json!([
        tool(
            "add",
            json!({"a": {"type": "integer"}, "b": {"type": "integer"}})
        ),
        tool(
            "write",
            json!({"path": {"type": "string"}, "text": {"type": "string"}})
        ),
        tool("now", json!({})),
    ]);
    let message = json!({"role": "user", "content": "Do it."});
    let mut request = json!({"model": "m", "stream": is_streamed, "messages": [message]});
    if has_tools {
        request["tools"] = tools;
    }
    request
}

/// Waits until the gateway has no more requests and files than at the beginning.
async fn until_nothing_is_left(gateway: &Server, files: usize) -> Result<(), String> {
    until_metrics_contain(gateway, "plaincall_requests_active 0").await?;
    let begun = Instant::now();
    loop {
        // Kept connections to the model server, and the connection of this client, may be open.
        let left = gateway.files().saturating_sub(files);
        if left <= usize::try_from(CLIENTS).unwrap_or_default() + 1 {
            return Ok(());
        }
        if begun.elapsed() > END {
            return Err(format!("{left} more files are left"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until the metrics contain this line.
async fn until_metrics_contain(gateway: &Server, line: &str) -> Result<(), String> {
    let http = Client::builder().no_proxy().pool_max_idle_per_host(0);
    let http = http.build().map_err(|error| error.to_string())?;
    let url = format!("http://{}/metrics", gateway.address);
    let begun = Instant::now();
    loop {
        let metrics = http.get(&url).send().await;
        let metrics = metrics.map_err(|error| error.to_string())?.text().await;
        if metrics
            .unwrap_or_default()
            .lines()
            .any(|found| found == line)
        {
            return Ok(());
        }
        if begun.elapsed() > END {
            return Err(format!("the gateway's metrics never contain `{line}`"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::grows;

    #[test]
    fn a_leak_differs_from_fluctuation() {
        let check = |megabytes: [u64; 6], expected: bool| {
            assert_eq!(
                grows(&megabytes.map(|size| size << 20)),
                expected,
                "{megabytes:?}"
            );
        };
        check([20, 40, 58, 43, 57, 52], false);
        check([20, 42, 42, 42, 58, 43], false);
        check([90, 50, 50, 50, 54, 54], false);
        check([20, 30, 40, 50, 60, 70], true);
        check([60, 50, 50, 50, 55, 56], true);
    }
}
