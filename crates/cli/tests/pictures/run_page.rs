//! The page of the run of the first example. Its picture is a screenshot, so the test compares the page that it shows.

use std::fs;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::pictures::{example, is_recording, repository};
use crate::show::scene::{log, show};

/// The checksum of the page in the picture.
const CHECKSUM: &str = "docs/pictures/run-page.sha256";

/// The events of the run, without paths, numbers and checksums. Delete the file to record another run.
const EVENTS: &str = "docs/pictures/run.jsonl";

#[test]
fn the_page_of_a_run() {
    if is_recording() {
        record();
    }
    let events = fs::read_to_string(repository(EVENTS)).unwrap();
    let events: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let shown = show(log(&events), &["--html", "-"]);
    assert_eq!(shown.status, Some(0), "{}", shown.stderr);
    let checksum = Sha256::digest(&shown.stdout);
    let checksum: String = checksum
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    if is_recording() {
        let folder = repository("target/pictures");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("run.html"), &shown.stdout).unwrap();
        fs::write(repository(CHECKSUM), checksum + "\n").unwrap();
        return;
    }
    let recorded = fs::read_to_string(repository(CHECKSUM)).unwrap();
    assert_eq!(
        recorded.trim_end(),
        checksum,
        "docs/pictures/run-page.png shows an older page; `cargo xtask pictures` records it again (it needs Chromium)"
    );
}

/// Runs the example and writes its events, unless they are recorded.
fn record() {
    let file = repository(EVENTS);
    if file.exists() {
        return;
    }
    let scene = example();
    let ended = scene.run(&["--pace", "400", "--log", "run.log"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let mut lines = String::new();
    for line in fs::read_to_string(scene.path("run.log")).unwrap().lines() {
        let mut event: Value = serde_json::from_str(line).unwrap();
        let fields = event.as_object_mut().unwrap();
        fields.shift_remove("n");
        fields.shift_remove("crc");
        if fields["event"] == "run" {
            fields.insert("began_unix_ms".to_owned(), 1_795_421_280_000_u64.into());
            fields.insert("current_directory".to_owned(), "/harbour".into());
            fields["directory"]["path"] = "/tmp/plaincall-harbour".into();
            fields.insert("note".to_owned(), Value::Null);
        }
        lines += &serde_json::to_string(&event).unwrap();
        lines.push('\n');
    }
    fs::write(file, lines).unwrap();
}
