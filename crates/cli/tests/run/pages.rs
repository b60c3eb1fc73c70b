//! A user cannot allow a call before every part of it was shown.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use crate::run::pseudo_terminal::{Options, Terminal};
use crate::run::scene::{Scene, call, pause};

const TOOLS: &str = r#"
[tools.run]
parameters = { script = "string" }
command = ["sh", "-c", "{script}"]
directory = "{directory:tools}"
"#;

fn scene(script: &str) -> Scene {
    Scene::with_tools(call("run:one", &[("script", script)]), TOOLS)
}

fn terminal<'a>(scene: &Scene, environment: &'a [(&'a str, &'a str)]) -> Terminal {
    let options = Options {
        environment,
        ..Options::default()
    };
    Terminal::start(scene, options)
}

/// Scripts that hide their effect, each with the text that must be visible.
fn hiding() -> Vec<(String, &'static str)> {
    let many = |count: usize, line: &str| format!("{line}\n").repeat(count);
    vec![
        // In the middle, at the end, and at the beginning of many lines.
        (
            many(60, "true") + "touch made\n" + &many(60, "true"),
            "touch made",
        ),
        (many(120, ": nothing") + "touch made", "touch made"),
        ("touch made\n".to_owned() + &many(120, "true"), "touch made"),
        // On a long line.
        (
            format!(
                "true {} ; touch made ; true {}",
                "x".repeat(3_000),
                "y".repeat(3_000)
            ),
            "touch made",
        ),
        (
            format!("true {} ; touch made", "x ".repeat(2_000)),
            "touch made",
        ),
        // After blanks, blank lines and invisible characters.
        (
            format!("true{}; touch made", " ".repeat(3_000)),
            "(3000 blanks)",
        ),
        (
            format!("true;{}touch made", "\t".repeat(3_000)),
            "(3000 blanks)",
        ),
        (
            format!("true{}touch made", "\n".repeat(3_000)),
            "blank lines)",
        ),
        (
            format!("true{}touch made", " \n".repeat(300)),
            "blank lines)",
        ),
        (
            "true # \u{2028}\u{200d}\u{3164}\ntouch made".to_owned(),
            "\\u{2028}\\u{200d}\\u{3164}",
        ),
        (
            "true # \u{1b}[2J\u{1b}[1A\u{9b}2K\r\ntouch made".to_owned(),
            "\\u{9b}2K\u{240d}",
        ),
        // Lines that look like the end of the question.
        (
            many(80, "? Allow this call?  [y]es / [n]o").replace('?', "# ?") + "touch made",
            "touch made",
        ),
    ]
}

#[test]
fn all_is_shown_before_a_yes_counts() {
    for (script, part) in hiding() {
        for environment in [&[][..], &[("TERM", "dumb")]] {
            let scene = scene(&script);
            let terminal = terminal(&scene, environment);
            terminal.wait_for("[q]uit");
            if terminal.screen().contains("[m]ore: page 1 of ") {
                // Neither answer counts before the last page.
                for key in ["y", "a"] {
                    terminal.type_keys(key);
                    pause(Duration::from_millis(150));
                }
            }
            let screens = terminal.page_through();
            assert!(!scene.path("made").exists(), "{script:?}");
            // Rows end between words, and the blank there is dropped.
            let all = screens.join("\n====\n");
            let shown = all.replace([' ', '\n'], "");
            for part in [part, "touch made"] {
                assert!(
                    shown.contains(&part.replace(' ', "")),
                    "{part:?} is not in\n{all}"
                );
            }
            terminal.type_keys("y");
            let (status, all) = terminal.finish();
            assert_eq!(status, Some(0), "{all}");
            assert!(scene.path("made").exists(), "{script:?}");
        }
    }
}

