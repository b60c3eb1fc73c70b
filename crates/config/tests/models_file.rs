//! The model servers in the file of `plaincall serve --models`.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use plaincall_config::FileError;
use plaincall_config::settings::{Model, read_models};

/// Reads a table with these lines, with one environment variable.
fn read(lines: &str) -> Result<Vec<(String, Model)>, FileError> {
    let text = format!("[models.a]\n{lines}");
    let variable = |name: &str| (name == "SET").then(|| "word".to_owned());
    read_models("models.toml", &text, &Model::default(), &variable)
}

#[test]
fn keys_of_a_server() {
    let lines = "url = 'http://a'\nkey_env = 'SET'\nmodel = 'b'\nheaders = {c = 'd ${SET}'}";
    let (_, model) = read(lines).unwrap().remove(0);
    assert_eq!(model.url.unwrap().0, "http://a");
    assert_eq!(model.key_env.unwrap(), "SET");
    assert_eq!(model.model.unwrap(), "b");
    assert_eq!(model.headers["c"], "d word");
}

#[test]
fn problems_have_a_location() {
    let url = "url = 'http://a'\n";
    for (lines, position, words) in [
        ("url = 'a'".to_owned(), (2, 1), "must begin with `http://`"),
        ("key_env = 'SET'".to_owned(), (2, 1), "requires `url`"),
        (
            format!("{url}key_env = 'SET'\nkey_file = 'a'"),
            (4, 1),
            "cannot both be set",
        ),
        (
            format!("{url}key_env = 'UNSET'"),
            (3, 1),
            "`UNSET` is not set",
        ),
        (
            format!("{url}headers = {{b = 'c ${{UNSET}}'}}"),
            (3, 16),
            "`UNSET` is not set",
        ),
    ] {
        let error = read(&lines).unwrap_err();
        let problem = &error.problems[0];
        assert!(problem.message.contains(words), "{lines}: {problem}");
        assert_eq!((problem.line, problem.column), position, "{problem}");
    }
}
