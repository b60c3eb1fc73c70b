//! The command on a terminal, as a person sees it.

use std::fs::File;
use std::time::Duration;

use crate::run::pseudo_terminal::{Options, Terminal};
use crate::run::scene::{Scene, call, pause, wait_until};

fn ask_reply() -> String {
    [
        "Text before.\n",
        &call(
            "deploy:one",
            &[("host", "first host"), ("notes", "it's\nnew")],
        ),
        &call("deploy:two", &[("host", "second")]),
        "Text behind.\n",
    ]
    .concat()
}

#[test]
fn tools_are_seen_working_while_the_reply_is_written() {
    let reply = [
        "First some text, which is longer than one row of a terminal with eighty columns, so it is broken.\n",
        &call("nap:slow", &[("seconds", "1")]),
        &call("say:next:slow", &[("text", "hello")]),
        &"Then more text, while the tool is working.\n".repeat(6),
    ]
    .concat();
    let scene = Scene::new(reply);
    let terminal = Terminal::start(
        &scene,
        Options {
            arguments: &["reply.txt", "--tools", "tools.toml", "--pace", "500"],
            ..Options::default()
        },
    );
    terminal.wait_for("running 0.");
    let screen = terminal.screen();
    assert!(screen.contains("receiving the reply"), "{screen}");
    assert!(
        screen.contains("eighty\ncolumns, so it is broken."),
        "broken between words:\n{screen}"
    );
    assert!(screen.contains("slow  nap  seconds=1  running"), "{screen}");
    assert!(
        !screen.contains("GADGET"),
        "calls are not shown as they are written:\n{screen}"
    );
    terminal.wait_for("○ next  say  text=hello  waiting for slow");
    let (status, all) = terminal.finish();
    assert_eq!(status, Some(0), "{all}");
    for part in [
        "Results",
        "✓ slow  nap",
        "✓ next  say  ok",
        " hello",
        "Timeline",
        "█",
        "2 calls: 2 ok",
    ] {
        assert!(all.contains(part), "{part:?} is not in\n{all}");
    }
    // The live display is gone.
    assert!(!all.contains("running 0."), "{all}");
    assert!(!all.contains("receiving the reply"), "{all}");
    assert_eq!(all.matches("Then more text").count(), 6, "{all}");
}

#[test]
fn questions() {
    for (keys, status, expected) in [
        ("yn", 1, "2 calls: 1 ok, 1 rejected"),
        ("yy", 0, "2 calls: 2 ok"),
        ("nn", 1, "2 calls: 2 rejected"),
        ("a", 0, "2 calls: 2 ok"),
        ("ya", 0, "2 calls: 2 ok"),
        ("q", 1, "2 calls: 2 cancelled"),
    ] {
        let scene = Scene::new(ask_reply());
        let terminal = Terminal::start(&scene, Options::default());
        for (key, id) in keys.replace('\r', "").chars().zip(["one", "two"]) {
            terminal.wait_for(&format!("? {id} wants to run deploy"));
            terminal.wait_for("Allow this call?  [y]es / [n]o / [a]ll of this tool / [q]uit");
            terminal.answer(key);
        }
        let (status_seen, all) = terminal.finish();
        assert!(all.contains(expected), "{keys}: {all}");
        assert_eq!(status_seen, Some(status), "{keys}: {all}");
    }
}

#[test]
fn a_question_shows_everything() {
    let scene = Scene::new(ask_reply());
    let terminal = Terminal::start(&scene, Options::default());
    terminal.wait_for("[q]uit");
    let screen = terminal.screen();
    for part in [
        "one wants to run deploy, which may change something",
        "Copies the site to a host.",
        "host = first host",
        "notes:\n      it's\n      new",
        "$ printf '%s",
        "'deployed to first host'",
    ] {
        assert!(screen.contains(part), "{part:?} is not in\n{screen}");
    }
    terminal.answer('n');
    terminal.wait_for("one denied");
    terminal.wait_for("two wants to run");
    terminal.answer('n');
    assert_eq!(terminal.finish().0, Some(1));
}

