//! Restarts two gateways behind nginx in turn, under load: no request may fail.
//!
//! nginx runs with the example's configuration; only its addresses are replaced. Clients send requests to every API, and each
//! answer must be complete.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plaincall_testkit::strict_client::read_answer;
use reqwest::Client;
use serde_json::{Value, json};

use crate::bodies;
use crate::process::{Server, free_address, raise_open_files};

/// The number of concurrent clients.
const CLIENTS: usize = 16;
/// The number of times that each gateway restarts.
const ROUNDS: usize = 2;
/// The pause of a client between two requests.
const PAUSE: Duration = Duration::from_millis(5);
/// The microseconds between two deltas of a stream, which takes 1.3 seconds then.
const PACE: u32 = 100_000;
/// The maximum time for a gateway to end, and to become ready.
const PATIENCE: Duration = Duration::from_secs(40);
/// The time between two restarts.
const BETWEEN: Duration = Duration::from_secs(1);
/// The fewest requests that are a load.
const LEAST: u64 = 2000;
/// The number of failures that are reported.
const MOST_REPORTED: usize = 5;
const KEY: &str = "a-key-of-a-client";
/// The addresses in the example's configuration.
const ADDRESSES: [&str; 3] = ["127.0.0.1:8081", "127.0.0.1:8082", "127.0.0.1:8080"];

/// A request and the check of its answer.
struct Kind {
    path: &'static str,
    body: String,
    check: fn(&str) -> bool,
}

/// Runs the check with these programs and the example's folder.
pub(crate) async fn drain(program: &str, nginx: &str, example: &Path) -> Result<(), String> {
    raise_open_files();
    // A client of `reqwest` requires one, even without encryption.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = std::env::temp_dir().join(format!("plaincall-drain-{}", std::process::id()));
    let made = fs::create_dir_all(&folder);
    made.map_err(|error| format!("{}: {error}", folder.display()))?;
    let done = restarts(program, nginx, example, &folder).await;
    let _ = fs::remove_dir_all(&folder);
    done
}

async fn restarts(program: &str, nginx: &str, example: &Path, folder: &Path) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let model = Server::start(own, |address| {
        vec!["serve-model".to_owned(), address.to_string()]
    })?;
    let http = Client::builder().no_proxy().build();
    let http = http.map_err(|error| error.to_string())?;
    let pace = http.post(format!("http://{}/pace/{PACE}", model.address));
    pace.send().await.map_err(|error| error.to_string())?;

    let file = |name: &str, text: &str| -> Result<String, String> {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path.display().to_string())
    };
    let upstream = format!("http://{}/v1", model.address);
    file("secret", "a secret of the gateways")?;
    file("keys", KEY)?;
    let text = "[serve]\nsecret_file = 'secret'\nkeys_file = 'keys'\n";
    let configuration = file("config.toml", text)?;
    let arguments = |address: SocketAddr| {
        let address = address.to_string();
        let words = ["serve", "--listen", &address, "--upstream", &upstream];
        let words = words.into_iter().chain(["--config", &configuration]);
        words.map(str::to_owned).collect()
    };
    let mut gateways = [
        Server::start(program, arguments)?,
        Server::start(program, arguments)?,
    ];
    let front = free_address()?;
    let addresses = [gateways[0].address, gateways[1].address, front];
    let configuration = nginx_configuration(&example.join("nginx.conf"), folder, addresses)?;
    let _nginx = start_nginx(nginx, folder, &configuration, front)?;

    let load = Load::start(&http, front);
    let begun = Instant::now();
    let mut busy = 0;
    for _ in 0..ROUNDS {
        for gateway in &mut gateways {
            tokio::time::sleep(BETWEEN).await;
            let metrics = get(&http, gateway.address, "/metrics").await?;
            check_rules(&example.join("alerts.yml"), &metrics)?;
            busy += usize::from(!metrics.contains("plaincall_requests_active 0\n"));
            let status = gateway.terminate(PATIENCE).await?;
            if !status.success() {
                return Err(format!("a gateway ended with {status}"));
            }
            *gateway = Server::start_at(program, gateway.address, arguments)?;
            if get(&http, gateway.address, "/ready").await? != "ready\n" {
                return Err("a gateway is not ready after its start".to_owned());
            }
        }
    }
    tokio::time::sleep(BETWEEN).await;
    let (answers, failures) = load.end().await?;
    // nginx uses each gateway again after its restart.
    for gateway in &gateways {
        let metrics = get(&http, gateway.address, "/metrics").await?;
        if !metrics.contains("plaincall_requests_total{status=\"200\"}") {
            let address = gateway.address;
            return Err(format!("{address} got no requests after its restart"));
        }
    }
    println!(
        "drain: {} restarts, {busy} with requests in progress; {answers} requests in {} s, {} failures",
        ROUNDS * gateways.len(),
        begun.elapsed().as_secs(),
        failures.len()
    );
    if !failures.is_empty() {
        let shown = failures.iter().take(MOST_REPORTED);
        let shown: Vec<&str> = shown.map(String::as_str).collect();
        return Err(shown.join("\n"));
    }
    if answers < LEAST || busy == 0 {
        return Err("there was too little load".to_owned());
    }
    Ok(())
}

