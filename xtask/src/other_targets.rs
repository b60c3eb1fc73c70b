//! Checks that the crates compile for targets other than Unix.
//!
//! The crates without I/O compile for WebAssembly, which has no files, processes or clocks. Runs and the agent compile for
//! Windows, and the agent's features that need Unix report so.

use crate::pool::Job;
use crate::step::{output, report, step};
use crate::workspace::{cargo, command, root};

pub(crate) const WASM: &str = "wasm32-unknown-unknown";
const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// The packages that must compile for each target. Without HTTP, the agent needs no C compiler for Windows.
const CHECKS: [(&str, &str); 3] = [
    (
        WASM,
        "--no-default-features --package plaincall-syntax --package plaincall-call --package plaincall-plan --package plaincall-wire \
         --package plaincall --package plaincall-gateway --package plaincall-report",
    ),
    (WINDOWS, "--package plaincall"),
    (WINDOWS, "--package plaincall-agent --no-default-features"),
];

/// The features of the agent that need Unix.
const NEED_UNIX: [&str; 2] = ["mcp", "builtin"];

/// Returns the job that checks each target that `rustup` can install. It fails if a crate does not compile, or if a feature that
/// needs Unix does not report it.
pub(crate) fn job() -> Job {
    Job::new("other-targets", "other targets", 90, check).compiles()
}

fn check() -> Result<(), String> {
    for target in [WASM, WINDOWS] {
        if !is_installed(target) {
            continue;
        }
        for (_, options) in CHECKS.iter().filter(|(of, _)| *of == target) {
            let check = format!("check --lib --target {target} {options}");
            step(target, &mut cargo(&check))?;
        }
        if target == WINDOWS {
            NEED_UNIX.iter().try_for_each(|name| check_message(name))?;
        }
    }
    Ok(())
}

/// Checks that the agent with this feature reports that the feature needs Unix. Only the agent itself is compiled, because its
/// dependencies need a C compiler for that target; the errors about them do not matter.
fn check_message(feature: &str) -> Result<(), String> {
    let mut rustc =
        command("rustc --edition=2024 --crate-type=lib --emit=metadata --out-dir target");
    rustc.args(["--target", WINDOWS, "--cfg"]);
    rustc.arg(format!("feature=\"{feature}\""));
    rustc.arg("crates/agent/src/lib.rs").current_dir(root());
    let output = rustc.output();
    let output = output.map_err(|error| format!("{feature}: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let message = format!("error: the feature `{feature}` of plaincall-agent needs Unix");
    if errors.contains(&message) {
        return Ok(());
    }
    Err(format!("{WINDOWS}: `{message}` is missing in:\n{errors}"))
}

/// Installs a target. Prints the reason and returns `false` if `rustup` cannot do that.
pub(crate) fn is_installed(target: &str) -> bool {
    let mut rustup = command("rustup target add");
    let added = output(rustup.arg(target).current_dir(root()));
    let Err(reason) = added else { return true };
    let reason = reason.trim().lines().last().unwrap_or_default();
    report!("== {target}: SKIPPED, rustup cannot install it: {reason}");
    false
}
