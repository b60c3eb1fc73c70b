//! Calls that may be incomplete do not run, even if they were allowed beforehand (`spec/common.md` 10).

use std::fs;
use std::path::Path;

use crate::command::process::run_command;
use crate::run::pseudo_terminal::{Options, Terminal};
use crate::run::scene::{Ended, Scene};

const TOOLS: &str = r#"
[tools.save]
description = "Writes a text into a file."
effect = "write"
parameters = { file = "string", text = "string" }
positional = ["file"]
body = "text"
shell = '''printf '%s' "{text}" > "{directory:tools}/{file}"; echo written'''

[tools.look]
description = "Gives back a text."
effect = "read"
parameters = { text = "string" }
shell = '''printf '%s' "{text}"'''
"#;

/// A file that ends in the middle of a value.
const CUT: &str = "!!!GADGET_START:save\n!!!ARG:file\na.txt\n!!!ARG:text\nhalf a docu";
/// The same in the emoji syntax.
const CUT_EMOJI: &str = "🛠️[save a.txt]\nhalf a docu";
/// A misspelled end marker, then prose.
const MISSPELLED: &str = "!!!GADGET_START:save\n!!!ARG:file\na.txt\n!!!ARG:text\nhello\n!!!GADGT_END\n\nI have written the file.\n";
/// Another call after that.
const MISSPELLED_AND_CLOSED: &str = "!!!GADGET_START:save\n!!!ARG:file\na.txt\n!!!ARG:text\nhello\n!!!GADGT_END\n\nNow I look.\n!!!GADGET_END\n";
const SWALLOWED_EMOJI: &str = "🛠️[save a.txt]\nhello\n🛠️[save b.txt]\nworld\n🛠️[/end]\n";
/// A value that quotes a call.
const QUOTING: &str = "!!!GADGET_START:save\n!!!ARG:file\na.txt\n!!!ARG:text\nA call looks like this:\n!!!GADGET_START:save\n!!!ARG:file\nb.txt\n!!!ARG:text\nquoted\n!!!GADGET_END\nThat was it.\n!!!GADGET_END\n";
/// Calls without end markers, as some models write them.
const FORGOTTEN: &str = "!!!GADGET_START:save\n!!!ARG:file\na.txt\n!!!ARG:text\none\n!!!GADGET_START:save\n!!!ARG:file\nb.txt\n!!!ARG:text\ntwo\n";
/// The same with a tool that only reads.
const READ: &str =
    "!!!GADGET_START:look\n!!!ARG:text\none\n!!!GADGET_START:look\n!!!ARG:text\ntwo\n";

/// The input of a run: options, the statuses of its calls, and the files that its tools wrote.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
);

const WRITTEN: &[(&str, &str)] = &[("a.txt", "one"), ("b.txt", "two")];
const NO_FILE: &[(&str, &str)] = &[];
const REJECTED: &[&str] = &["rejected"];
const BOTH_REJECTED: &[&str] = &["rejected", "rejected"];

