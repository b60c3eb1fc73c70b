//! Suggestions for misspelled names.

use plaincall_names::{did_you_mean, nearest_name, unknown_tool};

#[test]
fn nearest_names() {
    let names = ["command", "shell", "read-file", "read-folder", "a"];
    for (written, expected) in [
        ("comand", Some("command")),
        ("comamnd", Some("command")),
        ("Command", Some("command")),
        ("commands", Some("command")),
        ("program", None),
        ("shel", Some("shell")),
        ("sehll", Some("shell")),
        ("raed-*", Some("read-file")),
        ("read-fole", Some("read-file")),
        ("reed-fol*", Some("read-folder")),
        ("read-fold?", Some("read-folder")),
        ("writ?-*", None),
        ("read", Some("read-file")),
        ("com", Some("command")),
        ("co", None),
        ("b", None),
        ("*", None),
        ("", None),
    ] {
        assert_eq!(nearest_name(written, names), expected, "{written}");
    }
}

#[test]
fn messages_suggest_the_intended_name() {
    let names = ["read", "write"];
    assert_eq!(did_you_mean("raed", names), "; did you mean `read`?");
    assert_eq!(did_you_mean("shell", names), "");
    assert_eq!(
        unknown_tool("raed", names),
        "unknown tool `raed`; did you mean `read`? Use one of `read`, `write`"
    );
}
