//! Published clients, unmodified, against the gateway.
//!
//! They are installed into the build folder, in the versions that `crates/gateway/clients` pins. This needs Python, Node and a
//! network.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::command;
use crate::step::step;
use crate::workspace::target;
use crate::{node, python};

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
    fn start(program: &Path, replies: &Path, arguments: &str) -> Result<Self, String> {
        let mut process = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--upstream"])
            .arg(format!("replay:{}", replies.display()))
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

/// Runs every client's task, and the generated conversations with one.
pub(crate) fn test(root: &Path) -> Result<(), String> {
    let program = command("release")?.join("plaincall");
    let clients = root.join("crates/gateway/clients");
    let installed = target().join("clients");
    let python = |list, folder| python::install(&clients.join(list), &installed.join(folder));
    let openai = python("requirements.txt", "python")?.join("python");
    let agents = python("agents.txt", "agents")?.join("python");
    let agent_sdks = python("agent_sdks.txt", "agent-sdks")?.join("python");
    let programs = [&NODE[..], &["task.mjs"]].concat();
    node::install("clients of Node", "ci", &clients, &programs, &installed)?;

    let start = |replies, arguments| Gateway::start(&program, &clients.join(replies), arguments);
    let task = [
        start("replies.jsonl", "checked")?,
        start("wrong.jsonl", "checked")?,
        start("wrong.jsonl", "stream")?,
        start("repaired.jsonl", "checked")?,
    ];
    let with_final_call = [
        start("final_replies.jsonl", "checked")?,
        start("final_wrong.jsonl", "checked")?,
    ];
    let run = |runner: &Path, file: PathBuf, gateways: &[Gateway]| {
        let mut command = Command::new(runner);
        if runner.ends_with("python") {
            // No compiled files in the sources.
            command.arg("-B");
        }
        command.arg(&file);
        step(
            &file.display().to_string(),
            command.args(gateways.iter().map(|one| &one.url)),
        )
    };
    for file in PYTHON {
        run(&openai, clients.join(file), &task)?;
    }
    for file in NODE {
        run(Path::new("node"), installed.join(file), &task)?;
    }
    for file in AGENT_SDKS {
        run(&agent_sdks, clients.join(file), &task)?;
    }
    run(&agents, clients.join(AGENTS[0]), &task)?;
    run(&agents, clients.join(AGENTS[1]), &with_final_call)?;
    let mut command = Command::new(&openai);
    command.arg("-B").arg(clients.join(CONVERSATIONS));
    step(CONVERSATIONS, command.arg(&program).arg(COUNT))
}
