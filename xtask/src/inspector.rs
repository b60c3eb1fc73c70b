//! The inspector: builds its page, and tests it in a browser.

use std::fs;
use std::path::PathBuf;

use crate::pool::Job;
use crate::step::{copy, skipped, step};
use crate::workspace::{at, command, new_folder, root, target};
use crate::{browser, node, suites, wasm};

pub(crate) const PAGE: &str = "page of the inspector";

const SOURCE: &str = "inspector";
/// The parts of the page that that of `show` has too.
const SHARED: &str = "crates/report/src/page";
/// The files and folders that the build and the tests read.
const FILES: &str =
    "tsconfig.json page.tsconfig.json page.html style.css elements.mjs build.mjs src example tests";
const MOST: u64 = 1_820_000;

pub(crate) fn jobs() -> Vec<Job> {
    let tests = Job::new("inspector", "inspector in Chromium", 90, test);
    vec![
        Job::new(PAGE, PAGE, 20, build).needs(&[wasm::MODULES]),
        tests
            .needs(&[PAGE, browser::CHROMIUM, suites::BUILD])
            .gigabytes(3),
    ]
}

/// Returns the page, or `None` if the compiler has no WebAssembly. [`PAGE`] must have passed.
pub(crate) fn page() -> Option<PathBuf> {
    Some(target().join("inspector/inspector.html")).filter(|page| page.is_file())
}

fn test() -> Result<(), String> {
    let (Some(page), Some(chromium)) = (page(), browser::found()) else {
        return skipped("inspector", "Chromium or the page is missing");
    };
    let tests = node::member(SOURCE, FILES)?;
    new_folder(&tests.join("pictures"))?;
    let logs = tests.join("logs");
    browser::write_logs(&logs)?;
    let mut command = command("node --test");
    command.args([browser::PATIENCE, "tests/"]);
    command.env("CHROMIUM", chromium).env("PAGE", &page);
    command.env("LOGS", logs);
    command.env("PLAINCALL", suites::plaincall());
    step("the inspector in Chromium", command.current_dir(tests))
}

/// Builds the page, unless the compiler has no WebAssembly.
fn build() -> Result<(), String> {
    let to = new_folder(&target().join("inspector"))?;
    let Some(core) = wasm::module("inspector.wasm") else {
        return Ok(());
    };
    let folder = node::member(SOURCE, FILES)?;
    for name in ["page", "types"] {
        // It may not exist yet.
        let _ = fs::remove_dir_all(folder.join(name));
    }
    copy(&root().join(SHARED), &folder)?;
    let mut check = command("npm run --silent check");
    step("TypeScript", check.current_dir(&folder))?;
    let page = to.join("inspector.html");
    let mut build = command("node build.mjs");
    build.arg(core).arg("page").arg(root().join("spec"));
    build.arg(&page);
    step("inspector.html", build.current_dir(&folder))?;
    let size = fs::metadata(&page).map_err(at(&page))?.len();
    if size > MOST {
        return Err(format!("{} has more than {MOST} bytes", page.display()));
    }
    Ok(())
}