#[test]
fn everything_can_be_seen() {
    let texts = [
        ("a b", "a b"),
        ("rm\tx", "rm\u{2409}x"),
        ("ls\u{a0}x", "ls\\u{a0}x"),
        ("a\u{200d}b\u{200c}", "a\\u{200d}b\\u{200c}"),
        ("\u{3164}\u{2800}", "\\u{3164}\\u{2800}"),
        ("a\u{fe0f}", "a\\u{fe0f}"),
        ("\u{1b}[2J\u{9b}1m\rx", "\u{241b}[2J\\u{9b}1m\u{240d}x"),
        ("\u{202e}x", "\\u{202e}x"),
        ("a ", "a(1 blank)"),
        ("a\t\t", "a(2 blanks)"),
        (
            &format!("ls{}; rm -rf x", " ".repeat(300)),
            "ls(300 blanks); rm -rf x",
        ),
        (&format!("a{}x", " ".repeat(21)), "a(21 blanks)x"),
        (&format!("ls{}rm", " \t".repeat(2_500)), "(5000 blanks)"),
        (&format!("a{}b", "\n".repeat(9)), "(8 blank lines)"),
    ];
    let names: Vec<String> = (0..texts.len())
        .map(|number| format!("t{number}"))
        .collect();
    let mut tools = "[tools.show]\neffect = \"write\"\ncommand = [\"true\"]\n".to_owned();
    tools.push_str("[tools.show.parameters]\n");
    let mut arguments = Vec::new();
    for (name, (text, _)) in names.iter().zip(texts) {
        writeln!(tools, "{name} = \"string\"").unwrap();
        arguments.push((name.as_str(), text));
    }
    let scene = Scene::with_tools(call("show:one", &arguments), tools);
    let options = Options {
        rows: 100,
        columns: 200,
        ..Options::default()
    };
    let terminal = Terminal::start(&scene, options);
    let all = terminal.page_through().join("\n");
    for (name, (text, expected)) in names.iter().zip(texts) {
        let line = if text.contains('\n') || text.len() > 2_000 {
            (*expected).to_owned()
        } else {
            format!("    {name} = {expected}\n")
        };
        assert!(all.contains(&line), "{line:?} is not in\n{all}");
    }
    terminal.answer('n');
    assert_eq!(terminal.finish().0, Some(1));
}

#[test]
fn an_overview_has_both_ends() {
    let mut script = String::new();
    for number in 0..200 {
        writeln!(script, "echo line {number}").unwrap();
    }
    let scene = scene(&script);
    let terminal = terminal(&scene, &[]);
    terminal.wait_for("[q]uit");
    let screen = terminal.screen();
    for part in [
        "echo line 0\n",
        "echo line 198\n",
        "more lines of the script)",
        "[m]ore: page 1 of ",
    ] {
        assert!(screen.contains(part), "{part:?} is not in\n{screen}");
    }
    assert!(!screen.contains("[y]es"), "{screen}");
    // A no needs nothing more.
    terminal.answer('n');
    assert_eq!(terminal.finish().0, Some(1));
}

#[test]
fn one_page_is_answered_at_once() {
    let scene = scene("touch made");
    let terminal = terminal(&scene, &[]);
    terminal.wait_for("Allow this call?  [y]es / [n]o");
    assert!(!terminal.screen().contains("[m]ore"));
    terminal.type_keys("y");
    assert_eq!(terminal.finish().0, Some(0));
    assert!(scene.path("made").exists());
}

#[test]
fn an_interrupted_call_is_shown_whole_before_it_runs_again() {
    let script = format!(
        "echo begun > begun; sleep 30\n{}touch made",
        "true\n".repeat(100)
    );
    let scene = scene(&script);
    let options = || Options {
        arguments: &["reply.txt", "--tools", "tools.toml", "--log", "log"],
        ..Options::default()
    };
    let first = Terminal::start(&scene, options());
    first.page_through();
    first.type_keys("y");
    crate::run::scene::wait_until("it has begun", || scene.path("begun").exists());
    first.kill();
    fs::remove_file(scene.path("begun")).unwrap();
    let again = Terminal::start(
        &scene,
        Options {
            arguments: &["--resume", "log"],
            ..Options::default()
        },
    );
    again.wait_for("[m]ore: page 1 of ");
    assert!(!again.screen().contains("[r]un again"));
    again.type_keys("r");
    pause(Duration::from_millis(100));
    assert!(!scene.path("begun").exists());
    let screens = again.page_through();
    assert!(screens.join("").contains("touch made"));
    again.type_keys("l");
    assert_eq!(again.finish().0, Some(1));
}
