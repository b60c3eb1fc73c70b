//! Named agents that are tools of other agents.

use std::fmt::Write as _;
use std::fs;

use super::configuration::{project, trust, user};
use super::{at_home, fed, scene};
use crate::run::pseudo_terminal::{Options, Terminal};
use crate::run::scene::{Ended, Scene, call};

/// A scene with a configuration, and with models that play these replies.
fn agents(configuration: &str, models: &[(&str, &[&str])]) -> Scene {
    let scene = scene(&[]);
    let mut text = configuration.to_owned();
    for (name, replies) in models {
        let lines = replies
            .iter()
            .map(|reply| serde_json::to_string(reply).unwrap() + "\n");
        let folder = scene.path("home/.config/plaincall");
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join(format!("{name}.jsonl")),
            lines.collect::<String>(),
        )
        .unwrap();
        writeln!(text, "[models.{name}]\nreplay = '{name}.jsonl'").unwrap();
    }
    user(&scene, &text);
    scene
}

fn ask(scene: &Scene, options: &[&str]) -> Ended {
    at_home(scene, &[&["ask", "Go.", "--verbose"], options].concat())
}

fn task(agent: &str) -> String {
    call(agent, &[("task", "Do it.")])
}

#[track_caller]
fn check_pieces(text: &str, pieces: &[&str]) {
    for piece in pieces {
        assert!(text.contains(piece), "{piece}: {text}");
    }
}

const LEAD: &str = "[agents.lead]\nmodel = 'lead'\nagents = ['reader']\n";
const READER: &str = "[agents.reader]\ndescription = 'Reads notes.'\n";

#[test]
fn an_agent_is_a_tool_of_another() {
    let block = [task("reader"), call("read", &[("name", "apples")])];
    delegates("block", &block);
    let emoji = ["🛠️[reader]\nDo it.🛠️[/end]\n", "🛠️[read apples]🛠️[/end]\n"];
    delegates("emoji", &emoji.map(str::to_owned));
}

