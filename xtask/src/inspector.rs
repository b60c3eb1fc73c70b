//! The inspector: builds its page, and tests it in a browser and inside the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::npm::WASM_FEATURES;
use crate::other_targets::{WASM, is_installed};
use crate::step::{report, step};
use crate::workspace::{at, cargo, new_folder, target};
use crate::{browser, node};

/// The profile of the module.
const PROFILE: &str = "wasm";
/// The seeds of hash tables come from `inspector/core/src/seeds.rs` instead of generated bindings to a page.
const SEEDS: &str =
    r#"target.wasm32-unknown-unknown.rustflags=["--cfg", "getrandom_backend=\"custom\""]"#;
/// The parts of the page that that of `show` has too.
const SHARED: &str = "crates/report/src/page";
/// The most bytes that the page may have.
const MOST: u64 = 1_800_000;

/// Builds the page, and tests it.
///
/// # Errors
/// Returns an error if something cannot be built or installed, or if a test fails.
pub(crate) fn test(root: &Path) -> Result<(), String> {
    let Some(page) = build(root)? else {
        return Ok(());
    };
    let mut tests = cargo(&["test", "--package", "plaincall-cli", "--test", "tests"]);
    tests
        .arg("inspect::")
        .env("PLAINCALL_INSPECTOR_PAGE", &page);
    step("the command with the page", &mut tests)?;
    let Some(chromium) = browser::installed() else {
        report!(
            "== inspector: SKIPPED, Chromium is not installed, and `apt-get` cannot install it"
        );
        return Ok(());
    };
    let folder = page.parent().unwrap_or(root);
    new_folder(&folder.join("pictures"))?;
    let records = browser::write_logs(root, &folder.join("logs"))?;
    let mut tests = Command::new("node");
    tests.args(["--test", "--test-timeout=240000", "tests/"]);
    tests.env("CHROMIUM", chromium).env("PAGE", &page);
    let plaincall = std::path::absolute(target().join("debug/plaincall")).map_err(at(root))?;
    tests.env("LOGS", records).env("PLAINCALL", plaincall);
    step("the inspector in Chromium", tests.current_dir(folder))
}

/// Builds the page in the build folder. Returns `None` if the compiler has no WebAssembly.
///
/// # Errors
/// Returns an error if something cannot be built or installed.
pub(crate) fn build(root: &Path) -> Result<Option<PathBuf>, String> {
    if !is_installed(WASM) {
        return Ok(None);
    }
    let folder = std::path::absolute(target().join("inspector")).map_err(at(root))?;
    let source = root.join("inspector");
    for name in ["src", "page", "types", "example", "tests"] {
        // It may not exist yet.
        let _ = fs::remove_dir_all(folder.join(name));
    }
    let files = [
        "tsconfig.json",
        "page.tsconfig.json",
        "page.html",
        "style.css",
        "elements.mjs",
        "build.mjs",
    ];
    node::install("inspector's packages", "install", &source, &files, &folder)?;
    let mut copy = Command::new("cp");
    copy.arg("--recursive");
    copy.args(["src", "example", "tests"].map(|name| source.join(name)));
    copy.arg(root.join(SHARED)).arg(&folder);
    step("sources of the inspector", &mut copy)?;
    let programs = folder.join("node_modules/.bin");
    let mut check = Command::new("npm");
    check
        .args(["run", "--silent", "check"])
        .current_dir(&folder);
    step("TypeScript", &mut check)?;
    let mut module = cargo(&["build", "--package", "plaincall-inspector", "--lib"]);
    module.args(["--target", WASM, "--profile", PROFILE, "--config", SEEDS]);
    step("WebAssembly of the inspector", &mut module)?;
    let built = target().join(WASM).join(PROFILE);
    let built = built.join("plaincall_inspector.wasm");
    let mut optimize = Command::new(programs.join("wasm-opt"));
    optimize
        .arg("-Oz")
        .args(WASM_FEATURES.map(|name| format!("--enable-{name}")))
        .arg("--enable-simd")
        .arg(std::path::absolute(built).map_err(at(root))?)
        .args(["-o", "core.wasm"]);
    step("core.wasm", optimize.current_dir(&folder))?;
    let mut page = Command::new("node");
    page.args(["build.mjs", "core.wasm", "page", "inspector.html"]);
    step("inspector.html", page.current_dir(&folder))?;
    let page = folder.join("inspector.html");
    let size = fs::metadata(&page).map_err(at(&page))?.len();
    if size > MOST {
        return Err(format!("{} has more than {MOST} bytes", page.display()));
    }
    Ok(Some(page))
}
