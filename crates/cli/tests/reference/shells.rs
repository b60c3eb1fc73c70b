//! Completions, man pages and the examples of the help match the command line.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use clap::Command as ClapCommand;

/// Runs the command, and returns its standard output.
fn output(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_plaincall"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Calls `check` with each command and its name, such as `tools list`.
fn each_command(command: &ClapCommand, name: &str, check: &mut dyn FnMut(&ClapCommand, &str)) {
    check(command, name);
    for inner in command.get_subcommands() {
        if inner.get_name() != "help" {
            let name = format!("{name} {}", inner.get_name());
            each_command(inner, name.trim(), check);
        }
    }
}

#[test]
fn completions_have_every_command_and_option() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = output(&["completions", shell]);
        each_command(&plaincall_cli::command(), "", &mut |command, name| {
            assert!(script.contains(command.get_name()), "{shell}: {name}");
            for option in command.get_arguments().filter_map(clap::Arg::get_long) {
                assert!(script.contains(option), "{shell}: {name} --{option}");
            }
        });
    }
}

/// Returns the completions of bash at the end of these words.
fn completed_by_bash(words: &[&str]) -> Vec<String> {
    let script = output(&["completions", "bash"]);
    let (last, previous) = (words[words.len() - 1], words[words.len() - 2]);
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let call = format!(
        "\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_plaincall plaincall '{last}' '{previous}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        quoted.join(" "),
        words.len() - 1,
    );
    let mut bash = Command::new("bash")
        .args(["--norc", "--noprofile"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = bash.stdin.take().unwrap();
    stdin.write_all((script + &call).as_bytes()).unwrap();
    drop(stdin);
    let output = bash.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let offered = String::from_utf8(output.stdout).unwrap();
    offered.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let table: [(&[&str], &[&str]); 4] = [
        (&["plaincall", "se"], &["serve", "sessions"]),
        (&["plaincall", "serve", "--up"], &["--upstream"]),
        (&["plaincall", "tools", "e"], &["examples"]),
        (&["plaincall", "completions", "f"], &["fish"]),
    ];
    for (words, expected) in table {
        assert_eq!(completed_by_bash(words), expected, "{words:?}");
    }
}

#[test]
fn man_pages_have_every_command_and_option() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    output(&["man", pages.to_str().unwrap()]);
    let mut expected = Vec::new();
    each_command(
        &plaincall_cli::command(),
        "plaincall",
        &mut |command, name| {
            let file = format!("{}.1", name.replace(' ', "-"));
            let page = fs::read_to_string(pages.join(&file)).expect(&file);
            assert!(page.contains(".TH "), "{file}");
            assert!(page.contains(".SH NAME"), "{file}");
            for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
                if let Some(option) = argument.get_long() {
                    let written = format!("\\-\\-{}", option.replace('-', "\\-"));
                    assert!(page.contains(&written), "{file}: --{option}");
                }
            }
            expected.push(file);
        },
    );
    let written = fs::read_dir(&pages).unwrap();
    let mut written: Vec<String> = written
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    written.sort();
    expected.sort();
    assert_eq!(written, expected);
}

/// Splits a line into words as a shell does; only double quotes have a meaning.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('"').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

#[test]
fn the_help_begins_with_examples_that_are_valid() {
    for option in ["-h", "--help"] {
        let help = output(&[option]);
        let (examples, _) = help.split_once("\nUsage:").unwrap();
        let headings = examples.lines().filter(|line| line.ends_with(':')).count();
        assert_eq!(headings, 5, "{examples}");
        let lines: Vec<&str> = examples
            .lines()
            .filter(|line| line.starts_with("  plaincall "))
            .collect();
        assert!(lines.len() >= headings, "{examples}");
        for line in lines {
            let parsed = plaincall_cli::command().try_get_matches_from(words(line));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
}