/// Checks that the lead calls the reader and the reader its tool, with these calls in this syntax.
fn delegates(syntax: &str, [ask_reader, read]: &[String; 2]) {
    let tools = "tools = ['~/../tools.toml']\n";
    let scene = agents(
        &format!("{LEAD}tools = []\n{READER}model = 'reader'\n{tools}"),
        &[
            ("lead", &[ask_reader, "It read apples."]),
            ("reader", &[read, "The note is about apples."]),
        ],
    );
    let models = scene.path("home/.config/plaincall/config.toml");
    let text = fs::read_to_string(&models).unwrap();
    let syntax = format!("syntax = '{syntax}'\nreplay");
    user(&scene, &text.replace("replay", &syntax));
    let ended = ask(&scene, &["--agent", "lead", "--session", "kept"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "It read apples.\n", "{ended:?}");
    let pieces = [
        "  + reader/read  name=apples  ok",
        "note apples",
        "The note is about apples.",
        "4 turns",
        "2 calls",
    ];
    check_pieces(&ended.stderr, &pieces);
    let log = fs::read_to_string(scene.path("home/.local/state/plaincall/sessions/kept.jsonl"));
    let pieces = [
        r#""event":"subagent_text","call":0"#,
        r#""name":"read","submitted":{""#,
        r#"":{"name":"apples"}},"parent":0"#,
    ];
    check_pieces(&log.unwrap(), &pieces);
    let ended = ask(&scene, &["--agent", "lead", "--no-tools"]);
    assert!(!ended.stderr.contains("note apples"), "{ended:?}");
}

#[test]
fn an_agent_without_a_model_uses_that_of_the_question() {
    let scene = agents(
        &format!("{LEAD}tools = []\n{READER}tools = []\n"),
        // Recorded replies begin anew in each conversation: the reader has no reader.
        &[("lead", &[&task("reader"), "I am a lead."])],
    );
    let ended = ask(&scene, &["--agent", "lead"]);
    assert_eq!(ended.stdout, "I am a lead.\n", "{ended:?}");
    assert!(ended.stderr.contains("I am a lead."), "{ended:?}");
}

#[test]
fn agents_with_the_same_directory_share_its_tools() {
    let builtin = |tools: &str| format!("[agents.{tools}]\ndirectory = '~/notes'\n");
    let lead = builtin("lead.builtin");
    let reader = builtin("reader.builtin") + "tools = ['read_file']\n";
    let read = call("read_file", &[("path", "a.txt")]);
    let write = call("write_file", &[("path", "b.txt"), ("content", "x")]);
    let scene = agents(
        &format!("{LEAD}{lead}{READER}model = 'reader'\n{reader}"),
        &[
            ("lead", &[&(read.clone() + &task("reader")), "Done."]),
            ("reader", &[&(read + &write), "Read."]),
        ],
    );
    let notes = scene.path("home/notes");
    fs::create_dir_all(&notes).unwrap();
    fs::write(notes.join("a.txt"), "a note\n").unwrap();
    let ended = ask(&scene, &["--agent", "lead", "--yes"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(ended.stderr.matches("a note").count(), 2, "{ended:?}");
    // The reader does not have this tool.
    assert!(!notes.join("b.txt").exists(), "{ended:?}");
}

#[test]
fn agents_with_the_same_builtin_tool_need_the_same_settings() {
    let scene = agents(LEAD, &[("lead", &["Done."])]);
    for folder in ["notes", "other"] {
        fs::create_dir_all(scene.path("home").join(folder)).unwrap();
    }
    let lead = "[agents.lead.builtin]\ndirectory = '~/notes'\n";
    let other = "[agents.reader.builtin]\ndirectory = '~/other'\n";
    for (tables, problem) in [
        (format!("{lead}{READER}{other}"), Some("list_files")),
        // The settings of the user apply to agents without their own.
        (
            format!("{READER}{other}[builtin]\ndirectory = '~/notes'\n"),
            Some("list_files"),
        ),
        (
            format!(
                "{lead}tools = ['read_file']\n{READER}{other}tools = ['edit_file', 'search_files']\n"
            ),
            None,
        ),
    ] {
        user(
            &scene,
            &format!("{LEAD}{tables}[models.lead]\nreplay = 'lead.jsonl'\n"),
        );
        let ended = ask(&scene, &["--agent", "lead"]);
        let Some(tool) = problem else {
            assert_eq!(ended.status, Some(0), "{tables}: {ended:?}");
            continue;
        };
        assert_eq!(ended.status, Some(2), "{tables}: {ended:?}");
        let message = format!(
            "error: the agents `lead` and `reader` have the built-in tool `{tool}` with different settings; give both the same directory and the same other `builtin` settings, or choose different tools with `builtin.tools`\n"
        );
        assert!(ended.stderr.ends_with(&message), "{tables}: {ended:?}");
    }
}

#[test]
fn only_the_calls_of_an_agent_need_approval() {
    let write = call("write", &[("name", "new"), ("text", "one")]);
    for (options, is_written) in [(&[][..], false), (&["--yes"], true)] {
        let scene = agents(
            &format!("{LEAD}tools = []\n{READER}model = 'reader'\ntools = ['~/../tools.toml']\n"),
            &[
                ("lead", &[&task("reader"), "Done."]),
                ("reader", &[&write, "I tried."]),
            ],
        );
        let ended = ask(&scene, &[&["--agent", "lead"], options].concat());
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("I tried."), "{ended:?}");
        assert_eq!(scene.path("new.txt").exists(), is_written, "{ended:?}");
    }
}

#[test]
fn a_question_names_the_agent_of_a_call() {
    let write = call("write", &[("name", "new"), ("text", "one")]);
    let scene = agents(
        &format!("{LEAD}tools = []\n{READER}model = 'reader'\ntools = ['~/../tools.toml']\n"),
        &[
            ("lead", &[&task("reader"), "Done."]),
            ("reader", &[&write, "It is written."]),
        ],
    );
    let home = scene.path("home");
    let terminal = Terminal::start(
        &scene,
        Options {
            command: "ask",
            arguments: &["Go.", "--agent", "lead"],
            environment: &[("HOME", home.to_str().unwrap())],
            ..Options::default()
        },
    );
    terminal.wait_for("Allow this call?");
    terminal.answer('y');
    let (status, shown) = terminal.finish();
    assert_eq!(status, Some(0), "{shown}");
    let pieces = ["? reader wants to run write", "reader/write allowed"];
    check_pieces(&shown, &pieces);
    assert!(scene.path("new.txt").exists(), "{shown}");
}

#[test]
fn a_session_continues_with_its_agent() {
    let read = call("read", &[("name", "apples")]);
    let task = task("reader");
    let scene = agents(
        &format!(
            "model = 'plain'\n{LEAD}tools = []\n{READER}model = 'reader'\ntools = ['~/../tools.toml']\n"
        ),
        &[
            (
                "lead",
                &[
                    &task, "One.", &task, "Two.", &task, "Three.", &task, "Four.",
                ],
            ),
            ("reader", &[&read, "Read."]),
            (
                "plain",
                &["1", "2", "3", "4", "5", "6", "7", "8", "I am plain."],
            ),
        ],
    );
    for (options, answer) in [
        (&["--agent", "lead", "--session", "kept"][..], "One.\n"),
        (&["--session", "kept"], "Two.\n"),
        (&["--continue"], "Three.\n"),
    ] {
        let ended = ask(&scene, options);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert_eq!(ended.stdout, answer, "{options:?}: {ended:?}");
        assert!(ended.stderr.contains("note apples"), "{ended:?}");
    }
    let home = scene.path("home");
    let mut chat = scene.plaincall(&["chat", "--continue"]);
    chat.env("HOME", &home);
    let ended = fed(&mut chat, "Go.\n");
    assert_eq!(ended.stdout, "Four.\n", "{ended:?}");
    // The model of the session, unless an option sets another.
    let other = ask(&scene, &["--continue", "--model", "plain"]);
    assert_eq!(other.stdout, "I am plain.\n", "{other:?}");

    user(&scene, "model = 'replay:x'\n[agents.lea]\n");
    let ended = ask(&scene, &["--continue"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    let message =
        "error: the session was started with an unknown agent `lead`; did you mean `lea`?\n";
    assert!(ended.stderr.ends_with(message), "{ended:?}");
}

#[test]
fn problems_of_agents_are_shown_in_their_file() {
    let described = |name: &str, agents: &str| {
        format!("[agents.{name}]\ndescription = 'x'\nagents = [{agents}]\n")
    };
    let chain = |names: &[&str]| {
        let next = names.iter().skip(1).map(|next| format!("'{next}'"));
        let named = names
            .iter()
            .zip(next.chain([String::new()]))
            .map(|(name, next)| described(name, &next));
        named.collect::<String>()
    };
    let scene = agents("model = 'replay:replies.jsonl'\n", &[]);
    for (text, expected) in [
        (
            "[agents.lead]\nagents = ['reader', 'raeder']\n[agents.reader]\ndescription = 'x'\n"
                .to_owned(),
            Some(("3:21", "unknown agent `raeder`; did you mean `reader`?")),
        ),
        (
            "[agents.lead]\nagents = ['reader']\n[agents.reader]\n".to_owned(),
            Some(("3:11", "the agent `reader` has no `description`")),
        ),
        (
            described("a", "'a'"),
            Some(("4:11", "the agents form a cycle: a -> a; remove one")),
        ),
        (
            described("a", "'b'") + &described("b", "'c'") + &described("c", "'b'"),
            Some(("10:11", "the agents form a cycle: b -> c -> b; remove one")),
        ),
        (
            described("a", "'b', 'b'") + &described("b", ""),
            Some(("4:16", "duplicate agent `b`")),
        ),
        (
            chain(&["a", "b", "c", "d", "e"]),
            Some((
                "13:11",
                "agents are nested more than 4 deep: a -> b -> c -> d -> e",
            )),
        ),
        (chain(&["a", "b", "c", "d"]), None),
    ] {
        user(&scene, &format!("model = 'replay:none.jsonl'\n{text}"));
        let ended = at_home(&scene, &["sessions"]);
        match expected {
            Some((place, message)) => {
                assert_eq!(ended.status, Some(2), "{text}: {ended:?}");
                assert!(ended.stderr.contains(message), "{text}: {ended:?}");
                let place = format!("config.toml:{place}");
                assert!(ended.stderr.contains(&place), "{place}: {ended:?}");
            }
            None => assert_eq!(ended.status, Some(0), "{text}: {ended:?}"),
        }
    }
}

#[test]
fn the_deepest_chain_that_is_allowed_can_be_asked() {
    let names = ["a", "b", "c", "d"];
    let tables = names.iter().enumerate().map(|(place, name)| {
        let next = names.get(place + 1).map(|next| format!("'{next}'"));
        let next = next.unwrap_or_default();
        format!(
            "[agents.{name}]\nmodel = '{name}'\ntools = []\ndescription = 'x'\nagents = [{next}]\n"
        )
    });
    let scene = agents(
        &tables.collect::<String>(),
        &[
            ("a", &[&task("b"), "1"]),
            ("b", &[&task("c"), "2"]),
            ("c", &[&task("d"), "3"]),
            ("d", &["4"]),
        ],
    );
    let ended = ask(&scene, &["--agent", "a"]);
    assert_eq!(ended.stdout, "1\n", "{ended:?}");
    assert!(ended.stderr.contains("7 turns - 3 calls"), "{ended:?}");
}

#[test]
fn agents_of_a_project_can_be_broken_only_once_they_are_trusted() {
    let scene = agents("model = 'm'\n", &[("m", &["Hello."])]);
    project(&scene, "[agents.a]\nagents = ['b']\n");
    assert_eq!(ask(&scene, &[]).status, Some(0));
    trust(&scene);
    let ended = ask(&scene, &[]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("plaincall.toml:2:11"), "{ended:?}");
    let ended = at_home(&scene, &["config", "--distrust"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(ask(&scene, &[]).status, Some(0));
}
