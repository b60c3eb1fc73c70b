//! The scenes in `examples/`.

use std::path::Path;
use std::process::Command;

use crate::run::scene::{PLAINCALL, Scene};

/// Runs a scene as its page describes, but faster.
fn check(name: &str, status: i32, expected: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scene = Scene::new("");
    let output = Command::new(PLAINCALL)
        .current_dir(&root)
        .env_clear()
        .envs(scene.environment())
        .arg("run")
        .arg(format!("examples/{name}/reply.txt"))
        .args([
            "--tools",
            &format!("examples/{name}/tools.toml"),
            "--pace",
            "4000",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(status), "{text}");
    for part in expected {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(scene.is_clean());
}

#[test]
fn harbour() {
    let expected = [
        "08:00  Ardea   draws 3.74 m in 5.85 m of water: 2.11 m under the keel",
        "10:00  Sterna  draws 3.15 m in 3.71 m of water: 0.56 m under the keel",
        "Wind 19.2 knots: berth 2",
        "10 calls: 10 ok",
        "started before the reply was complete",
    ];
    check("harbour", 0, &expected);
}

#[test]
fn storm() {
    let expected = [
        "no answer from Skerry: only static",
        "not run: it depends on `lighthouse`, which failed",
        "2 black balls at Outer Mole",
        "4 calls: 2 ok, 1 failed, 1 skipped",
    ];
    check("storm", 1, &expected);
}
