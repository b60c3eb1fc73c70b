//! Durable runs on a real Restate server, unmodified: `integrations/restate`, which the build of the workspace skips.
//!
//! The server is installed into the build folder, in the version that `integrations/restate/server` pins. This needs Node and
//! a network.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::node;
use crate::step::step;
use crate::workspace::{cargo, target};

const PACKAGE: &str = "plaincall-restate";
/// The arguments that keep cargo from compiling it with the workspace.
pub(crate) const EXCLUDED: [&str; 2] = ["--exclude", PACKAGE];
/// The tests that other commands run: a measurement, and the process of a worker.
const SKIPPED: [&str; 4] = ["--skip", "cost::", "--skip", "workers::"];

/// Lints the integration, and runs its tests and examples.
pub(crate) fn test(root: &Path) -> Result<(), String> {
    let lints = ["clippy", "--package", PACKAGE, "--all-targets"];
    let mut lints = cargo(&lints);
    step(
        "lints of the integration of Restate",
        lints.args(["--", "--deny", "warnings"]),
    )?;
    let mut documents = cargo(&["doc", "--package", PACKAGE, "--no-deps"]);
    let documents = documents.env("RUSTDOCFLAGS", "--deny warnings");
    step("documents of the integration of Restate", documents)?;
    let build = ["build", "--package", "plaincall-cli"];
    step("build of plaincall", &mut cargo(&build))?;
    let examples = ["test", "--package", PACKAGE, "--doc"];
    step(
        "examples of the integration of Restate",
        &mut cargo(&examples),
    )?;
    let mut tests = tests(root, &[])?;
    tests.args(["--include-ignored", "--test-threads=2"]);
    tests
        .args(SKIPPED)
        .env("PLAINCALL", folder()?.join("debug/plaincall"));
    step("tests with Restate", &mut tests)
}

/// Kills workers and servers. `RESTATE_CASES` is the number of conversations.
pub(crate) fn kill(root: &Path) -> Result<(), String> {
    let mut tests = tests(root, &["--release"])?;
    step(
        "kills",
        tests.args(["killed::", "--ignored", "--nocapture"]),
    )
}

/// Measures what a call costs.
pub(crate) fn measure(root: &Path) -> Result<(), String> {
    let mut tests = tests(root, &["--release"])?;
    step("costs", tests.args(["cost::", "--ignored", "--nocapture"]))
}

/// Installs the server, and returns the command of the tests that use it.
fn tests(root: &Path, profile: &[&str]) -> Result<Command, String> {
    let installed = folder()?.join("restate");
    let source = root.join("integrations/restate/server");
    node::install("the Restate server", "install", &source, &[], &installed)?;
    let mut tests = cargo(&["test", "--package", PACKAGE, "--test", "tests"]);
    tests
        .args(profile)
        .arg("--")
        .env("RESTATE_SERVER", server(&installed)?);
    Ok(tests)
}

/// Returns the program in the package for this machine.
fn server(installed: &Path) -> Result<PathBuf, String> {
    let packages = installed.join("node_modules/@restatedev");
    let found =
        std::fs::read_dir(&packages).map_err(|error| format!("{}: {error}", packages.display()))?;
    let programs = found
        .flatten()
        .map(|entry| entry.path().join("bin/restate-server"));
    let mut programs = programs.filter(|path| path.is_file());
    programs.next().ok_or_else(|| {
        format!(
            "no Restate server for this machine in {}",
            packages.display()
        )
    })
}

/// Returns the build folder, as an absolute path.
fn folder() -> Result<PathBuf, String> {
    std::path::absolute(target()).map_err(|error| format!("{}: {error}", target().display()))
}
