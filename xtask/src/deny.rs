//! Licences, sources, duplicates and known faults of the packages that others wrote, by `cargo deny` and `deny.toml`.
//!
//! `cargo deny` is installed below the build folder. Known faults are looked up in a database on the network; where that
//! cannot be reached and no copy is there, this is said and left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::{cargo, step, target};

/// The version of `cargo deny`.
const VERSION: &str = "0.20.2";

/// Checks everything.
///
/// # Errors
/// Says what is not accepted, and what could not be run.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let program = program()?;
    let deny = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(arguments).current_dir(root);
        command
    };
    let kinds = ["check", "licenses", "bans", "sources"];
    step("licences, duplicates and sources", &mut deny(&kinds))?;
    let fetched = deny(&["fetch", "db"]).stderr(Stdio::null()).status();
    let is_fetched = fetched.is_ok_and(|status| status.success());
    if is_fetched {
        step("advisories", &mut deny(&["check", "advisories"]))
    } else if has_database() {
        let known = ["--offline", "check", "advisories"];
        step("advisories, of the copy that is here", &mut deny(&known))
    } else {
        println!("== advisories: SKIPPED, their database cannot be reached");
        Ok(())
    }
}

/// Whether a copy of the database is where cargo keeps it.
fn has_database() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let copies = home.and_then(|home| fs::read_dir(home.join("advisory-dbs")).ok());
    let mut copies = copies.into_iter().flatten().flatten();
    copies.any(|copy| copy.path().join(".git").exists())
}

/// The program, installed unless it is there.
fn program() -> Result<PathBuf, String> {
    let place = target().join("tools").join(format!("cargo-deny-{VERSION}"));
    let program = place.join("bin/cargo-deny");
    if !program.exists() {
        // It waits for files and the network: it need not be quick itself.
        let mut install = cargo(&["install", "--quiet", "--locked", "--debug", "cargo-deny"]);
        install
            .args(["--version", VERSION])
            .arg("--root")
            .arg(&place);
        install.env("CARGO_TARGET_DIR", target().join("tools/build"));
        install.env("CARGO_PROFILE_DEV_DEBUG", "false");
        step("cargo-deny", &mut install)?;
    }
    fs::canonicalize(&program).map_err(|error| format!("{}: {error}", program.display()))
}
