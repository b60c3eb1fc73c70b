//! Published coding agents, unmodified, change a file through the gateway.
//!
//! They are installed into the build folder, in the versions that `crates/gateway/coding-agents` pins. They run in a network and
//! a process namespace of their own: they reach only this machine, and all processes end with the test.

use std::path::Path;
use std::process::Command;

use crate::node;
use crate::step::{report, step};
use crate::workspace::{cargo, target};

/// The tests of published packages, and that of a program that the user names.
const PUBLISHED: [&str; 3] = ["opencode", "qwen_code", "codex_cli"];
const CLAUDE_CODE: &str = "claude_code";

/// The words that start a command in its own network and process namespace.
const ISOLATED: [&str; 8] = [
    "--map-root-user",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "sh",
    "-ec",
];
const SCRIPT: &str = "ip link set lo up; exec \"$@\"";

fn isolated() -> Command {
    let mut command = Command::new("unshare");
    command.args(ISOLATED).args([SCRIPT, "sh"]);
    command
}

/// Runs the task of each agent, and with a program also that of Claude Code.
pub(crate) fn test(root: &Path, claude_code: Option<&str>) -> Result<(), String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        report!("== coding agents: SKIPPED, they need x86-64 Linux");
        return Ok(());
    }
    if !isolated()
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        report!("== coding agents: SKIPPED, this system allows no namespaces");
        return Ok(());
    }
    let installed = std::path::absolute(target().join("coding-agents"))
        .map_err(|error| format!("{}: {error}", target().display()))?;
    let source = root.join("crates/gateway/coding-agents");
    node::install("coding agents", "install", &source, &[], &installed)?;

    let mut tests = cargo(&["test", "--package", "plaincall-cli", "--test", "tests"]);
    step("build of the tests", tests.arg("--no-run"))?;
    let mut names: Vec<String> = PUBLISHED.map(str::to_owned).to_vec();
    names.extend(claude_code.map(|_| CLAUDE_CODE.to_owned()));
    let mut run = isolated();
    run.arg(cargo(&[]).get_program());
    run.args(["test", "--offline", "--package", "plaincall-cli", "--test"]);
    run.args(["tests", "--", "--ignored", "--exact", "--test-threads=1"]);
    run.args(
        names
            .iter()
            .map(|name| format!("serve::coding_agents::{name}")),
    );
    run.env("CODING_AGENTS", installed.join("node_modules"));
    if let Some(program) = claude_code {
        run.env("CLAUDE_CODE", program);
    }
    step("coding agents", run.current_dir(root))
}
