//! The question before a call runs, and its answers.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use crate::run::pseudo_terminal::{Options, Terminal};
use crate::run::scene::{Scene, call, pause, wait_until};

fn deploy(host: &str) -> String {
    call("deploy:one", &[("host", host)])
}

fn terminal(scene: &Scene, environment: &[(&str, &str)]) -> Terminal {
    let options = Options {
        rows: 40,
        environment,
        ..Options::default()
    };
    Terminal::start(scene, options)
}

#[track_caller]
fn assert_screen(terminal: &Terminal, parts: &[&str]) {
    let screen = terminal.screen();
    for part in parts {
        assert!(screen.contains(part), "{part:?} is not in\n{screen}");
    }
}

#[test]
fn a_no_can_have_a_reason() {
    let scene = Scene::new(deploy("h"));
    let terminal = terminal(&scene, &[]);
    terminal.wait_for("[q]uit");
    terminal.type_keys("n");
    terminal.wait_for("Reason for the model (optional):");
    terminal.type_keys("not on fridaz");
    terminal.wait_for("not on fridaz");
    terminal.type_keys("\u{7f}y");
    terminal.wait_for("not on friday");
    // Ctrl-U clears the line.
    terminal.type_keys("\u{15}grüße\r");
    let (status, all) = terminal.finish();
    assert_eq!(status, Some(1), "{all}");
    for part in ["one denied: grüße", "the user denied this call: grüße"] {
        assert!(all.contains(part), "{part:?} is not in\n{all}");
    }
    assert!(!all.contains("friday"), "{all}");
}

#[test]
fn a_reason_can_be_typed_without_a_display() {
    let scene = Scene::new(deploy("h"));
    let environment = [("TERM", "dumb")];
    let terminal = terminal(&scene, &environment);
    terminal.wait_for("[q]uit");
    terminal.type_keys("n");
    terminal.wait_for("Reason for the model (optional):");
    for key in ["n", "o", "t", "x", "\u{7f}", " ", "yet"] {
        terminal.type_keys(key);
        pause(Duration::from_millis(20));
    }
    terminal.wait_for("Reason for the model (optional):  not yet");
    terminal.type_keys("\r");
    let (status, all) = terminal.finish();
    assert_eq!(status, Some(1), "{all}");
    assert!(all.contains("one denied: not yet"), "{all}");
}

#[test]
fn an_answer_for_all_calls_of_a_tool_outlives_a_crash() {
    let reply = [
        deploy("first"),
        call("nap:pause:one", &[("seconds", "30")]),
        call("deploy:two:pause", &[("host", "second")]),
    ]
    .concat();
    let scene = Scene::new(reply);
    let options = Options {
        arguments: &["reply.txt", "--tools", "tools.toml", "--log", "log"],
        ..Options::default()
    };
    let terminal = Terminal::start(&scene, options);
    terminal.wait_for("[a]ll of this tool");
    terminal.type_keys("a");
    let log = || fs::read_to_string(scene.path("log")).unwrap();
    wait_until("the pause has begun", || {
        log().matches("\"start\"").count() == 2
    });
    assert!(log().contains("\"always\":true"), "{}", log());
    terminal.kill();
    // The pause does not begin again, and there is no question, because there is no terminal.
    let tools = fs::read_to_string(scene.path("tools.toml")).unwrap();
    let tools = tools.replace("\"sleep\", \"{seconds}\"", "\"true\"");
    fs::write(scene.path("quick.toml"), tools).unwrap();
    let options = ["--resume", "log", "--tools", "quick.toml"];
    let output = scene.command(&options).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("deployed to second"), "{text}");
}

