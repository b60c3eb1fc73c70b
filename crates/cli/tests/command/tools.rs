//! `plaincall tools call` when something around it fails.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::process::{plaincall, run, run_command};

/// A file that cannot grow, as on a full disk: its content stays, and no temporary file is left.
#[test]
fn no_room() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "before").unwrap();
    let script =
        r#"ulimit -f 4; exec "$0" tools call write_file path="$1" content="$2" --yes --builtin ."#;
    for path in ["file", "new"] {
        let mut command = Command::new("/bin/sh");
        command.env_clear().current_dir(folder.path());
        command.args([
            "-c",
            script,
            env!("CARGO_BIN_EXE_plaincall"),
            path,
            &"x".repeat(9_000),
        ]);
        let ran = run_command(&mut command, b"");
        assert_eq!(ran.status, Some(1));
        let expected = format!(
            "error: `{path}` cannot be written: no space left (File too large (os error 27)); nothing was changed\n"
        );
        assert_eq!(ran.stderr(), expected);
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("file")).unwrap(),
        "before"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Ctrl-C ends the tool and the processes that it has started.
#[test]
fn interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let script = "command=sleep 300 & echo $! > pid; wait";
    let mut child = plaincall()
        .current_dir(folder.path())
        .args([
            "tools",
            "call",
            "run_command",
            script,
            "--yes",
            "--builtin",
            ".",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let pid = loop {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "it does not begin"
        );
        match fs::read_to_string(folder.path().join("pid")) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => std::thread::park_timeout(Duration::from_millis(5)),
        }
    };
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    while fs::exists(format!("/proc/{pid}")).unwrap() {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "{pid} is still there"
        );
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// The output of a tool is passed on unchanged, except for a line end behind it, and errors go to standard error.
#[test]
fn bytes_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "a\r\nb\u{1b}[2J").unwrap();
    let ran = run(
        folder.path(),
        &["tools", "call", "read_file", "path=file", "--builtin", "."],
        b"",
    );
    assert_eq!(
        ran.stdout(),
        "1: a\n2: b\u{1b}[2J\n[no newline at end of file; CRLF line endings]\n"
    );
    assert_eq!((ran.status, ran.stderr()), (Some(0), String::new()));
    let tools = "[tools.say]\nparameters = {text = \"string\"}\nshell = \"printf %s \\\"{text}\\\"\"\neffect = \"read\"\n";
    fs::write(folder.path().join("tools.toml"), tools).unwrap();
    for (text, expected) in [("a\nb", "a\nb\n"), ("a\n\n", "a\n\n"), ("", "")] {
        let argument = format!("text={text}");
        let arguments = ["tools", "call", "say", &argument, "--tools", "tools.toml"];
        assert_eq!(run(folder.path(), &arguments, b"").stdout(), expected);
    }
}

/// The section on trying tools in `docs/writing-tools.md`, with its own files.
#[test]
fn as_documented() {
    let fences = |page: &str, language: &str, from: &str| -> Vec<String> {
        let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
        let document = fs::read_to_string(path).unwrap();
        let (_, rest) = document.split_once(from).unwrap();
        let begin = format!("```{language}\n");
        let parts = rest.split(begin.as_str()).skip(1);
        parts
            .map(|part| part.split_once("```").unwrap().0.to_owned())
            .collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let tools = &fences("writing-tools.md", "toml", "## A first tool")[0];
    fs::write(folder.path().join("tools.toml"), tools).unwrap();
    let program = env!("CARGO_BIN_EXE_plaincall");
    let servers = fences("mcp.md", "json", "## Offer your tools to MCP clients")[0]
        .replace("\"plaincall\"", &format!("\"{program}\""))
        .replace("/home/me/", "");
    fs::write(folder.path().join("servers.json"), servers).unwrap();

    let [console] = &fences("writing-tools.md", "console", "# Writing")[..] else {
        panic!("one example of a console is expected");
    };
    let (line, expected) = console.split_once('\n').unwrap();
    let direct = line.strip_prefix("$ plaincall ").unwrap();
    let over_mcp = direct.replace("--tools tools.toml", "--mcp servers.json --yes");
    for line in [direct, &over_mcp] {
        let words: Vec<&str> = line.split(' ').collect();
        let ran = run(folder.path(), &words, b"");
        assert_eq!(
            (ran.stdout(), ran.stderr()),
            (expected.to_owned(), String::new()),
            "{line}"
        );
        assert_eq!(ran.status, Some(0));
    }
}

#[test]
fn definitions_are_json_or_toml() {
    for (text, is_json) in [
        ("{", true),
        (" \n{\"a\": 1}", true),
        ("[ {", true),
        ("[]", true),
        ("\"a\"", true),
        ("null", true),
        ("[tools.a]\ncommand = [\"true\"]\nx = 1", false),
        ("[[rules]]\n", false),
        ("# a comment\n[tools.a]", false),
        ("[\"tools\".a]\n", false),
        ("tools = {}", false),
        ("no file of tools", false),
    ] {
        let ran = run(Path::new("."), &["tools", "check", "-"], text.as_bytes());
        let stderr = ran.stderr();
        assert_eq!(ran.status, Some(1), "{text:?}: {stderr}");
        let of_json = [
            "JSON",
            "standard input defines no tools",
            "no tool definitions found",
        ];
        let found = of_json.iter().any(|part| stderr.contains(part));
        assert_eq!(found, is_json, "{text:?}: {stderr}");
    }
}
