//! Checks the pure crates with an older Rust than the rest, because many programs that embed them require one.

use crate::pool::Job;
use crate::step::{report, step};
use crate::workspace::{root, target};

/// Their `rust-version`.
const VERSION: &str = "1.85";

const PACKAGES: [&str; 4] = [
    "plaincall-syntax",
    "plaincall-call",
    "plaincall-plan",
    "plaincall-wire",
];

/// Returns the job that checks these crates with that Rust, which `rustup` installs.
pub(crate) fn job() -> Job {
    Job::new("oldest-rust", "oldest Rust", 40, check).compiles()
}

fn check() -> Result<(), String> {
    let mut rustup = std::process::Command::new("rustup");
    let install = [
        "toolchain",
        "install",
        VERSION,
        "--profile",
        "minimal",
        "--no-self-update",
    ];
    if !rustup
        .args(install)
        .status()
        .is_ok_and(|status| status.success())
    {
        report!("== Rust {VERSION}: SKIPPED, rustup cannot install it");
        return Ok(());
    }
    let mut check = std::process::Command::new("rustup");
    check.args(["run", VERSION, "cargo", "check", "--lib"]);
    check.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    check.current_dir(root());
    // Builds of another Rust cannot be reused.
    check.env("CARGO_TARGET_DIR", target().join("oldest-rust"));
    for name in ["CARGO", "RUSTUP_TOOLCHAIN"] {
        check.env_remove(name);
    }
    step(&format!("Rust {VERSION}"), &mut check)
}
