//! Records the pictures of the README and of the inspector from the real program.
//!
//! A test draws the live view and writes the page of the run. Without `PICTURES=record`, it checks that the pictures are up to date.

use std::path::Path;
use std::process::Command;

use crate::step::step;
use crate::workspace::{at, cargo, target};
use crate::{browser, inspector, suites};

/// Records all pictures.
pub(crate) fn record(root: &Path) -> Result<(), String> {
    let mut tests =
        cargo("test --package plaincall-cli --test tests pictures:: -- --test-threads 1");
    step("pictures", tests.env("PICTURES", "record"))?;
    let browser =
        browser::found().ok_or("the pictures of pages need Chromium: install `chromium`")?;
    let shoot = |page: &Path, view: &str, name: &str| {
        screenshot(&browser, page, view, &root.join("docs/pictures").join(name))
    };
    let run = root.join("target/pictures/run.html");
    shoot(&run, "timeline/call-7", "run-page.png")?;
    let Some(page) = inspector::page() else {
        return Ok(());
    };
    let example = root.join("inspector/example");
    let inspected = root.join("target/pictures/inspector.html");
    let mut inspect = Command::new(suites::plaincall());
    inspect.arg("inspect").arg(example.join("invalid.txt"));
    inspect.arg("--tools").arg(example.join("tools.json"));
    inspect.arg("--page").arg(page);
    inspect.arg("--html").arg(&inspected);
    step("page of the inspector", &mut inspect)?;
    shoot(&inspected, "calls", "inspector.png")
}

/// Takes a picture of a view of a page.
fn screenshot(browser: &Path, page: &Path, view: &str, picture: &Path) -> Result<(), String> {
    let page = page.canonicalize().map_err(at(page))?;
    // Its own profile, so that a running browser does not take over.
    let profile = target().join("pictures/profile");
    let mut screenshot = Command::new(browser);
    screenshot
        .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--hide-scrollbars", "--force-device-scale-factor=1"])
        .args(["--window-size=1200,800", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}#{view}", page.display()));
    step("screenshot", &mut screenshot)
}
