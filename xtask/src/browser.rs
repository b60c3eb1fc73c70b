//! The pages of `plaincall show` and `plaincall probe` in a real browser with the screen of a phone.
//!
//! `crates/cli/browser/phone.mjs` opens them and looks for text that is too small, too wide or hidden, and for gaps in the critical
//! path. On a wide screen, a call must be selected. The logs are those of the tests of `show`, with subagents and long lines, and that of
//! the first example.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pool::Job;
use crate::step::{copy, output, skipped, step};
use crate::workspace::{command, files, new_folder, read, root, stem, target, write};
use crate::{suites, tools};

/// The logs of the tests, as events.
const RECORDS: &str = "crates/cli/tests/show/records";

/// Chromium, and fonts with which pages look as they should.
const PACKAGES: &str = "chromium fonts-dejavu-core";
pub(crate) const CHROMIUM: &str = "Chromium";
/// The option for Node's tests: only a test that hangs takes so long, in milliseconds.
pub(crate) const PATIENCE: &str = "--test-timeout=1800000";

pub(crate) fn jobs() -> Vec<Job> {
    vec![
        Job::new("builds", CHROMIUM, 30, || {
            if found().is_none() && tools::install(PACKAGES).is_err() {
                return skipped("Chromium", "`apt-get` cannot install it");
            }
            Ok(())
        }),
        Job::new("browser", "pages on a phone", 20, check)
            .needs(&[CHROMIUM, suites::BUILD])
            .gigabytes(2),
    ]
}

/// Opens the pages and checks them.
fn check() -> Result<(), String> {
    let Some(chromium) = found() else {
        return skipped("browser", "Chromium is not installed");
    };
    let folder = new_folder(&target().join("browser"))?;
    let pages = pages(&folder)?;
    let mut phone = command("node");
    phone.arg(root().join("crates/cli/browser/phone.mjs"));
    phone.arg(chromium).arg(&folder);
    step("pages on a phone", phone.args(pages))
}

/// Makes the pages in a folder, and returns their paths.
fn pages(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let run = |words: &str| {
        let mut plaincall = Command::new(suites::plaincall());
        output(plaincall.args(words.split(' ')).current_dir(folder))
    };
    copy(&root().join("examples/harbour"), folder)?;
    run("run harbour/reply.txt --tools harbour/tools.toml --log harbour.log")?;
    write_logs(folder)?;
    for log in files(folder, "log") {
        let name = stem(&log);
        run(&format!("show {name}.log --html {name}.html"))?;
    }
    Ok(files(folder, "html"))
}

/// Writes the logs of the tests of `show` into a folder.
pub(crate) fn write_logs(folder: &Path) -> Result<(), String> {
    for record in files(&root().join(RECORDS), "jsonl") {
        let path = folder.join(format!("{}.log", stem(&record)));
        write(&path, log(&read(&record)?))?;
    }
    Ok(())
}

/// Returns the log with these events, one a line.
fn log(events: &str) -> String {
    let lines = events.lines().enumerate().map(|(number, event)| {
        let fields = event.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        let fields = fields.unwrap_or(event);
        let line = format!("{{\"n\":{number},{fields}");
        format!(
            "{line},\"crc\":\"{:08x}\"}}\n",
            crc32fast::hash(line.as_bytes())
        )
    });
    lines.collect()
}

/// Returns the path of Chromium, if it is installed.
pub(crate) fn found() -> Option<PathBuf> {
    let mut names = ["chromium", "chromium-browser", "google-chrome"].into_iter();
    names.find_map(tools::of_system)
}
