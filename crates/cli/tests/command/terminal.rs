//! Commands on a terminal.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use snapbox::{assert_data_eq, file};

use crate::command::process::plaincall;

const TEXT: &str = "\
Let me see.
!!!GADGET_START:WriteFile:w:a
!!!ARG:path
a.txt
!!!ARG:content here
one
!!!GADGET_END
Done, with a stray !!!GADGET_END in the text.
";

/// Returns the output of a command on a terminal, and its exit status. Its input is a file.
fn shown(command: &mut Command, text: &str) -> (String, Option<i32>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("reply.txt");
    std::fs::write(&path, text).unwrap();

    let leader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&leader).unwrap();
    unlockpt(&leader).unwrap();
    let name = ptsname(&leader, Vec::new()).unwrap();
    let terminal = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let mut child = command
        .current_dir(directory.path())
        .env("TERM", "xterm-256color")
        .arg("reply.txt")
        .stdin(Stdio::null())
        .stdout(terminal.try_clone().unwrap())
        .stderr(terminal)
        .spawn()
        .unwrap();
    // The command holds the terminal too, so reading ends when the process ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut bytes = Vec::new();
    let mut leader = File::from(leader);
    let mut buffer = [0; 4096];
    // Reading from a terminal without writers is an error.
    while let Ok(count) = leader.read(&mut buffer) {
        if count == 0 {
            break;
        }
        bytes.extend(&buffer[..count]);
    }
    let status = child.wait().unwrap().code();
    let text = String::from_utf8(bytes).unwrap();
    (text.replace("\r\n", "\n"), status)
}

#[test]
fn parse_shows_the_text_in_colour() {
    let (text, status) = shown(plaincall().arg("parse"), TEXT);
    assert_eq!(status, Some(0));
    assert_data_eq!(text, file!["terminal/parse.term"].raw());
}

#[test]
fn check_shows_colours() {
    let (text, status) = shown(plaincall().arg("check"), TEXT);
    assert_eq!(status, Some(1));
    assert_data_eq!(text, file!["terminal/check.term"].raw());
}

#[test]
fn explanations_show_colours() {
    let (text, status) = shown(plaincall().args(["check", "--explain"]), TEXT);
    assert_eq!(status, Some(1));
    assert_data_eq!(text, file!["terminal/check-explain.term"].raw());
}

#[test]
fn extract_shows_its_progress_in_one_row() {
    let lines = "\"word\"\n".repeat(500_000);
    let arguments = ["extract", "--to", "out.jsonl"];
    let (text, status) = shown(plaincall().args(arguments), &lines);
    assert_eq!(status, Some(0), "{text}");
    let (progress, rest) = text.rsplit_once("\r\u{1b}[K").unwrap();
    assert!(progress.contains(" lines, 0 calls, "), "{progress}");
    assert!(!progress.contains('\n'), "{progress}");
    assert!(rest.contains("500000 lines, 0 invalid; 0 calls"), "{rest}");
    let (quiet, _) = shown(plaincall().args(arguments).arg("--quiet"), &lines);
    assert_eq!(quiet, "");
}

#[test]
fn colours_can_be_turned_off() {
    let mut no_color = plaincall();
    no_color.env("NO_COLOR", "1");
    let mut never = plaincall();
    never.args(["--color", "never"]);
    let mut dumb = plaincall();
    dumb.args(["--color", "auto"]).env("CLICOLOR", "0");
    for mut command in [no_color, never, dumb] {
        for name in ["parse", "check"] {
            let mut command = again(&mut command, name);
            let (text, _) = shown(&mut command, TEXT);
            assert!(!text.contains('\u{1b}'), "{text}");
            assert!(text.contains("value_on_pointer_line"), "{text}");
        }
    }
}

/// A command with the arguments and the environment of another, and one more argument.
fn again(command: &mut Command, argument: &str) -> Command {
    let mut other = plaincall();
    other.args(command.get_args()).arg(argument);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other
}

#[test]
fn colours_can_be_forced() {
    let mut command = plaincall();
    command
        .args(["parse", "--color", "always"])
        .env("NO_COLOR", "1");
    let (text, _) = shown(&mut command, TEXT);
    assert!(text.contains('\u{1b}'), "{text}");
}

#[test]
fn json_on_a_terminal() {
    let arguments = ["parse", "--format", "json"];
    let (text, status) = shown(plaincall().args(arguments), TEXT);
    assert_eq!(status, Some(0));
    assert!(
        text.starts_with(r#"{"syntax":"block","segments":[{"type":"text","#),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'));
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn rendered_text_does_nothing_to_a_terminal() {
    let text =
        r#"[{"role":"a\u001b[2J","content":"b\u001b]0;c\u0007\u202ed\u009b\u007f\udb40\udc41"}]"#;
    let arguments = ["render", "--as", "messages", "--dialect", "block"];
    let (shown, status) = shown(plaincall().args(arguments), text);
    assert_eq!(status, Some(0));
    let expected =
        r#"{"role":"a\u001b[2J","content":"b\u001b]0;c\u0007\u202ed\u009b\u007f\udb40\udc41"}"#;
    assert_eq!(shown, format!("{expected}\n"));
}

#[test]
fn invisible_characters_are_made_visible() {
    for (text, expected) in [
        ("a\tb \u{e9}\u{a0}c", "a\tb \u{e9}\u{a0}c"),
        ("\u{1b}[2J\u{7f}\u{9b}", "\u{241b}[2J\u{2421}\\u{9b}"),
        ("a\u{202e}b\u{200f}", "a\\u{202e}b\\u{200f}"),
        (
            "a\u{200b}\u{feff}.txt\u{ad}",
            "a\\u{200b}\\u{feff}.txt\\u{ad}",
        ),
        ("\u{e0041}", "\\u{e0041}"),
        // A family, and a letter of Persian with a joiner between.
        (
            "\u{1f469}\u{200d}\u{1f467} \u{2764}\u{fe0f} \u{645}\u{6cc}\u{200c}",
            "\u{1f469}\u{200d}\u{1f467} \u{2764}\u{fe0f} \u{645}\u{6cc}\u{200c}",
        ),
    ] {
        let (shown, _) = shown(
            plaincall().args(["check", "--explain", "--color", "never"]),
            text,
        );
        assert!(shown.contains(&format!(" {expected}\n")), "{shown}");
    }
}

#[test]
fn wrong_usage_shows_colours() {
    let (text, status) = shown(
        plaincall().args(["parse", "--strict", "--syntax", "block"]),
        TEXT,
    );
    assert_eq!(status, Some(2));
    assert!(text.contains("\u{1b}[1m\u{1b}[31merror:"), "{text:?}");
}

#[test]
fn errors_wrap_between_words() {
    let task = "a-task-".repeat(6);
    for (arguments, expected) in [
        (
            ["probe", "some-model"],
            "error: unknown model `some-model`; use the name of a `[models.NAME]` table,\n       `ollama:ID`, ",
        ),
        (
            ["probe", &format!("--tasks={task}")],
            &format!("error: unknown task `{task}`; `--tasks\n       list` lists them\n\nUsage: "),
        ),
    ] {
        let (text, status) = shown(plaincall().args(arguments).env("NO_COLOR", "1"), TEXT);
        assert_eq!(status, Some(2));
        assert!(text.starts_with(expected), "{text}");
    }
}
