//! A Restate server in a directory of its own, and requests to it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::sleep;

/// The number of started invocations.
static SENT: AtomicU64 = AtomicU64::new(0);

/// The time limit for each wait.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// Returns the program of the Restate server, which `cargo xtask restate` installs.
fn program() -> PathBuf {
    std::env::var_os("RESTATE_SERVER")
        .expect("RESTATE_SERVER is the path of restate-server; run `cargo xtask restate`")
        .into()
}

/// Returns a port that is free now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Returns a command that also ends when this process is killed, where the system has a program for that.
pub(crate) fn dependent(program: impl AsRef<OsStr>) -> Command {
    let starter = Path::new("/usr/bin/setpriv");
    if !starter.exists() {
        return Command::new(program);
    }
    let mut command = Command::new(starter);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Opens a file to append to it.
pub(crate) fn appended(path: &Path) -> std::fs::File {
    let mut file = std::fs::File::options();
    file.append(true).create(true).open(path).unwrap()
}

/// The process of a server.
pub(crate) struct Server {
    directory: PathBuf,
    process: Option<Child>,
    pub(crate) api: Api,
}

/// The API of a server, which works again when the server was started again.
#[derive(Clone)]
pub(crate) struct Api {
    ports: [u16; 3],
    client: Client,
}

impl Server {
    /// Starts a server with its data in this directory.
    pub(crate) async fn start(directory: &Path) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut server = Self {
            directory: directory.join("server"),
            process: None,
            api: Api {
                ports: [free_port(), free_port(), free_port()],
                client: Client::builder().timeout(PATIENCE).build().unwrap(),
            },
        };
        server.start_again();
        // Another program may have taken a port meanwhile.
        while !server.api.is_up().await {
            sleep(Duration::from_millis(50)).await;
            let process = server.process.as_mut().unwrap();
            if process.try_wait().unwrap().is_some() {
                server.api.ports = [free_port(), free_port(), free_port()];
                server.start_again();
            }
        }
        server
    }

    pub(crate) fn start_again(&mut self) {
        let temporary = self.directory.with_extension("tmp");
        for directory in [&self.directory, &temporary] {
            std::fs::create_dir_all(directory).unwrap();
        }
        let log = crate::server::appended(&self.directory.with_extension("log"));
        let [ingress, admin, node] = self.api.ports.map(|port| port.to_string());
        let settings = [
            ("RESTATE_BASE_DIR", self.directory.to_str().unwrap()),
            ("TMPDIR", temporary.to_str().unwrap()),
            ("RESTATE_NODE_NAME", "one"),
            ("RESTATE_BIND_IP", "127.0.0.1"),
            ("RESTATE_LISTEN_MODE", "tcp"),
            ("RESTATE_BIND_PORT", &node),
            ("RESTATE_INGRESS__BIND_PORT", &ingress),
            ("RESTATE_ADMIN__BIND_PORT", &admin),
            ("RESTATE_DISABLE_TELEMETRY", "true"),
            ("RESTATE_DEFAULT_NUM_PARTITIONS", "4"),
            ("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "512MiB"),
            // Tests do not wait for long delays, and spread streams over all workers.
            ("RESTATE_DEFAULT_RETRY_POLICY__INITIAL_INTERVAL", "50ms"),
            ("RESTATE_DEFAULT_RETRY_POLICY__MAX_INTERVAL", "500ms"),
            // What waits is suspended soon, and continues.
            ("RESTATE_WORKER__INVOKER__INACTIVITY_TIMEOUT", "1s"),
            // Workers set their own limit.
            ("RESTATE_DEFAULT_RETRY_POLICY__MAX_ATTEMPTS", "3"),
            (
                "RESTATE_WORKER__INVOKER__HTTP2_STREAMS_PER_CONNECTION_LIMIT",
                "8",
            ),
        ];
        let mut command = dependent(program());
        command.arg("--no-logo").envs(settings).stdin(Stdio::null());
        let process = command.stdout(log.try_clone().unwrap()).stderr(log).spawn();
        self.process = Some(process.unwrap());
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Api {
    /// Waits until the server takes requests.
    pub(crate) async fn wait(&self) {
        let until = Instant::now() + PATIENCE;
        while !self.is_up().await {
            assert!(Instant::now() < until, "the server does not start");
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn is_up(&self) -> bool {
        for path in [self.admin("health"), self.ingress("restate/health")] {
            let sent = self.client.get(path).send().await;
            if !sent.is_ok_and(|response| response.status().is_success()) {
                return false;
            }
        }
        true
    }

    fn admin(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.ports[1])
    }

    fn ingress(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.ports[0])
    }

    /// Registers the workers at a port.
    pub(crate) async fn register(&self, port: u16) {
        let uri = format!("http://127.0.0.1:{port}");
        let until = Instant::now() + PATIENCE;
        loop {
            let sent = self.client.post(self.admin("deployments"));
            let sent = sent
                .json(&json!({ "uri": uri, "force": true }))
                .send()
                .await;
            let problem = match sent {
                Ok(response) if response.status().is_success() => return,
                Ok(response) => response.text().await.unwrap_or_default(),
                Err(error) => error.to_string(),
            };
            assert!(Instant::now() < until, "registration: {problem}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Sends a request to a handler of a conversation. Returns the status and the body.
    pub(crate) async fn call(
        &self,
        key: &str,
        handler: &str,
        body: &impl Serialize,
    ) -> (u16, String) {
        self.try_call(key, handler, body).await.unwrap()
    }

    /// Like [`call`](Self::call), if the server is running.
    pub(crate) async fn try_call(
        &self,
        key: &str,
        handler: &str,
        body: &impl Serialize,
    ) -> Result<(u16, String), reqwest::Error> {
        let request = self
            .client
            .post(self.ingress(&format!("Conversation/{key}/{handler}")));
        let response = request.json(body).send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    }

    /// Sends a request without a body to a handler of a conversation. Returns the body of the response.
    pub(crate) async fn get(&self, key: &str, handler: &str) -> Result<String, reqwest::Error> {
        let path = self.ingress(&format!("Conversation/{key}/{handler}"));
        self.client.post(path).send().await?.text().await
    }

    /// Returns all parts of a record.
    pub(crate) async fn parts(&self, key: &str) -> String {
        let mut lines = String::new();
        for part in 0.. {
            let body = json!({ "part": part });
            let (status, text) = self.call(key, "record_part", &body).await;
            if status == 404 {
                break;
            }
            assert_eq!(status, 200, "{text}");
            lines.push_str(&text);
        }
        lines
    }

    /// Replaces the state of a conversation. The server does that some time later.
    pub(crate) async fn set_state(&self, key: &str, state: &[(&str, &str)]) {
        let state = state.iter().map(|(key, value)| (*key, value.as_bytes()));
        let state: BTreeMap<_, _> = state.collect();
        let sent = self.client.post(self.admin("services/Conversation/state"));
        let body = json!({ "object_key": key, "new_state": state });
        let sent = sent.json(&body).send().await.unwrap();
        assert!(sent.status().is_success(), "{:?}", sent.text().await);
    }

    /// Returns the open questions of all conversations.
    pub(crate) async fn open_questions(&self) -> String {
        let path = self.ingress("OpenQuestions/all/list");
        let sent = self.client.post(path).send().await.unwrap();
        sent.text().await.unwrap()
    }

    /// Starts an invocation once, also if the server is killed meanwhile. Returns its id.
    pub(crate) async fn send(&self, key: &str, handler: &str, body: &impl Serialize) -> String {
        let path = self.ingress(&format!("Conversation/{key}/{handler}/send"));
        let number = SENT.fetch_add(1, Ordering::Relaxed);
        let sent = self.insist(|client| {
            let request = client
                .post(&path)
                .header("idempotency-key", format!("{key}-{number}"));
            request.json(body)
        });
        let sent: Value = serde_json::from_str(&sent.await).unwrap();
        sent["invocationId"].as_str().unwrap().to_owned()
    }

    /// Returns the output of an invocation, or `None` if it is in progress.
    pub(crate) async fn output(&self, invocation: &str) -> Option<(u16, String)> {
        let path = self.ingress(&format!("restate/invocation/{invocation}/output"));
        let response = self.client.get(path).send().await.ok()?;
        let status = response.status().as_u16();
        let text = response.text().await.ok()?;
        // 470: not ready. 404 and 503: the server has just started.
        (![470, 404, 503].contains(&status)).then_some((status, text))
    }

    /// Returns the rows of a query.
    pub(crate) async fn query(&self, query: &str) -> Vec<Value> {
        let request = self.client.post(self.admin("query"));
        let request = request.header("accept", "application/json");
        let Ok(response) = request.json(&json!({ "query": query })).send().await else {
            return Vec::new();
        };
        let body: Value = response.json().await.unwrap_or_default();
        body["rows"].as_array().cloned().unwrap_or_default()
    }

    /// Returns what the server knows about a conversation and the calls in progress, for a message.
    pub(crate) async fn progress(&self, key: &str) -> Vec<Value> {
        let invocations = "SELECT id, target, status, last_failure, retry_count, invoked_by_id, modified_at FROM sys_invocation WHERE status <> 'completed'";
        let state = format!(
            "SELECT key, value_utf8 FROM state WHERE service_key = '{key}' AND key LIKE 'question %'"
        );
        let mut rows = self.query(invocations).await;
        rows.extend(self.query(&state).await);
        let journal = format!(
            "SELECT j.index, j.entry_type, j.name FROM sys_journal j JOIN sys_invocation i ON j.id = i.id WHERE i.target_service_key = '{key}' AND i.status <> 'completed' ORDER BY j.index DESC LIMIT 40"
        );
        rows.extend(self.query(&journal).await);
        rows
    }

    /// Resolves an awakeable with a text.
    pub(crate) async fn resolve(&self, awakeable: &str, text: &str) {
        let path = self.ingress(&format!("restate/awakeables/{awakeable}/resolve"));
        let sent = self.client.post(path).body(text.to_owned()).send().await;
        assert!(sent.unwrap().status().is_success());
    }

    pub(crate) async fn cancel(&self, invocation: &str) {
        self.change(invocation, "cancel").await;
    }

    pub(crate) async fn kill(&self, invocation: &str) {
        self.change(invocation, "kill").await;
    }

    async fn change(&self, invocation: &str, change: &str) {
        let path = self.admin(&format!("invocations/{invocation}/{change}"));
        let sent = self.client.request(Method::PATCH, path).send().await;
        assert!(sent.unwrap().status().is_success());
    }

    /// Sends a request until it is answered.
    async fn insist(&self, request: impl Fn(&Client) -> reqwest::RequestBuilder) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let problem = match request(&self.client).send().await {
                Ok(response) if response.status().is_success() => match response.text().await {
                    Ok(text) => return text,
                    Err(error) => error.to_string(),
                },
                Ok(response) => response.text().await.unwrap_or_default(),
                Err(error) => error.to_string(),
            };
            assert!(Instant::now() < until, "{problem}");
            sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.directory.with_extension("log"));
            let log = log.unwrap_or_default();
            let tail = log.lines().rev().take(15).collect::<Vec<_>>();
            eprintln!("the server's last lines, in reverse:\n{}", tail.join("\n"));
        }
    }
}
