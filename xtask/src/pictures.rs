//! Records the pictures of the README from the real program.
//!
//! A test draws the live view from a terminal's screen and writes the page of the run. Chromium takes a screenshot of the
//! page. Without `PICTURES=record`, the same tests check that the pictures show what the program does today.

use std::path::Path;
use std::process::Command;

use crate::{browser, cargo, step, target};

/// Records all pictures.
///
/// # Errors
/// Returns an error if a test fails, or if there is no Chromium.
pub(crate) fn record(root: &Path) -> Result<(), String> {
    let tests = ["test", "--package", "plaincall-cli", "--test", "tests"];
    let mut tests = cargo(&tests);
    tests.args(["pictures::", "--", "--test-threads", "1"]);
    step("pictures", tests.env("PICTURES", "record"))?;
    let browser =
        browser::find().ok_or("the picture of the page needs Chromium: install `chromium`")?;
    let page = root.join("target/pictures/run.html");
    let page = page
        .canonicalize()
        .map_err(|error| format!("{}: {error}", page.display()))?;
    let picture = root.join("docs/pictures/run-page.png");
    // Its own profile, so that a running browser does not take over.
    let profile = target().join("pictures/profile");
    let mut screenshot = Command::new(browser);
    screenshot
        .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--hide-scrollbars", "--force-device-scale-factor=1"])
        .args(["--window-size=1200,800", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}#timeline/call-6", page.display()));
    step("screenshot", &mut screenshot)
}
