//! Questions and conversations on a terminal.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::time::Duration;

use super::{MODEL, scene, two_notes};
use crate::run::pseudo_terminal::{Options, Terminal};
use crate::run::scene::{Scene, call, pause, wait_until};

const TOOLS: [&str; 4] = ["--model", MODEL, "--tools", "tools.toml"];

#[test]
fn an_answer_is_seen_while_it_comes() {
    let mut ten = "I ask ten times.\n".to_owned();
    for number in 0..10 {
        let name = format!("the rather long name of note number {number}");
        ten.push_str(&call("read", &[("name", &name)]));
    }
    let write = call("write", &[("name", "new"), ("text", "one\ntwo")]);
    let count = call("count", &[]);
    for columns in [40, 200] {
        let scene = scene(&[
            &ten,
            &format!("Then.\n{count}{write}"),
            "It is \u{1b}[31mdone.\n",
        ]);
        let terminal = Terminal::start(
            &scene,
            Options {
                columns,
                command: "ask",
                arguments: &[&["What?"], &TOOLS[..]].concat(),
                ..Options::default()
            },
        );
        terminal.wait_for("Allow this call?");
        terminal.answer('y');
        let (status, shown) = terminal.finish();
        assert_eq!(status, Some(0), "{shown}");
        assert_eq!(shown.matches("✓ read  name=").count(), 10, "{shown}");
        assert_eq!(shown.matches("  ok ").count(), 12, "{shown}");
        assert!(shown.contains("gadget_12 allowed"), "{shown}");
        // The space for the arguments depends on the duration of the call.
        let text = if columns == 40 { "one" } else { "one two  ok" };
        let written = format!("✓ write  name=new, text={text}");
        assert!(shown.contains(&written), "{shown}");
        assert!(!shown.contains("\n\n"), "{shown}");
        assert!(
            shown.contains("It is ␛[31mdone.\n3 turns · 12 calls"),
            "{shown}"
        );
        // The display shows only that the result arrived.
        assert!(!shown.contains("200"), "{shown}");
    }
}

/// Without colors, each call has a line when it starts, and one when it ends.
#[test]
fn calls_are_seen_without_colors() {
    for (variable, options) in [
        (&[("NO_COLOR", "1")][..], &[][..]),
        (&[("TERM", "dumb")], &[]),
        (&[], &["--color", "never"]),
    ] {
        for columns in [40, 80] {
            let scene = scene(&[&call("count", &[]), "Done."]);
            let terminal = Terminal::start(
                &scene,
                Options {
                    columns,
                    command: "ask",
                    arguments: &[&["What?"], &TOOLS[..], options].concat(),
                    environment: variable,
                    ..Options::default()
                },
            );
            let (status, shown) = terminal.finish();
            assert_eq!(status, Some(0), "{shown}");
            let started = shown.find("count  started");
            let ended = shown.find("count  ok");
            assert!(
                started.is_some() && started < ended,
                "{variable:?} {columns}\n{shown}"
            );
        }
    }
}

#[test]
fn an_error_wraps_below_its_call() {
    let scene = scene(&[&call("read", &[("nme", "one")]), "Done."]);
    let terminal = Terminal::start(
        &scene,
        Options {
            columns: 60,
            command: "ask",
            arguments: &[&["What?"], &TOOLS[..]].concat(),
            ..Options::default()
        },
    );
    let (status, shown) = terminal.finish();
    assert_eq!(status, Some(0), "{shown}");
    let rows = "  invalid arguments: unknown parameter `nme`; did you mean\n  `name`? read takes `name`; missing required parameter\n  `name`\n";
    assert!(shown.contains(rows), "{shown}");
}

#[test]
fn without_colours_there_are_lines() {
    let scene = scene(&[&two_notes(), "Done."]);
    let terminal = Terminal::start(
        &scene,
        Options {
            command: "ask",
            arguments: &[&["What?"], &TOOLS[..]].concat(),
            environment: &[("NO_COLOR", "1")],
            ..Options::default()
        },
    );
    let (status, shown) = terminal.finish();
    assert_eq!(status, Some(0), "{shown}");
    assert!(shown.contains("I look into the notes.\n"), "{shown}");
    assert!(shown.contains("Done.\n2 turns"), "{shown}");
    assert!(!shown.contains("waiting for the model"), "{shown}");
}

