//! The inspector: builds its page, and tests it in a browser.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::pool::Job;
use crate::step::{report, step};
use crate::workspace::{at, new_folder, root, target};
use crate::{browser, node, suites, wasm};

/// The job that builds the page.
pub(crate) const PAGE: &str = "page of the inspector";

/// The folder of the sources.
const SOURCE: &str = "inspector";
/// The parts of the page that that of `show` has too.
const SHARED: &str = "crates/report/src/page";
/// The files and folders that the build and the tests read.
const FILES: [&str; 9] = [
    "tsconfig.json",
    "page.tsconfig.json",
    "page.html",
    "style.css",
    "elements.mjs",
    "build.mjs",
    "src",
    "example",
    "tests",
];
/// The most bytes that the page may have.
const MOST: u64 = 1_800_000;

/// Returns the jobs that build the page and test it.
pub(crate) fn jobs() -> Vec<Job> {
    let tests = Job::new("inspector", "inspector in Chromium", 90, test);
    vec![
        Job::new("builds", PAGE, 20, build).needs(&[wasm::MODULES]),
        tests
            .needs(&[PAGE, browser::CHROMIUM, suites::BUILD])
            .gigabytes(3),
    ]
}

/// Returns the page, or `None` if the compiler has no WebAssembly. [`PAGE`] must have passed.
///
/// # Errors
/// Returns an error if the path is invalid.
pub(crate) fn page() -> Result<Option<PathBuf>, String> {
    let page = target().join("inspector/inspector.html");
    let page = std::path::absolute(&page).map_err(at(&page))?;
    Ok(Some(page).filter(|page| page.is_file()))
}

fn test() -> Result<(), String> {
    let (Some(page), Some(chromium)) = (page()?, browser::found()) else {
        report!("== inspector: SKIPPED, Chromium or the page is missing");
        return Ok(());
    };
    let tests = node::member(SOURCE, &FILES)?;
    new_folder(&tests.join("pictures"))?;
    let records = browser::write_logs(&root(), &tests.join("logs"))?;
    let mut command = Command::new("node");
    command.args(["--test", browser::PATIENCE, "tests/"]);
    command.env("CHROMIUM", chromium).env("PAGE", &page);
    command
        .env("LOGS", records)
        .env("PLAINCALL", suites::plaincall()?);
    step("the inspector in Chromium", command.current_dir(tests))
}

/// Builds the page, unless the compiler has no WebAssembly.
fn build() -> Result<(), String> {
    let to = new_folder(&target().join("inspector"))?;
    let Some(core) = wasm::module("inspector.wasm") else {
        return Ok(());
    };
    let folder = node::member(SOURCE, &FILES)?;
    for name in ["page", "types"] {
        // It may not exist yet.
        let _ = fs::remove_dir_all(folder.join(name));
    }
    let mut copy = Command::new("cp");
    copy.arg("--recursive")
        .arg(root().join(SHARED))
        .arg(&folder);
    step("shared parts of the page", &mut copy)?;
    let mut check = Command::new("npm");
    check.args(["run", "--silent", "check"]);
    step("TypeScript", check.current_dir(&folder))?;
    let page = to.join("inspector.html");
    let mut build = Command::new("node");
    build.arg("build.mjs").arg(core).arg("page").arg(&page);
    step("inspector.html", build.current_dir(&folder))?;
    let size = fs::metadata(&page).map_err(at(&page))?.len();
    if size > MOST {
        return Err(format!("{} has more than {MOST} bytes", page.display()));
    }
    Ok(())
}
