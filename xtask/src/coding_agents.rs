//! Published coding agents, unmodified, change a file through the gateway.
//!
//! `crates/gateway/coding-agents` names their versions. They run in a network and
//! a process namespace of their own: they reach only this machine, and all processes end with the test.

use std::process::Command;

use crate::pool::{Job, Task};
use crate::step::{skipped, step, succeeds};
use crate::workspace::{command, root};
use crate::{node, suites};

/// The words that start a command in its own network and process namespace.
const ISOLATED: &str =
    "unshare --map-root-user --net --pid --fork --kill-child --mount-proc sh -ec";
const SCRIPT: &str = "ip link set lo up; exec \"$@\"";

fn isolated() -> Command {
    let mut command = command(ISOLATED);
    command.args([SCRIPT, "sh"]);
    command
}

pub(crate) fn jobs() -> Vec<Job> {
    let other = || test(&["qwen_code", "codex_cli"], None);
    vec![
        agents("coding-agents", "opencode", || test(&["opencode"], None)).least_tests(1),
        agents("other-coding-agents", "qwen-code and Codex", other).least_tests(2),
    ]
}

/// Returns the job that runs Claude Code, which the user has installed.
pub(crate) fn claude_code(program: String) -> Job {
    agents("claude-code", "Claude Code", move || {
        test(&["claude_code"], Some(&program))
    })
}

fn agents(group: &'static str, name: &str, work: impl Task) -> Job {
    let job = Job::new(group, name, 60, work).gigabytes(3);
    job.needs(&[node::PACKAGES, suites::BUILD])
}

/// Runs the tests of these agents.
fn test(names: &[&str], claude_code: Option<&str>) -> Result<(), String> {
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