const ROWS: [Row; 20] = [
    (CUT, &["--yes"], REJECTED, NO_FILE),
    (
        CUT,
        &["--yes", "--complete"],
        &["ok"],
        &[("a.txt", "half a docu")],
    ),
    (
        CUT,
        &["--yes", "--unclosed", "run"],
        &["ok"],
        &[("a.txt", "half a docu")],
    ),
    (CUT_EMOJI, &["--yes"], REJECTED, NO_FILE),
    (CUT_EMOJI, &["--yes", "--complete"], REJECTED, NO_FILE),
    (
        CUT_EMOJI,
        &["--yes", "--unclosed", "run"],
        &["ok"],
        &[("a.txt", "half a docu")],
    ),
    (MISSPELLED, &["--yes"], REJECTED, NO_FILE),
    (MISSPELLED, &["--yes", "--complete"], REJECTED, NO_FILE),
    (
        MISSPELLED,
        &["--yes", "--complete", "--unclosed", "run"],
        REJECTED,
        NO_FILE,
    ),
    (MISSPELLED_AND_CLOSED, &["--yes"], REJECTED, NO_FILE),
    (
        MISSPELLED_AND_CLOSED,
        &["--yes", "--unclosed", "run"],
        REJECTED,
        NO_FILE,
    ),
    (SWALLOWED_EMOJI, &["--yes"], REJECTED, NO_FILE),
    (QUOTING, &["--yes"], BOTH_REJECTED, NO_FILE),
    (QUOTING, &["--yes", "--complete"], BOTH_REJECTED, NO_FILE),
    (FORGOTTEN, &["--yes"], BOTH_REJECTED, NO_FILE),
    (FORGOTTEN, &["--yes", "--complete"], BOTH_REJECTED, NO_FILE),
    (
        FORGOTTEN,
        &["--yes", "--unclosed", "run"],
        &["ok", "ok"],
        WRITTEN,
    ),
    (
        FORGOTTEN,
        &["--yes", "--unclosed", "reject"],
        BOTH_REJECTED,
        NO_FILE,
    ),
    (READ, &[], &["ok", "ok"], NO_FILE),
    (READ, &["--unclosed", "run"], &["ok", "ok"], NO_FILE),
];

#[track_caller]
fn check_files(scene: &Scene, expected: &[(&str, &str)]) {
    let found: Vec<(String, String)> = ["a.txt", "b.txt"]
        .iter()
        .filter_map(|name| {
            Some((
                (*name).to_owned(),
                fs::read_to_string(scene.path(name)).ok()?,
            ))
        })
        .collect();
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    assert_eq!(found, expected);
}

