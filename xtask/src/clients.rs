//! Published clients and coding agents, unmodified, against the gateway, and a published client and published servers of MCP.
//!
//! They are installed into the build folder, in the versions that `crates/gateway/clients`, `crates/gateway/coding-agents` and
//! `crates/agent/clients` pin. This needs Python, Node and a network. Coding agents run in a network and a process namespace of
//! their own: they reach only this machine, and all processes end with the test.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pool::{Job, Task};
use crate::step::{Server, skipped, step, succeeds};
use crate::workspace::{command, root, target};
use crate::{dist, node, python, suites};

const FOLDER: &str = "crates/gateway/clients";
const MCP: &str = "crates/agent/clients";

/// Clients of Node, and agents and SDKs of Python. Agents run calls whose arguments are invalid JSON; SDKs of agents reject them.
const NODE: &str =
    "anthropic_client.mjs ollama_client.mjs openai_client.mjs openai_responses.mjs ai_sdk.mjs";
const PYTHON: &str =
    "anthropic_client.py ollama_client.py openai_client.py openai_responses.py langchain_client.py";
const AGENT_SDKS: &str = "openai_agents_agent.py pydantic_ai_agent.py";

/// The program with generated conversations, and their number.
const CONVERSATIONS: &str = "conversations.py";
const COUNT: &str = "500";

/// The recorded replies of the gateways of a task, and how they send arguments. The second task ends with a call of the agent's own tool.
const TASK: &str = "replies:checked wrong:checked wrong:stream repaired:checked";
const FINAL_TASK: &str = "final_replies:checked final_wrong:checked";

pub(crate) fn jobs() -> Vec<Job> {
    let job = |name, seconds, needs, work: fn() -> Result<(), String>| {
        Job::new("clients", name, seconds, work).needs(&[dist::RELEASE, needs])
    };
    vec![
        job("clients of Node", 30, node::PACKAGES, node),
        job("clients of Python", 60, python::UV, python_clients),
        job("agents of Python", 60, python::UV, agents),
        job("SDKs of agents", 60, python::UV, || {
            let python = installed("agent_sdks.txt", "agent-sdks")?;
            run_all(&python, &folder(), AGENT_SDKS, TASK)
        }),
        Job::new("mcp", "MCP", 60, mcp)
            .needs(&[node::PACKAGES, python::UV, suites::BUILD])
            .least_tests(5),
    ]
}

fn folder() -> PathBuf {
    root().join(FOLDER)
}

/// Runs programs with the addresses of gateways that answer with recorded replies.
fn run_all(runner: &Path, folder: &Path, programs: &str, task: &str) -> Result<(), String> {
    run_with(
        &|| Command::new(dist::command()),
        runner,
        folder,
        programs,
        task,
    )
}

/// Runs the Python client of `OpenAI` with gateways of another command.
pub(crate) fn with_openai(plaincall: &dyn Fn() -> Command) -> Result<(), String> {
    let python = installed("requirements.txt", "python")?;
    run_with(plaincall, &python, &folder(), "openai_client.py", TASK)
}

fn run_with(
    plaincall: &dyn Fn() -> Command,
    runner: &Path,
    folder: &Path,
    programs: &str,
    task: &str,
) -> Result<(), String> {
    let gateway = |(replies, arguments): (&str, &str)| {
        let replies = self::folder().join(format!("{replies}.jsonl"));
        let mut gateway = plaincall();
        gateway.args(["serve", "--listen", "127.0.0.1:0", "--upstream"]);
        gateway.arg(format!("replay:{}", replies.display()));
        let configuration = self::folder().join(format!("{arguments}.toml"));
        gateway.arg("--config").arg(configuration);
        Server::start(gateway, |line| {
            let mut words = line.split_whitespace();
            words.find(|word| word.starts_with("http://"))
        })
    };
    let gateways = task.split(' ').filter_map(|one| one.split_once(':'));
    let gateways = gateways.map(gateway);
    let gateways = gateways.collect::<Result<Vec<Server>, String>>()?;
    for program in programs.split(' ') {
        let mut command = Command::new(runner);
        // No compiled files in the sources.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg(folder.join(program));
        command.args(gateways.iter().map(|one| &one.address));
        step(program, &mut command)?;
    }
    Ok(())
}

