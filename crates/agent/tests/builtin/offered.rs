//! The tools, and the form of their calls.

use plaincall_agent::builtin::{Builtin, BuiltinError, BuiltinTool};
use plaincall_agent::plaincall::tool::{Arguments, bind_arguments};
use plaincall_agent::plaincall::{Effect, Tool, Toolbox};
use serde_json::json;

use crate::builtin::scene::Scene;

fn set(change: impl FnOnce(Builtin) -> Builtin) -> Toolbox {
    let builtin = Builtin::in_directory(std::env::temp_dir()).unwrap();
    change(builtin).toolbox().unwrap()
}

#[test]
fn which_tools_there_are() {
    use BuiltinTool::{Finish, ReadFile, WriteFile};
    let check = |change: fn(Builtin) -> Builtin, expected: &str| {
        let toolbox = set(change);
        let names: Vec<&str> = toolbox.iter().map(Tool::name).collect();
        assert_eq!(names.join(" "), expected);
    };
    let all = "list_files read_file search_files write_file edit_file run_command fetch_url finish";
    check(|set| set, all);
    check(
        |set| set.user(|_| async { Err("unavailable".into()) }),
        &all.replace("finish", "ask_user finish"),
    );
    check(|set| set.only([Finish, ReadFile]), "read_file finish");
    check(
        |set| set.only([Finish, ReadFile]).only([ReadFile, WriteFile]),
        "read_file",
    );
    check(|set| set.only([]), "");
    check(
        |set| {
            set.read_only()
                .user(|_| async { Err("unavailable".into()) })
        },
        "list_files read_file search_files ask_user finish",
    );
    check(
        |set| set.read_only().fetch_hosts(["a.b"]),
        "list_files read_file search_files fetch_url finish",
    );
    for tool in BuiltinTool::ALL {
        assert_eq!(BuiltinTool::from_name(tool.name()), Some(tool));
    }
    let error = Builtin::in_directory("/nowhere/at/all").unwrap_err();
    assert!(matches!(error, BuiltinError::Directory { .. }));
    assert_eq!(
        error.to_string(),
        "cannot open the directory /nowhere/at/all for the built-in tools: No such file or directory (os error 2)"
    );
    let error = Builtin::in_directory("/dev/null").unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with(": Not a directory (os error 20)"),
        "{error}"
    );
    let builtin = Builtin::in_directory("/tmp").unwrap();
    let error = builtin.command_environment(["A=B"]).tools().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`run_command` cannot be offered: `A=` is not a valid name of an environment variable; write only the name"
    );
}

/// The effect of each tool, and its line and body in the emoji syntax.
#[test]
fn how_they_are_called() {
    let toolbox = set(|set| set.user(|_| async { Err("unavailable".into()) }));
    let found: Vec<(Effect, String)> = toolbox
        .iter()
        .map(|tool| (tool.spec().effect, tool.spec().usage().to_string()))
        .collect();
    let expected = [
        (Effect::Read, "list_files path? glob? depth?"),
        (Effect::Read, "read_file path offset? limit?"),
        (Effect::Read, "search_files path? glob...? (body: pattern)"),
        (Effect::Write, "write_file path... (body: content)"),
        (Effect::Write, "edit_file (body: one JSON object)"),
        (Effect::Write, "run_command (body: command)"),
        (Effect::Write, "fetch_url url..."),
        (Effect::Read, "ask_user (body: question)"),
        (Effect::Read, "finish (body: answer)"),
    ];
    assert_eq!(
        found,
        expected.map(|(effect, usage)| (effect, usage.to_owned()))
    );
    let named = set(|set| set.fetch_hosts(["docs.rs", "*.rust-lang.org"]));
    let fetch = named.get("fetch_url").unwrap().spec();
    assert_eq!(fetch.effect, Effect::Read);
    assert_eq!(
        fetch.description,
        "Fetches a web page (GET) and returns it as text. Only from: docs.rs, *.rust-lang.org."
    );
    for tool in toolbox.iter() {
        assert!(tool.spec().description.len() < 180, "{}", tool.name());
        assert!(
            tool.spec()
                .parameters()
                .iter()
                .all(|parameter| !parameter.description.is_empty())
        );
        assert_eq!(tool.policy().finishes, tool.name() == "finish");
    }
}

/// Invalid arguments are rejected before the tool gets them.
#[test]
fn arguments_that_do_not_fit() {
    let toolbox = set(|set| set);
    let check = |tool: &str, arguments: &[(&str, &str)], expected: &str| {
        let arguments = Arguments::from_pairs(arguments.iter().copied()).unwrap();
        let found = match bind_arguments(toolbox.get(tool).unwrap().spec(), &arguments) {
            Ok(bound) => bound.to_value().to_string(),
            Err(problems) => problems[0].to_string(),
        };
        assert_eq!(found, expected, "{tool}");
    };
    check(
        "read_file",
        &[("path", "007"), ("offset", "10")],
        &json!({"path": "007", "offset": 10}).to_string(),
    );
    check(
        "read_file",
        &[("path", "a"), ("offset", "0")],
        "`offset`: expected an integer of at least 1, found `0`",
    );
    check(
        "read_file",
        &[("path", "a"), ("from", "1")],
        "unknown parameter `from`; read_file takes `path`, `offset` and `limit`",
    );
    check(
        "edit_file",
        &[
            ("path", "a"),
            ("old_text", "true"),
            ("new_text", "5"),
            ("all", "yes"),
        ],
        "`all`: expected true or false, found `yes`",
    );
    check(
        "list_files",
        &[("depth", "65")],
        "`depth`: expected an integer from 1 to 64, found `65`",
    );
}

/// Calls in the emoji syntax, with various bodies.
#[tokio::test]
async fn emoji_calls() {
    let scene = Scene::of(&[("my file.txt", "a [1]\nb\n")]);
    for (text, expected) in [
        (
            "🛠️[write_file new file.txt]\nfirst\nsecond\n🛠️[/end]",
            "created `new file.txt`: 13 bytes\n",
        ),
        (
            "🛠️[search_files . *.txt]\n\\[\\d\\]\n🛠️[/end]",
            "my file.txt:1: a [1]\n",
        ),
        (
            "🛠️[read_file new-file 1 1]🛠️[/end]",
            "error: `new-file` does not exist; `list_files` lists what exists",
        ),
        (
            "🛠️[run_command]\ncat 'new file.txt'\n🛠️[/end]",
            "first\nsecond\n",
        ),
        (
            "🛠️[edit_file]\n{\"path\": \"my file.txt\", \"old_text\": \"a [1]\", \"new_text\": \"c\"}\n🛠️[/end]",
            "edited `my file.txt`: 1 occurrence replaced at line 1\n",
        ),
        (
            "🛠️[list_files]🛠️[/end]",
            "my file.txt (4 bytes)\nnew file.txt (13 bytes)\n",
        ),
        ("🛠️[finish]\nDone.\n🛠️[/end]", "Done.\n"),
    ] {
        let found = scene.say(text).await;
        assert_eq!(found, expected, "{text}");
    }
}

/// A question about a write names the directory.
#[test]
fn where_they_work() {
    let scene = Scene::new();
    let here = scene.path("").canonicalize().unwrap();
    for (tool, expected) in [
        ("write_file", true),
        ("edit_file", true),
        ("run_command", true),
        ("finish", false),
    ] {
        let directory = scene
            .toolbox()
            .get(tool)
            .unwrap()
            .command_directory(&plaincall::command::Directories::default());
        assert_eq!(directory, expected.then(|| here.clone()), "{tool}");
    }
}