/// Returns the statuses of the calls in the log.
fn statuses(ended: &Ended) -> Vec<String> {
    ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|event| event["event"] == "result")
        .map(|event| event["status"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn in_a_run() {
    for (reply, options, expected, files) in ROWS {
        let scene = Scene::with_tools(reply, TOOLS);
        let ended = scene.run(&[options, &["--json"]].concat());
        assert_eq!(
            statuses(&ended),
            expected,
            "{options:?}\n{reply}\n{ended:?}"
        );
        check_files(&scene, files);
    }
}

/// A pipe does not show whether the text is complete, and no policy changes that.
#[test]
fn in_a_pipe() {
    for options in [&["--yes"][..], &["--yes", "--unclosed", "run"]] {
        for reply in [CUT, CUT_EMOJI] {
            let scene = Scene::with_tools("", TOOLS);
            let ended = scene.pipe(reply.as_bytes(), &[options, &["--json"]].concat());
            assert_eq!(statuses(&ended), REJECTED, "{ended:?}");
            check_files(&scene, NO_FILE);
        }
    }
}

/// `check` reports the error with which `run` rejects the call: in a pipe, the call may be truncated; in a file, it ends there.
#[test]
fn check_reads_a_pipe_as_run_does() {
    let scene = Scene::with_tools(CUT, TOOLS);
    let arguments = ["check", "--tools", "tools.toml"];
    let piped = run_command(&mut scene.plaincall(&arguments), CUT.as_bytes());
    let of_file = [&arguments[..], &["reply.txt"]].concat();
    let of_file = Ended::from(scene.plaincall(&of_file).output().unwrap());
    for (checked, ran, reason) in [
        (
            piped.stdout(),
            scene.pipe(CUT.as_bytes(), &["--json"]),
            "this call may be truncated: send the whole call again, up to `!!!GADGET_END`",
        ),
        (
            of_file.stdout,
            scene.run(&["--json"]),
            "the text ends in this call: send the whole call again, up to `!!!GADGET_END`",
        ),
    ] {
        assert_eq!(statuses(&ran), REJECTED, "{ran:?}");
        assert!(ran.stdout.contains(reason), "{reason}\n{ran:?}");
        assert!(checked.contains(reason), "{reason}\n{checked}");
    }
}

/// The tools file and the configuration can set it too.
#[test]
fn the_policy_in_files() {
    let tools = format!("{TOOLS}\n[run]\nunclosed = \"run\"\n");
    let scene = Scene::with_tools(FORGOTTEN, &tools);
    let ended = scene.run(&["--yes", "--json"]);
    assert_eq!(statuses(&ended), ["ok", "ok"], "{ended:?}");
    check_files(&scene, WRITTEN);
    // The log contains the policy, so the resumed run uses it.
    let begin = ended.stdout.lines().next().unwrap();
    assert!(begin.contains(r#""unclosed":"run""#), "{begin}");
}

fn ask(scene: &Scene, replies: &[&str], options: &[&str]) -> Ended {
    let lines: Vec<String> = replies
        .iter()
        .map(|reply| serde_json::to_string(reply).unwrap() + "\n")
        .collect();
    fs::write(scene.path("replies.jsonl"), lines.concat()).unwrap();
    let arguments = [
        &["ask", "Do it.", "--tools", "tools.toml", "--yes"],
        options,
    ]
    .concat();
    let mut command = scene.plaincall(&arguments);
    command.current_dir(scene.path(""));
    command.output().unwrap().into()
}

/// An agent rejects the same calls, and its model reads how to close them.
#[test]
fn in_an_agent() {
    let model = &["--model", "replay:replies.jsonl"][..];
    for (reply, files) in [
        (MISSPELLED, NO_FILE),
        (MISSPELLED_AND_CLOSED, NO_FILE),
        (SWALLOWED_EMOJI, NO_FILE),
        (QUOTING, NO_FILE),
        (FORGOTTEN, NO_FILE),
    ] {
        let scene = Scene::with_tools("", TOOLS);
        let syntax: &[&str] = if reply == SWALLOWED_EMOJI {
            &["--dialect", "emoji"]
        } else {
            &[]
        };
        let ended = ask(&scene, &[reply, "Done.\n"], &[model, syntax].concat());
        assert!(ended.stderr.contains("rejected"), "{ended:?}");
        check_files(&scene, files);
    }
    let scene = Scene::with_tools("", TOOLS);
    let configuration = "[models.small]\nreplay = \"replies.jsonl\"\nunclosed = \"run\"\n";
    fs::write(scene.path("small.toml"), configuration).unwrap();
    let path = scene.path("small.toml");
    let options = ["--model", "small", "--config", Path::to_str(&path).unwrap()];
    let ended = ask(&scene, &[FORGOTTEN, "Done.\n"], &options);
    assert!(!ended.stderr.contains("rejected"), "{ended:?}");
    check_files(&scene, WRITTEN);
}

/// The user is asked about this call, even with `--yes`, and reads the reason.
#[test]
fn at_a_terminal() {
    for (key, status, files) in [
        (
            "y",
            0,
            &[("a.txt", "hello\n!!!GADGT_END\n\nNow I look.")][..],
        ),
        ("q", 1, NO_FILE),
    ] {
        let scene = Scene::with_tools(MISSPELLED_AND_CLOSED, TOOLS);
        let terminal = Terminal::start(
            &scene,
            Options {
                arguments: &["reply.txt", "--tools", "tools.toml", "--yes"],
                columns: 200,
                rows: 40,
                ..Options::default()
            },
        );
        terminal.wait_for("wants to run save");
        terminal.wait_for("! this call may have been meant to end earlier (line 6 of the call, in `text`: `!!!GADGT_END` looks like the end marker `!!!GADGET_END`)");
        terminal.wait_for("[y]es / [n]o / [q]uit");
        terminal.type_keys(key);
        let (found, all) = terminal.finish();
        assert_eq!(found, Some(status), "{all}");
        check_files(&scene, files);
    }
}
