//! The program `plaincall-restate` with a tools file, and a server.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plaincall_restate::{Finished, OpenQuestion, Question, QuestionKind, Status};
use serde_json::Value;
use tokio::time::sleep;

use crate::server::{Api, PATIENCE, Server, appended, dependent, free_port};

pub(crate) const TOOLS: &str = r#"
[tools.wait]
description = "Waits."
parameters = { seconds = "number" }
shell = "sleep {seconds}; echo waited"
effect = "read"

[tools.fill]
description = "Returns 100 kB."
parameters = {}
shell = "head -c 100000 /dev/zero | tr '\\0' x"
effect = "read"

[tools.flood]
description = "Returns 5 MB."
parameters = {}
shell = "head -c 5000000 /dev/zero | tr '\\0' x"
output_limit = "8 MiB"
effect = "read"

[tools.large]
description = "Returns 3 MB."
parameters = {}
shell = "head -c 3000000 /dev/zero | tr '\\0' x"
output_limit = 3000000
effect = "read"

[tools.put]
description = "Appends a line to a file."
parameters = { line = "string" }
command = ["sh", "-c", "echo \"$1\" >> written; echo \"$PLAINCALL_IDEMPOTENCY_KEY\"", "sh", "{line}"]
directory = "{directory:tools}"
effect = "write"
"#;

/// A server, and one process of the program.
pub(crate) struct Setting {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) server: Server,
    pub(crate) port: u16,
    pub(crate) program: Child,
}

impl Setting {
    pub(crate) async fn new(run: &str) -> Self {
        Self::of(&format!("{TOOLS}\n[run]\n{run}\n")).await
    }

    pub(crate) async fn of(tools: &str) -> Self {
        Self::with(tools, None, &[]).await
    }

    pub(crate) async fn with_options(tools: &str, options: &[&str]) -> Self {
        Self::with(tools, None, options).await
    }

    /// Starts the program with the tables of a configuration and its model `any`.
    pub(crate) async fn with_model(tools: &str, tables: &str, options: &[&str]) -> Self {
        Self::with(tools, Some(tables), options).await
    }

    async fn with(tools: &str, tables: Option<&str>, options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("tools.toml"), tools).unwrap();
        let server = Server::start(directory.path()).await;
        let port = free_port();
        let model = tables.map(|tables| configured(directory.path(), tables, "any"));
        let mut options = options.to_vec();
        options.extend(model.iter().flatten().map(String::as_str));
        let program = program(directory.path(), port, &options);
        server.api.register(port).await;
        Self {
            directory,
            server,
            port,
            program,
        }
    }

    pub(crate) fn api(&self) -> &Api {
        &self.server.api
    }

    /// Kills the worker with SIGKILL and starts another one.
    pub(crate) fn restart_program(&mut self, options: &[&str]) {
        self.program.kill().unwrap();
        self.program.wait().unwrap();
        self.program = program(self.directory.path(), self.port, options);
    }

    /// Returns the problem of a conversation, once a worker answers.
    pub(crate) async fn problem(&self, key: &str) -> Option<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.api().get(key, "status").await.unwrap_or_default();
            if let Result::Ok(status) = serde_json::from_str::<Status>(&status) {
                return status.problem;
            }
            assert!(Instant::now() < until, "{status}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn write_tools(&self, tools: &str) {
        std::fs::write(self.directory.path().join("tools.toml"), tools).unwrap();
    }

    /// Waits for a question of a conversation.
    pub(crate) async fn question(&self, key: &str, kind: QuestionKind) -> Question {
        let until = Instant::now() + PATIENCE;
        loop {
            let status: Status =
                serde_json::from_str(&self.api().get(key, "status").await.unwrap()).unwrap();
            assert_eq!(status.problem, None);
            if let Some(question) = status.questions.into_iter().find(|one| one.kind == kind) {
                return question;
            }
            assert!(Instant::now() < until, "no question");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until a conversation has so many questions.
    pub(crate) async fn until_asked(&self, key: &str, count: usize) {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.api().get(key, "status").await.unwrap();
            let status: Status = serde_json::from_str(&text).unwrap();
            if status.questions.len() == count {
                return;
            }
            assert!(
                Instant::now() < until,
                "{} questions",
                status.questions.len()
            );
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits for the end of an invocation.
    pub(crate) async fn end(&self, invocation: &str) -> (u16, String) {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(output) = self.api().output(invocation).await {
                return output;
            }
            assert!(Instant::now() < until, "{invocation} does not end");
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn finished(&self, invocation: &str) -> Finished {
        let (status, text) = self.end(invocation).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Waits until these questions are open, each as its conversation and number.
    pub(crate) async fn until_open(&self, expected: &[(&str, u32)]) {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.api().open_questions().await;
            let open: Vec<OpenQuestion> = serde_json::from_str(&text).unwrap();
            let open = open.iter().map(|one| (&*one.conversation, one.question));
            let mut open: Vec<_> = open.collect();
            open.sort_unstable();
            if open == expected {
                return;
            }
            assert!(Instant::now() < until, "{open:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn answer(&self, key: &str, answer: Value) {
        let (status, text) = self.api().call(key, "answer", &answer).await;
        assert_eq!(status, 200, "{text}");
    }

    /// Answers a question as soon as it is open.
    pub(crate) async fn answer_when_asked(&self, key: &str, answer: Value) {
        let until = Instant::now() + PATIENCE;
        loop {
            let (status, text) = self.api().call(key, "answer", &answer).await;
            if status == 200 {
                return;
            }
            assert!(status == 404 && Instant::now() < until, "{text}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < until, "it does not happen: {what}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn written(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("written")).unwrap_or_default()
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

pub(crate) fn program(directory: &Path, port: u16, options: &[&str]) -> Child {
    started(directory, port, options).spawn().unwrap()
}

/// Returns the command that starts the program.
pub(crate) fn started(directory: &Path, port: u16, options: &[&str]) -> Command {
    let log = appended(&directory.join("worker.log"));
    let mut command = dependent(env!("CARGO_BIN_EXE_plaincall-restate"));
    command.arg("--tools").arg(directory.join("tools.toml"));
    command.arg("--listen").arg(format!("127.0.0.1:{port}"));
    command.args(options);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(log);
    command
}

/// Writes a configuration. Returns the options for its model with this name.
pub(crate) fn configured(directory: &Path, tables: &str, model: &str) -> [String; 4] {
    let file = directory.join("config.toml");
    std::fs::write(&file, tables).unwrap();
    let file = file.to_str().unwrap();
    ["--config", file, "--model", model].map(str::to_owned)
}

pub(crate) fn put(id: &str, line: &str) -> String {
    format!("!!!GADGET_START:put:{id}\n!!!ARG:line\n{line}\n!!!GADGET_END\n")
}

/// Returns the tools with another text in the place of `old`, as it is written in the file.
pub(crate) fn changed(tools: &str, old: &str, new: &str) -> String {
    assert!(tools.contains(old), "{old}");
    tools.replace(old, new)
}

pub(crate) fn wait(id: &str, seconds: f64) -> String {
    format!("!!!GADGET_START:wait:{id}\n!!!ARG:seconds\n{seconds}\n!!!GADGET_END\n")
}

pub(crate) fn statuses(finished: &Finished) -> Vec<plaincall::Status> {
    finished.results.iter().map(|one| one.status).collect()
}

/// A process that is killed when this is dropped.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
