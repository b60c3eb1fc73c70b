//! Checks licences, sources, duplicates and advisories of dependencies with `cargo deny` and `deny.toml`.
//!
//! Advisories come from a database on the network. If it cannot be reached
//! and there is no copy, this step is skipped with a message.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::pool::Job;
use crate::step::{report, step};
use crate::workspace::root;
use crate::{cargo_tool, python};

/// The version of `cargo deny`.
const VERSION: &str = "0.20.2";

/// Returns the job that checks everything.
pub(crate) fn job() -> Job {
    Job::new("deny", "deny", 10, || check(&root())).needs(&[python::UV])
}

fn check(root: &Path) -> Result<(), String> {
    let program = cargo_tool::published("cargo-deny", VERSION, &[])?;
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
        step("advisories, from the local copy", &mut deny(&known))
    } else {
        report!("== advisories: SKIPPED, their database cannot be reached");
        Ok(())
    }
}

/// Returns whether cargo has a local copy of the database.
fn has_database() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let copies = home.and_then(|home| fs::read_dir(home.join("advisory-dbs")).ok());
    let mut copies = copies.into_iter().flatten().flatten();
    copies.any(|copy| copy.path().join(".git").exists())
}
