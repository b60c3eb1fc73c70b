//! `check --every-split`, as people see it.

use std::path::Path;

use crate::command::process::run;

/// What it says, without the time that it took.
fn check(options: &[&str], text: &str, status: i32, expected: &str) {
    let arguments = [&["check", "--every-split"], options].concat();
    let ran = run(Path::new("."), &arguments, text.as_bytes());
    assert_eq!((ran.status, ran.stderr().as_str()), (Some(status), ""));
    let mut said = ran.stdout();
    if let Some(from) = said.find(" (") {
        let to = from + said[from..].find(" s)").unwrap();
        said.replace_range(from..to + 3, "");
    }
    assert_eq!(said, expected, "{options:?} {text:?}");
}

#[test]
fn what_was_proven_is_told_behind_what_was_found() {
    check(
        &[],
        "a 🛠️[b]c🛠️[/end]",
        0,
        "\
standard input: 1 call, no errors, no warnings
standard input: how it is cut into chunks does not matter
           1  one byte at a time
          25  in two chunks, split at every byte
         300  in three chunks, split at every pair of bytes
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
standard input: how it is cut into chunks does not matter
           1  one byte at a time
           6  in two chunks, split at every byte
          15  in three chunks, split at every pair of bytes
",
    );
    check(
        &["--key", "k1"],
        "x",
        0,
        "\
standard input: no calls, no errors, no warnings
standard input: there is no way to cut it into chunks
",
    );
}
