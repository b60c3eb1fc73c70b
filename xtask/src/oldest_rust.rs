//! The crates without I/O build with an older Rust than the rest: many programs that embed them are tied to one.

use crate::{step, target};

/// The oldest Rust that builds them, as their manifests say.
const VERSION: &str = "1.85";

const PACKAGES: [&str; 4] = [
    "plaincall-syntax",
    "plaincall-call",
    "plaincall-plan",
    "plaincall-wire",
];

/// Checks these crates with that Rust, which `rustup` installs.
///
/// # Errors
/// Says what does not build.
pub(crate) fn check() -> Result<(), String> {
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
        println!("== Rust {VERSION}: SKIPPED, rustup cannot install it");
        return Ok(());
    }
    let mut check = std::process::Command::new("rustup");
    check.args(["run", VERSION, "cargo", "check", "--lib"]);
    check.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    check.current_dir(crate::root());
    // What the other Rust has built is of no use to this one.
    check.env("CARGO_TARGET_DIR", target().join("oldest-rust"));
    for name in ["CARGO", "RUSTUP_TOOLCHAIN"] {
        check.env_remove(name);
    }
    step(&format!("Rust {VERSION}"), &mut check)
}
