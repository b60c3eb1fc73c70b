//! Untrusted text has no effect on a terminal: file names, replies, definitions, results.

use std::fs;

use crate::run::pseudo_terminal::{Options, Terminal};
use crate::run::scene::{Scene, call};

/// Texts that a terminal would obey: a style that no command writes, a title, both kinds of control characters, a
/// change of direction.
const HOSTILE: &str =
    "\u{1b}[8;41m\u{1b}]0;owned\u{7}\u{9b}31m\u{9d}x\u{7f}\u{8}\u{b}\u{c}\u{1b}c\u{85}\u{202e}";

const TOOLS: &str = "[tools.say]\n\
    description = \"Prints HOSTILE.\"\n\
    effect = \"read\"\n\
    parameters = { text = \"string\" }\n\
    command = [\"printf\", \"%s\\n\", \"{text}\"]\n\
    [tools.fail]\n\
    description = \"HOSTILE\"\n\
    parameters = { text = \"string\" }\n\
    shell = 'printf \"%s\" \"{text}\" >&2; exit 3'\n";

/// Returns a text for TOML.
fn quoted(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    // Characters that JSON leaves unescaped and TOML rejects.
    let quoted = quoted.replace('\u{7f}', "\\u007f");
    quoted.trim_matches('"').to_owned()
}

