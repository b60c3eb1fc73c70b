//! The tutorial: its commands run, and their output is the one on the page.
//!
//! A shell runs each `sh` block in a copy of `examples/agent`, and the `text` block after it has the complete output.
//! With `SNAPSHOTS=overwrite` the output is written instead of compared; times and numbers are then those of that
//! run.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use snapbox::{Data, assert_data_eq};

use crate::run::scene::{PLAINCALL, Scene};

const SHELL: &str = "\n```sh\n";
const TEXT: &str = "\n```text\n";
const END: &str = "\n```\n";

#[test]
fn the_tutorial_matches_the_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = root.join("docs/tutorial.md");
    let text = fs::read_to_string(&page).unwrap();
    let scene = Scene::new("");
    let folder = scene.path("home/you/harbour");
    copy(&root.join("examples/agent"), &folder);

    let mut found = String::new();
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once(SHELL) {
        let (commands, behind) = behind.split_once(END).unwrap();
        let (between, behind) = behind
            .split_once(TEXT)
            .expect("a block with what is printed");
        assert!(between.trim().is_empty(), "{commands}: {between}");
        let (shown, behind) = behind.split_once(END).unwrap();
        let printed = run(&scene, &folder, commands);
        // Where only times differ, the page keeps its own.
        let printed = if without_numbers(&printed) == without_numbers(shown) {
            shown
        } else {
            printed.as_str()
        };
        found += &[before, SHELL, commands, END, between, TEXT, printed, END].concat();
        rest = behind;
    }
    found += rest;
    assert!(
        found.matches(SHELL).count() >= 6,
        "the blocks were not found"
    );
    assert_data_eq!(found, Data::read_from(&page, None).raw());
}

/// The output, as in the home directory of a reader.
fn run(scene: &Scene, folder: &Path, commands: &str) -> String {
    let binaries = Path::new(PLAINCALL).parent().unwrap().display();
    let [(_, path), _] = scene.environment();
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("exec 2>&1\n{commands}"))
        .current_dir(folder)
        .env_clear()
        .envs(scene.environment())
        .env("PATH", format!("{binaries}:{}", path.display()))
        .env("HOME", scene.path("home/you"))
        .stdin(Stdio::null())
        // In the background of the tests' terminal, so that no question appears there.
        .process_group(0)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let home = scene.path("home").canonicalize().unwrap();
    let text = text.replace(&*home.to_string_lossy(), "/home");
    let text = text.replace(&*scene.path("home").to_string_lossy(), "/home");
    text.trim_end().to_owned()
}

/// The stable parts: the lines in some order, with one character for each number, since times and estimates differ.
fn without_numbers(text: &str) -> String {
    let mut plain = String::new();
    for word in text.split_inclusive([' ', '\n']) {
        let number = word.trim_end();
        let is_time = !number.is_empty()
            && number
                .chars()
                .all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | ':'));
        if is_time && number != "-" {
            plain.push('#');
            plain.push_str(&word[number.len()..]);
        } else {
            plain.push_str(word);
        }
    }
    // Times below and above a second have different units, and columns are as wide as paths.
    let plain = plain.replace("# ms", "# s");
    let lines = plain.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        words.join(" ")
    });
    let mut lines: Vec<String> = lines.collect();
    // Concurrent calls end in any order.
    lines.sort();
    lines.join("\n")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
