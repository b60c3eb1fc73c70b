//! `chat` with lines from a pipe.

use std::fs;

use super::{MODEL, scene, two_notes, with_input};

#[test]
fn each_line_is_a_question() {
    let scene = scene(&[&two_notes(), "Apples.", "And\npears.\n"]);
    let arguments = ["chat", "--model", MODEL, "--tools", "tools.toml"];
    let lines = "What?\n\n/tols\n/tools\n/model\nand \\\nthen?\n/save talk.txt\n/exit\nnever\n";
    let ended = with_input(&scene, &arguments, lines);
    assert_eq!(ended.stdout, "Apples.\nAnd\npears.\n", "{ended:?}");
    assert_eq!(ended.status, Some(1), "a command was unknown");
    for part in [
        "unknown command `/tols`; did you mean `/tools`?",
        "write (write)  Writes a note.\n",
        "note: current model: replay:replies.jsonl",
        "+ a  read  name=apples  ok",
        "note: saved to talk.txt",
    ] {
        assert!(
            ended.stderr.contains(part),
            "{part:?} is not in\n{}",
            ended.stderr
        );
    }
    let saved = fs::read_to_string(scene.path("talk.txt")).unwrap();
    assert!(
        saved.starts_with("## To the model\n\nWhat?\n\n## The model\n\nI look"),
        "{saved}"
    );
    assert!(
        saved.ends_with("## To the model\n\nand \nthen?\n\n## The model\n\nAnd\npears.\n\n"),
        "{saved}"
    );
    // An existing file is not overwritten.
    let ended = with_input(&scene, &arguments, "/save talk.txt\n");
    assert!(
        ended.stderr.contains("talk.txt already exists"),
        "{}",
        ended.stderr
    );
}

#[test]
fn lines_of_a_chat() {
    let scene = scene(&["A.", "B.", "C."]);
    let lines = "/etc/passwd: what is it?\n/\nWhat is /help?\n/show 0\n/save\n/tools now\n/mcp\n/mcp x\n/xyzzy\n/model a b\n /quit \nnever\n";
    let ended = with_input(&scene, &["chat", "--model", MODEL], lines);
    assert_eq!(ended.stdout, "A.\nB.\nC.\n", "{ended:?}");
    for part in [
        "`/show 2` shows the second to last result",
        "expected a file name",
        "`/tools` takes no arguments",
        "note: there are no MCP servers; add some with `--mcp`",
        "unknown MCP server `x`; `/mcp` lists them",
        "unknown command `/xyzzy`; see `/help`",
        "unknown model `a b`",
    ] {
        assert!(ended.stderr.contains(part), "{part:?}\n{}", ended.stderr);
    }
}

#[test]
fn another_model_answers_from_now_on() {
    let scene = scene(&["One.", "One again."]);
    fs::write(scene.path("other.jsonl"), "\"Two.\"\n\"Two again.\"\n").unwrap();
    let ended = with_input(
        &scene,
        &["chat", "--model", MODEL],
        "a\n/model replay:other.jsonl\nb\n/model nothing\n",
    );
    assert_eq!(ended.stdout, "One.\nTwo again.\n", "{ended:?}");
    assert!(ended.stderr.contains("switched to replay:other.jsonl"));
    assert!(ended.stderr.contains("unknown model `nothing`"));
}

#[test]
fn commands_to_the_program() {
    let scene = scene(&[&two_notes(), "Done."]);
    let arguments = ["chat", "--model", MODEL, "--tools", "tools.toml"];
    let input = "What?\n/show\n/show 2\n/show 3\n/model\n/save talk.txt\n/save talk.txt\n";
    let ended = with_input(&scene, &arguments, input);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    for part in [
        "read  failed\n",
        "read  ok\nnote apples\n",
        "no such result",
        "saved to talk.txt",
        "talk.txt already exists; name another file",
    ] {
        assert!(
            ended.stderr.contains(part),
            "{part:?} is not in\n{}",
            ended.stderr
        );
    }
    assert_eq!(ended.stderr.matches(MODEL).count(), 1, "{}", ended.stderr);
}

#[test]
fn a_model_of_the_options_is_called_what_it_is() {
    let scene = scene(&[]);
    let url = "http://127.0.0.1:9/v1?key=secret";
    let arguments = ["chat", "--model", "some", "--url", url];
    let ended = with_input(&scene, &arguments, "/model\n");
    let expected = "note: current model: some at http://127.0.0.1:9/v1\n";
    assert_eq!(ended.stderr, expected, "{ended:?}");
}

/// A byte that is not UTF-8 costs a character, and not the conversation.
#[test]
fn bytes_that_are_not_utf_8_come_through_a_pipe() {
    let scene = scene(&["One.", "Two.", "Three."]);
    let mut child = scene
        .plaincall(&["chat", "--model", MODEL])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"caf\xe9\n\xff\n\xf0\x9f\n").unwrap();
    drop(stdin);
    let ended: crate::run::scene::Ended = child.wait_with_output().unwrap().into();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    for answer in ["One.", "Two.", "Three."] {
        assert!(ended.stdout.contains(answer), "{ended:?}");
    }
}