#[test]
fn only_a_single_key_answers_and_only_after_the_question() {
    let nap =
        call("nap:first", &[("seconds", "0.4")]) + &call("deploy:one:first", &[("host", "h")]);
    let scene = Scene::new(nap);
    let terminal = Terminal::start(&scene, Options::default());
    terminal.wait_for("running");
    terminal.type_keys("yyyy\n");
    terminal.wait_for("[q]uit");
    // An arrow key ends in a letter, and pasted text contains many.
    terminal.type_keys("\u{1b}[A");
    pause(Duration::from_millis(250));
    terminal.type_keys("yay");
    pause(Duration::from_millis(250));
    terminal.type_keys("x");
    pause(Duration::from_millis(250));
    assert!(
        terminal.screen().contains("[q]uit"),
        "{}",
        terminal.screen()
    );
    assert!(
        !terminal.is_in_order(),
        "keys are not shown while a question is open"
    );
    terminal.answer('n');
    wait_until("the terminal is as it was", || terminal.is_in_order());
    let (status, all) = terminal.finish();
    assert_eq!(status, Some(1), "{all}");
    assert!(all.contains("1 ok, 1 rejected"), "{all}");
}

#[test]
fn other_calls_continue_while_a_question_is_open() {
    let save = [("file", "made"), ("text", "x")];
    let reply = [
        call("deploy:one", &[("host", "h")]),
        call("nap:other", &[("seconds", "0.5")]),
        call("save:third:other", &save),
        "Some text.\n".repeat(200),
    ]
    .concat();
    let scene = Scene::new(reply);
    let options = Options {
        arguments: &[
            "reply.txt",
            "--tools",
            "tools.toml",
            "--run-directory",
            "kept",
        ],
        ..Options::default()
    };
    let terminal = Terminal::start(&scene, options);
    terminal.wait_for("[q]uit");
    wait_until("the others have run", || scene.path("kept/made").exists());
    // Nothing is drawn that could scroll the question away.
    pause(Duration::from_millis(200));
    assert!(terminal.screen().trim_end().ends_with("[q]uit"));
    terminal.type_keys("y");
    let (status, all) = terminal.finish();
    assert_eq!(status, Some(0), "{all}");
    assert!(all.contains("one allowed"), "{all}");
    assert!(all.contains("✓ third  save"), "{all}");
    assert_eq!(all.matches("Some text.").count(), 200, "{all}");
}

#[test]
fn the_answer_comes_from_the_terminal_not_from_the_transcript() {
    let scene = Scene::new(call("deploy:one", &[("host", "h")]) + "y\ny\n");
    let terminal = Terminal::start(
        &scene,
        Options {
            arguments: &["-", "--tools", "tools.toml"],
            stdin: Some(File::open(scene.path("reply.txt")).unwrap()),
            ..Options::default()
        },
    );
    terminal.wait_for("[q]uit");
    pause(Duration::from_millis(300));
    assert!(terminal.screen().contains("[q]uit"), "nothing was answered");
    terminal.answer('n');
    let (status, all) = terminal.finish();
    assert_eq!(status, Some(1), "{all}");
    assert!(all.contains("the user denied this call"), "{all}");
}

#[test]
fn a_question_is_asked_on_the_terminal_when_the_output_goes_elsewhere() {
    for options in [&[][..], &["--json"]] {
        let scene = Scene::new(call("deploy:one", &[("host", "h")]));
        let options = [&["reply.txt", "--tools", "tools.toml"], options].concat();
        let output = File::create(scene.path("output")).unwrap();
        let terminal = Terminal::start(
            &scene,
            Options {
                arguments: &options,
                stdout: Some(output),
                ..Options::default()
            },
        );
        terminal.wait_for("host = h");
        terminal.wait_for("[q]uit");
        terminal.type_keys("y");
        let (status, all) = terminal.finish();
        assert_eq!(status, Some(0), "{all}");
        assert!(all.contains("one allowed"), "{all}");
        let output = std::fs::read_to_string(scene.path("output")).unwrap();
        assert!(output.contains("deployed to h"), "{output}");
        assert!(
            !output.contains("[q]uit") && !output.contains('\u{1b}'),
            "{output}"
        );
    }
}

#[test]
fn ctrl_c() {
    let reply = call("nap:n", &[("seconds", "100")]) + &call("deploy:d", &[("host", "h")]);
    let scene = Scene::new(reply);
    let terminal = Terminal::start(&scene, Options::default());
    terminal.wait_for("[q]uit");
    terminal.type_keys("\u{3}");
    terminal.wait_for("Results");
    terminal.wait_for("2 calls: 2 cancelled");
    wait_until("the terminal is as it was", || terminal.is_in_order());
    let (status, all) = terminal.finish();
    assert_eq!(status, Some(130), "{all}");
    assert!(scene.is_clean());
}

