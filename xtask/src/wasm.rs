//! Checks that the crates without I/O compile for WebAssembly, which has no files, processes or clocks.

use std::process::Command;

use crate::{cargo, root, step};

const TARGET: &str = "wasm32-unknown-unknown";

const PACKAGES: [&str; 6] = [
    "plaincall-syntax",
    "plaincall-call",
    "plaincall-plan",
    "plaincall-wire",
    "plaincall",
    "plaincall-gateway",
];

/// Checks these crates without their default features. `rustup` installs the target.
///
/// # Errors
/// Returns an error if one does not compile.
pub(crate) fn check() -> Result<(), String> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]).current_dir(root());
    match rustup.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr);
            let reason = reason.trim().lines().last().unwrap_or_default();
            println!("== {TARGET}: SKIPPED, rustup cannot install it: {reason}");
            return Ok(());
        }
        Err(error) => {
            println!("== {TARGET}: SKIPPED, rustup cannot be started: {error}");
            return Ok(());
        }
    }
    let mut check = cargo(&[
        "check",
        "--lib",
        "--no-default-features",
        "--target",
        TARGET,
    ]);
    check.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    step(TARGET, &mut check)
}