#[test]
fn a_difference_is_shown() {
    let tools = r#"
[tools.write]
effect = "write"
parameters = { path = "string", content = "string" }
shell = 'printf "%s" "{content}" > "{path}"'
directory = "{directory:tools}"
"#;
    let content = "first\nchanged\nthird";
    let reply = call("write:w", &[("path", "file.txt"), ("content", content)]);
    let scene = Scene::with_tools(reply, tools);
    fs::write(scene.path("file.txt"), "first\nsecond\nthird").unwrap();
    let terminal = terminal(&scene, &[]);
    terminal.wait_for("[q]uit");
    let directory = format!("in {}", scene.path("").display());
    assert_screen(
        &terminal,
        &[
            directory.trim_end_matches('/'),
            "file.txt already exists; the new content:",
            "-second",
            "+changed",
        ],
    );
    terminal.type_keys("y");
    assert_eq!(terminal.finish().0, Some(0));
    assert_eq!(fs::read_to_string(scene.path("file.txt")).unwrap(), content);
}

/// The file that a question compares, by the names of the arguments and the content of the file.
#[test]
fn which_file_is_compared() {
    let mut tools = String::new();
    for (tool, path, content) in [
        ("write", "path", "content"),
        ("edit", "filePath", "new_content"),
        ("other", "path", "words"),
    ] {
        let parameters = format!("{path} = \"string\", {content} = \"string\"");
        writeln!(
            tools,
            "[tools.{tool}]\neffect = \"write\"\nparameters = {{ {parameters} }}\ncommand = [\"true\"]\ndirectory = \"{{directory:tools}}\""
        )
        .unwrap();
    }
    let cases = [
        ("write", "path", "content", "missing", None),
        (
            "write",
            "path",
            "content",
            "same",
            Some("same already exists, with the same content"),
        ),
        (
            "write",
            "path",
            "content",
            "binary",
            Some("binary already exists, and is not text"),
        ),
        ("write", "path", "content", "large", Some("1048577 bytes")),
        ("write", "path", "content", "old", Some("-old")),
        ("write", "path", "content", "folder", None),
        ("edit", "filePath", "new_content", "old", Some("+new")),
        ("other", "path", "words", "old", None),
    ];
    let calls = cases
        .iter()
        .enumerate()
        .map(|(number, (tool, path, content, file, _))| {
            call(
                &format!("{tool}:c{number}"),
                &[(path, file), (content, "new")],
            )
        });
    let scene = Scene::with_tools(calls.collect::<String>(), tools);
    fs::write(scene.path("same"), "new").unwrap();
    fs::write(scene.path("binary"), b"\xff\xfe").unwrap();
    fs::write(scene.path("large"), vec![b'a'; (1 << 20) + 1]).unwrap();
    fs::write(scene.path("old"), "old").unwrap();
    fs::create_dir(scene.path("folder")).unwrap();
    let terminal = terminal(&scene, &[]);
    for (number, (.., expected)) in cases.iter().enumerate() {
        let head = format!("? c{number} wants to run");
        terminal.wait_for(&head);
        terminal.wait_for("[q]uit");
        let screen = terminal.screen();
        let (_, question) = screen.rsplit_once(&head).unwrap();
        match expected {
            Some(part) => assert!(question.contains(part), "{part:?} is not in\n{question}"),
            None => assert!(!question.contains("already exists"), "{question}"),
        }
        terminal.answer('n');
        terminal.wait_for(&format!("c{number} denied"));
    }
    assert_eq!(terminal.finish().0, Some(1));
}

#[test]
fn the_hosts_of_urls_are_shown() {
    let text = "no address: //x, a:b, ://c https://example.org/a?b#c (ftp://a.b:21/x) <http://c> http://[::1]:80/ https://bank.example@evil.example/ https://evil.example\\@bank.example/ https://b\u{430}nk.example/ https://XN--bnk-7cd.example";
    let scene = Scene::new(deploy(text));
    let options = Options {
        rows: 40,
        columns: 200,
        ..Options::default()
    };
    let terminal = Terminal::start(&scene, options);
    terminal.wait_for("[q]uit");
    assert_screen(
        &terminal,
        &[
            "\n    URL https://example.org/a?b#c\n",
            "\n    URL ftp://a.b:21/x)\n",
            "\n    URL http://c\n",
            "\n    URL http://[::1]:80/\n",
            "\n    URL https://bank.example@evil.example/  (the part before the @ is not the host)\n",
            "\n    URL https://evil.example\\@bank.example/\n",
            "\n    URL https://b\\u{430}nk.example/  (the host contains non-ASCII characters)\n",
            "\n    URL https://XN--bnk-7cd.example  (xn-- encodes non-ASCII letters, which may look like other letters)\n",
        ],
    );
    terminal.type_keys("q");
    assert_eq!(terminal.finish().0, Some(1));
}