#[test]
fn every_size() {
    let reply = [
        "Text with 日本語 and 🛠️ in it, and a word_that_is_longer_than_some_terminals_are_wide.\n",
        &call(
            "nap:a_call_with_a_very_long_identifier_indeed",
            &[("seconds", "0.4")],
        ),
        &(0..30)
            .map(|n| call(&format!("say:c{n}"), &[("text", "x")]))
            .collect::<String>(),
        "The end.\n",
    ]
    .concat();
    for (rows, columns) in [
        (1, 1),
        (2, 10),
        (5, 20),
        (15, 50),
        (24, 80),
        (40, 120),
        (50, 160),
        (60, 300),
    ] {
        let scene = Scene::new(&reply);
        let terminal = Terminal::start(
            &scene,
            Options {
                rows,
                columns,
                ..Options::default()
            },
        );
        let (status, all) = terminal.finish();
        assert_eq!(status, Some(0), "{rows}x{columns}:\n{all}");
        if columns >= 50 {
            assert!(all.contains("31 calls: 31 ok"), "{rows}x{columns}:\n{all}");
            assert!(all.contains("The end."), "{rows}x{columns}:\n{all}");
        }
        for row in all.lines() {
            assert!(row.chars().count() <= usize::from(columns), "{row:?}");
        }
    }
}

#[test]
fn more_calls_than_rows() {
    let calls: String = (0..20)
        .map(|n| call(&format!("say:c{n}:slow"), &[("text", "x")]))
        .collect();
    let reply = calls + &call("nap:slow", &[("seconds", "2")]) + "The end.\n";
    let scene = Scene::new(reply);
    let terminal = Terminal::start(
        &scene,
        Options {
            rows: 12,
            ..Options::default()
        },
    );
    terminal.wait_for("1 running · 20 waiting");
    let screen = terminal.screen();
    assert!(
        screen.contains("slow  nap  seconds=2  running"),
        "what is at work is shown:\n{screen}"
    );
    assert!(
        screen.contains("The end."),
        "the text stays in sight:\n{screen}"
    );
    let shown = screen.matches("waiting for slow").count();
    assert!(shown > 3, "{screen}");
    let hidden = format!("… {} more calls not shown", 20 - shown);
    assert!(screen.contains(&hidden), "{hidden:?} is not in\n{screen}");
    assert_eq!(terminal.finish().0, Some(0));
}

#[test]
fn a_terminal_that_is_resized() {
    let reply = call("nap:slow", &[("seconds", "4.5")])
        + &"Some more text that does not end. ".repeat(20)
        + "\nThe end.\n";
    let scene = Scene::new(reply);
    let terminal = Terminal::start(
        &scene,
        Options {
            arguments: &["reply.txt", "--tools", "tools.toml", "--pace", "700"],
            ..Options::default()
        },
    );
    terminal.wait_for("running");
    for (rows, columns) in [(10, 30), (40, 120), (24, 60)] {
        terminal.resize(rows, columns);
        pause(Duration::from_millis(200));
        let screen = terminal.screen();
        let is_call = |line: &&str| line.contains("slow  ") && line.contains("running");
        assert_eq!(
            screen.lines().filter(is_call).count(),
            1,
            "{rows}x{columns}:\n{screen}"
        );
    }
    let (status, all) = terminal.finish();
    assert_eq!(status, Some(0), "{all}");
    assert!(all.contains("The end."), "{all}");
}

#[test]
fn colours_and_signs() {
    let reply = call("say:a", &[("text", "x")]);
    let check = |environment: &[(&str, &str)], has_color: bool, sign: &str| {
        let scene = Scene::new(&reply);
        let terminal = Terminal::start(
            &scene,
            Options {
                environment,
                ..Options::default()
            },
        );
        terminal.wait_for("1 call: 1 ok");
        let raw = terminal.raw();
        assert_eq!(
            raw.contains("\u{1b}[32m"),
            has_color,
            "{environment:?}: {raw:?}"
        );
        let (status, all) = terminal.finish();
        assert_eq!(status, Some(0));
        assert!(
            all.contains(&format!("{sign} a  say  ok")),
            "{environment:?}: {all}"
        );
    };
    check(&[], true, "✓");
    check(&[("NO_COLOR", "1")], false, "✓");
    check(&[("LC_ALL", "C")], true, "+");
    check(&[("TERM", "dumb")], false, "+");
}

#[test]
fn text_cannot_move_the_cursor() {
    let reply =
        "A\u{1b}[2J\u{1b}[1;1HB\u{7}\u{202e}C\n".to_owned() + &call("binary:\u{1b}]0;x", &[]);
    let scene = Scene::new(reply);
    let terminal = Terminal::start(&scene, Options::default());
    let (_, all) = terminal.finish();
    assert!(all.contains("A␛[2J␛[1;1HB␇\\u{202e}C"), "{all}");
    assert!(all.contains("␛]0;x"), "{all}");
}
