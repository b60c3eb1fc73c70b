//! The pages of `plaincall show` and `plaincall probe` in a real browser with the screen of a phone.
//!
//! `crates/cli/browser/phone.mjs` opens them and looks for text that is too small, too wide or hidden, and for gaps in the critical
//! path. The logs are those of the tests of `show`, with subagents and long lines, and that of the first example.

use crate::pool::Job;
use crate::step::{output, report, step};
use crate::suites;
use crate::workspace::{at, files, new_folder, read, root, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The names under which Chromium is installed.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// The logs of the tests, as events.
const RECORDS: &str = "crates/cli/tests/show/records";

/// The job that installs Chromium.
pub(crate) const CHROMIUM: &str = "Chromium";
/// The option for Node's tests: only a test that hangs takes so long, in milliseconds.
pub(crate) const PATIENCE: &str = "--test-timeout=600000";

/// Returns the jobs that install Chromium and check the pages.
pub(crate) fn jobs() -> Vec<Job> {
    vec![
        Job::new("builds", CHROMIUM, 30, || {
            if found().is_none() && install().is_err() {
                report!("== Chromium: SKIPPED, `apt-get` cannot install it");
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
        report!("== browser: SKIPPED, Chromium is not installed");
        return Ok(());
    };
    let root = root();
    let folder = std::path::absolute(target().join("browser")).map_err(at(&root))?;
    let folder = new_folder(&folder)?;
    let pages = pages(&root, &suites::plaincall()?, &folder)?;
    let mut phone = Command::new("node");
    phone.arg(root.join("crates/cli/browser/phone.mjs"));
    step(
        "pages on a phone",
        phone.arg(chromium).arg(&folder).args(pages),
    )
}

/// Makes the pages in a folder, and returns their paths.
fn pages(root: &Path, plaincall: &Path, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let run = |arguments: &[&str]| {
        let mut plaincall = Command::new(plaincall);
        output(plaincall.args(arguments).current_dir(folder))
    };
    let mut copy = Command::new("cp");
    copy.arg("--recursive").arg(root.join("examples/harbour"));
    output(copy.arg(folder))?;
    let example = "run harbour/reply.txt --tools harbour/tools.toml --log harbour.log";
    run(&example.split(' ').collect::<Vec<_>>())?;
    let mut names = vec!["harbour".to_owned()];
    for record in files(&root.join(RECORDS), "jsonl") {
        let name = record.file_stem().unwrap_or_default().to_string_lossy();
        names.push(name.into_owned());
    }
    write_logs(root, folder)?;
    let mut pages = vec![folder.join("probe.html")];
    run(&[
        "probe",
        "reference:block",
        "--quick",
        "--html",
        "probe.html",
    ])?;
    for name in names {
        let page = format!("{name}.html");
        run(&["show", &format!("{name}.log"), "--html", &page])?;
        pages.push(folder.join(page));
    }
    Ok(pages)
}

/// Writes the logs of the tests of `show` into a folder, and returns it.
pub(crate) fn write_logs(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(folder).map_err(at(folder))?;
    for record in files(&root.join(RECORDS), "jsonl") {
        let name = record.file_stem().unwrap_or_default().to_string_lossy();
        let path = folder.join(format!("{name}.log"));
        fs::write(&path, log(&read(&record)?)).map_err(at(&path))?;
    }
    Ok(folder.to_owned())
}

/// Returns the log with these events, one a line.
fn log(events: &str) -> String {
    let lines = events.lines().enumerate().map(|(number, event)| {
        let fields = event.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        let line = format!("{{\"n\":{number},{}", fields.unwrap_or(event));
        format!("{line},\"crc\":\"{:08x}\"}}\n", checksum(line.as_bytes()))
    });
    lines.collect()
}

/// Returns the CRC-32 of a line.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum))
    })
}

/// Installs Chromium, and fonts with which pages look as they should.
fn install() -> Result<(), String> {
    let run = |arguments: &[&str]| {
        let mut install = Command::new("apt-get");
        install.args(["--quiet", "--yes"]).args(arguments);
        step("apt-get", install.stdout(Stdio::null()))
    };
    let packages = [
        "install",
        "--no-install-recommends",
        "chromium",
        "fonts-dejavu-core",
    ];
    run(&packages).or_else(|_| run(&["update"]).and_then(|()| run(&packages)))
}

/// Returns the path of Chromium, if it is installed.
pub(crate) fn found() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).find_map(|folder| {
        let mut candidates = BROWSERS.iter().map(|name| folder.join(name));
        candidates.find(|candidate| candidate.is_file())
    })
}