fn node() -> Result<(), String> {
    let installed = node::member(FOLDER, &format!("task.mjs {NODE}"))?;
    run_all(Path::new("node"), &installed, NODE, TASK)
}

/// Installs a list of packages, and returns the interpreter that has them.
fn installed(list: &str, name: &str) -> Result<PathBuf, String> {
    let programs = python::install(&folder().join(list), &target().join("clients").join(name))?;
    Ok(programs.join("python"))
}

fn python_clients() -> Result<(), String> {
    let python = installed("requirements.txt", "python")?;
    run_all(&python, &folder(), PYTHON, TASK)?;
    let mut conversations = Command::new(&python);
    conversations.arg("-B").arg(folder().join(CONVERSATIONS));
    step(CONVERSATIONS, conversations.arg(dist::command()).arg(COUNT))
}

fn agents() -> Result<(), String> {
    let python = installed("agents.txt", "agents")?;
    run_all(&python, &folder(), "llama_index_agent.py", TASK)?;
    run_all(&python, &folder(), "smolagents_agent.py", FINAL_TASK)
}

/// Calls the tools of published servers over both transports, and runs the client against Plaincall's server.
fn mcp() -> Result<(), String> {
    let installed = node::member(MCP, "mcp_client.mjs fastmcp_server.mjs")?;
    let list = root().join(MCP).join("requirements.txt");
    let python = python::install(&list, &target().join("clients/mcp"))?;
    let everything = "@modelcontextprotocol/server-everything/dist/index.js";
    let mut server = suites::program("agent")?;
    server.args(["mcp::", "--ignored"]);
    server.env("MCP_EVERYTHING", node::packages().join(everything));
    server.env("MCP_CLIENTS", &installed);
    server.env("MCP_PYTHON", python.join("python"));
    step("published servers of MCP", &mut server)?;
    let mut client = command("node");
    client.arg(installed.join("mcp_client.mjs"));
    client
        .arg(suites::plaincall())
        .arg(root().join(MCP).join("tools.toml"));
    step("a client of MCP", &mut client)
}

/// The words that start a command in its own network and process namespace.
const ISOLATED: &str =
    "unshare --map-root-user --net --pid --fork --kill-child --mount-proc sh -ec";
const SCRIPT: &str = "ip link set lo up; exec \"$@\"";

fn isolated() -> Command {
    let mut command = command(ISOLATED);
    command.args([SCRIPT, "sh"]);
    command
}

pub(crate) fn coding_agents() -> Vec<Job> {
    let other = || test_agents(&["qwen_code", "codex_cli"], None);
    vec![
        coding_agent("coding-agents", "opencode", || {
            test_agents(&["opencode"], None)
        })
        .least_tests(1),
        coding_agent("other-coding-agents", "qwen-code and Codex", other).least_tests(2),
    ]
}

pub(crate) fn claude_code(program: String) -> Job {
    coding_agent("claude-code", "Claude Code", move || {
        test_agents(&["claude_code"], Some(&program))
    })
}

fn coding_agent(group: &'static str, name: &str, work: impl Task) -> Job {
    let job = Job::new(group, name, 60, work).gigabytes(3);
    job.needs(&[node::PACKAGES, suites::BUILD])
}

/// Runs the tests of these agents.
fn test_agents(names: &[&str], claude_code: Option<&str>) -> Result<(), String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skipped("coding agents", "they need x86-64 Linux");
    }
    if !succeeds(isolated().arg("true")) {
        return skipped("coding agents", "this system allows no namespaces");
    }
    let tests = suites::program("cli")?;
    let mut run = isolated();
    run.arg(tests.get_program());
    run.args(["--ignored", "--exact", "--test-threads=1"]);
    let path = |name| format!("serve::coding_agents::{name}");
    run.args(names.iter().map(path));
    run.env("CODING_AGENTS", node::packages());
    run.envs(claude_code.map(|program| ("CLAUDE_CODE", program)));
    step("coding agents", run.current_dir(root().join("crates/cli")))
}
