//! Published clients, unmodified, against the gateway.
//!
//! They are installed into the build folder, in the versions that `crates/gateway/clients` pins. This needs Python, Node and a
//! network.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::pool::Job;
use crate::step::step;
use crate::workspace::{root, target};
use crate::{dist, node, python};

const GROUP: &str = "clients";

/// The programs that use a Python client.
const PYTHON: [&str; 4] = [
    "anthropic_client.py",
    "openai_client.py",
    "openai_responses.py",
    "langchain_client.py",
];
/// Agents that run calls whose arguments are invalid JSON. The second ends with a call of its own tool.
const AGENTS: [&str; 2] = ["llama_index_agent.py", "smolagents_agent.py"];
/// Agents that reject such calls.
const AGENT_SDKS: [&str; 2] = ["openai_agents_agent.py", "pydantic_ai_agent.py"];
const NODE: [&str; 4] = [
    "anthropic_client.mjs",
    "openai_client.mjs",
    "openai_responses.mjs",
    "ai_sdk.mjs",
];

/// The program with generated conversations, and their number.
const CONVERSATIONS: &str = "conversations.py";
const COUNT: &str = "500";

/// The time limit for the start of a gateway.
const PATIENCE: Duration = Duration::from_secs(30);

/// A gateway that answers with recorded replies. Dropping it ends it.
struct Gateway {
    process: Child,
    url: String,
}

impl Gateway {
    fn start(replies: &str, arguments: &str) -> Result<Self, String> {
        let program = dist::command()?;
        let mut process = Command::new(&program)
            .args(["serve", "--listen", "127.0.0.1:0", "--upstream"])
            .arg(format!("replay:{}", folder().join(replies).display()))
            .args(["--arguments", arguments])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let (sender, first) = std::sync::mpsc::channel();
        if let Some(output_text) = process.stderr.take() {
            // Read to the end, so that the gateway can always write.
            std::thread::spawn(move || {
                let lines = BufReader::new(output_text).lines().map_while(Result::ok);
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
            return Err(format!("the gateway did not start: {line}"));
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

/// Returns the jobs that run each client's task, and the generated conversations with one.
pub(crate) fn jobs() -> Vec<Job> {
    let job = |name, seconds, needs: &[&'static str], work: fn() -> Result<(), String>| {
        let needs = [&[dist::RELEASE], needs].concat();
        Job::new(GROUP, name, seconds, work).needs(&needs)
    };
    vec![
        job("clients of Node", 30, &[node::PACKAGES], node),
        job("clients of Python", 60, &[python::UV], python_clients),
        job("agents of Python", 60, &[python::UV], agents),
        job("SDKs of agents", 60, &[python::UV], agent_sdks),
    ]
}

fn folder() -> PathBuf {
    root().join("crates/gateway/clients")
}

/// Returns the gateways of the task of the clients.
fn task() -> Result<[Gateway; 4], String> {
    Ok([
        Gateway::start("replies.jsonl", "checked")?,
        Gateway::start("wrong.jsonl", "checked")?,
        Gateway::start("wrong.jsonl", "stream")?,
        Gateway::start("repaired.jsonl", "checked")?,
    ])
}

fn run(runner: &Path, file: &Path, gateways: &[Gateway]) -> Result<(), String> {
    let mut command = Command::new(runner);
    if runner.ends_with("python") {
        // No compiled files in the sources.
        command.arg("-B");
    }
    command.arg(file);
    step(
        &file.display().to_string(),
        command.args(gateways.iter().map(|one| &one.url)),
    )
}

fn node() -> Result<(), String> {
    let programs = [&NODE[..], &["task.mjs"]].concat();
    let installed = node::member("crates/gateway/clients", &programs)?;
    let task = task()?;
    let run = |file| run(Path::new("node"), &installed.join(file), &task);
    NODE.iter().try_for_each(run)
}

/// Installs a list of packages, and returns the interpreter that has them.
fn installed(list: &str, name: &str) -> Result<PathBuf, String> {
    let programs = python::install(&folder().join(list), &target().join("clients").join(name))?;
    Ok(programs.join("python"))
}

fn python_clients() -> Result<(), String> {
    let python = installed("requirements.txt", "python")?;
    let task = task()?;
    let run = |file| run(&python, &folder().join(file), &task);
    PYTHON.iter().try_for_each(run)?;
    let mut command = Command::new(&python);
    command.arg("-B").arg(folder().join(CONVERSATIONS));
    step(CONVERSATIONS, command.arg(dist::command()?).arg(COUNT))
}

fn agents() -> Result<(), String> {
    let python = installed("agents.txt", "agents")?;
    run(&python, &folder().join(AGENTS[0]), &task()?)?;
    let with_final_call = [
        Gateway::start("final_replies.jsonl", "checked")?,
        Gateway::start("final_wrong.jsonl", "checked")?,
    ];
    run(&python, &folder().join(AGENTS[1]), &with_final_call)
}

fn agent_sdks() -> Result<(), String> {
    let python = installed("agent_sdks.txt", "agent-sdks")?;
    let task = task()?;
    let run = |file| run(&python, &folder().join(file), &task);
    AGENT_SDKS.iter().try_for_each(run)
}