#[test]
fn waiting_for_the_model_is_shown_once() {
    // A server that never answers.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    let scene = scene(&[]);
    let options = Options {
        command: "ask",
        arguments: &["What?", "--url", &url, "--model", "slow"],
        environment: &[("TERM", "dumb")],
        ..Options::default()
    };
    let terminal = Terminal::start(&scene, options);
    terminal.wait_for("waiting for the model");
    pause(Duration::from_millis(1200));
    terminal.type_keys("\u{3}");
    let (status, shown) = terminal.finish();
    assert_eq!(status, Some(130), "{shown}");
    let count = shown.matches("waiting for the model").count();
    assert_eq!(count, 1, "{shown}");
}

#[test]
fn without_colours_a_question_is_put_once() {
    let write = call("write", &[("name", "new"), ("text", "one")]);
    let scene = scene(&[&format!("I write.{write}"), "Done."]);
    let terminal = Terminal::start(
        &scene,
        Options {
            command: "ask",
            arguments: &[&["What?"], &TOOLS[..]].concat(),
            environment: &[("NO_COLOR", "1")],
            ..Options::default()
        },
    );
    terminal.wait_for("Allow this call?");
    terminal.answer('y');
    let raw = terminal.raw();
    let (status, shown) = terminal.finish();
    assert_eq!(status, Some(0), "{shown}");
    assert!(!raw.contains('\u{1b}'), "{raw:?}");
    assert!(shown.contains("I write.\n? "), "{shown}");
    assert!(!shown.contains("asks whether"), "{shown}");
    assert_eq!(shown.matches("gadget_1 allowed\n").count(), 1, "{shown}");
}

#[test]
fn a_long_text_leaves_what_is_asked_in_sight() {
    let text: String = (0..100).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "row {number}");
        text
    });
    let write = call("write_file", &[("path", "new.txt"), ("content", &text)]);
    let scene = scene(&[&write, "Done."]);
    let terminal = Terminal::start(
        &scene,
        Options {
            command: "ask",
            arguments: &["What?", "--model", MODEL, "--builtin", "."],
            ..Options::default()
        },
    );
    terminal.wait_for("Allow this call?");
    let screen = terminal.screen();
    for part in [
        "wants to run write_file",
        "path = new.txt",
        "row 5\n",
        "92 more lines of the content",
        "row 98\n",
        "row 99\n",
        "[m]ore: page 1 of 8 / [n]o",
    ] {
        assert!(screen.contains(part), "{part:?} is not on\n{screen}");
    }
    let screens = terminal.page_through();
    for number in 0..100 {
        let row = format!("row {number}\n");
        assert!(
            screens[1..].iter().any(|screen| screen.contains(&row)),
            "{row}"
        );
    }
    terminal.answer('y');
    assert_eq!(terminal.finish().0, Some(0));
}

/// A conversation on a terminal, with its prompt.
fn chat(scene: &Scene, options: &[&str]) -> Terminal {
    let home = scene.path("home").display().to_string();
    let terminal = Terminal::start(
        scene,
        Options {
            command: "chat",
            arguments: &[&TOOLS, options].concat(),
            environment: &[("HOME", &home)],
            ..Options::default()
        },
    );
    terminal.wait_for("/help for help");
    terminal.wait_for_prompt();
    terminal
}

#[test]
fn nothing_of_a_stopped_answer_is_left_below() {
    let scene = scene(&[&call("wait", &[])]);
    let terminal = chat(&scene, &[]);
    terminal.type_keys("Wait!\r");
    terminal.wait_for("1 running");
    terminal.type_keys("\u{3}");
    terminal.wait_for("note: stopped\n>");
    terminal.type_keys("/tools\r");
    terminal.wait_for("count (read)");
    terminal.wait_for("read_result (read)");
    terminal.type_keys("/help\r");
    terminal.wait_for("Ctrl-C stops an answer.\n>");
    // Ctrl-C first clears the line; the next one counts as the first of two.
    terminal.type_keys("half a question");
    terminal.wait_for("> half a question");
    terminal.type_keys("\u{3}");
    terminal.wait_for("> half a question\n>");
    assert!(!terminal.screen().contains("again or Ctrl-D"));
    terminal.type_keys("\u{3}");
    terminal.wait_for("again or Ctrl-D to exit\n>");
    terminal.type_keys("\u{3}");
    let (status, shown) = terminal.finish();
    assert_eq!(status, Some(0), "{shown}");
    assert!(!shown.contains("stopping;"), "{shown}");
    assert!(
        shown.contains("> /tools\nread (read)  Reads a note.\nwrite (write)"),
        "{shown}"
    );
    assert!(shown.contains("> /help\n/help "), "{shown}");
}

