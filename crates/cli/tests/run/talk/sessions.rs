//! Saved conversations.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::{MODEL, at_home, scene, two_notes};
use crate::run::scene::wait_until;

#[test]
fn a_session_continues() {
    let scene = scene(&[&two_notes(), "Apples.", "Pears.", "Plums.", "Figs."]);
    let ask = |options: &[&str], status: i32| {
        let ended = at_home(&scene, &[&["ask", "What?"], options].concat());
        assert_eq!(ended.status, Some(status), "{options:?}: {ended:?}");
        ended
    };
    let tools = ["--tools", "tools.toml"];
    let nothing = ask(&["--continue"], 2);
    assert!(
        nothing.stderr.contains("there is no session to continue"),
        "{nothing:?}"
    );
    let first = ask(
        &[
            &tools[..],
            &["--model", MODEL, "--session", "notes"],
            &["--file", "tools.toml"],
        ]
        .concat(),
        0,
    );
    assert_eq!(first.stdout, "Apples.\n");
    // The model is the one that the session began with, and gets the earlier messages.
    let second = ask(&[&tools[..], &["--continue"]].concat(), 0);
    assert_eq!(second.stdout, "Pears.\n");
    // Without its tools it continues too, and with changed ones.
    let without = ask(&["--session", "notes"], 0);
    assert_eq!(without.stdout, "Plums.\n");
    let note = "note: the session continues without these tools, which no longer exist: count, read, read_result, stay, wait, write\n";
    assert!(without.stderr.contains(note), "{without:?}");
    let changed = fs::read_to_string(scene.path("tools.toml")).unwrap();
    let changed = changed.replace("effect = \"read\"", "effect = \"write\"\ntimeout = 5");
    fs::write(scene.path("changed.toml"), changed).unwrap();
    let with = ask(&["--session", "notes", "--tools", "changed.toml"], 0);
    assert_eq!(with.stdout, "Figs.\n");
    let wrong = ask(&["--session", "../notes", "--model", MODEL], 2);
    assert!(wrong.stderr.contains("invalid session name"), "{wrong:?}");

    let listed = at_home(&scene, &["sessions", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["name"], "notes");
    assert_eq!(listed["turns"], 5);
    assert_eq!(listed["model"], MODEL);
    assert_eq!(listed["question"], "What?");
    let shown = at_home(&scene, &["show", "notes"]);
    let gone = "Tools that are no longer available: count, read, read_result, stay, wait, write";
    for part in ["I look into the notes.", "Apples.", "Pears.", "What?", gone] {
        assert!(
            shown.stdout.contains(part),
            "{part:?} is not in\n{}",
            shown.stdout
        );
    }
    for (name, message) in [
        (
            "nots",
            "there is no file or session `nots`; did you mean `notes`?",
        ),
        ("x", "session `x`; `plaincall sessions` lists the sessions"),
        ("./notes", "cannot read ./notes"),
    ] {
        let missing = at_home(&scene, &["show", name]);
        assert_eq!(missing.status, Some(1));
        assert!(missing.stderr.contains(message), "{missing:?}");
    }
    // A file precedes a session.
    fs::write(scene.path("notes"), "no log").unwrap();
    let file = at_home(&scene, &["show", "notes"]);
    assert!(file.stderr.contains("cannot show notes"), "{file:?}");
    fs::remove_file(listed["file"].as_str().unwrap()).unwrap();
    assert_eq!(at_home(&scene, &["sessions", "--json"]).stdout, "");
}

#[test]
fn a_session_survives_remains_of_a_crash() {
    let scene = scene(&[&two_notes(), "Apples.", "Pears.", "Figs."]);
    let options = [
        "--model",
        MODEL,
        "--tools",
        "tools.toml",
        "--session",
        "notes",
    ];
    let ask = || at_home(&scene, &[&["ask", "What?"], &options[..]].concat());
    assert_eq!(ask().status, Some(0));
    let log = scene.path("home/.local/state/plaincall/sessions/notes.jsonl");
    let mut bytes = fs::read(&log).unwrap();
    bytes.truncate(bytes.len() - 10);
    fs::write(&log, bytes).unwrap();
    let ended = ask();
    assert_eq!(ended.stdout, "Pears.\n", "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("incomplete or damaged bytes, which were removed"),
        "{ended:?}"
    );
    // Damage before calls that wrote: nothing is known about them without their lines.
    let whole = fs::read_to_string(&log).unwrap();
    let turn = whole.find("\"event\":\"turn\"").unwrap();
    let damaged = [&whole[..turn], "\"event\":\"torn\"", &whole[turn + 14..]].concat();
    fs::write(&log, &damaged).unwrap();
    let ended = ask();
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("is damaged"), "{ended:?}");
    assert_eq!(fs::read_to_string(&log).unwrap(), damaged);
    // Damage behind them: the lines before it stay.
    let answer = whole.rfind("Apples").unwrap();
    fs::write(
        &log,
        [&whole[..answer], "Opples", &whole[answer + 6..]].concat(),
    )
    .unwrap();
    let ended = ask();
    assert_eq!(ended.stdout, "Apples.\n", "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("note: the session `notes` is damaged from line"),
        "{ended:?}"
    );
    let kept = fs::read_to_string(log.with_extension("damaged-1")).unwrap();
    assert!(kept.contains("Opples") && kept.len() == whole.len());
    let kept = fs::read_to_string(&log).unwrap();
    assert!(kept.contains("Apples") && !kept.contains("Pears"), "{kept}");
}

