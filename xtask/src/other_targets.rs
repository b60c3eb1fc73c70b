//! Checks that the crates compile elsewhere: with an older Rust than the rest, because many programs that embed the pure crates
//! require one, and for targets other than Unix.
//!
//! The crates without I/O compile for WebAssembly, which has no files, processes or clocks. Runs and the agent compile for
//! Windows, and the agent's feature that needs Unix reports so. [`windows`](crate::windows) builds the command, which needs a C compiler.

use crate::pool::Job;
use crate::step::{output, skipped, step, succeeds};
use crate::workspace::{cargo, command, root, target};

/// The `rust-version` of the pure crates.
const OLDEST: &str = "1.85";
const PURE: &str = "--package plaincall-syntax --package plaincall-names --package plaincall-tool --package plaincall-reply --package plaincall-prompt --package plaincall-grammar --package plaincall-plan --package plaincall-wire";
const WITHOUT_IO: &str = "--package plaincall --package plaincall-gateway --package plaincall-report --no-default-features";

pub(crate) const WASM: &str = "wasm32-unknown-unknown";
pub(crate) const WINDOWS: &str = "x86_64-pc-windows-gnu";
/// The feature of the agent that needs Unix.
const NEEDS_UNIX: &str = "builtin";

pub(crate) fn jobs() -> Vec<Job> {
    vec![
        Job::new("oldest-rust", "oldest Rust", 40, check_oldest).compiles(),
        Job::new("other-targets", "other targets", 90, check_targets).compiles(),
    ]
}

fn check_oldest() -> Result<(), String> {
    let title = format!("Rust {OLDEST}");
    let install = "rustup toolchain install --profile minimal --no-self-update";
    if !succeeds(command(install).arg(OLDEST)) {
        return skipped(&title, "rustup cannot install it");
    }
    let mut check = command(&format!("rustup run {OLDEST} cargo check --lib {PURE}"));
    check.current_dir(root());
    // Builds of another Rust cannot be reused.
    check.env("CARGO_TARGET_DIR", target().join("oldest-rust"));
    check.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    step(&title, &mut check)
}

fn check_targets() -> Result<(), String> {
    let check = |target: &str, options: &str| {
        let check = format!("check --lib --target {target} {options}");
        step(target, &mut cargo(&check))
    };
    if is_installed(WASM) {
        check(WASM, &format!("{PURE} {WITHOUT_IO}"))?;
    }
    if is_installed(WINDOWS) {
        check(WINDOWS, "--package plaincall")?;
        // Without HTTP, the agent needs no C compiler for that target.
        check(WINDOWS, "--package plaincall-agent --no-default-features")?;
        check_message(NEEDS_UNIX)?;
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

/// Installs a target. Reports the reason and returns `false` if `rustup` cannot do that.
pub(crate) fn is_installed(target: &str) -> bool {
    let mut rustup = command("rustup target add");
    let added = output(rustup.arg(target).current_dir(root()));
    let Err(reason) = added else { return true };
    let reason = reason.trim().lines().last().unwrap_or_default();
    let _ = skipped(target, &format!("rustup cannot install it: {reason}"));
    false
}