/// Writes the configuration of nginx: the example, with these addresses, in an `http` block. Returns its file.
fn nginx_configuration(
    example: &Path,
    folder: &Path,
    addresses: [SocketAddr; 3],
) -> Result<PathBuf, String> {
    let text = fs::read_to_string(example);
    let mut text = text.map_err(|error| format!("{}: {error}", example.display()))?;
    for (known, address) in ADDRESSES.into_iter().zip(addresses) {
        if !text.contains(known) {
            return Err(format!("{} has no address {known}", example.display()));
        }
        text = text.replace(known, &address.to_string());
    }
    let mut whole = String::from("pid nginx.pid;\n");
    whole.push_str(
        "error_log error.log info;\nevents { worker_connections 4096; }\nhttp {\naccess_log off;\n",
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(whole, "{kind}_temp_path temp_{kind};");
    }
    whole.push_str(&text);
    whole.push_str("}\n");
    let path = folder.join("nginx.conf");
    fs::write(&path, whole).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn start_nginx(
    nginx: &str,
    folder: &Path,
    configuration: &Path,
    address: SocketAddr,
) -> Result<Server, String> {
    let words = |more: &[&str]| -> Vec<String> {
        let (prefix, file) = (folder.display(), configuration.display());
        let all = [
            format!("-p{prefix}"),
            format!("-c{file}"),
            "-eerror.log".to_owned(),
        ];
        let more = more.iter().map(|word| (*word).to_owned());
        all.into_iter().chain(more).collect()
    };
    let output = Command::new(nginx).args(words(&["-t"])).output();
    let output = output.map_err(|error| format!("{nginx}: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    // One process, so that none is left when it is killed.
    let single = "-gdaemon off; master_process off;";
    Server::start_at(nginx, address, |_| words(&[single]))
}

async fn get(http: &Client, address: SocketAddr, path: &str) -> Result<String, String> {
    let url = format!("http://{address}{path}");
    let failed = |error: reqwest::Error| format!("{url}: {error}");
    let response = http.get(&url).header("connection", "close").send().await;
    response.map_err(failed)?.text().await.map_err(failed)
}

/// Checks that the gateway has every metric of the alert rules.
fn check_rules(rules: &Path, metrics: &str) -> Result<(), String> {
    let text = fs::read_to_string(rules);
    let text = text.map_err(|error| format!("{}: {error}", rules.display()))?;
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_part(letter));
    let mut names = words.filter(|word| word.starts_with("plaincall_"));
    let is_known = |name: &&str| {
        let name = name.strip_suffix("_bucket").unwrap_or(name);
        metrics.contains(&format!("# TYPE {name} "))
    };
    match names.find(|name| !is_known(name)) {
        Some(name) => Err(format!("{}: the gateway has no {name}", rules.display())),
        None => Ok(()),
    }
}

/// The requests: each API, streamed or not.
fn kinds() -> Vec<Kind> {
    let chat = |is_streamed| bodies::request(is_streamed);
    let message = json!([{"role": "user", "content": "What is the weather like?"}]);
    let schema = json!({"type": "object", "properties": {
        "query": {"type": "string"}, "limit": {"type": "integer"}}});
    let messages = json!({"model": "m", "max_tokens": 100, "stream": true, "messages": message,
        "tools": [{"name": "tool_3", "input_schema": schema}]});
    let responses = json!({"model": "m", "stream": true, "input": message,
        "tools": [{"type": "function", "name": "tool_3", "parameters": schema}]});
    let path = "/v1/chat/completions";
    vec![
        Kind {
            path,
            body: chat(true),
            check: |text| read_answer(text.as_bytes(), false).calls.len() == 2,
        },
        Kind {
            path,
            body: chat(false),
            check: |text| {
                let answer: Value = serde_json::from_str(text).unwrap_or_default();
                answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "tool_3"
            },
        },
        Kind {
            path: "/v1/messages",
            body: messages.to_string(),
            check: |text| {
                text.matches("tool_3").count() == 2 && text.contains("event: message_stop\n")
            },
        },
        Kind {
            path: "/v1/responses",
            body: responses.to_string(),
            check: |text| text.contains("event: response.completed\n"),
        },
    ]
}

/// Clients that send requests until the end.
struct Load {
    is_over: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
    clients: Vec<tokio::task::JoinHandle<Vec<String>>>,
}

impl Load {
    fn start(http: &Client, address: SocketAddr) -> Self {
        let kinds = Arc::new(kinds());
        let is_over = Arc::new(AtomicBool::new(false));
        let answers = Arc::new(AtomicU64::new(0));
        let clients = (0..CLIENTS).map(|number| {
            let (http, kinds) = (http.clone(), Arc::clone(&kinds));
            let (is_over, answers) = (Arc::clone(&is_over), Arc::clone(&answers));
            tokio::spawn(async move {
                let mut failures = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let kind = &kinds[number % kinds.len()];
                    if let Err(error) = ask(&http, address, kind).await {
                        failures.push(format!("{}: {error}", kind.path));
                    }
                    answers.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(PAUSE).await;
                }
                failures
            })
        });
        Self {
            clients: clients.collect(),
            is_over,
            answers,
        }
    }

    /// Ends the clients. Returns the number of requests, and the failures.
    async fn end(self) -> Result<(u64, Vec<String>), String> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut failures = Vec::new();
        for client in self.clients {
            failures.extend(client.await.map_err(|error| error.to_string())?);
        }
        Ok((self.answers.load(Ordering::Relaxed), failures))
    }
}

async fn ask(http: &Client, address: SocketAddr, kind: &Kind) -> Result<(), String> {
    let request = http.post(format!("http://{address}{}", kind.path));
    let request = request.bearer_auth(KEY).body(kind.body.clone());
    let response = request.send().await.map_err(|error| format!("{error:?}"))?;
    let status = response.status();
    let text = response
        .text()
        .await
        .map_err(|error| format!("{error:?}"))?;
    if status == 200 && (kind.check)(&text) {
        return Ok(());
    }
    Err(format!("status {status}: {text}"))
}
