//! Inference engines, unmodified, with our grammars: all give the same verdicts, and what they write is valid, also behind the
//! gateway.
//!
//! They are installed into the build folder, in the versions that `testing/testkit/engines` pins. This needs Python, Node,
//! x86-64 Linux and a network.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::step;
use crate::workspace::{cargo, target};
use crate::{node, python};

/// The programs for llama.cpp. The last file keeps npm from installing llama.cpp for other machines.
const NODE: [&str; 4] = [
    "llama_cpp_verdicts.mjs",
    "constrained_replies.mjs",
    "random_model.mjs",
    ".npmrc",
];
/// The requests that a model with random weights answers through the gateway.
const REQUESTS: &str = "200";

/// Compares the verdicts of `XGrammar` and llama.cpp with those of llguidance, and checks texts that `XGrammar` writes.
pub(crate) fn compare(root: &Path) -> Result<(), String> {
    let (engines, installed) = folders(root)?;
    node::install("llama.cpp for Node", "install", &engines, &NODE, &installed)?;
    tests("write_texts", &installed)?;
    let mut xgrammar = program(&engines, &installed, "xgrammar_verdicts.py")?;
    step("XGrammar", xgrammar.arg(&installed))?;
    let mut llama = Command::new("node");
    llama.arg(installed.join(NODE[0]));
    step("llama.cpp", llama.arg(&installed))?;
    tests("texts_of_xgrammar_are_valid", &installed)?;

    let mut build = cargo(&["build", "--package", "plaincall-cli"]);
    step("build of plaincall", &mut build)?;
    let mut replies = Command::new("node");
    replies.arg(installed.join(NODE[1]));
    replies.arg(target().join("debug/plaincall"));
    step("llama.cpp behind the gateway", replies.arg(REQUESTS))
}

/// Prints how long `XGrammar` and llguidance take for the tools of a coding agent.
pub(crate) fn measure(root: &Path) -> Result<(), String> {
    let (engines, installed) = folders(root)?;
    let mut figures = program(&engines, &installed, "figures.py")?;
    tests("write_figures", &installed)?;
    step("figures", figures.arg(&installed).arg(root))
}

/// Returns the folder of the programs, and the folder into which all is installed and written.
fn folders(root: &Path) -> Result<(PathBuf, PathBuf), String> {
    let installed = std::path::absolute(target().join("engines"))
        .map_err(|error| format!("{}: {error}", target().display()))?;
    std::fs::create_dir_all(&installed)
        .map_err(|error| format!("{}: {error}", installed.display()))?;
    Ok((root.join("testing/testkit/engines"), installed))
}

/// Returns a Python program, with what it needs installed.
fn program(engines: &Path, installed: &Path, name: &str) -> Result<Command, String> {
    let requirements = engines.join("requirements.txt");
    let programs = python::install_only(&requirements, &installed.join("python"))?;
    let mut program = Command::new(programs.join("python"));
    // No compiled files in the sources.
    program.arg("-B").arg(engines.join(name));
    Ok(program)
}

fn tests(name: &str, folder: &Path) -> Result<(), String> {
    let mut tests = cargo(&["test", "--package", "plaincall-testkit", "--test", "tests"]);
    tests.args(["--", "--ignored", "--nocapture"]);
    tests.arg(format!("grammar::engines::{name}"));
    step(name, tests.env("ENGINES", folder))
}