#[test]
fn a_session_belongs_to_one_command() {
    let scene = scene(&["Apples."]);
    let server = "{\"mcpServers\": {\"slow\": {\"command\": \"sh\", \"args\": [\"-c\", \"echo > begun; sleep 1000\"], \"cwd\": \".\"}}}";
    fs::write(scene.path("mcp.json"), server).unwrap();
    let options = ["ask", "What?", "--model", MODEL, "--session", "notes"];
    // It waits for its server, and has not written anything yet.
    let mut command = scene.plaincall(&[&options[..], &["--mcp", "mcp.json"]].concat());
    let first = command.env("HOME", scene.path("home")).spawn().unwrap();
    wait_until("the server is started", || scene.path("begun").exists());
    let second = at_home(&scene, &options);
    assert_eq!(second.status, Some(1), "{second:?}");
    assert!(
        second
            .stderr
            .contains("`notes` is in use by another process"),
        "{second:?}"
    );
    let pid = Pid::from_raw(i32::try_from(first.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(143));
    let third = at_home(&scene, &options);
    assert_eq!(third.stdout, "Apples.\n", "{third:?}");
}

/// A session exists once there is something to continue; `--continue` finds the most recent one.
#[test]
fn a_session_without_a_model_is_not_created() {
    let scene = scene(&["One.", "Two."]);
    let listed = || at_home(&scene, &["sessions"]).stdout;
    let ended = at_home(&scene, &["ask", "--session", "empty", "Go."]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("no model is set"), "{ended:?}");
    let unknown = ["ask", "--session", "empty", "--model", "replay:none", "Go."];
    assert_ne!(at_home(&scene, &unknown).status, Some(0));
    assert_eq!(listed(), "");
    let ended = at_home(&scene, &["ask", "-s", "a", "--model", MODEL, "Go."]);
    assert_eq!(ended.stdout, "One.\n", "{ended:?}");
    // Without a model, the session's own is used.
    let ended = at_home(&scene, &["ask", "--session", "empty", "Go."]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    for option in [&["--continue"][..], &["--session", "a"]] {
        let ended = at_home(&scene, &[&["ask", "Continue."], option].concat());
        assert_eq!(ended.status, Some(0), "{option:?}: {ended:?}");
    }
    assert!(!listed().contains("empty"), "{}", listed());
}
