//! Published clients, unmodified, against the gateway.
//!
//! They are installed into the build folder, by the versions that `crates/gateway/clients` names. So this needs Python,
//! Node and a network.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{TRIED, command, node, step, target};

/// The programs that use a client, and what runs them.
const PYTHON: [&str; 2] = ["openai_client.py", "langchain_client.py"];
const NODE: [&str; 2] = ["openai_client.mjs", "ai_sdk.mjs"];

/// The program that has generated conversations, and how many.
const CONVERSATIONS: &str = "conversations.py";
const COUNT: &str = "500";

/// How long a gateway may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// A gateway that answers with recorded replies, until it is dropped.
struct Gateway {
    process: Child,
    url: String,
}

impl Gateway {
    fn start(program: &Path, replies: &Path) -> Result<Self, String> {
        let mut process = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--upstream"])
            .arg(format!("replay:{}", replies.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let (sender, first) = std::sync::mpsc::channel();
        if let Some(said) = process.stderr.take() {
            // It is read to its end, so that the gateway can always say what it has to say.
            std::thread::spawn(move || {
                let lines = BufReader::new(said).lines().map_while(Result::ok);
                lines.for_each(|line| drop(sender.send(line)));
            });
        }
        let line = first.recv_timeout(PATIENCE).unwrap_or_default();
        let address = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        let url = address.map(str::to_owned);
        let gateway = Self {
            process,
            url: url.unwrap_or_default(),
        };
        if gateway.url.is_empty() {
            return Err(format!("the gateway did not begin: {line}"));
        }
        Ok(gateway)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Lets every client do its task, and one have generated conversations.
pub(crate) fn test(root: &Path) -> Result<(), String> {
    let program = command(TRIED)?.join("plaincall");
    let clients = root.join("crates/gateway/clients");
    let installed = target().join("clients");
    let python = install(&clients, &installed)?;

    let right = Gateway::start(&program, &clients.join("replies.jsonl"))?;
    let wrong = Gateway::start(&program, &clients.join("wrong.jsonl"))?;
    let addresses = [&right.url, &wrong.url];
    for file in PYTHON {
        let mut command = Command::new(&python);
        command.arg("-B").arg(clients.join(file)).args(addresses);
        step(file, &mut command)?;
    }
    for file in NODE {
        let mut command = Command::new("node");
        step(file, command.arg(installed.join(file)).args(addresses))?;
    }
    let mut command = Command::new(&python);
    command.arg("-B").arg(clients.join(CONVERSATIONS));
    step(CONVERSATIONS, command.arg(&program).arg(COUNT))
}

/// Installs the clients, and returns the Python that knows those of Python.
fn install(clients: &Path, installed: &Path) -> Result<PathBuf, String> {
    std::fs::create_dir_all(installed)
        .map_err(|error| format!("{}: {error}", installed.display()))?;
    let python = installed.join("python/bin/python");
    if !python.exists() {
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(installed.join("python"));
        step("Python", &mut make)?;
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--requirement"]);
    step(
        "clients of Python",
        pip.arg(clients.join("requirements.txt")),
    )?;
    let programs = [&NODE[..], &["task.mjs"]].concat();
    node::install("clients of Node", clients, &programs, installed)?;
    Ok(python)
}
