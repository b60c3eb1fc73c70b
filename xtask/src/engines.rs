//! Inference engines, unmodified, with our grammars: all give the same verdicts, and what they write is valid, also behind the
//! gateway.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pool::Job;
use crate::step::step;
use crate::workspace::{at, command, root, target};
use crate::{node, python, suites};

/// The programs for llama.cpp. The last file keeps npm from installing llama.cpp for other machines.
const NODE: &str = "llama_cpp_verdicts.mjs constrained_replies.mjs random_model.mjs .npmrc";
/// How many random grammars and requests there are: in an ordinary run, and in a nightly one. A model with random weights answers
/// the requests through the gateway.
const SHARE: [&str; 2] = ["50", "50"];
const ALL: [&str; 2] = ["200", "200"];

/// Returns the jobs of ordinary and nightly runs: they compare the verdicts of `XGrammar` and llama.cpp with those of llguidance, and
/// check texts that `XGrammar` writes.
pub(crate) fn jobs() -> Vec<Job> {
    let ordinary = || compare(SHARE);
    let nightly = || compare(ALL);
    vec![
        engines("engines", "engines with grammars", 90, ordinary),
        engines("all-engine-texts", "all texts of engines", 200, nightly),
        engines("tool-parsers", "vLLM's tests of tool parsers", 60, parsers),
    ]
}

/// Returns the job that prints how long `XGrammar` and llguidance take for the tools of a coding agent.
pub(crate) fn figures() -> Job {
    engines("engine-figures", "figures of engines", 60, || {
        let (engines, installed) = folders("engines-figures")?;
        let mut figures = program(&engines, "figures.py")?;
        tests("write_figures", &installed, ALL[0])?;
        step("figures", figures.arg(&installed).arg(root()))
    })
}

fn engines(group: &'static str, name: &str, seconds: u32, work: fn() -> Result<(), String>) -> Job {
    let job = Job::new(group, name, seconds, work).gigabytes(2);
    job.needs(&[python::UV, suites::BUILD]).least_tests(1)
}

fn compare([cases, requests]: [&str; 2]) -> Result<(), String> {
    let (engines, installed) = folders(&format!("engines-{cases}"))?;
    node::install("install", &engines, NODE, &installed)?;
    tests("write_texts", &installed, cases)?;
    let mut xgrammar = program(&engines, "xgrammar_verdicts.py")?;
    step("XGrammar", xgrammar.arg(&installed))?;
    let mut llama = command("node");
    llama.arg(installed.join("llama_cpp_verdicts.mjs"));
    step("llama.cpp", llama.arg(&installed))?;
    tests("texts_of_xgrammar_are_valid", &installed, cases)?;
    let mut replies = command("node");
    replies
        .arg(installed.join("constrained_replies.mjs"))
        .arg(suites::plaincall());
    step("llama.cpp behind the gateway", replies.arg(requests))
}

/// Runs vLLM's tests of its parsers of tool calls on the gateway in native mode.
fn parsers() -> Result<(), String> {
    let (engines, installed) = folders("tool-parsers")?;
    let requirements = engines.join("requirements-parsers.txt");
    let programs = python::install(&requirements, &target().join("tool-parsers-python"))?;
    let mut check = Command::new(programs.join("python"));
    check.arg("-B").arg(engines.join("tool_parsers.py"));
    step(
        "vLLM's tests of tool parsers",
        check.arg(suites::plaincall()).arg(installed),
    )
}

/// Returns the folder of the programs, and a new one into which all is installed and written.
fn folders(name: &str) -> Result<(PathBuf, PathBuf), String> {
    let installed = target().join(name);
    std::fs::create_dir_all(&installed).map_err(at(&installed))?;
    Ok((root().join("testing/testkit/engines"), installed))
}

fn program(engines: &Path, name: &str) -> Result<Command, String> {
    let requirements = engines.join("requirements.txt");
    let folder = target().join("engines-python");
    let programs = python::install_with(&["--no-deps"], &requirements, &folder)?;
    let mut program = Command::new(programs.join("python"));
    // No compiled files in the sources.
    program.arg("-B").arg(engines.join(name));
    Ok(program)
}

fn tests(name: &str, folder: &Path, cases: &str) -> Result<(), String> {
    let mut tests = suites::program("testkit")?;
    tests.args(["--ignored", "--nocapture"]);
    tests.arg(format!("grammar::engines::{name}"));
    tests.env("ENGINES", folder).env("ENGINE_CASES", cases);
    step(name, &mut tests)
}