/// The host is the one that programs connect to. It is highlighted.
#[test]
fn the_host_of_a_url_is_prominent() {
    let text = "https://a@b@c/d@e https://a\\@b/ https://f?@b https://a:b@g:1/ https://u@[::1]:80/";
    let scene = Scene::new(deploy(text));
    let terminal = terminal(&scene, &[]);
    terminal.wait_for("[q]uit");
    let raw = terminal.raw();
    let (_, urls) = raw.split_once("URL ").unwrap();
    let bold = urls.split("\u{1b}[1m").skip(1);
    let hosts: Vec<&str> = bold
        .filter(|text| !text.starts_with('\u{1b}'))
        .filter_map(|text| Some(text.split_once("\u{1b}[0m")?.0))
        .collect();
    assert_eq!(hosts, ["c", "a", "f", "g", "[::1]"], "{urls:?}");
    terminal.type_keys("q");
    assert_eq!(terminal.finish().0, Some(1));
}

#[test]
fn rules_come_before_questions() {
    let tools = r#"
[tools.write]
effect = "write"
parameters = { to = "string" }
command = ["echo", "wrote", "{to}"]

[tools.look]
effect = "read"
parameters = { at = "string" }
command = ["echo", "looked", "{at}"]

[[rules]]
tools = ["write"]
arguments = { to = "mine" }
verdict = "allow"

[[rules]]
tools = ["write"]
arguments = { to = "yours" }
verdict = "deny"
reason = "that is not ours"

[[rules]]
tools = ["look"]
arguments = { at = "secret" }
verdict = "ask"
"#;
    let reply = [
        call("write:a", &[("to", "mine")]),
        call("write:b", &[("to", "yours")]),
        call("look:c", &[("at", "plain")]),
        call("look:d", &[("at", "secret")]),
    ]
    .concat();
    let scene = Scene::with_tools(&reply, tools);
    let terminal = terminal(&scene, &[]);
    terminal.wait_for("d wants to run look; a rule requires your approval");
    terminal.wait_for("[y]es / [n]o / [q]uit");
    terminal.type_keys("y");
    let (_, all) = terminal.finish();
    for part in [
        "wrote mine",
        "that is not ours",
        "looked plain",
        "looked secret",
        "3 ok, 1 rejected",
    ] {
        assert!(all.contains(part), "{part:?} is not in\n{all}");
    }
    // Without a terminal there is no user to ask.
    let ended = scene.run(&[]);
    let part = "a rule requires approval for this call, and no one can be asked";
    assert!(ended.stdout.contains(part), "{ended:#?}");
    assert!(scene.run(&["--yes"]).stdout.contains("3 ok, 1 rejected"));
}

#[test]
fn options_override_the_settings_of_the_file() {
    let tools = r#"
[tools.nap]
effect = "read"
shell = 'sleep 0.3'

[run]
concurrent = 1
"#;
    let reply = call("nap:a", &[]) + &call("nap:b", &[]);
    let scene = Scene::with_tools(&reply, tools);
    for (options, concurrent) in [(&[][..], 1), (&["--concurrency", "0"], 0)] {
        let ended = scene.run(&[&["--json"], options].concat());
        let record = plaincall::log::read_log(ended.stdout.as_bytes()).unwrap();
        let plaincall::RunEvent::Run(begin) = &record.events[0] else {
            panic!("{record:?}");
        };
        assert_eq!(begin.policy.concurrent, concurrent);
    }
}
