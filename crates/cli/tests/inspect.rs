//! The inspector's page with an input. `cargo xtask dist` checks the page in a command that was built with it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const ELEMENT: &str = r#"<script type="application/json" id="given">"#;

#[derive(Debug)]
struct Inspected {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs `inspect` in a folder that is also the home directory.
fn inspect(
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
    input: &[u8],
) -> Inspected {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plaincall"));
    command.arg("inspect").args(arguments).current_dir(folder);
    command
        .env_clear()
        .env("HOME", folder)
        .env("PATH", "/usr/bin:/bin");
    command.envs(variables.iter().copied());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that does not read it has ended by then.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Inspected {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder with a small page, for commands that were built without one.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let page = format!("<p>{ELEMENT}null</script><script>// {ELEMENT}</script>");
    fs::write(folder.path().join("page.html"), page).unwrap();
    folder
}

/// The input in a page.
fn given(page: &str) -> Value {
    let (_, rest) = page.split_once(ELEMENT).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_command_without_the_page_names_the_way_to_build_it() {
    let folder = folder();
    let inspected = inspect(folder.path(), &["-", "--html", "-"], &[], b"a reply");
    assert_eq!((inspected.status, &*inspected.stdout), (Some(1), ""));
    assert!(
        inspected.stderr.contains("`cargo xtask inspector build`"),
        "{inspected:?}"
    );
    assert!(inspected.stderr.contains("--page"), "{inspected:?}");
}

#[test]
fn inputs() {
    let folder = folder();
    let path = folder.path();
    let shown = |arguments: &[&str], input: &[u8]| {
        let arguments = [arguments, &["--page", "page.html", "--html", "-"]].concat();
        let inspected = inspect(path, &arguments, &[], input);
        assert_eq!(
            (inspected.status, &*inspected.stderr),
            (Some(0), ""),
            "{arguments:?}"
        );
        let page = inspected.stdout;
        // No text ends the element.
        assert_eq!(page.matches("</script>").count(), 2, "{page}");
        given(&page)
    };
    assert_eq!(shown(&[], b""), json!({}));
    let hostile = "</script><script>alert(1)</script>\u{2028}\0";
    assert_eq!(shown(&["-"], hostile.as_bytes()), json!({"text": hostile}));
    assert_eq!(shown(&["-"], b"a\xffb"), json!({"bytes": [97, 255, 98]}));
    fs::write(path.join("reply.txt"), "text").unwrap();
    fs::write(
        path.join("tools.toml"),
        "[tools.Look]\ndescription = \"Looks.\"\ncommand = [\"true\"]\neffect = \"read\"\n[tools.Look.parameters]\nat = \"string\"\n",
    )
    .unwrap();
    let found = shown(&["reply.txt", "--tools", "tools.toml"], b"");
    assert_eq!(found["text"], "text");
    let tools: Value = serde_json::from_str(found["tools"].as_str().unwrap()).unwrap();
    assert_eq!(tools[0]["name"], "Look");
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["at"]));
    let found = shown(&["reply.txt", "--dialect", "block key=k1"], b"");
    assert_eq!(found["settings"]["dialect"]["syntax"], "block");
    assert_eq!(found["settings"]["dialect"]["key"], "k1");
    let found = shown(&["reply.txt", "--dialect", "no-reasoning"], b"");
    assert_eq!(found["settings"]["no_reasoning"], true);
}

#[test]
fn opening() {
    let folder = folder();
    let path = folder.path();
    let browser = |name: &str, script: &str| {
        let file = path.join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let broken = browser("broken", "exit 1");
    let works = browser("works", "printf %s \"$1\" > opened");
    let arguments = ["-", "--page", "page.html"];
    let written = path.join(".cache/plaincall/inspector.html");
    let written = written.to_str().unwrap();
    // Without a display, the path is printed.
    let inspected = inspect(path, &arguments, &[], b"first");
    assert_eq!(
        (inspected.status, &*inspected.stdout),
        (Some(0), &*format!("{written}\n"))
    );
    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(written), 0o600);
    assert_eq!(mode(path.join(".cache/plaincall").to_str().unwrap()), 0o700);
    // A browser that fails is followed by the next one.
    let both = format!("{broken}:{works}");
    let inspected = inspect(path, &arguments, &[("BROWSER", &both)], b"second");
    assert_eq!(
        (inspected.status, &*inspected.stdout),
        (Some(0), ""),
        "{inspected:?}"
    );
    assert!(inspected.stderr.contains(written), "{inspected:?}");
    assert_eq!(fs::read_to_string(path.join("opened")).unwrap(), written);
    assert_eq!(
        given(&fs::read_to_string(written).unwrap()),
        json!({"text": "second"})
    );
    // If none works, the path is printed.
    let inspected = inspect(path, &arguments, &[("BROWSER", &broken)], b"third");
    assert_eq!(
        (inspected.status, &*inspected.stdout),
        (Some(0), &*format!("{written}\n"))
    );
}

#[test]
fn mistakes() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("other.html"), "<p>").unwrap();
    for (arguments, status, message) in [
        (["no-such", "--page", "page.html"], 1, "no-such"),
        (
            ["-", "--page", "other.html"],
            1,
            "other.html is not the inspector's page",
        ),
        (["-", "--page", "no-such.html"], 1, "no-such.html"),
    ] {
        let inspected = inspect(path, &arguments, &[], b"");
        assert_eq!(inspected.status, Some(status), "{inspected:?}");
        assert!(inspected.stderr.contains(message), "{inspected:?}");
    }
    let arguments = ["-", "--page", "page.html", "--dialect", "emoji start=@"];
    assert_eq!(inspect(path, &arguments, &[], b"").status, Some(2));
}
