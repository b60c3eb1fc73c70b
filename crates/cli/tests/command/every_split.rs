//! `check --every-split`, as people see it.

use std::path::Path;

use crate::command::process::run;

/// What it says.
fn check(options: &[&str], text: &str, status: i32, expected: &str) {
    let arguments = [&["check", "--every-split"], options].concat();
    let ran = run(Path::new("."), &arguments, text.as_bytes());
    assert_eq!((ran.status, ran.stderr().as_str()), (Some(status), ""));
    assert_eq!(ran.stdout(), expected, "{options:?} {text:?}");
}

#[test]
fn what_was_proven_is_told_behind_what_was_found() {
    check(
        &[],
        "a 🛠️[b]c🛠️[/end]",
        0,
        "\
standard input: 1 call, no errors, no warnings
standard input: how it is cut into chunks does not matter: 350 ways tried
",
    );
    check(
        &["--deny-warnings"],
        "!!!ARG:",
        1,
        "\
warning[stray_marker]: `!!!ARG:` outside a call is plain text
 --> standard input:1:1
  |
1 | !!!ARG:
  | ^^^^^^^
  |
  = help: if it belongs to a call, look at the start marker of that call: it did not count, or the call has ended before

standard input: no calls, no errors, 1 warning
standard input: how it is cut into chunks does not matter: 27 ways tried
",
    );
    check(
        &["--key", "k1"],
        "x",
        0,
        "\
standard input: no calls, no errors, no warnings
standard input: how it is cut into chunks does not matter: no ways tried
",
    );
}
