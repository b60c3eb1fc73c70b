//! Checks the pure crates with an older Rust than the rest, because many programs that embed them require one.

use crate::pool::Job;
use crate::step::{skipped, step, succeeds};
use crate::workspace::{command, root, target};

/// Their `rust-version`.
const VERSION: &str = "1.85";

const PACKAGES: &str = "--package plaincall-syntax --package plaincall-call --package plaincall-plan --package plaincall-wire";

/// Returns the job that checks these crates with that Rust, which `rustup` installs.
pub(crate) fn job() -> Job {
    Job::new("oldest-rust", "oldest Rust", 40, check).compiles()
}

fn check() -> Result<(), String> {
    let install = "rustup toolchain install --profile minimal --no-self-update";
    if !succeeds(command(install).arg(VERSION)) {
        return skipped(&format!("Rust {VERSION}"), "rustup cannot install it");
    }
    let mut check = command(&format!(
        "rustup run {VERSION} cargo check --lib {PACKAGES}"
    ));
    check.current_dir(root());
    // Builds of another Rust cannot be reused.
    check.env("CARGO_TARGET_DIR", target().join("oldest-rust"));
    check.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    step(&format!("Rust {VERSION}"), &mut check)
}
