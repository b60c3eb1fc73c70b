//! Questions and conversations, with recorded replies instead of a model.

mod answers;
mod configuration;
mod constrained;
mod conversations;
mod sessions;
mod subagents;
mod terminals;
mod trust;
mod tutorial;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::run::scene::{Ended, Scene, call};

/// The name of the model in these tests.
const MODEL: &str = "replay:replies.jsonl";

/// A scene with these replies, and tools.
fn scene(replies: &[&str]) -> Scene {
    let scene = Scene::with_tools("", TOOLS);
    write_replies(&scene, replies);
    scene
}

fn write_replies(scene: &Scene, replies: &[&str]) {
    let lines: Vec<String> = replies
        .iter()
        .map(|reply| serde_json::to_string(reply).unwrap() + "\n")
        .collect();
    fs::write(scene.path("replies.jsonl"), lines.concat()).unwrap();
}

const TOOLS: &str = r#"
[tools.read]
description = "Reads a note."
parameters = { name = "string" }
shell = 'case {name} in missing) echo gone; exit 3;; *) echo "note {name}";; esac'
effect = "read"

[tools.write]
description = "Writes a note."
parameters = { name = "string", text = "string" }
shell = 'echo {text} > {directory:tools}/{name}.txt'

[tools.wait]
parameters = {}
shell = 'echo $$ > {directory:tools}/waiting; sleep 60'
effect = "read"

[tools.stay]
parameters = {}
shell = 'trap "" TERM; echo $$ > {directory:tools}/waiting; while :; do sleep 1; done'
effect = "read"
grace = "1h"

[tools.count]
parameters = {}
command = ["seq", "200"]
effect = "read"
"#;

/// A reply that reads two notes.
fn two_notes() -> String {
    let first = call("read:a", &[("name", "apples")]);
    let second = call("read", &[("name", "missing")]);
    format!("I look into the notes.\n{first}{second}")
}

/// Runs the command with this standard input.
fn with_input(scene: &Scene, arguments: &[&str], input: &str) -> Ended {
    fed(&mut scene.plaincall(arguments), input)
}

/// Runs the command with this standard input.
fn fed(command: &mut Command, input: &str) -> Ended {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A command that ends early does not read all of it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap().into()
}

fn run(scene: &Scene, arguments: &[&str]) -> Ended {
    scene.plaincall(arguments).output().unwrap().into()
}

/// The same with a home directory, for configuration and state.
fn at_home(scene: &Scene, arguments: &[&str]) -> Ended {
    let mut command = scene.plaincall(arguments);
    command.env("HOME", scene.path("home"));
    command.output().unwrap().into()
}