fn scene() -> Scene {
    let reply = format!(
        "Hello {HOSTILE}.\n{}{}!!!gadget_start:{HOSTILE}\n!!!GADGET_SART:x\n",
        call("say:one", &[("text", HOSTILE)]),
        call(
            "fail:two",
            &[("text", HOSTILE), (&format!("x{HOSTILE}"), "y")]
        ),
    );
    let scene = Scene::with_tools(&reply, TOOLS.replace("HOSTILE", &quoted(HOSTILE)));
    fs::write(scene.path(&named("reply")), &reply).unwrap();
    fs::write(
        scene.path(&named("wrong.toml")),
        format!("[tools.a]\ncommand = 3 # {}\n", "\u{85}\u{9b}31m"),
    )
    .unwrap();
    fs::write(
        scene.path(&named("wrong.json")),
        format!("{{\"a\": [1, {HOSTILE}"),
    )
    .unwrap();
    fs::write(scene.path("tools.json"), serde_json::json!([{"name": "say", "description": HOSTILE, "inputSchema": {"type": "object", "properties": {(HOSTILE): {"type": "string", "description": HOSTILE}}}}]).to_string()).unwrap();
    fs::write(
        scene.path("calls.json"),
        serde_json::json!([{"name": "say", "arguments": {"text": HOSTILE}}]).to_string(),
    )
    .unwrap();
    fs::write(scene.path("history.json"), serde_json::json!([{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": HOSTILE}]).to_string()).unwrap();
    fs::write(
        scene.path("plaincall.toml"),
        format!(
            "system = \"{0}\"\nmodel = \"m\"\n[models.m]\nreplay = \"{0}\"\n",
            quoted(HOSTILE)
        ),
    )
    .unwrap();
    fs::write(
        scene.path("answers.jsonl"),
        serde_json::to_string(&format!(
            "An answer {HOSTILE}.\n{}",
            call("say:one", &[("text", HOSTILE)])
        ))
        .unwrap()
            + "\n"
            + &serde_json::to_string(HOSTILE).unwrap()
            + "\n",
    )
    .unwrap();
    scene
}

/// A hostile name of a file.
fn named(name: &str) -> String {
    format!("{HOSTILE}{name}")
}

/// Returns the bytes on a terminal that the command does not write itself.
fn untrusted(raw: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = raw;
    while let Some(c) = rest.chars().next() {
        if let Some(inside) = rest.strip_prefix("\u{1b}[") {
            let end = inside
                .find(|c: char| !"0123456789;?".contains(c))
                .unwrap_or(inside.len());
            let (parameters, last) = inside.split_at(end);
            let last = last.chars().next().unwrap_or('?');
            if parameters.contains("8;41") || !"mACJKhl".contains(last) {
                found.push(format!("CSI {parameters}{last}"));
            }
            rest = inside.get(end + last.len_utf8()..).unwrap_or_default();
            continue;
        }
        let is_own = matches!(c, '\n' | '\r' | '\t');
        if c.is_control() && !is_own || c == '\u{202e}' {
            found.push(format!("{c:?}"));
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    found
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn no_command_writes_a_control_character_that_is_not_its_own() {
    let scene = scene();
    let home = scene.path("home").to_string_lossy().into_owned();
    fs::create_dir_all(scene.path("home")).unwrap();
    let (reply, wrong_toml, wrong_json, missing) = (
        named("reply"),
        named("wrong.toml"),
        named("wrong.json"),
        named("missing"),
    );
    let model = "replay:answers.jsonl";
    let mut commands: Vec<Vec<&str>> = Vec::new();
    for format in [
        "parse",
        "parse --format json",
        "parse --events",
        "parse --format openai",
        "check",
        "check --format json",
        "check --explain",
    ] {
        let mut command: Vec<&str> = format.split(' ').collect();
        command.push(&reply);
        commands.push(command);
    }
    for command in [
        "parse",
        "check",
        "render",
        "show",
        "run --tools tools.toml",
        "tools check",
        "tools list --tools",
        "tools list --mcp",
        "ask x --tools",
        "ask x --config",
    ] {
        for file in [&missing, &wrong_json, &wrong_toml] {
            let mut command: Vec<&str> = command.split(' ').collect();
            command.push(file);
            commands.push(command);
        }
    }
    for command in [
        "parse --schema tools.toml reply.txt",
        "check --tools tools.json reply.txt",
        "parse --schema tools.json --json reply.txt",
        "render calls.json",
        "render --as messages history.json",
        "render --as prompt --tools tools.json",
        "render --as prompt --tools tools.toml --dialect emoji",
        "run reply.txt --tools tools.toml --yes",
        "run reply.txt --tools tools.toml --yes --json",
        "run reply.txt --tools tools.toml --yes --log log",
        "show log",
        "show log --full",
        "show log --html -",
        "tools check tools.toml",
        "tools check tools.json",
        "tools list --tools tools.toml",
        "tools list --tools tools.toml --json",
        "config",
        "config --json",
        "config --trust=x",
        "sessions",
        "sessions --json",
        "serve --upstream http://127.0.0.1:9/v1 --listen 300.0.0.1:1",
    ] {
        commands.push(command.split(' ').collect());
    }
    for options in [&[][..], &["--json"], &["-v"]] {
        commands.push(
            [
                &["ask", HOSTILE, "--model", model, "--tools", "tools.toml"],
                options,
            ]
            .concat(),
        );
    }
    commands.push(vec![
        "tools",
        "call",
        "say",
        HOSTILE,
        "--tools",
        "tools.toml",
    ]);
    commands.push(vec![
        "tools",
        "call",
        "fail",
        HOSTILE,
        "--tools",
        "tools.toml",
        "--yes",
    ]);
    commands.push(vec!["tools", "call", HOSTILE, "--tools", "tools.toml"]);
    commands.push(vec!["ask", "x", "--model", HOSTILE]);
    commands.push(vec!["show", HOSTILE]);
    commands.push(vec![HOSTILE]);
    commands.push(vec!["parse", "--syntax", HOSTILE]);
    let option = format!("--{HOSTILE}");
    commands.push(vec!["check", &option]);
    let mut seen = 0;
    for command in &commands {
        let environments = [
            &[("HOME", home.as_str())][..],
            &[("HOME", &home), ("TERM", "dumb")],
        ];
        // Each live display has a counterpart for other terminals.
        let count = if matches!(command.first(), Some(&("run" | "ask"))) {
            2
        } else {
            1
        };
        for environment in environments.into_iter().take(count) {
            let (name, arguments) = command.split_first().unwrap();
            if arguments.contains(&"--log") {
                let _ = fs::remove_file(scene.path("log"));
            }
            let terminal = Terminal::start(
                &scene,
                Options {
                    command: name,
                    arguments,
                    environment,
                    columns: 200,
                    ..Options::default()
                },
            );
            let raw = terminal.finish_raw();
            let untrusted = untrusted(&raw);
            assert!(
                untrusted.is_empty(),
                "{command:?}: {untrusted:?} in\n{raw:?}"
            );
            // The hostile part is visible where it is shown.
            seen += usize::from(raw.contains("owned"));
        }
    }
    assert!(seen > 50, "{seen} of {}", commands.len());
}
