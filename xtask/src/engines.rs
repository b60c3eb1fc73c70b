//! Inference engines, unmodified, with our grammars: all give the same verdicts, and what they write is valid.
//!
//! They are installed into the build folder, in the versions that `testing/testkit/engines` pins. This needs Python, Node,
//! x86-64 Linux and a network.

use std::path::Path;
use std::process::Command;

use crate::{cargo, node, python, step, target};

/// The program for llama.cpp. The other file keeps npm from installing llama.cpp for other machines.
const NODE: [&str; 2] = ["llama_cpp_verdicts.mjs", ".npmrc"];

/// Compares the verdicts of `XGrammar` and llama.cpp with those of llguidance, and checks texts that `XGrammar` writes.
pub(crate) fn compare(root: &Path) -> Result<(), String> {
    let engines = root.join("testing/testkit/engines");
    let installed = std::path::absolute(target().join("engines"))
        .map_err(|error| format!("{}: {error}", target().display()))?;
    node::install("llama.cpp for Node", "install", &engines, &NODE, &installed)?;
    let requirements = engines.join("requirements.txt");
    let programs = python::install_only(&requirements, &installed.join("python"))?;

    tests("write_texts", &installed)?;
    let mut xgrammar = Command::new(programs.join("python"));
    // No compiled files in the sources.
    xgrammar.arg("-B").arg(engines.join("xgrammar_verdicts.py"));
    step("XGrammar", xgrammar.arg(&installed))?;
    let mut llama = Command::new("node");
    llama.arg(installed.join(NODE[0]));
    step("llama.cpp", llama.arg(&installed))?;
    tests("texts_of_xgrammar_are_valid", &installed)
}

fn tests(name: &str, folder: &Path) -> Result<(), String> {
    let mut tests = cargo(&["test", "--package", "plaincall-testkit", "--test", "tests"]);
    tests.args(["--", "--ignored", "--nocapture"]);
    tests.arg(format!("grammar::engines::{name}"));
    step(name, tests.env("ENGINES", folder))
}
