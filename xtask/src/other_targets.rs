//! Checks that the crates compile for targets other than Unix.
//!
//! The crates without I/O compile for WebAssembly, which has no files, processes or clocks. Runs and the agent compile for
//! Windows, and the agent's features that need Unix report so.

use crate::pool::Job;
use crate::step::{report, step};
use crate::workspace::{cargo, root};
use std::process::Command;

pub(crate) const WASM: &str = "wasm32-unknown-unknown";
const WINDOWS: &str = "x86_64-pc-windows-gnu";

const WITHOUT_IO: [&str; 7] = [
    "plaincall-syntax",
    "plaincall-call",
    "plaincall-plan",
    "plaincall-wire",
    "plaincall",
    "plaincall-gateway",
    "plaincall-report",
];

/// The features of the agent that need Unix.
const NEED_UNIX: [&str; 2] = ["mcp", "builtin"];

/// Returns the job that checks each target that `rustup` can install. It fails if a crate does not compile, or if a feature that
/// needs Unix does not report it.
pub(crate) fn job() -> Job {
    Job::new("other-targets", "other targets", 90, check).compiles()
}

fn check() -> Result<(), String> {
    if is_installed(WASM) {
        let mut check = library(WASM);
        check.arg("--no-default-features");
        check.args(WITHOUT_IO.iter().flat_map(|package| ["--package", package]));
        step(WASM, &mut check)?;
    }
    if is_installed(WINDOWS) {
        step(WINDOWS, library(WINDOWS).args(["--package", "plaincall"]))?;
        // Without HTTP, the agent needs no C compiler for that target.
        let mut agent = library(WINDOWS);
        agent.args(["--package", "plaincall-agent", "--no-default-features"]);
        step(WINDOWS, &mut agent)?;
        for feature in NEED_UNIX {
            check_message(feature)?;
        }
    }
    Ok(())
}

/// Checks that the agent with this feature reports that the feature needs Unix. Only the agent itself is compiled, because its
/// dependencies need a C compiler for that target; the errors about them do not matter.
fn check_message(feature: &str) -> Result<(), String> {
    let mut rustc = Command::new("rustc");
    rustc.args([
        "--edition=2024",
        "--crate-type=lib",
        "--emit=metadata",
        "--target",
        WINDOWS,
    ]);
    rustc.args([
        "--out-dir",
        "target",
        "--cfg",
        &format!("feature=\"{feature}\""),
    ]);
    rustc.arg("crates/agent/src/lib.rs").current_dir(root());
    let output = rustc
        .output()
        .map_err(|error| format!("{feature}: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let message = format!("error: the feature `{feature}` of plaincall-agent needs Unix");
    if errors.contains(&message) {
        Ok(())
    } else {
        Err(format!("{WINDOWS}: `{message}` is missing in:\n{errors}"))
    }
}

fn library(target: &str) -> Command {
    cargo(&["check", "--lib", "--target", target])
}

/// Installs a target. Prints the reason and returns `false` if `rustup` cannot do that.
pub(crate) fn is_installed(target: &str) -> bool {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", target]).current_dir(root());
    let reason = match rustup.output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr);
            let reason = reason.trim().lines().last().unwrap_or_default();
            format!("rustup cannot install it: {reason}")
        }
        Err(error) => format!("rustup cannot be started: {error}"),
    };
    report!("== {target}: SKIPPED, {reason}");
    false
}