#[test]
fn lines_that_come_at_once_are_all_asked() {
    let scene = scene(&["First.", "Second.", "Third."]);
    let terminal = chat(&scene, &[]);
    terminal.type_keys("one\rtwo\rthree\r");
    terminal.wait_for("Third.");
    terminal.wait_for("> three");
    terminal.type_keys("/exit\r");
    let (status, shown) = terminal.finish();
    assert_eq!(status, Some(0), "{shown}");
    assert!(scene.is_clean());
}

#[test]
fn a_tool_that_does_not_end_delays_nothing() {
    let scene = scene(&[&call("stay", &[])]);
    let terminal = chat(&scene, &[]);
    terminal.type_keys("Stay!\r");
    terminal.wait_for("1 running");
    // Only then does it ignore signals.
    wait_until("the tool stays", || scene.path("waiting").exists());
    terminal.type_keys("\u{3}");
    terminal.wait_for("Ctrl-C again to exit immediately");
    // Two signals in quick succession count as one.
    pause(Duration::from_millis(150));
    terminal.type_keys("\u{3}");
    terminal.wait_for("note: stopped;");
    terminal.wait_for_prompt();
    terminal.type_keys("/exit\r");
    terminal.wait_for("waiting for stopped tools to exit");
    terminal.type_keys("\u{3}");
    let (status, shown) = terminal.finish();
    assert_eq!(status, Some(0), "{shown}");
    assert!(scene.is_clean());
}

#[test]
fn a_conversation_is_typed() {
    let mut replies: Vec<String> = vec![call("wait", &[]), "Two.".to_owned()];
    replies.push("Three.".to_owned());
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let scene = scene(&replies);
    let home = scene.path("home").display().to_string();
    let terminal = Terminal::start(
        &scene,
        Options {
            command: "chat",
            arguments: &TOOLS,
            environment: &[("HOME", &home)],
            ..Options::default()
        },
    );
    terminal.wait_for("/help for help");
    terminal.wait_for("> ");
    terminal.type_keys("Wait!\r");
    terminal.wait_for("1 running");
    // It stops the answer, and not the program.
    terminal.type_keys("\u{3}");
    terminal.wait_for("note: stopped");
    terminal.type_keys("And now?\r");
    terminal.wait_for("Two.");
    terminal.wait_for("1 turn · 0 calls");
    terminal.wait_for_prompt();
    terminal.type_keys("/nonsense\r");
    // Ctrl-D is the end only where lines are edited, so the prompt must be there.
    terminal.wait_for("see `/help`\n>");
    terminal.type_keys("\u{4}");
    let (status, shown) = terminal.finish();
    assert_eq!(status, Some(0), "{shown}");
    let mut expected = String::new();
    let _ = write!(expected, "wait  cancelled");
    assert!(shown.contains(&expected), "{shown}");
    let history = std::fs::read_to_string(scene.path("home/.local/state/plaincall/history"));
    assert!(history.unwrap().contains("And now?"));
    assert!(scene.is_clean());
}

/// A terminal with another encoding sends bytes that are not UTF-8: each costs a character, and not the conversation.
#[test]
fn bytes_that_are_not_utf_8_are_typed() {
    let scene = scene(&["One.", "Two."]);
    let terminal = chat(&scene, &[]);
    terminal.type_keys("caf");
    terminal.wait_for("caf");
    terminal.type_bytes(b"\xff");
    // The line is drawn again, on a new row.
    terminal.wait_for("> caf\n> caf");
    terminal.type_keys(" ole");
    terminal.wait_for("ole");
    terminal.type_keys("\r");
    terminal.wait_for("One.");
    // A byte that looks like the beginning of a character.
    terminal.wait_for("1 turn");
    terminal.wait_for_prompt();
    terminal.type_keys("more");
    terminal.wait_for("more");
    terminal.type_bytes(b"\xe9x");
    terminal.wait_for("> more\n> more");
    terminal.type_keys("\r");
    terminal.wait_for("Two.");
    terminal.wait_for_prompt();
    terminal.type_keys("\u{4}");
    let (status, shown) = terminal.finish();
    assert_eq!(status, Some(0), "{shown}");
    let history = std::fs::read_to_string(scene.path("home/.local/state/plaincall/history"));
    let history = history.unwrap();
    for line in ["caf\u{fffd} ole", "more\u{fffd}"] {
        assert!(history.contains(line), "{history}");
    }
}
